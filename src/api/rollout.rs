//! `rollouts[]`: DaemonSets that are rolled out behind a canary.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::meta::Time;

/// Public phase of a DaemonSet rollout, named as KubeVirt names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RolloutPhase {
    /// The new template is there, or awaited; no pod is judged yet.
    #[default]
    Started,
    /// One pod is being tried.
    Canary,
    /// The budget is being raised.
    Increasing,
    /// Nodes are being updated within the budget.
    Waiting,
    /// Every node runs the new template and the budget is back at 1.
    Successful,
    /// The rollout stopped.
    Failed,
}

impl RolloutPhase {
    /// The stable text of the phase.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Canary => "canary",
            Self::Increasing => "increasing",
            Self::Waiting => "waiting",
            Self::Successful => "successful",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for RolloutPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a rollout is doing in its phase, or why it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RolloutReason {
    /// There is no such DaemonSet, or it is being deleted.
    Missing,
    /// Another template came before the rollout had ended: it begins anew.
    Superseded,
    /// No pod dies while the canary is being tried.
    Frozen,
    /// The canary is ready and must stay so for a while.
    Soaking,
    /// Nothing of an old template is left; the last pods are becoming ready.
    Starting,
    /// Everything is as it should be, and is looked at once more.
    Settling,
    /// The Package is suspended, its spec cannot be used, or another DaemonSet of the
    /// component has failed: no further pod dies.
    Paused,
    /// No node is to run it.
    NoNodes,
    /// It is done but for nodes that were not ready before it began.
    NodesExcluded,
    /// A container of a new pod crashed too often.
    Crashing,
    /// An image of a new pod cannot be had.
    ImageUnavailable,
    /// A container of a new pod cannot be started.
    CannotStart,
    /// The DaemonSet lacks an annotation that `matchAnnotations` names.
    AnnotationMissing,
    /// The canary was not ready in time.
    TimedOut,
    /// No further node was updated in time.
    NoProgress,
    /// Something else wrote its own value over that of Windlass.
    GuardMismatch,
    /// A write of Windlass is refused.
    Refused,
}

/// What keeps the first step of a rollout small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RolloutGuard {
    /// The admission policy for Strict: a new template arrives frozen.
    AdmissionStrict,
    /// The admission policy for Compat: a new template arrives with a budget of 1.
    AdmissionCompat,
    /// What the engine renders: the budget of 1 that the release states or keeps.
    Rendered,
    /// Nothing: somebody else writes the DaemonSet, and it is only observed.
    Observed,
    /// Nothing any more: the admission policy was removed while it was under way.
    Unguarded,
}

/// A DaemonSet rollout as a Package shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// `<namespace>/<name>` of the DaemonSet.
    pub daemon_set: String,
    /// Phase of the rollout.
    pub phase: RolloutPhase,
    /// What it is doing in its phase, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<RolloutReason>,
    /// Which guard is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<RolloutGuard>,
    /// Pods that may be unavailable now, as the DaemonSet has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Nodes that run the new template.
    #[serde(default)]
    pub updated: i64,
    /// Nodes that run the new template and are ready.
    #[serde(default)]
    pub ready: i64,
    /// Nodes that should run it.
    #[serde(default)]
    pub desired: i64,
    /// Node of the canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far the rollout of one DaemonSet got, in the record of a revision. What
/// is not here is derived from the live objects each time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutRecord {
    /// `<namespace>/<name>` of the DaemonSet.
    pub daemon_set: String,
    /// Component whose release has it.
    pub component: String,
    /// Phase of the rollout.
    #[serde(default)]
    pub phase: RolloutPhase,
    /// What it is doing in its phase, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<RolloutReason>,
    /// Which guard is active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<RolloutGuard>,
    /// uid of the DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// `controller-revision-hash` of what is rolled out; absent before it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Number of the template that is rolled out, as the DaemonSet has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<i64>,
    /// Nodes that had a pod before it began.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes: i64,
    /// Some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub some_nodes: Vec<String>,
    /// Nodes that were not ready before it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000))]
    pub dead: Vec<String>,
    /// Living nodes without a ready pod before it began; none where they were more
    /// than the first step admits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000))]
    pub sick: Vec<String>,
    /// Crashes of containers before it began, by `<uid of the pod>/<container>`:
    /// they are not its fault.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub crashed: BTreeMap<String, u32>,
    /// Node of the canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// uid of the pod on that node: the old one until it was asked to go, then
    /// the canary itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Reading of the clock when the canary was first seen ready without a break.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<u64>,
    /// Restarts the canary had by then.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub restarts: u32,
    /// uid of the canary that was last told to be ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
    /// Whether the canary is being tried, or still to be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trial: bool,
    /// Position of the present step, from 1; 0 before the first.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub step: u32,
    /// Most nodes that were ready with the new template at once: progress is more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub best: i64,
    /// Whether everything was seen as it should be once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// Pods that may be unavailable, as the DaemonSet has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// Nodes that run the new template.
    #[serde(default)]
    pub updated: i64,
    /// Nodes that run the new template and are ready.
    #[serde(default)]
    pub ready: i64,
    /// Nodes that should run it.
    #[serde(default)]
    pub desired: i64,
    /// When what it is doing began, or last made progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Seconds counted since then up to `countedAt`: not those in which Windlass
    /// was stopped or the rollout paused.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub active_seconds: u64,
    /// Up to when time was counted; absent while the clock stands.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "to_the_millisecond")]
    pub counted_at: Option<Time>,
    /// What is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RolloutRecord {
    /// What a Package shows of it.
    pub fn status(&self) -> RolloutStatus {
        RolloutStatus {
            daemon_set: self.daemon_set.clone(),
            phase: self.phase,
            reason: self.reason,
            guard: self.guard,
            budget: self.budget.clone(),
            updated: self.updated,
            ready: self.ready,
            desired: self.desired,
            node: self.node.clone(),
            message: self.message.clone(),
        }
    }
}

/// Cut off to a second, as times are written otherwise, a soak would be up to a
/// second too short.
fn to_the_millisecond<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = time.as_ref().map(|time| {
        let whole = jiff::Timestamp::from_millisecond(time.0.as_millisecond()).unwrap_or(time.0);
        whole.to_string()
    });
    text.serialize(serializer)
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

fn is_zero_u64(value: &u64) -> bool {
    *value == 0
}
