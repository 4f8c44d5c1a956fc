//! Which template is rolled out, and when that begins, or begins anew.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Standing;
use super::census::{self, Census, Seat};
use super::desk::Desk;
use super::objects::{DaemonSet, Pod};
use super::observation::Observation;
use super::settings::Settings;
use super::trial;
use crate::api::{RolloutPhase, RolloutReason, RolloutRecord};
use crate::clock::Clock as _;

/// What stands there before a new template is written: which nodes are not ready
/// is asked now, since afterwards it may be the template's fault. `None` as long
/// as the DaemonSet controller has not acted on the present spec.
pub fn remember(seen: &Observation, settings: &Settings, mut record: RolloutRecord) -> Option<RolloutRecord> {
    let Some(daemon_set) = seen.daemon_set.as_ref().filter(|daemon_set| !daemon_set.deleting) else {
        return Some(record);
    };
    let hash = daemon_set.newest(&seen.revisions)?;
    record.uid = Some(daemon_set.uid.clone());
    record.revision = Some(hash.to_owned());
    record.template = daemon_set.template;
    record.dead = census::dead_now(seen, daemon_set, None);
    note_nodes(&mut record, seen, daemon_set);
    note_sick(&mut record, seen, daemon_set, None, settings);
    // Whether a canary is owed is for what comes to say.
    record.trial = false;
    // Which pods are of the template that comes is not known yet. Those of the present
    // one that are down have had their chance.
    let is_present = |pod: &Pod| pod.hash.as_deref() == Some(hash);
    record.crashed = census::crashed_so_far(seen, daemon_set, |pod| pod.ready || !is_present(pod));
    Some(record)
}

/// Names of so many nodes are noted: enough to tell a pool that has gone from a
/// template that fits none.
const NOTED: usize = 100;

fn note_nodes(record: &mut RolloutRecord, seen: &Observation, daemon_set: &DaemonSet) {
    let nodes = census::nodes_with_pods(seen, daemon_set);
    record.nodes = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    record.some_nodes = nodes.into_iter().take(NOTED).map(str::to_owned).collect();
}

/// After a rollout that had not ended well it is the new one that has to mend what is
/// sick, but for what was so before that one.
fn note_sick(
    record: &mut RolloutRecord,
    seen: &Observation,
    daemon_set: &DaemonSet,
    hash: Option<&str>,
    settings: &Settings,
) {
    if record.node.is_none() && !record.trial {
        record.sick = census::sick_now(seen, daemon_set, hash, settings);
    }
}

/// There is no DaemonSet to roll out.
pub(super) fn missing(desk: &mut Desk<'_>) -> Standing {
    let deleting = desk.seen.daemon_set.is_some();
    desk.record.settled = false;
    let message = if deleting { "it is being deleted" } else { "it does not exist" };
    desk.wait(RolloutPhase::Started, Some(RolloutReason::Missing), message.to_owned())
}

/// A DaemonSet that was deleted and made again starts without an old template.
pub(super) fn identify(desk: &mut Desk<'_>, daemon_set: &DaemonSet) {
    let known = desk.record.uid.as_ref();
    if known.is_some_and(|uid| *uid != daemon_set.uid) {
        desk.record = RolloutRecord {
            daemon_set: std::mem::take(&mut desk.record.daemon_set),
            component: std::mem::take(&mut desk.record.component),
            guard: desk.record.guard,
            ..RolloutRecord::default()
        };
    }
}

/// Its controller has not acted on the present spec, so nothing can be said of
/// its pods. What stands on record goes on standing there.
pub(super) fn not_observed(desk: &mut Desk<'_>, daemon_set: &DaemonSet, message: &str) -> Standing {
    let standing = Standing::Waiting(format!("DaemonSet {}: {message}", daemon_set.id()));
    desk.record.settled = false;
    desk.stop_clock();
    match desk.record.phase {
        RolloutPhase::Failed => match &desk.record.message {
            Some(message) => Standing::Failed(format!("DaemonSet {}: {message}", daemon_set.id())),
            None => standing,
        },
        RolloutPhase::Started
        | RolloutPhase::Canary
        | RolloutPhase::Increasing
        | RolloutPhase::Waiting
        | RolloutPhase::Successful => standing,
    }
}

/// Whether the newest ControllerRevision is still to be seen: revisions have a
/// watch of their own, which may be late, and until it has caught up the template
/// before looks like the newest one. Its controller knows better: it counts fewer
/// nodes than run that, or as many as run another one. The number of a template is
/// taken down once pods bear out whose it is.
pub(super) fn awaits_revision(desk: &mut Desk<'_>, daemon_set: &DaemonSet, hash: &str) -> bool {
    let is_another = desk.record.template.is_some_and(|known| Some(known) != daemon_set.template);
    let counts = daemon_set.counts;
    if is_another {
        let templates = census::templates(desk.seen, daemon_set);
        let here = templates.get(hash).copied().unwrap_or(0);
        let off = |nodes: i64| (counts.updated - nodes).abs();
        if counts.updated < here || templates.values().any(|there| off(*there) < off(here)) {
            return true;
        }
    }
    if !is_another || counts.updated > 0 || counts.desired == 0 {
        desk.record.template = daemon_set.template;
    }
    false
}

/// What a rollout begins after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// Nothing, or what [`remember`] has put on record.
    First,
    /// One that had ended well.
    Next,
    /// One that had not ended.
    Anew,
}

/// Another template than the one on record: its rollout begins. One that had not
/// ended leaves its canary's node behind, which is tried again first: it may
/// look well for the moment.
pub(super) fn begin(desk: &mut Desk<'_>, daemon_set: &DaemonSet, hash: &str) -> Begun {
    let begun = match desk.record.phase {
        RolloutPhase::Started if desk.record.is_started() => Begun::Anew,
        RolloutPhase::Started => Begun::First,
        RolloutPhase::Successful => Begun::Next,
        RolloutPhase::Canary | RolloutPhase::Increasing | RolloutPhase::Waiting | RolloutPhase::Failed => Begun::Anew,
    };
    let (seen, tries_again) = (desk.seen, trial::chooses(desk, daemon_set));
    let record = &mut desk.record;
    let changed = record.revision.is_some();
    let is_new = |pod: &Pod| pod.hash.as_deref() == Some(hash);
    if begun == Begun::First && record.uid.is_some() {
        let of_new = census::crashed_so_far(seen, daemon_set, is_new);
        record.crashed.retain(|container, _| of_new.contains_key(container));
    } else {
        record.crashed = census::crashed_so_far(seen, daemon_set, |pod| pod.ready && is_new(pod));
    }
    if begun == Begun::Next {
        record.node = None;
    }
    if record.uid.is_none() || begun == Begun::Next {
        // What was dead before the one before, too, is nobody's fault, whatever was made there since.
        let stays_dead = |name: &String| seen.nodes.get(name).is_some_and(|node| !node.ready);
        let before = std::mem::take(&mut record.dead).into_iter().filter(stays_dead);
        let dead: BTreeSet<String> = before.chain(census::dead_now(seen, daemon_set, Some(hash))).collect();
        record.dead = dead.into_iter().collect();
        note_nodes(record, seen, daemon_set);
        note_sick(record, seen, daemon_set, Some(hash), desk.settings);
    }
    record.uid = Some(daemon_set.uid.clone());
    record.revision = Some(hash.to_owned());
    record.template = daemon_set.template;
    record.node = record.node.take().filter(|_| tries_again);
    (record.pod, record.ready_at, record.restarts) = (None, None, 0);
    (record.step, record.best, record.settled) = (0, 0, false);
    let census = Census::of(seen, daemon_set, hash, record, desk.settings);
    let replaces = changed && record.nodes > 0;
    desk.record.trial = desk.steers() && (replaces || census.outdated() > 0 || census.vacant() > 0);
    desk.restart_clock();
    desk.stand(RolloutPhase::Started, None, "");
    begun
}

/// Tells that a rollout begins before anything else is done.
pub(super) fn told(desk: &mut Desk<'_>, begun: Begun) -> Standing {
    desk.look_again(Duration::ZERO);
    let (reason, message) = match begun {
        Begun::First | Begun::Next => (None, "a new template is there"),
        Begun::Anew => {
            let message = "another template came before the rollout had ended, which begins anew";
            (Some(RolloutReason::Superseded), message)
        }
    };
    desk.wait(RolloutPhase::Started, reason, message.to_owned())
}

/// A node that was left out and is back is one like any other: should it fail once
/// more, the new template may be why.
pub(super) fn take_back(desk: &mut Desk<'_>, census: &Census<'_>) {
    let runs_new = |name: &String| census.seat(name).is_some_and(|seat| seat.node.ready && seat.new.is_some());
    let serves = |name: &String| census.seat(name).is_some_and(Seat::serves);
    desk.record.dead.retain(|name| !runs_new(name));
    desk.record.sick.retain(|name| !serves(name));
}

/// Whether nothing has happened since [`remember`]: the engine has not applied
/// what is wanted yet.
pub(super) fn is_awaited(desk: &Desk<'_>) -> bool {
    !desk.moment.released && desk.record.phase == RolloutPhase::Started && !desk.record.is_started()
}

/// Whether the next look may find that it is done. The engine and the DaemonSet are seen
/// by watches of their own, of which the second may be later: then the old template
/// looks like the new one that has come to its end. So it is asked for anew.
pub fn is_about_to_end(record: &RolloutRecord) -> bool {
    record.settled && record.phase != RolloutPhase::Successful
}

/// Another attempt: from the start, with the nodes that are not ready by now left
/// out. A node that proved well is none to begin with. Of one that had not ended well it
/// stays known which nodes were sick before it, and that its canary is still owed.
pub fn again(record: &RolloutRecord) -> RolloutRecord {
    let (daemon_set, component) = (record.daemon_set.clone(), record.component.clone());
    let fresh = RolloutRecord { daemon_set, component, ..RolloutRecord::default() };
    if record.phase == RolloutPhase::Successful {
        return fresh;
    }
    let has_begun = record.revision.is_some();
    RolloutRecord { node: record.node.clone(), sick: record.sick.clone(), trial: has_begun || record.trial, ..fresh }
}
