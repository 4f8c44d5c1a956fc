//! PreUpgrade hooks: one-shot releases before anything moves.

use std::time::Duration;

use super::clock::Clock as _;
use super::live::Live;
use super::operation;
use super::release::{self, Look};
use super::removal::{self, Removal};
use super::turn::{self, Gate};
use super::work::Work;
use crate::api::{HookOutcome, HookRecord, Reason, RecordedComponent, RevisionPhase};
use crate::engine::observe::Proof;
use crate::ready::release::{Release, ReleaseState, Trouble};

/// Where the hooks stand after one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HookStanding {
    /// One of them runs.
    Waiting { name: String, message: String },
    /// Somebody holds its engine back.
    Suspended { name: String, message: String },
    /// One of them failed.
    Failed { name: String, message: String },
    /// None is left to run.
    Done,
}

/// Whether the latest revision is an upgrade of version: only then do hooks
/// run, not on a first install, a change of values or a rollback.
pub(crate) fn is_upgrade_of_version(work: &Work<'_>) -> bool {
    work.history.verified().is_some_and(|verified| verified.spec.version != work.latest.spec.version)
}

/// Runs the hooks one after the other, in declaration order.
pub(crate) fn run(work: &mut Work<'_>) -> HookStanding {
    if !is_upgrade_of_version(work) {
        return HookStanding::Done;
    }
    for hook in work.latest.spec.components.iter().filter(|component| component.hook) {
        if succeeded_in_this_move(work, hook) {
            continue;
        }
        match one(work, hook) {
            HookStanding::Done => {}
            other => return other,
        }
    }
    HookStanding::Done
}

/// Waits for the hook that runs, and starts no other.
pub(crate) fn finish(work: &mut Work<'_>) -> HookStanding {
    let running = work.status.hooks.iter().find(|record| record.outcome == HookOutcome::Running).cloned();
    let Some(mut record) = running else { return HookStanding::Done };
    let Some(hook) = work.latest.component(&record.name) else { return HookStanding::Done };
    let standing = watch(work, hook, &mut record);
    put(work, record);
    standing
}

/// A hook that succeeded for this *T*, target version and digest never runs
/// twice, whichever revision ran it.
fn succeeded_in_this_move(work: &Work<'_>, hook: &RecordedComponent) -> bool {
    let own = work.status.hooks.iter().find(|record| record.name == hook.name);
    match own.map(|record| record.outcome) {
        Some(outcome) => outcome == HookOutcome::Succeeded,
        None => {
            let earlier = work.history.hook_outcome(hook, &work.latest.spec.version);
            earlier.is_some_and(|(_, record)| record.outcome == HookOutcome::Succeeded)
        }
    }
}

fn one(work: &mut Work<'_>, hook: &RecordedComponent) -> HookStanding {
    let waiting = |message: String| HookStanding::Waiting { name: hook.name.clone(), message };
    let record = work.status.hooks.iter().find(|record| record.name == hook.name).cloned();
    match record.map(|record| (record.outcome, record)) {
        None | Some((HookOutcome::ToRepeat, _)) => match remove_leftovers(work, hook) {
            Some(message) => waiting(message),
            None => {
                start(work, hook);
                waiting(format!("hook {} was started", hook.name))
            }
        },
        Some((HookOutcome::Failed, _)) => {
            HookStanding::Failed { name: hook.name.clone(), message: failure_message(work, hook) }
        }
        Some((HookOutcome::Running | HookOutcome::Succeeded, mut record)) => {
            let standing = watch(work, hook, &mut record);
            put(work, record);
            standing
        }
    }
}

/// A leftover of an earlier run is removed, and its absence awaited, before
/// the hook runs again.
fn remove_leftovers(work: &mut Work<'_>, hook: &RecordedComponent) -> Option<String> {
    // A component that has become a hook goes when the new set is ready.
    let runs = work.children_of(&hook.name).iter().copied().filter(|child| release::is_hook(child));
    let leftovers: Vec<&Live> = runs.collect();
    match removal::of(work, &leftovers) {
        Removal::Gone => None,
        Removal::Waiting(message) => {
            Some(format!("removing what an earlier run of hook {} left: {message}", hook.name))
        }
    }
}

fn start(work: &mut Work<'_>, hook: &RecordedComponent) {
    let mut record = HookRecord {
        name: hook.name.clone(),
        from: work.latest.spec.from_version.clone(),
        to: work.latest.spec.version.clone(),
        outcome: HookOutcome::Running,
        started_at: None,
        active_seconds: 0,
        counted_at: None,
        finished_at: None,
        uid: None,
    };
    record.start(work.now);
    work.enter(RevisionPhase::Applying);
    put(work, record);
    forget_proof(work, hook);
    apply(work, hook);
    work.event(false, Reason::Progressing, format!("hook {} started", hook.name));
}

fn watch(work: &mut Work<'_>, hook: &RecordedComponent, record: &mut HookRecord) -> HookStanding {
    let now = work.now;
    if let Some(gone) = is_gone(work, hook, record) {
        return ended(work, record, HookOutcome::Failed, gone);
    }
    let Look { mut release, lacks_operation } = look(work, hook);
    if has_failed(&release) {
        return ended(work, record, HookOutcome::Failed, release.message);
    }
    match release.state {
        ReleaseState::Ready => return ended(work, record, HookOutcome::Succeeded, String::new()),
        ReleaseState::Suspended => {
            record.pause(now);
            return HookStanding::Suspended { name: hook.name.clone(), message: release.message };
        }
        ReleaseState::Absent => {
            // Recorded, but not written: the write did not happen.
            apply(work, hook);
            record.run(now);
        }
        ReleaseState::Outdated => {
            release.message = format!("{}; a hook that was started is not written again", release.message);
            record.run(now);
        }
        ReleaseState::Foreign(_)
        | ReleaseState::Deleting
        | ReleaseState::Queued
        | ReleaseState::Progressing
        | ReleaseState::Failed(_) => record.run(now),
    }
    let timeout = work.limits().timeout;
    match timeout.saturating_add(turn::verdict_in(&release)).checked_sub(record.elapsed(now)) {
        Some(left) if left > Duration::ZERO => {
            work.look_again(left);
            if lacks_operation {
                ask(work, hook);
            }
            HookStanding::Waiting { name: hook.name.clone(), message: release.message }
        }
        Some(_) | None => {
            let message = format!("not done within {}: {}", turn::short(timeout), release.message);
            ended(work, record, HookOutcome::Failed, message)
        }
    }
}

fn ended(work: &mut Work<'_>, record: &mut HookRecord, outcome: HookOutcome, message: String) -> HookStanding {
    record.pause(work.now);
    record.outcome = outcome;
    record.finished_at = Some(work.now.as_time());
    let name = record.name.clone();
    match outcome {
        HookOutcome::Succeeded | HookOutcome::Running | HookOutcome::ToRepeat => {
            work.event(false, Reason::Progressing, format!("hook {name} succeeded"));
            HookStanding::Done
        }
        HookOutcome::Failed => HookStanding::Failed { name, message },
    }
}

fn failure_message(work: &mut Work<'_>, hook: &RecordedComponent) -> String {
    let release = look(work, hook).release;
    if has_failed(&release) {
        return release.message;
    }
    "its release is kept for its logs".to_owned()
}

fn apply(work: &mut Work<'_>, hook: &RecordedComponent) {
    let mut record = work.take_record(&hook.name);
    let before = record.clone();
    work.apply(hook, &mut record);
    if record != before {
        work.put_record(record);
    }
}

/// What the engine says of a hook's run. Its proof on Argo CD is kept with the
/// components' records, under the hook's name.
fn look(work: &mut Work<'_>, hook: &RecordedComponent) -> Look {
    let mut record = work.take_record(&hook.name);
    let before = record.clone();
    let look = work.release(hook, &mut record, Gate::Verified);
    if record != before {
        work.put_record(record);
    }
    look
}

fn ask(work: &mut Work<'_>, hook: &RecordedComponent) {
    let mut record = work.take_record(&hook.name);
    operation::ask(work, hook, &mut record);
    work.put_record(record);
}

/// What was seen of an earlier run says nothing of the one that begins.
fn forget_proof(work: &mut Work<'_>, hook: &RecordedComponent) {
    if let Some(mut record) = work.record(&hook.name).cloned() {
        Proof::default().record(&mut record);
        work.put_record(record);
    }
}

/// Whether the object that ran a hook is not there any more: to make it again
/// would be a second run. Remembers it once it is seen.
fn is_gone(work: &Work<'_>, hook: &RecordedComponent, record: &mut HookRecord) -> Option<String> {
    let child = work.child(hook);
    match (record.uid.as_deref(), child) {
        (Some(uid), Some(child)) if child.uid() == uid => None,
        (Some(_), child) => {
            let key = child.map(|child| child.key().clone()).or_else(|| release::object_key(hook))?;
            Some(format!("{}/{} was deleted while it ran", key.kind, key.name))
        }
        (None, Some(child)) => {
            record.uid = Some(child.uid().to_owned());
            None
        }
        (None, None) => None,
    }
}

/// A hook is not tried again by its engine: the first failure is its end.
fn has_failed(release: &Release) -> bool {
    matches!(release.state, ReleaseState::Failed(_)) || release.trouble == Some(Trouble::Degraded)
}

fn put(work: &mut Work<'_>, record: HookRecord) {
    match work.status.hooks.iter_mut().find(|existing| existing.name == record.name) {
        Some(existing) => *existing = record,
        None => work.status.hooks.push(record),
    }
}

/// A retry runs again what failed. That it was started stays on record: it may
/// have migrated something.
pub(crate) fn repeat_failures(work: &mut Work<'_>) {
    let failed = work.status.hooks.iter_mut().filter(|record| record.outcome == HookOutcome::Failed);
    failed.for_each(|record| record.outcome = HookOutcome::ToRepeat);
}

/// Whether a hook of the latest revision runs: then even a changed spec waits
/// for it, bounded by its timeout.
pub(crate) fn is_running(work: &Work<'_>) -> bool {
    work.status.hooks.iter().any(|record| record.outcome == HookOutcome::Running)
}
