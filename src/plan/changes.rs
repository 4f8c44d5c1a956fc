//! What changes in a spec, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::FieldChange;

/// Written where a Package is compiled, and no news to its author.
const SOURCE: &str = "source";

/// What changes beside the components, and of each component by its name.
pub fn between(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
) -> (Vec<FieldChange>, BTreeMap<String, Vec<FieldChange>>) {
    let (from_rest, from_components) = apart(from);
    let (to_rest, to_components) = apart(to);
    let mut rest = Vec::new();
    compare("", Some(&from_rest), Some(&to_rest), &mut rest);
    let mut of_components = BTreeMap::new();
    for (name, to) in &to_components {
        let Some(from) = from_components.get(name) else { continue };
        let mut found = Vec::new();
        compare("", Some(from), Some(to), &mut found);
        of_components.insert(name.clone(), found);
    }
    (rest, of_components)
}

/// The spec without its components, and these by name.
fn apart(spec: &Map<String, Value>) -> (Value, BTreeMap<String, Value>) {
    let mut rest = spec.clone();
    let components = rest.shift_remove("components");
    let components = components.as_ref().and_then(Value::as_array).into_iter().flatten().filter_map(|component| {
        let mut component = component.clone();
        component.as_object_mut()?.shift_remove(SOURCE);
        Some((component.get("name")?.as_str()?.to_owned(), component))
    });
    let components = components.collect();
    (rest.into(), components)
}

/// Adds what differs; maps are compared key by key, everything else as a whole.
pub fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<FieldChange>) {
    let (from_map, to_map) = (from.and_then(Value::as_object), to.and_then(Value::as_object));
    if from == to {
        return;
    }
    let deeper = match (from, to) {
        (Some(_), Some(_)) => from_map.zip(to_map),
        (Some(_) | None, None) | (None, Some(_)) => None,
    };
    let Some((from_map, to_map)) = deeper else {
        found.push(FieldChange { path: path.to_owned(), from: from.cloned(), to: to.cloned() });
        return;
    };
    let new = to_map.keys().filter(|key| !from_map.contains_key(*key));
    for key in from_map.keys().chain(new) {
        let inner = if path.is_empty() { field(key) } else { format!("{path}.{}", field(key)) };
        compare(&inner, from_map.get(key), to_map.get(key), found);
    }
}

/// A key as it stands in a path.
fn field(key: &str) -> String {
    if key.is_empty() || key.contains(['.', ' ', '"']) { format!("{key:?}") } else { key.to_owned() }
}
