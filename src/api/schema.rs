//! The schemas that follow from the types: CRDs for clusters, one JSON Schema
//! for editors and for checks offline.

use kube::CustomResourceExt as _;
use serde_json::{Map, Value, json};

use super::{Package, PackageRevision, wellknown};

/// The CustomResourceDefinitions, ready to apply: Package, PackageRevision.
///
/// Outside of `status` there is no `default`, and `nullable` in one place: a stored
/// object shows what its author wrote. Integer formats that API servers do not
/// know are left out.
pub fn crds() -> Vec<Value> {
    let mut package = crd_value(&Package::crd());
    if let Some(values) = package.pointer_mut(VALUES).and_then(Value::as_object_mut) {
        values.insert("nullable".into(), true.into());
    }
    vec![package, crd_value(&PackageRevision::crd())]
}

/// The values of a component. A server-side apply that takes the last of them away,
/// such as one that says `values: {}`, leaves null (structured-merge-diff), which
/// would be refused.
const VALUES: &str =
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/components/items/properties/values";

fn crd_value<T: serde::Serialize>(crd: &T) -> Value {
    // The type consists of maps with text as keys, lists and scalars only.
    let mut value = serde_json::to_value(crd).unwrap_or_default();
    if let Some(Value::Array(versions)) = value.pointer_mut("/spec/versions") {
        for schema in versions.iter_mut().filter_map(|version| version.pointer_mut("/schema/openAPIV3Schema")) {
            tidy_root(schema);
        }
    }
    value
}

fn tidy_root(schema: &mut Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, property) in properties.iter_mut() {
        if name == "status" {
            formats(property);
        } else {
            strip(property);
        }
    }
}

/// Removes `default`, `nullable` and null members of `enum`, at every depth.
/// Fields of these names are in `properties`, where names are not keywords.
fn strip(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("default");
    object.remove("nullable");
    if let Some(members) = object.get_mut("enum").and_then(Value::as_array_mut) {
        members.retain(|member| !member.is_null());
    }
    drop_unknown_format(object);
    each_inner(object, strip);
}

fn formats(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    drop_unknown_format(object);
    each_inner(object, formats);
}

fn drop_unknown_format(object: &mut Map<String, Value>) {
    if object.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        object.remove("format");
    }
}

fn each_inner(object: &mut Map<String, Value>, change: fn(&mut Value)) {
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(change);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(key) {
            change(inner);
        }
    }
}

/// JSON Schema (draft 7) of one Package document, for editors: the rules of the
/// CRD, and every field that the format does not have is an error.
pub fn package_json_schema() -> Value {
    let crd = crd_value(&Package::crd());
    let mut schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema").cloned().unwrap_or_default();
    for_editors(&mut schema);
    let Some(object) = schema.as_object_mut() else { return schema };
    object.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
    object.insert("title".into(), "Windlass Package".into());
    object.insert("required".into(), json!(["apiVersion", "kind", "metadata", "spec"]));
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("apiVersion".into(), json!({"type": "string", "enum": [wellknown::API_VERSION]}));
        properties.insert("kind".into(), json!({"type": "string", "enum": ["Package"]}));
        properties.insert("metadata".into(), metadata());
        // Written by the controller; its own rules are no author's concern.
        properties.insert("status".into(), json!({"type": "object"}));
    }
    schema
}

/// Fields of every object's metadata that no author writes and an API server
/// takes all the same, as `kubectl get -o yaml` shows them.
const OTHER_METADATA: [&str; 11] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

fn metadata() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let name = json!({"type": "string", "minLength": 1, "maxLength": 63});
    let mut properties: Map<String, Value> =
        OTHER_METADATA.map(|field| (field.to_owned(), json!({}))).into_iter().collect();
    properties.extend([
        ("name".to_owned(), name.clone()),
        ("namespace".to_owned(), name),
        ("labels".to_owned(), texts.clone()),
        ("annotations".to_owned(), texts),
    ]);
    json!({"type": "object", "required": ["name"], "properties": properties, "additionalProperties": false})
}

fn for_editors(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    let free = object.contains_key("x-kubernetes-preserve-unknown-fields");
    object.retain(|key, _| !key.starts_with("x-kubernetes-"));
    if object.contains_key("properties") && !free && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".into(), false.into());
    }
    each_inner(object, for_editors);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every schema below one, with its path.
    fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
        visit(path, schema);
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            walk(property, &format!("{path}.{name}"), visit);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(key) {
                walk(inner, &format!("{path}[]"), visit);
            }
        }
    }

    #[test]
    fn specs_have_no_defaults_and_no_nulls() {
        for crd in crds() {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            walk(&schema["properties"]["spec"], "spec", &mut |path, schema| {
                let may_be_null = path.ends_with(".components[].values");
                assert!(schema.get("default").is_none(), "{path}");
                assert_eq!(schema.get("nullable").is_some(), may_be_null, "{path}");
                assert!(!schema["enum"].as_array().is_some_and(|members| members.contains(&Value::Null)), "{path}");
            });
        }
    }

    #[test]
    fn a_package_without_status_has_not_been_observed() {
        let status = &crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
        assert_eq!(status["default"], json!({"observedGeneration": -1}));
    }

    #[test]
    fn api_servers_know_every_format() {
        for crd in crds() {
            walk(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut |path, schema| {
                let format = schema.get("format").and_then(Value::as_str);
                assert!(
                    matches!(format, None | Some("int32" | "int64" | "date-time" | "double")),
                    "{path}: {format:?}"
                );
            });
        }
    }

    #[test]
    fn every_text_and_list_of_a_package_has_a_limit() {
        let schema = &crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk(&schema["properties"]["spec"], "spec", &mut |path, schema| match schema["type"].as_str() {
            Some("string") => assert!(
                schema.get("maxLength").is_some() || schema.get("enum").is_some() || path.ends_with("nodeSelector[]"),
                "{path}"
            ),
            Some("array") => assert!(schema.get("maxItems").is_some(), "{path}"),
            _ => {}
        });
    }

    /// An API server prunes what is inside of `additionalProperties: true`, whatever stands beside it.
    #[test]
    fn free_content_is_free_at_every_depth() {
        for crd in crds() {
            let mut free = 0;
            walk(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut |path, schema| {
                assert_ne!(schema["additionalProperties"], json!(true), "{path}");
                free += usize::from(schema["x-kubernetes-preserve-unknown-fields"] == true);
            });
            assert_eq!(free, 1, "the values of a component, or the manifests of a revision");
        }
    }

    #[test]
    fn editors_learn_of_fields_that_do_not_exist() {
        let schema = package_json_schema();
        walk(&schema["properties"]["spec"], "spec", &mut |path, schema| {
            if schema.get("properties").is_some() {
                assert_eq!(schema["additionalProperties"], json!(false), "{path}");
            }
        });
    }
}
