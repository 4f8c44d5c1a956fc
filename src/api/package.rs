//! `Package`: what an author writes.

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::canary::Canary;
use super::install::Install;
use super::status::PackageStatus;

/// Wanted state of one piece of software that consists of several releases.
// Optional fields are kept as the author wrote them; their defaults are in
// `crate::package::definition`.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "Package",
    namespaced,
    status = "PackageStatus",
    derive = "PartialEq",
    shortname = "wpkg",
    category = "windlass",
    doc = "A Package upgrades software made of several Helm releases, in order.",
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name of a Package has at most 63 characters"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.summary"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.revision", priority = 1),
    printcolumn(name = "Engine", type_ = "string", json_path = ".status.engine", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(oldSelf.engine) || (has(self.engine) && self.engine == oldSelf.engine)")
        .message("engine cannot be changed once it is set"),
    validation = Rule::new("!has(self.engine) || self.engine != 'argo' || !has(self.components) || self.components.all(c, !has(c.valuesFrom) || c.valuesFrom.size() == 0)")
        .message("valuesFrom is not available on engine argo"),
    validation = Rule::new("!has(self.engine) || self.engine != 'argo' || !has(self.components) || self.components.all(c, !has(c.install) || !has(c.install.upgradeCRDs) || c.install.upgradeCRDs != 'Create')")
        .message("upgradeCRDs Create is not available on engine argo: use Skip or CreateReplace"),
    validation = Rule::new("!has(self.engine) || self.engine != 'argo' || !has(self.components) || self.components.all(c, !has(c.chart) || !has(c.chart.digest))")
        .message("chart.digest is not available on engine argo"),
    validation = Rule::new("!has(self.engine) || self.engine != 'flux' || !has(self.components) || self.components.all(c, !has(c.path) || has(c.chartVersion))")
        .message("chartVersion is required beside path on engine flux"),
    validation = Rule::new("!has(self.engine) || self.engine != 'flux' || has(self.sourceRef) || !has(self.components) || self.components.all(c, !has(c.path))")
        .message("sourceRef is required for components with path on engine flux"),
)]
pub struct PackageSpec {
    /// Version of the whole; a leading `v` is accepted. A changed version runs hooks, and
    /// `upgrade.from` and `rollback` are about it. Raise it with every change of what is installed.
    #[schemars(
        length(max = 64),
        regex(pattern = r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
    )]
    pub version: String,
    /// Who applies the releases. Cannot be changed once set; revision 1 records it for good.
    /// Default: the controller's `--engine`, else the only engine installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "engine_schema")]
    pub engine: Option<Engine>,
    /// No moves while true, and clocks stand. Children stay as they are, and the engine goes on
    /// with them. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// ServiceAccount of the Package's namespace that Windlass reads `readyWhen` as, and on Flux
    /// also installs the releases as. Default: the controller's `--default-service-account`, else
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,
    /// Flux source of the components with `path`; required for them on Flux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceRef>,
    /// What must be there first: other Packages of the namespace, a Kubernetes version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub requires: Vec<Requirement>,
    /// How an upgrade is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// Whether, once this version ran, the version before may run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,
    /// What deleting the Package does to its releases. Default `Uninstall`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// How many revisions are kept beside the newest and the one that runs. Default 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub revision_history_limit: Option<u32>,
    /// The releases, in any order; `install.dependsOn` orders them. Names are unique. Without any
    /// the Package is a group: only its requirements count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".into()]),
        // The list of one binds the names, so that they are collected once: else
        // the largest Packages exceed what one rule may cost an API server.
        validation = Rule::new("[self.filter(x, !has(x.install) || !has(x.install.phase)).map(x, x.name)].all(names, self.all(c, !has(c.install) || !has(c.install.dependsOn) || c.install.dependsOn.all(d, d != c.name && d in names)))")
            .message("dependsOn must name another component of this Package that is no hook"),
    )]
    pub components: Vec<Component>,
}

/// The engine that applies releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Flux: one HelmRelease per component.
    Flux,
    /// Argo CD: one Application per component.
    Argo,
}

/// The words alone, so that the description of the field is kept: kube puts that
/// of an enum's type in the place of an optional field's.
fn engine_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": [Engine::Flux.as_str(), Engine::Argo.as_str()]})
}

impl Engine {
    /// The name used in specs and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flux => "flux",
            Self::Argo => "argo",
        }
    }
}

/// A Flux source in the Package's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRef {
    /// Kind of the source.
    pub kind: SourceKind,
    /// Name of the source.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Kinds a [`SourceRef`] may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SourceKind {
    /// `source.toolkit.fluxcd.io` GitRepository.
    GitRepository,
}

/// One thing that must be there before a revision starts.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = Rule::new("has(self.package) != has(self.kubernetes)").message("a requirement names exactly one of package and kubernetes"),
    validation = Rule::new("!has(self.kubernetes) || (!has(self.version) && !has(self.optional))")
        .message("version and optional go with package"),
)]
pub struct Requirement {
    /// Name of a Package in the same namespace. A revision starts only when that has succeeded and
    /// is not moving.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub package: Option<String>,
    /// Range that the version which last succeeded must be in. Leave the old version out of it, or
    /// it orders nothing. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
    /// Whether it counts only if that Package exists. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// Range that the cluster's version must be in. What a distribution appends to it (`-gke.100`,
    /// `+k3s1`) does not count. The controller asks for it every five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub kubernetes: Option<String>,
}

/// How an upgrade is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Time of one component's turn, and of one hook. Also Helm's own timeout on Flux. Default
    /// `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<String>,
    /// Failed attempts after the first that are forgiven within the timeout. Default 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// Range of versions that may be upgraded to this one. Others are refused:
    /// `UpgradePathNotAllowed`. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub from: Option<String>,
    /// Lets an older version follow a newer one, and the version that runs return after an unsafe
    /// attempt. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_downgrade: Option<bool>,
}

/// Whether the version before may run again once this one ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rollback {
    /// Whether, once **this** version has run, the version before may run again. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<bool>,
    /// Range of versions that may be returned to. Default: what `upgrade.from` admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub to: Option<String>,
}

/// What deleting the Package does: uninstall its releases, dependents first, or leave them running,
/// to be taken over again. Default `Uninstall`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Releases are uninstalled, dependents first.
    Uninstall,
    /// Releases stay, to be taken over again.
    Orphan,
}

/// One Helm release of a Package.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.chart) != has(self.path)").message("a component has exactly one of chart and path"),
    validation = Rule::new("has(self.path) || (!has(self.chartVersion) && (!has(self.valuesFiles) || self.valuesFiles.size() == 0) && !has(self.source))")
        .message("chartVersion, valuesFiles and source go with path"),
    validation = Rule::new("!has(self.install) || !has(self.install.phase) || !has(self.install.dependsOn) || self.install.dependsOn.size() == 0")
        .message("a hook has no dependsOn: hooks run in the order they are written"),
    validation = Rule::new("!has(self.canary) || !has(self.install) || !has(self.install.phase)")
        .message("a hook has no canary: it runs once and leaves nothing to roll out"),
    validation = Rule::new(r"!has(self.path) || !self.path.matches('(^/|(^|/)\\.\\.(/|$)|\\\\)')")
        .message("path stays below the root of the source: no leading slash, no .., no backslash"),
    validation = Rule::new(r"!has(self.valuesFiles) || self.valuesFiles.all(f, !f.matches('(^/|(^|/)\\.\\.(/|$)|\\\\)'))")
        .message("valuesFiles stay below the chart directory: no leading slash, no .., no backslash"),
)]
pub struct Component {
    /// What the component is known by. The child is `<package>-<name>`; beyond 63 characters it is
    /// cut and ends in a hash.
    #[schemars(length(min = 1, max = 53), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Chart directory, relative to the root of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// Version in the Chart.yaml at `path`. Required on Flux, where it shows that the right commit
    /// is there; raise it with every change of the chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 64),
        regex(pattern = r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
    )]
    pub chart_version: Option<String>,
    /// Chart of a repository, at an exact version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    /// Values files in the chart directory; `path` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 512)))]
    pub values_files: Vec<String>,
    /// Helm values. `null` takes a chart's default away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::meta::free_object")]
    pub values: Option<Map<String, Value>>,
    /// Values from ConfigMaps and Secrets of the Package's namespace; Flux only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub values_from: Vec<ValuesFrom>,
    /// Where the files at `path` come from. Written by the Argo CD plugin; refused in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ComponentSource>,
    /// How and where the release is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,
    /// How DaemonSets of the release are rolled out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// A chart of a Helm or OCI repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chart {
    /// `https://…` or `http://…` of a Helm repository, or `oci://…` of the repository that holds
    /// the chart.
    #[schemars(length(max = 1024), regex(pattern = r"^(https?://[^\s@/]+(/[^\s]*)?|oci://[^\s@/]+(/[^\s@:]*)?)$"))]
    pub repository: String,
    /// Name of the chart; in an OCI repository also a path. Another name is another release: see
    /// `install.replace`.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
    )]
    pub name: String,
    /// Exact version of the chart.
    #[schemars(
        length(max = 64),
        regex(pattern = r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
    )]
    pub version: String,
    /// Digest of the chart archive (http) or of the manifest (oci), compared before anything moves;
    /// Flux only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
    /// Secret with the repository's credentials, in the form Flux expects; Flux only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
}

/// Name of an object in the Package's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalReference {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A ConfigMap or Secret that values are read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesFrom {
    /// Kind of the object.
    pub kind: ValuesFromKind,
    /// Name of the object. Let it end in a hash of the content: a changed content under the same name
    /// upgrades the release at once, outside of any turn.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key that holds the values. Default `values.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub values_key: Option<String>,
    /// Path in the values that the content is put at. Default: the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 250), regex(pattern = r"^([a-zA-Z0-9_.\\/-]|\[[0-9]{1,5}\])+$"))]
    pub target_path: Option<String>,
    /// Whether the object may be absent. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Kinds that values can be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValuesFromKind {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

/// Where the files of a `path` component come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSource {
    /// URL of the Git repository.
    #[serde(rename = "repoURL")]
    #[schemars(length(min = 1, max = 2048))]
    pub repo_url: String,
    /// The commit.
    #[schemars(length(min = 1, max = 256))]
    pub revision: String,
    /// Digest of the chart directory: a commit that leaves it alone moves nothing. Default:
    /// `chartVersion` stands in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub content_digest: Option<String>,
    /// Version in the Chart.yaml.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub chart_version: Option<String>,
}
