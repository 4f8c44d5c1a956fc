//! Everything a decision is made from: one consistent look at the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::live::Live;
use super::rights::Right;
use crate::api::wellknown::FINALIZER_REVISION;
use crate::api::{
    DeletionPolicy, Engine, PackageRevision, PackageRevisionSpec, PackageRevisionStatus, PackageStatus, RevisionPhase,
};
use crate::canary::Sight;
use crate::canary::guard::Policies;
use crate::engine::ObjectKey;
use crate::package::definition::Definition;
use crate::package::names::{ObjectName, PackageName};
use crate::package::range::Range;
use crate::package::version::Version;
use crate::package::violation::Violation;
use crate::ready::evidence::Lookup;

/// What was seen of one Package and all it touches.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The Package.
    pub package: PackageView,
    /// Its revisions, numbers rising.
    pub revisions: Vec<RevisionView>,
    /// Revisions that this program cannot read, and why: another version wrote
    /// them, or somebody by hand.
    pub unreadable: Vec<Unreadable>,
    /// Labelled children, and whatever stands at a name that a child needs.
    pub children: Vec<Live>,
    /// Releases of others, anywhere in the cluster, that may be those that the
    /// spec asks for; looked for when something new is wanted.
    pub others: Vec<Live>,
    /// Flux sources of ours in the namespace, whichever Package they were made for.
    pub sources: Vec<Live>,
    /// Those that children and revisions point at whose Package was deleted and has
    /// left them running.
    pub orphaned_sources: BTreeSet<ObjectKey>,
    /// Objects that [`super::needs()`] asked for.
    pub objects: BTreeMap<ObjectKey, Lookup>,
    /// DaemonSets behind a canary that [`super::needs()`] asked for.
    pub daemon_sets: BTreeMap<ObjectKey, Sight>,
    /// Why the last write to a DaemonSet, by `<namespace>/<name>`, was not made.
    pub refusals: BTreeMap<String, String>,
    /// The canary guard's policies, by namespace of what is installed.
    pub policies: BTreeMap<String, Policies>,
    /// What accounts may do, as far as [`super::needs()`] asked and it is known.
    pub rights: BTreeMap<Right, bool>,
    /// The other Packages. Requirements look at those of the same namespace only.
    pub peers: Vec<OtherPackage>,
    /// Facts about the cluster.
    pub cluster: Cluster,
}

/// The Package itself.
#[derive(Clone, Debug)]
pub struct PackageView {
    /// Name.
    pub name: PackageName,
    /// Namespace.
    pub namespace: String,
    /// uid.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
    /// Generation.
    pub generation: i64,
    /// Whether its deletion has begun.
    pub deleting: bool,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The spec, or the rules it breaks.
    pub definition: Result<Arc<Definition>, Vec<Violation>>,
    /// `spec.serviceAccountName`, readable also where the spec as a whole is not.
    pub service_account: Option<ObjectName>,
    /// `spec.suspend`, readable also where the spec as a whole is not.
    pub suspend: bool,
    /// `spec.deletionPolicy`, readable also where the spec as a whole is not.
    pub deletion_policy: DeletionPolicy,
    /// Status as last written.
    pub status: PackageStatus,
    /// For how long this process has seen no changed spec of it, and no deletion begin.
    pub still_for: Duration,
}

/// One revision.
#[derive(Clone, Debug)]
pub struct RevisionView {
    /// Name of the object.
    pub name: String,
    /// uid.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
    /// Whether its deletion has begun.
    pub deleting: bool,
    /// Whether it carries our finalizer.
    pub held: bool,
    /// What was decided.
    pub spec: Arc<PackageRevisionSpec>,
    /// How far it got.
    pub status: PackageRevisionStatus,
}

/// A revision that this program cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Name of the object.
    pub name: String,
    /// uid.
    pub uid: String,
    /// Whether its deletion has begun.
    pub deleting: bool,
    /// Whether it carries our finalizer.
    pub held: bool,
    /// Which it is, and why it cannot be read.
    pub message: String,
}

impl Snapshot {
    /// The ServiceAccount that the Package names, else the default one.
    pub(crate) fn account(&self) -> Option<&ObjectName> {
        let stated = match &self.package.definition {
            Ok(definition) => definition.service_account.as_ref(),
            Err(_) => self.package.service_account.as_ref(),
        };
        stated.or(self.cluster.default_service_account.as_ref())
    }

    /// Release objects that say they are this Package's.
    pub(crate) fn own_children(&self) -> impl Iterator<Item = &Live> {
        self.children.iter().filter(|child| child.package() == Some(self.package.name.as_str()))
    }
}

impl From<PackageRevision> for RevisionView {
    fn from(revision: PackageRevision) -> Self {
        let metadata = revision.metadata;
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            held: metadata.finalizers.unwrap_or_default().iter().any(|finalizer| finalizer == FINALIZER_REVISION),
            spec: revision.spec.into(),
            status: revision.status.unwrap_or_default(),
        }
    }
}

impl RevisionView {
    /// Number.
    pub fn number(&self) -> u64 {
        self.spec.number
    }

    /// Whether it has started and not ended.
    pub fn is_open(&self) -> bool {
        match self.status.phase {
            RevisionPhase::Pending
            | RevisionPhase::Preparing
            | RevisionPhase::Applying
            | RevisionPhase::RollingBack => true,
            RevisionPhase::Succeeded
            | RevisionPhase::Failed
            | RevisionPhase::RolledBack
            | RevisionPhase::RollbackFailed
            | RevisionPhase::Superseded => false,
        }
    }

    /// Number of the revision that it goes, or went, back to, unless it is tried
    /// again since.
    pub fn way_back(&self) -> Option<u64> {
        let is_back = self.status.phase == RevisionPhase::RolledBack;
        let rollback = self.status.rollback.as_ref().filter(|rollback| is_back || rollback.finished_at.is_none());
        rollback.map(|rollback| rollback.to)
    }

    /// Whether it started a hook or wrote a component.
    pub fn touched_anything(&self) -> bool {
        !self.status.hooks.is_empty() || self.status.components.iter().any(|component| component.moved)
    }
}

/// Another Package, as a decision sees it.
#[derive(Clone, Debug)]
pub struct OtherPackage {
    /// What is known of it.
    pub peer: Arc<Peer>,
    /// For how long this process has seen no changed spec of it.
    pub still_for: Duration,
}

impl std::ops::Deref for OtherPackage {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

/// What other Packages know of a Package.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: PackageName,
    /// Version that last succeeded.
    pub succeeded: Option<Version>,
    /// Whether a revision has started and not ended.
    pub open: bool,
    /// Version that its spec asks for.
    pub wanted: Option<Version>,
    /// Whether its spec would give a new revision, or one that has not started.
    pub wants_change: bool,
    /// Whether what it wants was refused.
    pub refused: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What its spec requires.
    pub requires: Vec<Required>,
    /// Generation of the spec that all this is about.
    pub generation: i64,
    /// Identities of the releases that its children hold.
    pub held: Arc<BTreeSet<crate::api::Claim>>,
    /// Identities of the releases that its spec claims or its children hold.
    pub claims: Arc<BTreeSet<crate::api::Claim>>,
    /// Of the releases that its spec claims, those with a canary.
    pub guarded: Arc<BTreeSet<crate::api::Claim>>,
    /// Identities of the releases that its hooks install while they run.
    pub hook_claims: Arc<BTreeSet<crate::api::Claim>>,
    /// Where the children stand that its spec asks for or that it has.
    pub children: Arc<BTreeSet<ObjectKey>>,
    /// Flux sources that its revisions point at, and those that it waits for
    /// before it can make another revision.
    pub sources: Arc<BTreeSet<ObjectKey>>,
}

/// A requirement on a Package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    /// Name of the required Package.
    pub name: PackageName,
    /// Range of its version.
    pub range: Option<Range>,
    /// Counts only if it exists.
    pub optional: bool,
}

/// Facts about the cluster and this process.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Engines whose kinds are installed.
    pub engines: BTreeSet<Engine>,
    /// Engine asked for by a flag.
    pub default_engine: Option<Engine>,
    /// Version of Kubernetes.
    pub kubernetes: Option<Version>,
    /// Whether the Package's namespace is being deleted.
    pub namespace_terminating: bool,
    /// Whether the Package CRD is being deleted.
    pub crd_terminating: bool,
    /// Argo CD project of Applications.
    pub argo_project: String,
    /// How long packages that require others must be still before they start.
    pub requirements_settle: Duration,
    /// How long a deleted Package is left alone before anything of it is uninstalled.
    pub deletion_settle: Duration,
    /// As whom this process writes, as the API server names it.
    pub identity: Option<String>,
    /// The guard's policies were changed a moment ago: for so long it is not known
    /// whether the API server acts on them already.
    pub guard_settles_in: Option<Duration>,
    /// Account used where a Package names none.
    pub default_service_account: Option<ObjectName>,
    /// Whether a Package without an account is refused.
    pub require_service_account: bool,
    /// For how long this process has been watching without a gap; time before
    /// that does not count for any clock.
    pub watching_for: Duration,
}
