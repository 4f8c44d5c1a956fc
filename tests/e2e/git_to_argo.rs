//! From a commit to workloads, and away again: Git, Argo CD with our plugin, the Package, the
//! controller, Applications.

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};

use crate::parent::{Parent, README};
use crate::stage::{APPLICATION, Runs, Stage, tell};
use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::recorder::{Change, Entry, first};
use crate::support::{charts, wait, windlass};

const MOVED_WITHIN: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(30);

/// The chart that a Package names by its path, in a version.
fn chart(version: &str) -> Vec<(String, String)> {
    let files = ["Chart.yaml", "values.yaml", "templates/cm.yaml"];
    let read = |file: &str| std::fs::read_to_string(charts::source("conf").join(file)).expect("a file of the chart");
    let versioned = |text: String| text.replace("version: 1.0.0", &format!("version: {version}"));
    files.map(|file| (format!("charts/conf/{file}"), versioned(read(file)))).to_vec()
}

/// Components `base` (by path), `middle` and `roof`, each on top of the one before.
async fn components(stage: &Stage<'_>, version: &str) -> [Value; 3] {
    let base = json!({"name": "base", "path": "charts/conf"});
    let middle = stage.component("middle", "app", version, &["base"]).await;
    let roof = stage.component("roof", "app", version, &["middle"]).await;
    [base, middle, roof]
}

fn file(stage: &Stage<'_>, version: &str, components: &[Value]) -> (String, String) {
    let package = windlass::package(&stage.name, json!({"version": version, "components": components}));
    ("packages/main.yaml".to_owned(), package)
}

async fn commit(parent: &Parent<'_>, files: &[(String, String)]) -> String {
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    parent.commit(&files).await
}

/// All that a version consists of.
async fn version(stage: &Stage<'_>, version: &str) -> Vec<(String, String)> {
    let mut files = chart(version);
    files.push(file(stage, version, &components(stage, version).await));
    files
}

fn chain(version: &str) -> [Runs<'_>; 3] {
    [Runs::Map("base", version), Runs::Deployment("middle", version), Runs::Deployment("roof", version)]
}

pub async fn a_package_goes_from_git_to_its_workloads_and_away(bench: &Bench) {
    let stage = Stage::set(bench, "git").await;
    let parent = Parent::of(bench, &stage.name).await;
    it_is_installed(&stage, &parent).await;
    it_is_upgraded_by_a_commit(&stage, &parent).await;
    a_commit_beside_it_moves_nothing(&stage, &parent).await;
    values_are_reverted_and_a_version_is_not(&stage, &parent).await;
    a_component_is_removed(&stage, &parent).await;
    it_is_pruned_in_reverse(&stage, &parent).await;
    let background = json!({"spec": {"syncPolicy": {"syncOptions": ["PrunePropagationPolicy=background"]}}});
    bench.cluster().await.merge(&parent.argocd.applications().await, &parent.name, background).await;
    commit(&parent, &version(&stage, "1.1.0").await).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    it_is_pruned_in_reverse(&stage, &parent).await;
    the_last_one_goes_with_the_parent(&stage, &parent).await;
}

async fn it_is_installed(stage: &Stage<'_>, parent: &Parent<'_>) {
    let side =
        windlass::package("side", json!({"version": "1.0.0", "components": [{"name": "it", "path": "charts/conf"}]}));
    parent.repository.commit(&[README, ("packages/side.yaml", &side)]);
    let files = version(stage, "1.0.0").await;
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let commit = parent.repository.commit(&files);
    parent.create(&stage.name, json!([])).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    stage.moved_in_order(&stage.recorder.complete().await, &chain("1.0.0"));
    parent.argocd.synced(&parent.name, &commit, SOON).await;
    shows_its_children(stage, parent, 4).await;
}

/// Argo CD lists the children under the parent, and finds nothing wrong with it.
async fn shows_its_children(stage: &Stage<'_>, parent: &Parent<'_>, count: usize) {
    let api = parent.argocd.applications().await;
    wait::until(&api, &parent.name, SOON, "lists the children", |application| {
        let application = to_json(application.ok_or("no such Application")?);
        let resources = application["status"]["resources"].as_array().cloned().unwrap_or_default();
        let children = resources.iter().filter(|resource| resource["kind"] == APPLICATION.1).count();
        let synced = application["status"]["sync"]["status"] == "Synced";
        if synced && children == count { Ok(()) } else { Err(application["status"].to_string()) }
    })
    .await;
    let child = stage.applications().await.get(&stage.child("base")).await.expect("a child");
    let annotations = &to_json(&child)["metadata"]["annotations"];
    let id = format!("{}:argoproj.io/Application:{}/{}", parent.name, stage.name, stage.child("base"));
    assert_eq!(annotations["argocd.argoproj.io/tracking-id"], id);
    assert_eq!(annotations["argocd.argoproj.io/compare-options"], "IgnoreExtraneous,ServerSideDiff=true");
    assert_eq!(annotations["argocd.argoproj.io/sync-options"], "Prune=false,Delete=false");
}

async fn it_is_upgraded_by_a_commit(stage: &Stage<'_>, parent: &Parent<'_>) {
    let commit = commit(parent, &version(stage, "1.1.0").await).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    stage.moved_in_order(&stage.recorder.complete().await, &chain("1.1.0"));
    parent.argocd.synced(&parent.name, &commit, SOON).await;
}

/// Operations on the children of the Package.
fn moved<'l>(stage: &Stage<'_>, log: &'l [Entry]) -> Vec<&'l str> {
    let ours = |entry: &&Entry| entry.kind == APPLICATION.1 && !entry.object["operation"].is_null();
    let of_it = |entry: &&Entry| entry.name.starts_with(&format!("{}-", stage.name));
    let mut names: Vec<&str> = log.iter().filter(ours).filter(of_it).map(|entry| entry.name.as_str()).collect();
    names.dedup();
    names
}

async fn a_commit_beside_it_moves_nothing(stage: &Stage<'_>, parent: &Parent<'_>) {
    let position = stage.recorder.complete().await.len();
    let commit = parent.commit(&[("packages/README.md", "Packages, and more\n")]).await;
    parent.argocd.synced(&parent.name, &commit, SOON).await;
    stage.runs("1.1.0", SOON).await;
    let log = stage.recorder.complete().await.split_off(position);
    assert!(moved(stage, &log).is_empty(), "{}", tell(&log));
}

/// What a revert asks for is judged like any other spec.
async fn values_are_reverted_and_a_version_is_not(stage: &Stage<'_>, parent: &Parent<'_>) {
    let note = |log: &[Entry], text: &str| {
        let is = |entry: &Entry| entry.name == "middle-cm" && entry.object["data"]["note"] == text;
        first(log, &format!("note {text:?}"), is).version
    };
    let mut with_note = components(stage, "1.1.0").await;
    with_note[1]["values"] = json!({"note": "changed"});
    let position = stage.recorder.complete().await.len();
    commit(parent, &[file(stage, "1.1.0", &with_note)]).await;
    stage.has_moved("middle", MOVED_WITHIN).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    note(&log, "changed");
    let position = stage.recorder.complete().await.len();
    parent.revert().await;
    stage.has_moved("middle", MOVED_WITHIN).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    note(&log, "");

    let position = log.len() + position;
    let back = commit(parent, &version(stage, "1.0.0").await).await;
    let message = stage.says("DowngradeRefused", SOON).await;
    assert!(message.contains("allowDowngrade"), "{message}");
    parent.argocd.synced_with_health(&parent.name, &back, "Degraded", SOON).await;
    let log = stage.recorder.complete().await.split_off(position);
    assert!(moved(stage, &log).is_empty(), "{}", tell(&log));
    let commit = parent.revert().await;
    stage.runs("1.1.0", SOON).await;
    parent.argocd.synced(&parent.name, &commit, SOON).await;
    let log = stage.recorder.complete().await.split_off(position);
    assert!(moved(stage, &log).is_empty(), "{}", tell(&log));
}

async fn a_component_is_removed(stage: &Stage<'_>, parent: &Parent<'_>) {
    let position = stage.recorder.complete().await.len();
    let [base, middle, _] = components(stage, "2.0.0").await;
    let commit = commit(parent, &[file(stage, "2.0.0", &[base, middle])]).await;
    stage.runs("2.0.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    let ready = first(&log, "the new set runs", |entry| Runs::Deployment("middle", "2.0.0").is_shown_by(entry));
    let gone = |kind: &'static str, name: String| {
        let is = move |entry: &Entry| entry.kind == kind && entry.name == name && entry.change == Change::Deleted;
        first(&log, kind, is).version
    };
    let went = gone("Deployment", "roof".to_owned());
    assert!(ready.version < went, "{}", tell(&log));
    gone(APPLICATION.1, stage.child("roof"));
    parent.argocd.synced(&parent.name, &commit, SOON).await;
    shows_its_children(stage, parent, 3).await;
}

async fn gone(api: &Api<DynamicObject>, name: &str) {
    wait::until(api, name, MOVED_WITHIN, "gone", |object| match object {
        None => Ok(()),
        Some(object) => Err(to_json(object)["status"]["summary"].to_string()),
    })
    .await;
}

async fn it_is_pruned_in_reverse(stage: &Stage<'_>, parent: &Parent<'_>) {
    let position = stage.recorder.complete().await.len();
    let commit = parent.remove(&["packages/main.yaml"]).await;
    gone(&stage.packages, &stage.name).await;
    let log = stage.recorder.complete().await.split_off(position);
    stage.went_in_reverse(&log, &chain("")[..2]);
    parent.argocd.synced(&parent.name, &commit, SOON).await;
    let side = |entry: &Entry| entry.name == "side-it" && entry.change == Change::Deleted;
    assert!(!log.iter().any(side), "{}", tell(&log));
}

/// The parent's deletion takes the Package along, and leaves the children to us.
async fn the_last_one_goes_with_the_parent(stage: &Stage<'_>, parent: &Parent<'_>) {
    let cluster = stage.bench.cluster().await;
    let api = parent.argocd.applications().await;
    let finalizers = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    cluster.merge(&api, &parent.name, finalizers).await;
    let position = stage.recorder.complete().await.len();
    cluster.delete(&api, &parent.name, MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    let gone = |kind: &'static str, name: &'static str| {
        let is = |entry: &Entry| entry.kind == kind && entry.name == name && entry.change == Change::Deleted;
        first(&log, &format!("{kind} {name} gone"), is).version
    };
    let order = [gone("ConfigMap", "it-cm"), gone(APPLICATION.1, "side-it"), gone("Package", "side")];
    assert!(order.is_sorted(), "{}", tell(&log));
}
