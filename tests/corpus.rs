//! Real package graphs: imported, checked, translated for both engines, with
//! every edge kept. The edges are read from the corpus by this test itself.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rstest::rstest;
use serde_json::Value;
use windlass::api::{Engine, Package};
use windlass::engine::Manifest;
use windlass::package::yaml;
use windlass::translate::{Options, Translation, managed, native};

use common::read_back::definitions;
use common::{read_yaml, read_yaml_1_1, text};

/// The corpus directory of a version, or a return from a test that is skipped aloud.
macro_rules! corpus_or_skip {
    ($version:expr) => {
        match common::corpus(&format!("{} ({})", module_path!(), $version)) {
            Some(corpus) => corpus.join("cozystack").join($version),
            None => return,
        }
    };
}

/// A component of a Package.
type Node = (String, String);

/// What the corpus wants in order, read without any code of Windlass.
#[derive(Default)]
struct Wanted {
    /// Components that are installed, by package; groups have none.
    components: BTreeMap<String, Vec<String>>,
    /// Packages that come first.
    requires: BTreeMap<String, Vec<String>>,
    /// Components of the same package that come first.
    depends_on: BTreeMap<Node, Vec<String>>,
}

impl Wanted {
    fn read(directory: &Path, variants: &[(&str, &str)]) -> Self {
        let mut wanted = Self::default();
        for entry in fs::read_dir(directory).unwrap() {
            for source in read_yaml(&fs::read_to_string(entry.unwrap().path()).unwrap()) {
                wanted.add(&source, variants);
            }
        }
        wanted
    }

    fn add(&mut self, source: &Value, variants: &[(&str, &str)]) {
        let name = text(source, "/metadata/name");
        let all = source["spec"]["variants"].as_array().unwrap();
        let asked = variants.iter().find(|(package, _)| *package == name).map_or("default", |(_, variant)| variant);
        let variant = all.iter().find(|variant| variant["name"] == asked).unwrap_or(&all[0]);
        self.requires.insert(name.to_owned(), strings(&variant["dependsOn"]));
        let components = variant["components"].as_array().cloned().unwrap_or_default();
        let installed: Vec<_> = components.iter().filter(|component| component["install"].is_object()).collect();
        let names: Vec<String> = installed.iter().map(|component| text(component, "/name").to_owned()).collect();
        for component in installed {
            let edges = strings(&component["install"]["dependsOn"]);
            let kept = edges.into_iter().filter(|edge| names.contains(edge)).collect();
            self.depends_on.insert((name.to_owned(), text(component, "/name").to_owned()), kept);
        }
        self.components.insert(name.to_owned(), names);
    }

    /// Components of the packages that `package` requires; through groups too.
    fn required(&self, package: &str) -> BTreeSet<Node> {
        let mut found = BTreeSet::new();
        for required in &self.requires[package] {
            let Some(components) = self.components.get(required) else { continue };
            if components.is_empty() {
                found.extend(self.required(required));
            }
            found.extend(components.iter().map(|component| (required.clone(), component.clone())));
        }
        found
    }

    /// Every pair `(first, then)`.
    fn edges(&self) -> Vec<(Node, Node)> {
        let mut edges = Vec::new();
        for (package, components) in &self.components {
            for component in components {
                let then = (package.clone(), component.clone());
                let same = self.depends_on[&then].iter().map(|edge| (package.clone(), edge.clone()));
                edges.extend(same.chain(self.required(package)).map(|first| (first, then.clone())));
            }
        }
        edges
    }
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Imports a version by the binary, checks it for an engine and reads it back.
fn import(directory: &Path, version: &str, variants: &[(&str, &str)], out: &Path) -> Vec<Package> {
    let mut arguments = vec!["import".to_owned(), "cozystack".to_owned(), directory.display().to_string()];
    arguments.extend(["--version".to_owned(), version.to_owned(), "-o".to_owned(), out.display().to_string()]);
    arguments.extend(variants.iter().flat_map(|(package, name)| ["--variant".to_owned(), format!("{package}={name}")]));
    common::printed(&arguments);
    let mut packages = Vec::new();
    let mut files: Vec<_> = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let documents = yaml::parse(&fs::read_to_string(file).unwrap());
        assert_eq!(documents.problems, []);
        packages.extend(documents.documents.iter().map(|node| serde_json::from_value(node.to_value()).unwrap()));
    }
    packages
}

/// The releases of a stream, in order, and what each is called.
struct Releases<'a>(Vec<(Node, &'a Manifest)>);

impl<'a> Releases<'a> {
    fn of(translation: &'a Translation) -> Self {
        let is_release = |object: &&Manifest| ["HelmRelease", "Application"].contains(&object.kind());
        let label = |object: &Manifest, label: &str| {
            object.get(&["metadata", "labels", label]).and_then(Value::as_str).unwrap().to_owned()
        };
        let named =
            translation.objects.iter().filter(is_release).map(|object| {
                ((label(object, "windlass.dev/package"), label(object, "windlass.dev/component")), object)
            });
        Self(named.collect())
    }

    fn position(&self, node: &Node) -> usize {
        self.0.iter().position(|(known, _)| known == node).unwrap_or_else(|| panic!("{node:?} is not in the stream"))
    }

    fn wave(&self, node: &Node) -> i64 {
        let annotation = ["metadata", "annotations", "argocd.argoproj.io/sync-wave"];
        let wave = self.0[self.position(node)].1.get(&annotation).and_then(Value::as_str);
        wave.map_or(0, |wave| wave.parse().unwrap())
    }

    /// Everything that a HelmRelease waits for, directly or through others.
    fn closure(&self) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
        let edges = |object: &'a Manifest| {
            let edges = object.get(&["spec", "dependsOn"]).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            edges.iter().map(|edge| text(edge, "/name")).collect::<Vec<_>>()
        };
        let direct: BTreeMap<&str, Vec<&str>> =
            self.0.iter().map(|(_, object)| (object.name(), edges(object))).collect();
        let reach = |from: &'a str| {
            let (mut seen, mut open) = (BTreeSet::new(), direct[from].clone());
            while let Some(next) = open.pop() {
                if seen.insert(next) {
                    open.extend(&direct[next]);
                }
            }
            seen
        };
        self.0.iter().map(|(_, object)| (object.name(), reach(object.name()))).collect()
    }
}

fn check_order(wanted: &Wanted, releases: &Releases<'_>) {
    let all: usize = wanted.components.values().map(Vec::len).sum();
    assert_eq!(releases.0.len(), all);
    for (first, then) in wanted.edges() {
        assert!(releases.position(&first) < releases.position(&then), "{first:?} stands behind {then:?}");
    }
}

#[rstest]
#[case("v1.5.0", 96, 106)]
#[case("v1.6.2", 98, 109)]
fn the_corpus_imports_whole_and_validates(#[case] version: &str, #[case] packages: usize, #[case] components: usize) {
    let directory = corpus_or_skip!(version);
    let out = tempfile::tempdir().unwrap();
    let imported = import(&directory, version, &[], out.path());
    assert_eq!(imported.len(), packages);
    assert_eq!(imported.iter().map(|package| package.spec.components.len()).sum::<usize>(), components);
    for engine in ["flux", "argo"] {
        let report =
            common::printed(["validate", out.path().to_str().unwrap(), "--engine", engine, "--format", "json"]);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["summary"]["errors"], 0, "{engine}: {report}");
    }
}

#[rstest]
fn every_edge_is_kept(
    #[values("v1.5.0", "v1.6.2")] version: &str,
    #[values("noop", "cilium-kilo", "kubeovn-cilium")] networking: &str,
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
) {
    let directory = corpus_or_skip!(version);
    let out = tempfile::tempdir().unwrap();
    let variants = [("cozystack.networking", networking)];
    let wanted = Wanted::read(&directory, &variants);
    let packages = definitions(&import(&directory, version, &variants, out.path()));
    let options = Options::for_engine(Some(engine));
    check_order(&wanted, &Releases::of(&managed(&packages, &options).unwrap()));
    let translation = native(&packages, &options).unwrap();
    let releases = Releases::of(&translation);
    check_order(&wanted, &releases);
    let edges = wanted.edges();
    assert!(edges.len() > 200, "the corpus has more than {} edges", edges.len());
    match engine {
        Engine::Flux => {
            let closure = releases.closure();
            let name = |node: &Node| releases.0[releases.position(node)].1.name();
            for (first, then) in &edges {
                assert!(closure[name(then)].contains(name(first)), "{then:?} does not wait for {first:?}");
            }
        }
        Engine::Argo => {
            for (first, then) in &edges {
                assert!(releases.wave(first) < releases.wave(then), "{then:?} is in no later wave than {first:?}");
            }
        }
    }
}

#[rstest]
fn what_is_rendered_reads_back_as_meant(
    #[values("v1.5.0", "v1.6.2")] version: &str,
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
) {
    let directory = corpus_or_skip!(version);
    if !common::available(module_path!(), "python3", &["-c", "import yaml"]) {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let imported = import(&directory, version, &[], out.path());
    let from = directory.to_str().unwrap();
    let mut stream = read_yaml_1_1(&common::printed(["import", "cozystack", from, "--version", version]));
    stream.sort_by_key(|package| text(package, "/metadata/name").to_owned() + ".yaml");
    let meant: Vec<Value> = imported.iter().map(|package| serde_json::to_value(package).unwrap()).collect();
    assert_eq!(stream, meant);
    let compared = common::read_back::check(out.path().to_str().unwrap(), &imported, engine);
    assert!(compared > 200, "{compared} objects");
}

/// The whole corpus, installed and then upgraded by the real decisions on a
/// simulated cluster: every package gets there, and no component moves before
/// what it needs is verified.
#[rstest]
fn the_corpus_is_installed_and_upgraded_in_order(#[values("flux", "argo")] engine: &str) {
    let (old, new) = (corpus_or_skip!("v1.5.0"), corpus_or_skip!("v1.6.2"));
    let out = tempfile::tempdir().unwrap();
    let [before, after] = ["v1.5.0", "v1.6.2"].map(|version| out.path().join(version));
    import(&old, "v1.5.0", &[], &before);
    assert_eq!(import(&new, "v1.6.2", &[], &after).len(), 98);
    let begun = std::time::Instant::now();
    let report = common::printed([
        "rehearse".as_ref(),
        after.as_os_str(),
        "--from".as_ref(),
        before.as_os_str(),
        "--engine".as_ref(),
        engine.as_ref(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    common::say(&format!("rehearsed the corpus on {engine} in {:.1} s", begun.elapsed().as_secs_f64()));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["before"].as_array().unwrap().len(), 96);
    let packages = report["packages"].as_array().unwrap();
    assert_eq!(packages.iter().filter(|package| package["ready"] == true && package["version"] == "1.6.2").count(), 98);
    let events = report["events"].as_array().unwrap();
    let of = |event: &Value| (text(event, "/package").to_owned(), text(event, "/component").to_owned());
    let positions = |name: &str| -> BTreeMap<Node, usize> {
        let named = events.iter().enumerate().filter(|(_, event)| event["event"] == name);
        named.map(|(position, event)| (of(event), position)).collect()
    };
    let (moved, verified) = (positions("moves"), positions("verified"));
    assert_eq!(moved.len(), 109, "every component moves once");
    for (first, then) in Wanted::read(&new, &[]).edges() {
        assert!(verified[&first] < moved[&then], "{then:?} moves before {first:?} is verified");
    }
}
