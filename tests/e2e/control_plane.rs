//! Kubernetes itself, and the recorder.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;

use crate::support::bench::Bench;
use crate::support::recorder::{Change, Recorder, describe, first};
use crate::support::wait;

pub async fn kubernetes_is_the_version_we_build(bench: &Bench) {
    let client = bench.cluster().await.client.clone();
    let version = client.apiserver_version().await.expect("a version");
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"), "{version:?}");
    assert!(version.git_version.starts_with("v1.36."), "{version:?}");
}

pub async fn nodes_are_ready_and_schedulable(bench: &Bench) {
    let api: Api<Node> = Api::all(bench.cluster().await.client.clone());
    let selection = ListParams::default().labels("!bench.windlass.dev/pool");
    let deadline = Duration::from_secs(30);
    wait::until_all(&api, selection, deadline, "ready nodes", |nodes| {
        assert!(nodes.len() >= 3, "only {} nodes", nodes.len());
        for node in nodes {
            wait::holds(&serde_json::to_value(node).expect("JSON"), "Ready")?;
        }
        Ok(())
    })
    .await;
}

/// For longer than the node controller has patience with nodes that are silent, by default.
pub async fn nodes_stay_ready_without_a_heartbeat(bench: &Bench) {
    let api: Api<Node> = Api::all(bench.cluster().await.client.clone());
    let selection = ListParams::default().labels("!bench.windlass.dev/pool");
    tokio::time::sleep(Duration::from_secs(90).saturating_sub(bench.age())).await;
    for node in api.list(&selection).await.expect("nodes") {
        let made = node.metadata.creation_timestamp.as_ref().expect("a time").0;
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref()).expect("conditions");
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready").expect("the condition Ready");
        let since = ready.last_transition_time.as_ref().expect("a time").0;
        assert_eq!(ready.status, "True", "{node:?}");
        assert!(since.duration_since(made).as_secs() < 45, "ready since {since}, made at {made}");
    }
}

pub async fn a_recorder_sees_every_write_in_order(bench: &Bench) {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("recorder").await;
    let map = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}, "data": {"text": text}});
    cluster.apply(&namespace, map("before")).await;
    let kinds = [("v1", "ConfigMap"), ("v1", "Secret")];
    let recorder = Recorder::start(cluster, &namespace, &kinds).await;
    cluster.apply(&namespace, map("after")).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later"}});
    cluster.apply(&namespace, secret).await;
    let maps: Api<ConfigMap> = cluster.api(&namespace);
    maps.delete("there", &DeleteParams::default()).await.expect("a deletion");

    let log = recorder.complete().await;
    let own: Vec<_> = log
        .iter()
        .filter(|entry| entry.name != "kube-root-ca.crt")
        .map(|entry| (entry.kind.as_str(), entry.name.as_str(), entry.change))
        .collect();
    let expected = [
        ("ConfigMap", "there", Change::Added),
        ("ConfigMap", "there", Change::Modified),
        ("Secret", "later", Change::Added),
        ("ConfigMap", "there", Change::Deleted),
    ];
    assert_eq!(own, expected, "{}", describe(&log));
    let changed = first(&log, "the change", |entry| entry.change == Change::Modified);
    assert_eq!(changed.object["data"]["text"], "after");
}
