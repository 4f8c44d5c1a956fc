//! An Application that runs the wanted spec, and ways to spoil it.

use serde_json::{Map, Value, json};

use super::super::*;
use crate::api::{Claim, RecordedComponent};

pub const TOKEN: &str = "token-1";

pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

pub fn source() -> Value {
    json!({
        "repoURL": "https://charts.example.org",
        "chart": "app",
        "targetRevision": "1.1.0",
        "helm": {"releaseName": "app", "valuesObject": {"replicas": 0, "debug": false}},
    })
}

pub fn old_source() -> Value {
    let mut source = source();
    source["targetRevision"] = json!("1.0.0");
    source
}

pub fn spec() -> Value {
    json!({
        "project": "default",
        "source": source(),
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "ns"},
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        "ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}],
    })
}

pub fn operation(source: &Value, token: Option<&str>) -> Value {
    let mut operation = json!({"sync": {"revision": source["targetRevision"], "source": source, "prune": true}});
    if let Some(token) = token {
        operation["info"] = json!([{"name": OPERATION_TOKEN, "value": token}]);
    }
    operation
}

pub fn state(phase: &str, source: &Value, token: Option<&str>) -> Value {
    json!({
        "phase": phase,
        "operation": operation(source, token),
        "startedAt": "2026-11-29T10:00:00Z",
        "finishedAt": "2026-11-29T10:00:05Z",
        "syncResult": {"source": source, "revision": source["targetRevision"], "resources": []},
    })
}

/// An Application that runs the wanted spec, as Argo CD leaves it.
pub fn application() -> Value {
    let spec = spec();
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "pkg-app",
            "namespace": "packages",
            "uid": "uid-1",
            "labels": {
                "windlass.dev/package": "pkg",
                "windlass.dev/component": "app",
                "app.kubernetes.io/managed-by": "windlass",
            },
            "annotations": {"windlass.dev/digest": "v1:new"},
        },
        "spec": spec,
        "status": {
            "reconciledAt": "2026-11-29T10:00:05Z",
            "sync": {
                "status": "Synced",
                "revision": "1.1.0",
                "comparedTo": {
                    "source": spec["source"],
                    "destination": spec["destination"],
                    "ignoreDifferences": spec["ignoreDifferences"],
                },
            },
            "health": {"status": "Healthy"},
            "operationState": state("Succeeded", &spec["source"], Some(TOKEN)),
        },
    })
}

/// A proof as it is after the operation has succeeded and a refresh was seen.
pub fn proved() -> Proof {
    Proof {
        token: Some(TOKEN.to_owned()),
        succeeded: true,
        uid: Some("uid-1".to_owned()),
        refresh_seen: true,
        ..Proof::default()
    }
}

pub fn asked() -> Proof {
    Proof::default().asked(TOKEN.to_owned())
}

pub fn component() -> RecordedComponent {
    let mut manifest = object(application());
    manifest.remove("status");
    manifest["metadata"].as_object_mut().unwrap().remove("uid");
    RecordedComponent {
        name: "app".into(),
        wave: 0,
        digest: "v1:new".into(),
        release: Claim { storage_namespace: "ns".into(), namespace: "ns".into(), name: "app".into() },
        chart_name: "app".into(),
        chart_version: "1.1.0".into(),
        chart_digest: String::new(),
        depends_on: Vec::new(),
        manifests: vec![manifest],
        ready_when: Vec::new(),
        canary: None,
        hook: false,
        delete_data: false,
        replaces: false,
        adopted: false,
    }
}

pub fn look(application: Value, proof: &Proof) -> ArgoRelease {
    let component = component();
    argo(Some(&object(application)), &Wanted::of(&component).unwrap(), proof)
}

/// Sets the value at a JSON pointer whose parent is there; `null` removes it.
pub fn with(mut application: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    let parent = application.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(&key)
    } else {
        parent.insert(key, value)
    };
    application
}
