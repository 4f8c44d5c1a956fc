//! What the controller sees: the objects, later than they are.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::process::PackageId;
use super::{Faults, Rehearsal};
use crate::api::wellknown::LABEL_PACKAGE;
use crate::sim::{Change, Key, Object, Verb};

/// Objects as they were last seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    pub objects: BTreeMap<Arc<Key>, Object>,
    position: usize,
    held_back: BTreeMap<String, VecDeque<Arc<Change>>>,
    listed: bool,
}

impl Cache {
    /// The object of a key.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    /// Objects of a kind in all namespaces.
    pub fn list_all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a Key, &'a Object)> {
        let of_kind = self.objects.iter().filter(move |(key, _)| key.kind == kind);
        of_kind.map(|(key, object)| (key.as_ref(), object))
    }

    /// Objects of a kind in a namespace.
    pub fn list<'a>(&'a self, kind: &'a str, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Object)> {
        let of_kind = self.objects.iter().filter(move |(key, _)| key.kind == kind && key.namespace == namespace);
        of_kind.map(|(key, object)| (key.as_ref(), object))
    }

    /// Takes in what can be seen by now; returns it.
    fn advance(&mut self, log: &[Arc<Change>], now: u64, faults: &Faults) -> Vec<Arc<Change>> {
        let mut seen = Vec::new();
        for change in log.get(self.position..).unwrap_or_default() {
            if !self.listed || !faults.lag.contains_key(&change.key.kind) {
                seen.push(Arc::clone(change));
            } else {
                self.held_back.entry(change.key.kind.clone()).or_default().push_back(Arc::clone(change));
            }
        }
        self.position = log.len();
        self.listed = true;
        for (kind, waiting) in &mut self.held_back {
            let lag = faults.lag.get(kind).copied().unwrap_or(0);
            while waiting.front().is_some_and(|change| change.at + lag <= now) {
                seen.extend(waiting.pop_front());
            }
        }
        for change in &seen {
            match change.verb {
                Verb::Created | Verb::Updated => {
                    self.objects.insert(Arc::clone(&change.key), Arc::clone(&change.object));
                }
                Verb::Deleted => {
                    self.objects.remove(&change.key);
                }
            }
        }
        seen
    }

    fn next_delivery(&self, faults: &Faults) -> Option<u64> {
        let first = self.held_back.iter().filter_map(|(kind, waiting)| {
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
        for change in seen {
            for id in self.about(&change) {
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
    fn about(&mut self, change: &Change) -> Vec<PackageId> {
        let key = change.key.as_ref();
        let text = |path: &[&str]| {
            let mut value = change.object.get(*path.first()?)?;
            for field in path.get(1..)? {
                value = value.get(*field)?;
            }
            value.as_str()
        };
        let mut ids: Vec<PackageId> = Vec::new();
        match key.kind.as_str() {
            "Package" => ids.push(PackageId::new(&key.namespace, &key.name)),
            "PackageRevision" => {
                ids.extend(text(&["spec", "package"]).map(|name| PackageId::new(&key.namespace, name)))
            }
            _ => {
                ids.extend(
                    text(&["metadata", "labels", LABEL_PACKAGE]).map(|name| PackageId::new(&key.namespace, name)),
                );
                let interested = self.process.interest.iter().filter(|(_, keys)| keys.contains(key));
                ids.extend(interested.map(|(id, _)| id.clone()));
            }
        }
        let alone = self.package_ids().len() < 2;
        for id in ids.clone().into_iter().filter(|_| !alone) {
            self.look_at_peer(&id);
            ids.extend(self.concerned_by(&id));
        }
        ids.sort();
        ids.dedup();
        ids
    }
}
