//! Sources and destinations of an Application.
//!
//! Argo CD drops zero values from a spec, so two are the same when they are
//! after that. `valuesObject` is the author's: a `false` in it means something.
//! But a null says "not there", and not every writer keeps it: Argo CD drops it
//! from what it says it has compared.

use serde_json::{Map, Value};

const VALUES: &str = "valuesObject";

/// Whether `status.sync.comparedTo` is the present spec. This is the comparison
/// that Argo CD itself makes to tell whether it must look again.
pub(super) fn is_compared(object: &Map<String, Value>) -> bool {
    let Some(compared) = object.get("status").and_then(|status| status.pointer("/sync/comparedTo")) else {
        return false;
    };
    let Some(spec) = object.get("spec") else {
        return false;
    };
    same_sources(compared, spec)
        && ["destination", "ignoreDifferences"].into_iter().all(|key| same(compared.get(key), spec.get(key)))
}

/// Whether the `source` or `sources` of `value` are those of the object's spec.
pub(super) fn same_source(value: &Value, object: &Map<String, Value>) -> bool {
    object.get("spec").is_some_and(|spec| same_sources(value, spec))
}

/// Whether both name the same `source` and `sources`.
pub(super) fn same_sources(left: &Value, right: &Value) -> bool {
    ["source", "sources"].into_iter().all(|key| same(left.get(key), right.get(key)))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn same(left: Option<&Value>, right: Option<&Value>) -> bool {
    let normal = |value: Option<&Value>| value.and_then(normalised);
    normal(left) == normal(right)
}

/// Whether a value is one that Argo CD drops.
pub(super) fn is_zero(value: &Value) -> bool {
    normalised(value).is_none()
}

/// The value without its zero values; `None` if nothing is left.
fn normalised(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Number(number) => (number.as_f64() != Some(0.0)).then(|| value.clone()),
        Value::Bool(true) => Some(value.clone()),
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| normalised(item).unwrap_or(Value::Null)).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(fields) => {
            let fields: Map<String, Value> =
                fields.iter().filter_map(|(key, value)| Some((key.clone(), kept(key, value)?))).collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
    }
}

fn kept(key: &str, value: &Value) -> Option<Value> {
    let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
    if key == VALUES { (!is_empty).then(|| without_nulls(value.clone())) } else { normalised(value) }
}
