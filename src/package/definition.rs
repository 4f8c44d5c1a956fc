//! A Package parsed: every name a newtype, every default filled in.

mod parse;
mod rules;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::derived::{Derived, ForEngine};
use super::digest::{ComponentDigest, DigestError, digest};
use super::duration::GoDuration;
use super::names::{ComponentName, Namespace, ObjectName, PackageName, ReleaseName};
use super::order::{Order, order};
use super::range::Range;
use super::version::Version;
use crate::api::{
    Canary, ComponentSource, DeletionPolicy, DriftIgnore, Engine, HealthCheckExpr, RecordedComponent, SourceRef,
    UpgradeCrds, ValuesFromKind,
};

pub(crate) use parse::did_you_mean;
pub use parse::{parse, parse_ready_when};
pub use rules::engine_rules;

/// `upgrade.timeout` where none is written.
pub const DEFAULT_TIMEOUT: GoDuration = GoDuration::from_secs(600);
/// `upgrade.retries` where none is written.
pub const DEFAULT_RETRIES: u32 = 2;
/// `revisionHistoryLimit` where none is written.
pub const DEFAULT_HISTORY_LIMIT: u32 = 10;
/// `readyWhen.settle` where none is written: longer than a new operator needs
/// to win its lease.
pub const DEFAULT_SETTLE: GoDuration = GoDuration::from_secs(60);
/// `valuesFrom.valuesKey` where none is written (Flux's own default).
pub const DEFAULT_VALUES_KEY: &str = "values.yaml";

/// Most objects that the components of a Package may name in `readyWhen`: each is
/// watched by itself while a move is open.
pub const MAX_READY_OBJECTS: usize = 256;

/// A Package that keeps every rule that can be judged on the Package alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Name of the Package.
    pub name: PackageName,
    /// Its namespace.
    pub namespace: Namespace,
    /// Wanted version.
    pub version: Version,
    /// Engine, if the author names one.
    pub engine: Option<Engine>,
    /// Whether moves are suspended.
    pub suspend: bool,
    /// Account of the children and of reads.
    pub service_account: Option<ObjectName>,
    /// Flux source of `path` components.
    pub source: Option<SourceRef>,
    /// What must be there first.
    pub requires: Vec<Requirement>,
    /// How an upgrade is done.
    pub upgrade: Upgrade,
    /// Whether the version before may run again.
    pub rollback: Rollback,
    /// What deletion does.
    pub deletion_policy: DeletionPolicy,
    /// How many old revisions are kept.
    pub revision_history_limit: u32,
    /// Components and hooks, in declaration order.
    pub components: Vec<Component>,
    digests: ForEngine<Result<Vec<ComponentDigest>, DigestError>>,
    order: Derived<Order>,
    /// What a revision says of the components, as far as the spec alone tells.
    pub(crate) outlines: ForEngine<Result<Arc<[RecordedComponent]>, DigestError>>,
}

impl Definition {
    /// The digests of the components for an engine, in declaration order. Taken
    /// when first asked for: a definition is read as it stands by then.
    ///
    /// # Errors
    /// See [`DigestError`].
    pub fn digests(&self, engine: Engine) -> Result<&[ComponentDigest], DigestError> {
        let take = || self.components.iter().map(|component| digest(component, engine)).collect();
        self.digests.get(engine, take).as_deref().map_err(Clone::clone)
    }

    /// The order in which the components move. Taken when first asked for.
    pub fn order(&self) -> &Order {
        // A definition has no cycle: parsing has refused it.
        self.order.get(|| order(&self.components).unwrap_or_default())
    }
}

/// One thing that must be there before a revision starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A Package of the same namespace.
    Package {
        /// Its name.
        name: PackageName,
        /// Range of its last succeeded version; `None`: any.
        range: Option<Range>,
        /// Counts only if the package exists.
        optional: bool,
    },
    /// The cluster's version.
    Kubernetes {
        /// Range it must be in.
        range: Range,
    },
}

/// How an upgrade is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade {
    /// Time one turn may take.
    pub timeout: GoDuration,
    /// Failed attempts after the first that are forgiven.
    pub retries: u32,
    /// Versions that may be upgraded; `None`: any.
    pub from: Option<Range>,
    /// Whether an older version may follow.
    pub allow_downgrade: bool,
}

/// Whether the version before may run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// The author's word.
    pub safe: bool,
    /// Versions that may be returned to, `upgrade.from` where nothing is
    /// written; `None`: any.
    pub to: Option<Range>,
}

/// One release of a Package.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Name in the Package.
    pub name: ComponentName,
    /// What is installed.
    pub chart: ChartSource,
    /// Helm values.
    pub values: Map<String, Value>,
    /// Values from ConfigMaps and Secrets.
    pub values_from: Vec<ValuesFrom>,
    /// Namespace of the release.
    pub namespace: Namespace,
    /// Name of the release.
    pub release_name: ReleaseName,
    /// Whether the namespace is labelled for privileged pods.
    pub privileged: bool,
    /// What is verified first.
    pub depends_on: Vec<ComponentName>,
    /// Whether it is a PreUpgrade hook.
    pub hook: bool,
    /// Whether a replacement is allowed.
    pub replace: bool,
    /// Whether an uninstall also removes data.
    pub delete_data: bool,
    /// What an upgrade does to the chart's CRDs.
    pub upgrade_crds: UpgradeCrds,
    /// Objects that must be in a given state.
    pub ready_when: Vec<ReadyWhen>,
    /// Health checks passed to Flux.
    pub health_check_exprs: Vec<HealthCheckExpr>,
    /// Fields that others own.
    pub ignore: Vec<DriftIgnore>,
    /// Canary of its DaemonSets.
    pub canary: Option<Canary>,
}

/// Where a chart comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartSource {
    /// A repository.
    Repository(RepositoryChart),
    /// A directory of the source.
    Path(PathChart),
}

/// A chart of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryChart {
    /// URL of the repository, `http(s)://` or `oci://`.
    pub repository: String,
    /// Name of the chart.
    pub name: String,
    /// Exact version.
    pub version: Version,
    /// `sha256:…` of the archive or manifest.
    pub digest: Option<String>,
    /// Secret with credentials.
    pub secret: Option<ObjectName>,
}

impl RepositoryChart {
    /// Whether the repository is an OCI registry.
    pub fn is_oci(&self) -> bool {
        self.repository.starts_with("oci://")
    }
}

/// A chart directory of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChart {
    /// The directory.
    pub path: RelativePath,
    /// Version in its Chart.yaml.
    pub chart_version: Option<Version>,
    /// Values files relative to the directory.
    pub values_files: Vec<RelativePath>,
    /// Where the files come from, if a plugin or flags said so.
    pub source: Option<ComponentSource>,
}

/// A path that stays below where it starts: relative, without `..`, `.` or
/// empty parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelativePath(String);

impl RelativePath {
    /// Parses and tidies a path: `./a//b/` becomes `a/b`; the root is empty.
    ///
    /// Returns `None` for absolute paths, `..`, backslashes and control
    /// characters.
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') || text.contains(|c: char| c == '\\' || c.is_control()) {
            return None;
        }
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") { None } else { Some(Self(parts.join("/"))) }
    }

    /// The tidied path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A ConfigMap or Secret that values are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesFrom {
    /// Its kind.
    pub kind: ValuesFromKind,
    /// Its name.
    pub name: ObjectName,
    /// Key that holds the values.
    pub values_key: String,
    /// Where the content is put.
    pub target_path: Option<String>,
    /// Whether it may be absent.
    pub optional: bool,
}

/// One object that must be in a given state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyWhen {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object, for namespaced kinds.
    pub namespace: Namespace,
    /// What must hold.
    pub test: ReadyTest,
    /// How long it must hold when nothing else shows that it is fresh.
    pub settle: GoDuration,
    /// CEL expression that fails the component.
    pub failed: Option<String>,
}

/// What must hold of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadyTest {
    /// A condition has a status.
    Condition {
        /// Type of the condition.
        condition: String,
        /// Wanted status.
        status: String,
    },
    /// A CEL expression is true.
    Expr(String),
}

impl From<&ReadyWhen> for crate::api::ReadyWhen {
    /// Every default is written out.
    fn from(entry: &ReadyWhen) -> Self {
        let (condition, status, expr) = match &entry.test {
            ReadyTest::Condition { condition, status } => (Some(condition.clone()), Some(status.clone()), None),
            ReadyTest::Expr(expr) => (None, None, Some(expr.clone())),
        };
        Self {
            api_version: entry.api_version.clone(),
            kind: entry.kind.clone(),
            name: entry.name.clone(),
            namespace: Some(entry.namespace.to_string()),
            condition,
            status,
            expr,
            settle: Some(entry.settle.to_string()),
            failed: entry.failed.clone(),
        }
    }
}
