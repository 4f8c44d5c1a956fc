//! DaemonSets behind a canary in a walk: which ones a component has, what is
//! remembered before it is written, and where they stand. What is to be done for
//! one of them is [`canary::decide`]'s to say.

mod care;
mod places;
mod step;
mod told;
mod whose;

use std::sync::Arc;
use std::time::Duration;

use super::decision::Action;
use super::evidence::Remembered;
use super::turn::{Limits, Standing, short};
use super::work::Work;
use crate::api::{Canary, Engine, RecordedComponent, RevisionPhase, RolloutGuard, RolloutPhase, RolloutRecord};
use crate::canary::guard::{Policies, Unguarded};
use crate::canary::objects::DaemonSet;
use crate::canary::{self, Observation, Settings, Sight, estimate};
use crate::engine::{Manifest, ObjectKey, keeps_the_first_step_small};
use crate::ready::release::ReleaseState;
use crate::rollout::live::Live;

pub(crate) use care::{
    failure, keep, let_all_go, let_go_of_lost, let_kept_go, look_after, pause, pause_component, retry,
};
pub(crate) use places::needed;
use places::{Places, id, is_of, places, unnamed};
use step::{Circumstances, put, step_all};

/// Where the guard's policies are.
const MANIFESTS: &str = "manifests/canary";
/// Why nothing is written for a few seconds.
pub(crate) const SETTLING: &str =
    "the canary's guard was changed a moment ago, and it is waited until the API server acts on that";

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
        Some(earlier) => canary::again(earlier),
        None => RolloutRecord { daemon_set: id(key), component: component.name.clone(), ..RolloutRecord::default() },
    }
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
        let seen = match look(work, child, key) {
            Ok(seen) => seen,
            // What the release has of its own, if anything, is remembered.
            Err(Unseen::Foreign(_)) => continue,
            Err(Unseen::NotYet(not_yet)) => return not_yet,
        };
        if let Some(daemon_set) = &seen.daemon_set {
            match prepare(work, component, &settings, daemon_set) {
                Remembered::Yes => {}
                not_yet => return not_yet,
            }
        }
        let before = canary::again(&record(work, component, key));
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
    if let Some(left) = work.snapshot.cluster.guard_settles_in {
        work.look_again(left);
        return Remembered::NotRead(format!("DaemonSet {}: {SETTLING}", daemon_set.id()));
    }
    if label(work, settings, daemon_set) {
        return Remembered::NotRead(format!("DaemonSet {} is being put under the canary's guard", daemon_set.id()));
    }
    let release = component.manifests.last().cloned().map(Manifest::from_record);
    let release = release.map(|release| work.guarded(component, work.with_settings(component, release)));
    let pinned = release.is_some_and(|release| keeps_the_first_step_small(release.as_map(), Some(&daemon_set.name)));
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
    policies(work, daemon_set).guard(daemon_set, keeps_the_first_step_small(&child.object, Some(&daemon_set.name)))
}

/// What keeps the first step small now: what did when a rollout ended may have gone.
pub(crate) fn guard_now(work: &Work<'_>, record: &RolloutRecord) -> Option<RolloutGuard> {
    let (namespace, name) = record.daemon_set.split_once('/')?;
    let is_it = |key: &ObjectKey| key.namespace == namespace && key.name == name;
    let seen = work.snapshot.daemon_sets.iter().find(|(key, _)| is_it(key)).and_then(|(_, sight)| sight.daemon_set());
    let component = work.newest(&record.component).and_then(|component| work.child(component));
    let (Some(daemon_set), Some(child)) = (seen, component) else { return record.guard };
    match guard(work, child, daemon_set) {
        Ok(guard) => Some(guard),
        Err(Unguarded::NoPolicy) => Some(RolloutGuard::Unguarded),
        Err(Unguarded::Mismatch) => record.guard,
    }
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

/// Why nothing can be done for a DaemonSet.
enum Unseen {
    /// It was not applied for the component's release.
    Foreign(String),
    /// It is not known.
    NotYet(Remembered),
}

impl From<Unseen> for Standing {
    fn from(unseen: Unseen) -> Self {
        match unseen {
            Unseen::Foreign(message) => Self::Waiting(message),
            Unseen::NotYet(not_yet) => not_yet.into(),
        }
    }
}

/// What was seen of a DaemonSet of a release, or why nothing can be done.
fn look(work: &Work<'_>, child: &Live, key: &ObjectKey) -> Result<Arc<Observation>, Unseen> {
    let sight = work.snapshot.daemon_sets.get(key);
    // What another operator makes carries its marks, and is looked on at only.
    let theirs = |seen: &&DaemonSet| seen.controller.is_none() && !whose::is_applied_by(child, seen);
    if let Some(theirs) = sight.and_then(Sight::daemon_set).filter(theirs) {
        return Err(Unseen::Foreign(whose::foreign(child, theirs)));
    }
    match sight {
        Some(Sight::Full(seen)) => Ok(seen.clone()),
        Some(Sight::Alone(None)) => Ok(Arc::default()),
        Some(Sight::Denied(message)) => Err(Unseen::NotYet(Remembered::Denied(message.clone()))),
        Some(Sight::Alone(Some(_)) | Sight::Pending) | None => {
            Err(Unseen::NotYet(Remembered::NotRead(format!("{key} is being read"))))
        }
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
    let of_one = |key: &ObjectKey| {
        let seen = work.snapshot.daemon_sets.get(key).and_then(Sight::daemon_set);
        let desired = seen.map_or(0, |daemon_set| daemon_set.counts.desired).max(record(work, component, key).desired);
        let min_ready = Duration::from_secs(seen.map_or(0, |daemon_set| daemon_set.min_ready_seconds));
        estimate::allowance(&settings, desired, min_ready)
    };
    keys.iter().map(of_one).max().unwrap_or_default()
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
    let paused = has_failed_otherwise(work, component, state);
    let standings = step_all(work, component, &keys, &settings, Circumstances { released, paused });
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

/// Whether the component was told to have failed for its release, and that is not
/// ready since: then its rollout goes no further either. On Argo CD a release is at
/// work as long as its DaemonSets are.
fn has_failed_otherwise(work: &Work<'_>, component: &RecordedComponent, state: &ReleaseState) -> bool {
    let of_it = |record: &&RolloutRecord| record.component == component.name;
    let by_itself = work.status.rollouts.iter().filter(of_it).any(|record| record.phase == RolloutPhase::Failed);
    let stands = match (work.latest.spec.engine, state) {
        (Engine::Flux, state) => *state != ReleaseState::Ready,
        (Engine::Argo, state) => matches!(state, ReleaseState::Failed(_)),
    };
    work.latest.status.phase == RevisionPhase::Failed && stands && !by_itself
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

/// Whether something is done about a rollout, and not about a release.
pub(crate) fn is_rollout_action(action: &Action) -> bool {
    matches!(action, Action::Rollout(_))
}
