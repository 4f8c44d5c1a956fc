//! Packages and revisions as they are in the cache, read once for each version.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::process::PackageId;
use super::{Rehearsal, process::Seen};
use crate::api::wellknown::FINALIZER_REVISION;
use crate::api::{DeletionPolicy, PackageRevisionSpec, PackageSpec, PackageStatus};
use crate::package::definition::{Definition, parse};
use crate::package::names::{ObjectName, PackageName};
use crate::package::violation::{Code, Violation};
use crate::rollout::{PackageView, Peer, RevisionView, peer};
use crate::sim::store::is_deleting;
use crate::sim::{Key, Object};

/// What a spec says, or the rules it breaks.
type Defined = Result<Arc<Definition>, Vec<Violation>>;

/// Whole specs of revisions that are kept beside their objects, by uid.
type Specs = BTreeMap<String, Arc<PackageRevisionSpec>>;

/// What was read of each version of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Parsed {
    definitions: BTreeMap<PackageId, (Object, Defined)>,
    statuses: BTreeMap<PackageId, (Object, Arc<PackageStatus>)>,
    revisions: BTreeMap<String, (Object, Arc<RevisionView>)>,
}

impl Parsed {
    /// The definition of a Package; read again only when its spec is another.
    fn definition(&mut self, id: &PackageId, package: &Object) -> Defined {
        if let Some((known, definition)) = self.definitions.get(id)
            && is_same_spec(known, package)
        {
            return definition.clone();
        }
        let spec = package.get("spec").cloned().unwrap_or_default();
        let definition = match serde_json::from_value::<PackageSpec>(spec) {
            Ok(spec) => parse(&id.name, &id.namespace, &spec).map(Arc::new),
            Err(error) => Err(vec![Violation::new(Code::WrongType, "/spec", error.to_string())]),
        };
        self.definitions.insert(id.clone(), (Arc::clone(package), definition.clone()));
        definition
    }

    fn status(&mut self, id: &PackageId, package: &Object) -> PackageStatus {
        match self.statuses.get(id) {
            Some((known, status)) if Arc::ptr_eq(known, package) => status.as_ref().clone(),
            Some(_) | None => {
                let status: PackageStatus = status(package);
                self.statuses.insert(id.clone(), (Arc::clone(package), Arc::new(status.clone())));
                status
            }
        }
    }

    fn revision(&mut self, key: &Key, object: &Object, specs: &Specs) -> Option<RevisionView> {
        let uid = text(object, &["metadata", "uid"]).to_owned();
        let spec = match self.revisions.get(&uid) {
            Some((known, view)) if Arc::ptr_eq(known, object) => return Some(view.as_ref().clone()),
            Some((_, view)) => Arc::clone(&view.spec),
            None => whole(specs, object)?,
        };
        let view = RevisionView {
            name: key.name.clone(),
            uid: uid.clone(),
            resource_version: text(object, &["metadata", "resourceVersion"]).to_owned(),
            deleting: crate::sim::store::is_deleting(object),
            held: crate::sim::store::finalizers(object).contains(&FINALIZER_REVISION),
            spec,
            status: status(object),
        };
        self.revisions.insert(uid, (Arc::clone(object), Arc::new(view.clone())));
        Some(view)
    }
}

/// The whole spec of a revision, as it was made.
fn whole(specs: &Specs, revision: &Map<String, Value>) -> Option<Arc<PackageRevisionSpec>> {
    match specs.get(text(revision, &["metadata", "uid"])) {
        Some(whole) => Some(Arc::clone(whole)),
        None => serde_json::from_value(revision.get("spec")?.clone()).ok().map(Arc::new),
    }
}

impl Rehearsal {
    /// The whole spec of a revision, as it was made.
    pub(super) fn whole_spec(&self, revision: &Map<String, Value>) -> Option<Arc<PackageRevisionSpec>> {
        whole(&self.specs, revision)
    }

    /// The revisions of a Package as they are in the cluster, numbers rising.
    pub(crate) fn revisions(&self, namespace: &str, name: &str) -> Vec<RevisionView> {
        let mut parsed = Parsed::default();
        let of_it = self
            .world
            .store
            .list("PackageRevision")
            .filter(|(key, object)| key.namespace == namespace && text(object, &["spec", "package"]) == name);
        let mut revisions: Vec<RevisionView> =
            of_it.filter_map(|(key, object)| parsed.revision(key, object, &self.specs)).collect();
        revisions.sort_by_key(RevisionView::number);
        revisions
    }

    /// A Package as it is seen.
    pub(super) fn package_view(&mut self, id: &PackageId) -> Option<PackageView> {
        let object = self.process.cache.get(&id.key()).cloned()?;
        let name = PackageName::parse(&id.name).ok()?;
        let now = self.now();
        let seen = self.process.seen.entry(id.clone());
        let seen = seen.or_insert_with(|| Seen { package: Arc::clone(&object), since: now });
        if !is_same_spec(&seen.package, &object) || is_deleting(&seen.package) != is_deleting(&object) {
            *seen = Seen { package: Arc::clone(&object), since: now };
        }
        let still_for = std::time::Duration::from_millis(now - seen.since);
        let spec = |field: &str| object.get("spec").and_then(|spec| spec.get(field));
        let policy = spec("deletionPolicy").and_then(Value::as_str);
        Some(PackageView {
            name,
            namespace: id.namespace.clone(),
            uid: text(&object, &["metadata", "uid"]).to_owned(),
            resource_version: text(&object, &["metadata", "resourceVersion"]).to_owned(),
            generation: crate::sim::store::generation(&object),
            deleting: is_deleting(&object),
            finalizers: crate::sim::store::finalizers(&object).into_iter().map(str::to_owned).collect(),
            annotations: texts(&object, "annotations"),
            labels: texts(&object, "labels"),
            suspend: spec("suspend").and_then(Value::as_bool).unwrap_or(false),
            service_account: spec("serviceAccountName").and_then(|name| ObjectName::parse(name.as_str()?).ok()),
            deletion_policy: if policy == Some("Orphan") { DeletionPolicy::Orphan } else { DeletionPolicy::Uninstall },
            definition: self.process.parsed.definition(id, &object),
            status: self.process.parsed.status(id, &object),
            still_for,
        })
    }

    /// The revisions of a Package, numbers rising.
    pub(super) fn revision_views(&mut self, id: &PackageId) -> Vec<RevisionView> {
        let objects: Vec<(Key, Object)> = self
            .process
            .cache
            .list("PackageRevision", &id.namespace)
            .filter(|(_, seen)| seen.package == id.name)
            .map(|(key, seen)| (key.clone(), Arc::clone(&seen.live.object)))
            .collect();
        let mut views: Vec<RevisionView> = {
            let specs = &self.specs;
            objects.iter().filter_map(|(key, object)| self.process.parsed.revision(key, object, specs)).collect()
        };
        views.sort_by_key(RevisionView::number);
        views
    }

    /// Brings what the others know of a Package up to date.
    pub(super) fn look_at_peer(&mut self, id: &PackageId) {
        self.process.stale.remove(id);
        match self.snapshot_without_peers(id) {
            Some(snapshot) => {
                self.process.peers.insert(id.clone(), Arc::new(peer(&snapshot)));
            }
            None => {
                self.process.peers.remove(id);
            }
        }
    }

    /// Brings what the others know of a Package up to date; those for which that is
    /// news, because of what it was or of what it has become.
    pub(super) fn tell_others(&mut self, id: &PackageId) -> Vec<PackageId> {
        let before = self.process.peers.get(id).cloned();
        let mut concerned = if before.is_some() { self.concerned_by(id) } else { Vec::new() };
        self.look_at_peer(id);
        let is_news = match (before, self.process.peers.get(id)) {
            (Some(before), Some(now)) => before != *now,
            (before, now) => before.is_some() != now.is_some(),
        };
        if !is_news {
            return Vec::new();
        }
        concerned.extend(self.concerned_by(id));
        concerned
    }

    /// Packages for which something may have changed with another one: those
    /// that require it, directly or through others, those it requires, and those
    /// that claim the same.
    pub(super) fn concerned_by(&self, id: &PackageId) -> Vec<PackageId> {
        let Some(changed) = self.process.peers.get(id) else { return Vec::new() };
        let names = |peer: &Peer, name: &PackageName| peer.requires.iter().any(|required| required.name == *name);
        let mut concerned: Vec<&PackageId> = Vec::new();
        let mut frontier = vec![&changed.name];
        while let Some(name) = frontier.pop() {
            for (other, peer) in self.process.peers.iter() {
                if names(peer, name) && !concerned.contains(&other) {
                    concerned.push(other);
                    frontier.push(&peer.name);
                }
            }
        }
        let shares =
            |peer: &Peer| !peer.claims.is_disjoint(&changed.claims) || !peer.children.is_disjoint(&changed.children);
        let others = self
            .process
            .peers
            .iter()
            .filter(|(other, peer)| *other != id && (names(changed, &peer.name) || shares(peer)));
        concerned.into_iter().chain(others.map(|(other, _)| other)).filter(|other| *other != id).cloned().collect()
    }
}

/// Whether two versions of a Package ask for the same: the API server counts.
fn is_same_spec(known: &Object, package: &Object) -> bool {
    let which =
        |object: &Object| (crate::sim::store::generation(object), text(object, &["metadata", "uid"]).to_owned());
    Arc::ptr_eq(known, package) || which(known) == which(package)
}

/// A status, or what an object without one has.
fn status<T: serde::de::DeserializeOwned + Default>(object: &Map<String, Value>) -> T {
    object.get("status").and_then(|status| serde_json::from_value(status.clone()).ok()).unwrap_or_default()
}

fn texts(object: &Map<String, Value>, field: &str) -> BTreeMap<String, String> {
    let map = object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

pub(super) fn text<'a>(object: &'a Map<String, Value>, path: &[&str]) -> &'a str {
    let Some((first, rest)) = path.split_first() else { return "" };
    let found = rest.iter().try_fold(object.get(*first), |value, key| Some(value?.get(*key)));
    found.flatten().and_then(Value::as_str).unwrap_or("")
}
