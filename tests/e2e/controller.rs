//! The controller on a real API server with Flux: order is read from the resource versions of
//! what the API server was sent, never from what Windlass says of itself.

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::Process;
use crate::support::recorder::{Change, Entry, Recorder, describe, first};
use crate::support::wait::until;
use crate::support::windlass::chain;

const HELM: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const CHAIN: [&str; 3] = ["first", "second", "third"];
const MOVED_WITHIN: Duration = Duration::from_secs(60);

pub async fn a_chain_moves_in_order_and_is_uninstalled_in_reverse(bench: &Bench) {
    let stage = Stage::set(bench, "chain").await;
    stage.wants("1.0.0").await;
    stage.runs("1.0.0").await;
    stage.wants("2.0.0").await;
    stage.runs("2.0.0").await;
    let log = stage.recorder.complete().await;
    for version in ["1.0.0", "2.0.0"] {
        for pair in CHAIN.windows(2) {
            let ready = first(&log, "the first of two is ready", |entry| stage.is_ready_at(entry, pair[0], version));
            let written = first(&log, "the second is written", |entry| stage.wants_version(entry, pair[1], version));
            assert!(
                ready.version < written.version,
                "{} was written for {version} before {} was ready\n{}",
                pair[1],
                pair[0],
                describe(&log)
            );
        }
    }
    stage.is_removed().await;
    let log = stage.recorder.complete().await;
    let gone = |name: &str| {
        let name = stage.child(name);
        first(&log, "a release is gone", |e| e.kind == HELM.1 && e.name == name && e.change == Change::Deleted).version
    };
    assert!(gone("third") < gone("second") && gone("second") < gone("first"), "{}", describe(&log));
}

/// A Package of three releases, a controller, and a helm-controller of its own.
struct Stage<'a> {
    bench: &'a Bench,
    name: String,
    namespace: String,
    recorder: Recorder,
    packages: Api<DynamicObject>,
    _helm_controller: Process,
    _controller: Process,
}

impl<'a> Stage<'a> {
    async fn set(bench: &'a Bench, name: &str) -> Self {
        bench.flux().await;
        bench.own_crds().await;
        let cluster = bench.cluster().await;
        let namespace = cluster.namespace(name).await;
        let recorder = Recorder::start(cluster, &namespace, &[HELM, PACKAGE]).await;
        let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &namespace).await;
        // Releases that the controller makes carry the Package's name.
        let selector = format!("--watch-label-selector=windlass.dev/package={namespace}");
        let helm_controller = bench.helm_controller(&[&selector]).await;
        let controller = bench.controller(&namespace).await;
        Self {
            bench,
            name: namespace.clone(),
            namespace,
            recorder,
            packages,
            _helm_controller: helm_controller,
            _controller: controller,
        }
    }

    async fn wants(&self, version: &str) {
        let repository = &self.bench.charts().await.url;
        let component = |(name, depends_on): (&str, Vec<&str>)| {
            json!({
                "name": name,
                "chart": {"repository": repository, "name": "conf", "version": version},
                "install": {"dependsOn": depends_on},
            })
        };
        let components: Vec<Value> = chain(&CHAIN).map(component).collect();
        let package = json!({
            // Argo CD may be there for other tests.
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": self.name},
            "spec": {"version": version, "engine": "flux", "components": components},
        });
        self.bench.cluster().await.apply(&self.namespace, package).await;
    }

    async fn runs(&self, version: &str) {
        until(&self.packages, &self.name, MOVED_WITHIN, &format!("{version} runs"), |package| {
            let status = package.map(|package| to_json(package)["status"].clone()).unwrap_or_default();
            let ready = status["conditions"][0]["status"] == "True" && status["version"] == version;
            if ready { Ok(()) } else { Err(status["summary"].to_string()) }
        })
        .await;
    }

    async fn is_removed(&self) {
        self.bench.cluster().await.delete(&self.packages, &self.name, MOVED_WITHIN).await;
    }

    fn child(&self, component: &str) -> String {
        format!("{}-{component}", self.name)
    }

    fn is_of(&self, entry: &Entry, component: &str) -> bool {
        entry.kind == HELM.1 && entry.name == self.child(component)
    }

    /// The release runs a version and says so in every field.
    fn is_ready_at(&self, entry: &Entry, component: &str, version: &str) -> bool {
        let status = &entry.object["status"];
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        self.is_of(entry, component)
            && status["observedGeneration"] == entry.object["metadata"]["generation"]
            && status["history"][0]["chartVersion"] == version
            && conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    }

    /// The first write of what a version wants: a new generation whose source is not that of the
    /// version before.
    fn wants_version(&self, entry: &Entry, component: &str, version: &str) -> bool {
        let generation = if version == "1.0.0" { 1 } else { 2 };
        self.is_of(entry, component) && entry.object["metadata"]["generation"] == generation
    }
}
