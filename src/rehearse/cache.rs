//! What the controller sees: the objects, later than they are.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash as _, Hasher};
use std::sync::Arc;

use super::packages::text;
use super::process::PackageId;
use super::{Faults, Rehearsal};
use crate::api::wellknown::{FIELD_MANAGER, LABEL_MANAGED_BY, LABEL_PACKAGE};
use crate::fields;
use crate::rollout::live::Live;
use crate::sim::fingerprint;
use crate::sim::{Change, Key, Object, Shared, Verb};

/// Objects as they were last seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    objects: BTreeMap<String, Shared<BTreeMap<Arc<Key>, Seen>>>,
    position: usize,
    held_back: BTreeMap<String, VecDeque<Arc<Change>>>,
    /// Kinds of which nothing is shown for the time being.
    hidden: &'static [&'static str],
    listed: bool,
}

/// An object, and whose it is.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub live: Live,
    /// The Package that its label, or the spec of a revision, names.
    pub package: String,
    /// Whether Windlass made it.
    pub is_ours: bool,
}

impl Seen {
    fn new(object: &Object) -> Self {
        let of_revision = text(object, &["spec", "package"]);
        let label = text(object, &["metadata", "labels", LABEL_PACKAGE]);
        Self {
            package: if label.is_empty() { of_revision } else { label }.to_owned(),
            is_ours: text(object, &["metadata", "labels", LABEL_MANAGED_BY]) == FIELD_MANAGER,
            live: Live::new(Arc::clone(object)),
        }
    }
}

impl Cache {
    fn of(&self, kind: &str) -> impl Iterator<Item = (&Arc<Key>, &Seen)> {
        self.objects.get(kind).into_iter().flat_map(|of_kind| of_kind.iter())
    }

    /// The object of a key.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(&key.kind)?.get(key).map(|seen| &seen.live.object)
    }

    /// Objects of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&Key, &Object)> {
        self.of(kind).map(|(key, seen)| (key.as_ref(), &seen.live.object))
    }

    /// Objects of a kind in all namespaces.
    pub fn all<'a>(&'a self, kind: &str) -> impl Iterator<Item = &'a Live> {
        self.of(kind).map(|(_, seen)| &seen.live)
    }

    /// Objects of a kind in a namespace.
    pub fn list<'a>(&'a self, kind: &str, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Seen)> {
        let of_kind = self.of(kind);
        of_kind.map(|(key, seen)| (key.as_ref(), seen)).filter(move |(key, _)| key.namespace == namespace)
    }

    /// Shows nothing more of some kinds, and of others what was held back.
    pub fn hold_back(&mut self, kinds: &'static [&'static str]) {
        self.hidden = kinds;
    }

    /// Whether something is held back until it is asked for.
    pub fn is_holding_back(&self) -> bool {
        !self.hidden.is_empty()
    }

    fn hides(&self, kind: &str) -> bool {
        self.hidden.contains(&kind)
    }

    /// Hashes what is there and has not been shown.
    pub fn hash_held_back(&self, hasher: &mut impl Hasher) {
        self.hidden.hash(hasher);
        for change in self.held_back.values().flatten() {
            (change.verb, fingerprint::of_object(&change.key, &change.object)).hash(hasher);
        }
    }

    /// Takes in what can be seen by now; returns it, with what was there before.
    fn advance(&mut self, log: &[Arc<Change>], now: u64, faults: &Faults) -> Vec<(Arc<Change>, Option<Object>)> {
        let mut seen = Vec::new();
        for change in log.get(self.position..).unwrap_or_default() {
            let waits = self.held_back.get(&change.key.kind).is_some_and(|waiting| !waiting.is_empty());
            if !self.listed || !(waits || faults.lag.contains_key(&change.key.kind) || self.hides(&change.key.kind)) {
                seen.push(Arc::clone(change));
            } else {
                self.held_back.entry(change.key.kind.clone()).or_default().push_back(Arc::clone(change));
            }
        }
        self.position = log.len();
        self.listed = true;
        let hidden = self.hidden;
        for (kind, waiting) in self.held_back.iter_mut().filter(|(kind, _)| !hidden.contains(&kind.as_str())) {
            let lag = faults.lag.get(kind).copied().unwrap_or(0);
            while waiting.front().is_some_and(|change| change.at + lag <= now) {
                seen.extend(waiting.pop_front());
            }
        }
        seen.into_iter()
            .map(|change| {
                let of_kind = self.objects.entry(change.key.kind.clone()).or_default();
                let before = match change.verb {
                    Verb::Created | Verb::Updated => of_kind.insert(Arc::clone(&change.key), Seen::new(&change.object)),
                    Verb::Deleted => of_kind.remove(&change.key),
                };
                (change, before.map(|before| before.live.object))
            })
            .collect()
    }

    fn next_delivery(&self, faults: &Faults) -> Option<u64> {
        let shown = self.held_back.iter().filter(|(kind, _)| !self.hides(kind));
        let first = shown.filter_map(|(kind, waiting)| {
            let lag = faults.lag.get(kind).copied().unwrap_or(0);
            waiting.front().map(|change| change.at + lag)
        });
        first.min()
    }
}

impl Rehearsal {
    pub(super) fn next_delivery(&self) -> Option<u64> {
        self.process.cache.next_delivery(&self.faults)
    }

    /// Lets the controller see what can be seen by now, and wakes the Packages
    /// that it is about.
    pub(super) fn deliver(&mut self) {
        self.world.settle_writes();
        let now = self.now();
        let seen = self.process.cache.advance(self.world.store.log(), now, &self.faults);
        for (change, before) in seen {
            for id in self.about(&change, before.as_ref()) {
                self.notifications += 1;
                let lost = self.faults.lose_every.is_some_and(|every| self.notifications.is_multiple_of(every));
                if !lost {
                    self.process.wake(id.clone(), now);
                }
                if self.faults.duplicate {
                    self.process.wake(id, now + 1);
                }
            }
        }
    }

    /// Packages that a change is about.
    fn about(&mut self, change: &Change, before: Option<&Object>) -> Vec<PackageId> {
        let key = change.key.as_ref();
        let text = |path: &[&str]| Some(text(&change.object, path)).filter(|text| !text.is_empty());
        let mut ids: Vec<PackageId> = Vec::new();
        match key.kind.as_str() {
            "Package" => ids.push(PackageId::new(&key.namespace, &key.name)),
            "PackageRevision" => {
                ids.extend(text(&["spec", "package"]).map(|name| PackageId::new(&key.namespace, name)))
            }
            "Pod" | "Node" | "ControllerRevision" => ids.extend(self.process.rollouts.iter().cloned()),
            _ => {
                ids.extend(
                    text(&["metadata", "labels", LABEL_PACKAGE]).map(|name| PackageId::new(&key.namespace, name)),
                );
                let interested = self.process.interest.iter().filter(|(_, keys)| keys.contains(key));
                ids.extend(interested.map(|(id, _)| id.clone()));
            }
        }
        let matters = before.is_none_or(|before| matters_to_others(change, before));
        if outdates_peer(change, before, matters) {
            self.process.stale.extend(ids.iter().cloned());
        }
        let alone = self.process.peers.len() < 2 && self.process.cache.of_kind("Package").count() < 2;
        if !alone && matters {
            for id in ids.clone() {
                ids.extend(self.tell_others(&id));
            }
        }
        ids.sort();
        ids.dedup();
        ids
    }
}

/// Whether what others may know of a Package has to be worked out anew after a change,
/// whether or not they are to be told: it comes from these kinds alone.
fn outdates_peer(change: &Change, before: Option<&Object>, matters: bool) -> bool {
    let read = ["Package", "PackageRevision", "HelmRelease", "Application"];
    let also: [&[&str]; 3] = [&["metadata", "annotations"], &["status", "history"], &["status", "operationState"]];
    let is_child = ["HelmRelease", "Application"].contains(&change.key.kind.as_str());
    let differs =
        |path: &[&str]| before.is_some_and(|before| fields::at(&change.object, path) != fields::at(before, path));
    read.contains(&change.key.kind.as_str()) && (matters || is_child && also.into_iter().any(differs))
}

/// Whether a change may change what other Packages know of this one: what they
/// know comes from specs and from revisions. Writes of nothing but a status of
/// anything else tell them nothing.
fn matters_to_others(change: &Change, before: &Object) -> bool {
    let differs = |path: &[&str]| fields::at(&change.object, path) != fields::at(before, path);
    let deletion = |object: &Object| crate::sim::store::is_deleting(object);
    change.verb == Verb::Deleted
        || change.key.kind == "PackageRevision"
        || differs(&["spec"])
        || deletion(&change.object) != deletion(before)
        || differs(&["metadata", "labels"])
}
