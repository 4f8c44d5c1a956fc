//! What changes in a spec, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

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
