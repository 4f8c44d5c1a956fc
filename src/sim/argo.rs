//! Argo CD's application controller, as it was seen to behave: comparisons,
//! operations and deletions go on side by side, and write in turns.

mod compare;
mod operate;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::json;
use super::store::{Change, Expected, Key, Verb, finalizers, is_deleting};
use super::world::{START, Task, World};

/// Actor and field manager.
pub(super) const ARGO: &str = "argocd";
const REFRESH: &str = "argocd.argoproj.io/refresh";
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// Milliseconds until a changed Application, or a changed object, is compared.
const NOTICE: u64 = 60;
/// Milliseconds until an operation that is asked for begins.
const BEGIN: u64 = 15;

/// State beyond what is in the objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Argo {
    noticed: BTreeMap<Key, Noticed>,
    /// Source that the operation under way works on.
    at_work: BTreeMap<Key, Value>,
    /// Applications whose operation has started its hooks.
    hooks_started: BTreeSet<Key>,
    /// Objects of an Application that are to be kept, as its last comparison saw
    /// them: a deletion is decided from that.
    kept: BTreeMap<Key, BTreeSet<Key>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Noticed {
    spec: String,
    refresh: bool,
    operation: String,
    terminating: bool,
    deleting: bool,
}

impl World {
    /// Every Application is compared; operations that were under way are begun again.
    pub(super) fn argo_starts(&mut self) {
        self.argo.at_work.clear();
        self.argo.hooks_started.clear();
        let applications: Vec<Key> = self.store.list("Application").map(|(key, _)| key.clone()).collect();
        for key in applications {
            let tasks = [Task::ArgoCompare(key.clone()), Task::ArgoOperate(key.clone()), Task::ArgoDelete(key)];
            tasks.into_iter().for_each(|task| self.schedule(START, task));
        }
    }

    /// What is under way, beyond what the objects say.
    pub(super) fn argo_hash_into(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash as _;
        for (key, source) in &self.argo.at_work {
            (key, json::digest(source)).hash(hasher);
        }
        self.argo.hooks_started.hash(hasher);
    }

    pub(super) fn argo_react(&mut self, change: &Change) {
        let key = change.key.as_ref();
        if key.kind == "Application" {
            self.application_changed(change);
            return;
        }
        // The name of the Application comes first in a tracking id.
        let tracked = json::text(&change.object, &["metadata", "annotations", TRACKING_ID]);
        let Some((name, _)) = tracked.split_once(':') else { return };
        let applications: Vec<Key> =
            self.store.list("Application").map(|(key, _)| key).filter(|key| key.name == name).cloned().collect();
        for application in applications {
            let deleting = self.store.get(&application).is_some_and(|object| is_deleting(object));
            let task = if deleting { Task::ArgoDelete(application) } else { Task::ArgoCompare(application) };
            self.schedule(NOTICE, task);
        }
    }

    fn application_changed(&mut self, change: &Change) {
        let (key, object) = (change.key.as_ref(), &change.object);
        if change.verb == Verb::Deleted {
            self.argo.noticed.remove(key);
            self.argo.at_work.remove(key);
            self.argo.hooks_started.remove(key);
            self.argo.kept.remove(key);
            return;
        }
        let digest = |field: &str| object.get(field).map(json::digest).unwrap_or_default();
        let now = Noticed {
            spec: digest("spec"),
            refresh: json::at(object, &["metadata", "annotations", REFRESH]).is_some(),
            operation: digest("operation"),
            terminating: json::text(object, &["status", "operationState", "phase"]) == "Terminating",
            deleting: is_deleting(object),
        };
        let before = self.argo.noticed.insert(key.clone(), now.clone());
        let differs = |of: fn(&Noticed) -> (&str, bool)| before.as_ref().is_none_or(|before| of(before) != of(&now));
        let terminated = now.terminating && differs(|noticed| ("", noticed.terminating));
        if now.deleting {
            let task = if terminated { Task::ArgoOperate(key.clone()) } else { Task::ArgoDelete(key.clone()) };
            self.schedule(NOTICE, task);
            return;
        }
        if differs(|noticed| (&noticed.spec, false)) || (now.refresh && differs(|noticed| ("", noticed.refresh))) {
            self.schedule(NOTICE, Task::ArgoCompare(key.clone()));
        }
        let asked = !now.operation.is_empty() && differs(|noticed| (&noticed.operation, false));
        if asked || terminated {
            self.schedule(BEGIN, Task::ArgoOperate(key.clone()));
        }
    }

    /// Objects of an Application, by their tracking id.
    fn tracked(&self, application: &Key) -> Vec<Key> {
        let prefix = format!("{}:", application.name);
        let tracked = |object: &Map<String, Value>| {
            json::text(object, &["metadata", "annotations", TRACKING_ID]).starts_with(&prefix)
        };
        let objects = self.store.all().filter(|(key, _)| !matches!(key.kind.as_str(), "Application" | "HelmRelease"));
        objects.filter(|(_, object)| tracked(object)).map(|(key, _)| key.clone()).collect()
    }

    /// The end of an Application: its objects first, itself when they are gone.
    pub(super) fn argo_delete(&mut self, key: &Key) {
        let Some(object) = self.store.get(key).cloned().filter(|object| is_deleting(object)) else { return };
        if object.get("operation").is_some_and(|operation| !operation.is_null()) {
            // It is gone on with first.
            return;
        }
        let cascades = finalizers(&object).iter().any(|finalizer| finalizer.starts_with(FINALIZER));
        let release = json::text(&object, &["spec", "source", "helm", "releaseName"]);
        if !cascades || self.script.stuck_uninstalls.contains(release) {
            return;
        }
        let kept = self.argo.kept.get(key);
        let stays = |tracked: &Key| {
            tracked.kind == "CustomResourceDefinition" || kept.is_some_and(|kept| kept.contains(tracked))
        };
        let left: Vec<Key> = self.tracked(key).into_iter().filter(|tracked| !stays(tracked)).collect();
        if left.is_empty() {
            let drop = |object: &mut Map<String, Value>| {
                let kept: Vec<Value> = finalizers(object)
                    .into_iter()
                    .filter(|finalizer| !finalizer.starts_with(FINALIZER))
                    .map(Value::from)
                    .collect();
                json::set(object, &["metadata", "finalizers"], kept.into());
            };
            let _ = self.store.edit(ARGO, key, &Expected::default(), drop);
            return;
        }
        for object in &left {
            // It may be gone already; then there is nothing to do.
            let _ = self.store.delete(ARGO, object, &Expected::default());
        }
        self.schedule(NOTICE, Task::ArgoDelete(key.clone()));
    }
}
