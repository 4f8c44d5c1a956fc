//! Which template is rolled out, and when that begins, or begins anew.

use std::time::Duration;

use super::Standing;
use super::census::{self, Census};
use super::desk::Desk;
use super::objects::DaemonSet;
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
    record.dead = census::dead_now(seen, daemon_set, None, settings);
    record.nodes = census::nodes_with_pods(seen, daemon_set);
    // Which pods are of the template that comes is not known yet.
    record.crashed = census::crashed_so_far(seen, daemon_set, None);
    Some(record)
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
/// watch of their own, which may be late, and until it has caught up the old
/// template looks like the newest one, running everywhere. Its controller knows
/// better. The number of a template is taken down once pods bear out whose it is.
pub(super) fn awaits_revision(desk: &mut Desk<'_>, daemon_set: &DaemonSet, census: &Census<'_>) -> bool {
    let is_another = desk.record.template.is_some_and(|known| Some(known) != daemon_set.template);
    let counts = daemon_set.counts;
    if is_another && counts.updated < census.updated_among(|node| daemon_set.tolerates(node)) {
        return true;
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
    let so_far = census::crashed_so_far(seen, daemon_set, Some(hash));
    if begun == Begun::First && record.uid.is_some() {
        record.crashed.retain(|container, _| so_far.contains_key(container));
    } else {
        record.crashed = so_far;
    }
    if record.uid.is_none() || begun == Begun::Next {
        record.dead = census::dead_now(seen, daemon_set, Some(hash), desk.settings);
        record.nodes = census::nodes_with_pods(seen, daemon_set);
        record.node = None;
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

/// Whether nothing has happened since [`remember`]: the engine has not applied
/// what is wanted yet.
pub(super) fn is_awaited(desk: &Desk<'_>) -> bool {
    !desk.moment.released && desk.record.phase == RolloutPhase::Started && !desk.record.is_started()
}

/// Another attempt at what had failed: from the start, with the nodes that are
/// not ready by now left out.
pub fn again(record: &RolloutRecord) -> RolloutRecord {
    RolloutRecord {
        daemon_set: record.daemon_set.clone(),
        component: record.component.clone(),
        node: record.node.clone(),
        ..RolloutRecord::default()
    }
}
