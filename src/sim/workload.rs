//! Deployments, Jobs and operators: what makes objects ready, late or never.

use serde_json::{Map, Value};

use super::chart::{Care, Operator, Outcome};
use super::conditions::{self, Condition};
use super::store::{Change, Key, Verb, generation, is_deleting};
use super::world::{Task, World};
use super::{helm, json};

const KUBERNETES: &str = "kubernetes";
const OPERATOR: &str = "operator";
/// Milliseconds until a controller of Kubernetes has seen a change.
const NOTICE: u64 = 10;

impl World {
    /// What follows from a change of a workload or a resource.
    pub(super) fn workloads_react(&mut self, change: &Change) {
        if change.verb == Verb::Deleted {
            return;
        }
        let key = change.key.as_ref();
        match key.kind.as_str() {
            "Deployment" => {
                self.schedule(NOTICE, Task::Workload(key.clone()));
                if helm::readiness(&self.store, std::slice::from_ref(key)) == helm::Readiness::Ready {
                    self.wake_operators(key);
                }
            }
            "Job" => self.schedule(NOTICE, Task::Workload(key.clone())),
            _ => {
                let looked_after = |operator: &Operator| is_for(operator, key);
                if change.actor != OPERATOR && self.script.operators.iter().any(looked_after) {
                    self.schedule(NOTICE, Task::Care(key.clone(), false));
                }
            }
        }
    }

    fn wake_operators(&mut self, deployment: &Key) {
        let kinds: Vec<(String, String)> = self
            .script
            .operators
            .iter()
            .filter(|operator| operator.deployment_key() == *deployment)
            .map(|operator| (operator.api_version.clone(), operator.kind.clone()))
            .collect();
        for (api_version, kind) in kinds {
            let keys: Vec<Key> = self
                .store
                .list(&kind)
                .map(|(key, _)| key)
                .filter(|key| key.api_version == api_version)
                .cloned()
                .collect();
            keys.into_iter().for_each(|key| self.schedule(NOTICE, Task::Care(key, false)));
        }
    }

    /// A Deployment or Job is looked at.
    pub(super) fn workload_step(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else { return };
        let spec = |field| json::text(&object, &["spec", field]).to_owned();
        let behaviour = self.script.behaviour(&spec("release"), &spec("version"));
        let now = self.now();
        let generation = generation(&object);
        let begun = json::integer(&object, &["status", "observedGeneration"]) == Some(generation);
        if !begun {
            let until = now + behaviour.takes;
            self.write_status(KUBERNETES, key, |status| {
                status.insert("observedGeneration".into(), generation.into());
                status.insert("replicas".into(), 1.into());
                status.insert("updatedReplicas".into(), 0.into());
                status.entry("availableReplicas".to_owned()).or_insert_with(|| 0.into());
                status.insert("until".into(), until.into());
            });
            self.schedule(behaviour.takes, Task::Workload(key.clone()));
            return;
        }
        let until = json::at(&object, &["status", "until"]).and_then(Value::as_u64).unwrap_or(0);
        if json::integer(&object, &["status", "updatedReplicas"]) == Some(1) {
            return;
        }
        if until > now {
            // It was looked at for an earlier spec.
            self.schedule(until - now, Task::Workload(key.clone()));
            return;
        }
        match (key.kind.as_str(), behaviour.outcome) {
            ("Job", Outcome::Hangs | Outcome::Fails) => self.finish_job(key, "Failed"),
            ("Job", _) => self.finish_job(key, "Complete"),
            (_, Outcome::Hangs) => {}
            (_, _) => self.write_status(KUBERNETES, key, |status| {
                status.insert("updatedReplicas".into(), 1.into());
                status.insert("availableReplicas".into(), 1.into());
            }),
        }
    }

    fn finish_job(&mut self, key: &Key, condition: &str) {
        let now = self.now();
        self.write_status(KUBERNETES, key, |status| {
            let condition =
                Condition { type_: condition, status: "True", reason: "", message: "", observed_generation: None };
            conditions::set(status, &condition, now);
            status.insert("updatedReplicas".into(), 1.into());
        });
    }

    /// An operator looks at a resource; `done`: its work on it is over.
    pub(super) fn care_step(&mut self, key: &Key, done: bool) {
        let Some(operator) = self.script.operators.iter().find(|operator| is_for(operator, key)).cloned() else {
            return;
        };
        let Some(resource) = self.store.get(key).cloned().filter(|resource| !is_deleting(resource)) else { return };
        let deployment = operator.deployment_key();
        if helm::readiness(&self.store, std::slice::from_ref(&deployment)) != helm::Readiness::Ready {
            return;
        }
        let Some(version) = self.store.get(&deployment).map(|d| json::text(d, &["spec", "version"]).to_owned()) else {
            return;
        };
        if is_up_to_date(&resource, &version) {
            return;
        }
        let care = operator.care.get(&version).copied().unwrap_or_default();
        if care == Care::Silent {
            return;
        }
        if !done {
            if !operator.stays_true {
                self.write_status(OPERATOR, key, |status| {
                    status.insert("phase".into(), "Deploying".into());
                });
                self.report(key, "False", "Deploying");
            }
            self.schedule(operator.takes, Task::Care(key.clone(), true));
            return;
        }
        let observed = generation(&resource);
        self.write_status(OPERATOR, key, |status| {
            status.insert("observedGeneration".into(), observed.into());
            match care {
                Care::Reports => {
                    status.insert("observedVersion".into(), version.clone().into());
                    status.insert("phase".into(), "Deployed".into());
                }
                Care::Fails => {
                    status.insert("phase".into(), "Failed".into());
                    status.insert("failedVersion".into(), version.clone().into());
                }
                Care::Silent => {}
            }
        });
        match care {
            Care::Reports => self.report(key, "True", "Deployed"),
            Care::Fails => self.report(key, "False", "DeploymentFailed"),
            Care::Silent => {}
        }
    }

    fn report(&mut self, key: &Key, available: &str, reason: &str) {
        let now = self.now();
        self.write_status(OPERATOR, key, |status| {
            let condition =
                Condition { type_: "Available", status: available, reason, message: "", observed_generation: None };
            conditions::set(status, &condition, now);
        });
    }

    /// Writes a status; the object may be gone meanwhile.
    pub(super) fn write_status(
        &mut self,
        actor: &'static str,
        key: &Key,
        change: impl FnOnce(&mut Map<String, Value>),
    ) {
        let _ = self.store.edit_status(actor, key, change);
    }
}

fn is_for(operator: &Operator, key: &Key) -> bool {
    operator.kind == key.kind && operator.api_version == key.api_version
}

fn is_up_to_date(resource: &Map<String, Value>, version: &str) -> bool {
    let status = |field| json::text(resource, &["status", field]);
    let observed = json::integer(resource, &["status", "observedGeneration"]) == Some(generation(resource));
    let deployed = status("phase") == "Deployed" && status("observedVersion") == version;
    let failed = status("phase") == "Failed" && status("failedVersion") == version;
    observed && (deployed || failed)
}
