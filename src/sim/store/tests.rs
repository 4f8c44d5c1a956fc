use serde_json::{Map, Value, json};

use super::*;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn release(spec: Value) -> Map<String, Value> {
    object(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "a", "namespace": "ns"}, "spec": spec,
    }))
}

fn key() -> Key {
    Key::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "ns", "a")
}

#[test]
fn a_manager_removes_only_what_it_applied_before() {
    let mut store = Store::new();
    let any = Expected::default();
    store.apply("windlass", &release(json!({"interval": "10m", "values": {"a": 1}})), &any).unwrap();
    let patch = object(json!({"spec": {"suspend": true}}));
    store.patch("user", &key(), &patch, &any).unwrap();
    let after = store.apply("windlass", &release(json!({"interval": "10m"})), &any).unwrap();
    assert_eq!(after.get("spec").unwrap(), &json!({"interval": "10m", "suspend": true}));
}

#[test]
fn the_generation_moves_with_the_spec_and_not_with_the_status() {
    let mut store = Store::new();
    let any = Expected::default();
    store.apply("windlass", &release(json!({"interval": "10m"})), &any).unwrap();
    let status = store.edit_status("engine", &key(), |status| json::set(status, &["x"], 1.into())).unwrap();
    assert_eq!(generation(&status), 1);
    let moved = store.apply("windlass", &release(json!({"interval": "20m"})), &any).unwrap();
    assert_eq!(generation(&moved), 2);
    let same = store.apply("windlass", &release(json!({"interval": "20m"})), &any).unwrap();
    assert_eq!(
        json::text(&same, &["metadata", "resourceVersion"]),
        json::text(&moved, &["metadata", "resourceVersion"])
    );
}

#[test]
fn every_write_moves_the_generation_of_an_application() {
    let mut store = Store::new();
    let application = object(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "namespace": "ns"}, "spec": {},
    }));
    let key = Key::of(&application);
    store.apply("windlass", &application, &Expected::default()).unwrap();
    let after = store.edit_status("argocd", &key, |status| json::set(status, &["x"], 1.into())).unwrap();
    assert_eq!(generation(&after), 2);
}

#[test]
fn an_object_with_a_finalizer_goes_when_the_finalizer_does() {
    let mut store = Store::new();
    let any = Expected::default();
    store.apply("windlass", &release(json!({})), &any).unwrap();
    let finalizers = |list: Value| object(json!({"metadata": {"finalizers": list}}));
    store.patch("engine", &key(), &finalizers(json!(["f"])), &any).unwrap();
    store.delete("windlass", &key(), &any).unwrap();
    assert!(is_deleting(store.get(&key()).unwrap()));
    store.patch("engine", &key(), &finalizers(json!([])), &any).unwrap();
    assert!(store.get(&key()).is_none());
    assert_eq!(store.log().last().unwrap().verb, Verb::Deleted);
}

#[test]
fn a_write_that_expects_another_object_is_refused() {
    let mut store = Store::new();
    let made = store.apply("windlass", &release(json!({})), &Expected::default()).unwrap();
    let other = Expected { uid: Some("other".into()), resource_version: None };
    assert_eq!(store.delete("windlass", &key(), &other), Err(Refusal::Conflict));
    let stale = Expected { uid: Some(uid(&made).into()), resource_version: Some("0".into()) };
    assert_eq!(store.apply("windlass", &release(json!({"a": 1})), &stale).err(), Some(Refusal::Conflict));
    assert_eq!(store.create("windlass", release(json!({}))).err(), Some(Refusal::AlreadyExists));
}
