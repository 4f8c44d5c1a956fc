//! What the API server refuses, `windlass validate` refuses as well, and the other way round
//! wherever the CRD has a rule.

use std::collections::BTreeSet;
use std::path::Path;

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::documents;
use crate::support::tools::repository;
use crate::support::windlass as program;

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");

const TABLE: &str = include_str!("../data/packages/admission.yaml");

/// One entry of the table.
struct Case {
    name: String,
    /// Part of what the API server says; none: it is accepted.
    refused: Option<String>,
    package: Value,
}

fn cases() -> Vec<Case> {
    let entries = documents(TABLE);
    let case = |entry: &Value| {
        let name = entry["case"].as_str().expect("case").to_owned();
        let package = json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1,
            "metadata": {"name": entry["name"].as_str().unwrap_or("it"), "namespace": "default"},
            "spec": entry["spec"],
        });
        Case { name, refused: entry["refused"].as_str().map(str::to_owned), package }
    };
    entries.iter().map(case).collect()
}

pub async fn bad_packages_are_refused_alike_online_and_offline(bench: &Bench) {
    bench.own_crds().await;
    let api = bench.cluster().await.dynamic(PACKAGE.0, PACKAGE.1, "default").await;
    let directory = tempfile::tempdir().expect("a directory");
    let cases = cases();
    let mut wrong = Vec::new();
    for Case { name, refused, package } in &cases {
        let object: DynamicObject = serde_json::from_value(package.clone()).expect("an object");
        let online = api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await;
        match (&online, refused) {
            (Ok(_), None) => (),
            (Err(kube::Error::Api(status)), Some(part)) if status.code == 422 && status.message.contains(part) => (),
            _ => wrong.push(format!("{name}: the API server says {online:?}")),
        }
        let file = directory.path().join("package.yaml");
        std::fs::write(&file, package.to_string()).expect("a file");
        let (accepted, said) = offline(&file);
        if accepted == refused.is_some() {
            wrong.push(format!("{name}: offline it is {accepted}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let tried: Vec<&str> = cases.iter().filter_map(|case| case.refused.as_deref()).collect();
    let rules = rules();
    let untried: Vec<_> = rules.iter().filter(|rule| !tried.contains(&rule.as_str())).collect();
    assert!(untried.is_empty(), "no case for {untried:#?}");
}

fn offline(file: &Path) -> (bool, String) {
    let run = program::run([Path::new("validate"), file]);
    (run.success, run.stdout + &run.stderr)
}

/// The messages of all rules on a Package that a first version can break.
fn rules() -> BTreeSet<String> {
    let path = repository().join("manifests/crds/windlass.dev.yaml");
    let crds = documents(&std::fs::read_to_string(path).expect("the CRDs"));
    let mut schema = crds[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    schema["properties"].as_object_mut().expect("properties").remove("status");
    let mut rules = BTreeSet::new();
    collect_rules(&schema, &mut rules);
    assert!(rules.len() >= 15, "{rules:?}");
    rules
}

fn collect_rules(schema: &Value, rules: &mut BTreeSet<String>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        if !rule["rule"].as_str().expect("a rule").contains("oldSelf") {
            rules.insert(rule["message"].as_str().expect("a message").to_owned());
        }
    }
    for (_, inner) in schema["properties"].as_object().into_iter().flatten() {
        collect_rules(inner, rules);
    }
    if schema["items"].is_object() {
        collect_rules(&schema["items"], rules);
    }
}

/// Rules on what may change need something to change.
pub async fn what_is_fixed_cannot_be_changed(bench: &Bench) {
    bench.own_crds().await;
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("fixed").await;
    let package = |engine: Value| {
        json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": "it"},
            "spec": {"version": "1.0.0", "engine": engine},
        })
    };
    cluster.apply(&namespace, package(json!("flux"))).await;
    for other in [json!("argo"), Value::Null] {
        let api = cluster.dynamic(PACKAGE.0, PACKAGE.1, &namespace).await;
        let patch = kube::api::Patch::Merge(json!({"spec": {"engine": other}}));
        let error = api.patch("it", &Default::default(), &patch).await.expect_err("another engine").to_string();
        assert!(error.contains("engine cannot be changed once it is set"), "{error}");
    }
    let revision = |version: &str| {
        json!({
            "apiVersion": PACKAGE.0, "kind": "PackageRevision", "metadata": {"name": "it-1"},
            "spec": {
                "package": "it", "number": 1, "version": version, "timeout": "10m", "retries": 2, "engine": "flux",
            },
        })
    };
    cluster.apply(&namespace, revision("1.0.0")).await;
    let error = cluster.try_apply(&namespace, revision("1.0.1")).await.expect_err("another version").to_string();
    assert!(error.contains("a PackageRevision is never changed"), "{error}");
}
