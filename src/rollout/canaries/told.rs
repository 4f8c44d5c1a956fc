//! What a change of a rollout's record is told as.

use crate::api::{RolloutPhase, RolloutReason, RolloutRecord};
use crate::engine::ObjectKey;
use crate::rollout::decision::{RolloutEvent, RolloutEventReason as Told};
use crate::rollout::work::Work;

/// What a change of the record is told as.
pub fn tell(work: &mut Work<'_>, key: &ObjectKey, before: &RolloutRecord, after: &RolloutRecord) {
    let is_news = before.phase != after.phase || before.reason != after.reason;
    let reason = match (after.phase, after.reason) {
        (RolloutPhase::Failed, _) if before.phase != RolloutPhase::Failed => Told::FailedUpdate,
        (RolloutPhase::Started, Some(RolloutReason::Superseded)) if is_news => Told::RolloutSuperseded,
        (RolloutPhase::Canary, Some(RolloutReason::Soaking)) if before.told != after.told => Told::CanaryReady,
        (RolloutPhase::Canary, _) if before.phase != RolloutPhase::Canary => Told::CanaryStarted,
        (RolloutPhase::Increasing, _) if before.step != after.step || before.phase != after.phase => {
            Told::RolloutExpanding
        }
        (RolloutPhase::Successful, reason) if is_news && is_rollout(before) => match reason {
            Some(RolloutReason::NodesExcluded) => Told::NodesExcluded,
            _ => Told::RolloutCompleted,
        },
        _ => return,
    };
    let name = &after.daemon_set;
    let detail = after.message.as_deref().unwrap_or("every node runs the new template");
    let message = match reason {
        Told::FailedUpdate => format!("daemonSet {} rollout failed: {detail}", key.name),
        Told::CanaryStarted
        | Told::CanaryReady
        | Told::RolloutExpanding
        | Told::RolloutCompleted
        | Told::RolloutSuperseded
        | Told::NodesExcluded => format!("DaemonSet {name}: {detail}"),
    };
    let uid = after.uid.clone().or_else(|| before.uid.clone()).unwrap_or_default();
    work.rollout_events.push(RolloutEvent { daemon_set: key.clone(), uid, reason, message });
}

/// Whether a record is that of a rollout that has begun: the first look at what
/// has run for long is not worth telling.
fn is_rollout(record: &RolloutRecord) -> bool {
    record.revision.is_some()
}
