//! What changes in a spec, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::FieldChange;
use crate::report::diff;

/// Written where a Package is compiled, and no news to its author.
const SOURCE: &str = "source";

/// What changes beside the components, and of each component that stays by its
/// name.
pub fn between(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
) -> (Vec<FieldChange>, BTreeMap<String, Vec<FieldChange>>) {
    let (mut rest, mut of_components) = (Vec::new(), BTreeMap::<String, Vec<FieldChange>>::new());
    for change in diff::changes(from, to) {
        let Some(path) = change.path.strip_prefix("components.") else {
            rest.push(change);
            continue;
        };
        // A component that is new or goes is a step, and no change of a field.
        let Some((name, field)) = path.split_once('.') else { continue };
        if field.split('.').next() == Some(SOURCE) {
            continue;
        }
        let (name, path) = (name.to_owned(), field.to_owned());
        of_components.entry(name).or_default().push(FieldChange { path, ..change });
    }
    (rest, of_components)
}

/// Labels and annotations that change: some of them ask Windlass for something.
pub fn of_metadata(from: &Map<String, Value>, to: &Map<String, Value>) -> Vec<FieldChange> {
    let told = |object: &Map<String, Value>| {
        let metadata = object.get("metadata");
        let part = |name: &str| metadata.and_then(|metadata| metadata.get(name)).cloned().unwrap_or_else(|| json!({}));
        Map::from_iter(["annotations", "labels"].map(|name| (name.to_owned(), part(name))))
    };
    let changes = diff::changes(&told(from), &told(to)).into_iter();
    changes.map(|change| FieldChange { path: format!("metadata.{}", change.path), ..change }).collect()
}

/// Requirements that are not there any more; those that are there are told with
/// how they stand.
pub fn requirements_that_go(from: &Map<String, Value>, to: &Map<String, Value>) -> Vec<FieldChange> {
    let of = |object: &Map<String, Value>| -> Vec<(String, Value)> {
        let requires = object.get("spec").and_then(|spec| spec.get("requires")).and_then(Value::as_array);
        let named = requires.into_iter().flatten().map(|one| {
            let package = one.get("package").and_then(Value::as_str);
            (package.unwrap_or("kubernetes").to_owned(), one.clone())
        });
        named.collect()
    };
    let after = of(to);
    let gone = of(from).into_iter().filter(|(name, _)| !after.iter().any(|(kept, _)| kept == name));
    gone.map(|(name, one)| FieldChange { path: format!("requires.{name}"), from: Some(one), to: None }).collect()
}
