//! The files that set Windlass up on Argo CD and Flux.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rstest::rstest;
use serde_json::{Value, json};

fn yaml_files(directory: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![common::root().join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn documents(path: &Path) -> Vec<Value> {
    common::read_yaml(&fs::read_to_string(path).unwrap())
}

#[rstest]
#[case::argocd_plugin("argocd-plugin")]
#[case::flux("flux")]
fn every_file_holds_objects_and_is_explained(#[case] directory: &str) {
    let readme = fs::read_to_string(common::root().join(directory).join("README.md")).unwrap();
    for path in yaml_files(directory) {
        for document in documents(&path) {
            assert!(document["apiVersion"].is_string() && document["kind"].is_string(), "{}", path.display());
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(
            name == "kustomization.yaml" || readme.contains(name),
            "README.md of {directory} says nothing of {name}"
        );
    }
}

#[test]
fn the_sidecar_has_no_rights_it_does_not_need() {
    let patch = documents(&common::root().join("argocd-plugin/repo-server.yaml")).remove(0);
    let pod = &patch["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(pod["automountServiceAccountToken"], false);
    let security = json!({
        "runAsNonRoot": true, "runAsUser": 999, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert_eq!(container["securityContext"], security);
    assert_eq!(container["command"], json!(["/var/run/argocd/argocd-cmp-server"]));
    assert_eq!(container.get("env"), None);
}

#[test]
fn the_plugin_is_never_asked_whether_it_is_meant() {
    let plugin = documents(&common::root().join("argocd-plugin/plugin.yaml")).remove(0);
    assert_eq!(plugin["spec"].get("discover"), None);
    assert_eq!(plugin["spec"].get("version"), None);
    assert_eq!(plugin["spec"]["generate"]["command"], json!(["/usr/local/bin/windlass", "plugin", "generate"]));
}

/// The health that a script of argocd-cm gives an object, with its message.
fn health(file: &str, key: &str, object: &Value) -> Option<(String, String)> {
    if !common::available("health scripts", "lua5.1", &["-v"]) {
        return None;
    }
    let patch = documents(&common::root().join("argocd-plugin").join(file)).remove(0);
    let script = patch["data"][format!("resource.customizations.health.{key}")].as_str().unwrap();
    let program = format!(
        "obj = {}\nlocal hs = (function()\n{script}\nend)()\nio.write(hs.status, '|', hs.message or '')",
        lua(object)
    );
    let mut child = Command::new("lua5.1").arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_once('|').map(|(status, message)| (status.to_owned(), message.to_owned()))
}

fn lua(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => format!("{{{}}}", items.iter().map(lua).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("[{}] = {}", json!(key), lua(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[rstest]
#[case::new(json!({}), json!({}), "Progressing", "Windlass has not seen it yet; is its controller running?")]
#[case::default_status(json!({}), json!({"observedGeneration": -1}), "Progressing", "Windlass has not seen it yet; is its controller running?")]
#[case::changed(json!({}), json!({"observedGeneration": 1, "conditions": [condition("Ready", "True", "Ready", "")]}), "Progressing", "Windlass has not seen this spec yet")]
#[case::ready(json!({}), json!({"observedGeneration": 2, "conditions": [condition("Ready", "True", "Ready", "1.0.0 runs")]}), "Healthy", "Ready: 1.0.0 runs")]
#[case::waiting(
    json!({}),
    json!({"observedGeneration": 2, "conditions": [condition("Reconciling", "True", "RequirementsNotMet", ""), condition("Ready", "False", "RequirementsNotMet", "waits for cdi")]}),
    "Progressing", "RequirementsNotMet: waits for cdi"
)]
#[case::failed(
    json!({}),
    json!({"observedGeneration": 2, "conditions": [condition("Ready", "False", "UpgradeFailed", "x"), condition("Stalled", "True", "UpgradeFailed", "operator failed")]}),
    "Degraded", "UpgradeFailed: operator failed"
)]
#[case::suspended(json!({"suspend": true}), json!({"observedGeneration": 2, "conditions": [condition("Ready", "True", "Suspended", "")]}), "Suspended", "Suspended")]
#[case::says_nothing(json!({}), json!({"observedGeneration": 2}), "Progressing", "")]
fn a_package_is_as_healthy_as_its_controller_says(
    #[case] spec: Value,
    #[case] status: Value,
    #[case] health_wanted: &str,
    #[case] message: &str,
) {
    let object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
    if let Some(found) = health("health-package.yaml", "windlass.dev_Package", &object) {
        assert_eq!(found, (health_wanted.to_owned(), message.to_owned()));
    }
}

/// An Application that runs what its spec says.
fn application() -> Value {
    let source = json!({"repoURL": "https://charts.example.org", "chart": "a", "targetRevision": "1.1.0", "helm": {"releaseName": "a", "valuesObject": {"list": [1, {"a": true}]}}});
    json!({
        "spec": {"source": source},
        "status": {
            "sync": {"status": "Synced", "comparedTo": {"source": source}},
            "health": {"status": "Healthy"},
            "operationState": {"phase": "Succeeded"},
        },
    })
}

#[rstest]
#[case::runs("/status/health/status", json!("Healthy"), "Healthy")]
#[case::zero_values_mean_nothing("/status/sync/comparedTo/source/path", json!(""), "Healthy")]
#[case::unhealthy("/status/health/status", json!("Degraded"), "Degraded")]
#[case::no_status("/status", json!(null), "Progressing")]
#[case::old_comparison("/status/sync/comparedTo/source/targetRevision", json!("1.0.0"), "Progressing")]
#[case::old_values("/status/sync/comparedTo/source/helm/valuesObject/list/1/a", json!(false), "Progressing")]
#[case::out_of_sync("/status/sync/status", json!("OutOfSync"), "Progressing")]
#[case::running("/status/operationState/phase", json!("Running"), "Progressing")]
#[case::failed("/status/operationState/phase", json!("Failed"), "Degraded")]
#[case::asked_for_again("/operation", json!({"sync": {}}), "Progressing")]
fn an_application_is_judged_by_its_own_spec(#[case] pointer: &str, #[case] value: Value, #[case] wanted: &str) {
    let mut object = application();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value;
    if let Some((status, _)) = health("health-application.yaml", "argoproj.io_Application", &object) {
        assert_eq!(status, wanted);
    }
}

/// Argo CD's other way to apply drops values that are null.
#[rstest]
#[case::packages("packages")]
#[case::native("native")]
fn applications_are_applied_on_the_server(#[case] example: &str) {
    let path = common::root().join(format!("argocd-plugin/examples/{example}.yaml"));
    let options = documents(&path).remove(0)["spec"]["syncPolicy"]["syncOptions"].clone();
    assert!(options.as_array().unwrap().contains(&json!("ServerSideApply=true")), "{options}");
}
