//! Conditions as controllers write them.

use serde_json::{Map, Value, json};

use super::json;

/// One condition.
pub(crate) struct Condition<'a> {
    pub type_: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    pub observed_generation: Option<i64>,
}

fn list(status: &mut Map<String, Value>) -> &mut Vec<Value> {
    let value = status.entry("conditions".to_owned()).or_insert_with(|| json!([]));
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("it was made a list above"),
    }
}

/// Sets a condition; its transition time moves only with its status.
pub(crate) fn set(status: &mut Map<String, Value>, condition: &Condition<'_>, now: u64) {
    let list = list(status);
    let before = list.iter().position(|found| found.get("type").and_then(Value::as_str) == Some(condition.type_));
    let same = before.and_then(|at| list.get(at)).filter(|found| found.get("status") == Some(&condition.status.into()));
    let since = same.and_then(|found| found.get("lastTransitionTime")).cloned();
    let mut value = json!({
        "lastTransitionTime": since.unwrap_or_else(|| json::time(now).into()),
        "message": condition.message,
        "reason": condition.reason,
        "status": condition.status,
        "type": condition.type_,
    });
    if let (Some(generation), Value::Object(value)) = (condition.observed_generation, &mut value) {
        value.insert("observedGeneration".into(), generation.into());
    }
    match before.and_then(|at| list.get_mut(at)) {
        Some(slot) => *slot = value,
        None => list.push(value),
    }
}

/// Takes a condition away.
pub(crate) fn remove(status: &mut Map<String, Value>, type_: &str) {
    let list = list(status);
    list.retain(|found| found.get("type").and_then(Value::as_str) != Some(type_));
}

/// A condition of an object.
pub(crate) fn find<'a>(object: &'a Map<String, Value>, type_: &str) -> Option<&'a Map<String, Value>> {
    let list = json::at(object, &["status", "conditions"])?.as_array()?;
    list.iter().filter_map(Value::as_object).find(|found| json::text(found, &["type"]) == type_)
}

/// Whether a condition of an object is True.
pub(crate) fn is_true(object: &Map<String, Value>, type_: &str) -> bool {
    find(object, type_).is_some_and(|found| json::text(found, &["status"]) == "True")
}
