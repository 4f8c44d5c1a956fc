//! Argo CD on the bench.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::support::bench::Bench;

const SOON: Duration = Duration::from_secs(60);

const MAP: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: from-git
data:
  text: TEXT
";

pub async fn application_syncs_from_a_repository(bench: &Bench) {
    let argocd = bench.argocd().await;
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("argo-git").await;
    let repository = bench.repository(&namespace).await;
    let first = repository.commit(&[("deploy/map.yaml", &MAP.replace("TEXT", "first"))]);
    let source = json!({
        "repoURL": repository.file_url(), "path": "deploy", "targetRevision": "main",
    });
    argocd.application(&namespace, source, &namespace).await;
    argocd.synced(&namespace, &first, SOON).await;
    assert_eq!(text(bench, &namespace).await, "first");

    let second = repository.commit(&[("deploy/map.yaml", &MAP.replace("TEXT", "second"))]);
    argocd.refresh(&namespace).await;
    argocd.synced(&namespace, &second, SOON).await;
    assert_eq!(text(bench, &namespace).await, "second");
}

async fn text(bench: &Bench, namespace: &str) -> String {
    let maps = bench.cluster().await.api::<ConfigMap>(namespace);
    let map = maps.get("from-git").await.expect("the ConfigMap");
    map.data.expect("data")["text"].clone()
}

pub async fn application_syncs_a_chart(bench: &Bench) {
    let argocd = bench.argocd().await;
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("argo-chart").await;
    let source = json!({
        "repoURL": bench.charts().await.url, "chart": "app", "targetRevision": "1.1.0",
        "helm": {"releaseName": "it", "valuesObject": {"replicas": 2}},
    });
    argocd.application(&namespace, source, &namespace).await;
    argocd.synced(&namespace, "1.1.0", SOON).await;
    let deployment = cluster.api::<Deployment>(&namespace).get("it").await.expect("it");
    assert_eq!(deployment.status.and_then(|status| status.ready_replicas), Some(2));
}
