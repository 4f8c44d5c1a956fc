//! `docs/quickstart-*.md`: what commands print is what they print of the same
//! steps on the simulated cluster, and files are there.

use std::path::Path;

use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass::api::{Engine, Package, PackageRevision};
use windlass::package::load::{Input, NamespaceRule, load};
use windlass::package::names::Namespace;
use windlass::rehearse::play::{Played, play};
use windlass::rehearse::scene::{self, FailAt, Failure, Scene};
use windlass::report::workloads::Workload;
use windlass::report::{history, status, why};
use windlass::translate::Compiled;

use crate::common::{read_yaml, root};
use crate::markdown::fences;

const FLUX: &str = include_str!("../../docs/quickstart-flux.md");
const ARGO: &str = include_str!("../../docs/quickstart-argocd.md");

fn compiled(file: &str, engine: Engine, commit: u32) -> Vec<Compiled> {
    let bytes = std::fs::read(root().join("examples/database").join(file)).unwrap();
    let rule = NamespaceRule::Default(Namespace::parse("packages").unwrap());
    let loaded = load(&[Input::Text { bytes, shown: Path::new(file).display().to_string() }], &rule).unwrap();
    scene::read(loaded.packages, engine, commit).unwrap()
}

/// A commit of the second file where the first runs; a component may fail.
fn committed(engine: Engine, before: Option<&str>, after: &str, fails: Option<&str>) -> Played {
    let before = before.map(|file| compiled(file, engine, 1)).unwrap_or_default();
    let mut scene = Scene { before, after: compiled(after, engine, 2), ..Scene::default() };
    if let Some(name) = fails {
        scene.failures.push(Failure { place: scene.find(name).unwrap(), at: FailAt::Workload });
    }
    play(&scene)
}

fn objects<T: DeserializeOwned>(played: &Played, kind: &str) -> Vec<T> {
    let listed = played.rehearsal.world.store.list(kind);
    listed.map(|(_, object)| serde_json::from_value(Value::Object(object.as_ref().clone())).unwrap()).collect()
}

/// What the commands print at the end; revisions of earlier steps are counted on.
fn printed(played: &Played, earlier: u64) -> Vec<String> {
    let now = played.rehearsal.world.timestamp();
    let package: Package = objects(played, "Package").remove(0);
    let revisions: Vec<PackageRevision> = objects(played, "PackageRevision");
    let children = ["HelmRelease", "Application"].into_iter().flat_map(|kind| objects(played, kind)).collect();
    let key = ("packages".to_owned(), "shop".to_owned());
    let workloads = vec![unschedulable(played)];
    let found =
        why::Found { packages: [(key.clone(), package.clone())].into(), children, workloads, ..why::Found::default() };
    let texts = [
        status::detail(&package, revisions.last(), now),
        status::list(std::slice::from_ref(&package), status::Columns::default(), now),
        why::write(&key, &found, now),
        history::write(&package, &revisions, false, now),
    ];
    texts.map(|text| (1..=2).rev().fold(text, |text, number| counted_on(&text, number, earlier))).to_vec()
}

/// What the scheduler says of the pods of the broken version: nothing simulated has pods.
fn unschedulable(played: &Played) -> Workload {
    let kind = if objects::<Value>(played, "Application").is_empty() { "HelmRelease" } else { "Application" };
    let object = json!({
        "kind": "Deployment", "metadata": {"name": "shop-api", "namespace": "shop", "generation": 2}, "spec": {"replicas": 2},
        "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "availableReplicas": 2},
    });
    let scheduled = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    });
    let pod = json!({"metadata": {"name": "shop-api-59d7b8f6c4-k2x9w"}, "status": {"phase": "Pending", "conditions": [scheduled]}});
    let map = |value: Value| value.as_object().cloned().unwrap();
    Workload { child: format!("{kind}/shop-api"), object: map(object), pods: vec![map(pod)], ..Workload::default() }
}

fn counted_on(text: &str, number: u64, earlier: u64) -> String {
    text.replace(&format!("revision {number}"), &format!("revision {}", number + earlier))
}

/// Words in their lines. How long something took depends on the cluster.
fn without_ages(text: &str) -> Vec<Vec<&str>> {
    let is_age = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.ends_with(['s', 'm', 'h'])
            && word.chars().all(|c| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h' | '.'))
    };
    let words = |line| str::split_whitespace(line).map(|word| if is_age(word) { "age" } else { word }).collect();
    text.trim_end().lines().map(words).collect()
}

#[rstest]
#[case::flux(FLUX, Engine::Flux)]
#[case::argo_cd(ARGO, Engine::Argo)]
fn quick_starts_show_what_commands_print(#[case] document: &str, #[case] engine: Engine) {
    let steps = [
        (committed(engine, None, "v1/package.yaml", None), 0),
        (committed(engine, Some("v1/package.yaml"), "v2/package.yaml", None), 0),
        (committed(engine, Some("v2/package.yaml"), "broken.yaml", Some("api")), 1),
    ];
    let all: Vec<String> = steps.iter().flat_map(|(played, earlier)| printed(played, *earlier)).collect();
    let mut shown = 0;
    for fence in fences(document, "text") {
        let Some((command, output)) = fence.strip_prefix("$ windlass ").and_then(|rest| rest.split_once('\n')) else {
            continue;
        };
        let is_printed = all.iter().any(|text| without_ages(text) == without_ages(output));
        assert!(is_printed, "`windlass {command}` prints one of\n{}", all.join("----\n"));
        shown += 1;
    }
    assert!(shown >= 4, "{shown}");
}

#[rstest]
#[case::flux(FLUX)]
#[case::argo_cd(ARGO)]
fn files_of_quick_starts_are_there(#[case] document: &str) {
    const ROOTS: [&str; 5] = ["manifests/", "examples/", "flux/", "argocd", "argocd-plugin/"];
    let words = fences(document, "text")
        .into_iter()
        .flat_map(str::lines)
        .filter(|line| ["kubectl apply", "cp ", "sed "].iter().any(|command| line.starts_with(command)));
    let files: Vec<_> =
        words.flat_map(str::split_whitespace).filter(|word| ROOTS.iter().any(|root| word.starts_with(root))).collect();
    assert!(files.len() >= 7, "{files:?}");
    let absent: Vec<_> = files.iter().filter(|file| !root().join(file).exists()).collect();
    assert!(absent.is_empty(), "{absent:?}");
}

/// The quick start on Flux cuts the file off where its dependency begins.
#[test]
fn what_flux_is_given_depends_on_nothing() {
    let text = std::fs::read_to_string(root().join("flux/packages.yaml")).unwrap();
    let (kept, cut) = text.split_once("  dependsOn:\n").unwrap();
    assert!(cut.lines().all(|line| line.starts_with("  - ") || line.starts_with("    ")), "{cut}");
    let kinds: Vec<String> = read_yaml(kept).iter().map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["Namespace", "GitRepository", "Kustomization"]);
}

/// Argo CD looks where the quick start puts the Packages, and the plugin is there.
#[test]
fn argo_cd_is_made_for_the_quick_start() {
    let text = std::fs::read_to_string(root().join("argocd/kustomization.yaml")).unwrap();
    let kustomization = read_yaml(&text).remove(0);
    assert_eq!(kustomization["components"][0], "../argocd-plugin");
    let patch = read_yaml(kustomization["patches"][0]["patch"].as_str().unwrap()).remove(0);
    let application = std::fs::read_to_string(root().join("argocd-plugin/examples/packages.yaml")).unwrap();
    let application = read_yaml(&application).remove(0);
    assert_eq!(patch["data"]["application.namespaces"], application["spec"]["destination"]["namespace"]);
}
