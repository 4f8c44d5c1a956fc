//! Simulated nodes.

use std::ops::Deref;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::wait;

/// kwok acts for the nodes that have this label, and for their pods.
pub const KUBELET: &str = "bench.windlass.dev/kubelet";

/// Nodes of a test's own have this label and a taint of the same key.
pub const POOL: &str = "bench.windlass.dev/pool";

/// Nodes of a test's own, by name. They are removed when it ends: every one costs the programs
/// of the bench something.
#[must_use]
pub struct Pool {
    client: Client,
    name: String,
    nodes: Vec<String>,
}

impl Deref for Pool {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.nodes
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let api: Api<Node> = Api::all(self.client.clone());
        let own = ListParams::default().labels(&format!("{POOL}={}", self.name));
        runtime.spawn(async move { api.delete_collection(&DeleteParams::default(), &own).await.map(drop) });
    }
}

/// The nodes of one bench.
#[derive(Clone)]
pub struct Nodes {
    client: Client,
}

impl Nodes {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Makes nodes for everybody, and waits until they are ready.
    pub async fn add(&self, prefix: &str, count: usize) -> Vec<String> {
        self.create(prefix, count, None).await
    }

    /// Makes nodes with label and taint `bench.windlass.dev/pool=<pool>`: only pods that
    /// tolerate it come here.
    pub async fn add_pool(&self, pool: &str, count: usize) -> Pool {
        let nodes = self.create(pool, count, Some(pool)).await;
        Pool { client: self.client.clone(), name: pool.to_owned(), nodes }
    }

    /// One more node of a pool, which goes with it.
    pub async fn join(&self, pool: &Pool) -> String {
        let name = format!("{}-joined", pool.name);
        self.create_all(std::slice::from_ref(&name), Some(&pool.name)).await;
        name
    }

    async fn create(&self, prefix: &str, count: usize, pool: Option<&str>) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|n| format!("{prefix}-{n}")).collect();
        self.create_all(&names, pool).await;
        names
    }

    async fn create_all(&self, names: &[String], pool: Option<&str>) {
        let api: Api<Node> = Api::all(self.client.clone());
        for name in names {
            api.create(&Default::default(), &node(name, pool))
                .await
                .unwrap_or_else(|error| panic!("node {name}: {error}"));
        }
        for name in names {
            let what = "a ready node without taints of the node controller";
            wait::until(&api, name, Duration::from_secs(60), what, |node| usable(node.ok_or("no such node")?)).await;
        }
    }

    /// What happens when a node loses power: kwok no longer acts for it, and what the node
    /// controller writes after its grace period is written at once (Ready=Unknown, its pods
    /// unready). The node controller then taints it.
    pub async fn kill(&self, name: &str) {
        let api: Api<Node> = Api::all(self.client.clone());
        self.label(name, None).await;
        let unknown = |kind: &str| {
            json!({"type": kind, "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.", "lastTransitionTime": now()})
        };
        let patch = json!({"status": {"conditions": [unknown("Ready")]}});
        api.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .unwrap_or_else(|error| panic!("node {name}: {error}"));
        self.mark_pods_unready(name).await;
        wait::until(&api, name, Duration::from_secs(30), "the taint unreachable", |node| {
            let taints = taints(node.ok_or("no such node")?);
            match taints.iter().any(|taint| taint == "node.kubernetes.io/unreachable") {
                true => Ok(()),
                false => Err(format!("taints {taints:?}")),
            }
        })
        .await;
    }

    /// Power is back.
    pub async fn revive(&self, name: &str) {
        self.label(name, Some("running")).await;
        let api: Api<Node> = Api::all(self.client.clone());
        wait::until(&api, name, Duration::from_secs(60), "ready again", |node| usable(node.ok_or("no such node")?))
            .await;
    }

    async fn label(&self, name: &str, value: Option<&str>) {
        let api: Api<Node> = Api::all(self.client.clone());
        let patch = json!({"metadata": {"labels": {KUBELET: value}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap_or_else(|error| panic!("node {name}: {error}"));
    }

    async fn mark_pods_unready(&self, node: &str) {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let selection = ListParams::default().fields(&format!("spec.nodeName={node}"));
        for pod in pods.list(&selection).await.expect("pods") {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().expect("one"));
            let patch = json!({"status": {"conditions": [
                {"type": "Ready", "status": "False", "lastTransitionTime": now()}
            ]}});
            api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(patch))
                .await
                .unwrap_or_else(|error| panic!("pod {}: {error}", pod.name_any()));
        }
    }
}

fn node(name: &str, pool: Option<&str>) -> Node {
    let mut labels = json!({
        KUBELET: "running",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    });
    let mut taints = json!([]);
    if let Some(pool) = pool {
        labels[POOL] = json!(pool);
        taints = json!([{"key": POOL, "value": pool, "effect": "NoSchedule"}]);
    }
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": resources, "capacity": resources},
    }))
    .expect("a node")
}

fn usable(node: &Node) -> Result<(), String> {
    let object = serde_json::to_value(node).expect("JSON");
    wait::holds(&object, "Ready")?;
    let taints = taints(node);
    match taints.iter().find(|taint| taint.starts_with("node.kubernetes.io/")) {
        None => Ok(()),
        Some(taint) => Err(format!("taint {taint}")),
    }
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().map(|taint| taint.key.clone()).collect()
}

fn now() -> String {
    jiff::Timestamp::now().round(jiff::Unit::Second).expect("a time").to_string()
}
