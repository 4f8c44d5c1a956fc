//! The canary: one node, chosen or adopted, that proves the new template.

use std::time::Duration;

use super::Standing;
use super::action::{Action, Beside, Warrant};
use super::census::{Census, Seat};
use super::desk::Desk;
use super::health::{Health, place};
use super::objects::{DaemonSet, Pod};
use super::strategy::{Budget, Drive, Pace};
use super::{expansion, failure};
use crate::api::{RolloutMode, RolloutPhase, RolloutReason};
use crate::clock::short;

/// Takes the trial as far as it will go now.
pub(super) fn go_on(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> Standing {
    if failure::has_vanished(desk, daemon_set) {
        return failure::vanished(desk, daemon_set);
    }
    if census.expected <= 0 && census.included().next().is_none() {
        desk.record.trial = false;
        return expansion::go_on(desk, daemon_set, census);
    }
    find(desk, daemon_set, census);
    let node = desk.record.node.clone();
    let seat = node.as_deref().and_then(|node| census.seat(node));
    let (pace, drive) = (pace(desk, daemon_set, census, seat), daemon_set.strategy.drive);
    let steering = desk.steer(daemon_set, pace, drive);
    let Some(node) = node else {
        return no_node(desk, daemon_set, census, steering);
    };
    match seat {
        Some(seat) if seat.is_updated() => match &seat.new {
            Some((pod, health)) => judge(desk, daemon_set, census, pod, health),
            None => unready(desk, daemon_set, format!("a new pod on node {node} is awaited")),
        },
        Some(seat @ Seat { old: Some(old), new, .. }) => {
            let serves = seat.useless().is_none();
            if deletes(desk, daemon_set, census) && (!serves || census.down() == 0) && !steering {
                desk.record.pod = Some(old.uid.clone());
                let warrant = match serves {
                    true => Warrant::Beside(Beside::of(daemon_set, &desk.seen.pods, old)),
                    false => Warrant::Idle,
                };
                desk.act(Action::delete(daemon_set, old, warrant));
            }
            let message = match new {
                Some((_, Health::NotReady(message) | Health::Broken(_, message))) => message.clone(),
                Some((_, Health::Ready)) | None => format!("{} is to be replaced", place(old)),
            };
            unready(desk, daemon_set, message)
        }
        Some(_) => unready(desk, daemon_set, format!("a new pod on node {node} is awaited")),
        None => awaited(desk, daemon_set, &node),
    }
}

/// Strict without surge: Windlass chooses the canary's node.
pub(super) fn chooses(desk: &Desk<'_>, daemon_set: &DaemonSet) -> bool {
    desk.settings.mode == RolloutMode::Strict && daemon_set.strategy.drive == Drive::Unavailable
}

/// Whether Windlass itself deletes the canary's old pod: where it chooses, and in
/// Compat where dead nodes use up the native budget. Adding them to it instead
/// would let as many living ones go at once, should they come back.
fn deletes(desk: &Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> bool {
    let unavailable = daemon_set.strategy.drive == Drive::Unavailable;
    chooses(desk, daemon_set) || (desk.steers() && unavailable && census.dead_weight > 0)
}

/// How many pods may go while the canary is tried. A surge cannot be made by
/// hand: it is let go with a budget of 1 and frozen as soon as one node has it.
/// It takes no pod away, so dead nodes are added to it.
fn pace(desk: &Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>, seat: Option<&Seat<'_>>) -> Pace {
    let one = Budget::Count(1);
    let beside_the_dead = Pace::Rolling(one.and(census.dead_weight, daemon_set.counts.desired));
    match (desk.settings.mode, daemon_set.strategy.drive) {
        (RolloutMode::Compat, Drive::Unavailable) => Pace::Rolling(one),
        (RolloutMode::Strict, Drive::Unavailable) => Pace::Frozen,
        (RolloutMode::Strict, Drive::Surge) if seat.is_some_and(Seat::is_updated) => Pace::Frozen,
        (RolloutMode::Strict | RolloutMode::Compat, Drive::Surge) => beside_the_dead,
    }
}

/// Finds the canary's node, unless it has one: in this order one whose pod is
/// being replaced already, the one where the last try failed, one whose old pod
/// is of no use anyway, one that was replaced before anybody looked, and in Strict
/// the first that may be chosen, of the control plane last. A pod that is ready is never asked to go while
/// another node is without one.
fn find(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) {
    let known = desk.record.node.clone().filter(|node| stands(desk, daemon_set, census, node));
    let has_its_turn = |node: &String| census.seat(node).is_none_or(|seat| seat.old.is_none() || seat.new.is_some());
    if known.as_ref().is_some_and(has_its_turn) {
        return;
    }
    let deletes = deletes(desk, daemon_set, census);
    let may = |seat: &&Seat<'_>| may_be_tried(desk, daemon_set, seat);
    let eligible = || census.included().filter(may).filter(|seat| seat.old.is_some() && seat.new.is_none());
    // Pods also go from nodes that the new template does not want: no successor comes.
    let is_missed = census.missing() > 0;
    let awaits = |seat: &&Seat<'_>| seat.is_vacant() && seat.node.ready && seat.wanted;
    let vacant = || census.included().find(awaits).filter(|_| is_missed);
    let costs_nothing = |seat: &&Seat<'_>| deletes && seat.useless().is_some();
    let may_go = |seat: &&Seat<'_>| costs_nothing(seat) || (deletes && census.down() == 0);
    let known = || known.as_deref().and_then(|node| census.seat(node)).filter(may_go);
    let is_second_choice = |seat: &&Seat<'_>| !is_chosen(desk, daemon_set, seat);
    let useless = || eligible().filter(costs_nothing).min_by_key(is_second_choice);
    let replaced = || replaced(desk, daemon_set, census);
    let chosen = || eligible().filter(may_go).min_by_key(|seat| seat.node.is_control_plane());
    let found = vacant().or_else(known).or_else(useless).or_else(replaced).or_else(chosen);
    let node = found.map(|seat| seat.node.name.clone());
    if node != desk.record.node {
        let pod = found.and_then(|seat| seat.old.or(seat.new.as_ref().map(|(pod, _)| *pod)));
        desk.record.pod = pod.map(|pod| pod.uid.clone());
        (desk.record.ready_at, desk.record.restarts) = (None, 0);
        desk.record.node = node;
        desk.restart_clock();
    }
}

/// Whether the node on record still stands for the canary: not one that has
/// gone, or that no pod is missing from, nor one whose old pod may no longer be
/// asked to go.
fn stands(desk: &Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>, node: &str) -> bool {
    match census.seat(node) {
        Some(seat) if seat.excluded => false,
        Some(seat) if seat.old.is_some() && seat.new.is_none() && deletes(desk, daemon_set, census) => {
            may_be_tried(desk, daemon_set, seat)
        }
        Some(seat) if seat.kept_off => false,
        Some(seat) if seat.is_vacant() => census.missing() > 0,
        Some(_) => true,
        None => desk.seen.nodes.contains_key(node) && census.missing() > 0,
    }
}

/// A node that had a pod before and has the new one. One that joined since does
/// not show that a pod can be replaced, unless there are no others; a node that
/// left at the same time is taken for a replaced one.
fn replaced<'c, 'a>(desk: &Desk<'_>, daemon_set: &DaemonSet, census: &'c Census<'a>) -> Option<&'c Seat<'a>> {
    let olds = i64::try_from(census.seats.values().filter(|seat| seat.old.is_some()).count()).unwrap_or(i64::MAX);
    let joined = olds > 0 && desk.record.nodes <= olds + census.vacant();
    let news = || census.included().filter(|seat| seat.new.is_some() && matches_selector(desk, daemon_set, seat));
    let found = news().find(|seat| seat.is_healthy()).or_else(|| news().next());
    found.filter(|seat| !joined || seat.old.is_some())
}

/// While a node has a pod of no use no other may go, so what was chosen with care
/// counts for less than that it comes first: else a fix would never begin.
fn may_be_tried(desk: &Desk<'_>, daemon_set: &DaemonSet, seat: &Seat<'_>) -> bool {
    let runs_pods = seat.node.ready && seat.wanted;
    runs_pods && (seat.useless().is_some() || is_chosen(desk, daemon_set, seat))
}

/// Whether something may be learned there: it is not about to be drained, and the
/// selector names it.
fn is_chosen(desk: &Desk<'_>, daemon_set: &DaemonSet, seat: &Seat<'_>) -> bool {
    !seat.node.unschedulable && matches_selector(desk, daemon_set, seat)
}

/// In Compat, and for a surge, the DaemonSet controller chooses, whatever the
/// selector says.
fn matches_selector(desk: &Desk<'_>, daemon_set: &DaemonSet, seat: &Seat<'_>) -> bool {
    let wanted = &desk.settings.node_selector;
    let has = |(key, value): (&String, &String)| seat.node.labels.get(key) == Some(value);
    !chooses(desk, daemon_set) || wanted.iter().all(has)
}

fn no_node(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>, steering: bool) -> Standing {
    let strict = desk.settings.mode == RolloutMode::Strict;
    let surges = daemon_set.strategy.drive == Drive::Surge;
    let message = match (steering, strict) {
        (true, _) => "its budget is brought to the first step",
        (false, _) if surges => "a first pod beside an old one is awaited",
        (false, true) if census.down() > 0 => "another node is without a ready pod, so no further one goes",
        (false, true) => "no node that is ready, not cordoned and matches the nodeSelector has an old pod",
        (false, false) => "the first pod is to be replaced",
    };
    let limit = desk.settings.timeout;
    match desk.left(limit) {
        Some(_) => desk.wait(RolloutPhase::Started, None, message.to_owned()),
        None => {
            let message = format!("no canary within {}: {message}", short(limit));
            failure::fail(desk, daemon_set, RolloutReason::TimedOut, message)
        }
    }
}

/// The canary's pod is there: it must be ready, and stay so.
fn judge(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>, pod: &Pod, health: &Health) -> Standing {
    if desk.record.pod.as_ref() != Some(&pod.uid) {
        desk.record.pod = Some(pod.uid.clone());
        desk.record.ready_at = None;
    }
    match health {
        Health::Ready => soak(desk, daemon_set, census, pod),
        Health::NotReady(message) | Health::Broken(_, message) => unready(desk, daemon_set, message.clone()),
    }
}

/// Every restart, and every moment in which it was not ready, begins the soak anew.
fn soak(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>, pod: &Pod) -> Standing {
    let restarts = pod.restarts();
    if desk.record.ready_at.is_none() || desk.record.restarts != restarts {
        desk.recount();
        desk.record.ready_at = Some(whole_seconds(desk.elapsed()));
        desk.record.restarts = restarts;
    }
    let since =
        desk.record.ready_at.map_or(Duration::ZERO, |at| desk.elapsed().saturating_sub(Duration::from_secs(at)));
    let left = desk.settings.soak.saturating_sub(since);
    if left.is_zero() {
        desk.record.trial = false;
        (desk.record.step, desk.record.ready_at, desk.record.restarts) = (1, None, 0);
        desk.record.best = census.healthy();
        desk.restart_clock();
        return expansion::go_on(desk, daemon_set, census);
    }
    desk.look_again(left);
    desk.record.told = Some(pod.uid.clone());
    let message = format!("{} is ready and must stay so for {}", place(pod), short(desk.settings.soak));
    desk.wait(RolloutPhase::Canary, Some(RolloutReason::Soaking), message)
}

/// From when on a pod that does not come is worth a look elsewhere.
const OVERDUE: Duration = Duration::from_secs(30);

/// A pod that cannot even be made, by a quota or a policy, is told by events alone.
fn awaited(desk: &mut Desk<'_>, daemon_set: &DaemonSet, node: &str) -> Standing {
    let message = match desk.elapsed() {
        elapsed if elapsed < OVERDUE => {
            desk.look_again(OVERDUE.saturating_sub(elapsed));
            format!("a new pod on node {node} is awaited")
        }
        _ => format!("no new pod is made on node {node}: the events of the DaemonSet say why"),
    };
    unready(desk, daemon_set, message)
}

/// It is not ready, which it may be for so long, and as long again after it was: a
/// soak may be longer than that.
fn unready(desk: &mut Desk<'_>, daemon_set: &DaemonSet, message: String) -> Standing {
    if desk.record.ready_at.is_some() {
        desk.restart_clock();
    }
    (desk.record.ready_at, desk.record.restarts) = (None, 0);
    let limit = desk.settings.timeout;
    if desk.left(limit).is_none() {
        let was_ready = desk.record.told.is_some() && desk.record.told == desk.record.pod;
        let message = match was_ready {
            true => format!("the canary was ready, and has not been again for {}: {message}", short(limit)),
            false => format!("the canary is not ready within {}: {message}", short(limit)),
        };
        return failure::fail(desk, daemon_set, RolloutReason::TimedOut, message);
    }
    let frozen = daemon_set.strategy.pace == Pace::Frozen;
    desk.wait(RolloutPhase::Canary, frozen.then_some(RolloutReason::Frozen), message)
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
