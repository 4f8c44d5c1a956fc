//! Nodes: they join, leave, die and come back.

use serde_json::{Map, Value, json};

use super::json;
use super::store::{Expected, Key};
use super::world::{Task, World};

const ACTOR: &str = "node-controller";

/// Where a node stands.
pub fn key(name: &str) -> Key {
    Key::new("v1", "Node", "", name)
}

impl World {
    /// A node joins, ready.
    pub fn add_node(&mut self, name: &str) {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {},
        });
        // A node of that name may be there already.
        let _ = self.store.create(ACTOR, node.as_object().cloned().unwrap_or_default());
        self.set_ready(name, true);
        self.settle_writes();
    }

    /// A node dies: it is not ready any more, nothing is scheduled to it, and its
    /// pods are neither ready nor do they go.
    pub fn kill_node(&mut self, name: &str) {
        self.set_ready(name, false);
        for pod in self.pods_on(name) {
            self.write_status(ACTOR, &pod, |status| set_ready(status, false));
        }
        self.settle_writes();
    }

    /// A dead node is back, and its pods with it.
    pub fn revive_node(&mut self, name: &str) {
        self.set_ready(name, true);
        for pod in self.pods_on(name) {
            self.schedule(10, Task::Pod(pod));
        }
        self.settle_writes();
    }

    /// A node leaves, and its pods with it.
    pub fn remove_node(&mut self, name: &str) {
        let _ = self.store.delete(ACTOR, &key(name), &Expected::default());
        for pod in self.pods_on(name) {
            self.store.take_away(ACTOR, &pod);
        }
        self.settle_writes();
    }

    /// A node is cordoned, or no longer.
    pub fn cordon_node(&mut self, name: &str, cordoned: bool) {
        let taint = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
        let taints = if cordoned { json!([taint]) } else { json!([]) };
        let _ = self.store.edit(ACTOR, &key(name), &Expected::default(), |node| {
            json::set(node, &["spec", "unschedulable"], cordoned.into());
            json::set(node, &["spec", "taints"], taints);
        });
        self.settle_writes();
    }

    pub(super) fn is_node_ready(&self, name: &str) -> bool {
        self.store.get(&key(name)).is_some_and(|node| is_ready(node))
    }

    fn set_ready(&mut self, name: &str, ready: bool) {
        let taint = |effect: &str| json!({"key": "node.kubernetes.io/unreachable", "effect": effect});
        let taints = if ready { json!([]) } else { json!([taint("NoSchedule"), taint("NoExecute")]) };
        let _ = self.store.edit(ACTOR, &key(name), &Expected::default(), |node| {
            json::set(node, &["spec", "taints"], taints);
        });
        self.write_status(ACTOR, &key(name), |status| set_ready(status, ready));
    }

    fn pods_on(&self, node: &str) -> Vec<Key> {
        let here = |pod: &Map<String, Value>| json::text(pod, &["spec", "nodeName"]) == node;
        self.store.list("Pod").filter(|(_, pod)| here(pod)).map(|(key, _)| key.clone()).collect()
    }
}

/// Whether the condition Ready of a node or pod is True.
pub(super) fn is_ready(object: &Map<String, Value>) -> bool {
    super::conditions::is_true(object, "Ready")
}

/// Sets the condition Ready of a node or pod.
pub(super) fn set_ready(status: &mut Map<String, Value>, ready: bool) {
    let value = if ready { "True" } else { "False" };
    let conditions = status.entry("conditions".to_owned()).or_insert_with(|| json!([]));
    if let Value::Array(conditions) = conditions {
        conditions.retain(|condition| condition["type"] != "Ready");
        conditions.push(json!({"type": "Ready", "status": value}));
    }
}
