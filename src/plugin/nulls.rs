//! Nulls in values, which mean "not the chart's default".

use serde_json::{Map, Value};

use crate::api::wellknown::ARGO_SYNC_OPTIONS;

const SERVER_SIDE: &str = "ServerSideApply";

/// Has an object that holds a null applied on the server: Argo CD's other way
/// makes a patch, in which a null removes the key. An object that says itself how
/// it is applied stays as it is.
pub fn keep_nulls(mut object: Value) -> Value {
    if object.get("spec").is_some_and(holds_null)
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        add_option(metadata);
    }
    object
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(holds_null),
        Value::Object(entries) => entries.values().any(holds_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn add_option(metadata: &mut Map<String, Value>) {
    let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
    let Value::Object(annotations) = annotations else { return };
    let stated = annotations.get(ARGO_SYNC_OPTIONS).and_then(Value::as_str).unwrap_or_default();
    let mut options: Vec<&str> = stated.split(',').map(str::trim).filter(|option| !option.is_empty()).collect();
    if options.iter().any(|option| option.split('=').next() == Some(SERVER_SIDE)) {
        return;
    }
    let wanted = format!("{SERVER_SIDE}=true");
    options.push(&wanted);
    let options = options.join(",");
    annotations.insert(ARGO_SYNC_OPTIONS.to_owned(), options.into());
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::no_null(json!({}), json!({"a": [1, {"b": "null"}]}), json!({}))]
    #[case::null(json!({}), json!({"a": [1, {"b": null}]}), json!({"annotations": {ARGO_SYNC_OPTIONS: "ServerSideApply=true"}}))]
    #[case::other_options(
        json!({"annotations": {"x": "y", ARGO_SYNC_OPTIONS: "Prune=false"}}),
        json!({"a": null}),
        json!({"annotations": {"x": "y", ARGO_SYNC_OPTIONS: "Prune=false,ServerSideApply=true"}})
    )]
    #[case::decided_already(
        json!({"annotations": {ARGO_SYNC_OPTIONS: "ServerSideApply=false"}}),
        json!({"a": null}),
        json!({"annotations": {ARGO_SYNC_OPTIONS: "ServerSideApply=false"}})
    )]
    fn objects_with_nulls_are_applied_on_the_server(
        #[case] metadata: Value,
        #[case] spec: Value,
        #[case] expected: Value,
    ) {
        let object = keep_nulls(json!({"kind": "Package", "metadata": metadata, "spec": spec.clone()}));
        assert_eq!(object, json!({"kind": "Package", "metadata": expected, "spec": spec}));
    }
}
