//! In what a Package in a file differs from the one in the cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Field of a Package's spec that is set where a Package is compiled.
const ENGINE: &str = "engine";
/// The same for a component: where the chart at a `path` comes from.
const SOURCE: &str = "source";

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
    let (live, wanted) = (Value::from(live), Value::from(wanted));
    compare("", Some(&as_written(&live, &wanted, ENGINE)), Some(&wanted), &mut found);
    let names: Vec<&String> = live_components.keys().chain(wanted_components.keys()).collect();
    let mut seen = std::collections::BTreeSet::new();
    for name in names.into_iter().filter(|name| seen.insert((*name).clone())) {
        let path = format!("components.{name}");
        match (live_components.get(name), wanted_components.get(name)) {
            (Some(live), Some(wanted)) => {
                compare(&path, Some(&as_written(live, wanted, SOURCE)), Some(wanted), &mut found);
            }
            (live, wanted) => found.push(Change { path, from: live.cloned(), to: wanted.cloned() }),
        }
    }
    found
}

fn by_name(components: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |component: &Value| component.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    components.into_iter().map(|component| (name(&component), component)).collect()
}

/// What is live, but for a field that its author leaves to others.
fn as_written(live: &Value, wanted: &Value, field: &str) -> Value {
    let mut live = live.clone();
    if let Some(map) = live.as_object_mut().filter(|_| wanted.get(field).is_none()) {
        map.shift_remove(field);
    }
    live
}

fn compare(path: &str, live: Option<&Value>, wanted: Option<&Value>, found: &mut Vec<Change>) {
    match (live, wanted) {
        (Some(Value::Object(live)), Some(Value::Object(wanted))) => {
            let mut keys: Vec<&String> = wanted.keys().collect();
            keys.extend(live.keys().filter(|key| !wanted.contains_key(*key)));
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&below, live.get(key), wanted.get(key), found);
            }
        }
        (live, wanted) if live == wanted => {}
        (Some(Value::Array(live)), Some(Value::Array(wanted))) if has_items(path) && pairs(live, wanted).is_some() => {
            let before = found.len();
            for (index, live, wanted) in pairs(live, wanted).unwrap_or_default() {
                compare(&format!("{path}[{index}]"), live, wanted, found);
            }
            // Nothing but their order.
            if found.len() == before {
                found.push(Change {
                    path: path.to_owned(),
                    from: Some(live.clone().into()),
                    to: Some(wanted.clone().into()),
                });
            }
        }
        (live, wanted) => {
            found.push(Change { path: path.to_owned(), from: live.cloned(), to: wanted.cloned() });
        }
    }
}

/// Lists of a component whose items are compared one by one.
const LISTS: [&str; 3] = ["readyWhen", "healthCheckExprs", "valuesFrom"];

fn has_items(path: &str) -> bool {
    let mut names = path.split('.').rev();
    names.next().is_some_and(|name| LISTS.contains(&name)) && names.all(|name| name != "values")
}

/// An item at its place, before and after.
type Pair<'v> = (usize, Option<&'v Value>, Option<&'v Value>);

/// The items of two lists that are the same thing: by what they are about, else by their
/// places where there are as many. `None`: nobody can tell.
fn pairs<'v>(live: &'v [Value], wanted: &'v [Value]) -> Option<Vec<Pair<'v>>> {
    let (Some(ours), Some(theirs)) = (by_subject(live), by_subject(wanted)) else {
        let in_place = || (0..).zip(live.iter().zip(wanted)).map(|(at, (live, wanted))| (at, Some(live), Some(wanted)));
        return (live.len() == wanted.len()).then(|| in_place().collect());
    };
    let kept = (0..).zip(wanted).map(|(at, item)| (at, ours.get(&subject(item)).copied(), Some(item)));
    let gone = (0..).zip(live).filter(|(_, item)| !theirs.contains_key(&subject(item)));
    Some(kept.chain(gone.map(|(at, item)| (at, Some(item), None))).collect())
}

/// What an item is about.
fn subject(item: &Value) -> [Option<&str>; 4] {
    ["apiVersion", "kind", "namespace", "name"].map(|field| item.get(field).and_then(Value::as_str))
}

/// The items by what they are about; `None` where two are about one thing.
fn by_subject(items: &[Value]) -> Option<BTreeMap<[Option<&str>; 4], &Value>> {
    let map: BTreeMap<_, _> = items.iter().map(|item| (subject(item), item)).collect();
    (map.len() == items.len()).then_some(map)
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
    let shown = |value: &Value| short(value, LONGEST);
    let mut text = format!("{name}:\n");
    for change in changes {
        let _ = match (&change.from, &change.to) {
            (None, Some(to)) => writeln!(text, "  + {}: {}", change.path, shown(to)),
            (Some(from), None) => writeln!(text, "  - {}: {}", change.path, shown(from)),
            (Some(from), Some(to)) => writeln!(text, "  ~ {}: {} -> {}", change.path, shown(from), shown(to)),
            (None, None) => Ok(()),
        };
    }
    text
}

/// So many characters of a value are shown.
const LONGEST: usize = 80;

/// A value on one line, cut after so many characters.
pub fn short(value: &Value, longest: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Two values on a line each, cut so that where they begin to differ is seen.
pub fn from_difference(from: &Value, to: &Value, longest: usize) -> (String, String) {
    /// So many characters before the difference are shown.
    const BEFORE: usize = 12;
    let (one, other) = (from.to_string(), to.to_string());
    let same = one.chars().zip(other.chars()).take_while(|(left, right)| left == right).count();
    if same < longest.saturating_sub(BEFORE) {
        return (short(from, longest), short(to, longest));
    }
    let cut = |text: &str| {
        let rest: String = text.chars().skip(same - BEFORE).collect();
        let end = rest.char_indices().nth(longest).map(|(end, _)| end);
        let shown = end.and_then(|end| rest.get(..end)).unwrap_or(&rest);
        format!("…{shown}{}", if end.is_some() { "…" } else { "" })
    };
    (cut(&one), cut(&other))
}
