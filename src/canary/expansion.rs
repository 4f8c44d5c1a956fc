//! After the canary: step by step to the last node, and what counts as the end.

use std::time::Duration;

use super::Standing;
use super::census::{Census, Seat};
use super::desk::Desk;
use super::failure;
use super::health::{Health, place};
use super::objects::DaemonSet;
use super::strategy::{Budget, Drive, Pace};
use crate::api::{RolloutPhase, RolloutReason};
use crate::clock::short;

/// How long everything must have been as it should be.
const STABLE: Duration = Duration::from_secs(1);
/// Without progress for so long, what holds it up is named.
const SLOW: Duration = Duration::from_secs(60);

/// The budget outside of a rollout: what a new template meets, should nothing
/// else stand in its way.
const IDLE: Pace = Pace::Rolling(Budget::Count(1));

/// The pace of a DaemonSet that is not being rolled out.
pub fn idle() -> Pace {
    IDLE
}

/// Takes the rollout as far as it will go now.
pub(super) fn go_on(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    note_progress(desk, census);
    if census.outdated() > 0 {
        return expand(desk, daemon_set, census);
    }
    finish(desk, daemon_set, census)
}

fn note_progress(desk: &mut Desk<'_>, census: &Census<'_>) {
    let healthy = census.healthy();
    if healthy > desk.record.best {
        desk.record.best = healthy;
        desk.restart_clock();
    }
}

/// The budget of the present step; the next one follows when as many nodes as
/// the present one allows at once have come up since it began.
fn expand(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    let desired = daemon_set.counts.desired;
    desk.record.settled = false;
    desk.record.step = desk.record.step.max(1);
    let proved = |step: u32| 1 + (1..=step).map(|step| desk.settings.step(step).of(desired)).sum::<i64>();
    let mut step = desk.record.step;
    while step < desk.settings.last_step() && census.healthy() >= proved(step) {
        step += 1;
    }
    desk.record.step = step;
    let pace = Pace::Rolling(desk.settings.step(step).and(census.dead_weight, desired));
    let lowers = pace.of(desired) < daemon_set.strategy.pace.of(desired);
    if let Some(message) = holds_back(desk, daemon_set, census, pace) {
        return desk.wait(still(desk.record.phase), None, message);
    }
    let steering = desk.step(daemon_set, pace, census);
    let Some(stuck) = in_time(desk, daemon_set, census) else {
        return too_late(desk, daemon_set, census);
    };
    if steering && !lowers {
        return desk.wait(RolloutPhase::Increasing, None, format!("{pace} may be unavailable from here on"));
    }
    let message = if stuck { holding_up(census) } else { format!("updating, {pace} at once") };
    desk.wait(RolloutPhase::Waiting, None, message)
}

/// Why a budget is not raised yet. Whatever it says, the DaemonSet controller
/// replaces every old pod that is not available as soon as it may replace any:
/// where those are more than the step admits, they have a while to come back. A
/// version that does not run is mended all the same. A surge takes no pod away.
fn holds_back(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>, pace: Pace) -> Option<String> {
    let (desired, strategy) = (daemon_set.counts.desired, &daemon_set.strategy);
    if pace.of(desired) <= strategy.pace.of(desired) || strategy.drive == Drive::Surge {
        return None;
    }
    let not_available = (census.expected - daemon_set.counts.available - census.down()).max(census.idle());
    if not_available <= desk.settings.step(desk.record.step).of(desired) {
        return None;
    }
    desk.left(SLOW.min(desk.settings.progress_deadline / 2))?;
    Some(format!("{not_available} old pods are not available and would all be replaced at once"))
}

/// The phase of a rollout that goes on as before.
fn still(phase: RolloutPhase) -> RolloutPhase {
    match phase {
        RolloutPhase::Started | RolloutPhase::Canary => phase,
        RolloutPhase::Increasing | RolloutPhase::Waiting | RolloutPhase::Successful | RolloutPhase::Failed => {
            RolloutPhase::Waiting
        }
    }
}

/// Nothing of an old template is left: the budget goes back to 1, and everything
/// must be seen as it should be twice.
fn finish(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    let steering = go_idle(desk, daemon_set, census);
    if !is_complete(daemon_set, census) {
        desk.record.settled = false;
        let Some(stuck) = in_time(desk, daemon_set, census) else {
            return too_late(desk, daemon_set, census);
        };
        let message = if stuck { holding_up(census) } else { "the last pods are becoming ready".to_owned() };
        return desk.wait(RolloutPhase::Waiting, Some(RolloutReason::Starting), message);
    }
    if steering || !desk.moment.released {
        desk.record.settled = false;
        let message = if steering { "its budget goes back to 1" } else { "the release is not ready yet" };
        return desk.wait(RolloutPhase::Waiting, Some(RolloutReason::Settling), message.to_owned());
    }
    if !desk.record.settled {
        desk.record.settled = true;
        desk.restart_clock();
    }
    match desk.left(STABLE) {
        Some(_) => {
            desk.wait(RolloutPhase::Waiting, Some(RolloutReason::Settling), "everything is looked at once more".into())
        }
        None => done(desk, daemon_set, census),
    }
}

/// Every node that counts runs the new template and is ready, and the DaemonSet
/// controller says the same.
pub(super) fn is_complete(daemon_set: &DaemonSet, census: &Census<'_>) -> bool {
    let expected = census.expected;
    census.outdated() == 0
        && census.vacant() == 0
        && census.included().all(Seat::is_healthy)
        && census.healthy() >= expected
        && daemon_set.counts.updated >= expected
        && daemon_set.counts.available >= expected
}

/// It is done, and its budget stays at 1.
pub(super) fn stays(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) {
    if matches!(desk.record.reason, Some(RolloutReason::GuardMismatch | RolloutReason::Refused)) {
        desk.stand(RolloutPhase::Successful, None, "");
    }
    desk.stop_clock();
    go_idle(desk, daemon_set, census);
}

/// The budget outside of a rollout. A freeze is lifted only once the DaemonSet
/// controller itself counts every node as updated: then nothing goes with it.
fn go_idle(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> bool {
    let frozen = daemon_set.strategy.pace == Pace::Frozen;
    if frozen && daemon_set.counts.updated < census.expected {
        return false;
    }
    desk.steer(daemon_set, IDLE, daemon_set.strategy.drive)
}

fn done(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    desk.stop_clock();
    desk.record.settled = false;
    desk.record.crashed.clear();
    let left_out = |holds: fn(&Seat<'_>) -> bool, what: &str| {
        let nodes: Vec<&str> =
            census.seats.values().filter(|seat| holds(seat)).map(|seat| seat.node.name.as_str()).collect();
        (!nodes.is_empty()).then(|| format!("{what}, and left out: {}", names(&nodes)))
    };
    let kept_off = left_out(|seat| seat.kept_off && !seat.is_vacant(), "kept off by their taints");
    let excluded = left_out(|seat| seat.excluded && !seat.kept_off, "not ready before it began");
    let left_out: Vec<String> = excluded.into_iter().chain(kept_off).collect();
    let (reason, message) = if daemon_set.counts.desired == 0 && census.seats.is_empty() {
        (Some(RolloutReason::NoNodes), "no node is to run it".to_owned())
    } else if left_out.is_empty() {
        (None, String::new())
    } else {
        (Some(RolloutReason::NodesExcluded), left_out.join("; "))
    };
    desk.stand(RolloutPhase::Successful, reason, &message);
    Standing::Done
}

/// Whether it is still in time, and if so, whether it is slow by now.
fn in_time(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Option<bool> {
    desk.left(deadline(desk, daemon_set))?;
    let slow = desk.elapsed() >= SLOW.min(desk.settings.progress_deadline / 2);
    if !slow && census.outdated() > 0 {
        desk.left(SLOW);
    }
    Some(slow)
}

/// The next pod goes only when one has been ready for `minReadySeconds`.
fn deadline(desk: &Desk<'_>, daemon_set: &DaemonSet) -> Duration {
    desk.settings.progress_deadline.saturating_add(Duration::from_secs(daemon_set.min_ready_seconds))
}

fn too_late(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    let limit = short(deadline(desk, daemon_set));
    let message = format!("no further node within {limit}: {}", holding_up(census));
    failure::fail(desk, daemon_set, RolloutReason::NoProgress, message)
}

/// What holds the rollout up: first what is not ready, then what is not there.
fn holding_up(census: &Census<'_>) -> String {
    let unready = census.included().find_map(|seat| match (&seat.new, seat.old) {
        (Some((_, Health::NotReady(message) | Health::Broken(_, message))), _) => Some(message.clone()),
        (None, None) => Some(format!("the pod on node {} is not replaced", seat.node.name)),
        (_, Some(old)) if !seat.node.ready => Some(format!("{}: the node is not ready", place(old))),
        (Some((_, Health::Ready)) | None, _) => None,
    });
    unready.unwrap_or_else(|| match census.absent() {
        missing @ 1.. => format!("{missing} nodes have no pod"),
        _ => "pods are not available yet".to_owned(),
    })
}

/// Names of so many nodes are told, the others counted.
const TOLD: usize = 5;

fn names(nodes: &[&str]) -> String {
    let told = nodes.iter().take(TOLD).copied().collect::<Vec<_>>().join(", ");
    match nodes.len().saturating_sub(TOLD) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}
