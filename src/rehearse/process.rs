//! What one controller process remembers: nothing that a restart may not lose.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::cache::Cache;
use crate::api::PackageStatus;
use crate::engine::ObjectKey;
use crate::rollout::{Action, Peer, Record};
use crate::sim::{Key, Object, Shared};

/// Names a Package.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackageId {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl PackageId {
    /// An id of its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub(super) fn key(&self) -> Key {
        Key::new("windlass.dev/v1alpha1", "Package", &self.namespace, &self.name)
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// One write of a decision.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Record(Record),
    Action(Action),
    Status(Box<PackageStatus>),
}

/// A write, and what tells it from others, once somebody has asked for it.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub write: Write,
    pub print: OnceLock<u64>,
}

impl Planned {
    pub fn new(write: Write) -> Arc<Self> {
        Arc::new(Self { write, print: OnceLock::new() })
    }

    /// Whether it is about what nobody but the controller writes or reads.
    pub fn is_own_affair(&self) -> bool {
        matches!(self.write, Write::Record(_) | Write::Status(_))
    }
}

/// A decision that is being carried out, one write after the other.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub package: PackageId,
    pub writes: VecDeque<Arc<Planned>>,
    pub look_again: Option<u64>,
}

/// A Package, and since when this process has seen no other spec of it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub package: Object,
    pub since: u64,
}

/// A controller process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub started: u64,
    /// Milliseconds by which its clock is ahead.
    pub skew: i64,
    pub cache: Cache,
    /// When each Package is to be looked at.
    pub queue: BTreeMap<PackageId, u64>,
    pub execution: Option<Execution>,
    /// What was last written for each Package, and at which resource version:
    /// nothing is decided upon anything older.
    pub expected: BTreeMap<PackageId, BTreeMap<Key, u64>>,
    pub seen: BTreeMap<PackageId, Seen>,
    pub peers: Shared<BTreeMap<PackageId, Arc<Peer>>>,
    /// Packages of which the others may know something else by now.
    pub stale: BTreeSet<PackageId>,
    /// Objects that a Package's last decision was made from.
    pub interest: Shared<BTreeMap<PackageId, BTreeSet<Key>>>,
    /// Objects that are watched for a Package by name.
    pub watched: Shared<BTreeMap<PackageId, BTreeSet<ObjectKey>>>,
    /// Packages with a DaemonSet in the middle of a rollout.
    pub rollouts: BTreeSet<PackageId>,
    /// Refused writes in a row, for the pause before the next attempt.
    pub refusals: BTreeMap<PackageId, u32>,
    /// DaemonSets to which the last write was refused, and why.
    pub refused: BTreeMap<PackageId, BTreeMap<String, String>>,
    pub parsed: Shared<super::packages::Parsed>,
}

impl Process {
    pub fn started(at: u64, skew: i64) -> Self {
        Self { started: at, skew, ..Self::default() }
    }

    /// Watches these objects for a Package from now on; those whose watch has only
    /// begun, so that nothing is known of them yet.
    pub fn watch(&mut self, id: &PackageId, keys: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        let before = self.watched.get(id);
        let begun = keys.iter().filter(|key| before.is_none_or(|before| !before.contains(key))).cloned().collect();
        self.watched.insert(id.clone(), keys);
        begun
    }

    pub fn next_due(&self) -> Option<u64> {
        if self.execution.is_some() {
            return Some(0);
        }
        self.queue.values().min().copied()
    }

    /// The package whose turn it is.
    pub fn take_due(&mut self, now: u64) -> Option<PackageId> {
        let due = self.queue.iter().filter(|(_, due)| **due <= now).min_by_key(|(_, due)| **due);
        let id = due.map(|(id, _)| id.clone())?;
        self.queue.remove(&id);
        Some(id)
    }

    /// Looks at a Package at a time, or earlier.
    pub fn wake(&mut self, id: PackageId, at: u64) {
        self.queue.entry(id).and_modify(|due| *due = (*due).min(at)).or_insert(at);
    }
}
