//! `Package.status`: a view that can always be derived again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::meta::{Condition, Time};
use super::package::Engine;
use super::revision::ComponentState;
use super::rollout::RolloutStatus;

/// What is known about a Package. Nothing here decides: every field can be
/// derived again from the revisions and the children.
///
/// The schema's default for `observedGeneration` is −1, so that kstatus never
/// takes an object without status for a healthy one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {"observedGeneration": -1}))]
pub struct PackageStatus {
    /// Generation of the spec that all else speaks of; −1 until the controller has seen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` always; `Reconciling` or `Stalled` only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Reason and short message of `Ready`, for the table of kubectl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Version that runs: the one that last succeeded as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What is being, or was last, attempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempted: Option<Attempted>,
    /// Number of the revision that last succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Engine in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Engine>,
    /// The components in apply order; hooks are not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentStatus>,
    /// What this Package waits for outside of itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<Blocker>,
    /// DaemonSet rollouts under way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutStatus>,
    /// Last retry token acted on, copied from the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
    /// Last rollback request acted on, copied from the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rollback: Option<String>,
}

/// A version and the revision that stands for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempted {
    /// Version of the newest revision.
    pub version: String,
    /// Number of the newest revision.
    pub revision: u64,
}

/// What one component is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentStatus {
    /// Name of the component.
    pub name: String,
    /// Where it stands.
    pub state: ComponentState,
    /// Chart version that it is to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Since when it is in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// What it waits for: the object, the expectation and what was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An object outside of the Package that holds it up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Blocker {
    /// Kind of the object that it waits for.
    pub kind: String,
    /// Namespace of the object; empty for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Why it blocks.
    pub reason: String,
}
