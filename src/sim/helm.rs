//! Helm: releases, their records, their objects.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use serde_json::{Map, Value};

use super::chart::{Outcome, Rendering, Script, Template};
use super::store::{Expected, Key, Store, generation, is_deleting};
use super::{conditions, json, strategy};

/// Objects with this annotation set to `keep` outlive their release.
const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// What identifies a release: namespace of its records, and its name.
pub(crate) type Identity = (String, String);

/// One revision of a release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Revision {
    pub number: u32,
    pub release: String,
    pub status: &'static str,
    pub action: &'static str,
    pub chart: String,
    pub version: String,
    pub manifest: Option<String>,
    pub config: String,
    pub rendered_with: String,
    pub namespace: String,
    pub objects: Vec<Key>,
    pub deployed_at: u64,
}

/// What is to be installed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub identity: Identity,
    pub namespace: String,
    pub chart: String,
    pub version: String,
    /// The version as the engine shows it.
    pub shown: String,
    /// Digest of the OCI manifest that the chart came with.
    pub manifest: Option<String>,
    pub config: String,
    /// What else it is rendered with.
    pub rendered_with: String,
    /// Kinds that a post-renderer marks to be kept.
    pub kept: BTreeSet<String>,
    /// Whether a post-renderer gives DaemonSets a budget of 1.
    pub pinned: bool,
    /// Labels that the engine puts on every object.
    pub labels: Vec<(&'static str, String)>,
}

impl Plan {
    /// What its objects are rendered from.
    pub fn rendering(&self) -> Rendering {
        Rendering {
            namespace: self.namespace.clone(),
            release: self.identity.1.clone(),
            version: self.version.clone(),
            config: self.config.clone(),
        }
    }
}

/// All records of releases, and how often each version was attempted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Helm {
    pub releases: BTreeMap<Identity, Vec<Revision>>,
    attempts: BTreeMap<(String, String), u32>,
}

/// How far the objects of a release are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    Waiting,
    Failed,
}

impl Helm {
    /// The newest revision of a release.
    pub fn latest(&self, identity: &Identity) -> Option<&Revision> {
        self.releases.get(identity)?.last()
    }

    /// Whether an attempt at a version is refused at once.
    pub fn is_refused(&mut self, script: &Script, plan: &Plan) -> bool {
        let release = &plan.identity.1;
        let attempts = self.attempts.entry((release.clone(), plan.version.clone())).or_insert(0);
        *attempts += 1;
        match script.behaviour(&plan.rendering()).outcome {
            Outcome::Fails => true,
            Outcome::FailsFirst(count) => *attempts <= count,
            Outcome::Succeeds | Outcome::Hangs => false,
        }
    }

    /// Applies what a plan renders and removes what the release had beyond it.
    pub fn apply(&self, store: &mut Store, script: &Script, plan: &Plan, actor: &'static str) -> Vec<Key> {
        self.apply_objects(store, render(script, plan), plan, actor)
    }

    /// The same without touching the update strategies of DaemonSets.
    pub fn correct(&self, store: &mut Store, script: &Script, plan: &Plan, actor: &'static str) {
        let mut objects = render(script, plan);
        objects.iter_mut().for_each(|object| strategy::keep_live(store, object));
        self.apply_objects(store, objects, plan, actor);
    }

    fn apply_objects(
        &self,
        store: &mut Store,
        objects: Vec<Map<String, Value>>,
        plan: &Plan,
        actor: &'static str,
    ) -> Vec<Key> {
        let before = self.latest(&plan.identity).map(|latest| latest.objects.clone()).unwrap_or_default();
        let mut keys = Vec::new();
        for mut object in objects {
            if plan.kept.contains(json::text(&object, &["kind"])) {
                json::set(&mut object, &["metadata", "annotations", RESOURCE_POLICY], "keep".into());
            }
            for (label, value) in &plan.labels {
                json::set(&mut object, &["metadata", "labels", label], value.as_str().into());
            }
            keys.push(Key::of(&object));
            // Nothing is expected of the object, so nothing can be refused.
            let _ = store.apply(actor, &object, &Expected::default());
        }
        for gone in before.iter().filter(|key| !keys.contains(key)) {
            delete(store, gone, actor);
        }
        keys
    }

    /// Hashes what runs and what was attempted; not since when.
    pub fn hash_into(&self, hasher: &mut impl Hasher) {
        for (identity, revisions) in &self.releases {
            identity.hash(hasher);
            for revision in revisions {
                (revision.status, &revision.version, &revision.config).hash(hasher);
            }
        }
        self.attempts.hash(hasher);
    }

    /// Records how an action ended.
    pub fn record(&mut self, plan: &Plan, action: &'static str, status: &'static str, objects: Vec<Key>, now: u64) {
        let revisions = self.releases.entry(plan.identity.clone()).or_default();
        if status == "deployed" {
            revisions.iter_mut().filter(|revision| revision.status == "deployed").for_each(|r| r.status = "superseded");
        }
        let number = revisions.last().map_or(1, |latest| latest.number + 1);
        revisions.push(Revision {
            number,
            release: plan.identity.1.clone(),
            status,
            action,
            chart: plan.chart.clone(),
            version: plan.shown.clone(),
            manifest: plan.manifest.clone(),
            config: plan.config.clone(),
            rendered_with: plan.rendered_with.clone(),
            namespace: plan.namespace.clone(),
            objects,
            deployed_at: now,
        });
    }

    /// Removes a release with its objects, those to be kept excepted.
    pub fn uninstall(&mut self, store: &mut Store, identity: &Identity, actor: &'static str) {
        let Some(revisions) = self.releases.remove(identity) else { return };
        let objects: BTreeSet<Key> = revisions.into_iter().flat_map(|revision| revision.objects).collect();
        for key in objects.iter().rev() {
            delete(store, key, actor);
        }
    }
}

/// The objects a plan renders.
pub(crate) fn render(script: &Script, plan: &Plan) -> Vec<Map<String, Value>> {
    let (release, namespace) = (&plan.identity.1, &plan.namespace);
    let templates = script.templates(&plan.rendering(), &plan.chart);
    let render = |template: &Template| template.render(namespace, release, &plan.version, &plan.config);
    let mut objects: Vec<_> = templates.iter().map(render).collect();
    if plan.pinned {
        objects.iter_mut().for_each(strategy::pin);
    }
    objects
}

/// Deletes an object, unless it is to be kept.
pub(crate) fn delete(store: &mut Store, key: &Key, actor: &'static str) {
    let kept = store.get(key).is_some_and(|object| is_kept(object));
    if !kept {
        // It may be gone already; then there is nothing to do.
        let _ = store.delete(actor, key, &Expected::default());
    }
}

/// Whether an object outlives its release.
pub(crate) fn is_kept(object: &Map<String, Value>) -> bool {
    json::text(object, &["metadata", "annotations", RESOURCE_POLICY]) == "keep"
}

/// How far objects are, by what their own status says.
pub(crate) fn readiness(store: &Store, keys: &[Key]) -> Readiness {
    let mut all = Readiness::Ready;
    for key in keys {
        match store.get(key).map_or(Readiness::Waiting, |object| of_object(&key.kind, object)) {
            Readiness::Failed => return Readiness::Failed,
            Readiness::Waiting => all = Readiness::Waiting,
            Readiness::Ready => {}
        }
    }
    all
}

fn of_object(kind: &str, object: &Map<String, Value>) -> Readiness {
    if is_deleting(object) {
        return Readiness::Waiting;
    }
    let status = |field| json::integer(object, &["status", field]).unwrap_or(0);
    match kind {
        "Deployment" => {
            let done = status("observedGeneration") == generation(object) && status("updatedReplicas") == 1;
            if done && status("availableReplicas") == 1 { Readiness::Ready } else { Readiness::Waiting }
        }
        "DaemonSet" => {
            let desired = status("desiredNumberScheduled");
            let done =
                status("observedGeneration") == generation(object) && status("updatedNumberScheduled") >= desired;
            if done && status("numberAvailable") >= desired { Readiness::Ready } else { Readiness::Waiting }
        }
        "Job" if conditions::is_true(object, "Failed") => Readiness::Failed,
        "Job" if conditions::is_true(object, "Complete") => Readiness::Ready,
        "Job" => Readiness::Waiting,
        _ => of_resource(object),
    }
}

/// A condition Ready that is not True is waited for; what has none counts as current.
fn of_resource(object: &Map<String, Value>) -> Readiness {
    let ready = conditions::find(object, "Ready").map(|ready| json::text(ready, &["status"]));
    if ready.is_some_and(|status| status != "True") { Readiness::Waiting } else { Readiness::Ready }
}
