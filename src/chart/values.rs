//! The values that templates see.

use serde_json::{Map, Value};

use super::files::Files;
use super::{Release, files, map};
use crate::package::tree::Tree;

/// A file of values; empty where there is none, `None` where it cannot be read.
pub fn read(tree: &dyn Tree, path: &str) -> Option<Map<String, Value>> {
    match tree.kind(path) {
        Ok(None) => Some(Map::new()),
        Ok(Some(_)) => map(&files::text(tree, path)?),
        Err(_) => None,
    }
}

/// What a release sets on top of its chart's own values, if all of it is known.
pub fn of_release(tree: &dyn Tree, files: &Files, release: &Release<'_>) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for file in release.values_files {
        values = coalesce(&read(tree, &files.path(file.as_str()))?, values);
    }
    Some(coalesce(release.values?, values))
}

/// What a subchart sees: what its parent sets for it, and what is global.
pub fn of_subchart(parent: &Map<String, Value>, name: &str, defaults: Map<String, Value>) -> Map<String, Value> {
    let section = |key: &str| parent.get(key).and_then(Value::as_object);
    let mut values = section(name).map_or_else(|| defaults.clone(), |own| coalesce(own, defaults.clone()));
    if let Some(global) = section("global") {
        let own = values.get("global").and_then(Value::as_object).cloned().unwrap_or_default();
        values.insert("global".to_owned(), coalesce(global, own).into());
    }
    values
}

/// Values over others, as Helm lays them: maps are merged, null removes.
pub fn coalesce(over: &Map<String, Value>, mut base: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in over {
        match (value, base.get_mut(key)) {
            (Value::Null, Some(_)) => {
                base.shift_remove(key);
            }
            (Value::Object(over), Some(Value::Object(under))) => {
                *under = coalesce(over, std::mem::take(under));
            }
            (value, _) => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
    base
}
