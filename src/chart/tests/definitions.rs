//! Definitions and what changes of them.

use rstest::rstest;
use serde_json::{Value, json};

use super::super::compare::{CrdChange, Stored, changes};
use super::*;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.org
spec:
  group: example.org
  names: {kind: Widget, plural: widgets}
  versions:
";

fn version(name: &str, served: bool, storage: bool, properties: &Value) -> String {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": properties}});
    format!("  - {{name: {name}, served: {served}, storage: {storage}, schema: {schema}}}\n")
}

fn crd(versions: &[String]) -> Crd {
    let text = format!("{CRD}{}", versions.concat());
    let look = looked(&[("crds/widgets.yaml", &text)]);
    let [crd] = look.crds.as_slice() else { panic!("{text}\n{look:?}") };
    crd.clone()
}

fn fields(from: Value, to: Value) -> Vec<String> {
    let [from, to] = [from, to].map(|properties| crd(&[version("v1", true, true, &properties)]));
    match changes(&from, &to).as_slice() {
        [] => Vec::new(),
        [CrdChange::FieldsGone { version, fields }] if version == "v1" => fields.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn definitions_are_read_from_both_places() {
    let text = format!("{CRD}{}", version("v1", true, true, &json!({})));
    let look = looked(&[("crds/a.yaml", &text), ("templates/b.yaml", &text.replace("widgets", "gadgets"))]);
    let found: Vec<_> = look.crds.iter().map(|crd| (crd.name.as_str(), crd.is_templated, crd.is_whole)).collect();
    assert_eq!(found, [("widgets.example.org", false, true), ("gadgets.example.org", true, true)]);
    assert_eq!((look.crds[0].group.as_str(), look.crds[0].kind.as_str()), ("example.org", "Widget"));
    assert_eq!(look.objects, []);
}

#[test]
fn a_definition_with_something_unknown_in_its_spec_is_not_whole() {
    let text = format!("{CRD}{}", version("v1", true, true, &json!({})));
    let in_metadata = text.replace("spec:\n  group", "  {{- include \"labels\" . | nindent 2 }}\nspec:\n  group");
    let in_spec = text.replace("  versions:", "  {{- include \"more\" . | nindent 2 }}\n  versions:");
    let of_a_field = text.replace("plural: widgets", "plural: widgets, singular: '{{ .Capabilities.x }}'");
    for (text, is_whole) in [(in_metadata, true), (in_spec, false), (of_a_field, false)] {
        let look = looked(&[("templates/a.yaml", &text)]);
        assert_eq!(look.crds.iter().map(|crd| crd.is_whole).collect::<Vec<_>>(), [is_whole], "{text}");
    }
}

#[rstest]
#[case::gone(&[("v2", true, true)], &[not_served("v1"), stored("v1", Stored::Now)])]
#[case::kept(&[("v1", true, false), ("v2", true, true)], &[])]
#[case::kept_for_what_is_stored(&[("v1", false, false), ("v2", true, true)], &[not_served("v1")])]
fn versions_that_go_are_told(#[case] after: &[(&str, bool, bool)], #[case] expected: &[CrdChange]) {
    let after: Vec<String> = after.iter().map(|(name, s, w)| version(name, *s, *w, &json!({}))).collect();
    assert_eq!(changes(&crd(&[version("v1", true, true, &json!({}))]), &crd(&after)), expected);
}

fn not_served(version: &str) -> CrdChange {
    CrdChange::NotServed { version: version.to_owned() }
}

fn stored(version: &str, stored: Stored) -> CrdChange {
    CrdChange::StoredRemoved { version: version.to_owned(), stored }
}

#[test]
fn versions_that_were_stored_are_told_by_what_is_said_of_them() {
    let none = json!({});
    let now = version("v2", true, true, &none);
    let after = crd(std::slice::from_ref(&now));
    let kept = crd(&[version("v1", false, false, &none), now.clone()]);
    assert_eq!(changes(&kept, &after), [stored("v1", Stored::Presumably)]);
    let served = crd(&[version("v1", true, false, &none), now]);
    assert_eq!(changes(&served, &after), [not_served("v1")]);
    let stated = Crd { stored: vec!["v1".into(), "v2".into()], ..served };
    assert_eq!(changes(&stated, &after), [not_served("v1"), stored("v1", Stored::Stated)]);
}

#[test]
fn nothing_follows_from_what_is_not_known_afterwards() {
    let before = crd(&[version("v1", true, true, &json!({"a": {"type": "string"}}))]);
    let after = Crd { versions: Vec::new(), is_whole: false, ..before.clone() };
    assert_eq!(changes(&before, &after), []);
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[rstest]
#[case::field(json!({"a": {}, "b": {}}), json!({"b": {}}), &["a"])]
#[case::the_outermost(json!({"a": object(json!({"b": {}, "c": {}}))}), json!({}), &["a"])]
#[case::inside(json!({"a": object(json!({"b": {}, "c": {}}))}), json!({"a": object(json!({"c": {}}))}), &["a.b"])]
#[case::in_a_list(
    json!({"a": {"type": "array", "items": object(json!({"b": {}}))}}),
    json!({"a": {"type": "array", "items": object(json!({}))}}),
    &["a[].b"]
)]
#[case::in_a_map(
    json!({"a": {"type": "object", "additionalProperties": object(json!({"b": {}}))}}),
    json!({"a": {"type": "object", "additionalProperties": object(json!({}))}}),
    &["a.*.b"]
)]
#[case::a_map(json!({"a": {"type": "object", "additionalProperties": {"type": "string"}}}), json!({"a": object(json!({}))}), &["a.*"])]
#[case::added(json!({}), json!({"a": {}}), &[])]
#[case::kept_unknown(
    json!({"a": object(json!({"b": {}}))}),
    json!({"a": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
    &[]
)]
#[case::any_key(
    json!({"a": object(json!({"b": {"type": "string"}}))}),
    json!({"a": {"type": "object", "additionalProperties": {"type": "string"}}}),
    &[]
)]
#[case::another_type(json!({"a": object(json!({"b": {}}))}), json!({"a": {"type": "string"}}), &[])]
#[case::always_there(json!({"metadata": {"type": "object"}, "kind": {}}), json!({}), &[])]
#[case::embedded(
    json!({"a": object(json!({"metadata": {}, "spec": {}}))}),
    json!({"a": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {}}}}),
    &[]
)]
fn fields_that_go_are_told_and_those_that_are_kept_are_not(
    #[case] from: Value,
    #[case] to: Value,
    #[case] expected: &[&str],
) {
    assert_eq!(fields(from, to), expected);
}
