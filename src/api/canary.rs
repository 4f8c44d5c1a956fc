//! `canary`: how DaemonSets of a component are rolled out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rolls DaemonSets out behind a canary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// Names of the DaemonSets. Default: all of the component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    pub daemon_sets: Vec<String>,
    /// Budgets after the canary, in order: numbers of pods or shares. Default `["10%"]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 16),
        inner(length(min = 1, max = 8), regex(pattern = r"^([1-9][0-9]*|[1-9][0-9]?%|100%)$"))
    )]
    pub steps: Option<Vec<String>>,
    /// How long the canary must stay healthy before the rollout goes on. Default `60s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub soak: Option<String>,
    /// Time the canary has to become ready. Default `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<String>,
    /// Time without a further updated node that fails the rollout. Default `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub progress_deadline: Option<String>,
    /// Restarts of one new pod that are forgiven. Default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_restarts: Option<u32>,
    /// What a failed canary leaves behind where the package is not rolled back. Default `Hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<CanaryFailure>,
    /// Whether nodes that were not ready before the rollout count. Default `Exclude`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready_nodes: Option<UnreadyNodes>,
    /// Whether a pod may die before Windlass says so. Default `Strict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<RolloutMode>,
    /// Labels of the nodes a canary may be chosen from. Default: all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Pod annotations that must equal the DaemonSet's for a pod to count as updated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 317)))]
    pub match_annotations: Vec<String>,
}

/// What a failed canary leaves behind: `Hold` the smallest budget, `Freeze` no further pod that
/// dies, `Rollback` the same as `Hold`. Whether the package is rolled back is said by
/// `rollback.safe` alone. Default `Hold`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CanaryFailure {
    /// Leave the budget at its smallest.
    Hold,
    /// Let no further pod die.
    Freeze,
    /// The same as `Hold`: a package is rolled back wherever its author allows that.
    Rollback,
}

/// Nodes that were not ready before, or whose pod was not: `Exclude` adds them to the budget and
/// does not wait for them, `Block` counts them like any other. Default `Exclude`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnreadyNodes {
    /// They are added to the budget and do not hold the rollout up.
    Exclude,
    /// They count like any other node.
    Block,
}

/// Whether a pod may die before Windlass says so: with `Strict` none does until Windlass deletes
/// the chosen one, with `Compat` the first dies with the change of the template. Default `Strict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutMode {
    /// No pod dies until Windlass deletes the chosen one.
    Strict,
    /// The first pod dies with the change of the template.
    Compat,
}
