//! In what a Package in a file differs from the one in the cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Fields of a Package's spec that others than its author write: the engine is
/// set, and the source of `path` charts stated, where a Package is compiled.
const WRITTEN_BY_OTHERS: [&str; 2] = ["engine", "source"];

/// One changed field.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Path of the field, such as `chart.version`.
    pub path: String,
    /// What is in the cluster; `None`: nothing.
    pub from: Option<Value>,
    /// What is in the file; `None`: nothing.
    pub to: Option<Value>,
}

/// What differs between the spec in the cluster and the one in a file;
/// components are compared by name.
pub fn changes(live: &Map<String, Value>, wanted: &Map<String, Value>) -> Vec<Change> {
    let mut found = Vec::new();
    let without = |spec: &Map<String, Value>| {
        let mut spec = spec.clone();
        let components = spec.remove("components").and_then(|list| list.as_array().cloned()).unwrap_or_default();
        (spec, by_name(components))
    };
    let ((live, live_components), (wanted, wanted_components)) = (without(live), without(wanted));
    compare("", Some(&live.into()), Some(&wanted.into()), &mut found);
    let names: Vec<&String> = live_components.keys().chain(wanted_components.keys()).collect();
    let mut seen = std::collections::BTreeSet::new();
    for name in names.into_iter().filter(|name| seen.insert((*name).clone())) {
        let path = format!("components.{name}");
        match (live_components.get(name), wanted_components.get(name)) {
            (Some(live), Some(wanted)) => compare(&path, Some(live), Some(wanted), &mut found),
            (live, wanted) => found.push(Change { path, from: live.cloned(), to: wanted.cloned() }),
        }
    }
    found
}

fn by_name(components: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |component: &Value| component.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    components.into_iter().map(|component| (name(&component), component)).collect()
}

fn compare(path: &str, live: Option<&Value>, wanted: Option<&Value>, found: &mut Vec<Change>) {
    match (live, wanted) {
        (Some(Value::Object(live)), Some(Value::Object(wanted))) => {
            let mut keys: Vec<&String> = wanted.keys().collect();
            keys.extend(live.keys().filter(|key| !wanted.contains_key(*key)));
            for key in keys {
                let missing = !wanted.contains_key(key);
                if missing && WRITTEN_BY_OTHERS.contains(&key.as_str()) {
                    continue;
                }
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&below, live.get(key), wanted.get(key), found);
            }
        }
        (live, wanted) if live == wanted => {}
        (live, wanted) => {
            found.push(Change { path: path.to_owned(), from: live.cloned(), to: wanted.cloned() });
        }
    }
}

/// The differences of one Package; empty text if there are none. `live` is
/// absent for a Package that is not in the cluster.
pub fn write(name: &str, live: Option<&Map<String, Value>>, wanted: &Map<String, Value>) -> String {
    let Some(live) = live else {
        return format!("{name}: not in the cluster\n");
    };
    let changes = changes(live, wanted);
    if changes.is_empty() {
        return String::new();
    }
    let mut text = format!("{name}:\n");
    for change in changes {
        let _ = match (&change.from, &change.to) {
            (None, Some(to)) => writeln!(text, "  + {}: {}", change.path, short(to)),
            (Some(from), None) => writeln!(text, "  - {}: {}", change.path, short(from)),
            (Some(from), Some(to)) => writeln!(text, "  ~ {}: {} -> {}", change.path, short(from), short(to)),
            (None, None) => Ok(()),
        };
    }
    text
}

/// A value on one line of bounded length.
fn short(value: &Value) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
