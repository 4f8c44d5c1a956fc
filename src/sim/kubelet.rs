//! Pods on their nodes: they start, crash, and go.

use serde_json::{Map, Value, json};

use super::chart::{Fate, PodBehaviour, Rendering};
use super::json;
use super::nodes::{is_ready, set_ready};
use super::store::{Change, Key, Verb, is_deleting};
use super::world::{Task, World};

const ACTOR: &str = "kubelet";
/// Milliseconds until a kubelet has seen a pod.
const NOTICE: u64 = 50;
/// Milliseconds until a container that crashed is started again: doubled with
/// each restart, up to a limit.
const RESTART: u64 = 1000;
const LONGEST_BACK_OFF: u64 = 300_000;

impl World {
    pub(super) fn kubelets_react(&mut self, change: &Change) {
        if change.key.kind != "Pod" || change.actor == ACTOR {
            return;
        }
        match change.verb {
            Verb::Created => self.schedule(NOTICE, Task::Pod(change.key.as_ref().clone())),
            Verb::Updated if is_deleting(&change.object) => {
                let after = self.behaviour_of(&change.object).gone_after;
                self.schedule(after, Task::Pod(change.key.as_ref().clone()));
            }
            Verb::Updated | Verb::Deleted => {}
        }
    }

    fn behaviour_of(&self, pod: &Map<String, Value>) -> PodBehaviour {
        if self.script.ran.contains(&Rendering::of_pod(pod)) {
            return PodBehaviour::default();
        }
        let image = json::at(pod, &["spec", "containers"]).and_then(|all| all[0]["image"].as_str()).unwrap_or("");
        self.script.pod(image, json::text(pod, &["spec", "nodeName"]))
    }

    /// A kubelet looks at a pod.
    pub(super) fn pod_step(&mut self, key: &Key) {
        let Some(pod) = self.store.get(key).cloned() else { return };
        if !self.is_node_ready(json::text(&pod, &["spec", "nodeName"])) {
            return;
        }
        if is_deleting(&pod) {
            self.store.take_away(ACTOR, key);
            return;
        }
        let behaviour = self.behaviour_of(&pod);
        let started = !json::text(&pod, &["status", "phase"]).is_empty();
        if !started {
            self.start(key, behaviour);
            return;
        }
        match behaviour.fate {
            Fate::Runs => self.becomes_ready(key, &pod),
            Fate::CrashesAfter(_) if is_ready(&pod) => {
                self.crash(key, &pod, "containerStatuses");
            }
            Fate::CrashesAfter(after) => {
                self.becomes_ready(key, &pod);
                self.schedule(after.max(1), Task::Pod(key.clone()));
            }
            Fate::CrashesAtOnce => {
                self.crash(key, &pod, "containerStatuses");
            }
            Fate::InitCrashes => {
                self.crash(key, &pod, "initContainerStatuses");
            }
            Fate::NeverReady | Fate::CannotPull => {}
        }
    }

    fn start(&mut self, key: &Key, behaviour: PodBehaviour) {
        let running = json!([{"name": "main", "restartCount": 0, "state": {"running": {}}}]);
        let pulling = json!([{"name": "main", "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}}]);
        let (phase, statuses) = match behaviour.fate {
            Fate::CannotPull => ("Pending", pulling),
            Fate::Runs | Fate::CrashesAfter(_) | Fate::CrashesAtOnce | Fate::InitCrashes | Fate::NeverReady => {
                ("Running", running)
            }
        };
        self.write_status(ACTOR, key, |status| {
            status.insert("phase".into(), phase.into());
            status.insert("containerStatuses".into(), statuses);
            set_ready(status, false);
        });
        self.schedule(behaviour.ready_after, Task::Pod(key.clone()));
    }

    fn becomes_ready(&mut self, key: &Key, pod: &Map<String, Value>) {
        let restarts = restarts(pod, "containerStatuses");
        self.write_status(ACTOR, key, |status| {
            let running = json!([{"name": "main", "restartCount": restarts, "state": {"running": {}}}]);
            status.insert("containerStatuses".into(), running);
            set_ready(status, true);
        });
    }

    /// The container has crashed and waits to be started again; one that waited
    /// already was started in between.
    fn crash(&mut self, key: &Key, pod: &Map<String, Value>, list: &str) {
        let restarts = restarts(pod, list);
        self.write_status(ACTOR, key, |status| {
            let crashed = json!([{
                "name": if list == "containerStatuses" { "main" } else { "setup" }, "restartCount": restarts,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            }]);
            status.insert(list.into(), crashed);
            set_ready(status, false);
        });
        let pause = RESTART << restarts.min(16);
        self.schedule(pause.min(LONGEST_BACK_OFF), Task::Pod(key.clone()));
    }
}

/// Restarts once it runs again.
fn restarts(pod: &Map<String, Value>, list: &str) -> u64 {
    let Some(status) = json::at(pod, &["status", list]).map(|statuses| &statuses[0]) else { return 0 };
    status["restartCount"].as_u64().unwrap_or(0) + u64::from(status["state"]["waiting"].is_object())
}
