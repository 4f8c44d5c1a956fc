//! The desk on which a decision about one DaemonSet is put together.

use std::time::Duration;

use super::action::Action;
use super::census::Census;
use super::objects::DaemonSet;
use super::observation::Observation;
use super::settings::Settings;
use super::strategy::{Drive, Pace};
use super::{Decision, Moment, Standing};
use crate::api::{RolloutGuard, RolloutPhase, RolloutReason, RolloutRecord};
use crate::clock::{Clock as _, Now};

/// Counts alone are written at most this often.
const COUNT_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Desk<'a> {
    pub seen: &'a Observation,
    pub settings: &'a Settings,
    pub moment: Moment,
    pub now: Now,
    /// The record as it will be.
    pub record: RolloutRecord,
    action: Option<Action>,
    look_again: Option<Duration>,
}

impl<'a> Desk<'a> {
    pub fn new(seen: &'a Observation, record: &RolloutRecord, settings: &'a Settings, moment: Moment) -> Self {
        let now = Now { time: moment.time, watching_for: moment.watching_for };
        let mut record = record.clone();
        record.guard = Some(moment.guard);
        Self { seen, settings, moment, now, record, action: None, look_again: None }
    }

    /// Whether Windlass writes the DaemonSet, or looks on as somebody else does.
    pub fn steers(&self) -> bool {
        match self.moment.guard {
            RolloutGuard::AdmissionStrict
            | RolloutGuard::AdmissionCompat
            | RolloutGuard::Rendered
            | RolloutGuard::Unguarded => true,
            RolloutGuard::Observed => false,
        }
    }

    /// Brings the counts up to date.
    pub fn count(&mut self, daemon_set: &DaemonSet, census: &Census<'_>) {
        self.record.budget = Some(daemon_set.strategy.pace.to_string());
        self.record.desired = daemon_set.counts.desired;
        self.record.updated = census.updated();
        self.record.ready = census.healthy();
    }

    /// Where it stands, and why.
    pub fn stand(&mut self, phase: RolloutPhase, reason: Option<RolloutReason>, message: &str) {
        self.record.phase = phase;
        self.record.reason = reason;
        self.record.message = Some(message.to_owned()).filter(|message| !message.is_empty());
    }

    /// The same, and it waits for something.
    pub fn wait(&mut self, phase: RolloutPhase, reason: Option<RolloutReason>, message: String) -> Standing {
        self.stand(phase, reason, &message);
        Standing::Waiting(format!("DaemonSet {}: {message}", self.record.daemon_set))
    }

    /// Brings the DaemonSet to a pace; true if that takes a write. Whatever
    /// somebody else has written there is drift.
    pub fn steer(&mut self, daemon_set: &DaemonSet, pace: Pace, drive: Drive) -> bool {
        let strategy = &daemon_set.strategy;
        if !self.steers() || (strategy.pace == pace && strategy.drive == drive) {
            return false;
        }
        self.action = Some(Action::steer(daemon_set, pace, drive));
        true
    }

    /// The same for the steps after the canary: more pods go only if those that were
    /// seen to be well are so when the write is made.
    pub fn step(&mut self, daemon_set: &DaemonSet, pace: Pace, census: &Census<'_>) -> bool {
        let (live, desired) = (&daemon_set.strategy, daemon_set.counts.desired);
        let steering = self.steer(daemon_set, pace, live.drive);
        if pace.of(desired) > live.pace.of(desired) {
            self.action = self.action.take().map(|action| action.proved_by(daemon_set, census.well()));
        }
        steering
    }

    /// Does something to the pods of a DaemonSet that nobody else looks after.
    pub fn act(&mut self, action: Action) {
        if self.steers() {
            self.action = Some(action);
        }
    }

    /// Takes back what was to be done.
    pub fn act_not(&mut self) {
        self.action = None;
    }

    /// Asks for another look after `after`, or earlier.
    pub fn look_again(&mut self, after: Duration) {
        self.look_again = Some(self.look_again.map_or(after, |earlier| earlier.min(after)));
    }

    /// Time since what it is doing began.
    pub fn elapsed(&self) -> Duration {
        self.record.elapsed(self.now)
    }

    /// What it does from here on has a clock of its own.
    pub fn restart_clock(&mut self) {
        self.record.reset();
        self.record.start(self.now);
    }

    pub fn run_clock(&mut self) {
        self.record.start(self.now);
        self.record.run(self.now);
    }

    pub fn stop_clock(&mut self) {
        self.record.pause(self.now);
    }

    /// Lets the count on record be that of now.
    pub fn recount(&mut self) {
        self.record.pause(self.now);
        self.record.run(self.now);
    }

    /// The time left until a limit; `None` once it is reached. Asks for a look then.
    pub fn left(&mut self, limit: Duration) -> Option<Duration> {
        let left = limit.checked_sub(self.elapsed()).filter(|left| !left.is_zero())?;
        self.look_again(left);
        Some(left)
    }

    /// Counts that changed a moment ago are not written again yet.
    pub fn decision(mut self, before: &RolloutRecord, standing: Standing) -> Decision {
        let told = RolloutRecord {
            updated: before.updated,
            ready: before.ready,
            desired: before.desired,
            best: before.best,
            since: before.since.clone(),
            active_seconds: before.active_seconds,
            counted_at: before.counted_at.clone(),
            ..self.record.clone()
        };
        let counted = before.counted_at.as_ref().map(|at| self.now.at_least_since(at));
        let soon = counted.and_then(|since| COUNT_EVERY.checked_sub(since)).filter(|left| !left.is_zero());
        if let Some(left) = soon.filter(|_| told == *before && self.record != *before) {
            self.record = told;
            self.look_again(left);
        }
        Decision { record: self.record, standing, action: self.action, look_again: self.look_again }
    }
}
