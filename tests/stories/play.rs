//! A cluster, packages committed to it, and questions to its log.

use serde_json::{Map, Value, json};
use windlass::api::{Engine, PackageStatus};
use windlass::rehearse::{Happening, Rehearsal, Settings};
use windlass::sim::chart::{Operator, Script, Template};
use windlass::sim::store::Expected;
use windlass::sim::{Change, Key, Verb};

pub const NAMESPACE: &str = "packages";
pub const REPOSITORY: &str = "https://charts.example.org";

pub struct Play {
    pub rehearsal: Rehearsal,
    pub engine: Engine,
}

impl Play {
    pub fn new(engine: Engine, script: Script) -> Self {
        Self { rehearsal: Rehearsal::new(script, Settings::new(engine)), engine }
    }

    /// A commit that holds this Package.
    pub fn commit(&mut self, name: &str, mut spec: Value) {
        spec["engine"] = json!(self.engine.as_str());
        let package = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        self.apply(&package);
    }

    pub fn apply(&mut self, object: &Value) {
        let object = object.as_object().unwrap();
        self.rehearsal.world.store.apply("git", object, &Expected::default()).unwrap();
        self.rehearsal.run_for(0);
    }

    pub fn delete(&mut self, name: &str) {
        let key = package_key(name);
        self.rehearsal.world.store.delete("git", &key, &Expected::default()).unwrap();
        self.rehearsal.run_for(0);
    }

    pub fn patch(&mut self, key: &Key, patch: Value) {
        let patch = patch.as_object().cloned().unwrap();
        self.rehearsal.world.store.patch("user", key, &patch, &Expected::default()).unwrap();
        self.rehearsal.run_for(0);
    }

    pub fn annotate(&mut self, name: &str, annotation: &str, value: &str) {
        self.patch(&package_key(name), json!({"metadata": {"annotations": {annotation: value}}}));
    }

    pub fn object(&self, key: &Key) -> Option<&Map<String, Value>> {
        self.rehearsal.world.store.get(key).map(|object| object.as_ref())
    }

    pub fn status(&self, name: &str) -> PackageStatus {
        let object = self.object(&package_key(name)).unwrap_or_else(|| panic!("package {name} is gone"));
        object.get("status").map(|status| serde_json::from_value(status.clone()).unwrap()).unwrap_or_default()
    }

    /// Reason of the Package's Ready condition.
    pub fn reason(&self, name: &str) -> String {
        let status = self.status(name);
        status.conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.reason.clone()).unwrap_or_default()
    }

    pub fn message(&self, name: &str) -> String {
        let status = self.status(name);
        status.conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.message.clone()).unwrap_or_default()
    }

    /// Plays until a Package's status about its present generation has this
    /// reason and nothing is under way.
    pub fn until(&mut self, name: &str, reason: &str) {
        let limit = 3_600_000;
        let found = self.rehearsal.run_until(limit, |rehearsal| is_at(rehearsal, name, reason));
        assert!(found, "{name} is not {reason} but {}: {}\n{}", self.reason(name), self.message(name), self.tell());
    }

    pub fn until_ready(&mut self, name: &str) {
        self.until(name, "Ready");
    }

    /// Plays until the Package is gone.
    pub fn until_gone(&mut self, name: &str) {
        let key = package_key(name);
        let gone = self.rehearsal.run_until(3_600_000, |rehearsal| rehearsal.world.store.get(&key).is_none());
        assert!(gone, "{name} is not gone: {}\n{}", self.message(name), self.tell());
    }

    /// Place of a child in the cluster.
    pub fn child(&self, package: &str, component: &str) -> Key {
        let (api_version, kind) = match self.engine {
            Engine::Flux => ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
            Engine::Argo => ("argoproj.io/v1alpha1", "Application"),
        };
        Key::new(api_version, kind, NAMESPACE, &format!("{package}-{component}"))
    }

    /// Components in the order in which new specs of theirs were written since a
    /// place in the log.
    pub fn moves_since(&self, position: usize) -> Vec<String> {
        let log = self.rehearsal.world.store.log();
        let mut specs: std::collections::BTreeMap<&Key, &Value> = std::collections::BTreeMap::new();
        let mut moves = Vec::new();
        for (at, change) in log.iter().enumerate() {
            if !matches!(change.key.kind.as_str(), "HelmRelease" | "Application") || change.verb == Verb::Deleted {
                continue;
            }
            let Some(spec) = change.object.get("spec") else { continue };
            let before = specs.insert(&change.key, spec);
            if at >= position && change.actor == "windlass" && before != Some(spec) {
                moves.push(change.key.name.clone());
            }
        }
        moves
    }

    pub fn position(&self) -> usize {
        self.rehearsal.world.store.log().len()
    }

    /// Changes since a place in the log.
    pub fn changes_since(&self, position: usize) -> impl Iterator<Item = &Change> {
        self.rehearsal.world.store.log()[position..].iter().map(|change| change.as_ref())
    }

    /// Deployment of a release.
    pub fn deployment(&self, namespace: &str, release: &str) -> Option<&Map<String, Value>> {
        self.object(&Key::new("apps/v1", "Deployment", namespace, release))
    }

    /// Version that a release's Deployment runs.
    pub fn runs(&self, release: &str) -> Option<String> {
        let deployment = self.deployment(NAMESPACE, release)?;
        Some(deployment["spec"]["version"].as_str()?.to_owned())
    }

    pub fn refusals(&self) -> usize {
        self.rehearsal.notes.iter().filter(|note| matches!(note.what, Happening::Refused(..))).count()
    }

    /// Everything that happened, for a failing test.
    pub fn tell(&self) -> String {
        let log = self.rehearsal.world.store.log();
        let skip = log.len().saturating_sub(60);
        let mut lines: Vec<(u64, String)> =
            log[skip..].iter().map(|c| (c.at, format!("{:>9} {:<18} {:?} {}", c.at, c.actor, c.verb, c.key))).collect();
        lines.extend(self.rehearsal.notes.iter().map(|note| (note.at, format!("{:>9} {:?}", note.at, note.what))));
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }
}

pub fn package_key(name: &str) -> Key {
    Key::new("windlass.dev/v1alpha1", "Package", NAMESPACE, name)
}

fn is_at(rehearsal: &Rehearsal, name: &str, reason: &str) -> bool {
    let Some(object) = rehearsal.world.store.get(&package_key(name)) else { return false };
    let status: PackageStatus =
        object.get("status").map(|status| serde_json::from_value(status.clone()).unwrap()).unwrap_or_default();
    let generation = object["metadata"]["generation"].as_i64();
    let ready = status.conditions.iter().find(|c| c.type_ == "Ready");
    let busy = status.conditions.iter().any(|c| c.type_ == "Reconciling");
    let waits =
        ["RequirementsNotMet", "Conflict", "InstallFailed", "SourceNotFound", "Progressing", "Deleting", "RollingBack"];
    status.observed_generation == generation
        && ready.is_some_and(|ready| ready.reason == reason)
        && (!busy || waits.contains(&reason))
}

/// A component of a chart named like it.
pub fn component(name: &str, version: &str, depends_on: &[&str]) -> Value {
    json!({
        "name": name,
        "chart": {"repository": REPOSITORY, "name": name, "version": version},
        "install": {"dependsOn": depends_on},
    })
}

pub fn package(version: &str, components: Vec<Value>) -> Value {
    json!({"version": version, "components": components})
}

/// A Package that may be rolled back.
pub fn safe(version: &str, components: Vec<Value>) -> Value {
    let mut spec = package(version, components);
    spec["rollback"] = json!({"safe": true});
    spec
}

/// An operator and the resource it looks after, in two releases.
pub fn kubevirt(version: &str, operator: &str, resource: &str, rollback: Value) -> Value {
    let mut resource = component("kubevirt", resource, &["operator"]);
    resource["install"]["readyWhen"] = json!([{
        "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt",
        "expr": "object.status.observedVersion == version && object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
        "failed": "object.status.phase == 'Failed'",
    }]);
    let mut spec = package(version, vec![component("operator", operator, &[]), resource]);
    if rollback != json!({}) {
        spec["rollback"] = rollback;
    }
    spec
}

/// The operator's Deployment reports on the resource after some milliseconds.
pub fn kubevirt_script(takes: u64) -> Script {
    let mut script = Script::default();
    let resource =
        Template::new("kubevirt.io/v1", "KubeVirt", "kubevirt", json!({"image": "{version}", "config": "{values}"}));
    script.charts.insert("kubevirt".into(), vec![resource]);
    script.operators.push(Operator::new(NAMESPACE, "operator", "kubevirt.io/v1", "KubeVirt", takes));
    script
}

/// The same with a resource that is rendered alike by every version, beside a
/// Deployment that is not: nothing but time tells what is reported before from after.
pub fn unchanging_resource_script(takes: u64) -> Script {
    let mut script = kubevirt_script(takes);
    let resource = Template::new("kubevirt.io/v1", "KubeVirt", "kubevirt", json!({"replicas": 1}));
    script.charts.insert("kubevirt".into(), vec![resource, Template::deployment()]);
    script
}

/// A PreUpgrade hook whose chart is one Job.
pub fn hook(name: &str, version: &str) -> Value {
    json!({
        "name": name,
        "chart": {"repository": REPOSITORY, "name": "migration", "version": version},
        "install": {"phase": "PreUpgrade"},
    })
}

pub fn migration_script() -> Script {
    let mut script = Script::default();
    script.charts.insert("migration".into(), vec![Template::job()]);
    script
}

/// The value at a JSON pointer; null if there is none.
pub fn at<'a>(object: &'a Map<String, Value>, pointer: &str) -> &'a Value {
    let (first, rest) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
    let value = object.get(first).unwrap_or(&Value::Null);
    if rest.is_empty() { value } else { value.pointer(&format!("/{rest}")).unwrap_or(&Value::Null) }
}
