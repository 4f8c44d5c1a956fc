//! The log of the cluster, read without any help of the core: revisions,
//! writes of children, and what really ran when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass::sim::chart::config_of;
use windlass::sim::{Change, Key, Verb};

type Object = Map<String, Value>;

/// The value at a JSON pointer; null if there is none.
pub fn at<'a>(object: &'a Object, pointer: &str) -> &'a Value {
    let (first, rest) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
    let value = object.get(first).unwrap_or(&Value::Null);
    if rest.is_empty() { value } else { value.pointer(&format!("/{rest}")).unwrap_or(&Value::Null) }
}

pub fn text<'a>(object: &'a Object, pointer: &str) -> &'a str {
    at(object, pointer).as_str().unwrap_or("")
}

/// The cluster as it was at one place of the log.
#[derive(Clone, Default)]
pub struct Moment {
    pub objects: BTreeMap<Arc<Key>, Arc<Object>>,
    /// Versions at which each Deployment was ever seen ready.
    pub ran: BTreeMap<String, BTreeSet<String>>,
    /// Versions that each resource ever reported.
    pub reported: BTreeMap<String, BTreeSet<String>>,
    /// Releases that Windlass has given another spec since a revision was last
    /// verified as a whole.
    pub written: BTreeSet<String>,
    /// Releases whose objects somebody else has touched since.
    pub disturbed: BTreeSet<String>,
    /// Since when the package is suspended.
    pub suspended_at: Option<u64>,
}

impl Moment {
    pub fn take(&mut self, change: &Change) {
        let (key, object) = (&change.key, change.object.as_ref());
        self.take_whole(change);
        self.take_meddling(change);
        if change.verb == Verb::Deleted {
            self.objects.remove(key);
            return;
        }
        self.objects.insert(Arc::clone(key), Arc::clone(&change.object));
        if key.kind == "Deployment" && is_ready(object) {
            self.ran.entry(key.name.clone()).or_default().insert(text(object, "/spec/version").to_owned());
        }
        if key.kind.starts_with("Thing")
            && at(object, "/status/observedGeneration") == at(object, "/metadata/generation")
        {
            let version = format!("{}|{}", text(object, "/spec/image"), text(object, "/status/observedVersion"));
            self.reported.entry(key.name.clone()).or_default().insert(version);
        }
    }

    /// Once a revision is verified as a whole everything before counts as verified.
    fn take_whole(&mut self, change: &Change) {
        if change.key.kind != "PackageRevision" || change.verb == Verb::Deleted {
            return;
        }
        let phase = text(&change.object, "/status/phase");
        let before = self.objects.get(&change.key).map_or("", |before| text(before, "/status/phase"));
        if phase != before && matches!(phase, "Succeeded" | "RolledBack") {
            self.written.clear();
            self.disturbed.clear();
        }
    }

    /// What somebody else than Git and the controllers does.
    fn take_meddling(&mut self, change: &Change) {
        if change.key.kind == "Package" {
            let suspended = at(&change.object, "/spec/suspend") == true;
            self.suspended_at = suspended.then(|| self.suspended_at.unwrap_or(change.at));
        }
        if change.actor == "user" && is_child(&change.key) {
            self.disturbed.insert(release(&change.object).to_owned());
        }
    }

    /// Whether somebody else has touched a component, or something above it.
    pub fn is_disturbed(&self, revision: &Object, component: &str) -> bool {
        self.disturbed.contains(release_of(revision, component))
            || depends_on(revision, component).into_iter().any(|on| self.is_disturbed(revision, on))
    }

    /// Version that was last verified as a whole; empty if none was.
    pub fn verified_version(&self) -> &str {
        let revisions = self.revisions();
        let Some(latest) = revisions.last() else { return "" };
        let number = match text(latest, "/status/phase") {
            "Succeeded" => at(latest, "/spec/number"),
            "RolledBack" => at(latest, "/status/rollback/to"),
            _ => at(latest, "/spec/base"),
        };
        let verified = revisions.iter().find(|revision| at(revision, "/spec/number") == number);
        verified.map_or("", |revision| text(revision, "/spec/version"))
    }

    /// Whether a component, or anything above it, has been written since a revision
    /// was last verified as a whole.
    pub fn has_moved(&self, revision: &Object, component: &str) -> bool {
        self.written.contains(release_of(revision, component))
            || depends_on(revision, component).into_iter().any(|on| self.has_moved(revision, on))
    }

    /// Whether a component runs at this moment as a revision has it, and is ready.
    pub fn runs(&self, revision: &Object, component: &str) -> bool {
        let Some(recorded) = component_of(revision, component) else { return true };
        let version = text(recorded, "/chartVersion");
        if at(recorded, "/readyWhen/0").is_object() {
            let resource = self.resource(release_of(revision, component));
            let told = |resource: &Object| {
                at(resource, "/status/observedGeneration") == at(resource, "/metadata/generation")
                    && text(resource, "/status/observedVersion") == self.looked_after_by(revision, component)
                    && text(resource, "/status/phase") == "Deployed"
            };
            return resource.is_some_and(|resource| text(resource, "/spec/image") == version && told(resource));
        }
        let deployment = self.deployment(release_of(revision, component)).filter(|object| is_ready(object));
        deployment.is_some_and(|object| is_rendered_from(object, recorded))
    }

    /// Whether the release of a component is as a revision has it, whatever is said
    /// of a resource in it.
    pub fn is_applied(&self, revision: &Object, component: &str) -> bool {
        let Some(recorded) = component_of(revision, component) else { return true };
        if at(recorded, "/readyWhen/0").is_object() {
            let image = self.resource(release_of(revision, component)).map(|resource| text(resource, "/spec/image"));
            return image == Some(text(recorded, "/chartVersion"));
        }
        self.runs(revision, component)
    }

    /// The object that stands for a release at its engine.
    pub fn child(&self, name: &str) -> Option<&Object> {
        let is_it = |key: &Key, object: &Object| is_child(key) && release(object) == name;
        self.objects.iter().find(|(key, object)| is_it(key, object)).map(|(_, object)| object.as_ref())
    }

    fn resource(&self, component: &str) -> Option<&Object> {
        let is_it = |key: &Key| key.kind.starts_with("Thing") && key.name == component;
        self.objects.iter().find(|(key, _)| is_it(key)).map(|(_, object)| object.as_ref())
    }

    fn deployment(&self, component: &str) -> Option<&Object> {
        let is_it = |key: &Key| key.kind == "Deployment" && key.name == component;
        self.objects.iter().find(|(key, _)| is_it(key)).map(|(_, object)| object.as_ref())
    }

    /// Revisions, numbers rising.
    pub fn revisions(&self) -> Vec<&Object> {
        let objects = self.objects.iter().filter(|(key, _)| key.kind == "PackageRevision");
        let mut revisions: Vec<&Object> = objects.map(|(_, object)| object.as_ref()).collect();
        revisions.sort_by_key(|revision| at(revision, "/spec/number").as_u64());
        revisions
    }

    pub fn revision(&self, number: u64) -> Option<&Object> {
        self.revisions().into_iter().find(|revision| at(revision, "/spec/number").as_u64() == Some(number))
    }

    /// Whether a component of a revision has really run as that revision has it:
    /// its Deployment was ready at the version, its resource was reported at the
    /// version of the one that looks after it.
    pub fn has_run(&self, revision: &Object, component: &str) -> bool {
        let Some(recorded) = component_of(revision, component) else { return true };
        let version = text(recorded, "/chartVersion");
        if at(recorded, "/readyWhen/0").is_object() {
            let wanted = format!("{version}|{}", self.looked_after_by(revision, component));
            return self
                .reported
                .get(release_of(revision, component))
                .is_some_and(|reported| reported.contains(&wanted));
        }
        self.ran.get(release_of(revision, component)).is_some_and(|ran| ran.iter().any(|known| known == version))
    }

    /// Version of what looks after a resource, in a revision.
    pub fn looked_after_by<'r>(&self, revision: &'r Object, component: &str) -> &'r str {
        let first = depends_on(revision, component).first().and_then(|on| component_of(revision, on));
        first.map_or("", |operator| text(operator, "/chartVersion"))
    }
}

pub fn component_of<'a>(revision: &'a Object, name: &str) -> Option<&'a Object> {
    let components = at(revision, "/spec/components").as_array()?;
    components.iter().filter_map(Value::as_object).find(|component| text(component, "/name") == name)
}

/// Name of the release of a component.
pub fn release_of<'a>(revision: &'a Object, component: &'a str) -> &'a str {
    component_of(revision, component).map_or(component, |recorded| text(recorded, "/release/name"))
}

fn is_child(key: &Key) -> bool {
    matches!(key.kind.as_str(), "HelmRelease" | "Application")
}

/// Name of the release that a child describes.
fn release(child: &Object) -> &str {
    let of_flux = text(child, "/spec/releaseName");
    if of_flux.is_empty() { text(child, "/spec/source/helm/releaseName") } else { of_flux }
}

pub fn depends_on<'a>(revision: &'a Object, component: &str) -> Vec<&'a str> {
    let recorded = component_of(revision, component);
    let list = recorded.and_then(|recorded| at(recorded, "/dependsOn").as_array());
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether a Deployment has the version and the values of a recorded component.
fn is_rendered_from(deployment: &Object, recorded: &Object) -> bool {
    let release = at(recorded, "/manifests").as_array().and_then(|all| all.last());
    let values = release.and_then(|release| {
        release.pointer("/spec/values").or_else(|| release.pointer("/spec/source/helm/valuesObject"))
    });
    let config = config_of(values.unwrap_or(&Value::Object(Map::new())));
    text(deployment, "/spec/version") == text(recorded, "/chartVersion") && text(deployment, "/spec/config") == config
}

fn is_ready(deployment: &Object) -> bool {
    at(deployment, "/status/observedGeneration") == at(deployment, "/metadata/generation")
        && at(deployment, "/status/updatedReplicas") == 1
        && at(deployment, "/status/availableReplicas") == 1
}

/// A write of Windlass that gives a child another spec.
pub struct Write {
    pub component: String,
    pub release: String,
    pub digest: String,
    /// Whether it is not only what Windlass had written there before.
    pub is_move: bool,
}

/// The specs of children so far.
#[derive(Clone, Default)]
pub struct Specs {
    all: BTreeMap<Arc<Key>, Arc<Value>>,
    /// What Windlass wrote last, and its digest.
    ours: BTreeMap<Arc<Key>, String>,
}

impl Specs {
    /// The write that a change is; hooks left out.
    pub fn take(&mut self, change: &Change) -> Option<Write> {
        if !is_child(&change.key) {
            return None;
        }
        if change.verb == Verb::Deleted {
            self.all.remove(&change.key);
            self.ours.remove(&change.key);
            return None;
        }
        // Suspension is not a move.
        let mut spec = at(&change.object, "/spec").clone();
        if let Value::Object(spec) = &mut spec {
            spec.shift_remove("suspend");
        }
        let spec = Arc::new(spec);
        let before = self.all.insert(Arc::clone(&change.key), Arc::clone(&spec));
        let hook = !text(&change.object, "/metadata/annotations/windlass.dev~1hook").is_empty();
        if change.actor != "windlass" || before.as_ref() == Some(&spec) || hook {
            return None;
        }
        let digest = text(&change.object, "/metadata/annotations/windlass.dev~1digest").to_owned();
        let known = self.ours.insert(Arc::clone(&change.key), digest.clone());
        Some(Write {
            component: text(&change.object, "/metadata/labels/windlass.dev~1component").to_owned(),
            release: release(&change.object).to_owned(),
            is_move: known.as_ref() != Some(&digest),
            digest,
        })
    }
}
