//! Flux's own controllers on the bench.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::wait;

const SOON: Duration = Duration::from_secs(60);

const MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: from-git
data:
  text: TEXT
";

pub async fn kustomization_applies_from_our_git_server(bench: &Bench) {
    bench.flux().await;
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("flux").await;
    let repository = bench.repository(&namespace).await;
    repository.commit(&[("deploy/map.yaml", &MAP.replace("TEXT", "first"))]);
    let url = repository.http_url(&bench.http().await.url);
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "it"},
        "spec": {"interval": "10m", "url": url, "ref": {"branch": "main"}},
    });
    let kustomization = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "it"},
        "spec": {
            "interval": "10m", "path": "./deploy", "prune": true, "targetNamespace": namespace,
            "sourceRef": {"kind": "GitRepository", "name": "it"},
        },
    });
    cluster.apply(&namespace, source).await;
    cluster.apply(&namespace, kustomization).await;
    map_says(bench, &namespace, "first").await;

    let commit = repository.commit(&[("deploy/map.yaml", &MAP.replace("TEXT", "second"))]);
    let sources = cluster.dynamic("source.toolkit.fluxcd.io/v1", "GitRepository", &namespace).await;
    let patch = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": commit}}});
    sources.patch("it", &PatchParams::default(), &Patch::Merge(patch)).await.expect("a request");
    map_says(bench, &namespace, "second").await;
}

async fn map_says(bench: &Bench, namespace: &str, text: &str) {
    let cluster = bench.cluster().await;
    let kustomizations = cluster.dynamic("kustomize.toolkit.fluxcd.io/v1", "Kustomization", namespace).await;
    let maps = cluster.api::<ConfigMap>(namespace);
    wait::until(&maps, "from-git", SOON, text, |map| {
        let data = &map.ok_or("no such ConfigMap")?.data;
        match data.as_ref().and_then(|data| data.get("text")) {
            Some(found) if found == text => Ok(()),
            found => Err(format!("{found:?}")),
        }
    })
    .await;
    wait::until(&kustomizations, "it", SOON, "ready", |object| {
        wait::holds(&to_json(object.ok_or("no such Kustomization")?), "Ready")
    })
    .await;
}

async fn chart_repository(bench: &Bench, prefix: &str) -> String {
    bench.flux().await;
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace(prefix).await;
    let url = &bench.charts().await.url;
    let repository = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": "charts"},
        "spec": {"interval": "10m", "url": url},
    });
    cluster.apply(&namespace, repository).await;
    namespace
}

async fn apply_chart(bench: &Bench, namespace: &str, name: &str, version: &str) {
    let chart = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
        "metadata": {"name": name},
        "spec": {
            "interval": "10m", "chart": name, "version": version,
            "sourceRef": {"kind": "HelmRepository", "name": "charts"},
        },
    });
    bench.cluster().await.apply(namespace, chart).await;
}

async fn chart_when<T>(
    bench: &Bench,
    namespace: &str,
    name: &str,
    what: &str,
    check: impl Fn(&Value) -> Result<T, String>,
) -> T {
    let cluster = bench.cluster().await;
    let charts = cluster.dynamic("source.toolkit.fluxcd.io/v1", "HelmChart", namespace).await;
    wait::until(&charts, name, SOON, what, |chart| check(&to_json(chart.ok_or("no such HelmChart")?))).await
}

pub async fn chart_is_fetched_with_the_digest_we_published(bench: &Bench) {
    let namespace = chart_repository(bench, "charts").await;
    apply_chart(bench, &namespace, "app", "1.1.0").await;
    let artifact = chart_when(bench, &namespace, "app", "ready", |chart| {
        wait::holds(chart, "Ready")?;
        Ok(chart["status"]["artifact"].clone())
    })
    .await;
    assert_eq!(artifact["revision"], "1.1.0");
    assert_eq!(artifact["digest"], bench.charts().await.digest("app", "1.1.0"));
}

pub async fn chart_published_later_is_found_when_asked(bench: &Bench) {
    let namespace = chart_repository(bench, "later").await;
    apply_chart(bench, &namespace, "conf", "7.7.7").await;
    chart_when(bench, &namespace, "conf", "not found", |chart| match wait::condition(chart, "Ready") {
        Some(("False", reason, message)) if message.contains("7.7.7") => Ok(reason.to_owned()),
        found => Err(format!("{found:?}")),
    })
    .await;
    bench.charts().await.publish("conf", "7.7.7").await;
    let repositories = bench.cluster().await.dynamic("source.toolkit.fluxcd.io/v1", "HelmRepository", &namespace).await;
    let patch = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    repositories.patch("charts", &PatchParams::default(), &Patch::Merge(patch)).await.expect("a request");
    chart_when(bench, &namespace, "conf", "ready", |chart| wait::holds(chart, "Ready")).await;
}
