//! Reading documents of foreign formats without losing sight of what is not read.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field that a type did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ignored {
    /// Path with `[]` for list items, such as `components[].libraries`.
    pub path: String,
    /// Name of the field.
    pub field: String,
    /// `name` of the outermost list item on the way that has one.
    pub item: Option<String>,
}

/// The field that has another type than its reader wants, and why.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub path: serde_path_to_error::Path,
    message: String,
}

impl From<serde_path_to_error::Error<serde_json::Error>> for Unreadable {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        let message = error.to_string();
        // What is read into a struct of ours is a map to everybody else.
        let message = match message.split_once("expected struct ") {
            Some((before, _)) => format!("{before}expected a map"),
            None => message,
        };
        Self { path: error.path().clone(), message }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// Reads a value and names every field that is set but was not read.
///
/// # Errors
/// The field that has another type, with its path.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<(T, Vec<Ignored>), Unreadable> {
    let mut ignored = Vec::new();
    let mut note = |path: serde_ignored::Path<'_>| ignored.push(path.to_string());
    let read = serde_path_to_error::deserialize(serde_ignored::Deserializer::new(value, &mut note))?;
    let fields = ignored.iter().filter_map(|path| describe(value, path)).collect();
    Ok((read, fields))
}

/// What an API server adds to an object; nobody wrote it.
const ADDED_BY_SERVER: [&str; 8] = [
    "metadata.creationTimestamp",
    "metadata.finalizers",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.ownerReferences",
    "metadata.resourceVersion",
    "metadata.uid",
    "status",
];

/// `None` for a field that is null, empty or added by the API server: there is
/// nothing to carry over.
fn describe(root: &Value, path: &str) -> Option<Ignored> {
    let (mut place, mut item) = (root, None);
    let (mut written, mut field) = (String::new(), "");
    for part in path.split('.').filter(|part| *part != "?") {
        let (inner, key) = match place {
            Value::Array(items) => (part.parse().ok().and_then(|index: usize| items.get(index)), "[]"),
            Value::Object(fields) => (fields.get(part), part),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (None, part),
        };
        if key == "[]" {
            let name = || inner.and_then(|inner| inner.get("name")).and_then(Value::as_str).map(str::to_owned);
            item = item.or_else(name);
        } else {
            field = part;
            if !written.is_empty() {
                written.push('.');
            }
        }
        written.push_str(key);
        place = inner.unwrap_or(&Value::Null);
    }
    let empty = match place {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    (!empty && !ADDED_BY_SERVER.contains(&path)).then(|| Ignored { path: written, field: field.to_owned(), item })
}

/// Reads null as the default, as Go does.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Item {
        #[serde(default, deserialize_with = "nullable")]
        known: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Root {
        items: Vec<Item>,
        inner: Option<Item>,
    }

    #[test]
    fn fields_that_are_not_read_are_named_with_their_item() {
        let value =
            json!({"items": [{"name": "a", "known": null, "libraries": [{"name": "x"}]}], "inner": {"other": 1}});
        let (root, ignored) = read::<Root>(&value).unwrap();
        assert!(root.items[0].known.is_empty() && root.inner.is_some());
        let told: Vec<_> = ignored.iter().map(|field| (field.path.as_str(), field.item.as_deref())).collect();
        assert_eq!(told, [("items[].name", Some("a")), ("items[].libraries", Some("a")), ("inner.other", None)]);
    }

    #[test]
    fn what_is_inside_of_an_item_is_told_of_the_item() {
        let value = json!({"items": [{"known": [], "readyWhen": [{"name": "x", "extra": 1}]}], "inner": {}});
        let named = json!({"items": [{"known": [], "name": "a", "readyWhen": [{"name": "x", "extra": 1}]}]});
        for (value, item) in [(value, "x"), (named, "a")] {
            let ignored = describe(&value, "items.0.readyWhen.0.extra").unwrap();
            assert_eq!((ignored.path.as_str(), ignored.item.as_deref()), ("items[].readyWhen[].extra", Some(item)));
        }
    }

    #[test]
    fn what_a_server_added_is_not_worth_a_word() {
        let value = json!({"items": [], "metadata": {"uid": "u", "labels": {"a": "b"}}, "status": {"x": 1}});
        let (_, ignored) = read::<WithMetadata>(&value).unwrap();
        assert_eq!(ignored.iter().map(|field| field.path.as_str()).collect::<Vec<_>>(), ["metadata.labels"]);
    }

    #[derive(Debug, Deserialize)]
    struct WithMetadata {
        #[serde(rename = "metadata")]
        _metadata: Empty,
        #[serde(rename = "items")]
        _items: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Empty {}

    #[test]
    fn empty_fields_are_not_worth_a_word() {
        let value = json!({"items": [{"libraries": [], "rules": {}, "x": null}]});
        assert_eq!(read::<Root>(&value).unwrap().1, []);
    }
}
