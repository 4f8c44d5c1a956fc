//! Looks at a Package: the snapshot that a decision is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Rehearsal;
use super::process::PackageId;
use crate::canary::guard::{Policies, PolicyState};
use crate::canary::objects::{DaemonSet, Node, Pod, Revision};
use crate::canary::{Observation, Sight};
use crate::engine::ObjectKey;
use crate::ready::evidence::Lookup;
use crate::rollout::live::Live;
use crate::rollout::{Cluster, Found, Needs, OtherPackage, PackageView, Snapshot, needs, peer, sort, sources_of};
use crate::sim::Key;
use crate::sim::chart::is_cluster_scoped;
use crate::sim::guard::Policy;

const RELEASES: [&str; 2] = ["HelmRelease", "Application"];
const SOURCES: [&str; 4] = ["HelmRepository", "HelmChart", "OCIRepository", "GitRepository"];

impl Rehearsal {
    /// What a decision about a Package would be made from now, and the time by
    /// the clock of the controller; `None` if it sees no such Package.
    pub fn look(&mut self, id: &PackageId) -> Option<(Snapshot, Timestamp)> {
        let snapshot = self.snapshot(id)?;
        let skew = SignedDuration::from_millis(self.process.skew);
        Some((snapshot, self.world.timestamp().checked_add(skew).unwrap_or_default()))
    }

    fn snapshot(&mut self, id: &PackageId) -> Option<Snapshot> {
        let Some(mut snapshot) = self.snapshot_without_peers(id) else {
            self.process.peers.remove(id);
            return None;
        };
        if self.process.stale.remove(id) || !self.process.peers.contains_key(id) {
            self.process.peers.insert(id.clone(), Arc::new(peer(&snapshot)));
        }
        let now = self.now();
        let peers = self.process.peers.iter().filter(|(other, _)| *other != id);
        snapshot.peers = peers
            .map(|(other, peer)| {
                let since = self.process.seen.get(other).map_or(now, |seen| seen.since);
                OtherPackage { peer: Arc::clone(peer), still_for: Duration::from_millis(now - since) }
            })
            .collect();
        let mut wanted = needs(&snapshot);
        if wanted.foreign_releases {
            self.add_releases_of_others(&mut snapshot);
            wanted = needs(&snapshot);
        }
        let keys: BTreeSet<ObjectKey> = wanted.as_package.iter().chain(&wanted.as_windlass).cloned().collect();
        let watched = keys.iter().chain(wanted.daemon_sets.keys()).cloned().collect();
        let begun = self.process.watch(id, watched);
        if !begun.is_empty() {
            self.process.wake(id.clone(), now);
        }
        let look_up = |key: &ObjectKey| if begun.contains(key) { Lookup::Pending } else { self.look_up(key) };
        snapshot.objects = keys.iter().map(|key| (key.clone(), look_up(key))).collect();
        self.look_at_daemon_sets(id, &mut snapshot, &wanted, &begun);
        snapshot.refusals = self.process.refused.get(id).cloned().unwrap_or_default();
        let policies = self.policies();
        snapshot.policies = wanted.guarded.into_iter().map(|namespace| (namespace, policies.clone())).collect();
        let keys: BTreeSet<ObjectKey> = keys.into_iter().chain(wanted.daemon_sets.into_keys()).collect();
        let own = self.process.peers.get(id);
        let children = own.iter().flat_map(|peer| peer.children.iter().chain(peer.sources.iter()));
        let interest = children.chain(&keys).map(to_key).collect();
        self.process.interest.insert(id.clone(), interest);
        Some(snapshot)
    }

    /// DaemonSets behind a canary, as closely as asked for.
    fn look_at_daemon_sets(
        &mut self,
        id: &PackageId,
        snapshot: &mut Snapshot,
        wanted: &Needs,
        begun: &BTreeSet<ObjectKey>,
    ) {
        let mut closely = false;
        for (key, depth) in &wanted.daemon_sets {
            let (place, cache) = (to_key(key), &self.process.cache);
            let daemon_set = match wanted.fresh.contains(key) {
                true => self.world.store.get(&place).map(|object| DaemonSet::read(object)),
                false => cache.get(&place).map(|object| DaemonSet::read(object)),
            };
            let sight = match daemon_set {
                _ if begun.contains(key) && !wanted.fresh.contains(key) => Sight::Pending,
                Some(daemon_set) if depth.is_full(&daemon_set) => {
                    closely = true;
                    Sight::Full(Arc::new(self.observe(daemon_set)))
                }
                other => Sight::Alone(other.map(Box::new)),
            };
            snapshot.daemon_sets.insert(key.clone(), sight);
        }
        if closely {
            self.process.rollouts.insert(id.clone());
        } else {
            self.process.rollouts.remove(id);
        }
    }

    fn observe(&self, daemon_set: DaemonSet) -> Observation {
        let cache = &self.process.cache;
        let own = |kind| {
            cache.list(kind, &daemon_set.namespace).map(|(_, seen)| seen.live.object.as_ref()).collect::<Vec<_>>()
        };
        let nodes = cache.of_kind("Node").map(|(_, node)| Node::read(node));
        Observation {
            revisions: own("ControllerRevision").into_iter().map(Revision::read).collect(),
            pods: own("Pod").into_iter().map(Pod::read).collect(),
            nodes: Arc::new(nodes.map(|node| (node.name.clone(), node)).collect()),
            daemon_set: Some(daemon_set),
        }
    }

    /// The simulated policies act everywhere, and know Windlass.
    fn policies(&self) -> Policies {
        let state = |policy| {
            let acts = self.world.store.policies.contains(&policy);
            if acts { PolicyState::Active } else { PolicyState::Absent }
        };
        Policies { strict: state(Policy::Strict), compat: state(Policy::Compat) }
    }

    pub(super) fn snapshot_without_peers(&mut self, id: &PackageId) -> Option<Snapshot> {
        let package = self.package_view(id)?;
        let revisions = self.revision_views(id);
        let children = self.children(&package);
        let cluster = self.cluster(&package);
        let sources = SOURCES
            .iter()
            .flat_map(|kind| self.process.cache.list(kind, &id.namespace))
            .filter(|(_, seen)| seen.is_ours)
            .map(|(_, seen)| seen.live.clone())
            .collect();
        let unreadable = Vec::new();
        Some(Snapshot {
            package,
            revisions,
            unreadable,
            children,
            sources,
            orphaned_sources: self.orphaned_sources(&id.namespace),
            objects: BTreeMap::new(),
            daemon_sets: BTreeMap::new(),
            refusals: BTreeMap::new(),
            policies: BTreeMap::new(),
            rights: BTreeMap::new(),
            others: Vec::new(),
            peers: Vec::new(),
            cluster,
        })
    }

    /// What releases point at whose Package is gone.
    fn orphaned_sources(&mut self, namespace: &str) -> BTreeSet<ObjectKey> {
        let kinds = ["HelmRelease", "PackageRevision"].into_iter();
        let objects = kinds.flat_map(|kind| self.process.cache.list(kind, namespace)).map(|(_, seen)| seen);
        let labelled: BTreeSet<&str> =
            objects.map(|seen| seen.package.as_str()).filter(|name| !name.is_empty()).collect();
        let ids = labelled.into_iter().map(|name| PackageId::new(namespace, name));
        let gone: Vec<PackageId> = ids.filter(|id| self.process.cache.get(&id.key()).is_none()).collect();
        let mut sources = BTreeSet::new();
        for id in gone {
            let children = self.process.cache.list("HelmRelease", namespace);
            let children = children.filter(|(_, seen)| seen.is_ours && seen.package == id.name);
            let children: Vec<Live> = children.map(|(_, seen)| seen.live.clone()).collect();
            sources.extend(sources_of(&children, &self.revision_views(&id)));
        }
        sources
    }

    /// Labelled children.
    fn children(&self, package: &PackageView) -> Vec<Live> {
        let objects = RELEASES.iter().flat_map(|kind| self.process.cache.list(kind, &package.namespace));
        let own = objects.filter(|(_, seen)| seen.is_ours && seen.package == package.name.as_str());
        own.map(|(_, seen)| seen.live.clone()).collect()
    }

    fn add_releases_of_others(&self, snapshot: &mut Snapshot) {
        let own = peer(snapshot);
        for live in RELEASES.iter().flat_map(|kind| self.process.cache.all(kind)) {
            match sort(&own, live) {
                Found::Child if !snapshot.children.iter().any(|known| known.key() == live.key()) => {
                    snapshot.children.push(live.clone());
                }
                Found::Other => snapshot.others.push(live.clone()),
                Found::Child | Found::Nothing => {}
            }
        }
    }

    fn cluster(&self, package: &PackageView) -> Cluster {
        let namespace = Key::new("v1", "Namespace", "", &package.namespace);
        let namespace = self.process.cache.get(&namespace);
        Cluster {
            engines: self.settings.engines.clone(),
            default_engine: None,
            kubernetes: self.settings.kubernetes.clone(),
            namespace_terminating: namespace.is_some_and(|namespace| crate::sim::store::is_deleting(namespace)),
            crd_terminating: self.settings.crd_terminating,
            argo_project: "default".into(),
            requirements_settle: self.settings.requirements_settle,
            deletion_settle: self.settings.deletion_settle,
            identity: None,
            guard_settles_in: None,
            default_service_account: None,
            require_service_account: self.settings.require_service_account,
            watching_for: Duration::from_millis(self.now() - self.process.started),
        }
    }

    fn look_up(&self, key: &ObjectKey) -> Lookup {
        if !self.world.knows(&key.api_version, &key.kind) {
            return Lookup::KindUnknown;
        }
        let mut place = to_key(key);
        if is_cluster_scoped(&place.kind) {
            place.namespace.clear();
        }
        match self.process.cache.get(&place) {
            Some(object) => Lookup::Found(Value::Object(object.as_ref().clone())),
            None => Lookup::Absent,
        }
    }
}

pub(super) fn to_key(key: &ObjectKey) -> Key {
    Key::new(&key.api_version, &key.kind, &key.namespace, &key.name)
}
