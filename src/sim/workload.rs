//! Deployments and Jobs: what makes objects ready, late or never.

use serde_json::{Map, Value};

use super::chart::{Operator, Outcome, Rendering};
use super::conditions::{self, Condition};
use super::operator::{OPERATOR, is_for};
use super::store::{Change, Key, Verb, generation};
use super::world::{Task, World};
use super::{helm, json};

const KUBERNETES: &str = "kubernetes";
/// Milliseconds until a controller of Kubernetes has seen a change.
pub(super) const NOTICE: u64 = 10;

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

    /// A Deployment or Job is looked at.
    pub(super) fn workload_step(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned() else { return };
        let behaviour = self.script.behaviour(&Rendering::of(&object));
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
                status.insert("readyReplicas".into(), 1.into());
                let available = Condition {
                    type_: "Available",
                    status: "True",
                    reason: "",
                    message: "",
                    observed_generation: None,
                };
                conditions::set(status, &available, now);
            }),
        }
    }

    fn finish_job(&mut self, key: &Key, condition: &str) {
        let (now, complete) = (self.now(), condition == "Complete");
        self.write_status(KUBERNETES, key, |status| {
            let condition =
                Condition { type_: condition, status: "True", reason: "", message: "", observed_generation: None };
            conditions::set(status, &condition, now);
            status.insert(if complete { "succeeded" } else { "failed" }.into(), 1.into());
            status.insert("updatedReplicas".into(), 1.into());
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
