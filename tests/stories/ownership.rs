//! Releases that change hands.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script};
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, at, component, package, package_key};

pub(crate) fn named(name: &str, release: &str, version: &str, depends_on: &[&str]) -> Value {
    let mut component = component(name, version, depends_on);
    component["chart"]["name"] = json!("web");
    component["install"]["releaseName"] = json!(release);
    component
}

pub(crate) fn uid(play: &Play, release: &str) -> String {
    play.deployment(NAMESPACE, release).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn deleted(play: &Play, position: usize) -> Vec<&Key> {
    play.changes_since(position)
        .filter(|change| change.verb == Verb::Deleted && change.key.kind == "Deployment")
        .map(|change| change.key.as_ref())
        .collect()
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_renamed_component_is_handed_over_and_not_uninstalled(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", package("1.0.0", vec![named("old", "web", "1.0.0", &[])]));
    play.until_ready("app");
    let (before, position) = (uid(&play, "web"), play.position());
    play.commit("app", package("2.0.0", vec![named("new", "web", "2.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.run_for(600_000);
    assert_eq!(uid(&play, "web"), before);
    assert_eq!(deleted(&play, position), Vec::<&Key>::new());
    assert_eq!(play.runs("web").as_deref(), Some("2.0.0"));
    assert!(play.object(&play.child("app", "old")).is_none());
}

/// One commit holds the Package under another name: the new one is applied, then
/// the old one is pruned.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_renamed_package_hands_its_releases_over(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let components = || vec![named("a", "web-a", "1.0.0", &[]), named("b", "web-b", "1.0.0", &["a"])];
    play.commit("old", package("1.0.0", components()));
    play.until_ready("old");
    let (before, position) = ((uid(&play, "web-a"), uid(&play, "web-b")), play.position());
    play.commit("new", package("1.0.0", components()));
    play.until("new", "Conflict");
    play.delete("old");
    play.until_gone("old");
    play.until_ready("new");
    play.rehearsal.run_for(600_000);
    assert_eq!((uid(&play, "web-a"), uid(&play, "web-b")), before);
    assert_eq!(deleted(&play, position), Vec::<&Key>::new());
}

/// Its old owner prunes it, its new owner applies it while it is going: what is
/// left of it stays.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_that_moves_between_directories_is_orphaned_and_taken_up_again(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let owned = |owner: &str| {
        let label =
            json!({"kustomize.toolkit.fluxcd.io/name": owner, "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
        json!({"metadata": {"labels": label}})
    };
    let spec = || package("1.0.0", vec![component("a", "1.0.0", &[]), component("b", "1.0.0", &["a"])]);
    play.commit("app", spec());
    play.patch(&package_key("app"), owned("first"));
    play.until_ready("app");
    let before = uid(&play, "a");
    play.delete("app");
    let noticed = play.rehearsal.run_until(10_000, |rehearsal| {
        rehearsal
            .world
            .store
            .list("PackageRevision")
            .any(|(_, revision)| at(revision, "/status").get("deletion").is_some())
    });
    assert!(noticed);
    play.patch(&package_key("app"), owned("second"));
    play.until_gone("app");
    assert!(play.object(&play.child("app", "a")).is_some());
    play.commit("app", spec());
    play.patch(&package_key("app"), owned("second"));
    play.until_ready("app");
    assert_eq!(uid(&play, "a"), before);
    let newest = play.rehearsal.world.store.list("PackageRevision").count();
    assert!(newest >= 1);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_object_of_a_childs_name_that_is_not_ours_is_left_alone(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let key = play.child("app", "a");
    play.apply(&json!({
        "apiVersion": key.api_version, "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace}, "spec": {"suspend": true},
    }));
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until("app", "Conflict");
    assert_eq!(play.status("app").blocked_by[0].name, "app-a");
    assert_eq!(play.moves_since(0), Vec::<String>::new());
}

/// Children are shown below the Application that applied the Package. Argo CD
/// takes an id that does not name the very object for a copied one.
#[rstest]
#[case::flux(Engine::Flux, "helm.toolkit.fluxcd.io/HelmRelease")]
#[case::argo(Engine::Argo, "argoproj.io/Application")]
fn children_are_tracked_by_the_application_that_applied_the_package(#[case] engine: Engine, #[case] kind: &str) {
    let mut play = Play::new(engine, Script::default());
    let tracked = |play: &mut Play, application: &str| {
        let id = format!("{application}:windlass.dev/Package:{NAMESPACE}/app");
        play.annotate("app", "argocd.argoproj.io/tracking-id", &id);
    };
    let annotation =
        |play: &Play, key: &str| play.object(&play.child("app", "a")).unwrap()["metadata"]["annotations"][key].clone();
    play.commit("app", package("1.0.0", Vec::new()));
    tracked(&mut play, "parent");
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    let options = match engine {
        Engine::Flux => json!("IgnoreExtraneous"),
        Engine::Argo => json!("IgnoreExtraneous,ServerSideDiff=true"),
    };
    let id = |application: &str| json!(format!("{application}:{kind}:{NAMESPACE}/app-a"));
    assert_eq!(annotation(&play, "argocd.argoproj.io/tracking-id"), id("parent"));
    assert_eq!(annotation(&play, "argocd.argoproj.io/sync-options"), json!("Prune=false,Delete=false"));
    assert_eq!(annotation(&play, "argocd.argoproj.io/compare-options"), options);
    tracked(&mut play, "another");
    play.rehearsal.run_for(60_000);
    assert_eq!(annotation(&play, "argocd.argoproj.io/tracking-id"), id("another"), "{}", play.tell());
}

/// Another component fails; the release that only has another name now goes on
/// under its old one.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_hands_a_renamed_component_back(#[case] engine: Engine, #[values("1.0.0", "2.0.0")] renamed: &str) {
    let mut script = Script::default();
    script.behave("z", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![named("old", "web", "1.0.0", &[]), component("z", "1.0.0", &["old"])]));
    play.until_ready("app");
    let (before, position) = (uid(&play, "web"), play.position());
    let mut spec = package("2.0.0", vec![named("new", "web", renamed, &[]), component("z", "2.0.0", &["new"])]);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(600_000);
    assert_eq!(uid(&play, "web"), before, "{}", play.tell());
    assert_eq!(deleted(&play, position), Vec::<&Key>::new());
    assert_eq!(play.runs("web").as_deref(), Some("1.0.0"));
    assert!(play.object(&play.child("app", "new")).is_none() && play.object(&play.child("app", "old")).is_some());
}

/// Somebody still requires the old name: the releases go on under the new one all
/// the same.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_renamed_package_waits_for_nobody_who_requires_its_old_name(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let components = || vec![named("a", "web-a", "1.0.0", &[])];
    play.commit("old", package("1.0.0", components()));
    let mut requirer = package("1.0.0", vec![component("r", "1.0.0", &[])]);
    requirer["requires"] = json!([{"package": "old"}]);
    play.commit("requirer", requirer);
    play.until_ready("requirer");
    let (before, position) = (uid(&play, "web-a"), play.position());
    play.commit("new", package("1.0.0", components()));
    play.delete("old");
    play.until_gone("old");
    play.until_ready("new");
    assert_eq!(uid(&play, "web-a"), before);
    assert_eq!(deleted(&play, position), Vec::<&Key>::new());
}

/// A release moves to another package, whose upgrade fails: it is older than the
/// revision that is undone, and goes on.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_leaves_what_another_package_had_before(
    #[case] engine: Engine,
    #[values(false, true)] gives_up_as_a_whole: bool,
) {
    let mut script = Script::default();
    script.behave("z", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("old", package("1.0.0", vec![component("rest", "1.0.0", &[]), named("a", "web", "1.0.0", &[])]));
    play.commit("new", package("1.0.0", vec![component("z", "1.0.0", &[])]));
    play.until_ready("old");
    play.until_ready("new");
    let (before, position) = (uid(&play, "web"), play.position());
    let added = named("added", "added", "1.0.0", &[]);
    let mut spec =
        package("2.0.0", vec![named("a", "web", "1.0.0", &[]), added, component("z", "2.0.0", &["a", "added"])]);
    spec["rollback"] = json!({"safe": true});
    play.commit("new", spec);
    if gives_up_as_a_whole {
        play.delete("old");
    } else {
        play.commit("old", package("1.1.0", vec![component("rest", "1.0.0", &[])]));
    }
    play.until("new", "UpgradeRolledBack");
    play.rehearsal.run_for(600_000);
    assert_eq!(uid(&play, "web"), before, "{}", play.tell());
    let gone: Vec<&str> = deleted(&play, position).into_iter().map(|key| key.name.as_str()).collect();
    let expected: &[&str] = if gives_up_as_a_whole { &["rest", "added"] } else { &["added"] };
    assert_eq!(gone, expected, "{}", play.tell());
}

/// The release is what it was; only the way to its chart is another one.
#[test]
fn another_secret_of_a_repository_is_taken_up_and_moves_nothing() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let spec = |secret: &str| {
        let mut a = component("a", "1.0.0", &[]);
        a["chart"]["secretRef"] = json!({"name": secret});
        package("1.0.0", vec![a, component("b", "1.0.0", &["a"])])
    };
    play.commit("app", spec("old"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", spec("new"));
    play.until_ready("app");
    let referred = |play: &Play, key: &Key, field: &str, kind: &str| {
        let name = play.object(key).unwrap()["spec"][field]["name"].as_str().unwrap().to_owned();
        Key::new("source.toolkit.fluxcd.io/v1", kind, NAMESPACE, &name)
    };
    let chart = referred(&play, &play.child("app", "a"), "chartRef", "HelmChart");
    let repository = referred(&play, &chart, "sourceRef", "HelmRepository");
    assert_eq!(play.object(&repository).unwrap()["spec"]["secretRef"], json!({"name": "new"}), "{}", play.tell());
    let deployments = play.changes_since(position).filter(|change| change.key.kind == "Deployment");
    assert_eq!(deployments.count(), 0, "{}", play.tell());
    let moved = play.rehearsal.world.store.list("PackageRevision").any(|(_, revision)| {
        let records = revision["status"]["components"].as_array().cloned().unwrap_or_default();
        revision["spec"]["number"] == 2 && records.iter().any(|record| record["moved"] == true)
    });
    assert!(!moved, "{}", play.tell());
    assert_eq!(play.moves_since(position), ["app-a"]);
}

/// Their Package is gone, but the releases read their charts from them.
#[test]
fn sources_of_releases_that_were_left_running_stay() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let mut left = package("1.0.0", vec![component("a", "1.0.0", &[])]);
    left["deletionPolicy"] = json!("Orphan");
    play.commit("left", left);
    play.until_ready("left");
    play.delete("left");
    play.until_gone("left");
    play.commit("app", package("1.0.0", vec![component("b", "1.0.0", &[])]));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![component("b", "2.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    let there = |play: &Play| {
        let chart = play.object(&play.child("left", "a")).unwrap()["spec"]["chartRef"]["name"].clone();
        let chart = Key::new("source.toolkit.fluxcd.io/v1", "HelmChart", NAMESPACE, chart.as_str().unwrap());
        let repository = play.object(&chart).map(|chart| chart["spec"]["sourceRef"]["name"].clone());
        repository.is_some_and(|name| {
            let name = name.as_str().unwrap();
            play.object(&Key::new("source.toolkit.fluxcd.io/v1", "HelmRepository", NAMESPACE, name)).is_some()
        })
    };
    assert!(there(&play), "{}", play.tell());
    play.delete("app");
    play.until_gone("app");
    play.rehearsal.run_for(60_000);
    assert!(there(&play), "{}", play.tell());
}

/// It came after the revision had begun, when nobody looked for conflicts any more.
#[test]
fn an_object_that_appears_at_the_place_of_a_child_is_not_written() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.rehearsal.faults.distortion = Some(|snapshot| {
        let foreign = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "app-a", "namespace": NAMESPACE, "uid": "theirs", "resourceVersion": "1"}, "spec": {},
        });
        if !snapshot.revisions.is_empty() {
            let foreign = foreign.as_object().cloned().unwrap_or_default();
            snapshot.children.push(windlass::rollout::live::Live::new(foreign));
        }
    });
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.rehearsal.run_for(300_000);
    assert!(play.message("app").contains("is not this package's"), "{}", play.message("app"));
    assert_eq!(play.status("app").blocked_by[0].reason, "Conflict");
    assert_eq!((play.moves_since(0), play.refusals()), (Vec::<String>::new(), 0), "{}", play.tell());
}
