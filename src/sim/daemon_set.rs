//! The DaemonSet controller, by the rules of Kubernetes 1.31 and later: when pods
//! are made, and when they are deleted.

mod rolling;
mod view;

use serde_json::{Map, Value, json};

use super::json;
use super::store::{Change, Expected, Key, Object, Verb, generation, is_deleting, uid};
use super::world::{Task, World};
use view::{Place, View};

const ACTOR: &str = "daemonset-controller";
const APPS: &str = "apps/v1";
const HASH: &str = "controller-revision-hash";
/// Milliseconds until the controller has seen a change.
const NOTICE: u64 = 10;

impl World {
    /// What follows from a change of a DaemonSet, a pod or a node.
    pub(super) fn daemon_sets_react(&mut self, change: &Change) {
        let key = change.key.as_ref();
        match key.kind.as_str() {
            "DaemonSet" if change.verb == Verb::Deleted => self.collect(uid(&change.object)),
            "DaemonSet" => self.schedule(NOTICE, Task::DaemonSet(key.clone())),
            "Pod" => {
                let owners = json::at(&change.object, &["metadata", "ownerReferences"]);
                let name = owners.and_then(|owners| owners[0]["name"].as_str()).unwrap_or("");
                let owner = Key::new(APPS, "DaemonSet", &key.namespace, name);
                if self.store.get(&owner).is_some() {
                    self.schedule(NOTICE, Task::DaemonSet(owner));
                }
            }
            "Node" => {
                let all: Vec<Key> = self.store.list("DaemonSet").map(|(key, _)| key.clone()).collect();
                all.into_iter().for_each(|key| self.schedule(NOTICE, Task::DaemonSet(key)));
            }
            _ => {}
        }
    }

    /// The pods and revisions of a DaemonSet go with it.
    fn collect(&mut self, owner: &str) {
        let owned = |object: &Map<String, Value>| owner_of(object) == owner;
        let kinds = ["Pod", "ControllerRevision"];
        let objects = kinds.iter().flat_map(|kind| self.store.list(kind));
        let keys: Vec<Key> = objects.filter(|(_, object)| owned(object)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let _ = self.store.delete("garbage-collector", &key, &Expected::default());
        }
    }

    /// The controller looks at a DaemonSet: a revision for its template, pods
    /// where there are none, old pods deleted as far as the budget goes, and only
    /// then the status.
    pub(super) fn daemon_set_step(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned().filter(|object| !is_deleting(object)) else { return };
        let hash = self.revision_of(key, &object);
        self.manage(key, &object, &hash);
        let view = View::of(&self.store, &object, &hash);
        if json::text(&object, &["spec", "updateStrategy", "type"]) != "OnDelete" {
            let plan = rolling::plan(&view, &object);
            plan.delete.iter().for_each(|pod| self.delete_pod(pod));
            plan.create.iter().for_each(|node| self.create_pod(key, &object, &hash, node));
        }
        self.count_pods(key, &object, &hash);
    }

    /// Hash of the template; its revision is made, or numbered anew if the
    /// template is one that was there before.
    fn revision_of(&mut self, key: &Key, object: &Object) -> String {
        let template = json::at(object, &["spec", "template"]).cloned().unwrap_or_default();
        let digest = json::digest(&template);
        let hash = digest.get(digest.len() - 10..).unwrap_or_default().to_owned();
        let revision = Key::new(APPS, "ControllerRevision", &key.namespace, &format!("{}-{hash}", key.name));
        let own = self.store.list("ControllerRevision").filter(|(_, other)| owner_of(other) == uid(object));
        let newest = own.map(|(_, other)| number(other)).max().unwrap_or(0);
        match self.store.get(&revision).map(|known| number(known)) {
            Some(known) if known == newest => {}
            Some(_) => {
                let _ = self.store.edit(ACTOR, &revision, &Expected::default(), |known| {
                    known.insert("revision".into(), (newest + 1).into());
                });
            }
            None => {
                let made = json!({
                    "apiVersion": APPS, "kind": "ControllerRevision",
                    "metadata": {
                        "name": revision.name, "namespace": key.namespace, "labels": {HASH: hash},
                        "ownerReferences": owner(object),
                    },
                    "data": {"spec": {"template": template}}, "revision": newest + 1,
                });
                let _ = self.store.create(ACTOR, made.as_object().cloned().unwrap_or_default());
            }
        }
        hash
    }

    /// A pod on every node that should have one and has none, not even one that
    /// is on its way out; no second one, unless it surges.
    fn manage(&mut self, key: &Key, object: &Object, hash: &str) {
        let view = View::of(&self.store, object, hash);
        let surges = rolling::surge(object, view.desired()) > 0;
        let missing: Vec<String> = view.places.values().filter(|place| place.is_missing()).map(Place::name).collect();
        let excess: Vec<Key> = view.places.values().flat_map(|place| place.excess(surges)).collect();
        excess.iter().for_each(|pod| self.delete_pod(pod));
        missing.iter().for_each(|node| self.create_pod(key, object, hash, node));
    }

    fn delete_pod(&mut self, pod: &Key) {
        let _ = self.store.delete(ACTOR, pod, &Expected::default());
    }

    fn create_pod(&mut self, key: &Key, object: &Object, hash: &str, node: &str) {
        let template = json::at(object, &["spec", "template"]).cloned().unwrap_or_default();
        self.pods_made += 1;
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": template["metadata"].as_object().cloned().unwrap_or_default(),
            "spec": template["spec"],
        });
        pod["metadata"]["name"] = format!("{}-{}", key.name, self.pods_made).into();
        pod["metadata"]["namespace"] = key.namespace.as_str().into();
        pod["metadata"]["labels"][HASH] = hash.into();
        pod["metadata"]["ownerReferences"] = owner(object);
        pod["metadata"]["annotations"]["made"] = self.pods_made.to_string().into();
        pod["spec"]["nodeName"] = node.into();
        let _ = self.store.create(ACTOR, pod.as_object().cloned().unwrap_or_default());
    }

    fn count_pods(&mut self, key: &Key, object: &Object, hash: &str) {
        let view = View::of(&self.store, object, hash);
        let count = |holds: &dyn Fn(&Place<'_>) -> bool| view.places.values().filter(|place| holds(place)).count();
        let ready = count(&|place| place.should_run && place.oldest_is_ready());
        let numbers = [
            ("desiredNumberScheduled", count(&|place| place.should_run)),
            ("currentNumberScheduled", count(&|place| place.should_run && place.has_pod())),
            ("updatedNumberScheduled", count(&|place| place.should_run && place.oldest_is_new())),
            ("numberReady", ready),
            ("numberAvailable", ready),
            ("numberMisscheduled", count(&|place| !place.should_run && place.has_pod())),
        ];
        let observed = generation(object);
        self.write_status(ACTOR, key, |status| {
            for (field, number) in numbers {
                status.insert(field.into(), number.into());
            }
            status.insert("observedGeneration".into(), observed.into());
        });
    }
}

fn owner(object: &Object) -> Value {
    let name = json::text(object, &["metadata", "name"]);
    json!([{"apiVersion": APPS, "kind": "DaemonSet", "name": name, "uid": uid(object), "controller": true}])
}

/// uid of the first owner.
fn owner_of(object: &Map<String, Value>) -> &str {
    let owners = json::at(object, &["metadata", "ownerReferences"]);
    owners.and_then(|owners| owners[0]["uid"].as_str()).unwrap_or("")
}

fn number(revision: &Map<String, Value>) -> i64 {
    json::integer(revision, &["revision"]).unwrap_or(0)
}
