//! What the watches have seen, and what our own writes gave back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::cached::Cached;
use crate::engine::ObjectKey;

/// Namespace and name of a Package.
pub type PackageKey = (String, String);

/// The objects of one kind. Own writes are seen at once; what a watch delivers
/// later about an older state is not taken.
#[derive(Debug, Default)]
pub struct Store {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<ObjectKey, Arc<Cached>>,
    by_package: HashMap<PackageKey, BTreeSet<ObjectKey>>,
    /// What last stood at a place and is gone: the answer to an own write that
    /// arrives after the watch has told of the end brings nothing back.
    gone: BTreeMap<ObjectKey, Gone>,
    /// Objects of the list that is being read, until it is complete.
    incoming: Option<BTreeSet<ObjectKey>>,
    synced: bool,
}

/// An object that was there, and the newest version it is known to have had.
/// One that only lost our label comes back with a newer one.
#[derive(Debug)]
struct Gone {
    uid: String,
    version: u64,
}

/// Whether the store has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It has.
    Yes,
    /// It knew that, or something newer.
    No,
}

impl Store {
    /// Takes an object.
    pub fn put(&self, object: Cached) -> Taken {
        let mut inner = self.write();
        let key = object.key().clone();
        if let Some(incoming) = &mut inner.incoming {
            incoming.insert(key.clone());
        }
        if inner.is_gone(&object) || inner.objects.get(&key).is_some_and(|known| is_older(&object, known)) {
            return Taken::No;
        }
        if inner.objects.get(&key).is_some_and(|known| known.uid() == object.uid()) {
            inner.unlink(&key);
        } else {
            inner.forget(&key);
        }
        if let Some(package) = object.package() {
            let package = (key.namespace.clone(), package.to_owned());
            inner.by_package.entry(package).or_default().insert(key.clone());
        }
        inner.objects.insert(key, Arc::new(object));
        Taken::Yes
    }

    /// Forgets an object that an own write has removed.
    pub fn remove(&self, key: &ObjectKey) {
        let mut inner = self.write();
        if let Some(uid) = inner.forget(key).as_ref().and_then(|object| object.uid()) {
            // Nothing that is answered later is news of it.
            inner.bury(key, uid, u64::MAX);
        }
    }

    /// Forgets an object of which a watch has told the end, or that it left the
    /// selection; another one that stands at its place by now stays.
    pub fn remove_seen(&self, last: &Cached) {
        let mut inner = self.write();
        let key = last.key();
        if inner.objects.get(key).is_some_and(|known| known.uid() == last.uid()) {
            inner.forget(key);
        }
        if let Some(uid) = last.uid() {
            inner.bury(key, uid, last.version());
        }
    }

    /// A list begins.
    pub fn begin_list(&self) {
        self.write().incoming = Some(BTreeSet::new());
    }

    /// The list is complete: what was not in it is gone. Gives what went.
    pub fn end_list(&self) -> Vec<Arc<Cached>> {
        let mut inner = self.write();
        inner.synced = true;
        let Some(incoming) = inner.incoming.take() else { return Vec::new() };
        let gone: Vec<ObjectKey> = inner.objects.keys().filter(|key| !incoming.contains(*key)).cloned().collect();
        gone.iter().filter_map(|key| inner.forget(key)).collect()
    }

    /// Whether a list has been read completely.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// The object of a key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Cached>> {
        self.read().objects.get(key).cloned()
    }

    /// Objects labelled with a Package.
    pub fn of_package(&self, package: &PackageKey) -> Vec<Arc<Cached>> {
        let inner = self.read();
        let keys = inner.by_package.get(package);
        keys.into_iter().flatten().filter_map(|key| inner.objects.get(key).cloned()).collect()
    }

    /// Packages of a namespace that objects are labelled with.
    pub fn packages(&self, namespace: &str) -> Vec<PackageKey> {
        self.read().by_package.keys().filter(|(home, _)| home == namespace).cloned().collect()
    }

    /// Objects of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> Vec<Arc<Cached>> {
        self.read().objects.values().filter(|object| object.key().namespace == namespace).cloned().collect()
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<Cached>> {
        self.read().objects.values().cloned().collect()
    }

    /// A panic while the lock was held has left the maps whole: each change is
    /// a single insertion or removal.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Most places of which it is known what last stood there. Answers are late by
/// seconds at most.
const MOST_GONE: usize = 4096;

impl Inner {
    fn is_gone(&self, object: &Cached) -> bool {
        let gone = self.gone.get(object.key());
        gone.is_some_and(|gone| object.uid() == Some(&gone.uid) && object.version() <= gone.version)
    }

    fn bury(&mut self, key: &ObjectKey, uid: &str, version: u64) {
        if self.gone.len() >= MOST_GONE {
            self.gone.clear();
        }
        self.gone.insert(key.clone(), Gone { uid: uid.to_owned(), version });
    }

    fn forget(&mut self, key: &ObjectKey) -> Option<Arc<Cached>> {
        self.unlink(key);
        let object = self.objects.remove(key)?;
        if let Some(uid) = object.uid() {
            self.bury(key, uid, object.version());
        }
        Some(object)
    }

    fn unlink(&mut self, key: &ObjectKey) {
        let package = self.objects.get(key).and_then(|known| known.package());
        let Some(package) = package.map(|package| (key.namespace.clone(), package.to_owned())) else { return };
        if let Some(keys) = self.by_package.get_mut(&package) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_package.remove(&package);
            }
        }
    }
}

fn is_older(object: &Cached, known: &Cached) -> bool {
    object.version() != 0 && object.version() <= known.version() && object.uid() == known.uid()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, version: u64, package: Option<&str>) -> Cached {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": version.to_string()},
        });
        if let Some(package) = package {
            object["metadata"]["labels"] = json!({"windlass.dev/package": package});
        }
        Cached::new(object.as_object().unwrap().clone())
    }

    fn key() -> PackageKey {
        ("ns".into(), "p".into())
    }

    #[test]
    fn an_older_state_is_not_taken() {
        let store = Store::default();
        assert_eq!(store.put(object("a", 7, None)), Taken::Yes);
        assert_eq!(store.put(object("a", 5, None)), Taken::No);
        assert_eq!(store.all()[0].version(), 7);
    }

    #[test]
    fn what_is_gone_is_not_brought_back_by_a_late_answer() {
        let store = Store::default();
        store.put(object("a", 7, Some("p")));
        let key_of_a = store.all()[0].key().clone();
        store.remove(&key_of_a);
        assert_eq!(store.put(object("a", 8, Some("p"))), Taken::No);
        assert_eq!((store.all().len(), store.of_package(&key()).len()), (0, 0));
    }

    #[test]
    fn an_object_that_only_lost_our_label_comes_back_with_it() {
        let store = Store::default();
        store.put(object("a", 7, Some("p")));
        store.remove_seen(&object("a", 8, Some("p")));
        assert_eq!(store.put(object("a", 7, Some("p"))), Taken::No, "it came late");
        assert_eq!(store.put(object("a", 9, Some("p"))), Taken::Yes);
        assert_eq!(store.of_package(&key()).len(), 1);
    }

    #[test]
    fn a_late_word_of_an_end_does_not_take_the_successor_away() {
        let store = Store::default();
        let next = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "ns", "uid": "another", "resourceVersion": "9"},
        });
        store.put(object("a", 7, None));
        store.put(Cached::new(next.as_object().unwrap().clone()));
        store.remove_seen(&object("a", 8, None));
        assert_eq!(store.all()[0].version(), 9);
        assert_eq!(store.put(object("a", 8, None)), Taken::No);
    }

    #[test]
    fn another_object_may_take_the_place_of_one_that_is_gone() {
        let store = Store::default();
        store.put(object("a", 7, None));
        let key = store.all()[0].key().clone();
        store.remove(&key);
        let next = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "ns", "uid": "another", "resourceVersion": "9"},
        });
        assert_eq!(store.put(Cached::new(next.as_object().unwrap().clone())), Taken::Yes);
        assert_eq!(store.put(object("a", 8, None)), Taken::No);
        assert_eq!(store.all()[0].version(), 9);
    }

    #[test]
    fn a_state_of_the_same_object_is_followed_by_a_newer_one() {
        let store = Store::default();
        for version in 1..4 {
            assert_eq!(store.put(object("a", version, None)), Taken::Yes);
        }
    }

    #[test]
    fn objects_are_found_by_package_until_they_change_hands() {
        let store = Store::default();
        store.put(object("a", 1, Some("p")));
        assert_eq!(store.of_package(&key()).len(), 1);
        store.put(object("a", 2, Some("q")));
        assert_eq!(store.of_package(&key()).len(), 0);
    }

    #[test]
    fn what_is_not_in_a_complete_list_is_gone() {
        let store = Store::default();
        store.put(object("a", 1, None));
        store.put(object("b", 2, None));
        store.begin_list();
        store.put(object("b", 2, None));
        let gone = store.end_list();
        assert_eq!((gone.len(), store.all().len()), (1, 1));
        assert!(store.is_synced());
    }

    #[test]
    fn an_own_write_during_a_list_stays() {
        let store = Store::default();
        store.begin_list();
        store.put(object("new", 9, None));
        store.end_list();
        assert_eq!(store.all().len(), 1);
    }
}
