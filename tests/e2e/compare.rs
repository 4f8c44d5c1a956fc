//! The same upgrade by Flux, by Argo CD, and by Windlass on both, in one run. Times are from the
//! watch of the API server; a violation is a release that changed before the one below it was
//! seen to run the same version.

use std::time::Duration;

use serde_json::{Value, json};

use crate::native_flux::{self, Form};
use crate::parent::{Parent, README};
use crate::support::bench::Bench;
use crate::support::cluster;
use crate::support::recorder::{Entry, Recorder, describe};
use crate::support::windlass::{self, chain};

const HELM: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");
const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const MAP: (&str, &str) = ("v1", "ConfigMap");
/// Says which process of the stand-in a HelmRelease is for.
const INSTANCE: &str = "bench.windlass.dev/helm-controller";
const CHAIN: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
const LONGEST: Duration = Duration::from_secs(300);
/// How much faster than `dependsOn` the chain must be.
const RATIO: f64 = 20.0;

pub async fn a_chain_and_a_wide_commit_side_by_side(bench: &Bench) {
    tokio::join!(bench.flux(), bench.argocd(), bench.own_crds(), bench.charts());
    let plain = flux_alone(bench, Form::Plain).await;
    let rows = [
        ("Flux, dependsOn", &plain),
        ("Flux, dependsOn with readyExpr", &flux_alone(bench, Form::Ours).await),
        ("Argo CD, sync waves", &argo_alone(bench).await),
    ];
    let (on_flux, on_argo) =
        (with_windlass(bench, "flux", HELM).await, with_windlass(bench, "argo", APPLICATION).await);
    eprintln!("compare: a chain of {} releases is upgraded", CHAIN.len());
    eprintln!("compare: {:32} {:>10} {:>14} {:>12}", "", "total", "per edge", "violations");
    for (name, row) in rows.into_iter().chain([("Windlass on Flux", &on_flux), ("Windlass on Argo CD", &on_argo)]) {
        eprintln!("compare: {name:32} {:>10.1?} {:>14.1?} {:>12}", row.total, row.edge, row.violations);
    }
    let ratio = plain.total.as_secs_f64() / on_flux.total.as_secs_f64();
    eprintln!("compare: Windlass on Flux is {ratio:.0} times as fast as dependsOn");
    assert_eq!((on_flux.violations, on_argo.violations), (0, 0));
    assert!(ratio >= RATIO, "{ratio:.1}");
    native_flux::wide_commits(bench).await;
}

/// How one upgrade of the chain went.
struct Row {
    total: Duration,
    /// Between the changes of two releases that follow each other, in the middle.
    edge: Duration,
    violations: usize,
}

/// The engine's own object says that the release runs this version and is ready.
type Runs = fn(&Value, &str) -> bool;

fn runs_on_flux(release: &Value, version: &str) -> bool {
    native_flux::settled(release) && release["status"]["history"][0]["chartVersion"] == version
}

fn runs_on_argo(application: &Value, version: &str) -> bool {
    let status = &application["status"];
    status["sync"]["comparedTo"]["source"]["targetRevision"] == version
        && status["sync"]["status"] == "Synced"
        && status["health"]["status"] == "Healthy"
        && status["operationState"]["phase"] == "Succeeded"
        && status["operationState"]["syncResult"]["revision"] == version
}

struct Chain {
    recorder: Recorder,
    kind: &'static str,
    /// Name of the object of a release, before the release's own.
    prefix: String,
    runs: Runs,
}

impl Chain {
    async fn moved(&self, version: &str) -> Vec<Entry> {
        self.recorder
            .until(LONGEST, &format!("all at {version}"), |log| {
                let behind = CHAIN.iter().filter(|name| self.done(log, name, version).is_none());
                let behind: Vec<&str> = behind.copied().collect();
                if behind.is_empty() { Ok(()) } else { Err(format!("not yet: {}", behind.join(" "))) }
            })
            .await;
        self.recorder.complete().await
    }

    fn done<'a>(&self, log: &'a [Entry], name: &str, version: &str) -> Option<&'a Entry> {
        let own = format!("{}{name}", self.prefix);
        log.iter().find(|entry| entry.kind == self.kind && entry.name == own && (self.runs)(&entry.object, version))
    }

    /// When the release's ConfigMap was first of this version.
    fn changed<'a>(&self, log: &'a [Entry], name: &str, version: &str) -> &'a Entry {
        let map = format!("{name}-cm");
        let is =
            |entry: &&Entry| entry.kind == MAP.1 && entry.name == map && entry.object["data"]["version"] == version;
        log.iter().find(is).unwrap_or_else(|| panic!("{map} never had {version}\n{}", describe(log)))
    }

    async fn upgraded(&self, before: usize) -> Row {
        self.judge(&self.moved("1.1.0").await.split_off(before))
    }

    fn judge(&self, log: &[Entry]) -> Row {
        let mut edges: Vec<Duration> = Vec::new();
        let mut violations = 0;
        for pair in CHAIN.windows(2) {
            let (below, above) = (self.changed(log, pair[0], "1.1.0"), self.changed(log, pair[1], "1.1.0"));
            edges.push(above.seen.saturating_duration_since(below.seen));
            let done = self.done(log, pair[0], "1.1.0").map_or(u64::MAX, |entry| entry.version);
            violations += usize::from(above.version < done);
        }
        edges.sort();
        let began = log.first().map(|entry| entry.seen);
        let ended = CHAIN.iter().filter_map(|name| self.done(log, name, "1.1.0")).map(|entry| entry.seen).max();
        let total = began.zip(ended).map_or(Duration::MAX, |(began, ended)| ended.duration_since(began));
        Row { total, edge: edges[edges.len() / 2], violations }
    }
}

fn spec(charts: &str, version: &str) -> Value {
    let component = |(name, depends_on): (&str, Vec<&str>)| {
        json!({
            "name": name, "chart": {"repository": charts, "name": "conf", "version": version},
            "install": {"dependsOn": depends_on},
        })
    };
    json!({"version": version, "components": chain(&CHAIN).map(component).collect::<Vec<_>>()})
}

/// Flux as it is by default: it looks at a dependency again after 30 s.
async fn flux_alone(bench: &Bench, form: Form) -> Row {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("compare-flux").await;
    let selector = format!("--watch-label-selector={INSTANCE}={namespace}");
    let _helm_controller = bench.helm_controller(&["--concurrent=10", &selector]).await;
    let recorder = Recorder::start(cluster, &namespace, &[HELM, MAP]).await;
    let chain = Chain { recorder, kind: HELM.1, prefix: "it-".to_owned(), runs: runs_on_flux };
    let charts = &bench.charts().await.url;
    let directory = tempfile::tempdir().expect("a directory");
    let wants = async |version: &str| {
        let file = directory.path().join("package.yaml");
        std::fs::write(&file, windlass::package("it", spec(charts, version))).expect("a file");
        let text = windlass::render(&[&file], &["--engine", "flux", "--mode", "native", "-n", &namespace]);
        for mut object in cluster::documents(&text) {
            object["metadata"]["labels"][INSTANCE] = namespace.clone().into();
            for edge in object.pointer_mut("/spec/dependsOn").and_then(Value::as_array_mut).into_iter().flatten() {
                if form == Form::Plain {
                    edge.as_object_mut().expect("an edge").remove("readyExpr");
                }
            }
            cluster.apply(&namespace, object).await;
        }
    };
    wants("1.0.0").await;
    let before = chain.moved("1.0.0").await.len();
    wants("1.1.0").await;
    chain.upgraded(before).await
}

async fn argo_alone(bench: &Bench) -> Row {
    let parent = Parent::new(bench, "compare-argo").await;
    let cluster = bench.cluster().await;
    let recorder = Recorder::start(cluster, &parent.name, &[MAP]).await;
    let applications = Recorder::start(cluster, crate::support::argocd::NAMESPACE, &[APPLICATION]).await;
    let charts = &bench.charts().await.url;
    let package = |version: &str| {
        let mut spec = spec(charts, version);
        for component in spec["components"].as_array_mut().into_iter().flatten() {
            component["install"]["namespace"] = parent.name.clone().into();
        }
        windlass::package(&parent.name, spec)
    };
    let file = "packages/chain.yaml";
    let commit = parent.repository.commit(&[README, (file, &package("1.0.0"))]);
    parent.create(crate::support::argocd::NAMESPACE, json!([{"name": "output", "string": "native"}])).await;
    parent.argocd.synced(&parent.name, &commit, LONGEST).await;
    let chain = Chain { recorder, kind: APPLICATION.1, prefix: format!("{}-", parent.name), runs: runs_on_argo };
    let before = (chain.recorder.complete().await.len(), applications.complete().await.len());
    let commit = parent.commit(&[(file, &package("1.1.0"))]).await;
    parent.argocd.synced(&parent.name, &commit, LONGEST).await;
    let mut log = chain.recorder.complete().await.split_off(before.0);
    let own = |entry: &Entry| entry.name.starts_with(&chain.prefix);
    log.extend(applications.complete().await.split_off(before.1).into_iter().filter(own));
    log.sort_by_key(|entry| entry.version);
    chain.judge(&log)
}

async fn with_windlass(bench: &Bench, engine: &str, kind: (&'static str, &'static str)) -> Row {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace(&format!("compare-windlass-{engine}")).await;
    let selector = format!("--watch-label-selector=windlass.dev/package={namespace}");
    let _helm_controller = bench.helm_controller(&["--concurrent=10", &selector]).await;
    let recorder = Recorder::start(cluster, &namespace, &[kind, MAP]).await;
    let runs: Runs = if engine == "flux" { runs_on_flux } else { runs_on_argo };
    let chain = Chain { recorder, kind: kind.1, prefix: format!("{namespace}-"), runs };
    let _controller = bench.controller(&namespace).await;
    let charts = &bench.charts().await.url;
    let wants = async |version: &str| {
        let mut spec = spec(charts, version);
        spec["engine"] = engine.into();
        let package = json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": namespace}, "spec": spec,
        });
        cluster.apply(&namespace, package).await;
    };
    wants("1.0.0").await;
    let before = chain.moved("1.0.0").await.len();
    wants("1.1.0").await;
    chain.upgraded(before).await
}
