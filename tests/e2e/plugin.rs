//! An Argo CD Application whose manifests our plugin makes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::parent::{Parent, README};
use crate::support::argocd::{APPLICATION, NAMESPACE};
use crate::support::bench::Bench;
use crate::support::recorder::{Change, Entry, Recorder, describe, first};
use crate::support::wait;
use crate::support::{charts, cluster, windlass};

const SOON: Duration = Duration::from_secs(60);
/// Four Applications, one after the other.
const FOUR_MOVES: Duration = Duration::from_secs(120);

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");

const COMPONENTS: [&str; 4] = ["base", "middle", "top", "roof"];

/// The first of the components, each on top of the one before; their names sort otherwise.
fn tower(charts: &str, namespace: &str, count: usize, version: &str) -> Value {
    let components = COMPONENTS.iter().take(count).enumerate().map(|(level, name)| {
        let below: Vec<&str> = level.checked_sub(1).map(|below| COMPONENTS[below]).into_iter().collect();
        json!({
            "name": name, "chart": {"repository": charts, "name": "app", "version": version},
            // Time in which a wave that does not wait would be caught.
            "values": {"podAnnotations": {"bench.windlass.dev/ready-after": "500ms"}},
            "install": {"namespace": namespace, "dependsOn": below},
        })
    });
    json!({"version": version, "components": components.collect::<Vec<_>>()})
}

pub async fn native_applications_move_in_waves_and_are_pruned_in_reverse(bench: &Bench) {
    let parent = Parent::new(bench, "waves").await;
    let name = &parent.name;
    let cluster = bench.cluster().await;
    let applications = Recorder::start(cluster, NAMESPACE, &[APPLICATION]).await;
    let deployments = Recorder::start(cluster, name, &[DEPLOYMENT]).await;
    let charts = &bench.charts().await.url;
    let file = "packages/tower.yaml";
    let tower = |count, version| windlass::package(name, tower(charts, name, count, version));

    let commit = parent.repository.commit(&[README, (file, &tower(4, "1.0.0"))]);
    parent.create(NAMESPACE, json!([{"name": "output", "string": "native"}])).await;
    parent.argocd.synced(name, &commit, FOUR_MOVES).await;
    in_order(&deployments.complete().await, "1.0.0");
    let commit = parent.commit(&[(file, &tower(4, "1.1.0"))]).await;
    parent.argocd.synced(name, &commit, FOUR_MOVES).await;
    in_order(&deployments.complete().await, "1.1.0");

    let before = parent.last_operation().await;
    parent.remove(&[file]).await;
    let said = parent.argocd.comparison_error(name, "no Package in `packages`", SOON).await;
    assert!(said.contains("so that nothing is deleted"), "{said}");
    assert_eq!(parent.last_operation().await, before, "an emptied directory starts no operation");

    let commit = parent.commit(&[(file, &tower(2, "1.1.0"))]).await;
    parent.argocd.synced(name, &commit, SOON).await;
    delete_with_children(bench, &parent).await;
    let log = both(&applications, &deployments, name).await;
    for pair in COMPONENTS.windows(2) {
        let (low, high) = (format!("{name}-{}", pair[0]), format!("{name}-{}", pair[1]));
        let asked = first(&log, &format!("{low} being deleted"), |entry| {
            entry.kind == APPLICATION.1 && entry.name == low && is_going(entry)
        });
        let gone = |kind: &str, name: &str| {
            let is = |entry: &Entry| entry.kind == kind && entry.name == name && entry.change == Change::Deleted;
            first(&log, &format!("{kind} {name} gone"), is).version
        };
        let last = gone(APPLICATION.1, &high).max(gone(DEPLOYMENT.1, pair[1]));
        assert!(last < asked.version, "{high} was not gone when {low} was deleted\n{}", describe(&log));
    }
}

async fn delete_with_children(bench: &Bench, parent: &Parent<'_>) {
    let cluster = bench.cluster().await;
    let api = parent.argocd.applications().await;
    let finalizers = json!({"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}});
    cluster.merge(&api, &parent.name, finalizers).await;
    cluster.delete(&api, &parent.name, SOON).await;
}

/// What happened to a parent's children, and to what they deployed.
async fn both(applications: &Recorder, deployments: &Recorder, parent: &str) -> Vec<Entry> {
    let mut log = applications.complete().await;
    log.retain(|entry| entry.name.starts_with(&format!("{parent}-")));
    log.extend(deployments.complete().await);
    log.sort_by_key(|entry| entry.version);
    log
}

/// Each Deployment is asked for a version only when the one below is available with it.
fn in_order(log: &[Entry], version: &str) {
    for pair in COMPONENTS.windows(2) {
        let available = first(log, &format!("{} available at {version}", pair[0]), |entry| {
            let (spec, status) = (&entry.object["spec"], &entry.object["status"]);
            entry.name == pair[0]
                && asks_for(entry, version)
                && status["observedGeneration"] == entry.object["metadata"]["generation"]
                && status["updatedReplicas"] == spec["replicas"]
                && status["availableReplicas"] == spec["replicas"]
        });
        let asked = first(log, &format!("{} asked for {version}", pair[1]), |entry| {
            entry.name == pair[1] && asks_for(entry, version)
        });
        assert!(available.version < asked.version, "{} went before {}\n{}", pair[1], pair[0], describe(log));
    }
}

fn asks_for(deployment: &Entry, version: &str) -> bool {
    deployment.object["spec"]["template"]["metadata"]["labels"]["version"] == version
}

fn is_going(entry: &Entry) -> bool {
    entry.object["metadata"]["deletionTimestamp"].is_string()
}

const SHOP: &str = "apiVersion: windlass.dev/v1alpha1
kind: Package
metadata:
  name: shop
spec:
  version: 1.0.0
  components:
  - name: base
    path: charts/conf
  - name: web
    chart: {repository: \"https://charts.example.org\", name: app, version: 1.0.0}
    install:
      dependsOn: [base]
";

/// A repository with the Package, the chart that it names by path, and a manifest beside it.
async fn shop(bench: &Bench) -> (Parent<'_>, Recorder, String) {
    bench.own_crds().await;
    let parent = Parent::new(bench, "packages").await;
    let recorder = Recorder::start(bench.cluster().await, &parent.name, &[PACKAGE, ("v1", "ConfigMap")]).await;
    let chart = ["Chart.yaml", "values.yaml", "templates/cm.yaml"].map(|file| {
        let content = std::fs::read_to_string(charts::source("conf").join(file)).expect("a file of the chart");
        (format!("charts/conf/{file}"), content)
    });
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\ndata: {a: b}\n";
    let mut files = vec![README, ("packages/shop.yaml", SHOP), ("packages/beside.yaml", map)];
    files.extend(chart.iter().map(|(name, content)| (name.as_str(), content.as_str())));
    let commit = parent.repository.commit(&files);
    parent.create(&parent.name, json!([])).await;
    (parent, recorder, commit)
}

pub async fn package_is_as_healthy_as_its_status_says(bench: &Bench) {
    let (parent, recorder, commit) = shop(bench).await;
    let (argocd, name) = (parent.argocd, &parent.name);
    argocd.synced_with_health(name, &commit, "Progressing", SOON).await;
    let log = recorder.complete().await;
    let package = &first(&log, "the Package", |entry| entry.kind == "Package").object;
    assert_eq!(package["metadata"]["annotations"]["windlass.dev/compiled-by"], "v1");
    assert_eq!(package["spec"]["engine"], "argo");
    let source = &package["spec"]["components"][0]["source"];
    assert_eq!(source["repoURL"], parent.repository.file_url());
    assert_eq!((&source["revision"], &source["chartVersion"]), (&json!(commit), &json!("1.0.0")));
    first(&log, "what is beside it", |entry| entry.name == "beside");

    for (conditions, health) in [
        (json!([{"type": "Ready", "status": "True", "reason": "Ready"}]), "Healthy"),
        (
            json!([
                {"type": "Ready", "status": "False", "reason": "UpgradeFailed"},
                {"type": "Stalled", "status": "True", "reason": "UpgradeFailed"},
            ]),
            "Degraded",
        ),
        (
            json!([
                {"type": "Ready", "status": "Unknown", "reason": "Progressing"},
                {"type": "Reconciling", "status": "True", "reason": "Progressing"},
            ]),
            "Progressing",
        ),
        (json!([{"type": "Ready", "status": "True", "reason": "Ready"}]), "Healthy"),
    ] {
        say(bench, name, conditions).await;
        argocd.synced_with_health(name, &commit, health, SOON).await;
    }
}

/// Plays the controller: writes the status of the Package for its present generation.
async fn say(bench: &Bench, namespace: &str, mut conditions: Value) {
    let cluster = bench.cluster().await;
    let api = cluster.dynamic(PACKAGE.0, PACKAGE.1, namespace).await;
    let package = api.get("shop").await.expect("the Package");
    for condition in conditions.as_array_mut().into_iter().flatten() {
        condition["message"] = "said by a test".into();
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z".into();
    }
    let status = json!({"status": {"observedGeneration": package.metadata.generation, "conditions": conditions}});
    cluster.merge_status(&api, "shop", status).await;
}

pub async fn mistakes_are_told_and_prune_nothing(bench: &Bench) {
    let (parent, recorder, commit) = shop(bench).await;
    let (argocd, name) = (parent.argocd, &parent.name);
    argocd.synced_with_health(name, &commit, "Progressing", SOON).await;
    let operation = parent.last_operation().await;

    parent.commit(&[("packages/shop.yaml", &SHOP.replace("[base]", "[bse]"))]).await;
    let said = argocd.comparison_error(name, "WL013", SOON).await;
    let expected = "packages/shop.yaml:13:19: WL013 there is no component `bse` (did you mean `base`?)";
    assert!(said.contains(expected), "{said}");

    parent.remove(&["packages/shop.yaml", "packages/beside.yaml"]).await;
    let said = argocd.comparison_error(name, "no Package in `packages`", SOON).await;
    assert!(said.contains("Check the Application's source.path"), "{said}");
    assert_eq!(parent.last_operation().await, operation, "no operation began");

    // All is as it was: nothing had been pruned meanwhile, and what comes now is taken up.
    let commit = parent.commit(&[("packages/shop.yaml", &SHOP.replace("1.0.0\n", "1.0.1\n"))]).await;
    argocd.synced_with_health(name, &commit, "Progressing", SOON).await;
    let api = bench.cluster().await.dynamic(PACKAGE.0, PACKAGE.1, name).await;
    wait::until(&api, "shop", SOON, "the mended version", |package| {
        let version = cluster::to_json(package.ok_or("no such Package")?)["spec"]["version"].clone();
        if version == "1.0.1" { Ok(()) } else { Err(version.to_string()) }
    })
    .await;
    let log = recorder.complete().await;
    let going = |entry: &&Entry| entry.change == Change::Deleted || is_going(entry);
    let gone: Vec<&str> = log.iter().filter(going).map(|entry| entry.name.as_str()).collect();
    // The manifest beside the Package was removed from Git for good.
    assert!(gone.iter().all(|name| *name == "beside") && !gone.is_empty(), "{}", describe(&log));
}
