//! Argo CD 3.5.7.
//!
//! The recorded Applications synchronised by themselves. Windlass asks for an
//! operation of its own in the same patch as the spec: the replay puts a token on
//! the whole operation of each spec, and a refresh where one is asked for.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::engine::observe::{ArgoRelease, Need, OPERATION_TOKEN, Proof, argo};
use windlass::ready::release::{ReleaseState, Wanted};

use super::replay::{Recording, component, distinct, metadata, object, word};

const ENGINE: &str = "argocd-3.5.7";
const REFRESH: &str = "argocd.argoproj.io/refresh";

fn wanted(event: &Value) -> Map<String, Value> {
    let name = event["name"].as_str().unwrap();
    object(json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata(name, &format!("v1:{}", event["source"])),
        "spec": {
            "project": "default",
            "source": event["source"],
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ns"},
        },
    }))
}

/// The object as it stood at an event, its whole operation carrying the token.
fn live(event: &Value, token: Option<&str>) -> Map<String, Value> {
    let mut live = wanted(event);
    let meta = live["metadata"].as_object_mut().unwrap();
    meta.insert("uid".into(), json!("11"));
    if event["deleting"] == true {
        meta.insert("deletionTimestamp".into(), json!("2026-11-29T16:00:00Z"));
    }
    if let Some(annotations) = event["annotations"].as_object() {
        meta["annotations"].as_object_mut().unwrap().extend(annotations.clone());
    }
    live.insert("operation".into(), event["operation"].clone());
    live.insert("status".into(), event["status"].clone());
    if let Some(token) = token {
        stamp(&mut live["operation"], &event["source"], token);
        if let Some(operation) = live["status"].pointer_mut("/operationState/operation") {
            stamp(operation, &event["source"], token);
        }
    }
    live
}

fn stamp(operation: &mut Value, source: &Value, token: &str) {
    let whole = operation.pointer("/sync/resources").is_none();
    if operation.pointer("/sync/source") == Some(source) && whole {
        operation["info"] = json!([{"name": "Reason", "value": "upgrade"}, {"name": OPERATION_TOKEN, "value": token}]);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Refreshes {
    /// Those that are asked for, done at once.
    AskedFor,
    /// Those of the recording.
    Recorded,
}

/// Plays a recording through and gives the words of all states.
fn play(scenario: &str, refreshes: Refreshes) -> String {
    let mut words = Vec::new();
    let mut proof = Proof::default();
    let mut source = Value::Null;
    let mut specs = 0;
    for event in &Recording::load(ENGINE, scenario).events {
        if event["source"] != source {
            source = event["source"].clone();
            specs += 1;
            proof = Proof::default().asked(format!("token-{specs}"));
        }
        let mut object = live(event, proof.token.as_deref());
        let mut seen = read(event, Some(&object), &proof);
        words.push(word(&seen.release, seen.need));
        if seen.need == Some(Need::Refresh) && refreshes == Refreshes::AskedFor {
            object["metadata"]["annotations"][REFRESH] = json!("normal");
            seen = read(event, Some(&object), &seen.proof);
            words.push(word(&seen.release, seen.need));
            object["metadata"]["annotations"].as_object_mut().unwrap().remove(REFRESH);
            seen = read(event, Some(&object), &seen.proof);
            words.push(word(&seen.release, seen.need));
        }
        proof = seen.proof;
    }
    distinct(words)
}

fn read(event: &Value, object: Option<&Map<String, Value>>, proof: &Proof) -> ArgoRelease {
    let component = component(event["name"].as_str().unwrap(), wanted(event), "");
    let wanted = Wanted::of(&component).unwrap();
    argo(object.filter(|_| event["type"] != "DELETED"), &wanted, proof)
}

const INSTALL: &str = "Queued Progressing Progressing+refresh Progressing Ready";
/// Until the automated operation begins there is none, and one is asked for.
const UPGRADE: &str = "Queued+operation Queued Progressing Progressing+refresh Progressing Ready";

#[rstest]
#[case::daemon_set_not_done("daemonset-upgrade", &[
    INSTALL,
    "Queued+operation Queued Progressing Progressing+refresh Progressing",
])]
#[case::self_heal("drift", &[INSTALL, "Progressing Ready"])]
#[case::whole_life("install-upgrade-values-delete", &[INSTALL, UPGRADE, UPGRADE, "Deleting Absent"])]
#[case::job("job-chart", &[INSTALL])]
#[case::missing_version("missing-chart-version", &[
    INSTALL,
    "Queued+operation Queued!source+operation",
    UPGRADE,
])]
#[case::never_available("never-available", &[
    INSTALL,
    "Queued+operation Queued Progressing Progressing+refresh Progressing",
    UPGRADE,
])]
#[case::render_failure("render-failure", &[INSTALL, "Queued+operation Queued!source+operation", UPGRADE])]
#[case::sync_failure("sync-failure", &[
    INSTALL,
    "Queued+operation Queued Progressing Failed/1+operation",
    UPGRADE,
])]
fn every_status_is_read_rightly(#[case] scenario: &str, #[case] expected: &[&str]) {
    assert_eq!(play(scenario, Refreshes::AskedFor), expected.join(" "));
}

/// Both timestamps carry the same second; only the refresh shows that the
/// comparison is the later one.
#[test]
fn nothing_is_ready_without_a_refresh_after_the_operation() {
    let expected = [
        "Queued Progressing Progressing+refresh Progressing Progressing+refresh",
        "Queued+operation Queued Progressing Progressing+refresh Progressing Ready",
    ];
    assert_eq!(play("upgrade-without-refresh-then-refresh", Refreshes::Recorded), expected.join(" "));
}

#[test]
fn no_recording_is_left_out() {
    let source = include_str!("argo.rs");
    for scenario in Recording::scenarios(ENGINE) {
        assert!(source.contains(&format!("(\"{scenario}\"")), "{scenario}");
    }
}

#[test]
fn no_operation_of_somebody_else_proves_anything() {
    for scenario in Recording::scenarios(ENGINE) {
        let mut proof = Proof::default().asked("ours".to_owned());
        for event in &Recording::load(ENGINE, &scenario).events {
            let seen = read(event, Some(&live(event, None)), &proof);
            assert_ne!(seen.release.state, ReleaseState::Ready, "{scenario} at {}", event["t"]);
            proof = seen.proof;
        }
    }
}
