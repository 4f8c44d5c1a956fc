//! Nodes and pods as the DaemonSet controller sees them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{HASH, owner_of};
use crate::sim::json;
use crate::sim::nodes::is_ready;
use crate::sim::store::{Key, Object, Store, is_deleting, uid};

/// Taints with the effect NoSchedule that every DaemonSet's pods tolerate.
const TOLERATED: [&str; 4] = [
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
];

/// All nodes that should have a pod, or have one.
pub(super) struct View<'a> {
    pub places: BTreeMap<String, Place<'a>>,
}

/// One node.
pub(super) struct Place<'a> {
    name: String,
    pub should_run: bool,
    /// Pods here, oldest first.
    pods: Vec<(&'a Key, &'a Object)>,
    hash: String,
}

/// Pods, and whether they are ready.
type Told<'a> = Vec<(&'a Key, bool)>;

impl<'a> View<'a> {
    pub fn of(store: &'a Store, daemon_set: &Object, hash: &str) -> Self {
        let mut places: BTreeMap<String, Place<'a>> = BTreeMap::new();
        for (key, node) in store.list("Node") {
            let should_run = should_run(node, daemon_set);
            let place = Place { name: key.name.clone(), should_run, pods: Vec::new(), hash: hash.to_owned() };
            places.insert(key.name.clone(), place);
        }
        for (key, pod) in store.list("Pod").filter(|(_, pod)| owner_of(pod) == uid(daemon_set)) {
            if let Some(place) = places.get_mut(json::text(pod, &["spec", "nodeName"])) {
                place.pods.push((key, pod));
            }
        }
        places.retain(|_, place| place.should_run || !place.pods.is_empty());
        for place in places.values_mut() {
            place.pods.sort_by_key(|(_, pod)| made(pod));
        }
        Self { places }
    }

    pub fn desired(&self) -> u64 {
        self.places.values().filter(|place| place.should_run).count() as u64
    }
}

impl<'a> Place<'a> {
    pub fn name(&self) -> String {
        self.name.clone()
    }

    pub fn has_pod(&self) -> bool {
        !self.pods.is_empty()
    }

    pub fn is_missing(&self) -> bool {
        self.should_run && self.pods.is_empty()
    }

    pub fn oldest_is_ready(&self) -> bool {
        self.pods.first().is_some_and(|(_, pod)| is_ready(pod))
    }

    pub fn oldest_is_new(&self) -> bool {
        self.pods.first().is_some_and(|(_, pod)| self.is_new(pod))
    }

    /// The pods that stay: of the newest template, and older ones.
    pub fn staying(&self) -> (Told<'a>, Told<'a>) {
        let staying = self.pods.iter().filter(|(_, pod)| !is_deleting(pod));
        let (new, old): (Vec<_>, Vec<_>) = staying.partition(|(_, pod)| self.is_new(pod));
        let told = |pods: Vec<&(&'a Key, &'a Object)>| pods.iter().map(|(key, pod)| (*key, is_ready(pod))).collect();
        (told(new), told(old))
    }

    /// Pods beyond the one that a node has, or the two while one surges there:
    /// a new one that is not ready beside an old one that is.
    pub fn excess(&self, surges: bool) -> Vec<Key> {
        let (new, old) = self.staying();
        if new.len() + old.len() < 2 {
            return Vec::new();
        }
        if !surges {
            let staying = self.pods.iter().filter(|(_, pod)| !is_deleting(pod));
            return staying.skip(1).map(|(key, _)| (*key).clone()).collect();
        }
        let mut excess: Vec<Key> =
            new.iter().skip(1).chain(old.iter().skip(1)).map(|(key, _)| (*key).clone()).collect();
        if let (Some((_, new_ready)), Some((old_key, old_ready))) = (new.first(), old.first())
            && (*new_ready || !*old_ready)
        {
            excess.push((*old_key).clone());
        }
        excess
    }

    fn is_new(&self, pod: &Map<String, Value>) -> bool {
        json::text(pod, &["metadata", "labels", HASH]) == self.hash
    }
}

fn made(pod: &Map<String, Value>) -> u64 {
    json::text(pod, &["metadata", "annotations", "made"]).parse().unwrap_or(0)
}

/// Whether no taint keeps its pods from being scheduled to a node.
fn should_run(node: &Object, daemon_set: &Object) -> bool {
    let taints = json::at(node, &["spec", "taints"]).and_then(Value::as_array);
    let tolerations = json::at(daemon_set, &["spec", "template", "spec", "tolerations"]).and_then(Value::as_array);
    let tolerates_all = tolerations.into_iter().flatten().any(|t| t["operator"] == "Exists" && t["key"].is_null());
    let keeps_away =
        |taint: &Value| taint["effect"] == "NoSchedule" && !TOLERATED.contains(&taint["key"].as_str().unwrap_or(""));
    tolerates_all || !taints.into_iter().flatten().any(keeps_away)
}
