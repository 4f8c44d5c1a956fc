//! One look at DaemonSets: decided, then carried out.

use std::sync::Arc;
use std::time::Duration;

use super::places::id;
use super::told::tell;
use super::{explain, guard, label, look, record};
use crate::api::{RecordedComponent, RevisionPhase, RolloutGuard, RolloutPhase, RolloutReason, RolloutRecord};
use crate::canary::guard::Unguarded;
use crate::canary::{self, Decision, Moment, Observation, Settings};
use crate::clock::Clock as _;
use crate::engine::ObjectKey;
use crate::rollout::decision::Action;
use crate::rollout::turn::Standing;
use crate::rollout::work::Work;

/// Under which circumstances DaemonSets are looked at.
#[derive(Clone, Copy)]
pub struct Circumstances {
    /// Whether the engine has applied what is wanted.
    pub released: bool,
    /// Whether nothing may move for now.
    pub paused: bool,
}

/// What one look comes to, before anything of it is done.
enum Considered {
    /// Nothing can be said.
    Not(Standing),
    /// The guard takes Windlass for somebody else.
    Mismatch(String),
    /// This is to be done.
    Decided(Arc<Observation>, Box<Decision>),
}

/// One look at each; what is not done. Once one of them has failed no pod of the
/// others goes either: it is the same release that they get.
pub fn step_all(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    keys: &[ObjectKey],
    settings: &Settings,
    circumstances: Circumstances,
) -> Vec<Standing> {
    let look_at = |work: &Work<'_>, key: &ObjectKey, circumstances| {
        let before = record(work, component, key);
        let considered = consider(work, component, key, &before, settings, circumstances);
        (before, considered)
    };
    let mut looks: Vec<_> = keys.iter().map(|key| look_at(work, key, circumstances)).collect();
    if keys.len() > 1 && looks.iter().any(|(_, considered)| has_failed(considered)) {
        let held = Circumstances { paused: true, ..circumstances };
        for (key, look) in keys.iter().zip(&mut looks).filter(|(_, (_, considered))| !has_failed(considered)) {
            *look = look_at(work, key, held);
        }
    }
    let looks = keys.iter().zip(looks);
    looks.filter_map(|(key, (before, considered))| carry_out(work, key, &before, settings, considered)).collect()
}

/// One look at one DaemonSet, from what is on record of it.
pub fn step(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    key: &ObjectKey,
    before: &RolloutRecord,
    settings: &Settings,
    circumstances: Circumstances,
) -> Option<Standing> {
    let considered = consider(work, component, key, before, settings, circumstances);
    carry_out(work, key, before, settings, considered)
}

/// A rollout that was open when a newer revision overtook it stands still until its
/// turn. That is told, but not on record: with its turn it begins anew.
pub fn hold(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    key: &ObjectKey,
    mut record: RolloutRecord,
    settings: &Settings,
) {
    work.seen_to.insert(key.clone());
    let held = Circumstances { released: false, paused: true };
    let mut action = None;
    // Of a template that somebody has brought meanwhile the first look only tells.
    for _ in 0..2 {
        let Considered::Decided(seen, decision) = consider(work, component, key, &record, settings, held) else {
            break;
        };
        if let Some(daemon_set) = &seen.daemon_set {
            label(work, settings, daemon_set);
        }
        (record, action) = (decision.record, decision.action);
        if decision.look_again != Some(Duration::ZERO) {
            break;
        }
    }
    work.actions.extend(action.map(Action::Rollout));
    work.overtaken.push(record);
}

fn has_failed(considered: &Considered) -> bool {
    match considered {
        Considered::Decided(_, decision) => decision.record.phase == RolloutPhase::Failed,
        Considered::Not(_) | Considered::Mismatch(_) => false,
    }
}

fn consider(
    work: &Work<'_>,
    component: &RecordedComponent,
    key: &ObjectKey,
    before: &RolloutRecord,
    settings: &Settings,
    circumstances: Circumstances,
) -> Considered {
    let Some(child) = work.child(component) else {
        return Considered::Not(Standing::Waiting(format!("the release of {} is not there", component.name)));
    };
    let seen = match look(work, child, key) {
        Ok(seen) => seen,
        Err(unseen) => return Considered::Not(unseen.into()),
    };
    let guard = match &seen.daemon_set {
        None => before.guard.unwrap_or(RolloutGuard::Rendered),
        Some(daemon_set) => match guard(work, child, daemon_set) {
            Ok(guard) => guard,
            Err(unguarded @ Unguarded::Mismatch) => {
                return Considered::Mismatch(explain(work, daemon_set, &unguarded));
            }
            Err(Unguarded::NoPolicy) => RolloutGuard::Unguarded,
        },
    };
    let moment = Moment {
        time: work.now.time,
        watching_for: work.now.watching_for,
        guard,
        released: circumstances.released,
        paused: circumstances.paused,
        returning: matches!(
            work.status.phase,
            RevisionPhase::RollingBack | RevisionPhase::RolledBack | RevisionPhase::RollbackFailed
        ),
        // A first install is tried again until it succeeds.
        forgiving: work.latest.spec.base.is_none() && !work.status.succeeded,
    };
    let Some(refusal) = work.snapshot.refusals.get(&id(key)) else {
        return Considered::Decided(seen.clone(), Box::new(canary::decide(&seen, before, settings, moment)));
    };
    let decision = canary::decide(&seen, &standing_still(work, before), settings, moment);
    Considered::Decided(seen, Box::new(refused(work, decision, refusal)))
}

/// What is to be done was refused when it was last tried: until it is done no clock
/// runs, and that is what is waited for.
fn refused(work: &Work<'_>, mut decision: Decision, refusal: &str) -> Decision {
    if decision.action.is_none() {
        return decision;
    }
    decision.record.pause(work.now);
    if let canary::Standing::Waiting(_) = decision.standing {
        decision.record.reason = Some(RolloutReason::Refused);
        decision.record.message = Some(refusal.to_owned());
        decision.standing = canary::Standing::Waiting(refusal.to_owned());
    }
    decision
}

/// Does what was decided; `None`: it is done. Time in which nothing can be said or
/// written counts for no clock.
fn carry_out(
    work: &mut Work<'_>,
    key: &ObjectKey,
    before: &RolloutRecord,
    settings: &Settings,
    considered: Considered,
) -> Option<Standing> {
    work.seen_to.insert(key.clone());
    let (seen, decision) = match considered {
        Considered::Decided(seen, decision) => (seen, *decision),
        Considered::Not(standing) => {
            if before.counted_at.is_some() {
                put(work, standing_still(work, before));
            }
            return Some(standing);
        }
        Considered::Mismatch(message) => {
            let (reason, told) = (Some(RolloutReason::GuardMismatch), Some(message.clone()));
            put(work, RolloutRecord { reason, message: told, ..standing_still(work, before) });
            return Some(Standing::Unguarded(message));
        }
    };
    if let Some(daemon_set) = &seen.daemon_set {
        label(work, settings, daemon_set);
    }
    tell(work, key, before, &decision.record);
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

fn standing_still(work: &Work<'_>, before: &RolloutRecord) -> RolloutRecord {
    let mut record = before.clone();
    record.pause(work.now);
    record
}

/// Puts a record in its place.
pub fn put(work: &mut Work<'_>, record: RolloutRecord) {
    let rollouts = &mut work.status.rollouts;
    let same = |known: &RolloutRecord| (&known.component, &known.daemon_set) == (&record.component, &record.daemon_set);
    match rollouts.iter().position(same).and_then(|at| rollouts.get_mut(at)) {
        Some(known) => *known = record,
        None => rollouts.push(record),
    }
}

/// Forgets DaemonSets that a component does not have any more.
pub fn forget_others(work: &mut Work<'_>, component: &RecordedComponent, keys: &[ObjectKey]) {
    let is_there = |record: &RolloutRecord| keys.iter().any(|key| record.daemon_set == id(key));
    work.status.rollouts.retain(|record| record.component != component.name || is_there(record));
}
