//! Whether an object is still as Windlass wrote it.
//!
//! Server-side apply leaves fields of others in place, so only what was written
//! is compared: every field of the wanted object must be in the live one with
//! the same value. A list is one value to server-side apply where it has no
//! merge keys, so lists must have the same length; inside an item fields that
//! the API server or somebody else added are let pass again.

use std::fmt;

use serde_json::{Map, Value};

use crate::fields::{at, beside, field};

/// The first owned field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Path of the field, such as `spec.values.replicas`.
    pub path: String,
    /// What was written; `null` also for a field that must not be there.
    pub wanted: Value,
    /// What is there; `None` if the field is absent.
    pub found: Option<Value>,
}

impl fmt::Display for Difference {
    /// Names the field and no value: values may be what somebody else put there.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found {
            Some(_) => write!(formatter, "{} is not as it was written", self.path),
            None => write!(formatter, "{} is missing", self.path),
        }
    }
}

/// Compares the parts of an object that say what is wanted: `spec`, labels and
/// annotations. `left_out` are paths from the object's root that do not count.
pub fn difference(wanted: &Map<String, Value>, live: &Map<String, Value>, left_out: &[&[&str]]) -> Option<Difference> {
    const COMPARED: [&[&str]; 3] = [&["metadata", "labels"], &["metadata", "annotations"], &["spec"]];
    COMPARED.into_iter().find_map(|path| {
        let wanted = at(wanted, path)?;
        let mut walk = Walk { path: path.iter().copied().map(Step::Key).collect(), left_out };
        walk.compare(wanted, at(live, path))
    })
}

/// Whether a value is the wanted one, with nothing beside. Nothing, an empty map and
/// an empty list are the same, but a null is one only to a null.
pub fn is_exactly(wanted: Option<&Value>, found: Option<&Value>) -> bool {
    let there = |value: Option<&Value>| value.is_some_and(|value| !is_empty(value));
    match (wanted, found) {
        (Some(Value::Object(wanted)), Some(Value::Object(found))) => {
            beside(wanted, found).all(|(_, wanted, found)| is_exactly(Some(wanted), found))
                && found.iter().all(|(key, found)| field(wanted, key).is_some() || is_exactly(None, Some(found)))
        }
        (Some(Value::Array(wanted)), Some(Value::Array(found))) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(w, f)| is_exactly(Some(w), Some(f)))
        }
        (Some(Value::Number(wanted)), Some(Value::Number(found))) => same_number(wanted, found),
        (wanted, found) if !there(wanted) && !there(found) => true,
        (wanted, found) => wanted == found,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// One step of a path. Nothing is copied on the way: most walks find nothing.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => formatter.write_str(key),
            Self::Item(index) => write!(formatter, "{index}"),
        }
    }
}

struct Walk<'a> {
    path: Vec<Step<'a>>,
    left_out: &'a [&'a [&'a str]],
}

impl<'a> Walk<'a> {
    fn compare(&mut self, wanted: &'a Value, found: Option<&Value>) -> Option<Difference> {
        if self.left_out.iter().any(|path| self.is_at(path)) {
            return None;
        }
        match (wanted, found) {
            (Value::Object(wanted), Some(Value::Object(found))) => {
                beside(wanted, found).find_map(|(key, value, found)| self.below(Step::Key(key), value, found))
            }
            // The API server drops an empty map or list where it may be absent.
            (Value::Object(wanted), None) => {
                wanted.iter().find_map(|(key, value)| self.below(Step::Key(key), value, None))
            }
            (Value::Array(wanted), None) if wanted.is_empty() => None,
            (Value::Array(wanted), Some(Value::Array(found))) if wanted.len() == found.len() => {
                let mut pairs = wanted.iter().zip(found).enumerate();
                pairs.find_map(|(index, (wanted, found))| self.below(Step::Item(index), wanted, Some(found)))
            }
            // A written null says "not there", whether or not it is kept.
            (Value::Null, None | Some(Value::Null)) => None,
            (Value::Number(wanted), Some(Value::Number(found))) if same_number(wanted, found) => None,
            (wanted, Some(found)) if wanted == found => None,
            (wanted, found) => {
                let path: Vec<String> = self.path.iter().map(ToString::to_string).collect();
                Some(Difference { path: path.join("."), wanted: wanted.clone(), found: found.cloned() })
            }
        }
    }

    fn is_at(&self, path: &[&str]) -> bool {
        let is_step = |(step, key): (&Step<'_>, &&str)| matches!(step, Step::Key(step) if step == key);
        self.path.len() == path.len() && self.path.iter().zip(path).rev().all(is_step)
    }

    fn below(&mut self, step: Step<'a>, value: &'a Value, found: Option<&Value>) -> Option<Difference> {
        self.path.push(step);
        let difference = self.compare(value, found);
        self.path.pop();
        difference
    }
}

/// The API server turns `1.0` into `1`.
fn same_number(left: &serde_json::Number, right: &serde_json::Number) -> bool {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left == right,
        (Some(_), None) | (None, Some(_)) | (None, None) => left.as_f64() == right.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[rstest]
    #[case::equal(json!({"spec": {"a": {"b": 1}}}), json!({"spec": {"a": {"b": 1}}}))]
    #[case::fields_of_others(json!({"spec": {"a": 1}}), json!({"spec": {"a": 1, "suspend": true}, "status": {}}))]
    #[case::defaulted_in_an_item(json!({"spec": {"l": [{"a": 1}]}}), json!({"spec": {"l": [{"a": 1, "default": 2}]}}))]
    #[case::whole_number(json!({"spec": {"a": 1.0}}), json!({"spec": {"a": 1}}))]
    #[case::null_dropped(json!({"spec": {"values": {"a": null}}}), json!({"spec": {"values": {}}}))]
    #[case::null_kept(json!({"spec": {"values": {"a": null}}}), json!({"spec": {"values": {"a": null}}}))]
    #[case::empty_map_dropped(json!({"spec": {"a": {"b": {}}}}), json!({"spec": {}}))]
    #[case::empty_list_dropped(json!({"spec": {"a": []}}), json!({"spec": {}}))]
    #[case::finalizers_are_not_compared(json!({"metadata": {"finalizers": ["f"]}}), json!({"metadata": {}}))]
    #[case::left_out(json!({"spec": {"upgrade": {"crds": "CreateReplace"}}}), json!({"spec": {"upgrade": {"crds": "Skip"}}}))]
    fn what_was_written_is_there(#[case] wanted: Value, #[case] live: Value) {
        let left_out: &[&[&str]] = &[&["spec", "upgrade", "crds"]];
        assert_eq!(difference(&object(wanted), &object(live), left_out), None);
    }

    #[rstest]
    #[case::nothing(None, Some(json!({})), true)]
    #[case::equal(Some(json!({"a": [1, {"b": null}]})), Some(json!({"a": [1.0, {"b": null}]})), true)]
    #[case::empty(Some(json!({"a": {}, "b": []})), Some(json!({})), true)]
    #[case::more(Some(json!({"a": {"b": 1}})), Some(json!({"a": {"b": 1, "c": 2}})), false)]
    #[case::a_null_more(Some(json!({})), Some(json!({"a": null})), false)]
    #[case::a_null_less(Some(json!({"a": null})), Some(json!({})), false)]
    #[case::more_in_an_item(Some(json!([{"a": 1}])), Some(json!([{"a": 1, "b": 2}])), false)]
    #[case::all_of_it(None, Some(json!({"a": 1})), false)]
    fn a_value_is_exactly_the_wanted_one(
        #[case] wanted: Option<Value>,
        #[case] found: Option<Value>,
        #[case] same: bool,
    ) {
        assert_eq!(is_exactly(wanted.as_ref(), found.as_ref()), same);
    }

    #[rstest]
    #[case::value(json!({"spec": {"a": {"b": 1}}}), json!({"spec": {"a": {"b": 2}}}), "spec.a.b is not as it was written")]
    #[case::missing(json!({"spec": {"a": 1}}), json!({"spec": {}}), "spec.a is missing")]
    #[case::no_spec(json!({"spec": {"a": 1}}), json!({}), "spec.a is missing")]
    #[case::longer_list(json!({"spec": {"l": [1]}}), json!({"spec": {"l": [1, 2]}}), "spec.l is not as it was written")]
    #[case::item(json!({"spec": {"l": [{"a": 1}]}}), json!({"spec": {"l": [{"a": 2}]}}), "spec.l.0.a is not as it was written")]
    #[case::label(json!({"metadata": {"labels": {"x": "1"}}}), json!({"metadata": {}}), "metadata.labels.x is missing")]
    #[case::annotation(json!({"metadata": {"annotations": {"a/b": "1"}}}), json!({"metadata": {"annotations": {"a/b": "2"}}}), "metadata.annotations.a/b is not as it was written")]
    #[case::set_where_null_was_written(json!({"spec": {"a": null}}), json!({"spec": {"a": 1}}), "spec.a is not as it was written")]
    #[case::other_type(json!({"spec": {"a": "1"}}), json!({"spec": {"a": 1}}), "spec.a is not as it was written")]
    #[case::fraction(json!({"spec": {"a": 1.5}}), json!({"spec": {"a": 1}}), "spec.a is not as it was written")]
    fn the_first_owned_field_that_differs_is_named(#[case] wanted: Value, #[case] live: Value, #[case] message: &str) {
        assert_eq!(difference(&object(wanted), &object(live), &[]).unwrap().to_string(), message);
    }
}
