//! What charts hold, and how releases of them behave: the script of a
//! simulated cluster. Whatever is not scripted works, after a second.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::json;
use super::store::Key;

const HELM_HOOK: &str = "helm.sh/hook";

/// Whether an object is a Helm hook.
pub(crate) fn is_hook(object: &Map<String, Value>) -> bool {
    !json::text(object, &["metadata", "annotations", HELM_HOOK]).is_empty()
}

/// One object that a chart renders. `{release}`, `{version}` and `{values}` (their
/// digest) are replaced in its name and in the texts of its spec.
#[derive(Clone, Debug)]
pub struct Template {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace, if it is another than that of the release.
    pub namespace: Option<String>,
    /// Spec.
    pub spec: Value,
    /// Whether it is a Helm hook that runs before anything else is applied.
    pub hook: bool,
}

impl Template {
    /// A Deployment that runs the chart's version and is told the values.
    pub fn deployment() -> Self {
        let spec = json!({"release": "{release}", "version": "{version}", "config": "{values}", "replicas": 1});
        Self::new("apps/v1", "Deployment", "{release}", spec)
    }

    /// A DaemonSet whose pods run an image named by release and chart version,
    /// and are told the values.
    pub fn daemon_set(strategy: Value) -> Self {
        let environment = json!([{"name": "CONFIG", "value": "{values}"}]);
        let containers = json!([{"name": "main", "image": "{release}:{version}", "env": environment}]);
        let template = json!({"metadata": {"labels": {"app": "{release}"}}, "spec": {"containers": containers}});
        let spec = json!({"updateStrategy": strategy, "template": template});
        Self::new("apps/v1", "DaemonSet", "{release}", spec)
    }

    /// A Job that runs once.
    pub fn job() -> Self {
        let spec = json!({"release": "{release}", "version": "{version}", "config": "{values}"});
        Self::new("batch/v1", "Job", "{release}", spec)
    }

    /// The same as a Helm hook (`pre-install`, `pre-upgrade`).
    pub fn hook_job() -> Self {
        Self { hook: true, ..Self::job() }
    }

    /// Any other object.
    pub fn new(api_version: &str, kind: &str, name: &str, spec: Value) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            namespace: None,
            spec,
            hook: false,
        }
    }

    pub(crate) fn render(&self, namespace: &str, release: &str, version: &str, config: &str) -> Map<String, Value> {
        let fill =
            |text: &str| text.replace("{release}", release).replace("{version}", version).replace("{values}", config);
        let mut object = Map::new();
        object.insert("apiVersion".into(), self.api_version.clone().into());
        object.insert("kind".into(), self.kind.clone().into());
        object.insert("metadata".into(), json!({"name": fill(&self.name)}));
        if !is_cluster_scoped(&self.kind) {
            let namespace = self.namespace.as_deref().unwrap_or(namespace);
            json::set(&mut object, &["metadata", "namespace"], namespace.into());
        }
        if self.hook {
            json::set(&mut object, &["metadata", "annotations", HELM_HOOK], "pre-install,pre-upgrade".into());
        }
        object.insert("spec".into(), filled(&self.spec, &fill));
        object
    }
}

/// Whether objects of a kind are in no namespace; of kinds that others define
/// nobody knows here, and they count as namespaced.
pub fn is_cluster_scoped(kind: &str) -> bool {
    let kinds = [
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    ];
    kinds.contains(&kind)
}

fn filled(value: &Value, fill: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => fill(text).into(),
        Value::Array(items) => items.iter().map(|item| filled(item, fill)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), filled(value, fill))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// What a rendered object says of the values it was rendered with.
pub fn config_of(values: &Value) -> String {
    json::digest(values)
}

/// How the installation or upgrade of a release goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its workload becomes ready.
    Succeeds,
    /// The first attempts are refused, then it succeeds.
    FailsFirst(u32),
    /// Every attempt is refused at once.
    Fails,
    /// Its workload never becomes ready; a Job fails.
    Hangs,
}

/// Time and outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Behaviour {
    /// Milliseconds until the workload is ready.
    pub takes: u64,
    /// What comes of it.
    pub outcome: Outcome,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self { takes: 1000, outcome: Outcome::Succeeds }
    }
}

/// What becomes of a pod of a DaemonSet on its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It becomes ready and stays so.
    #[default]
    Runs,
    /// It runs and never becomes ready.
    NeverReady,
    /// It becomes ready, crashes after so many milliseconds, is started again, and so on.
    CrashesAfter(u64),
    /// It crashes before it is ready.
    CrashesAtOnce,
    /// Its init container crashes.
    InitCrashes,
    /// Its image cannot be had.
    CannotPull,
}

/// How pods of an image behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PodBehaviour {
    /// Milliseconds from its start until it is ready, or fails.
    pub ready_after: u64,
    /// Milliseconds until a deleted pod is gone.
    pub gone_after: u64,
    /// What becomes of it.
    pub fate: Fate,
}

impl Default for PodBehaviour {
    fn default() -> Self {
        Self { ready_after: 1500, gone_after: 1000, fate: Fate::Runs }
    }
}

/// What an operator does for a resource at one of its versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Care {
    /// It brings the resource to its own version and says so.
    #[default]
    Reports,
    /// It reports that the resource failed.
    Fails,
    /// It never says anything.
    Silent,
}

/// What an operator says of a resource, by whether both are as they were when
/// [`World::remember`](super::World::remember) was called. `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Both are as they were.
    pub before: Option<Map<String, Value>>,
    /// One of them is not.
    pub now: Option<Map<String, Value>>,
}

/// How a single release behaves, by whether it is as it was when
/// [`World::remember`](super::World::remember) was called. `None`: as any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mishap {
    /// It is not.
    pub forward: Option<Behaviour>,
    /// It is, again.
    pub back: Option<Behaviour>,
}

/// What a release, or an object of it, was rendered from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rendering {
    /// Namespace of the objects.
    pub namespace: String,
    /// Name of the release.
    pub release: String,
    /// Version of the chart.
    pub version: String,
    /// Digest of the values.
    pub config: String,
}

impl Rendering {
    /// What an object's own spec says that it was rendered from.
    pub(crate) fn of(object: &Map<String, Value>) -> Self {
        let spec = |field| json::text(object, &["spec", field]).to_owned();
        let namespace = json::text(object, &["metadata", "namespace"]).to_owned();
        Self { namespace, release: spec("release"), version: spec("version"), config: spec("config") }
    }

    /// What a pod of a DaemonSet was rendered from.
    pub(crate) fn of_pod(pod: &Map<String, Value>) -> Self {
        let container = json::at(pod, &["spec", "containers"]).map(|all| &all[0]);
        let text = |pointer| container.and_then(|main| main.pointer(pointer)).and_then(Value::as_str).unwrap_or("");
        let image = text("/image");
        let (release, version) = image.split_once(':').unwrap_or((image, ""));
        Self {
            namespace: json::text(pod, &["metadata", "namespace"]).to_owned(),
            release: release.to_owned(),
            version: version.to_owned(),
            config: text("/env/0/value").to_owned(),
        }
    }
}

/// A Deployment that looks after resources of a kind, and reports on them late.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Namespace and name of its Deployment.
    pub deployment: (String, String),
    /// Group and version of the resources.
    pub api_version: String,
    /// Kind of the resources.
    pub kind: String,
    /// Milliseconds until it has seen to a resource.
    pub takes: u64,
    /// Namespace and name of the only resource it looks after, if it does not
    /// look after all of the kind.
    pub resource: Option<(String, String)>,
    /// What it says of its resource, where that is written out in full; then
    /// `care` and `stays_true` do not count.
    pub told: Option<Told>,
    /// The condition that it reports.
    pub condition: String,
    /// Whether that condition stays True while it works.
    pub stays_true: bool,
    /// What it does at which version; reports at all others.
    pub care: BTreeMap<String, Care>,
}

impl Operator {
    /// An operator that reports after `takes` milliseconds, its condition
    /// staying True meanwhile.
    pub fn new(namespace: &str, deployment: &str, api_version: &str, kind: &str, takes: u64) -> Self {
        Self {
            deployment: (namespace.into(), deployment.into()),
            api_version: api_version.into(),
            kind: kind.into(),
            takes,
            resource: None,
            told: None,
            condition: "Available".into(),
            stays_true: true,
            care: BTreeMap::new(),
        }
    }

    pub(crate) fn deployment_key(&self) -> Key {
        Key::new("apps/v1", "Deployment", &self.deployment.0, &self.deployment.1)
    }
}

/// A commit of the Git repository that charts at a path come from.
#[derive(Clone, Debug)]
pub struct Commit {
    /// 40 hex digits.
    pub id: String,
    /// Version of the chart in each directory.
    pub charts: BTreeMap<String, String>,
}

/// Everything that is scripted.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Objects of charts, by name; one Deployment for all others.
    pub charts: BTreeMap<String, Vec<Template>>,
    /// Objects of single releases, by namespace and name, whatever their charts
    /// hold.
    pub releases: BTreeMap<(String, String), Vec<Template>>,
    /// The same at the time that mishaps refer to, for what ran then.
    pub former: BTreeMap<(String, String), Vec<Template>>,
    /// Charts, by name and version, that are not published before a time.
    /// `u64::MAX`: never.
    pub published: BTreeMap<(String, String), u64>,
    /// Versions of charts that are asked for by the digest of their OCI manifest, by
    /// name and digest.
    pub pinned: BTreeMap<(String, String), String>,
    /// Digests of the archives of charts, by name and version, where they matter.
    pub archives: BTreeMap<(String, String), String>,
    /// How releases behave, by release and chart version; `*` stands for all.
    pub behaviours: BTreeMap<(String, String), Behaviour>,
    /// How pods of DaemonSets behave, by image and node; `*` stands for all nodes.
    pub pods: BTreeMap<(String, String), PodBehaviour>,
    /// What befalls single releases, by namespace and name; comes before
    /// `behaviours`.
    pub mishaps: BTreeMap<(String, String), Mishap>,
    /// What ran at the time that mishaps refer to.
    pub ran: BTreeSet<Rendering>,
    /// Releases whose uninstallation fails for ever.
    pub stuck_uninstalls: BTreeSet<String>,
    /// Releases and versions whose synchronisation by Argo CD never ends.
    pub hanging_syncs: BTreeSet<(String, String)>,
    /// Whether a sync window of Argo CD's project lets nothing be synchronised.
    pub sync_window: bool,
    /// Operators.
    pub operators: Vec<Operator>,
    /// The Git repository, oldest commit first; its branch is at the last.
    pub commits: Vec<Commit>,
    /// Whether the cluster knows every kind, whatever definitions it has.
    pub knows_every_kind: bool,
}

impl Script {
    /// How a release behaves that is rendered from something.
    pub fn behaviour(&self, of: &Rendering) -> Behaviour {
        let mishap = self.mishaps.get(&(of.namespace.clone(), of.release.clone())).copied().unwrap_or_default();
        let befalls = if self.ran.contains(of) { mishap.back } else { mishap.forward };
        let find = |version: &str| self.behaviours.get(&(of.release.clone(), version.to_owned())).copied();
        befalls.or_else(|| find(&of.version)).or_else(|| find("*")).unwrap_or_default()
    }

    /// How a pod of an image behaves on a node.
    pub fn pod(&self, image: &str, node: &str) -> PodBehaviour {
        let find = |node: &str| self.pods.get(&(image.to_owned(), node.to_owned())).copied();
        find(node).or_else(|| find("*")).unwrap_or_default()
    }

    /// Scripts the pods of an image, on one node or on all (`*`).
    pub fn pods_behave(&mut self, image: &str, node: &str, fate: Fate) {
        let behaviour = PodBehaviour { fate, ..self.pod(image, node) };
        self.pods.insert((image.into(), node.into()), behaviour);
    }

    /// Scripts a release at a chart version.
    pub fn behave(&mut self, release: &str, version: &str, outcome: Outcome, takes: u64) {
        self.behaviours.insert((release.into(), version.into()), Behaviour { takes, outcome });
    }

    /// Whether a chart can be had now.
    pub(crate) fn has_chart(&self, chart: &str, version: &str, now: u64) -> bool {
        let from = self.published.get(&(chart.to_owned(), version.to_owned()));
        from.is_none_or(|from| *from <= now)
    }

    /// The version of a chart whose OCI manifest has a digest.
    pub(crate) fn pinned_version(&self, chart: &str, digest: &str) -> Option<&str> {
        self.pinned.get(&(chart.to_owned(), digest.to_owned())).map(String::as_str)
    }

    /// The objects of what is rendered, of a chart.
    pub(crate) fn templates(&self, of: &Rendering, chart: &str) -> Vec<Template> {
        let key = (of.namespace.clone(), of.release.clone());
        let former = self.former.get(&key).filter(|_| self.ran.contains(of));
        let own = former.or_else(|| self.releases.get(&key));
        own.or_else(|| self.charts.get(chart)).cloned().unwrap_or_else(|| vec![Template::deployment()])
    }

    pub(crate) fn commit(&self, id: &str) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.id == id)
    }
}
