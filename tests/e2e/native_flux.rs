//! Native output for Flux in a Git repository, applied by kustomize-controller: releases move
//! in order. Order is read from the resource versions of what the API server was sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::git::Repository;
use crate::support::processes::Process;
use crate::support::recorder::{Change, Entry, Recorder, describe, first};
use crate::support::{cluster, windlass};

const HELM: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

/// Says which process of the stand-in a HelmRelease is for.
const INSTANCE: &str = "bench.windlass.dev/helm-controller";

/// Three levels of 32 releases. Flux applies them by name: the dependents first.
const BASE: &str = "z-base";
const MIDDLE: &str = "m-middle";
const DEPENDENTS: usize = 30;

const MOVED_WITHIN: Duration = Duration::from_secs(100);

pub async fn releases_move_in_order_with_one_commit(bench: &Bench) {
    let set = Set::install(bench, "native", Form::Ours).await;
    let log = set.moved("first").await;
    set.check_order(&log, 1);
    set.commit("second").await;
    let log = set.moved("second").await;
    set.check_order(&log, 2);
    for (name, writes) in set.writes(&log) {
        assert_eq!(writes, 2, "{name} moves once with each commit\n{}", describe(&log));
    }
}

/// What the expressions are for: the same objects without them.
pub async fn plain_depends_on_lets_dependents_go_first(bench: &Bench) {
    let set = Set::install(bench, "plain", Form::Plain).await;
    let log = set.moved("first").await;
    set.check_order(&log, 1);
    set.commit("second").await;
    let log = set.moved("second").await;
    let base = set.proven(&log, BASE, 2);
    let early = dependents().filter(|name| set.write_of(&log, name, 2) < base).count();
    assert!(early > 0, "this time no dependent went before its base:\n{}", describe(&log));
}

/// The wide commit of [`Set`], plain and ours, as two lines of a table.
pub async fn wide_commits(bench: &Bench) {
    for (name, form) in [("dependsOn", Form::Plain), ("dependsOn with readyExpr", Form::Ours)] {
        let set = Set::install(bench, "wide", form).await;
        let before = set.moved("first").await.len();
        set.commit("second").await;
        let log = set.moved("second").await;
        let (base, middle) = (set.proven(&log, BASE, 2), set.proven(&log, MIDDLE, 2));
        let early = dependents().filter(|name| set.write_of(&log, name, 2) < middle).count()
            + usize::from(set.write_of(&log, MIDDLE, 2) < base);
        let took = log[log.len() - 1].seen.duration_since(log[before].seen);
        eprintln!(
            "compare: {} releases in one commit, Flux with {name}: {took:.1?}, {early} went too early",
            DEPENDENTS + 2
        );
        assert!(form == Form::Plain || early == 0);
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    /// With our expressions.
    Ours,
    /// `dependsOn` with names alone.
    Plain,
}

struct Set<'a> {
    bench: &'a Bench,
    namespace: String,
    form: Form,
    repository: Repository,
    recorder: Recorder,
    _helm_controller: Process,
}

impl<'a> Set<'a> {
    async fn install(bench: &'a Bench, name: &str, form: Form) -> Self {
        bench.flux().await;
        let cluster = bench.cluster().await;
        let namespace = cluster.namespace(name).await;
        let recorder = Recorder::start(cluster, &namespace, &[HELM, ("v1", "ConfigMap")]).await;
        // Flux looks again after 30 s; shorter here, which only gives dependents more chances
        // to go too early.
        let selector = format!("--watch-label-selector={INSTANCE}={namespace}");
        let helm_controller = bench.helm_controller(&["--concurrent=10", "--requeue-dependency=2s", &selector]).await;
        let repository = bench.repository(&namespace).await;
        let set = Self { bench, namespace, form, repository, recorder, _helm_controller: helm_controller };
        set.commit("first").await;
        let url = set.repository.http_url(&bench.http().await.url);
        let source = json!({
            "apiVersion": SOURCE, "kind": "GitRepository", "metadata": {"name": "it"},
            "spec": {"interval": "10m", "url": url, "ref": {"branch": "main"}},
        });
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "it"},
            "spec": {
                "interval": "10m", "path": "./deploy", "prune": true,
                "sourceRef": {"kind": "GitRepository", "name": "it"},
                "commonMetadata": {"labels": {INSTANCE: set.namespace}},
            },
        });
        cluster.apply(&set.namespace, source).await;
        cluster.apply(&set.namespace, kustomization).await;
        set
    }

    /// One commit that gives every release this note among its values.
    async fn commit(&self, note: &str) {
        let charts = &self.bench.charts().await.url;
        let component = |name: &str, depends_on: &[&str]| {
            json!({
                "name": name, "values": {"note": note},
                "chart": {"repository": charts, "name": "conf", "version": "1.0.0"},
                "install": {"dependsOn": depends_on},
            })
        };
        let mut components: Vec<Value> = dependents().map(|name| component(&name, &[MIDDLE])).collect();
        components.extend([component(MIDDLE, &[BASE]), component(BASE, &[])]);
        let package = windlass::package("it", json!({"version": "1.0.0", "components": components}));
        let file = self.repository.path.join("package.yaml");
        std::fs::write(&file, package).expect("a file");
        let objects = self.rendered(&file);
        let commit = self.repository.commit(&[("deploy/all.yaml", &objects)]);
        // There is none yet before the first commit.
        let cluster = self.bench.cluster().await;
        let sources = cluster.dynamic(SOURCE, "GitRepository", &self.namespace).await;
        if sources.get_opt("it").await.expect("an answer").is_some() {
            cluster.annotate(&sources, "it", "reconcile.fluxcd.io/requestedAt", &commit).await;
        }
    }

    fn rendered(&self, file: &Path) -> String {
        let text = windlass::render(&[file], &["--engine", "flux", "--mode", "native", "-n", &self.namespace]);
        let mut objects = cluster::documents(&text);
        let mut expressions = 0;
        for object in &mut objects {
            for edge in object.pointer_mut("/spec/dependsOn").and_then(Value::as_array_mut).into_iter().flatten() {
                expressions += usize::from(edge["readyExpr"].is_string());
                if self.form == Form::Plain {
                    edge.as_object_mut().expect("an edge").remove("readyExpr");
                }
            }
        }
        assert_eq!(expressions, DEPENDENTS + 1, "every edge has an expression");
        objects.iter().map(|object| format!("---\n{object}\n")).collect()
    }

    /// Waits until every release says so in its ConfigMap and helm-controller is done with it.
    async fn moved(&self, note: &str) -> Vec<Entry> {
        let what = format!("all releases at {note}");
        self.recorder
            .until(MOVED_WITHIN, &what, |log| {
                let last = |kind: &str, name: &str| {
                    log.iter().rfind(|entry| entry.kind == kind && entry.name == name).map(|entry| &entry.object)
                };
                let behind = names().filter(|name| {
                    let map = last("ConfigMap", &format!("{name}-cm"));
                    let release = last("HelmRelease", &format!("it-{name}"));
                    map.is_none_or(|map| map["data"]["note"] != note) || !release.is_some_and(settled)
                });
                let behind: Vec<String> = behind.collect();
                if behind.is_empty() { Ok(()) } else { Err(format!("not yet: {}", behind.join(" "))) }
            })
            .await;
        self.recorder.complete().await
    }

    /// Nothing moves before what it depends on was seen to run the same commit.
    fn check_order(&self, log: &[Entry], round: u64) {
        let (base, middle) = (self.proven(log, BASE, round), self.proven(log, MIDDLE, round));
        assert!(self.write_of(log, MIDDLE, round) > base, "{MIDDLE} went before {BASE}\n{}", describe(log));
        for name in dependents() {
            assert!(self.write_of(log, &name, round) > middle, "{name} went before {MIDDLE}\n{}", describe(log));
        }
    }

    /// When a release was first seen to run what the n-th commit wants of it.
    fn proven(&self, log: &[Entry], name: &str, round: u64) -> u64 {
        let name = format!("it-{name}");
        let what = format!("{name} done with {round}");
        first(log, &what, |entry| {
            let newest = &entry.object["status"]["history"][0];
            entry.kind == HELM.1 && entry.name == name && settled(&entry.object) && newest["version"] == round
        })
        .version
    }

    /// When the ConfigMap of a release was written for the n-th time.
    fn write_of(&self, log: &[Entry], name: &str, round: u64) -> u64 {
        let change = if round == 1 { Change::Added } else { Change::Modified };
        let map = format!("{name}-cm");
        let what = format!("{map} {change:?}");
        first(log, &what, |entry| entry.kind == "ConfigMap" && entry.name == map && entry.change == change).version
    }

    fn writes(&self, log: &[Entry]) -> BTreeMap<String, usize> {
        let count = |name: &str| {
            let map = format!("{name}-cm");
            log.iter().filter(|entry| entry.kind == "ConfigMap" && entry.name == map).count()
        };
        names().map(|name| (name.clone(), count(&name))).collect()
    }
}

/// helm-controller has done what the spec says.
pub fn settled(release: &Value) -> bool {
    crate::support::wait::holds(release, "Ready").is_ok()
        && release["status"]["observedGeneration"] == release["metadata"]["generation"]
        && release["status"]["history"][0]["status"] == "deployed"
}

fn dependents() -> impl Iterator<Item = String> {
    (0..DEPENDENTS).map(|number| format!("a-{number:02}"))
}

fn names() -> impl Iterator<Item = String> {
    dependents().chain([MIDDLE.to_owned(), BASE.to_owned()])
}
