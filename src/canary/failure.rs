//! A rollout that stops: it failed, or is paused.

use super::Standing;
use super::census::{Census, Seat};
use super::desk::Desk;
use super::expansion;
use super::health::Health;
use super::objects::{DaemonSet, Node};
use super::strategy::{Budget, Pace};
use crate::api::{CanaryFailure, RolloutMode, RolloutPhase, RolloutReason};

/// A new pod that will not become ready by itself: checked in every phase.
pub(super) fn broken(census: &Census<'_>) -> Option<(RolloutReason, String)> {
    match census.broken()? {
        (_, Health::Broken(reason, message)) => Some((*reason, message.clone())),
        (_, Health::Ready | Health::NotReady(_)) => None,
    }
}

/// The rollout fails: what it leaves behind is as small as asked for.
pub(super) fn fail(desk: &mut Desk<'_>, daemon_set: &DaemonSet, reason: RolloutReason, message: String) -> Standing {
    desk.stop_clock();
    desk.act_not();
    desk.record.settled = false;
    desk.stand(RolloutPhase::Failed, Some(reason), &message);
    hold(desk, daemon_set);
    Standing::Failed(format!("DaemonSet {}: {message}", daemon_set.id()))
}

/// Whether the new template has taken the DaemonSet from every node, though there
/// are nodes that ran it and could go on: its placement, most likely, is a mistake.
/// Nodes that have gone took their pods along.
pub(super) fn has_vanished(desk: &Desk<'_>, daemon_set: &DaemonSet) -> bool {
    let ran_it = |node: &Node| desk.record.some_nodes.is_empty() || desk.record.some_nodes.contains(&node.name);
    let could_go_on = |node: &&Node| node.ready && daemon_set.tolerates(node) && ran_it(node);
    let mut nodes = desk.seen.nodes.values().filter(could_go_on);
    let had = desk.record.trial && desk.record.nodes > 0 && !desk.moment.returning;
    had && daemon_set.counts.desired == 0 && nodes.next().is_some()
}

pub(super) fn vanished(desk: &mut Desk<'_>, daemon_set: &DaemonSet) -> Standing {
    let message = format!("its new template fits no node, {} had a pod before", desk.record.nodes);
    fail(desk, daemon_set, RolloutReason::NoNodes, message)
}

/// An annotation that pods are to share with the DaemonSet, and that it does not have.
pub(super) fn lacks_annotation(desk: &Desk<'_>, daemon_set: &DaemonSet) -> Option<String> {
    let key = desk.settings.match_annotations.iter().find(|key| !daemon_set.annotations.contains_key(*key))?;
    Some(format!("the DaemonSet itself has no annotation {key}, which matchAnnotations asks for"))
}

/// It has failed and stays so; what was told stays told.
pub(super) fn stays(desk: &mut Desk<'_>, daemon_set: &DaemonSet) -> Standing {
    desk.stop_clock();
    hold(desk, daemon_set);
    let message = desk.record.message.clone().unwrap_or_default();
    Standing::Failed(format!("DaemonSet {}: {message}", daemon_set.id()))
}

/// Only ever smaller. The smallest is none in Strict and 1 in Compat: with late
/// crashes even a budget of 1 goes from node to node.
fn hold(desk: &mut Desk<'_>, daemon_set: &DaemonSet) {
    let pace = match (desk.settings.on_failure, desk.settings.mode) {
        (CanaryFailure::Freeze, _) | (_, RolloutMode::Strict) => Pace::Frozen,
        (CanaryFailure::Hold | CanaryFailure::Rollback, RolloutMode::Compat) => Pace::Rolling(Budget::Count(1)),
    };
    let desired = daemon_set.counts.desired;
    if pace.of(desired) < daemon_set.strategy.pace.of(desired) {
        desk.steer(daemon_set, pace, daemon_set.strategy.drive);
    }
}

/// Whether a failed rollout goes on. One that has come to its end after all is
/// always taken for what it is; otherwise it stays failed in Strict, and where it
/// was frozen, until somebody asks for another attempt. In Compat it goes on when
/// its pods recover.
pub(super) fn recovers(desk: &Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> bool {
    let forgiving = desk.moment.forgiving || desk.settings.mode == RolloutMode::Compat;
    let may = forgiving && desk.settings.on_failure != CanaryFailure::Freeze;
    if has_vanished(desk, daemon_set) {
        return false;
    }
    census.broken().is_none() && (expansion::is_complete(daemon_set, census) || (may && is_well(desk, census)))
}

fn is_well(desk: &Desk<'_>, census: &Census<'_>) -> bool {
    if desk.record.trial {
        let canary = desk.record.node.as_deref().and_then(|node| census.seat(node));
        return canary.is_some_and(Seat::is_healthy);
    }
    let late = matches!(desk.record.reason, Some(RolloutReason::TimedOut | RolloutReason::NoProgress));
    let ready = |seat: &Seat<'_>| matches!(seat.new, None | Some((_, Health::Ready)));
    if late { census.healthy() > desk.record.best } else { census.vacant() == 0 && census.included().all(ready) }
}

/// Nothing moves for now: no further pod dies, and no clock runs.
pub(super) fn paused(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    desk.stop_clock();
    match desk.record.phase {
        RolloutPhase::Failed => return stays(desk, daemon_set),
        RolloutPhase::Started
        | RolloutPhase::Canary
        | RolloutPhase::Increasing
        | RolloutPhase::Waiting
        | RolloutPhase::Successful => {}
    }
    if census.outdated() > 0 {
        desk.steer(daemon_set, Pace::Frozen, daemon_set.strategy.drive);
    }
    desk.wait(desk.record.phase, Some(RolloutReason::Paused), "paused: no further pod is replaced".to_owned())
}
