//! How and where a release of a component is installed.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How and where a release is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Install {
    /// Namespace of the release. It is created if it is not there. Default: the Package's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// Name of the Helm release. It and `namespace` are the identity of what runs. Default: the
    /// component's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub release_name: Option<String>,
    /// Whether the namespace is labelled for privileged pods, which needs a right on Flux. Takes
    /// effect with the component's next move. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// Components that must be verified before this one moves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 53)))]
    pub depends_on: Vec<String>,
    /// `PreUpgrade` makes the component a hook: a one-shot release before an upgrade of version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Allows another namespace, release name or chart name: the old release is uninstalled, then
    /// the new one installed. There is no rollback across that. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Whether an uninstall also removes volume claims and, on Flux, CustomResourceDefinitions that
    /// the chart templates. Namespaces are never removed. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_data: Option<bool>,
    /// What an upgrade does to the chart's CRDs. Default `CreateReplace`.
    #[serde(rename = "upgradeCRDs", skip_serializing_if = "Option::is_none")]
    pub upgrade_crds: Option<UpgradeCrds>,
    /// Objects that must be in a given state before the component is verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub ready_when: Vec<ReadyWhen>,
    /// Health of custom resources inside the release, passed to Flux (2.8 or newer); ignored on
    /// Argo CD.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub health_check_exprs: Vec<HealthCheckExpr>,
    /// Fields that others own, left alone by drift correction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub ignore: Vec<DriftIgnore>,
}

/// Makes the component a hook: a release that runs once when the version changes, before anything
/// else moves. A hook has no `dependsOn` and no `canary`, and `readyWhen` is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Before anything moves, when the version changes.
    PreUpgrade,
}

/// What an upgrade does to the CRDs in the chart's `crds/`. On Argo CD there is no `Create`, and
/// `Skip` leaves them out of the first install too. Default `CreateReplace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeCrds {
    /// Leave them.
    Skip,
    /// Create the new ones.
    Create,
    /// Create the new ones and replace the others.
    CreateReplace,
}

/// One object that must be in a given state.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.condition) != has(self.expr)").message("a readyWhen entry has exactly one of condition and expr"),
    validation = Rule::new("has(self.condition) || !has(self.status)").message("status goes with condition"),
)]
pub struct ReadyWhen {
    /// `apiVersion` of the object.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub api_version: String,
    /// Kind of the object. A kind that the cluster does not know yet is awaited.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._:@-]*[A-Za-z0-9])?$"))]
    pub name: String,
    /// Namespace of the object; not looked at for kinds without a namespace. Default: the
    /// component's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// Type of a condition in `status.conditions` that must have `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub condition: Option<String>,
    /// Status that the condition must have. Default `True`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub status: Option<String>,
    /// CEL that must be true. Knows `object`, `version` (of the Package, as wanted, and not of the
    /// chart) and `fromVersion` (of what runs; empty on a first install), both without a leading
    /// `v`. Of a Secret it sees the keys, never what they hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub expr: Option<String>,
    /// How long it must hold where nothing else shows that it is not left over from before. Default
    /// `60s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub settle: Option<String>,
    /// CEL that fails the component at once when it is true and is not left over from before.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub failed: Option<String>,
}

/// Flux's health check of a custom resource inside the release (helm-controller 1.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckExpr {
    /// `apiVersion` of the objects, which must be part of the release.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub api_version: String,
    /// Kind of the objects. Default: every kind of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub kind: Option<String>,
    /// CEL that is true for a healthy object. Flux's own variables: `status`, `metadata`, …
    #[schemars(length(min = 1, max = 4096))]
    pub current: String,
    /// CEL that is true for an object at work. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub in_progress: Option<String>,
    /// CEL that is true for a failed object. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub failed: Option<String>,
}

/// Fields of objects that somebody else owns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftIgnore {
    /// API group of the objects. Default: the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"))]
    pub group: Option<String>,
    /// Kind of the objects.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z][A-Za-z0-9]*$"))]
    pub kind: String,
    /// Name of the object. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._:@-]*[A-Za-z0-9])?$"))]
    pub name: Option<String>,
    /// Namespace of the object. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// JSON pointers of the fields.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 1024), regex(pattern = r"^/")))]
    pub json_pointers: Vec<String>,
}
