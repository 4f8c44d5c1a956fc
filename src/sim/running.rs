//! What a release runs, as its workloads tell.

use std::collections::BTreeMap;

use super::chart::Rendering;
use super::helm::{Readiness, readiness};
use super::store::Key;
use super::world::World;

/// A version of a chart that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The version.
    pub version: String,
    /// On how many nodes, where it runs on nodes.
    pub nodes: Option<usize>,
}

/// What a release runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// Its versions; none where it has no workload.
    pub versions: Vec<Running>,
    /// Whether its workloads are ready.
    pub is_ready: bool,
}

impl World {
    /// What a release runs: the version of its Deployments, and of the pods of
    /// its DaemonSets on their nodes.
    pub fn runs(&self, namespace: &str, release: &str) -> Runs {
        let mut versions: BTreeMap<String, Option<usize>> = BTreeMap::new();
        let mut workloads: Vec<Key> = Vec::new();
        for (key, object) in self.store.list("Deployment") {
            let rendering = Rendering::of(object);
            if key.namespace == namespace && rendering.release == release {
                versions.insert(rendering.version, None);
                workloads.push(key.clone());
            }
        }
        let mut on_nodes: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for (key, object) in self.store.list("Pod") {
            let rendering = Rendering::of_pod(object);
            if key.namespace == namespace && rendering.release == release {
                *on_nodes.entry(rendering.version).or_insert(Some(0)).get_or_insert(0) += 1;
            }
        }
        let daemon_sets = self.store.list("DaemonSet").filter(|(key, object)| {
            let template = super::json::at(object, &["spec", "template"]).and_then(serde_json::Value::as_object);
            key.namespace == namespace
                && template.is_some_and(|template| Rendering::of_pod(template).release == release)
        });
        workloads.extend(daemon_sets.map(|(key, _)| key.clone()));
        // Of a release with both the nodes say more.
        let told = if on_nodes.is_empty() { versions } else { on_nodes };
        let versions = told.into_iter().map(|(version, nodes)| Running { version, nodes });
        Runs { versions: versions.collect(), is_ready: readiness(&self.store, &workloads) == Readiness::Ready }
    }
}
