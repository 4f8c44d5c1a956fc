//! Server-side apply: who owns which fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::sim::json;

type Path = Vec<String>;

/// The fields each manager has applied.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(BTreeMap<&'static str, BTreeSet<Path>>);

impl Managers {
    pub(super) fn record(&mut self, manager: &'static str, applied: &Map<String, Value>) {
        self.0.insert(manager, fields(applied));
    }

    fn others_own(&self, manager: &str, path: &Path) -> bool {
        self.0.iter().any(|(other, fields)| *other != manager && fields.contains(path))
    }
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
    let before = managers.0.get(manager).cloned().unwrap_or_default();
    for gone in before.difference(&now).filter(|path| !managers.others_own(manager, path)) {
        json::remove(object, gone);
    }
    overlay(object, applied, &mut Vec::new());
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
