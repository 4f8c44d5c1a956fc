//! Telling two worlds from each other, whatever the time and the order of what
//! led to them.

use std::hash::{DefaultHasher, Hash as _, Hasher};

use serde_json::{Map, Value};

use super::store::Key;
use super::world::{Task, World};

/// Fields that differ between worlds that are the same.
const PASSING: [&str; 8] = [
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "until",
    "activeSeconds",
    "lastTransitionTime",
    "tokenUid",
    "countedAt",
];

/// What tells one world from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The objects, and what the parts of the cluster have in mind.
    pub substance: u64,
    /// Tasks that are due soon, sorted.
    pub soon: Vec<u64>,
    /// Those that are scheduled for later.
    pub late: u64,
}

impl World {
    /// Equal for worlds that differ only in time, and in what time and order
    /// leave behind. Tasks that are due within `soon` milliseconds are told from
    /// those that are not.
    pub fn fingerprint(&self, soon: u64) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        self.store.prints().for_each(|print| hasher.write_u64(print));
        self.flux.queue.hash(&mut hasher);
        self.flux.dirty.hash(&mut hasher);
        for (key, run) in &self.flux.runs {
            (key, run.stage, run.action, super::store::generation(&run.object)).hash(&mut hasher);
        }
        self.argo_hash_into(&mut hasher);
        self.helm.hash_into(&mut hasher);
        self.stopped.hash(&mut hasher);
        let (soon, late) = self.soon_and_late(soon);
        let late = sorted(late).into_iter().fold(DefaultHasher::new(), |mut hasher, print| {
            hasher.write_u64(print);
            hasher
        });
        Fingerprint { substance: hasher.finish(), soon: sorted(soon), late: late.finish() }
    }
}

fn sorted(tasks: Vec<&Task>) -> Vec<u64> {
    let print = |task: &Task| {
        let mut hasher = DefaultHasher::new();
        task.hash(&mut hasher);
        hasher.finish()
    };
    let mut prints: Vec<u64> = tasks.into_iter().map(print).collect();
    prints.sort_unstable();
    prints
}

/// Equal for objects that differ only in what passes.
pub fn of_object(key: &Key, object: &Map<String, Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    for (field, value) in object {
        field.hash(&mut hasher);
        feed(value, &mut hasher);
    }
    hasher.finish()
}

/// The same of any value.
pub fn of_value(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    feed(value, &mut hasher);
    hasher.finish()
}

/// Hashes a value without what passes: times, and tokens that hold one.
fn feed(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| !PASSING.contains(&key.as_str())) {
                key.hash(hasher);
                feed(value, hasher);
            }
            '}'.hash(hasher);
        }
        Value::Array(items) => {
            items.iter().for_each(|item| feed(item, hasher));
            ']'.hash(hasher);
        }
        Value::String(text) if is_time(text) => 't'.hash(hasher),
        Value::String(text) => text.split_once('@').map_or(text.as_str(), |(before, _)| before).hash(hasher),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().hash(hasher),
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T')
}
