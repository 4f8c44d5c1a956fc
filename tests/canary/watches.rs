//! What the controller has seen of a simulated cluster: each kind by a watch of
//! its own, one of which may be later than the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass::sim::store::{Object, Store};
use windlass::sim::{Change, Key, Verb};

/// Milliseconds by which each watch is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lags {
    pub daemon_sets: u64,
    pub revisions: u64,
    pub pods: u64,
    pub nodes: u64,
}

impl Lags {
    pub fn longest(self) -> u64 {
        self.daemon_sets.max(self.revisions).max(self.pods).max(self.nodes)
    }

    fn of(self, kind: &str) -> u64 {
        match kind {
            "DaemonSet" => self.daemon_sets,
            "ControllerRevision" => self.revisions,
            "Pod" => self.pods,
            _ => self.nodes,
        }
    }
}

const KINDS: [&str; 4] = ["DaemonSet", "ControllerRevision", "Pod", "Node"];

/// The watches of the four kinds that a rollout looks at.
#[derive(Default)]
pub struct Watches {
    lags: Lags,
    watches: BTreeMap<&'static str, Watch>,
}

#[derive(Default)]
struct Watch {
    /// Changes of the cluster's log that it has got past.
    position: usize,
    objects: BTreeMap<Key, Object>,
    /// Objects that a write of our own gave back, and the length of the log then.
    noted: BTreeMap<Key, usize>,
}

impl Watches {
    /// Everything is listed now; what follows comes late.
    pub fn start(store: &Store, lags: Lags) -> Self {
        let watch = |kind| {
            let objects = store.list(kind).map(|(key, object)| (key.clone(), object.clone())).collect();
            Watch { position: store.log().len(), objects, noted: BTreeMap::new() }
        };
        Self { lags, watches: KINDS.into_iter().map(|kind| (kind, watch(kind))).collect() }
    }

    /// Takes in what has arrived by now; true if that is news.
    pub fn catch_up(&mut self, log: &[Arc<Change>], now: u64) -> bool {
        let lags = self.lags;
        let take = |(kind, watch): (&&str, &mut Watch)| watch.catch_up(kind, log, now, lags.of(kind));
        self.watches.iter_mut().map(take).fold(false, |news, one| news | one)
    }

    /// When something arrives next.
    pub fn next(&self, log: &[Arc<Change>]) -> Option<u64> {
        let next = |(kind, watch): (&&str, &Watch)| Some(log.get(watch.position)?.at + self.lags.of(kind));
        self.watches.iter().filter_map(next).min()
    }

    /// What a write of our own gave back is seen at once, and nothing older again.
    pub fn note(&mut self, key: &Key, store: &Store) {
        let Some(watch) = self.watches.get_mut(key.kind.as_str()) else { return };
        if let Some(object) = store.get(key) {
            watch.objects.insert(key.clone(), object.clone());
            watch.noted.insert(key.clone(), store.log().len());
        }
    }

    /// The objects of a kind.
    pub fn list(&self, kind: &str) -> impl Iterator<Item = (&Key, &Map<String, Value>)> {
        let objects = self.watches.get(kind).into_iter().flat_map(|watch| &watch.objects);
        objects.map(|(key, object)| (key, object.as_ref()))
    }
}

impl Watch {
    fn catch_up(&mut self, kind: &str, log: &[Arc<Change>], now: u64, lag: u64) -> bool {
        let mut news = false;
        while let Some(change) = log.get(self.position).filter(|change| change.at + lag <= now) {
            let older = self.noted.get(&change.key).is_some_and(|noted| self.position < *noted);
            self.position += 1;
            if change.key.kind != kind || older {
                continue;
            }
            news = true;
            match change.verb {
                Verb::Created | Verb::Updated => {
                    self.objects.insert(change.key.as_ref().clone(), change.object.clone())
                }
                Verb::Deleted => self.objects.remove(&change.key),
            };
        }
        news
    }
}
