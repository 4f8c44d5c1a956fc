//! How a DaemonSet is rolled out: one pod first, then the others in steps, as
//! KubeVirt does it, and stopped where a new pod fails.
//!
//! [`decide`] is total, synchronous and without memory. What a rollout has to
//! remember is its [`RolloutRecord`]; everything else is read from the live
//! objects each time, so that a restart changes nothing.
//!
//! | rule | module |
//! |---|---|
//! | which template is the newest; a rollout begins, or begins anew | `begin` |
//! | nodes are counted, not pods; nodes that were not ready before | [`census`] |
//! | crash, image, configuration: the same in every phase | [`health`] |
//! | the canary: chosen, deleted, soaked | `trial` |
//! | steps, the end, and what counts as one | `expansion` |
//! | failed: hold or freeze | `failure` |
//! | what keeps the first step small | [`guard`] |
//! | budgets, freezing, who drives | [`strategy`] |
//! | writes with their preconditions | [`action`] |

pub mod action;
mod begin;
pub mod census;
mod desk;
pub mod estimate;
mod expansion;
mod failure;
pub mod guard;
pub mod health;
pub mod objects;
pub mod observation;
pub mod phase;
mod settings;
pub mod strategy;
mod trial;

use std::time::Duration;

use jiff::Timestamp;

use crate::api::{RolloutGuard, RolloutPhase, RolloutReason, RolloutRecord};
use begin::Begun;
use census::Census;
use desk::Desk;
use objects::DaemonSet;

pub use action::Action;
pub use action::{Label, Steering};
pub use begin::{again, is_about_to_end, remember};
pub use expansion::idle;
pub use observation::{Calm, Observation, Sight};
pub use settings::Settings;

/// Under which circumstances a decision is made.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The current time.
    pub time: Timestamp,
    /// For how long this process has been watching without a gap: time before
    /// that counts for no clock.
    pub watching_for: Duration,
    /// What keeps the first step small; a DaemonSet that is only
    /// [`RolloutGuard::Observed`] is never written to.
    pub guard: RolloutGuard,
    /// Whether the engine has applied what is wanted: until then nothing is done
    /// for good.
    pub released: bool,
    /// Whether nothing may move for now.
    pub paused: bool,
    /// Whether an earlier template comes back: where that runs is known to be meant.
    pub returning: bool,
    /// Whether a rollout that had failed goes on by itself when its pods recover.
    /// In Compat it always does.
    pub forgiving: bool,
}

/// What one look at a DaemonSet comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The record as it is to be written, before the action: phase, reason and
    /// message are in it.
    pub record: RolloutRecord,
    /// Where the rollout stands.
    pub standing: Standing,
    /// What is to be done, if anything.
    pub action: Option<Action>,
    /// When to look again if nothing changes.
    pub look_again: Option<Duration>,
}

/// Where a rollout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Every node runs the newest template, was seen to twice, and the budget is
    /// back at 1.
    Done,
    /// Something is awaited.
    Waiting(String),
    /// It failed.
    Failed(String),
}

/// What is to be done for a DaemonSet, given what was seen of it and what is on
/// record. The same input gives the same decision; an action that has had its
/// effect is not asked for again.
pub fn decide(seen: &Observation, record: &RolloutRecord, settings: &Settings, moment: Moment) -> Decision {
    let mut desk = Desk::new(seen, record, settings, moment);
    let standing = step(&mut desk);
    desk.decision(record, standing)
}

fn step(desk: &mut Desk<'_>) -> Standing {
    let Some(daemon_set) = desk.seen.daemon_set.as_ref().filter(|daemon_set| !daemon_set.deleting) else {
        return begin::missing(desk);
    };
    begin::identify(desk, daemon_set);
    let Some(hash) = daemon_set.newest(&desk.seen.revisions) else {
        let message = format!("the DaemonSet controller has not acted on generation {} yet", daemon_set.generation);
        return begin::not_observed(desk, daemon_set, &message);
    };
    if desk.record.revision.as_deref() != Some(hash) {
        match begin::begin(desk, daemon_set, hash) {
            Begun::First => {}
            begun @ (Begun::Next | Begun::Anew) => return begin::told(desk, begun),
        }
    }
    let mut census = Census::of(desk.seen, daemon_set, hash, &desk.record, desk.settings);
    if begin::awaits_revision(desk, daemon_set, hash) {
        return begin::not_observed(desk, daemon_set, "the ControllerRevision of its template is awaited");
    }
    if desk.record.phase == RolloutPhase::Successful && census.outdated() == 0 {
        expansion::stays(desk, daemon_set, &census);
        return Standing::Done;
    }
    if desk.record.phase == RolloutPhase::Successful {
        // What has crashed since it ended is no fault of a node that is back.
        desk.record.crashed = census::crashed_so_far(desk.seen, daemon_set, |pod| pod.ready);
        census = Census::of(desk.seen, daemon_set, hash, &desk.record, desk.settings);
    }
    desk.count(daemon_set, &census);
    begin::take_back(desk, &census);
    if begin::is_awaited(desk) {
        return Standing::Waiting(format!("{}: its new spec is awaited", daemon_set.id()));
    }
    if desk.moment.paused {
        return failure::paused(desk, daemon_set, &census);
    }
    match desk.record.phase {
        RolloutPhase::Failed if !failure::recovers(desk, daemon_set, &census) => {
            return failure::stays(desk, daemon_set);
        }
        RolloutPhase::Failed => desk.restart_clock(),
        RolloutPhase::Started
        | RolloutPhase::Canary
        | RolloutPhase::Increasing
        | RolloutPhase::Waiting
        | RolloutPhase::Successful => {}
    }
    go_on(desk, daemon_set, &census)
}

/// Fails what has failed, and else takes the next step.
fn go_on(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    desk.run_clock();
    if let Some((reason, message)) = failure::broken(census) {
        return failure::fail(desk, daemon_set, reason, message);
    }
    if let Some(message) = failure::lacks_annotation(desk, daemon_set) {
        return failure::fail(desk, daemon_set, RolloutReason::AnnotationMissing, message);
    }
    // A template that was on record before its rollout had ended still owes a canary.
    desk.record.trial |= desk.steers() && desk.record.step == 0 && census.outdated() > 0;
    if desk.record.trial { trial::go_on(desk, daemon_set, census) } else { expansion::go_on(desk, daemon_set, census) }
}
