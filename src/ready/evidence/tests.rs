mod freshness;
mod holding;

use serde_json::{Value, json};

use super::*;
use crate::api;
use crate::package::definition::parse_ready_when;
use crate::package::names::Namespace;

const VERSIONS: Versions<'static> = Versions { wanted: "1.9.0", from: "1.8.2" };
const EXPR: &str = "object.status.observedKubeVirtVersion == 'v' + version \
    && object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')";
const FAILED: &str = "object.status.phase == 'Failed'";

fn entry(test: Value) -> Entry {
    let mut entry = json!({"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt"});
    entry.as_object_mut().unwrap().extend(test.as_object().cloned().unwrap());
    let entry: api::ReadyWhen = serde_json::from_value(entry).unwrap();
    let namespace = Namespace::parse("kubevirt").unwrap();
    Entry::parse(&parse_ready_when(&entry, &namespace).unwrap()).unwrap()
}

fn condition_entry() -> Entry {
    entry(json!({"condition": "Available", "failed": FAILED}))
}

fn expr_entry() -> Entry {
    entry(json!({"expr": EXPR, "failed": FAILED}))
}

fn kubevirt() -> Value {
    json!({
        "metadata": {"name": "kubevirt", "uid": "uid-1", "generation": 3},
        "status": {
            "observedGeneration": 3,
            "observedKubeVirtVersion": "v1.9.0",
            "phase": "Deployed",
            "conditions": [
                {"type": "Progressing", "status": "False"},
                {"type": "Available", "status": "True", "reason": "AllComponentsReady", "lastTransitionTime": "2026-11-29T09:00:00Z"},
            ],
        },
    })
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        Value::Object(fields) if value.is_null() => drop(fields.remove(key)),
        Value::Object(fields) => drop(fields.insert(key.to_owned(), value)),
        other => panic!("{other}"),
    }
    object
}

fn observe(entry: &Entry, object: Value) -> Observation {
    entry.observe(&Lookup::Found(object), VERSIONS)
}
