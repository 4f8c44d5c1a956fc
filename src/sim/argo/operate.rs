//! Operations of an Application.

use serde_json::{Map, Value, json};

use super::{ARGO, NOTICE};
use crate::sim::chart::is_hook;
use crate::sim::helm::{self, Plan, Readiness};
use crate::sim::json;
use crate::sim::store::{Expected, Key, Object, is_deleting};
use crate::sim::strategy;
use crate::sim::world::{Task, World};

/// Milliseconds an operation needs to render, and to write its result.
const RENDER: u64 = 150;
const RESULT: u64 = 10;
/// Milliseconds until an operation that waits for a hook is looked at again.
const RESUME: u64 = 30_000;
/// Milliseconds until the hooks of an operation are looked at again.
const HOOKS: u64 = 1000;
/// Milliseconds a termination takes.
const TERMINATE: u64 = 2000;

const FAILED: &str = "one or more synchronization tasks completed unsuccessfully";

impl World {
    pub(in crate::sim) fn argo_operate(&mut self, key: &Key) {
        let Some(application) = self.store.get(key).cloned() else { return };
        let Some(operation) = application.get("operation").filter(|operation| !operation.is_null()).cloned() else {
            return;
        };
        let state = |field: &str| json::text(&application, &["status", "operationState", field]).to_owned();
        match (state("phase").as_str(), state("finishedAt").is_empty()) {
            ("Terminating", _) => self.terminate(key),
            ("Running", true) if self.argo.at_work.contains_key(key) => {
                self.synchronise_now(key, &application, &operation)
            }
            ("Running", false) => self.begin_again(key),
            _ => self.begin_operation(key, &application, operation),
        }
    }

    fn begin_operation(&mut self, key: &Key, application: &Object, operation: Value) {
        let stated = operation.pointer("/sync/source").cloned();
        let source = stated.or_else(|| json::at(application, &["spec", "source"]).cloned()).unwrap_or_default();
        self.argo.at_work.insert(key.clone(), source);
        let now = json::time(self.now());
        self.write_operation(key, |state| {
            *state = json!({"operation": operation, "phase": "Running", "startedAt": now});
        });
        self.schedule(RENDER, Task::ArgoOperate(key.clone()));
    }

    fn begin_again(&mut self, key: &Key) {
        self.write_operation(key, |state| {
            if let Value::Object(state) = state {
                state.shift_remove("finishedAt");
                state.shift_remove("syncResult");
                state.insert("message".into(), "Retrying operation".into());
            }
        });
        self.schedule(RENDER, Task::ArgoOperate(key.clone()));
    }

    fn synchronise_now(&mut self, key: &Key, application: &Object, operation: &Value) {
        if self.script.sync_window {
            return self.wait_for(key, RESUME, "Sync operation blocked by sync window", None);
        }
        let source = self.argo.at_work.get(key).cloned().unwrap_or_default();
        let plan = match self.argo_plan(application, &source) {
            Ok(plan) => plan,
            Err(missing) => return self.attempt_failed(key, application, operation, &source, ("Error", &missing.0)),
        };
        if self.script.hanging_syncs.contains(&(plan.identity.1.clone(), plan.version.clone())) {
            // Nothing more happens: a hook of it does not end.
            return self.wait_for(key, RESUME, "waiting for completion of hook batch/Job/hook", Some(&source));
        }
        if self.helm.is_refused(&self.script, &plan) {
            return self.attempt_failed(key, application, operation, &source, ("Failed", FAILED));
        }
        match self.run_hooks(key, &plan) {
            Readiness::Ready => {}
            Readiness::Waiting => {
                return self.wait_for(key, HOOKS, "waiting for completion of hook batch/Job", Some(&source));
            }
            Readiness::Failed => return self.attempt_failed(key, application, operation, &source, ("Failed", FAILED)),
        }
        let prune = operation.pointer("/sync/prune").and_then(Value::as_bool) == Some(true);
        self.apply_objects(key, application, &plan, prune);
        self.finish_operation(key, "Succeeded", "successfully synced (all tasks run)", Some(&source));
    }

    /// The operation stays as it is, and is looked at again.
    fn wait_for(&mut self, key: &Key, after: u64, message: &str, source: Option<&Value>) {
        self.schedule(after, Task::ArgoOperate(key.clone()));
        let result = source.map(result);
        self.write_operation(key, |state| {
            if let Value::Object(state) = state {
                state.insert("message".into(), message.into());
                if let Some(result) = result {
                    state.insert("syncResult".into(), result);
                }
            }
        });
    }

    /// Hooks are made again by every run of an operation, and end before anything
    /// else is applied.
    fn run_hooks(&mut self, key: &Key, plan: &Plan) -> Readiness {
        let mut hooks = self.argo_render(key, plan);
        hooks.retain(is_hook);
        let keys: Vec<Key> = hooks.iter().map(Key::of).collect();
        if !hooks.is_empty() && self.argo.hooks_started.insert(key.clone()) {
            for hook in &hooks {
                // It may not be there; then there is nothing to delete.
                let _ = self.store.delete(ARGO, &Key::of(hook), &Expected::default());
                let _ = self.store.apply(ARGO, hook, &Expected::default());
            }
        }
        let state = helm::readiness(&self.store, &keys);
        if state != Readiness::Waiting {
            self.argo.hooks_started.remove(key);
        }
        state
    }

    fn apply_objects(&mut self, key: &Key, application: &Object, plan: &Plan, prune: bool) {
        let mut wanted = self.argo_render(key, plan);
        wanted.retain(|object| !is_hook(object));
        if strategy::is_respected(application) {
            wanted.iter_mut().for_each(|object| strategy::keep_live(&self.store, object));
        }
        let keys: Vec<Key> = wanted.iter().map(Key::of).collect();
        for object in &wanted {
            let _ = self.store.apply(ARGO, object, &Expected::default());
        }
        for gone in self.tracked(key).iter().filter(|tracked| prune && !keys.contains(tracked)) {
            let hook = self.store.get(gone).is_some_and(|object| is_hook(object));
            if gone.kind != "CustomResourceDefinition" && !hook {
                helm::delete(&mut self.store, gone, ARGO);
            }
        }
    }

    fn attempt_failed(
        &mut self,
        key: &Key,
        application: &Object,
        operation: &Value,
        source: &Value,
        (phase, message): (&str, &str),
    ) {
        let limit = operation.pointer("/retry/limit").and_then(Value::as_u64).unwrap_or(0);
        let count = json::at(application, &["status", "operationState", "retryCount"]).and_then(Value::as_u64);
        let count = count.unwrap_or(0);
        if count >= limit {
            return self.finish_operation(key, phase, message, Some(source));
        }
        let backoff = |field: &str, default: u64| {
            let text = operation.pointer(&format!("/retry/backoff/{field}")).and_then(Value::as_str);
            text.and_then(json::duration).unwrap_or(default)
        };
        let pause = backoff("duration", 5000) * 2u64.pow(u32::try_from(count).unwrap_or(8).min(8));
        let now = json::time(self.now());
        let result = result(source);
        self.write_operation(key, |state| {
            if let Value::Object(state) = state {
                state.insert("finishedAt".into(), now.into());
                state.insert("message".into(), message.into());
                state.insert("retryCount".into(), (count + 1).into());
                state.insert("syncResult".into(), result);
            }
        });
        self.schedule(pause.min(backoff("maxDuration", 180_000)), Task::ArgoOperate(key.clone()));
    }

    fn terminate(&mut self, key: &Key) {
        if self.argo.at_work.remove(key).is_some() {
            self.schedule(TERMINATE, Task::ArgoOperate(key.clone()));
            return;
        }
        self.finish_operation(key, "Failed", "Operation terminated", None);
    }

    fn finish_operation(&mut self, key: &Key, phase: &str, message: &str, source: Option<&Value>) {
        self.argo.at_work.remove(key);
        self.argo.hooks_started.remove(key);
        let now = json::time(self.now());
        let _ = self.store.edit(ARGO, key, &Expected::default(), |object| {
            object.shift_remove("operation");
            let status = json::section(object, "status");
            let state = json::section(status, "operationState");
            state.insert("phase".into(), phase.into());
            state.insert("message".into(), message.into());
            state.insert("finishedAt".into(), now.into());
            if let Some(source) = source {
                state.insert("syncResult".into(), result(source));
            }
        });
        if self.store.get(key).is_some_and(|object| is_deleting(object)) {
            self.schedule(NOTICE, Task::ArgoDelete(key.clone()));
        }
        // What it did is compared as soon as the cluster's events are in.
        self.schedule(NOTICE.min(RESULT + 5), Task::ArgoCompare(key.clone()));
    }

    fn write_operation(&mut self, key: &Key, change: impl FnOnce(&mut Value)) {
        let _ = self.store.edit_status(ARGO, key, |status: &mut Map<String, Value>| {
            change(status.entry("operationState".to_owned()).or_insert(Value::Null));
        });
    }
}

fn result(source: &Value) -> Value {
    json!({"revision": source.get("targetRevision"), "source": source})
}
