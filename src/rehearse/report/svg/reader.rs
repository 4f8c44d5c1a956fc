//! From what happened to rows of bars.

use std::collections::BTreeSet;

use super::lanes::{Bar, Kind, Label, Lane, Mark, Picture, Rollout, Sign, Start, Step, Track, Verdict};
use crate::api::{ComponentState, ComponentStatus, Reason};
use crate::rehearse::process::PackageId;
use crate::rehearse::report::text::{clock, line, name, shared_names, short};
use crate::rehearse::report::{PackageAtEnd, Report};
use crate::rehearse::timeline::{Moment, What};

/// Reads a report.
pub(super) fn read(report: &Report) -> Picture {
    let shared = shared_names(report);
    let mut tracks: Vec<Track> = Vec::new();
    let at_the_end = report.packages.iter().map(|package| PackageId::new(&package.namespace, &package.name));
    let told = report.moments.iter().filter_map(|moment| moment.package.clone());
    for id in at_the_end.chain(told) {
        if !tracks.iter().any(|track| track.id == id) {
            tracks.push(track(name(&shared, &id), id));
        }
    }
    let mut restarts = Vec::new();
    for moment in &report.moments {
        match &moment.package {
            None => restarts.push(moment.at),
            Some(id) => {
                if let Some(track) = tracks.iter_mut().find(|track| track.id == *id) {
                    take(track, moment);
                }
            }
        }
    }
    let times: BTreeSet<u64> = report.moments.iter().map(|moment| moment.at).chain([0, report.took]).collect();
    let times: Vec<u64> = times.into_iter().collect();
    let end = times.last().copied().unwrap_or_default();
    for track in &mut tracks {
        let package = report.packages.iter().find(|p| p.namespace == track.id.namespace && p.name == track.id.name);
        finish(track, package, end);
    }
    // Without a beginning they come last; else as they begin.
    tracks.sort_by_key(|track| (track.began.is_none(), track.began, track.is_idle()));
    Picture { tracks, restarts, times }
}

fn track(name: String, id: PackageId) -> Track {
    let (change, own, lanes) = (String::new(), Lane::default(), Vec::new());
    Track { id, name, change, began: None, last: 0, own, lanes, verdict: Verdict::Gone }
}

/// What a reader who points at something is told: the line of the timeline.
fn told(moment: &Moment) -> String {
    let line = line(&moment.what);
    let detail = if line.detail.is_empty() { String::new() } else { format!(": {}", line.detail) };
    format!("{} {}{detail}", clock(moment.at), line.verb)
}

fn take(track: &mut Track, moment: &Moment) {
    track.last = moment.at;
    match &moment.component {
        Some(component) => {
            let lane = lane(track, component);
            of_component(lane, moment);
        }
        None => of_package(track, moment),
    }
}

fn lane<'t>(track: &'t mut Track, name: &str) -> &'t mut Lane {
    let at = track.lanes.iter().position(|lane| lane.name == name).unwrap_or(track.lanes.len());
    if at == track.lanes.len() {
        track.lanes.push(Lane { name: name.to_owned(), ..Lane::default() });
    }
    &mut track.lanes[at]
}

fn of_package(track: &mut Track, moment: &Moment) {
    let told = told(moment);
    match &moment.what {
        What::Committed { from, to } => {
            track.change = match from {
                Some(from) if from != to => format!("{from} → {to}"),
                Some(_) | None => to.clone(),
            };
        }
        What::Withdrawn => track.own.open(Kind::Removal, moment.at, told),
        What::Waits { message, .. } => {
            track.own.open(Kind::Wait, moment.at, told);
            track.own.says(message);
        }
        What::Begins { .. } => {
            track.began = track.began.or(Some(moment.at));
            track.own.open(Kind::Run, moment.at, told);
        }
        What::GoesOn => track.own.mark(Sign::Other, moment, told),
        What::Gone => track.own.close(moment, Sign::Good),
        What::Told { warning, reason, .. } => {
            if fails(*reason) {
                track.lanes.iter_mut().for_each(|lane| lane.fail(moment));
            }
            let sign = if *warning { Sign::Bad } else { Sign::Good };
            track.own.mark(sign, moment, told);
        }
        // Charts are fetched within the turn; the rest is of components.
        _ => {}
    }
}

/// Whether this ends what a component is doing.
fn fails(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::RollingBack
            | Reason::UpgradeFailed
            | Reason::InstallFailed
            | Reason::HookFailed
            | Reason::RollbackFailed
    )
}

fn of_component(lane: &mut Lane, moment: &Moment) {
    let (at, told) = (moment.at, told(moment));
    match &moment.what {
        What::HookRuns => lane.open(Kind::Hook, at, told),
        What::HookSucceeded { took } => lane.end(moment, Sign::Good, &["hook".to_owned()], *took),
        What::HookFailed { took } => lane.end(moment, Sign::Bad, &["hook failed".to_owned()], *took),
        What::Moves { after, .. } => {
            lane.start(at, after);
            lane.open(Kind::Move, at, told);
            lane.doing = doing(&moment.what);
        }
        What::VerifiedAgain { after } => {
            lane.start(at, after);
            lane.open(Kind::Gate, at, told);
            lane.doing = vec!["does not move".to_owned()];
        }
        What::AttemptFailed { .. } => lane.mark(Sign::Attempt, moment, told),
        What::ReleaseReady { .. } => lane.awaits(at, told),
        What::RollsOut { .. } => lane.rolls_out(moment, told),
        What::Verified { took } => {
            let doing = lane.doing.clone();
            lane.end(moment, Sign::Good, &doing, *took);
        }
        What::GoesBack { .. } => {
            lane.open(Kind::Rollback, at, told);
            lane.doing = doing(&moment.what);
        }
        What::IsBack { took } => {
            let doing = lane.doing.clone();
            lane.end(moment, Sign::Good, &doing, *took);
        }
        What::Uninstalls => lane.open(Kind::Removal, at, told),
        What::Uninstalled { took } => lane.end(moment, Sign::Good, &["removed".to_owned()], *took),
        What::HandsOver => {
            lane.mark(Sign::Other, moment, told);
            lane.labels.push(Label { from: at, to: at, texts: vec!["handed over".to_owned()] });
        }
        // The rest is of Packages.
        _ => {}
    }
}

/// What a component does, in more and in fewer words.
fn doing(what: &What) -> Vec<String> {
    match what {
        What::Moves { from: None, to, .. } => vec![format!("installs {to}"), to.clone()],
        What::Moves { from: Some(from), to, .. } if from == to => vec![format!("values of {to}"), "values".into()],
        What::Moves { from: Some(from), to, .. } => vec![format!("{from} → {to}"), to.clone()],
        What::GoesBack { to, .. } => vec![format!("back to {to}"), "back".into()],
        _ => Vec::new(),
    }
}

impl Lane {
    /// Begins a bar, and ends the one before.
    fn open(&mut self, kind: Kind, at: u64, told: String) {
        self.shut(at);
        self.bars.push(Bar { kind, from: at, to: OPEN, told, says: String::new() });
        self.since = at;
    }

    fn says(&mut self, text: &str) {
        if let Some(open) = self.bars.last_mut() {
            text.clone_into(&mut open.says);
        }
    }

    fn shut(&mut self, at: u64) {
        if let Some(open) = self.bars.last_mut().filter(|bar| bar.to == OPEN) {
            open.to = at;
        }
        // A failure that leads on at once leaves nothing standing.
        self.bars.retain(|bar| bar.kind != Kind::Stands || bar.from < bar.to);
    }

    fn start(&mut self, at: u64, after: &[String]) {
        self.starts.push(Start { at, after: after.to_vec() });
    }

    fn mark(&mut self, sign: Sign, moment: &Moment, told: String) {
        self.marks.push(Mark { sign, at: moment.at, told });
    }

    fn close(&mut self, moment: &Moment, sign: Sign) {
        self.shut(moment.at);
        self.mark(sign, moment, told(moment));
    }

    /// Ends what is done, with words in a long and in short forms.
    fn end(&mut self, moment: &Moment, sign: Sign, words: &[String], took: u64) {
        self.close(moment, sign);
        let took = short(took);
        let texts = words.iter().map(|words| format!("{words}, {took}")).chain([took.clone()]).collect();
        self.labels.push(Label { from: self.since, to: moment.at, texts });
    }

    /// The release is ready; what else is asked for is awaited.
    fn awaits(&mut self, at: u64, told: String) {
        match self.bars.last_mut() {
            Some(open) if open.to == OPEN && open.kind == Kind::Move && open.from < at => {
                self.shut(at);
                let says = String::new();
                self.bars.push(Bar { kind: Kind::Gate, from: at, to: OPEN, told, says });
            }
            Some(open) if open.to == OPEN => open.told = format!("{}\n{told}", open.told),
            _ => {}
        }
    }

    /// Its Package has failed: so has what it was doing.
    fn fail(&mut self, moment: &Moment) {
        let Some(open) = self.bars.last().filter(|bar| bar.to == OPEN) else { return };
        if matches!(open.kind, Kind::Stands | Kind::Removal) {
            return;
        }
        self.close(moment, Sign::Bad);
        let texts = self.doing.iter().map(|words| format!("{words} failed")).chain(["failed".into()]).collect();
        self.labels.push(Label { from: self.since, to: moment.at, texts });
        self.open(Kind::Stands, moment.at, told(moment));
    }

    fn rolls_out(&mut self, moment: &Moment, told: String) {
        let What::RollsOut { daemon_set, phase, budget, updated, desired, .. } = &moment.what else { return };
        let back = self.bars.last().is_some_and(|bar| bar.kind == Kind::Rollback);
        let nodes = |count: i64| u64::try_from(count).unwrap_or_default();
        let (updated, desired) = (nodes(*updated), nodes(*desired));
        let step = Step { at: moment.at, phase: *phase, budget: budget.clone(), updated, desired, back, told };
        match self.rollouts.iter_mut().find(|rollout| rollout.daemon_set == *daemon_set) {
            Some(rollout) => rollout.steps.push(step),
            None => self.rollouts.push(Rollout { daemon_set: daemon_set.clone(), steps: vec![step], ends: OPEN }),
        }
    }

    fn finish(&mut self, end: u64) {
        self.shut(end);
        let ends = self.bars.iter().filter(|bar| bar.kind != Kind::Stands).map(|bar| bar.to).max().unwrap_or(end);
        self.rollouts.iter_mut().for_each(|rollout| rollout.ends = ends);
    }
}

/// A bar that has not ended.
const OPEN: u64 = u64::MAX;

fn finish(track: &mut Track, package: Option<&PackageAtEnd>, end: u64) {
    if track.own.bars.last().is_some_and(|bar| bar.kind == Kind::Run) {
        track.own.shut(track.last);
    }
    track.all_lanes_mut().for_each(|lane| lane.finish(end));
    let Some(package) = package else { return };
    let told = track.own.marks.last().is_some_and(|mark| mark.sign == Sign::Bad);
    let stalled = package.status.conditions.iter().any(|c| c.type_ == "Stalled" && c.status == "True");
    track.verdict = match package.is_ready() {
        true => Verdict::Ready,
        false if told || stalled => Verdict::Failed(package.reason().to_owned()),
        false => Verdict::Waits(package.reason().to_owned()),
    };
    if track.change.is_empty() {
        track.change.clone_from(&package.wanted);
    }
    for component in &package.status.components {
        let lane = lane(track, &component.name);
        if lane.is_idle() {
            lane.rest = rest(component);
        }
    }
}

/// What is said of a component to which nothing happened.
fn rest(component: &ComponentStatus) -> String {
    let version = component.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    match component.state {
        ComponentState::Verified => {
            if version.is_empty() {
                "stays as it is".to_owned()
            } else {
                format!("stays at{version}")
            }
        }
        ComponentState::Suspended => "is suspended".to_owned(),
        _ => "its turn did not come".to_owned(),
    }
}
