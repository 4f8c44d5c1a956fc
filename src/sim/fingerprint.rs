//! Telling two worlds from each other, whatever the time and the order of what
//! led to them.

use std::hash::{DefaultHasher, Hash as _, Hasher};

use serde_json::Value;

use super::world::World;

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

impl World {
    /// Equal for worlds that differ only in time, and in what time and order
    /// leave behind. Tasks that are due within `soon` milliseconds are told from
    /// those that are not.
    pub fn fingerprint(&self, soon: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (key, object) in self.store.all() {
            key.hash(&mut hasher);
            for (field, value) in object.iter() {
                field.hash(&mut hasher);
                feed(value, &mut hasher);
            }
        }
        let mut tasks: Vec<_> = self.pending().into_iter().map(|(after, task)| (after <= soon, task)).collect();
        tasks.sort();
        tasks.hash(&mut hasher);
        self.flux.queue.hash(&mut hasher);
        self.flux.dirty.hash(&mut hasher);
        for (key, run) in &self.flux.runs {
            (key, run.stage, run.action, super::store::generation(&run.object)).hash(&mut hasher);
        }
        self.helm.hash_into(&mut hasher);
        self.stopped.hash(&mut hasher);
        hasher.finish()
    }
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
