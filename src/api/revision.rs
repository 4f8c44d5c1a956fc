//! `PackageRevision`: what was decided for one wanted state, and how far it got.

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::canary::Canary;
use super::install::ReadyWhen;
use super::meta::{Time, free_object};
use super::package::Engine;
use super::reason::Reason;
use super::rollout::RolloutRecord;

/// One wanted state of a Package, complete: restarts, rollback and uninstall
/// need neither Git nor charts nor CEL beyond it. Its stored manifests **are**
/// the desired state. Immutable.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "PackageRevision",
    namespaced,
    status = "PackageRevisionStatus",
    derive = "PartialEq",
    shortname = "wpkgrev",
    category = "windlass",
    doc = "A PackageRevision records what was decided for one wanted state of a Package, and how far it got.",
    printcolumn(name = "Package", type_ = "string", json_path = ".spec.package"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("a PackageRevision is never changed"))]
pub struct PackageRevisionSpec {
    /// Name of the Package.
    #[schemars(length(min = 1, max = 63))]
    pub package: String,
    /// Number, rising by one and never reused.
    #[schemars(range(min = 1))]
    pub number: u64,
    /// Wanted version.
    #[schemars(length(max = 64))]
    pub version: String,
    /// Version that had last succeeded; empty on a first install.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub from_version: String,
    /// Number of the revision that had last succeeded; absent on a first install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// Whether the version before may run again.
    #[serde(default)]
    pub rollback: RevisionRollback,
    /// Time one component's turn may take.
    #[schemars(length(max = 32))]
    pub timeout: String,
    /// Failed attempts after the first that are forgiven within the timeout.
    pub retries: u32,
    /// Commit the Package came from; information only, empty when unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub commit: String,
    /// Engine of the children.
    pub engine: Engine,
    /// Hooks in the order they run, then the components in the order they move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub components: Vec<RecordedComponent>,
}

/// Rollback safety as the author of this version stated it. A later edit of
/// the Package does not change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionRollback {
    /// Whether, once this revision moved something, the version before may run again.
    #[serde(default)]
    pub safe: bool,
    /// Range of versions that may be returned to; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub to: String,
}

/// One component of a revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordedComponent {
    /// Name of the component.
    #[schemars(length(min = 1, max = 53))]
    pub name: String,
    /// Position in the apply order, from 0.
    pub wave: u32,
    /// Digest of what was rendered.
    #[schemars(length(max = 71))]
    pub digest: String,
    /// Identity of the release.
    pub release: Claim,
    /// Name of the chart: another name is a replacement.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub chart_name: String,
    /// Version of the chart; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub chart_version: String,
    /// Digest that the chart must have; empty if none was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 71))]
    pub chart_digest: String,
    /// Components that are verified first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub depends_on: Vec<String>,
    /// The objects exactly as applied; the release itself is the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "manifests_schema")]
    pub manifests: Vec<Map<String, Value>>,
    /// Objects that must be in a given state before the component counts as ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub ready_when: Vec<ReadyWhen>,
    /// Canary of the component's DaemonSets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// True for a PreUpgrade hook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hook: bool,
    /// Whether an uninstall also removes CRDs, volume claims and namespaces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_data: bool,
    /// Whether it takes the place of a release with another identity, which is
    /// uninstalled first. There is no way back from that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
    /// Whether it stands for a release that was taken over and has not moved
    /// since: its manifests keep how that was rendered, installed and upgraded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
}

impl RecordedComponent {
    /// Digest that the chart must have, if one was asked for.
    pub fn chart_digest(&self) -> Option<&str> {
        Some(self.chart_digest.as_str()).filter(|digest| !digest.is_empty())
    }
}

fn manifests_schema(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "maxItems": 16, "items": free_object(generator)})
}

/// The identity of a Helm release: what runs, whoever describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Namespace of Helm's own records.
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: String,
    /// Namespace of the release's objects.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the release.
    #[schemars(length(min = 1, max = 53))]
    pub name: String,
}

/// Where a revision stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Recorded; nothing has started.
    #[default]
    Pending,
    /// Charts are being fetched and checked.
    Preparing,
    /// Hooks run, components move.
    Applying,
    /// Every component was verified.
    Succeeded,
    /// It failed and was left as it stands.
    Failed,
    /// The revision before is being restored.
    RollingBack,
    /// The revision before runs again.
    RolledBack,
    /// The revision before could not be restored.
    RollbackFailed,
    /// A later revision took over before it ended.
    Superseded,
}

/// How far a revision got: the machine's record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageRevisionStatus {
    /// Where the revision stands.
    #[serde(default)]
    pub phase: Phase,
    /// Why it stands there; while it is tried again, and once a later one took over, what had
    /// failed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Whether every component was verified once. Stays true when the revision
    /// is rolled back by hand later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub succeeded: bool,
    /// The rollback under way, or the last one that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackRecord>,
    /// What happened to each component that came into question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentRecord>,
    /// What became of the hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookRecord>,
    /// DaemonSet rollouts of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<RolloutRecord>,
    /// Fingerprint of the settings that the children have: those that are kept
    /// up to date in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
    /// Retry token last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_retry: Option<String>,
    /// Rollback request last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_rollback: Option<String>,
    /// Releases that other Packages still held when a later spec of this one
    /// asked for them: a rollback leaves them running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherits: Vec<Claim>,
    /// What the Package looked like when its deletion was first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<DeletionRecord>,
}

/// A rollback of the package: from whatever this revision did, to another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollbackRecord {
    /// Number of the revision that is returned to.
    pub to: u64,
    /// The request, for a rollback that somebody asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// Why the package is rolled back.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
    /// When the earlier revision ran again: nothing that was done before that
    /// counts any more, also once the upgrade is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// When the check at the end began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_began: Option<Time>,
    /// Seconds of the check counted up to `countedAt`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_seconds: u64,
    /// Up to when time was counted; absent while the clock stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<Time>,
}

/// Where one component stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ComponentState {
    /// Its turn has not come.
    #[default]
    Waiting,
    /// Its new spec is written; the engine has not begun.
    Queued,
    /// The engine is at work.
    Progressing,
    /// The release is ready; `readyWhen` or the canary is awaited.
    Verifying,
    /// It runs the wanted digest and is ready.
    Verified,
    /// It failed.
    Failed,
    /// Somebody suspended its child; the clock stands.
    Suspended,
    /// Its former manifests were written back; the release is not ready yet.
    Restoring,
    /// Its former release is ready again.
    Restored,
    /// It is being uninstalled.
    Removing,
    /// It is gone.
    Removed,
}

/// What happened to one component in a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentRecord {
    /// Name of the component.
    pub name: String,
    /// Where it stands.
    #[serde(default)]
    pub state: ComponentState,
    /// When its turn came and it was queued with the engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Time>,
    /// When its clock started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_began: Option<Time>,
    /// Seconds of its turn counted up to `countedAt`: not those in which
    /// Windlass was stopped or the Package or child suspended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_seconds: u64,
    /// Up to when time was counted; absent while the clock stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<Time>,
    /// When its new spec was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Time>,
    /// When its release was first seen ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_ready_at: Option<Time>,
    /// What `readyWhen` showed before the write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<BeforeRead>,
    /// When it was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified_at: Option<Time>,
    /// Failed attempts seen in this turn.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub attempts: u32,
    /// What the engine said of the last of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 2048))]
    pub last_failure: String,
    /// Flux: failed attempts that were counted before its turn.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub failures_before: u32,
    /// Whether this revision wrote a new spec for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
    /// Objects its release had when it was asked to go; until they are gone it
    /// is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    /// Argo CD: token of the operation asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Argo CD: the operation with `token` was seen Succeeded for the wanted source.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub token_succeeded: bool,
    /// Argo CD: the operation with `token` was seen failed, and is counted in `attempts`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub token_failed: bool,
    /// Argo CD: uid of the Application on which `token` was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_uid: Option<String>,
    /// Argo CD: after that success a refresh was seen asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refresh_seen: bool,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

/// What one `readyWhen` entry showed before a component's write (or, if it does
/// not move, before the revision's first write upstream of it), and what was
/// seen since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BeforeRead {
    /// Position of the entry in `readyWhen`, from 0.
    pub entry: u32,
    /// uid of the object; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Status of the condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `lastTransitionTime` of the condition, compared as text only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Whether the entry held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub value: bool,
    /// Whether its `failed` expression held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether the entry was seen not holding since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lapsed: bool,
    /// Whether `failed` was seen not holding since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

/// How a hook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HookOutcome {
    /// It was started and has not ended.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed, or did not end in time.
    Failed,
    /// It failed, and another attempt was asked for, which has not begun.
    ToRepeat,
}

/// What became of a hook in a revision. With the revision's base, its version
/// and the hook's digest this is the outcome of one move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRecord {
    /// Name of the component.
    pub name: String,
    /// Version that ran.
    pub from: String,
    /// Version wanted.
    pub to: String,
    /// How it ended.
    pub outcome: HookOutcome,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// Seconds of its run counted up to `countedAt`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_seconds: u64,
    /// Up to when time was counted; absent while the clock stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<Time>,
    /// When its end was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// uid of the object that runs it, once it was seen: without it the run is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What a Package looked like when its deletion was first seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionRecord {
    /// `metadata.generation` of the Package.
    pub generation: i64,
    /// Who had applied it, as the engine marks it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner_mark: String,
}
