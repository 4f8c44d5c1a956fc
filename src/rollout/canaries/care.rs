//! DaemonSets outside of their component's turn: kept, held, retried, let go.

use super::places::{Ever, Places, former, id, is_of, kept_up, places};
use super::step::{Circumstances, forget_others, hold, step, step_all};
use super::whose::is_applied_by;
use super::{label, settings};
use crate::api::wellknown::ANNOTATION_FORCE_DELETE;
use crate::api::{Blocker, ComponentState, Reason, RecordedComponent, RevisionPhase, RolloutPhase, RolloutRecord};
use crate::canary::objects::DaemonSet;
use crate::canary::strategy::Pace;
use crate::canary::{self, Calm, Settings, Sight};
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
        match known(work, component, &key) {
            Some(Known::Own(before)) if before.revision.is_some() && !is_calm(work, &before, &key) => {
                step(work, component, &key, &before, &settings, Circumstances { released: false, paused: true });
            }
            Some(Known::Overtaken(before)) => hold(work, component, &key, before, &settings),
            Some(Known::Own(_)) | None => {}
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
                    || (goes_back && release::is_as_written(&rollback::restored_form(component, Some(child)), child))
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
        keys.iter().for_each(|key| keep_labelled(work, child, key, &settings));
        forget_others(work, component, &keys);
    }
    let ever = Ever::of(work.snapshot);
    for component in components {
        let Some(child) = work.child(component) else { continue };
        former(work.snapshot, &ever, component).iter().for_each(|key| let_go(work, child, key));
    }
    let named: Vec<String> = components
        .iter()
        .filter(|component| component.canary.is_some())
        .map(|component| component.name.clone())
        .collect();
    work.status.rollouts.retain(|record| named.contains(&record.component));
}

/// Which policy there is may change while nothing is rolled out.
fn keep_labelled(work: &mut Work<'_>, child: &Live, key: &ObjectKey, settings: &Settings) {
    if let Some(daemon_set) = guarded(work, child, key) {
        label(work, settings, daemon_set);
    }
}

/// The same while the package is in the middle of something, for whatever that does
/// not look at itself: a template that is changed by hand does not wait until it is
/// over. What is to be taken back is held meanwhile, and what was taken back goes on.
/// A rollout that a newer revision has overtaken stands still until its turn.
pub(crate) fn look_after(work: &mut Work<'_>) {
    for component in running(work) {
        if has_its_turn(work, component) {
            continue;
        }
        let (Some(settings), Some(child)) = (settings(component), work.child(component)) else { continue };
        let Places::Known(keys) = places(child, component) else { continue };
        for key in keys.iter().filter(|key| !work.seen_to.contains(*key)).collect::<Vec<_>>() {
            match known(work, component, key) {
                Some(Known::Own(before)) if !is_calm(work, &before, key) => {
                    let paused = is_to_be_taken_back(work, component, &before);
                    step(work, component, key, &before, &settings, Circumstances { released: true, paused });
                }
                Some(Known::Overtaken(before)) => hold(work, component, key, before, &settings),
                Some(Known::Own(_)) | None => {}
            }
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

/// What is on record of a DaemonSet.
enum Known {
    /// In this revision, or how it ended well in an earlier one.
    Own(RolloutRecord),
    /// It had not ended in an earlier revision, and this one has not come to it.
    Overtaken(RolloutRecord),
}

fn known(work: &Work<'_>, component: &RecordedComponent, key: &ObjectKey) -> Option<Known> {
    if let Some(own) = work.status.rollouts.iter().find(|record| is_of(record, component, key)) {
        return Some(Known::Own(own.clone()));
    }
    let earlier = earlier(work, component, key)?.clone();
    match earlier.phase {
        RolloutPhase::Successful => Some(Known::Own(earlier)),
        RolloutPhase::Started
        | RolloutPhase::Canary
        | RolloutPhase::Increasing
        | RolloutPhase::Waiting
        | RolloutPhase::Failed => earlier.revision.is_some().then_some(Known::Overtaken(earlier)),
    }
}

/// The newest record of a DaemonSet in an earlier revision.
fn earlier<'a>(work: &Work<'a>, component: &RecordedComponent, key: &ObjectKey) -> Option<&'a RolloutRecord> {
    let earlier = work.snapshot.revisions.iter().rev().filter(|revision| revision.number() < work.latest.number());
    earlier.flat_map(|revision| &revision.status.rollouts).find(|record| is_of(record, component, key))
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

/// DaemonSets that are behind the canary of their component no more are taken from
/// under the guard once they have their new template, or where `settled` says that
/// none is to come: nobody would lift a freeze later. A message while that is awaited.
pub(crate) fn let_go_of_lost(work: &mut Work<'_>, component: &RecordedComponent, settled: bool) -> Option<String> {
    let child = work.child(component)?;
    let guarded: Vec<(ObjectKey, bool)> = former(work.snapshot, &Ever::of(work.snapshot), component)
        .into_iter()
        .filter_map(|key| {
            let daemon_set = guarded(work, child, &key)?;
            let own = work.status.rollouts.iter().find(|record| is_of(record, component, &key));
            let template = own.or_else(|| earlier(work, component, &key)).and_then(|record| record.template);
            let is_new = template.is_some() && template != daemon_set.template;
            Some((key, settled || is_new))
        })
        .collect();
    for (key, _) in guarded.iter().filter(|(_, is_due)| *is_due) {
        let_go(work, child, key);
    }
    guarded.first().map(|(key, _)| format!("DaemonSet {} is taken from under the canary's guard", id(key)))
}

/// A DaemonSet of a release that is under the guard.
fn guarded<'a>(work: &Work<'a>, child: &Live, key: &ObjectKey) -> Option<&'a DaemonSet> {
    let seen = work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set)?;
    (seen.guarded_as.is_some() && is_applied_by(child, seen)).then_some(seen)
}

/// Windlass goes, and releases stay: their DaemonSets are taken from under the guard,
/// which would hold them as they are for good, and go on one pod at a time. What
/// another package takes over with a canary stays under it. A message while it is
/// being done, or cannot be, unless the deletion is forced.
pub(crate) fn let_all_go(work: &mut Work<'_>, leaves: impl Fn(&Live) -> bool) -> Option<String> {
    let forced = work.snapshot.package.annotations.get(ANNOTATION_FORCE_DELETE).is_some_and(|value| value == "true");
    let mut waiting = None;
    let ever = Ever::of(work.snapshot);
    let left: Vec<_> = kept_up(work.snapshot, &ever).filter(|(child, _)| leaves(child)).collect();
    for (child, component) in left {
        for key in ever.places(child, component) {
            let message = match work.snapshot.daemon_sets.get(&key) {
                None | Some(Sight::Pending) => Some(format!("DaemonSet {} is being read", id(&key))),
                Some(Sight::Denied(_)) if forced => None,
                Some(Sight::Denied(message)) => {
                    block(work, &key);
                    Some(format!("it cannot be taken from under the canary's guard: {message}"))
                }
                Some(Sight::Alone(_) | Sight::Full(_)) => guarded(work, child, &key).is_some().then(|| {
                    let_go(work, child, &key);
                    format!("DaemonSet {} is taken from under the canary's guard", id(&key))
                }),
            };
            waiting = waiting.or(message);
        }
    }
    waiting
}

fn block(work: &mut Work<'_>, key: &ObjectKey) {
    work.blocked_by.push(Blocker {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        reason: Reason::AccessDenied.to_string(),
    });
}

/// What an uninstall leaves in place is taken from under the guard before. A message
/// while it is being done.
pub(crate) fn let_kept_go(work: &mut Work<'_>) -> Option<String> {
    let ever = Ever::of(work.snapshot);
    let all: Vec<_> = kept_up(work.snapshot, &ever).collect();
    let mut waiting = None;
    for (child, component) in all {
        for key in ever.places(child, component) {
            if guarded(work, child, &key).is_some_and(DaemonSet::is_kept) {
                let_go(work, child, &key);
                waiting.get_or_insert_with(|| format!("DaemonSet {} is taken from under the canary's guard", id(&key)));
            }
        }
    }
    waiting
}

/// A DaemonSet without a canary is taken from under the guard, and moves again.
fn let_go(work: &mut Work<'_>, child: &Live, key: &ObjectKey) {
    let Some(daemon_set) = guarded(work, child, key) else { return };
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
