//! Watches that live only as long as a Package needs them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use tokio::task::AbortHandle;

use super::queue::Queue;
use super::store::PackageKey;

/// What is watched, by what it is of, and for which Packages.
pub struct Watches<K, S> {
    running: HashMap<K, Watch<S>>,
    wanted: BTreeMap<PackageKey, BTreeSet<K>>,
}

struct Watch<S> {
    seen: S,
    task: AbortHandle,
}

impl<K, S> Default for Watches<K, S> {
    fn default() -> Self {
        Self { running: HashMap::new(), wanted: BTreeMap::new() }
    }
}

impl<K: Clone + Hash + Ord, S> Watches<K, S> {
    /// Says all that a Package needs from now on. Watches that nobody needs any
    /// more end.
    pub fn want(&mut self, package: &PackageKey, wanted: BTreeSet<K>) {
        if wanted.is_empty() {
            self.wanted.remove(package);
        } else {
            self.wanted.insert(package.clone(), wanted);
        }
        let wanted: BTreeSet<&K> = self.wanted.values().flatten().collect();
        self.running.retain(|key, watch| {
            let keep = wanted.contains(key);
            if !keep {
                watch.task.abort();
            }
            keep
        });
    }

    /// What is known of something; a watch of it is started if there is none.
    pub fn get_or_start<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        key: &K,
        unseen: impl FnOnce() -> S,
        run: impl FnOnce() -> F,
    ) -> &S {
        let start = || Watch { seen: unseen(), task: tokio::spawn(run()).abort_handle() };
        &self.running.entry(key.clone()).or_insert_with(start).seen
    }

    /// What is known of something, as long as it is watched.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut S> {
        self.running.get_mut(key).map(|watch| &mut watch.seen)
    }

    /// All that is watched, with what is known of it.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut S)> {
        self.running.iter_mut().map(|(key, watch)| (key, &mut watch.seen))
    }

    /// Wakes the Packages that need something.
    pub fn wake(&self, key: &K, queue: &Queue) {
        let waiting = self.wanted.iter().filter(|(_, wanted)| wanted.contains(key));
        waiting.for_each(|(package, _)| queue.wake(package.clone()));
    }
}
