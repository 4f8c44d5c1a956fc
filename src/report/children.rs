//! What the engines say of a Package's children, in their own words.

use serde_json::{Map, Value};

use crate::engine::observe::out_of_sync;

/// The lines that tell most: conditions of a HelmRelease; operation, sync and
/// health of an Application.
pub(super) fn say(object: &Map<String, Value>) -> Vec<String> {
    let text = |pointer: &str| object.get("status").and_then(|status| status.pointer(pointer)).and_then(Value::as_str);
    let mut lines = Vec::new();
    if object.get("spec").and_then(|spec| spec.get("suspend")).and_then(Value::as_bool) == Some(true) {
        lines.push("is suspended".to_owned());
    }
    if let Some(phase) = text("/operationState/phase") {
        lines.push(with(format!("operation {phase}"), text("/operationState/message")));
    }
    if let (Some(sync), Some(health)) = (text("/sync/status"), text("/health/status")) {
        lines.push(with(format!("sync {sync}, health {health}"), text("/health/message")));
    }
    lines.extend(out_of_sync(object));
    let conditions = object.get("status").and_then(|status| status.get("conditions")).and_then(Value::as_array);
    lines.extend(conditions.into_iter().flatten().filter_map(Value::as_object).map(condition));
    lines
}

/// Whether Argo CD has done its part and finds a difference still.
pub(super) fn stays_out_of_sync(object: &Map<String, Value>) -> bool {
    let phase = object.get("status").and_then(|status| status.pointer("/operationState/phase"));
    let has_ended = phase.and_then(Value::as_str) == Some("Succeeded") && !object.contains_key("operation");
    has_ended && out_of_sync(object).is_some()
}

/// Conditions of an Application have no status: they are there or not.
fn condition(condition: &Map<String, Value>) -> String {
    let text = |key: &str| condition.get(key).and_then(Value::as_str);
    let mut line = text("type").unwrap_or("condition").to_owned();
    if let Some(status) = text("status") {
        line = format!("{line} is {status}");
    }
    if let Some(reason) = text("reason") {
        line = format!("{line} ({reason})");
    }
    with(line, text("message"))
}

fn with(line: String, message: Option<&str>) -> String {
    let words = message.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { line } else { format!("{line}: {words}") }
}
