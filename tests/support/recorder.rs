//! An ordered log of what happened to chosen kinds, from watches of the API server.
//!
//! Resource versions of one API server grow with every write whatever the kind, so they
//! put the writes of different kinds in order; arrival times do not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cluster::{Cluster, to_json};

/// One write.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Of the write; of the last one before, for what was there at the start.
    pub version: u64,
    /// When the watch told of it: only for how long things take.
    pub seen: Instant,
    pub change: Change,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// The object after the write, or the last one before its removal.
    pub object: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// Records until it is dropped.
pub struct Recorder {
    shared: Arc<Shared>,
    watched: Vec<Watched>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    entries: Mutex<Vec<Entry>>,
    count: watch::Sender<usize>,
    gap: Mutex<Option<String>>,
}

#[derive(Clone)]
struct Watched {
    kind: String,
    api: Api<DynamicObject>,
}

impl Recorder {
    /// Watches kinds, given as (apiVersion, kind), in one namespace. What is there already
    /// is recorded as added.
    pub async fn start(cluster: &Cluster, namespace: &str, kinds: &[(&str, &str)]) -> Self {
        let shared = Arc::<Shared>::default();
        let mut watched = Vec::new();
        let mut tasks = JoinSet::new();
        for (api_version, kind) in kinds {
            let api = cluster.dynamic(api_version, kind, namespace).await;
            let kind = Watched { kind: (*kind).to_owned(), api };
            let list = kind.api.list(&ListParams::default()).await.expect("a list");
            let version = list.metadata.resource_version.clone().unwrap_or_default();
            for object in list.items {
                shared.push(&kind.kind, Change::Added, &object);
            }
            watched.push(kind.clone());
            tasks.spawn(record(Arc::clone(&shared), kind, version));
        }
        Self { shared, watched, _tasks: tasks }
    }

    /// Everything so far, in order; possibly not yet the last writes.
    pub fn log(&self) -> Vec<Entry> {
        if let Some(gap) = &*self.shared.gap.lock().expect("the gap") {
            panic!("the recording has a gap: {gap}");
        }
        let mut entries = self.shared.entries.lock().expect("the entries").clone();
        entries.sort_by_key(|entry| entry.version);
        entries
    }

    /// Everything up to now, in order: waits for the watches to catch up. All kinds end with the
    /// same write.
    pub async fn complete(&self) -> Vec<Entry> {
        let mut until = u64::MAX;
        for watched in &self.watched {
            let list = watched.api.list(&ListParams::default()).await.expect("a list");
            let at = parse(&list.metadata.resource_version.clone().unwrap_or_default());
            until = until.min(at);
            let listed: BTreeMap<_, _> = list
                .items
                .iter()
                .map(|object| (key(object), parse(&object.resource_version().unwrap_or_default())))
                .collect();
            let what = format!("the watch of {} to catch up", watched.kind);
            self.until(Duration::from_secs(10), &what, |log| {
                behind(log, &watched.kind, &listed, at).map_or(Ok(()), Err)
            })
            .await;
        }
        let mut log = self.log();
        log.retain(|entry| entry.version <= until);
        log
    }

    /// Waits until `check` accepts the log.
    pub async fn until<T>(
        &self,
        deadline: Duration,
        what: &str,
        mut check: impl FnMut(&[Entry]) -> Result<T, String>,
    ) -> T {
        let mut count = self.shared.count.subscribe();
        let mut seen = String::new();
        let waiting = async {
            loop {
                count.borrow_and_update();
                match check(&self.log()) {
                    Ok(value) => return value,
                    Err(message) => seen = message,
                }
                count.changed().await.expect("the sender");
            }
        };
        match tokio::time::timeout(deadline * super::wait::PATIENCE, waiting).await {
            Ok(value) => value,
            Err(_) => panic!("waited {deadline:?} for {what}\nbut saw: {seen}"),
        }
    }
}

/// The first entry that `select` selects; fails with the whole log when there is none.
pub fn first<'a>(log: &'a [Entry], what: &str, select: impl Fn(&Entry) -> bool) -> &'a Entry {
    log.iter().find(|entry| select(entry)).unwrap_or_else(|| {
        panic!("never recorded: {what}\n{}", describe(log));
    })
}

/// The log, one line an entry.
pub fn describe(log: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let Entry { version, seen: _, change, kind, namespace, name, object } = entry;
        let generation = &object["metadata"]["generation"];
        format!("{version} {change:?} {kind} {namespace}/{name} generation {generation}")
    };
    log.iter().map(line).collect::<Vec<_>>().join("\n")
}

async fn record(shared: Arc<Shared>, watched: Watched, mut version: String) {
    loop {
        if let Err(error) = record_from(&shared, &watched, &mut version).await {
            // Picked up again at the version reached, so nothing is lost; unless that
            // version is gone, which the next round says.
            if matches!(&error, kube::Error::Api(status) if status.code == 410) {
                *shared.gap.lock().expect("the gap") = Some(error.to_string());
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn record_from(shared: &Shared, watched: &Watched, version: &mut String) -> kube::Result<()> {
    let events = watched.api.watch(&WatchParams::default(), version).await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.try_next().await? {
        let (change, object) = match event {
            WatchEvent::Added(object) => (Change::Added, object),
            WatchEvent::Modified(object) => (Change::Modified, object),
            WatchEvent::Deleted(object) => (Change::Deleted, object),
            WatchEvent::Bookmark(bookmark) => {
                version.clone_from(&bookmark.metadata.resource_version);
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        *version = object.resource_version().unwrap_or_default();
        shared.push(&watched.kind, change, &object);
    }
    Ok(())
}

impl Shared {
    fn push(&self, kind: &str, change: Change, object: &DynamicObject) {
        let (namespace, name) = key(object);
        let entry = Entry {
            version: parse(&object.resource_version().unwrap_or_default()),
            seen: Instant::now(),
            change,
            kind: kind.to_owned(),
            namespace,
            name,
            object: to_json(object),
        };
        self.entries.lock().expect("the entries").push(entry);
        self.count.send_modify(|count| *count += 1);
    }
}

/// Why the log does not yet have all that the list has.
fn behind(log: &[Entry], kind: &str, listed: &BTreeMap<(String, String), u64>, at: u64) -> Option<String> {
    let mut last = BTreeMap::new();
    for entry in log.iter().filter(|entry| entry.kind == kind) {
        last.insert((entry.namespace.clone(), entry.name.clone()), entry);
    }
    for (key, version) in listed {
        match last.get(key) {
            Some(entry) if entry.version >= *version => (),
            _ => return Some(format!("{key:?} is not yet at {version}")),
        }
    }
    last.into_iter()
        .find(|(key, entry)| entry.change != Change::Deleted && entry.version <= at && !listed.contains_key(key))
        .map(|(key, _)| format!("the removal of {key:?} is missing"))
}

fn key(object: &DynamicObject) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn parse(version: &str) -> u64 {
    version.parse().unwrap_or_else(|_| panic!("{version:?} is no number: this API server cannot be used"))
}
