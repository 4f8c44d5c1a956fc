//! The Helm chart renders what `manifests/` holds: its files are copies, its
//! templates only pass them on, and, where there is a helm, what comes out is compared.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{chart_files as files, read_yaml, root, text};
use serde_json::{Value, json};

const NAMESPACE: &str = "windlass-system";

fn chart() -> PathBuf {
    root().join("charts/windlass")
}

fn templates() -> String {
    let entries = fs::read_dir(chart().join("templates")).unwrap();
    entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

fn yaml(path: &str) -> Value {
    read_yaml(&fs::read_to_string(root().join(path)).unwrap()).remove(0)
}

#[test]
fn templates_write_no_object_of_their_own() {
    let own: Vec<String> =
        templates().lines().filter(|line| line.trim_start().starts_with("kind:")).map(str::to_owned).collect();
    assert_eq!(own, Vec::<String>::new());
    for name in files(&chart().join("files")).keys() {
        let (part, file) = name.split_once('/').unwrap();
        let stem = format!("\"{}\"", file.trim_end_matches(".yaml"));
        assert!(templates().contains(name) || templates().contains(&stem), "no template renders {part}/{file}");
    }
}

#[test]
fn what_is_not_set_is_as_in_the_manifests() {
    let (values, chart) = (yaml("charts/windlass/values.yaml"), yaml("charts/windlass/Chart.yaml"));
    let deployment = yaml("manifests/controller/deployment.yaml");
    assert_eq!(values["replicas"], deployment["spec"]["replicas"]);
    let image = format!("{}:{}", text(&values, "/image/repository"), text(&chart, "/appVersion"));
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], image);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((text(&chart, "/version"), text(&chart, "/appVersion")), (version, version));
}

#[test]
fn every_value_is_used_and_known_to_the_schema() {
    let values = yaml("charts/windlass/values.yaml");
    let schema: Value = serde_json::from_str(&fs::read_to_string(chart().join("values.schema.json")).unwrap()).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let mut known = keys(&schema["properties"]);
    // Helm's own: what all charts of a set share.
    assert!(known.remove("global"));
    assert_eq!(keys(&values), known);
    assert_eq!(keys(&values["image"]), keys(&schema["properties"]["image"]["properties"]));
    let text = templates();
    let used = text.split(".Values.").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap());
    assert_eq!(used.map(str::to_owned).collect::<BTreeSet<_>>(), known);
}

/// The helm of the bench, else one that is installed. Said aloud if there is none.
fn helm(test: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("WINDLASS_BENCH_CACHE").map(PathBuf::from).or_else(|| {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
        Some(caches.join("windlass-bench"))
    });
    let built = cache.and_then(|cache| fs::read_dir(cache).ok()).into_iter().flatten();
    let mut built: Vec<PathBuf> =
        built.map(|entry| entry.unwrap().path().join("helm")).filter(|p| p.is_file()).collect();
    built.sort();
    built.pop().or_else(|| common::available(test, "helm", &["version"]).then(|| "helm".into()))
}

fn template(helm: &Path, namespace: &str, values: &Value) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("values.json");
    fs::write(&file, values.to_string()).unwrap();
    Command::new(helm)
        .args(["template", "windlass"])
        .arg(chart())
        .args(["--namespace", namespace, "--values"])
        .arg(file)
        .env("HELM_CACHE_HOME", directory.path())
        .env("HELM_CONFIG_HOME", directory.path())
        .env("HELM_DATA_HOME", directory.path())
        .output()
        .unwrap()
}

type Objects = BTreeMap<(String, String, String), Value>;

fn by_name(objects: Vec<Value>) -> Objects {
    let count = objects.len();
    let key = |object: &Value| {
        let part = |pointer| text(object, pointer).to_owned();
        (part("/kind"), part("/metadata/namespace"), part("/metadata/name"))
    };
    let named: Objects = objects.into_iter().map(|object| (key(&object), object)).collect();
    assert_eq!(named.len(), count, "two objects of one name");
    named
}

fn rendered(helm: &Path, namespace: &str, values: &Value) -> Objects {
    let output = template(helm, namespace, values);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents = read_yaml(&String::from_utf8(output.stdout).unwrap());
    by_name(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// Objects that the kustomizations of the manifests list, or all of a part without one.
fn manifests(parts: &[&str], namespace: &str) -> Objects {
    let mut objects = Vec::new();
    for part in parts {
        let directory = root().join("manifests").join(part);
        let listed = fs::read_to_string(directory.join("kustomization.yaml")).map(|text| {
            let resources = read_yaml(&text).remove(0)["resources"].as_array().unwrap().clone();
            resources.iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        });
        let names = listed.unwrap_or_else(|_| {
            let files = files(&root().join("manifests")).into_keys();
            files.filter_map(|name| Some(name.strip_prefix(&format!("{part}/"))?.to_owned())).collect()
        });
        for name in names {
            let text = fs::read_to_string(directory.join(name)).unwrap();
            objects.extend(read_yaml(&text.replace(NAMESPACE, namespace)));
        }
    }
    by_name(objects)
}

/// What the chart adds to CRDs, so that they outlive the release.
fn without_the_mark(mut objects: Objects) -> Objects {
    for ((kind, ..), object) in &mut objects {
        if kind == "CustomResourceDefinition" {
            let metadata = object["metadata"].as_object_mut().unwrap();
            let annotations = metadata["annotations"].as_object_mut().unwrap();
            assert_eq!(annotations.remove("helm.sh/resource-policy"), Some(json!("keep")));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    objects
}

/// The first place in which two values differ.
fn difference(found: &Value, wanted: &Value, at: &str) -> Option<String> {
    match (found, wanted) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let null = Value::Null;
            let of =
                |map: &'_ serde_json::Map<String, Value>, key: &String| map.get(key).cloned().unwrap_or(null.clone());
            keys.into_iter().find_map(|key| difference(&of(a, key), &of(b, key), &format!("{at}.{key}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.into_iter().find_map(|(index, (a, b))| difference(a, b, &format!("{at}[{index}]")))
        }
        _ => (found != wanted).then(|| format!("{at} is {found}, in the manifests {wanted}")),
    }
}

fn assert_same(found: &Objects, wanted: &Objects) {
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (key, object) in found {
        assert_eq!(difference(object, &wanted[key], ""), None, "{key:?}");
    }
}

#[test]
fn the_chart_renders_the_manifests() {
    let Some(helm) = helm("the_chart_renders_the_manifests") else { return };
    let mut wanted = manifests(&["controller", "crds"], NAMESPACE);
    let namespace = wanted.remove(&("Namespace".into(), String::new(), NAMESPACE.into()));
    assert!(namespace.is_some());
    assert_same(&without_the_mark(rendered(&helm, NAMESPACE, &json!({}))), &wanted);
    let everything = json!({"createNamespace": true, "canaryGuard": true, "monitoring": true});
    let wanted = manifests(&["controller", "crds", "canary", "monitoring"], NAMESPACE);
    assert_same(&without_the_mark(rendered(&helm, NAMESPACE, &everything)), &wanted);
}

#[test]
fn another_namespace_changes_the_namespace_and_the_lease_alone() {
    let Some(helm) = helm("another_namespace_changes_the_namespace_and_the_lease_alone") else { return };
    let mut wanted = manifests(&["controller", "canary", "monitoring"], "upgrades");
    let key = ("Deployment".to_owned(), "upgrades".to_owned(), "windlass".to_owned());
    let args = wanted.get_mut(&key).unwrap().pointer_mut("/spec/template/spec/containers/0/args").unwrap();
    args.as_array_mut().unwrap().push("--lease-namespace=upgrades".into());
    let values = json!({"createNamespace": true, "canaryGuard": true, "monitoring": true, "crds": false});
    assert_same(&rendered(&helm, "upgrades", &values), &wanted);
}

/// Objects of one namespace's tenant: the account's name is the Package author's.
#[test]
fn tenants_get_their_parts() {
    let Some(helm) = helm("tenants_get_their_parts") else { return };
    let tenants = json!([
        {"namespace": "shop", "serviceAccounts": ["web", "db"]},
        {"namespace": "agents", "serviceAccounts": ["packages"], "canary": true},
        {"namespace": "nothing"},
    ]);
    let controller = rendered(&helm, NAMESPACE, &json!({"crds": false}));
    let mut found = rendered(&helm, NAMESPACE, &json!({"crds": false, "tenants": tenants}));
    found.retain(|key, _| !controller.contains_key(key));
    let parts = |names: &[&str]| {
        let texts = names.iter().map(|name| root().join("manifests/tenant").join(format!("{name}.yaml")));
        texts.flat_map(|path| read_yaml(&fs::read_to_string(path).unwrap())).collect::<Vec<_>>()
    };
    let mut wanted = Vec::new();
    for mut object in parts(&["impersonation"]) {
        object["metadata"]["namespace"] = "shop".into();
        if let Some(names) = object.pointer_mut("/rules/0/resourceNames") {
            *names = json!(["web", "db"]);
        }
        wanted.push(object);
    }
    for mut object in parts(&["impersonation", "canary"]) {
        object["metadata"]["namespace"] = "agents".into();
        wanted.push(object);
    }
    assert_same(&found, &by_name(wanted));
}

#[test]
fn values_reach_the_controller() {
    let Some(helm) = helm("values_reach_the_controller") else { return };
    let values = json!({
        "image": {"repository": "registry.example.org/windlass", "tag": "1.2.3", "pullSecrets": [{"name": "pull"}]},
        "replicas": 3, "args": ["--engine=flux"], "watchNamespace": "packages",
        "resources": {"requests": {"cpu": "1"}},
    });
    let found = rendered(&helm, NAMESPACE, &values);
    let deployment = &found[&("Deployment".into(), NAMESPACE.into(), "windlass".into())];
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(deployment["spec"]["replicas"], 3);
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.example.org/windlass:1.2.3");
    assert_eq!(container["args"], json!(["controller", "--log-json", "--watch-namespace=packages", "--engine=flux"]));
    assert_eq!(container["resources"], json!({"requests": {"cpu": "1"}}));
}

#[test]
fn a_value_that_there_is_not_is_refused() {
    let Some(helm) = helm("a_value_that_there_is_not_is_refused") else { return };
    let output = template(&helm, NAMESPACE, &json!({"replica": 3}));
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("replica"), "{output:?}");
}
