//! The controller on a real Argo CD.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{APPLICATION, Runs, Stage, tell};
use crate::support::bench::Bench;
use crate::support::recorder::{Change, Entry, first};

const MOVED_WITHIN: Duration = Duration::from_secs(60);

/// A claim that is bound needs a volume; nothing on the bench makes any.
pub async fn volume(bench: &Bench, namespace: &str, claim: &str) {
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nowhere"},
            "claimRef": {"namespace": namespace, "name": claim},
        },
    });
    bench.cluster().await.apply("", volume).await;
}

fn plural(stage: &Stage<'_>) -> String {
    format!("{}s", stage.name.replace('-', ""))
}

/// Three components, each on top of the one before.
async fn chain(stage: &Stage<'_>, version: &str, [store, middle, roof]: [&str; 3]) -> Value {
    let mut base = stage.component("base", "store", store, &[]).await;
    base["values"] = json!({"plural": plural(stage)});
    let middle = stage.component("middle", "app", middle, &["base"]).await;
    let roof = stage.component("roof", "app", roof, &["middle"]).await;
    json!({"version": version, "components": [base, middle, roof]})
}

pub async fn a_chain_moves_in_order_and_is_uninstalled_in_reverse(bench: &Bench) {
    let stage = Stage::set(bench, "chain").await;
    volume(bench, &stage.name, "base-data").await;
    stage.wants(chain(&stage, "1.0.0", ["1.0.0"; 3]).await).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    stage.wants(chain(&stage, "1.1.0", ["1.1.0"; 3]).await).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await;
    for version in ["1.0.0", "1.1.0"] {
        let steps =
            [Runs::Map("base", version), Runs::Deployment("middle", version), Runs::Deployment("roof", version)];
        stage.moved_in_order(&log, &steps);
    }
    values_that_render_alike(&stage).await;
    a_version_that_does_not_exist(&stage).await;
    a_renamed_component_keeps_what_runs(&stage).await;
    goes_in_reverse_and_keeps_its_data(&stage).await;
}

/// The release is handed over: it is the same Deployment, and never was another.
async fn a_renamed_component_keeps_what_runs(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    let mut spec = chain(stage, "1.2.0", ["1.0.0", "2.0.0", "2.0.0"]).await;
    spec["components"][2]["name"] = "top".into();
    spec["components"][2]["install"]["releaseName"] = "roof".into();
    stage.wants(spec).await;
    stage.has_moved("top", MOVED_WITHIN).await;
    stage.runs("1.2.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    let handed_over = |entry: &Entry| entry.name == stage.child("roof") && entry.change == Change::Deleted;
    let given = first(&log, "the former Application gone", handed_over);
    let taken = first(&log, "the new one", |entry| entry.name == stage.child("top"));
    assert!(given.version < taken.version, "{}", tell(&log));
    let deployment = |entry: &&Entry| entry.kind == "Deployment" && entry.name == "roof";
    let touched: Vec<&Entry> = log.iter().filter(deployment).collect();
    let ids: BTreeSet<String> = touched.iter().map(|entry| entry.object["metadata"]["uid"].to_string()).collect();
    let gone = touched
        .iter()
        .any(|entry| entry.change == Change::Deleted || entry.object["metadata"]["deletionTimestamp"].is_string());
    assert!(ids.len() == 1 && !gone, "{}", tell(&log));
}

async fn goes_in_reverse_and_keeps_its_data(stage: &Stage<'_>) {
    stage.is_removed(MOVED_WITHIN).await;
    let log = stage.recorder.complete().await;
    let gone = |kind: &'static str, name: String| {
        let is = |entry: &Entry| entry.kind == kind && entry.name == name && entry.change == Change::Deleted;
        first(&log, &format!("{kind} {name} gone"), is).version
    };
    let asked = |name: String| {
        let is = |entry: &Entry| entry.name == name && entry.object["metadata"]["deletionTimestamp"].is_string();
        first(&log, &format!("{name} asked to go"), is).version
    };
    assert!(gone("Deployment", "roof".to_owned()) < asked(stage.child("middle")), "{}", tell(&log));
    stage.went_in_reverse(&log, &[Runs::Map("base", ""), Runs::Deployment("middle", "")]);
    gone("ConfigMap", "base-cm".to_owned());
    let claim = log.iter().rev().find(|entry| entry.kind == "PersistentVolumeClaim").expect("a claim");
    let kept = claim.change == Change::Modified && claim.object["metadata"]["deletionTimestamp"].is_null();
    assert!(kept, "{}", tell(&log));
    let cluster = stage.bench.cluster().await;
    let kinds = cluster.dynamic("apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await;
    kinds.get(&format!("{}.bench.windlass.dev", plural(stage))).await.expect("the chart's kind");
}

/// Argo CD starts no operation for values that render alike, so ours is the proof.
async fn values_that_render_alike(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    let mut spec = chain(stage, "1.1.0", ["1.1.0"; 3]).await;
    let values = json!({"unused": "value", "note": null});
    spec["components"][1]["values"] = values.clone();
    stage.wants(spec).await;
    stage.has_moved("middle", MOVED_WITHIN).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    let tokens = stage.operations(&log, "middle");
    assert_eq!(tokens.len(), 1, "{tokens:?}");
    assert!(tokens[0].is_some(), "an operation of Argo CD's own");
    let application = log.iter().rev().find(|entry| entry.name == stage.child("middle")).expect("the Application");
    assert_eq!(
        application.object["spec"]["source"]["helm"]["valuesObject"], values,
        "null says that a default is not wanted"
    );
    for beside in ["base", "roof"] {
        assert_eq!(stage.operations(&log, beside).len(), 0, "{}", tell(&log));
    }
}

/// It is said in its turn, nobody above is touched, and a mended version goes on.
async fn a_version_that_does_not_exist(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    stage.wants(chain(stage, "1.2.0", ["1.0.0", "9.9.9", "2.0.0"]).await).await;
    let message = stage.says("SourceNotFound", MOVED_WITHIN).await;
    assert!(message.contains("middle") && message.contains("9.9.9"), "{message}");
    let log = stage.recorder.complete().await.split_off(position);
    stage.moved_in_order(&log, &[Runs::Map("base", "1.0.0"), Runs::Deployment("middle", "9.9.9")]);
    assert!(!log.iter().any(|entry| stage.asks_for(entry, "roof", "2.0.0")), "{}", tell(&log));
    stage.wants(chain(stage, "1.2.0", ["1.0.0", "2.0.0", "2.0.0"]).await).await;
    stage.runs("1.2.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    stage.moved_in_order(&log, &[Runs::Deployment("middle", "2.0.0"), Runs::Deployment("roof", "2.0.0")]);
}

/// An Application of somebody else's, with a hook of the chart that would run again with every
/// operation.
pub async fn an_application_is_taken_over_as_it_runs(bench: &Bench) {
    let stage = Stage::set(bench, "taken").await;
    let cluster = bench.cluster().await;
    let values = json!({"hook": "ready", "note": "theirs"});
    let application = json!({
        "apiVersion": APPLICATION.0, "kind": APPLICATION.1,
        "metadata": {
            "name": "web", "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "annotations": {"windlass.dev/adopt": format!("{0}/{0}/web", stage.name)},
        },
        "spec": {
            "project": "default",
            "source": {
                "repoURL": bench.charts().await.url, "chart": "app", "targetRevision": "1.0.0",
                "helm": {"releaseName": "web", "valuesObject": values},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": stage.name},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        },
    });
    cluster.apply(&stage.name, application).await;
    let is_well = |log: &[Entry]| {
        let last = log.iter().rev().find(|entry| entry.name == "web" && entry.kind == APPLICATION.1);
        let is = |entry: &Entry| {
            let status = &entry.object["status"];
            let well = status["sync"]["status"] == "Synced" && status["health"]["status"] == "Healthy";
            well && entry.object["operation"].is_null() && status["operationState"]["phase"] == "Succeeded"
        };
        if last.is_some_and(is) { Ok(()) } else { Err(tell(log)) }
    };
    stage.recorder.until(MOVED_WITHIN, "it runs", is_well).await;
    let position = stage.recorder.complete().await.len();

    let wanted = async |version: &str| {
        let mut web = stage.component("web", "app", version, &[]).await;
        web["values"] = values.clone();
        json!({"version": version, "components": [web]})
    };
    stage.wants(wanted("1.0.0").await).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    let ours = |entry: &Entry| entry.object["metadata"]["labels"]["windlass.dev/package"] == stage.name.as_str();
    first(&log, "it is ours", |entry| entry.name == "web" && ours(entry));
    // What is said of the pods may change on a busy machine, what is asked for may not.
    let touched = |entry: &Entry| match entry.kind.as_str() {
        "Deployment" => entry.object["metadata"]["generation"] != 1,
        "Job" | "ConfigMap" => true,
        _ => !entry.object["operation"].is_null(),
    };
    assert!(!log.iter().any(touched), "{}", tell(&log));

    stage.wants(wanted("1.1.0").await).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await;
    first(&log, "1.1.0 runs", |entry| Runs::Deployment("web", "1.1.0").is_shown_by(entry));
    let applications = log.iter().filter(|entry| entry.kind == APPLICATION.1);
    let ids: BTreeSet<String> = applications.map(|entry| entry.object["metadata"]["uid"].to_string()).collect();
    assert_eq!(ids.len(), 1, "{}", tell(&log));
    stage.is_removed(MOVED_WITHIN).await;
}
