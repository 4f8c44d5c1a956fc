//! DaemonSets outside of their component's turn: kept, held, retried, let go.

use super::places::{Places, has_been_guarded, has_lost_it, id, is_of, places, watched};
use super::step::{Circumstances, forget_others, step, step_all};
use super::{record, settings};
use crate::api::{ComponentState, RecordedComponent, RevisionPhase, RolloutPhase, RolloutRecord};
use crate::canary::strategy::Pace;
use crate::canary::{self, Calm, Sight};
use crate::engine::ObjectKey;
use crate::rollout::decision::Action;
use crate::rollout::live::Live;
use crate::rollout::work::Work;
use crate::rollout::{release, rollback};

/// Nothing moves for now: no further pod of an open rollout dies, whoever has begun
/// it.
pub(crate) fn pause(work: &mut Work<'_>) {
    let latest = work.latest;
    latest.spec.components.iter().for_each(|component| pause_component(work, component));
    running(work).into_iter().for_each(|component| pause_component(work, component));
}

/// The same for one component.
pub(crate) fn pause_component(work: &mut Work<'_>, component: &RecordedComponent) {
    let (Some(settings), Some(child)) = (settings(component), work.child(component)) else { return };
    let Places::Known(keys) = places(child, component) else { return };
    for key in keys.into_iter().filter(|key| !work.seen_to.contains(key)).collect::<Vec<_>>() {
        let before = known(work, component, &key);
        if let Some(before) = before.filter(|record| record.revision.is_some() && !is_calm(work, record, &key)) {
            step(work, component, &key, &before, &settings, Circumstances { released: false, paused: true });
        }
    }
}

/// Whether there is nothing to look at: its rollout has ended, and it is as it was
/// then.
fn is_calm(work: &Work<'_>, record: &RolloutRecord, key: &ObjectKey) -> bool {
    let daemon_set = work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set);
    Calm::after(record).is_some_and(|calm| daemon_set.is_none_or(|daemon_set| calm.holds(daemon_set)))
}

/// Components with a canary as they run: of the newest revision that their release
/// was written for.
fn running<'a>(work: &Work<'a>) -> Vec<&'a RecordedComponent> {
    let goes_back = work.status.rollback.is_some();
    let runs = |child| {
        let revisions = work.snapshot.revisions.iter().rev();
        let of_its_name = |revision: &'a crate::rollout::RevisionView| {
            let components = revision.spec.components.iter().filter(|component| !component.hook);
            components.into_iter().find(|component| {
                release::is_as_written(component, child)
                    || (goes_back && release::is_as_written(&rollback::restored_form(component), child))
            })
        };
        revisions.flat_map(of_its_name).next()
    };
    if work.snapshot.daemon_sets.is_empty() {
        return Vec::new();
    }
    work.inventory().filter_map(runs).filter(|component| component.canary.is_some()).collect()
}

/// Outside of a move nothing gates, but a template that somebody changes by hand
/// is rolled out like any other, and a budget is kept at 1.
pub(crate) fn keep(work: &mut Work<'_>, components: &[RecordedComponent]) {
    for component in components {
        let (Some(settings), Some(child)) = (settings(component), work.child(component)) else { continue };
        if !work.runs_wanted(component) {
            continue;
        }
        let Places::Known(keys) = places(child, component) else { continue };
        step_all(work, component, &keys, &settings, Circumstances { released: true, paused: false });
        forget_others(work, component, &keys);
    }
    for component in components.iter().filter(|component| has_lost_it(work.snapshot, component)) {
        let keys = watched(work.snapshot, component);
        keys.iter().for_each(|key| let_go(work, key));
    }
    let named: Vec<String> = components
        .iter()
        .filter(|component| component.canary.is_some())
        .map(|component| component.name.clone())
        .collect();
    work.status.rollouts.retain(|record| named.contains(&record.component));
}

/// The same while the package is in the middle of something, for whatever that does
/// not look at itself: a template that is changed by hand does not wait until it is
/// over. What is to be taken back is held meanwhile, and what was taken back goes on.
pub(crate) fn look_after(work: &mut Work<'_>) {
    for component in running(work) {
        if has_its_turn(work, component) {
            continue;
        }
        let (Some(settings), Some(child)) = (settings(component), work.child(component)) else { continue };
        let Places::Known(keys) = places(child, component) else { continue };
        for key in keys.iter().filter(|key| !work.seen_to.contains(*key)).collect::<Vec<_>>() {
            let before = known(work, component, key);
            if before.as_ref().is_none_or(|before| is_calm(work, before, key)) {
                continue;
            }
            let before = before.unwrap_or_default();
            let paused = is_to_be_taken_back(work, component, &before);
            step(work, component, key, &before, &settings, Circumstances { released: true, paused });
        }
    }
}

/// Whether the turn of a component, or its step of a rollback, is open: that looks
/// after its DaemonSets.
fn has_its_turn(work: &Work<'_>, component: &RecordedComponent) -> bool {
    let Some(record) = work.record(&component.name) else { return false };
    match work.status.phase {
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::Failed
        | RevisionPhase::Superseded => record.queued_at.is_some() && record.verified_at.is_none(),
        RevisionPhase::RollingBack => matches!(record.state, ComponentState::Restoring | ComponentState::Removing),
        RevisionPhase::Succeeded | RevisionPhase::RolledBack | RevisionPhase::RollbackFailed => false,
    }
}

/// What is on record of a DaemonSet: of this revision, or how it ended in an earlier
/// one.
fn known(work: &Work<'_>, component: &RecordedComponent, key: &ObjectKey) -> Option<RolloutRecord> {
    let own = work.status.rollouts.iter().find(|record| is_of(record, component, key));
    let earlier = work.snapshot.revisions.iter().rev().filter(|revision| revision.number() < work.latest.number());
    let mut earlier = earlier.flat_map(|revision| &revision.status.rollouts);
    let ended = |record: &RolloutRecord| record.phase == RolloutPhase::Successful;
    own.or_else(|| earlier.find(|record| is_of(record, component, key)).filter(|record| ended(record))).cloned()
}

/// Whether an open rollout is that of a version that a rollback is about to replace.
fn is_to_be_taken_back(work: &Work<'_>, component: &RecordedComponent, record: &RolloutRecord) -> bool {
    let goes_back = matches!(work.status.phase, RevisionPhase::RollingBack | RevisionPhase::RollbackFailed);
    let target = work.status.rollback.as_ref().map(|rollback| rollback.to).filter(|_| goes_back);
    let target = target.and_then(|number| work.history.get(number));
    let restored = target.and_then(|target| target.component(&component.name));
    goes_back
        && record.phase != RolloutPhase::Successful
        && restored.is_none_or(|restored| restored.digest != component.digest)
}

/// A rollout that has failed, in one line.
pub(crate) fn failure(work: &Work<'_>) -> Option<String> {
    let failed = work.status.rollouts.iter().find(|record| record.phase == RolloutPhase::Failed)?;
    let message = failed.message.as_deref().unwrap_or("its rollout failed");
    Some(format!("DaemonSet {}: {message}", failed.daemon_set))
}

/// A component that has no canary any more is taken from under the guard once its
/// DaemonSets have their new template, or where `settled` says that none is to
/// come: nobody would lift a freeze later. A message while that is awaited.
pub(crate) fn let_go_of_lost(work: &mut Work<'_>, component: &RecordedComponent, settled: bool) -> Option<String> {
    if !has_lost_it(work.snapshot, component) {
        return None;
    }
    let seen = |key: &ObjectKey| work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set);
    let guarded: Vec<(ObjectKey, bool)> = watched(work.snapshot, component)
        .into_iter()
        .filter_map(|key| {
            let daemon_set = seen(&key).filter(|daemon_set| daemon_set.guarded_as.is_some())?;
            let is_new = record(work, component, &key).template != daemon_set.template;
            Some((key, settled || is_new))
        })
        .collect();
    for (key, _) in guarded.iter().filter(|(_, is_due)| *is_due) {
        let_go(work, key);
    }
    guarded.first().map(|(key, _)| format!("DaemonSet {} is taken from under the canary's guard", id(key)))
}

/// Windlass goes, and releases stay: their DaemonSets are taken from under the guard,
/// which would hold them as they are for good, and go on one pod at a time. What
/// another package takes over with a canary stays under it. A message while it is
/// being done; what may not be read is left.
pub(crate) fn let_all_go(work: &mut Work<'_>, leaves: impl Fn(&Live) -> bool) -> Option<String> {
    let latest = work.latest;
    let mut waiting = None;
    for component in &latest.spec.components {
        if !has_been_guarded(work.snapshot, component) || !work.child(component).is_some_and(&leaves) {
            continue;
        }
        for key in watched(work.snapshot, component) {
            match work.snapshot.daemon_sets.get(&key) {
                None | Some(Sight::Pending) => {
                    waiting.get_or_insert_with(|| format!("DaemonSet {} is being read", id(&key)));
                }
                Some(Sight::Denied(_)) => {}
                Some(sight) => {
                    if sight.daemon_set().is_some_and(|daemon_set| daemon_set.guarded_as.is_some()) {
                        let_go(work, &key);
                        let message = format!("DaemonSet {} is taken from under the canary's guard", id(&key));
                        waiting.get_or_insert(message);
                    }
                }
            }
        }
    }
    waiting
}

/// A DaemonSet without a canary is taken from under the guard, and moves again.
fn let_go(work: &mut Work<'_>, key: &ObjectKey) {
    let seen = work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set);
    let Some(daemon_set) = seen.filter(|daemon_set| daemon_set.guarded_as.is_some()) else { return };
    let (pace, desired) = (daemon_set.strategy.pace, daemon_set.counts.desired);
    if pace == Pace::Frozen || pace.of(desired) > canary::idle().of(desired) {
        let action = canary::Action::steer(daemon_set, canary::idle(), daemon_set.strategy.drive);
        work.actions.push(Action::Rollout(action));
    }
    work.actions.push(Action::Rollout(canary::Action::label(daemon_set, None)));
}

/// Another attempt was asked for.
pub(crate) fn retry(work: &mut Work<'_>) {
    for record in &mut work.status.rollouts {
        if record.phase != RolloutPhase::Successful {
            *record = canary::again(record);
        }
    }
}
