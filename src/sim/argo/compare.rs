//! Comparisons of an Application with the cluster.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{ARGO, REFRESH, SKIP_RECONCILE, SYNC_OPTIONS};
use crate::sim::chart::is_hook;
use crate::sim::conditions;
use crate::sim::guard;
use crate::sim::helm::{self, Readiness};
use crate::sim::json;
use crate::sim::store::{Expected, Key, Object, is_deleting};
use crate::sim::strategy;
use crate::sim::world::{Task, World};

/// Milliseconds between comparisons that nothing asks for.
const RESYNC: u64 = 120_000;

/// What a comparison found.
struct Comparison {
    sync: &'static str,
    health: &'static str,
    revision: String,
    resources: Vec<Value>,
    error: Option<String>,
}

impl World {
    pub(in crate::sim) fn argo_compare(&mut self, key: &Key) {
        let Some(application) = self.store.get(key).cloned().filter(|object| !is_deleting(object)) else { return };
        self.schedule(RESYNC, Task::ArgoCompare(key.clone()));
        if json::text(&application, &["metadata", "annotations", SKIP_RECONCILE]) == "true" {
            return;
        }
        let comparison = self.compare(key, &application);
        let error = self.synchronise(key, &application, &comparison);
        self.write_comparison(key, &application, comparison, error);
    }

    fn compare(&self, key: &Key, application: &Object) -> Comparison {
        let source = json::at(application, &["spec", "source"]).cloned().unwrap_or_default();
        let revision = source.get("targetRevision").and_then(Value::as_str).unwrap_or("").to_owned();
        let health_before = json::text(application, &["status", "health", "status"]);
        let plan = match self.argo_plan(application, &source) {
            Ok(plan) => plan,
            Err(missing) => {
                // Health stays what it was: nothing says what should be there.
                let health = if health_before == "Degraded" { "Degraded" } else { "Healthy" };
                let error = Some(format!("Failed to load target state: {}", missing.0));
                return Comparison { sync: "Unknown", health, revision, resources: Vec::new(), error };
            }
        };
        // Hooks are no part of what is compared.
        let mut wanted = self.argo_render(key, &plan);
        wanted.retain(|object| !is_hook(object));
        if strategy::is_ignored(application) {
            wanted.iter_mut().for_each(|object| strategy::keep_live(&self.store, object));
        }
        // What the API server fills in is no difference.
        let daemon_sets = wanted.iter_mut().filter(|object| json::text(object, &["kind"]) == "DaemonSet");
        daemon_sets.for_each(guard::default_strategy);
        let keys: Vec<Key> = wanted.iter().map(Key::of).collect();
        let differs = |wanted: &Map<String, Value>| {
            let live = self.store.get(&Key::of(wanted));
            live.is_none_or(|live| live.get("spec") != wanted.get("spec") || is_deleting(live))
        };
        let mut tracked = self.tracked(key);
        tracked.retain(|key| self.store.get(key).is_some_and(|object| !is_hook(object)));
        let extraneous = tracked.iter().any(|tracked| !keys.contains(tracked));
        let sync = if extraneous || wanted.iter().any(differs) { "OutOfSync" } else { "Synced" };
        let live: Vec<Key> = keys.iter().chain(&tracked).filter(|key| self.store.get(key).is_some()).cloned().collect();
        let health = if live.is_empty() && !keys.is_empty() {
            "Missing"
        } else {
            match helm::readiness(&self.store, &live) {
                Readiness::Ready => "Healthy",
                Readiness::Waiting => "Progressing",
                Readiness::Failed => "Degraded",
            }
        };
        let resources = keys.iter().map(|key| self.resource(key)).collect();
        Comparison { sync, health, revision, resources, error: None }
    }

    /// An entry of `status.resources`.
    fn resource(&self, key: &Key) -> Value {
        let (group, version) = key.api_version.split_once('/').unwrap_or(("", &key.api_version));
        let mut entry =
            json!({"group": group, "version": version, "kind": key.kind, "namespace": key.namespace, "name": key.name});
        let options = |object: &Object| json::text(object, &["metadata", "annotations", SYNC_OPTIONS]).to_owned();
        if self.store.get(key).is_some_and(|object| options(object).contains("Delete=confirm")) {
            entry["requiresDeletionConfirmation"] = true.into();
        }
        entry
    }

    fn is_kept(&self, key: &Key) -> bool {
        self.store.get(key).is_some_and(|object| helm::is_kept(object))
    }

    /// Automated synchronisation: an operation for what is out of sync, once for
    /// each source, and again only to heal. A failed one is an error to show.
    fn synchronise(&mut self, key: &Key, application: &Object, comparison: &Comparison) -> Option<String> {
        let automated = json::at(application, &["spec", "syncPolicy", "automated"])?.clone();
        let busy = application.get("operation").is_some_and(|operation| !operation.is_null());
        if comparison.sync != "OutOfSync" || busy {
            return None;
        }
        let source = json::at(application, &["spec", "source"])?.clone();
        let state = json::at(application, &["status", "operationState"]);
        let ran = state.and_then(|state| state.pointer("/syncResult/source")) == Some(&source);
        let phase = json::text(application, &["status", "operationState", "phase"]);
        if ran && matches!(phase, "Failed" | "Error") {
            return Some(format!("Failed last sync attempt to {}", comparison.revision));
        }
        let heals = automated.get("selfHeal").and_then(Value::as_bool) == Some(true);
        if ran && phase == "Succeeded" && !heals {
            return None;
        }
        let mut sync = json!({"revision": comparison.revision, "source": source, "prune": automated.get("prune")});
        if let (Value::Object(sync), true) = (&mut sync, ran && phase == "Succeeded") {
            sync.insert("autoHealAttemptsCount".into(), 1.into());
            sync.insert("resources".into(), comparison.resources.clone().into());
        }
        let operation = json!({
            "initiatedBy": {"automated": true},
            "retry": json::at(application, &["spec", "syncPolicy", "retry"]).cloned().unwrap_or(json!({"limit": 5})),
            "sync": sync,
        });
        let _ = self.store.edit(ARGO, key, &Expected::default(), |object| {
            object.insert("operation".into(), operation);
            json::section(object, "status").shift_remove("operationState");
        });
        None
    }

    fn write_comparison(
        &mut self,
        key: &Key,
        application: &Object,
        comparison: Comparison,
        sync_error: Option<String>,
    ) {
        let now = self.now();
        let spec = |field: &str| json::at(application, &["spec", field]).cloned();
        let mut compared = Map::new();
        for field in ["source", "destination", "ignoreDifferences"] {
            if let Some(value) = spec(field) {
                compared.insert(field.into(), value);
            }
        }
        let refreshing = json::at(application, &["metadata", "annotations", REFRESH]).is_some();
        let compared = Value::Object(compared);
        let anew = refreshing || json::at(application, &["status", "sync", "comparedTo"]) != Some(&compared);
        let Comparison { sync, health, revision, resources, error } = comparison;
        let seen: BTreeSet<Key> = self.tracked(key).into_iter().filter(|key| self.is_kept(key)).collect();
        self.argo.kept.insert(key.clone(), seen);
        let _ = self.store.edit(ARGO, key, &Expected::default(), |object| {
            let status = json::section(object, "status");
            status.insert("sync".into(), json!({"comparedTo": compared, "revision": revision, "status": sync}));
            status.insert("health".into(), json!({"status": health}));
            if error.is_none() {
                status.insert("resources".into(), resources.into());
            }
            if anew {
                status.insert("reconciledAt".into(), json::time(now).into());
            }
            for (type_, message) in [("ComparisonError", error), ("SyncError", sync_error)] {
                conditions::remove(status, type_);
                if let (Some(message), Some(Value::Array(list))) = (message, status.get_mut("conditions")) {
                    list.push(json!({"type": type_, "message": message, "lastTransitionTime": json::time(now)}));
                }
            }
            if refreshing {
                let annotations = ["metadata", "annotations", REFRESH].map(str::to_owned);
                json::remove(object, &annotations);
            }
        });
    }
}
