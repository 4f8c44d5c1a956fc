//! DaemonSets behind a canary in a walk: which ones a component has, what is
//! remembered before it is written, and where they stand. What is to be done for
//! one of them is [`canary::decide`]'s to say.

mod places;
mod told;

use std::sync::Arc;
use std::time::Duration;

use super::decision::Action;
use super::evidence::Remembered;
use super::needs::is_moving;
use super::turn::{Limits, Standing, short};
use super::work::Work;
use crate::api::{Canary, Engine, RecordedComponent, RolloutGuard, RolloutPhase, RolloutReason, RolloutRecord};
use crate::canary::guard::{Policies, Unguarded};
use crate::canary::objects::DaemonSet;
use crate::canary::strategy::Pace;
use crate::canary::{self, Moment, Observation, Settings, Sight, estimate};
use crate::engine::{Manifest, ObjectKey, keeps_the_first_step_small};
use crate::ready::release::ReleaseState;
use crate::rollout::live::Live;

pub(crate) use places::needed;
use places::{Places, has_lost_it, id, is_of, places, unnamed, watched};
use told::tell;

/// Where the guard's policies are.
const MANIFESTS: &str = "manifests/canary";

fn settings(component: &RecordedComponent) -> Option<Settings> {
    component.canary.as_ref().map(Settings::from)
}

/// The record of a DaemonSet. One that had not ended in an earlier revision is
/// tried again, where it failed first.
fn record(work: &Work<'_>, component: &RecordedComponent, key: &ObjectKey) -> RolloutRecord {
    if let Some(record) = work.status.rollouts.iter().find(|record| is_of(record, component, key)) {
        return record.clone();
    }
    let earlier = work.snapshot.revisions.iter().rev().filter(|revision| revision.number() < work.latest.number());
    let mut earlier = earlier.flat_map(|revision| &revision.status.rollouts);
    match earlier.find(|record| is_of(record, component, key)) {
        Some(earlier) => again(earlier),
        None => RolloutRecord { daemon_set: id(key), component: component.name.clone(), ..RolloutRecord::default() },
    }
}

/// Another attempt. A node that proved well is none to begin with.
fn again(record: &RolloutRecord) -> RolloutRecord {
    let node = record.node.clone().filter(|_| record.phase != RolloutPhase::Successful);
    RolloutRecord { node, ..canary::again(record) }
}

/// Records what stands there before a component is written, and sees to it that
/// the first step will be small. Nothing is written before both are known.
pub(crate) fn remember(work: &mut Work<'_>, component: &RecordedComponent) -> Remembered {
    let (Some(settings), Some(child)) = (settings(component), work.child(component)) else { return Remembered::Yes };
    let keys = match places(child, component) {
        Places::Known(keys) => keys,
        Places::Unknown(message) => return Remembered::NotRead(message),
    };
    let mut records = Vec::with_capacity(keys.len());
    for key in &keys {
        let seen = match look(work, key) {
            Ok(seen) => seen,
            Err(not_yet) => return not_yet,
        };
        if let Some(daemon_set) = &seen.daemon_set {
            match prepare(work, component, &settings, daemon_set) {
                Remembered::Yes => {}
                not_yet => return not_yet,
            }
        }
        let before = again(&record(work, component, key));
        match canary::remember(&seen, &settings, before) {
            Some(record) => records.push(record),
            None => {
                let message = format!("{key}: the DaemonSet controller has not acted on its spec yet");
                return Remembered::NotRead(message);
            }
        }
    }
    records.into_iter().for_each(|record| put(work, record));
    Remembered::Yes
}

/// Puts the guard in place before a new template arrives.
fn prepare(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    settings: &Settings,
    daemon_set: &DaemonSet,
) -> Remembered {
    if label(work, settings, daemon_set) {
        return Remembered::NotRead(format!("DaemonSet {} is being put under the canary's guard", daemon_set.id()));
    }
    let release = component.manifests.last().cloned().map(Manifest::from_record);
    let release = release.map(|release| work.guarded(component, work.with_settings(component, release)));
    let pinned = release.is_some_and(|release| keeps_the_first_step_small(release.as_map()));
    match policies(work, daemon_set).guard(daemon_set, pinned) {
        Err(unguarded) => Remembered::Unguarded(explain(work, daemon_set, &unguarded)),
        Ok(RolloutGuard::Rendered) if work.latest.spec.engine == Engine::Argo && lower(work, daemon_set) => {
            Remembered::NotRead(format!("DaemonSet {}: its budget is brought to 1 first", daemon_set.id()))
        }
        Ok(_) => Remembered::Yes,
    }
}

/// Argo CD keeps the live budget: it must be 1.
fn lower(work: &mut Work<'_>, daemon_set: &DaemonSet) -> bool {
    let (live, desired) = (&daemon_set.strategy, daemon_set.counts.desired);
    let above = live.pace.of(desired) > canary::idle().of(desired);
    if above {
        let action = canary::Action::steer(daemon_set, canary::idle(), live.drive);
        work.actions.push(Action::Rollout(action));
    }
    above
}

/// Puts the label on a DaemonSet; true if that takes a write.
fn label(work: &mut Work<'_>, settings: &Settings, daemon_set: &DaemonSet) -> bool {
    let wanted = policies(work, daemon_set).label(settings.mode);
    if daemon_set.controller.is_some() || daemon_set.guarded_as.as_deref() == Some(wanted) {
        return false;
    }
    let action = Action::Rollout(canary::Action::label(daemon_set, Some(wanted)));
    if !work.actions.contains(&action) {
        work.actions.push(action);
    }
    true
}

fn policies(work: &Work<'_>, daemon_set: &DaemonSet) -> Policies {
    work.snapshot.policies.get(&daemon_set.namespace).cloned().unwrap_or_default()
}

/// What keeps the first step small as the release is written now.
fn guard(work: &Work<'_>, child: &Live, daemon_set: &DaemonSet) -> Result<RolloutGuard, Unguarded> {
    policies(work, daemon_set).guard(daemon_set, keeps_the_first_step_small(&child.object))
}

/// Whether a policy of the guard acts wherever a component has DaemonSets.
pub(crate) fn is_guarded(work: &Work<'_>, component: &RecordedComponent, canary: &Canary) -> bool {
    let mode = Settings::from(canary).mode;
    let keys = match work.child(component).map(|child| places(child, component)) {
        Some(Places::Known(keys)) => keys,
        Some(Places::Unknown(_)) | None => Vec::new(),
    };
    let namespaces = keys.iter().map(|key| &key.namespace).chain([&component.release.namespace]);
    let acts = |namespace: &String| work.snapshot.policies.get(namespace).is_some_and(|policies| policies.acts(mode));
    namespaces.into_iter().all(acts)
}

fn explain(work: &Work<'_>, daemon_set: &DaemonSet, unguarded: &Unguarded) -> String {
    let name = daemon_set.id();
    match unguarded {
        Unguarded::Mismatch => {
            let identity = work.snapshot.cluster.identity.as_deref().unwrap_or("this process");
            format!(
                "DaemonSet {name}: the guard's policy does not let the writes of {identity} through: install {MANIFESTS} with that account"
            )
        }
        Unguarded::NoPolicy => format!(
            "DaemonSet {name}: nothing would keep the first step small, since the spec no longer asks for its canary: install {MANIFESTS}, or give component back its canary"
        ),
    }
}

/// What was seen of a DaemonSet, or why nothing can be done yet.
fn look(work: &Work<'_>, key: &ObjectKey) -> Result<Arc<Observation>, Remembered> {
    match work.snapshot.daemon_sets.get(key) {
        Some(Sight::Full(seen)) => Ok(seen.clone()),
        Some(Sight::Alone(None)) => Ok(Arc::default()),
        Some(Sight::Denied(message)) => Err(Remembered::Denied(message.clone())),
        Some(Sight::Alone(Some(_)) | Sight::Pending) | None => Err(Remembered::NotRead(format!("{key} is being read"))),
    }
}

/// Time that the rollouts of a component may take beyond its timeout.
pub(crate) fn allowance(work: &Work<'_>, component: &RecordedComponent) -> Duration {
    let Some(settings) = settings(component) else { return Duration::ZERO };
    let child = work.child(component);
    let keys = match child.map(|child| places(child, component)) {
        Some(Places::Known(keys)) => keys,
        Some(Places::Unknown(_)) | None => return Duration::ZERO,
    };
    let desired = |key: &ObjectKey| {
        let seen = work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set);
        seen.map_or(0, |daemon_set| daemon_set.counts.desired).max(record(work, component, key).desired)
    };
    keys.iter().map(|key| estimate::allowance(&settings, desired(key))).max().unwrap_or_default()
}

/// Where the rollouts of a component stand; `None`: they are done, or there are
/// none. Asked once the wanted spec is written.
pub(crate) fn judge(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    state: &ReleaseState,
    limits: Limits,
) -> Option<Standing> {
    let settings = settings(component)?;
    let released = match state {
        ReleaseState::Ready => true,
        ReleaseState::Queued | ReleaseState::Progressing | ReleaseState::Failed(_) => false,
        ReleaseState::Absent
        | ReleaseState::Foreign(_)
        | ReleaseState::Deleting
        | ReleaseState::Outdated
        | ReleaseState::Suspended => return None,
    };
    let keys = match places(work.child(component)?, component) {
        Places::Known(keys) => keys,
        Places::Unknown(message) => return released.then_some(Standing::Waiting(message)),
    };
    if let Some(missing) = unnamed(component, &keys).filter(|_| released) {
        return Some(Standing::Waiting(missing));
    }
    let moment = Circumstances { released, paused: false };
    let standings: Vec<Standing> =
        keys.iter().filter_map(|key| step(work, component, key, &settings, moment)).collect();
    let allowance = allowance(work, component);
    let worst = standings.into_iter().max_by_key(weight)?;
    Some(match worst {
        Standing::Waiting(message) if released => Standing::Waiting(format!(
            "{message}; its turn has {}, {} of them for this",
            short(limits.timeout),
            short(allowance)
        )),
        other => other,
    })
}

fn weight(standing: &Standing) -> u8 {
    match standing {
        Standing::Verified => 0,
        Standing::Waiting(_) | Standing::Suspended(_) | Standing::NoSource(_) => 1,
        Standing::Denied(_) => 2,
        Standing::Unguarded(_) => 3,
        Standing::Failed(_) => 4,
    }
}

#[derive(Clone, Copy)]
struct Circumstances {
    released: bool,
    paused: bool,
}

/// One look at one DaemonSet; `None`: it is done.
fn step(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    key: &ObjectKey,
    settings: &Settings,
    circumstances: Circumstances,
) -> Option<Standing> {
    let seen = match look(work, key) {
        Ok(seen) => seen,
        Err(not_yet) => return Some(not_yet.into()),
    };
    let before = record(work, component, key);
    let guard = match &seen.daemon_set {
        None => before.guard.unwrap_or(RolloutGuard::Rendered),
        Some(daemon_set) => {
            label(work, settings, daemon_set);
            let child = work.child(component);
            match child.map_or(Err(Unguarded::NoPolicy), |child| guard(work, child, daemon_set)) {
                Ok(guard) => guard,
                Err(unguarded @ Unguarded::Mismatch) => {
                    let message = explain(work, daemon_set, &unguarded);
                    mismatch(work, before, &message);
                    return Some(Standing::Unguarded(message));
                }
                Err(Unguarded::NoPolicy) => RolloutGuard::Unguarded,
            }
        }
    };
    let moment = Moment {
        time: work.now.time,
        watching_for: work.now.watching_for,
        guard,
        released: circumstances.released,
        paused: circumstances.paused,
        // A first install is tried again until it succeeds.
        forgiving: work.latest.spec.base.is_none(),
    };
    let decision = canary::decide(&seen, &before, settings, moment);
    tell(work, key, &before, &decision.record);
    put(work, decision.record);
    work.actions.extend(decision.action.map(Action::Rollout));
    if let Some(after) = decision.look_again {
        work.look_again(after);
    }
    match decision.standing {
        canary::Standing::Done => None,
        canary::Standing::Waiting(message) => Some(Standing::Waiting(message)),
        canary::Standing::Failed(message) => Some(Standing::Failed(message)),
    }
}

fn mismatch(work: &mut Work<'_>, before: RolloutRecord, message: &str) {
    let reason = Some(RolloutReason::GuardMismatch);
    put(work, RolloutRecord { reason, message: Some(message.to_owned()), ..before });
}

fn put(work: &mut Work<'_>, record: RolloutRecord) {
    let rollouts = &mut work.status.rollouts;
    let same = |known: &RolloutRecord| (&known.component, &known.daemon_set) == (&record.component, &record.daemon_set);
    match rollouts.iter().position(same).and_then(|at| rollouts.get_mut(at)) {
        Some(known) => *known = record,
        None => rollouts.push(record),
    }
}

/// Nothing moves for now: no further pod of an open rollout dies.
pub(crate) fn pause(work: &mut Work<'_>) {
    if !is_moving(work.latest) {
        return;
    }
    let latest = work.latest;
    latest.spec.components.iter().for_each(|component| pause_component(work, component));
}

/// The same for one component.
pub(crate) fn pause_component(work: &mut Work<'_>, component: &RecordedComponent) {
    let (Some(settings), Some(child)) = (settings(component), work.child(component)) else { return };
    let Places::Known(keys) = places(child, component) else { return };
    for key in keys {
        let known = work.status.rollouts.iter().find(|record| is_of(record, component, &key));
        if known.is_some_and(|record| record.phase != RolloutPhase::Successful && record.revision.is_some()) {
            step(work, component, &key, &settings, Circumstances { released: false, paused: true });
        }
    }
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
        for key in keys {
            step(work, component, &key, &settings, Circumstances { released: true, paused: false });
        }
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

/// A DaemonSet without a canary is taken from under the guard, and moves again.
fn let_go(work: &mut Work<'_>, key: &ObjectKey) {
    let seen = work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set);
    let Some(daemon_set) = seen.filter(|daemon_set| daemon_set.guarded_as.is_some()) else { return };
    if daemon_set.strategy.pace == Pace::Frozen {
        let action = canary::Action::steer(daemon_set, canary::idle(), daemon_set.strategy.drive);
        work.actions.push(Action::Rollout(action));
    }
    work.actions.push(Action::Rollout(canary::Action::label(daemon_set, None)));
}

/// Another attempt was asked for.
pub(crate) fn retry(work: &mut Work<'_>) {
    for record in &mut work.status.rollouts {
        if record.phase != RolloutPhase::Successful {
            *record = again(record);
        }
    }
}

/// Whether something is done about a rollout, and not about a release.
pub(crate) fn is_rollout_action(action: &Action) -> bool {
    matches!(action, Action::Rollout(_))
}
