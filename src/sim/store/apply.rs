//! Server-side apply: who owns which fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::sim::json;

type Path = Vec<String>;

/// How a manager came to own a field. What one has applied and what it has
/// written otherwise are told apart: an apply takes nothing away that the same
/// manager has patched in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Apply,
    Update,
}

type Manager = (&'static str, Way);

/// The fields each manager owns.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(BTreeMap<Manager, BTreeSet<Path>>);

impl Managers {
    pub(super) fn record(&mut self, manager: &'static str, applied: &Map<String, Value>) {
        self.0.insert((manager, Way::Apply), fields(applied));
    }

    /// A change that was no apply: who made it owns what it has changed.
    pub(super) fn update(&mut self, manager: &'static str, before: &Map<String, Value>, after: &Map<String, Value>) {
        let parts = [&["spec"] as &[&str], &["metadata", "labels"], &["metadata", "annotations"]];
        for path in parts.into_iter().filter(|path| json::at(before, path) != json::at(after, path)) {
            let leaves = |object: &Map<String, Value>| {
                let mut found = BTreeSet::new();
                let mut start: Path = path.iter().map(|key| (*key).to_owned()).collect();
                if let Some(Value::Object(part)) = json::at(object, path) {
                    collect(part, &mut start, &mut found);
                }
                found
            };
            let (old, new) = (leaves(before), leaves(after));
            let touched = old.union(&new).filter(|leaf| value(before, leaf) != value(after, leaf));
            let touched: BTreeSet<Path> = touched.cloned().collect();
            self.lose((manager, Way::Update), &touched);
            let owned = self.0.entry((manager, Way::Update)).or_default();
            owned.retain(|leaf| !touched.contains(leaf));
            owned.extend(touched.intersection(&new).cloned());
        }
    }

    /// Others lose what a manager has given another value.
    fn lose(&mut self, manager: Manager, changed: &BTreeSet<Path>) {
        for (_, fields) in self.0.iter_mut().filter(|(other, _)| **other != manager) {
            fields.retain(|leaf| !changed.contains(leaf));
        }
    }

    fn others_own(&self, manager: Manager, path: &Path) -> bool {
        self.0.iter().any(|(other, fields)| *other != manager && fields.contains(path))
    }
}

fn value<'a>(object: &'a Map<String, Value>, path: &Path) -> Option<&'a Value> {
    let keys: Vec<&str> = path.iter().map(String::as_str).collect();
    json::at(object, &keys)
}

/// The object without what an apply cannot set.
pub(super) fn without_status(object: &Map<String, Value>, status_is_part_of_it: bool) -> Map<String, Value> {
    let mut object = object.clone();
    if !status_is_part_of_it {
        object.shift_remove("status");
    }
    object
}

pub(super) fn apply(
    object: &mut Map<String, Value>,
    managers: &mut Managers,
    manager: &'static str,
    applied: &Map<String, Value>,
) {
    let now = fields(applied);
    let owner = (manager, Way::Apply);
    let before = managers.0.get(&owner).cloned().unwrap_or_default();
    for gone in before.difference(&now).filter(|path| !managers.others_own(owner, path)) {
        json::remove(object, gone);
    }
    let was = object.clone();
    overlay(object, applied, &mut Vec::new());
    let changed = now.iter().filter(|path| value(&was, path) != value(object, path)).cloned().collect();
    managers.lose(owner, &changed);
    managers.record(manager, applied);
}

fn overlay(object: &mut Map<String, Value>, applied: &Map<String, Value>, path: &mut Path) {
    for (key, value) in applied {
        path.push(key.clone());
        match value {
            Value::Object(inner) if !inner.is_empty() => overlay(json::section(object, key), inner, path),
            Value::Array(wanted) if is_set(path) => {
                let list = object.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(list) = list {
                    let missing: Vec<Value> = wanted.iter().filter(|item| !list.contains(item)).cloned().collect();
                    list.extend(missing);
                }
            }
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                object.insert(key.clone(), value.clone());
            }
        }
        path.pop();
    }
}

/// Finalizers are a set: every manager owns its own entries.
fn is_set(path: &[String]) -> bool {
    matches!(path, [metadata, finalizers] if metadata == "metadata" && finalizers == "finalizers")
}

/// Paths of the leaves of an applied object; those that identify it left out.
fn fields(applied: &Map<String, Value>) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    collect(applied, &mut Vec::new(), &mut found);
    found
}

fn collect(object: &Map<String, Value>, path: &mut Path, found: &mut BTreeSet<Path>) {
    for (key, value) in object {
        path.push(key.clone());
        match value {
            Value::Object(inner) if !inner.is_empty() => collect(inner, path, found),
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                if !is_identity(path) && !is_set(path) {
                    found.insert(path.clone());
                }
            }
        }
        path.pop();
    }
}

fn is_identity(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(path.as_slice(), ["apiVersion" | "kind"] | ["metadata", "name" | "namespace"])
}
