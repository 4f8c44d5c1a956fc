//! Values as files and texts hold them.

use serde_json::{Map, Value};

use crate::package::source::Source;
use crate::package::yaml::{self, Node};

/// The values that a YAML text holds.
///
/// # Errors
/// Why it holds none, with the line.
pub(super) fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let parsed = yaml::parse(text);
    if let Some(problem) = parsed.problems.first() {
        let line = Source::new("", text).position(problem.span.start).line;
        return Err(format!("line {line}: {}", problem.message));
    }
    let mut documents = parsed.documents.iter();
    match (documents.next().map(Node::to_value), documents.next()) {
        (None | Some(Value::Null), None) => Ok(Map::new()),
        (Some(Value::Object(values)), None) => Ok(values),
        (Some(_), None) => Err("it is no map".to_owned()),
        (_, Some(_)) => Err("it has several documents, of which Helm reads one".to_owned()),
    }
}

/// Puts values over others as Helm does with one values file after another: maps
/// key by key, all else as a whole.
pub(super) fn merge(values: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, new) in over {
        match (values.get_mut(&key), new) {
            (Some(Value::Object(known)), Value::Object(new)) => merge(known, new),
            (Some(known), new) => *known = new,
            (None, new) => drop(values.insert(key, new)),
        }
    }
}

/// Whether a text within the values, at any depth, is one that `told` tells.
pub(super) fn any_text(value: &Value, told: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => told(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, told)),
        Value::Object(fields) => fields.values().any(|field| any_text(field, told)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::empty("", Ok(json!({})))]
    #[case::comment("# nothing yet\n", Ok(json!({})))]
    #[case::map("a: {b: on}\n", Ok(json!({"a": {"b": true}})))]
    #[case::list("- a\n", Err("it is no map"))]
    #[case::broken("a: 1\nb: [\n", Err("line "))]
    #[case::several("a: 1\n---\nb: 1\n", Err("it has several documents, of which Helm reads one"))]
    fn a_text_holds_values(#[case] text: &str, #[case] wanted: Result<Value, &str>) {
        match (parse(text), wanted) {
            (Ok(values), Ok(wanted)) => assert_eq!(Value::Object(values), wanted),
            (Err(error), Err(wanted)) => assert!(error.starts_with(wanted), "{error}"),
            (found, wanted) => panic!("{found:?} instead of {wanted:?}"),
        }
    }

    #[test]
    fn maps_are_merged_and_all_else_is_replaced() {
        let mut values = json!({"a": {"b": 1, "c": [1, 2]}, "d": {"e": 1}, "f": 1}).as_object().unwrap().clone();
        merge(&mut values, json!({"a": {"c": [3], "g": null}, "d": 7, "f": {"h": 1}}).as_object().unwrap().clone());
        assert_eq!(Value::Object(values), json!({"a": {"b": 1, "c": [3], "g": null}, "d": 7, "f": {"h": 1}}));
    }

    #[test]
    fn texts_are_found_at_any_depth() {
        let values = json!({"a": [{"b": "x"}], "c": 1});
        assert!(any_text(&values, &|text| text == "x"));
        assert!(!any_text(&values, &|text| text == "a"));
    }
}
