//! As whom a Package acts.

use rstest::rstest;
use serde_json::json;
use windlass::api::Engine;
use windlass::sim::chart::Script;

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
