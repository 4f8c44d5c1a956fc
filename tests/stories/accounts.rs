//! As whom a Package acts.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::Key;
use windlass::sim::chart::Script;
use windlass::sim::store::Expected;

use crate::play::{NAMESPACE, Play, at, component, package};

/// Without its account the next attempt of helm-controller would run as itself.
#[test]
fn an_account_that_the_cluster_requires_is_not_taken_from_a_running_package() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.rehearsal.settings.require_service_account = true;
    let mut spec = package("1.0.0", vec![component("a", "1.0.0", &[])]);
    spec["serviceAccountName"] = json!("deployer");
    play.commit("app", spec.clone());
    play.until_ready("app");
    spec.as_object_mut().unwrap().remove("serviceAccountName");
    play.commit("app", spec.clone());
    play.until("app", "InvalidSpec");
    play.rehearsal.run_for(600_000);
    let release = play.object(&play.child("app", "a")).unwrap();
    assert_eq!(at(release, "/spec/serviceAccountName"), "deployer", "{}", play.tell());
    assert!(play.message("app").contains("serviceAccountName is required"), "{}", play.message("app"));
    spec["serviceAccountName"] = json!("another");
    play.commit("app", spec);
    play.until_ready("app");
    let release = play.object(&play.child("app", "a")).unwrap();
    assert_eq!(at(release, "/spec/serviceAccountName"), "another", "{}", play.tell());
}

#[test]
fn a_package_without_the_account_that_the_cluster_requires_installs_nothing() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.rehearsal.settings.require_service_account = true;
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until("app", "InvalidSpec");
    play.rehearsal.run_for(600_000);
    assert_eq!(play.moves_since(0), Vec::<String>::new());
}

/// A spec of another tenant that names a release does not keep its owner from it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_claim_from_another_namespace_counts_only_among_those_who_trust_each_other(
    #[case] engine: Engine,
    #[values(true, false)] tenants: bool,
) {
    let mut play = Play::new(engine, Script::default());
    play.rehearsal.settings.require_service_account = tenants;
    let spec = |release: &str| {
        let mut component = component(release, "1.0.0", &[]);
        component["install"]["namespace"] = json!(NAMESPACE);
        let mut spec = package("1.0.0", vec![component]);
        spec["serviceAccountName"] = json!("deployer");
        spec
    };
    play.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": NAMESPACE}}));
    play.commit("app", spec("web"));
    play.until_ready("app");
    let mut theirs = spec("web");
    theirs["engine"] = json!(engine.as_str());
    play.apply(&json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
        "metadata": {"name": "theirs", "namespace": "elsewhere"}, "spec": theirs,
    }));
    play.rehearsal.run_for(60_000);
    play.delete("app");
    play.until_gone("app");
    let handed_over = play.deployment(NAMESPACE, "web").is_some();
    assert_eq!(handed_over, !tenants, "{}", play.tell());
}

/// Whoever may make a HelmRelease somewhere keeps nobody else from a release that
/// runs, nor from one that was never installed from there.
#[rstest]
#[case::suspended(json!(true), 0)]
#[case::never_installed(json!(false), 0)]
#[case::after_its_first_version(json!(true), 1)]
fn an_object_of_another_tenant_that_runs_nothing_holds_nothing_up(#[case] suspend: Value, #[case] before: usize) {
    let mut play = tenants();
    let versions = ["1.0.0", "2.0.0"];
    for version in &versions[..before] {
        play.commit("app", with_account(version));
        play.until_ready("app");
    }
    play.apply(&theirs(&suspend));
    for version in &versions[before..] {
        play.commit("app", with_account(version));
        play.until_ready("app");
    }
    assert_eq!(play.runs("web").as_deref(), Some("2.0.0"), "{}", play.tell());
}

#[test]
fn a_release_that_runs_from_another_namespace_is_not_named_to_strangers() {
    let mut play = tenants();
    let history = json!([{"name": "web", "namespace": NAMESPACE, "status": "deployed"}]);
    play.apply(&theirs(&json!(true)));
    let probe = Key::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "elsewhere", "probe");
    let deployed = |release: &mut serde_json::Map<String, Value>| {
        release.entry("status").or_insert_with(|| json!({}))["history"] = history.clone();
    };
    play.rehearsal.world.store.edit("helm-controller", &probe, &Expected::default(), deployed).unwrap();
    play.commit("app", with_account("1.0.0"));
    play.until("app", "Conflict");
    let message = play.message("app");
    assert!(message.contains("release packages/web is held from another namespace"), "{message}");
    assert!(!message.contains("elsewhere") && !message.contains("probe"), "{message}");
    assert_eq!(play.status("app").blocked_by.len(), 0);
}

fn tenants() -> Play {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.rehearsal.settings.require_service_account = true;
    let metadata = json!({"name": "deployer", "namespace": NAMESPACE});
    play.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
    play
}

fn with_account(version: &str) -> Value {
    let mut spec = package(version, vec![component("web", version, &[])]);
    spec["serviceAccountName"] = json!("deployer");
    spec
}

fn theirs(suspend: &Value) -> Value {
    let chart = json!({"kind": "HelmChart", "name": "none"});
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "probe", "namespace": "elsewhere"},
        "spec": {"targetNamespace": NAMESPACE, "releaseName": "web", "suspend": suspend, "chartRef": chart},
    })
}

/// An old revision may be from before accounts were required, or forged.
#[test]
fn a_release_that_a_rollback_brings_back_gets_the_account_of_now() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let both = |version: &str| package(version, vec![component("web", version, &[]), component("old", version, &[])]);
    play.commit("app", both("1.0.0"));
    play.until_ready("app");
    play.rehearsal.settings.require_service_account = true;
    let metadata = json!({"name": "deployer", "namespace": NAMESPACE});
    play.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
    play.commit("app", with_account("2.0.0"));
    play.until_ready("app");
    assert!(play.object(&play.child("app", "old")).is_none());
    let position = play.position();
    play.annotate("app", "windlass.dev/rollback-to", "1@force-now");
    play.until("app", "RolledBack");
    let written: Vec<_> = play.changes_since(position).filter(|change| change.key.name == "app-old").collect();
    assert!(!written.is_empty());
    assert!(
        written.iter().all(|change| at(&change.object, "/spec/serviceAccountName") == "deployer"),
        "{}",
        play.tell()
    );
}
