//! A Package of a test, a controller of its own, and a recording of what is written.
//!
//! Order is read from the resource versions of what the API server was sent, never from what
//! Windlass says of itself.

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::Process;
use crate::support::recorder::{Change, Entry, Recorder, first};
use crate::support::wait::until;

pub const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const REVISION: (&str, &str) = ("windlass.dev/v1alpha1", "PackageRevision");
pub const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");

/// What of a release is watched: what it installs.
const WORKLOADS: [(&str, &str); 4] =
    [("v1", "ConfigMap"), ("apps/v1", "Deployment"), ("batch/v1", "Job"), ("v1", "PersistentVolumeClaim")];

/// A Package on Argo CD; it is called like its namespace.
pub struct Stage<'a> {
    pub bench: &'a Bench,
    pub name: String,
    pub recorder: Recorder,
    pub packages: Api<DynamicObject>,
    controller: Process,
}

impl<'a> Stage<'a> {
    pub async fn set(bench: &'a Bench, prefix: &str) -> Self {
        tokio::join!(bench.argocd(), bench.own_crds(), bench.charts());
        let cluster = bench.cluster().await;
        let name = cluster.namespace(prefix).await;
        let kinds: Vec<(&str, &str)> = WORKLOADS.into_iter().chain([PACKAGE, REVISION, APPLICATION]).collect();
        let recorder = Recorder::start(cluster, &name, &kinds).await;
        let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &name).await;
        let controller = bench.controller(&name).await;
        Self { bench, name, recorder, packages, controller }
    }

    /// Kills the controller without notice, and starts another.
    pub async fn another_controller(self) -> Self {
        self.controller.kill().await;
        let controller = self.bench.controller(&self.name).await;
        Self { controller, ..self }
    }

    /// Writes that only Windlass makes: of revisions and of the Package's status.
    pub fn writes(&self) -> usize {
        self.recorder.log().iter().filter(|entry| entry.kind == PACKAGE.1 || entry.kind == REVISION.1).count()
    }

    pub async fn another_write(&self, seen: usize, within: Duration) {
        let another = |_: &[Entry]| if self.writes() > seen { Ok(()) } else { Err(format!("{seen} writes")) };
        self.recorder.until(within, "another write", another).await;
    }

    /// Applies the Package.
    pub async fn wants(&self, mut spec: Value) {
        spec["engine"] = "argo".into();
        let package = json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": self.name}, "spec": spec,
        });
        self.bench.cluster().await.apply(&self.name, package).await;
    }

    /// Waits until the Package says `reason` of its present spec; gives the message.
    pub async fn says(&self, reason: &str, within: Duration) -> String {
        until(&self.packages, &self.name, within, reason, |package| {
            let package = to_json(package.ok_or("no such Package")?);
            let ready = &package["status"]["conditions"][0];
            let of_this = package["status"]["observedGeneration"] == package["metadata"]["generation"];
            if of_this && ready["type"] == "Ready" && ready["reason"] == reason {
                return Ok(ready["message"].as_str().unwrap_or_default().to_owned());
            }
            Err(package["status"]["summary"].to_string())
        })
        .await
    }

    /// Waits until a version runs.
    pub async fn runs(&self, version: &str, within: Duration) {
        let what = format!("{version} runs");
        until(&self.packages, &self.name, within, &what, |package| {
            let package = to_json(package.ok_or("no such Package")?);
            let status = &package["status"];
            let of_this = status["observedGeneration"] == package["metadata"]["generation"];
            let ready = status["conditions"][0]["status"] == "True" && status["conditions"][0]["reason"] == "Ready";
            let ended = status["conditions"].as_array().is_some_and(|conditions| conditions.len() == 1);
            let runs = of_this && ready && ended && status["version"] == version;
            if runs { Ok(()) } else { Err(format!("{} {}", status["summary"], status["components"])) }
        })
        .await;
    }

    /// Waits until a revision that moves the component has begun with it.
    pub async fn has_moved(&self, component: &str, within: Duration) {
        until(&self.packages, &self.name, within, &format!("{component} moves"), |package| {
            let package = to_json(package.ok_or("no such Package")?);
            let of_this = package["status"]["observedGeneration"] == package["metadata"]["generation"];
            let components = package["status"]["components"].as_array().cloned().unwrap_or_default();
            let found = components.iter().find(|known| known["name"] == component).map(|known| known["state"].clone());
            let moves = of_this && found.as_ref().is_some_and(|state| state == "Queued" || state == "Progressing");
            if moves { Ok(()) } else { Err(package["status"]["components"].to_string()) }
        })
        .await;
    }

    /// Deletes the Package, and waits until it is gone.
    pub async fn is_removed(&self, within: Duration) {
        self.bench.cluster().await.delete(&self.packages, &self.name, within).await;
    }

    pub async fn applications(&self) -> Api<DynamicObject> {
        self.bench.cluster().await.dynamic(APPLICATION.0, APPLICATION.1, &self.name).await
    }

    /// Name of a component's Application.
    pub fn child(&self, component: &str) -> String {
        format!("{}-{component}", self.name)
    }

    /// A component whose chart comes from the bench's repository.
    pub async fn component(&self, name: &str, chart: &str, version: &str, depends_on: &[&str]) -> Value {
        json!({
            "name": name,
            "chart": {"repository": self.bench.charts().await.url, "name": chart, "version": version},
            "install": {"dependsOn": depends_on},
        })
    }

    /// Each of a chain was written for its version only when the one before ran its own.
    pub fn moved_in_order(&self, log: &[Entry], chain: &[Runs<'_>]) {
        for pair in chain.windows(2) {
            let [before, after] = pair else { continue };
            let runs = first(log, &format!("{before:?}"), |entry| before.is_shown_by(entry));
            let written = first(log, &format!("{after:?} being asked for"), |entry| {
                self.asks_for(entry, after.release(), after.version())
            });
            assert!(runs.version < written.version, "{after:?} was asked for before {before:?}\n{}", tell(log));
        }
    }

    /// Each is gone, with what it installed, before the one below is asked to go.
    pub fn went_in_reverse(&self, log: &[Entry], chain: &[Runs<'_>]) {
        let gone = |kind: &str, name: &str| {
            let is = |entry: &Entry| entry.kind == kind && entry.name == name && entry.change == Change::Deleted;
            first(log, &format!("{kind} {name} gone"), is).version
        };
        for pair in chain.windows(2) {
            let [below, above] = pair else { continue };
            let asked = first(log, &format!("{below:?} asked to go"), |entry| {
                entry.kind == APPLICATION.1
                    && entry.name == self.child(below.release())
                    && entry.object["metadata"]["deletionTimestamp"].is_string()
            });
            let (kind, name) = above.object();
            let last = gone(APPLICATION.1, &self.child(above.release())).max(gone(kind, &name));
            assert!(last < asked.version, "{above:?} was not gone when {below:?} was asked to go\n{}", tell(log));
        }
    }

    /// Operations that were asked for, each with our token if it is ours.
    pub fn operations(&self, log: &[Entry], component: &str) -> Vec<Option<String>> {
        let of_it = |entry: &&Entry| entry.kind == APPLICATION.1 && entry.name == self.child(component);
        let mut found: Vec<Value> = Vec::new();
        for operation in log.iter().filter(of_it).map(|entry| &entry.object["operation"]) {
            if !operation.is_null() && found.last() != Some(operation) {
                found.push(operation.clone());
            }
        }
        found.iter().map(|operation| operation["info"][0]["value"].as_str().map(str::to_owned)).collect()
    }

    /// An Application's spec asks for a version.
    pub fn asks_for(&self, entry: &Entry, component: &str, version: &str) -> bool {
        entry.kind == APPLICATION.1
            && entry.name == self.child(component)
            && entry.object["spec"]["source"]["targetRevision"] == version
    }
}

/// What runs when a release runs a version.
#[derive(Clone, Copy, Debug)]
pub enum Runs<'a> {
    /// Charts `conf` and `store`: a ConfigMap says so.
    Map(&'a str, &'a str),
    /// Chart `app`: all replicas of a Deployment do.
    Deployment(&'a str, &'a str),
}

impl Runs<'_> {
    fn release(&self) -> &str {
        let (Self::Map(release, _) | Self::Deployment(release, _)) = self;
        release
    }

    fn version(&self) -> &str {
        let (Self::Map(_, version) | Self::Deployment(_, version)) = self;
        version
    }

    /// Kind and name of the object that shows it.
    fn object(&self) -> (&'static str, String) {
        match self {
            Self::Map(release, _) => ("ConfigMap", format!("{release}-cm")),
            Self::Deployment(release, _) => ("Deployment", (*release).to_owned()),
        }
    }

    pub fn is_shown_by(&self, entry: &Entry) -> bool {
        let (spec, status) = (&entry.object["spec"], &entry.object["status"]);
        if (entry.kind.as_str(), entry.name.clone()) != self.object() {
            return false;
        }
        match self {
            Self::Map(_, version) => entry.object["data"]["version"] == *version,
            Self::Deployment(_, version) => {
                spec["template"]["metadata"]["labels"]["version"] == *version
                    && status["observedGeneration"] == entry.object["metadata"]["generation"]
                    && status["updatedReplicas"] == spec["replicas"]
                    && status["availableReplicas"] == spec["replicas"]
            }
        }
    }
}

/// The log, one line an entry, with what matters of it and the seconds since the first.
pub fn tell(log: &[Entry]) -> String {
    let began = log.first().map(|entry| entry.seen);
    let line = |entry: &Entry| {
        let seconds = began.map(|began| entry.seen.duration_since(began).as_secs_f64()).unwrap_or_default();
        let Entry { version, change, kind, name, object, .. } = entry;
        let going = if object["metadata"]["deletionTimestamp"].is_null() { "" } else { " going" };
        format!("{seconds:8.3} {version} {change:?}{going} {kind} {name} {}", gist(kind, object))
    };
    log.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn gist(kind: &str, object: &Value) -> String {
    let status = &object["status"];
    match kind {
        "Application" => {
            let state = &status["operationState"];
            let asked = &object["operation"]["info"][0]["value"];
            format!(
                "wants {} compared {} {} {} asked {} {asked} ran {} {} {} refresh {}",
                object["spec"]["source"]["targetRevision"],
                status["sync"]["comparedTo"]["source"]["targetRevision"],
                status["sync"]["status"],
                status["health"]["status"],
                !object["operation"].is_null(),
                state["phase"],
                state["operation"]["info"][0]["value"],
                state["message"],
                object["metadata"]["annotations"]["argocd.argoproj.io/refresh"],
            )
        }
        "Package" => {
            let components = status["components"].as_array().cloned().unwrap_or_default();
            let states: Vec<String> = components.iter().map(|component| component["state"].to_string()).collect();
            format!("{} {}", status["summary"], states.join(" "))
        }
        "PackageRevision" => status["phase"].to_string(),
        "ConfigMap" => object["data"]["version"].to_string(),
        "Deployment" => object["spec"]["template"]["metadata"]["labels"]["version"].to_string(),
        _ => String::new(),
    }
}
