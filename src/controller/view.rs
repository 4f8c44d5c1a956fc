//! From what is cached to one consistent [`Snapshot`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::cached::Cached;
use super::guards::Guards;
use super::kinds::Kind;
use super::settings::Settings;
use super::store::{PackageKey, Store};
use super::watching::Watching;
use crate::api::wellknown::FINALIZER_REVISION;
use crate::api::{DeletionPolicy, Engine, Package, PackageRevision, PackageStatus};
use crate::canary::guard::Policies;
use crate::engine::ObjectKey;
use crate::package::definition;
use crate::package::names::{NameError, ObjectName, PackageName};
use crate::package::version::Version;
use crate::package::violation::{Code, Violation};
use crate::rollout::{self, Cluster, OtherPackage, PackageView, Peer, RevisionView, Snapshot, Unreadable};

/// Facts about the cluster that change seldom.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Whether it is known which kinds are installed.
    pub discovered: bool,
    /// Engines whose kinds are installed.
    pub engines: BTreeSet<Engine>,
    /// Version of Kubernetes.
    pub kubernetes: Option<Version>,
    /// As whom we write.
    pub identity: Option<String>,
    /// Whether it is known which namespaces there are, or that they may not be read.
    pub namespaces_read: bool,
    /// Whether the Package CRD is being deleted.
    pub crd_terminating: bool,
    /// Namespaces that are being deleted.
    pub terminating: BTreeSet<String>,
    /// Argo CD projects that namespaces ask for.
    pub projects: BTreeMap<String, String>,
}

/// Everything that was seen.
pub struct View {
    settings: Settings,
    stores: BTreeMap<Kind, Arc<Store>>,
    facts: RwLock<Facts>,
    peers: Mutex<HashMap<PackageKey, Arc<Peer>>>,
    unknown: Mutex<BTreeSet<PackageKey>>,
    specs: Mutex<HashMap<PackageKey, Seen>>,
    watching: Mutex<Watching>,
    guards: RwLock<Guards>,
    namespaces: RwLock<BTreeMap<String, BTreeMap<String, String>>>,
}

/// When a spec was last seen to change.
struct Seen {
    generation: i64,
    since: Instant,
}

impl View {
    /// An empty view.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            stores: Kind::ALL.into_iter().map(|kind| (kind, Arc::default())).collect(),
            facts: RwLock::default(),
            peers: Mutex::default(),
            unknown: Mutex::default(),
            specs: Mutex::default(),
            watching: Mutex::new(Watching::from(Instant::now(), Timestamp::now())),
            guards: RwLock::default(),
            namespaces: RwLock::default(),
        }
    }

    /// The store of a kind.
    pub fn store(&self, kind: Kind) -> Arc<Store> {
        self.stores.get(&kind).cloned().unwrap_or_default()
    }

    /// Facts about the cluster.
    pub fn facts(&self) -> Facts {
        self.facts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the facts; true if that made a difference.
    pub fn change_facts(&self, change: impl FnOnce(&mut Facts)) -> bool {
        let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
        let before = format!("{facts:?}");
        change(&mut facts);
        before != format!("{facts:?}")
    }

    /// Changes what is known of the canary guard's policies.
    pub fn change_guards(&self, change: impl FnOnce(&mut Guards)) {
        change(&mut self.guards.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether it is known which policies of the guard there are.
    pub fn knows_guards(&self) -> bool {
        self.guards.read().unwrap_or_else(PoisonError::into_inner).is_read()
    }

    /// Keeps the labels of a namespace; `None`: it is gone. True if they are others.
    pub fn note_labels(&self, namespace: &str, labels: Option<BTreeMap<String, String>>) -> bool {
        let mut namespaces = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
        match labels {
            Some(labels) => namespaces.insert(namespace.to_owned(), labels.clone()).is_some_and(|b| b != labels),
            None => namespaces.remove(namespace).is_some(),
        }
    }

    /// The guard's policies in some namespaces.
    pub fn policies(&self, namespaces: BTreeSet<String>) -> BTreeMap<String, Policies> {
        let identity = self.facts().identity;
        let guards = self.guards.read().unwrap_or_else(PoisonError::into_inner);
        let labels = self.namespaces.read().unwrap_or_else(PoisonError::into_inner);
        let of = |namespace: String| {
            // Every namespace has this label, also one that is not there yet.
            let own = || BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), namespace.clone())]);
            let labels = labels.get(&namespace).cloned().unwrap_or_else(own);
            let policies = guards.policies(&labels, identity.as_deref());
            (namespace, policies)
        };
        namespaces.into_iter().map(of).collect()
    }

    /// Watching has begun, or had a gap: clocks count from here.
    pub fn watching_anew(&self) {
        *lock(&self.watching) = Watching::from(Instant::now(), Timestamp::now());
    }

    /// Notes the generation of a Package, which a deletion raises as well, for how long
    /// it has been still.
    pub fn note_spec(&self, key: &PackageKey, generation: i64) {
        let mut specs = lock(&self.specs);
        let seen = specs.entry(key.clone()).or_insert(Seen { generation, since: Instant::now() });
        if seen.generation != generation {
            *seen = Seen { generation, since: Instant::now() };
        }
    }

    /// Replaces what the others know of a Package; true if that is news.
    pub fn publish(&self, key: &PackageKey, peer: Peer) -> bool {
        let peer = Arc::new(peer);
        lock(&self.unknown).remove(key);
        lock(&self.peers).insert(key.clone(), peer.clone()).is_none_or(|before| before != peer)
    }

    /// Nothing can be made of a Package: the others do not wait for it.
    pub fn give_up(&self, key: &PackageKey) {
        lock(&self.unknown).insert(key.clone());
    }

    /// The Package is gone.
    pub fn forget(&self, key: &PackageKey) {
        lock(&self.peers).remove(key);
        lock(&self.unknown).remove(key);
        lock(&self.specs).remove(key);
    }

    /// Packages that may wait for the given one, or that it may hold up.
    pub fn related(&self, key: &PackageKey) -> Vec<PackageKey> {
        let peers = lock(&self.peers);
        let waits = |peer: &Peer| peer.wants_change || peer.deleting;
        peers.iter().filter(|(other, peer)| *other != key && waits(peer)).map(|(other, _)| other.clone()).collect()
    }

    /// Packages that are moving, want to, or go.
    pub fn at_something(&self) -> Vec<PackageKey> {
        let peers = lock(&self.peers);
        let is_busy = |peer: &Peer| peer.open || peer.wants_change || peer.deleting;
        peers.iter().filter(|(_, peer)| is_busy(peer)).map(|(key, _)| key.clone()).collect()
    }

    /// Whether every Package has been published once, but for those that were given up.
    pub fn knows_all_peers(&self) -> bool {
        let (peers, unknown) = (lock(&self.peers), lock(&self.unknown));
        let is_known = |key: &PackageKey| peers.contains_key(key) || unknown.contains(key);
        self.store(Kind::Package).all().iter().all(|package| is_known(&package_key(package)))
    }

    /// One look at a Package; `None` if there is none.
    ///
    /// # Errors
    /// When the object's name is no Package's name.
    pub fn snapshot(&self, key: &PackageKey) -> Result<Option<Snapshot>, NameError> {
        let packages = self.store(Kind::Package);
        let found = packages.get(&object_key(Kind::Package, key));
        let Some(cached) = found else { return Ok(None) };
        let package = self.package(key, &cached)?;
        let children =
            [Kind::HelmRelease, Kind::Application].into_iter().flat_map(|kind| self.store(kind).of_package(key));
        let sources = [Kind::HelmRepository, Kind::HelmChart, Kind::OciRepository, Kind::GitRepository];
        let sources = sources.into_iter().flat_map(|kind| self.store(kind).of_namespace(&key.0));
        let (revisions, unreadable) = self.revisions(key);
        Ok(Some(Snapshot {
            package,
            revisions,
            unreadable,
            children: children.map(|child| child.live()).collect(),
            sources: sources.map(|source| source.live()).collect(),
            orphaned_sources: self.orphaned_sources(&key.0),
            objects: BTreeMap::new(),
            daemon_sets: BTreeMap::new(),
            refusals: BTreeMap::new(),
            policies: BTreeMap::new(),
            rights: BTreeMap::new(),
            others: Vec::new(),
            peers: Vec::new(),
            cluster: self.cluster(&key.0),
        }))
    }

    /// What releases point at whose Package is gone.
    fn orphaned_sources(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let kinds = [Kind::HelmRelease, Kind::PackageRevision];
        let keys: BTreeSet<PackageKey> =
            kinds.into_iter().flat_map(|kind| self.store(kind).packages(namespace)).collect();
        let packages = self.store(Kind::Package);
        let gone = keys.into_iter().filter(|key| packages.get(&object_key(Kind::Package, key)).is_none());
        let sources = gone.map(|key| {
            let children = self.store(Kind::HelmRelease).of_package(&key);
            let children: Vec<_> = children.iter().map(|child| child.live()).collect();
            rollout::sources_of(&children, &self.revisions(&key).0)
        });
        sources.flatten().collect()
    }

    /// What the others are doing.
    pub fn peers(&self, key: &PackageKey) -> Vec<OtherPackage> {
        let peers = lock(&self.peers);
        let others = peers.iter().filter(|(other, _)| *other != key);
        let as_seen = |(other, peer): (&PackageKey, &Arc<Peer>)| {
            let mut peer = Arc::clone(peer);
            if self.generation(other).is_some_and(|generation| generation != peer.generation) {
                // What its new spec asks for is not known yet: whoever requires it waits.
                peer = Arc::new(Peer { open: true, refused: false, ..peer.as_ref().clone() });
            }
            OtherPackage { peer, still_for: self.still_for(other) }
        };
        others.map(as_seen).collect()
    }

    fn package(&self, key: &PackageKey, cached: &Cached) -> Result<PackageView, NameError> {
        let object = cached.object();
        let name = PackageName::parse(&key.1)?;
        let raw = object.get("spec").cloned().unwrap_or_default();
        let metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let package: Result<Package, _> = cached.typed();
        let definition = match &package {
            Ok(package) => definition::parse(&key.1, &key.0, &package.spec),
            Err(error) => Err(vec![Violation::new(Code::WrongType, "/spec", error.to_string())]),
        };
        let text_of = |field: &str| raw.get(field).and_then(Value::as_str);
        let policy = text_of("deletionPolicy");
        let status: Option<PackageStatus> =
            object.get("status").and_then(|status| serde_json::from_value(status.clone()).ok());
        Ok(PackageView {
            name,
            namespace: key.0.clone(),
            uid: text(&metadata, "uid"),
            resource_version: text(&metadata, "resourceVersion"),
            generation: metadata.get("generation").and_then(Value::as_i64).unwrap_or(0),
            deleting: metadata.contains_key("deletionTimestamp"),
            finalizers: finalizers(&metadata),
            annotations: map(&metadata, "annotations"),
            labels: map(&metadata, "labels"),
            definition: definition.map(Arc::new),
            suspend: raw.get("suspend").and_then(Value::as_bool).unwrap_or(false),
            service_account: text_of("serviceAccountName").and_then(|name| ObjectName::parse(name).ok()),
            deletion_policy: if policy == Some("Orphan") { DeletionPolicy::Orphan } else { DeletionPolicy::Uninstall },
            status: status.unwrap_or_default(),
            still_for: self.still_for(key),
        })
    }

    /// Revisions in order, and those that cannot be read.
    fn revisions(&self, key: &PackageKey) -> (Vec<RevisionView>, Vec<Unreadable>) {
        let mut readable = Vec::new();
        let mut unreadable = Vec::new();
        for cached in self.store(Kind::PackageRevision).of_package(key) {
            match revision(&cached) {
                Ok(_) if cached.is_cut() => unreadable.push(unread(&cached, "is nested too deeply to be read")),
                Ok(revision) => readable.push(revision),
                Err(error) => unreadable.push(unread(&cached, &format!("cannot be read: {error}"))),
            }
        }
        readable.sort_by_key(RevisionView::number);
        (readable, unreadable)
    }

    fn generation(&self, key: &PackageKey) -> Option<i64> {
        lock(&self.specs).get(key).map(|seen| seen.generation)
    }

    fn still_for(&self, key: &PackageKey) -> Duration {
        lock(&self.specs).get(key).map_or(Duration::ZERO, |seen| seen.since.elapsed())
    }

    fn cluster(&self, namespace: &str) -> Cluster {
        let facts = self.facts();
        let settings = &self.settings;
        Cluster {
            engines: facts.engines,
            default_engine: settings.engine,
            kubernetes: facts.kubernetes,
            namespace_terminating: facts.terminating.contains(namespace),
            crd_terminating: facts.crd_terminating,
            argo_project: facts.projects.get(namespace).unwrap_or(&settings.argo_project).clone(),
            requirements_settle: settings.requirements_settle,
            deletion_settle: settings.deletion_settle,
            identity: facts.identity,
            guard_settles_in: self.guards.read().unwrap_or_else(PoisonError::into_inner).settles_in(Instant::now()),
            default_service_account: settings.default_service_account.clone(),
            require_service_account: settings.require_service_account,
            watching_for: lock(&self.watching).lasts(Instant::now(), Timestamp::now()),
        }
    }
}

/// Namespace and name of a cached Package.
pub fn package_key(cached: &Cached) -> PackageKey {
    (cached.key().namespace.clone(), cached.key().name.clone())
}

fn object_key(kind: Kind, key: &PackageKey) -> crate::engine::ObjectKey {
    let resource = kind.resource();
    crate::engine::ObjectKey {
        api_version: resource.api_version,
        kind: resource.kind,
        namespace: key.0.clone(),
        name: key.1.clone(),
    }
}

fn revision(cached: &Cached) -> Result<RevisionView, serde_json::Error> {
    cached.typed().map(|revision: PackageRevision| revision.into())
}

fn unread(cached: &Cached, why: &str) -> Unreadable {
    let object = cached.object();
    let metadata = object.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    Unreadable {
        name: cached.key().name.clone(),
        uid: text(&metadata, "uid"),
        deleting: metadata.contains_key("deletionTimestamp"),
        held: finalizers(&metadata).iter().any(|finalizer| finalizer == FINALIZER_REVISION),
        message: format!("{} {why}", cached.key()),
    }
}

fn text(metadata: &Map<String, Value>, key: &str) -> String {
    metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn map(metadata: &Map<String, Value>, key: &str) -> BTreeMap<String, String> {
    let entries = metadata.get(key).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn finalizers(metadata: &Map<String, Value>) -> Vec<String> {
    let finalizers = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
    finalizers.filter_map(|finalizer| finalizer.as_str().map(str::to_owned)).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::settings::testing::settings;

    fn package(name: &str, spec: Value) -> Cached {
        let metadata = json!({"name": name, "namespace": "ns", "uid": name, "generation": 1});
        let object =
            json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "Package", "metadata": metadata, "spec": spec});
        Cached::new(object.as_object().unwrap().clone())
    }

    #[test]
    fn a_package_of_which_nothing_can_be_made_holds_nobody_up() {
        let view = View::new(settings());
        view.store(Kind::Package).put(package("app", json!({"version": "1.0.0"})));
        let key = ("ns".to_owned(), "app".to_owned());
        assert!(!view.knows_all_peers());
        view.give_up(&key);
        assert!(view.knows_all_peers());
        view.forget(&key);
        assert!(!view.knows_all_peers());
    }

    #[test]
    fn the_account_is_known_where_the_rest_of_a_spec_breaks_a_rule() {
        let view = View::new(settings());
        let spec = json!({"version": "no version", "serviceAccountName": "deployer", "suspend": true});
        view.store(Kind::Package).put(package("app", spec));
        let snapshot = view.snapshot(&("ns".to_owned(), "app".to_owned())).unwrap().unwrap();
        assert!(snapshot.package.definition.is_err() && snapshot.package.suspend);
        assert_eq!(snapshot.account().map(ObjectName::as_str), Some("deployer"));
    }
}
