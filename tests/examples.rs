//! The examples are what they say: valid, translatable, with charts of one
//! content per version.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use windlass::api::{Engine, Package};

use common::read_back::{COMMIT, REPOSITORY};
use common::{read_yaml, read_yaml_1_1, root, text};

const ENGINES: [&str; 2] = ["flux", "argo"];

/// `examples/<name>/v1` and `v2`, all of them.
fn states() -> Vec<PathBuf> {
    let mut states = Vec::new();
    for example in directories(&root().join("examples")) {
        let versions = directories(&example);
        let names: Vec<_> = versions.iter().map(|version| version.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["v1", "v2"], "{}", example.display());
        states.extend(versions);
    }
    assert!(states.len() >= 8, "there are four examples in two versions: {states:?}");
    states
}

fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
}

/// Package files of a state: all YAML outside of `charts/`.
fn packages(state: &Path) -> Vec<Value> {
    let mut files = vec![state.join("package.yaml")];
    if state.join("packages").is_dir() {
        let entries = fs::read_dir(state.join("packages")).unwrap();
        files = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
    }
    files.iter().flat_map(|file| read_yaml(&fs::read_to_string(file).unwrap())).collect()
}

fn components(packages: &[Value]) -> Vec<Value> {
    packages.iter().filter_map(|package| package["spec"]["components"].as_array().cloned()).flatten().collect()
}

fn charts(state: &Path) -> Vec<PathBuf> {
    directories(&state.join("charts"))
}

fn chart_yaml(chart: &Path) -> Value {
    read_yaml(&fs::read_to_string(chart.join("Chart.yaml")).unwrap()).remove(0)
}

fn contents(directory: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let (path, inner) = {
            let entry = entry.unwrap();
            (entry.path(), below.join(entry.file_name()))
        };
        if path.is_dir() {
            contents(&path, &inner, found);
        } else {
            found.insert(inner, fs::read(&path).unwrap());
        }
    }
}

#[test]
fn examples_have_no_findings() {
    for state in states() {
        let path = state.to_str().unwrap();
        for engine in ENGINES {
            let output =
                common::windlass(["validate", path, "--engine", engine, "--chart-root", path, "--deny-warnings"]);
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{path} on {engine}:\n{said}");
        }
    }
}

#[test]
fn every_component_has_its_chart_beside_it() {
    for state in states() {
        for component in components(&packages(&state)) {
            let (directory, version) = match component["path"].as_str() {
                Some(path) => (state.join(path), text(&component, "/chartVersion")),
                None => {
                    (state.join("charts").join(text(&component, "/chart/name")), text(&component, "/chart/version"))
                }
            };
            let chart = chart_yaml(&directory);
            assert_eq!(text(&chart, "/version"), version, "{}", directory.display());
            assert_eq!(Some(text(&chart, "/name")), directory.file_name().unwrap().to_str());
        }
    }
}

#[test]
fn one_version_of_a_chart_has_one_content() {
    let mut known: BTreeMap<(String, String), BTreeMap<PathBuf, Vec<u8>>> = BTreeMap::new();
    for chart in states().iter().flat_map(|state| charts(state)) {
        let about = chart_yaml(&chart);
        let mut content = BTreeMap::new();
        contents(&chart, Path::new(""), &mut content);
        let key = (text(&about, "/name").to_owned(), text(&about, "/version").to_owned());
        let first = known.entry(key).or_insert_with(|| content.clone());
        assert!(*first == content, "{} has the version of another content", chart.display());
    }
}

#[test]
fn charts_render() {
    if !common::available("charts_render", "helm", &["version"]) {
        return;
    }
    for chart in states().iter().flat_map(|state| charts(state)) {
        let path = chart.to_str().unwrap();
        let output = Command::new("helm").args(["template", "example", path, "--include-crds"]).output().unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        let objects = read_yaml(&String::from_utf8(output.stdout).unwrap());
        assert!(objects.iter().any(|object| object["kind"].is_string()), "{path} renders nothing");
    }
}

fn rendered(state: &Path, engine: &str, mode: &str) -> String {
    let source = ["--repo-url", REPOSITORY, "--revision", COMMIT];
    let mut arguments = vec!["render", state.to_str().unwrap(), "--engine", engine, "--mode", mode];
    arguments.extend(source);
    arguments.extend(["--chart-root", state.to_str().unwrap()]);
    if mode == "native" {
        arguments.push("--skip-hooks");
    }
    common::printed(arguments)
}

/// What was rendered carries what the author wrote: both are read by PyYAML,
/// and compared field by field.
#[test]
fn releases_carry_what_the_author_wrote() {
    if !common::available("releases_carry_what_the_author_wrote", "python3", &["-c", "import yaml"]) {
        return;
    }
    for state in states() {
        for (engine, mode) in ENGINES.iter().flat_map(|engine| ["managed", "native"].map(|mode| (engine, mode))) {
            let stream = rendered(&state, engine, mode);
            assert_eq!(stream, rendered(&state, engine, mode), "the same input gives the same bytes");
            let objects = read_yaml_1_1(&stream);
            for package in packages(&state) {
                for component in components(std::slice::from_ref(&package)) {
                    if component["install"]["phase"].is_null() {
                        check_release(&objects, &package, &component, engine);
                    }
                }
            }
        }
    }
}

fn check_release(objects: &[Value], package: &Value, component: &Value, engine: &str) {
    let (name, of) = (text(component, "/name"), text(package, "/metadata/name"));
    let kind = if engine == "flux" { "HelmRelease" } else { "Application" };
    let ours: Vec<_> = objects
        .iter()
        .filter(|object| {
            let labels = &object["metadata"]["labels"];
            object["kind"] == kind && labels["windlass.dev/package"] == of && labels["windlass.dev/component"] == name
        })
        .collect();
    let [release] = ours[..] else { panic!("{of}/{name} has {} releases", ours.len()) };
    let namespace = component["install"]["namespace"].as_str().unwrap_or(text(package, "/metadata/namespace"));
    let release_name = component["install"]["releaseName"].as_str().unwrap_or(name);
    let none = Value::Object(serde_json::Map::new());
    let values = component.get("values").unwrap_or(&none);
    if engine == "flux" {
        assert_eq!(text(release, "/spec/targetNamespace"), namespace);
        assert_eq!(text(release, "/spec/releaseName"), release_name);
        assert_eq!(release["spec"].get("values").unwrap_or(&none), values, "{of}/{name}");
    } else {
        assert_eq!(text(release, "/spec/destination/namespace"), namespace);
        let source = &release["spec"]["source"];
        assert_eq!(
            source["helm"]["valuesObject"].as_object().map_or(&none, |_| &source["helm"]["valuesObject"]),
            values
        );
        let helm_name = source["helm"]["releaseName"].as_str().unwrap_or(text(release, "/metadata/name"));
        assert_eq!(helm_name, release_name);
        if component["chart"].is_object() {
            assert_eq!(text(source, "/targetRevision"), text(component, "/chart/version"));
            assert_eq!(text(source, "/repoURL"), text(component, "/chart/repository"));
            assert_eq!(text(source, "/chart"), text(component, "/chart/name"));
        } else {
            assert_eq!(text(source, "/targetRevision"), COMMIT);
            assert_eq!(text(source, "/path"), text(component, "/path"));
        }
    }
}

/// Field by field, whole objects, to a reader that knows nothing of ours.
#[test]
fn what_is_rendered_reads_back_as_meant() {
    if !common::available("what_is_rendered_reads_back_as_meant", "python3", &["-c", "import yaml"]) {
        return;
    }
    for state in states() {
        let typed = |package: &Value| serde_json::from_value::<Package>(package.clone()).unwrap();
        let packages: Vec<Package> = packages(&state).iter().map(typed).collect();
        for engine in [Engine::Flux, Engine::Argo] {
            assert!(common::read_back::check(state.to_str().unwrap(), &packages, engine) > 0);
        }
    }
}
