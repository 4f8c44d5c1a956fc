//! Who moves when.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::{ComponentState, Engine};
use windlass::sim::chart::{Care, Outcome, Script};
use windlass::sim::store::Expected;
use windlass::sim::world::Part;
use windlass::sim::{Change, Key};

use crate::play::{
    NAMESPACE, Play, REPOSITORY, at, component, kubevirt, kubevirt_script, package, unchanging_resource_script,
};

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn three_components_are_installed_in_order(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let components =
        vec![component("web", "1.0.0", &["api"]), component("db", "1.0.0", &[]), component("api", "1.0.0", &["db"])];
    play.commit("app", package("1.0.0", components));
    play.until_ready("app");
    assert_eq!(play.moves_since(0), ["app-db", "app-api", "app-web"]);
    for release in ["db", "api", "web"] {
        assert_eq!(play.runs(release).as_deref(), Some("1.0.0"));
    }
    assert_eq!(play.status("app").version.as_deref(), Some("1.0.0"));
    assert_eq!(play.refusals(), 0, "{}", play.tell());
}

/// The release of the resource does not change, and its Available stays True
/// while the new operator works: only what it reports of the new version counts.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_resource_is_verified_again_when_only_its_operator_moves(#[case] engine: Engine) {
    let mut play = Play::new(engine, kubevirt_script(20_000));
    play.commit("kubevirt", kubevirt("1.0.0", "1.0.0", "1.0.0", json!({})));
    play.until_ready("kubevirt");
    let position = play.position();
    play.commit("kubevirt", kubevirt("2.0.0", "2.0.0", "1.0.0", json!({})));
    play.until_ready("kubevirt");
    assert_eq!(play.moves_since(position), ["kubevirt-operator"]);
    let reported = play
        .changes_since(position)
        .find(|change| change.key.kind == "KubeVirt" && at(&change.object, "/status/observedVersion") == "2.0.0")
        .unwrap_or_else(|| panic!("the operator reports nothing\n{}", play.tell()));
    let succeeded = play
        .changes_since(position)
        .find(|change| change.key.kind == "PackageRevision" && at(&change.object, "/status/phase") == "Succeeded")
        .expect("the revision succeeds");
    assert!(succeeded.at >= reported.at, "succeeded at {}, reported at {}", succeeded.at, reported.at);
}

/// An operation runs the chart's own hooks again, whatever the chart renders.
#[test]
fn a_component_that_is_only_verified_again_starts_no_operation() {
    let mut play = Play::new(Engine::Argo, Script::default());
    let spec = |a: &str| package("1.0.0", vec![component("a", a, &[]), component("b", "1.0.0", &["a"])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    for version in ["1.0.1", "1.0.2"] {
        let position = play.position();
        play.commit("app", spec(version));
        play.until_ready("app");
        assert_eq!(play.runs("a").as_deref(), Some(version));
        let operations = play.changes_since(position).filter(|change| {
            change.key.name == "app-b" && change.object.get("operation").is_some_and(|operation| !operation.is_null())
        });
        assert_eq!(operations.count(), 0, "{}", play.tell());
        let compared = play.changes_since(position).filter(|change| {
            change.key.name == "app-b"
                && !at(&change.object, "/metadata/annotations/argocd.argoproj.io~1refresh").is_null()
        });
        assert!(compared.count() > 0, "it is compared anew all the same\n{}", play.tell());
    }
}

/// A condition that never changes proves nothing but by lasting. Times are kept
/// to the second.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_condition_that_stays_true_counts_once_it_has_lasted(#[case] engine: Engine) {
    let mut play = Play::new(engine, kubevirt_script(20_000));
    let spec = |version: &str| {
        let mut spec = kubevirt(version, version, "1.0.0", json!({}));
        spec["components"][1]["install"]["readyWhen"] =
            json!([{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Available"}]);
        spec
    };
    play.commit("kubevirt", spec("1.0.0"));
    play.until_ready("kubevirt");
    let position = play.position();
    play.commit("kubevirt", spec("2.0.0"));
    play.until_ready("kubevirt");
    let lasted = verified(&play, position, "kubevirt") - verified(&play, position, "operator");
    assert!(lasted >= 59_000, "{}", play.tell());
}

/// When a component is verified by the first revision after a place in the log.
fn verified(play: &Play, position: usize, name: &str) -> u64 {
    let found = play.changes_since(position).find(|change| {
        change.key.kind == "PackageRevision"
            && at(&change.object, "/status/components")
                .as_array()
                .is_some_and(|all| all.iter().any(|c| c["name"] == name && c.get("verifiedAt").is_some()))
    });
    found.expect("it is verified").at
}

/// What reports the version may have reported it before the commit that changes
/// nothing but values: then it counts by lasting, as anything else does.
#[rstest]
#[case::of_a_new_version(&["2.0.0", "3.0.0"], 0..30_000)]
#[case::of_the_same_version(&["2.0.0", "2.0.0"], 59_000..90_000)]
fn the_version_is_proof_for_the_revision_that_brings_it_alone(
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
    #[case] versions: &[&str],
    #[case] expected: std::ops::Range<u64>,
) {
    let mut play = Play::new(engine, kubevirt_script(5000));
    let spec = |version: &str, replicas: usize| {
        let mut spec = kubevirt(version, version, "1.0.0", json!({}));
        spec["components"][0]["values"] = json!({"replicas": replicas});
        spec
    };
    play.commit("kubevirt", spec(versions[0], 1));
    play.until_ready("kubevirt");
    let position = play.position();
    play.commit("kubevirt", spec(versions[1], 2));
    play.until_ready("kubevirt");
    let lasted = verified(&play, position, "kubevirt") - verified(&play, position, "operator");
    assert!(expected.contains(&lasted), "{lasted}\n{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_broken_component_does_not_block_the_commit_that_changes_another(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let components = |other: &str| vec![component("first", "1.0.0", &[]), component("second", other, &[])];
    play.commit("app", package("1.0.0", components("1.0.0")));
    play.until_ready("app");
    let broken = play.child("app", "first");
    play.rehearsal
        .world
        .store
        .edit_status("engine", &broken, |status| {
            status
                .insert("conditions".into(), json!([{"type": "Ready", "status": "False", "reason": "UpgradeFailed"}]));
            status.insert("health".into(), json!({"status": "Degraded"}));
        })
        .unwrap();
    let position = play.position();
    play.commit("app", package("1.0.1", components("1.0.1")));
    play.until_ready("app");
    assert_eq!(play.moves_since(position), ["app-second"]);
}

#[test]
fn stuck_releases_in_front_of_ours_are_a_queue_and_no_failure() {
    let mut script = Script::default();
    for number in 1..=5 {
        script.behave(&format!("stuck-{number}"), "*", Outcome::Hangs, 1000);
    }
    let mut play = Play::new(Engine::Flux, script);
    play.apply(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": "repo", "namespace": "other"}, "spec": {"interval": "10m", "url": REPOSITORY},
    }));
    for number in 1..=5 {
        play.apply(&json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": format!("stuck-{number}"), "namespace": "other"},
            "spec": {
                "interval": "10m", "timeout": "5m",
                "chart": {"spec": {"chart": "stuck", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "repo"}}},
                "install": {"remediation": {"retries": 0}},
            },
        }));
    }
    play.rehearsal.run_for(10_000);
    let mut spec = package("1.0.0", vec![component("a", "1.0.0", &[])]);
    spec["upgrade"] = json!({"timeout": "1m"});
    play.commit("app", spec);
    play.rehearsal.run_for(200_000);
    assert_eq!(play.status("app").components[0].state, ComponentState::Queued);
    assert_eq!(play.reason("app"), "Progressing");
    play.until_ready("app");
}

/// What was seen of the resource since an earlier operator was written says
/// nothing of the one that is written now.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn evidence_of_a_revision_before_is_not_taken_over_past_a_new_write(#[case] engine: Engine) {
    let mut script = kubevirt_script(20_000);
    script.behave("web", "1.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str| {
        let mut spec = kubevirt(version, version, "1.0.0", json!({}));
        spec["components"][1]["install"]["readyWhen"] =
            json!([{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Available"}]);
        spec["components"].as_array_mut().unwrap().push(component("web", version, &["kubevirt"]));
        spec
    };
    play.commit("kubevirt", spec("1.0.0"));
    play.until("kubevirt", "InstallFailed");
    let position = play.position();
    play.commit("kubevirt", spec("2.0.0"));
    play.until_ready("kubevirt");
    let first = |what: &dyn Fn(&Change) -> bool| play.changes_since(position).position(what).expect("it happens");
    let reported = first(&|c| c.key.kind == "KubeVirt" && at(&c.object, "/status/observedVersion") == "2.0.0");
    let moved = first(&|c| c.key.name == "kubevirt-web" && c.actor == "windlass");
    assert!(reported < moved, "{}", play.tell());
}

/// A chart that is not the one the author has seen must not reach the cluster,
/// whatever its version says.
#[test]
fn a_chart_of_another_digest_moves_nothing() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let pinned = |digest: &str| {
        let mut second = component("b", "1.0.0", &["a"]);
        second["chart"]["digest"] = json!(digest);
        package("1.0.0", vec![component("a", "1.0.0", &[]), second])
    };
    play.commit("app", pinned(&format!("sha256:{}", "0".repeat(64))));
    play.until("app", "SourceNotFound");
    assert!(play.message("app").contains("the chart's digest is sha256:"), "{}", play.message("app"));
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.runs("a"), None, "nothing moves before every chart is the right one");

    let charts = play.changes_since(0).filter(|change| change.key.kind == "HelmChart");
    let shown = charts.filter(|change| at(&change.object, "/spec/chart") == "b");
    let digest = at(&shown.last().unwrap().object, "/status/artifact/digest").as_str().unwrap().to_owned();
    play.commit("app", pinned(&digest));
    play.until_ready("app");
}

#[test]
fn a_source_that_somebody_deleted_comes_back() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    let sources = |play: &Play| {
        let keys = play.changes_since(0).filter(|change| change.key.name.starts_with("windlass-"));
        keys.map(|change| change.key.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = sources(&play);
    assert_eq!(before.len(), 2, "a repository and a chart");
    for key in &before {
        play.rehearsal.world.store.delete("user", key, &Expected::default()).unwrap();
    }
    play.rehearsal.run_for(60_000);
    assert!(before.iter().all(|key| play.object(key).is_some()), "{}", play.tell());
}

/// Settings that move nothing are taken back as they are given.
#[rstest]
#[case::flux(Engine::Flux, "/spec/driftDetection/ignore")]
#[case::argo(Engine::Argo, "/spec/ignoreDifferences")]
fn fields_that_are_ignored_no_longer_are_healed_again(#[case] engine: Engine, #[case] pointer: &str) {
    let mut play = Play::new(engine, Script::default());
    let mut spec = package("1.0.0", vec![component("a", "1.0.0", &[])]);
    play.commit("app", spec.clone());
    play.until_ready("app");
    let before = play.object(&play.child("app", "a")).unwrap()["spec"].clone();
    spec["components"][0]["install"]["ignore"] = json!([{"kind": "ConfigMap", "jsonPointers": ["/data/ca"]}]);
    play.commit("app", spec.clone());
    play.rehearsal.run_for(60_000);
    let ignored = at(play.object(&play.child("app", "a")).unwrap(), pointer).clone();
    assert!(ignored.as_array().is_some_and(|ignored| !ignored.is_empty()), "{}", play.tell());
    spec["components"][0]["install"].as_object_mut().unwrap().remove("ignore");
    play.commit("app", spec);
    play.rehearsal.run_for(60_000);
    assert_eq!(play.object(&play.child("app", "a")).unwrap()["spec"], before, "{}", play.tell());
    assert_eq!(play.status("app").revision, Some(1));
}

/// Somebody removes the chart of the component whose turn it is.
#[test]
fn a_source_that_is_removed_during_a_turn_is_written_again() {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Succeeds, 60_000);
    let mut play = Play::new(Engine::Flux, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    let moved = play.rehearsal.run_until(60_000, |rehearsal| {
        let releases = rehearsal.world.store.log()[position..].iter();
        releases.filter(|change| change.key.kind == "HelmRelease").any(|change| change.actor == "windlass")
    });
    assert!(moved, "{}", play.tell());
    let release = play.object(&play.child("app", "a")).unwrap();
    let name = at(release, "/spec/chartRef/name").as_str().unwrap().to_owned();
    let chart = Key::new("source.toolkit.fluxcd.io/v1", "HelmChart", NAMESPACE, &name);
    play.rehearsal.world.store.delete("user", &chart, &Expected::default()).unwrap();
    play.rehearsal.run_for(5_000);
    assert!(play.object(&chart).is_some(), "{}", play.tell());
    play.until_ready("app");
}

/// An entry of a revision's status about a component.
fn record(play: &Play, revision: &str, name: &str) -> Value {
    let key = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, revision);
    let records = at(play.object(&key).expect("the revision is there"), "/status/components").as_array().cloned();
    records.into_iter().flatten().find(|record| record["name"] == name).expect("it has a record")
}

/// Whether a component had a turn in a revision, and did not merely count as verified.
fn had_a_turn(play: &Play, revision: &str, name: &str) -> bool {
    record(play, revision, name).get("turnBegan").is_some()
}

fn available(version: &str, operator: &str, resource: &str) -> Value {
    let mut spec = kubevirt(version, operator, resource, json!({}));
    spec["components"][1]["install"]["readyWhen"] =
        json!([{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Available"}]);
    spec
}

/// It has not lasted while the release was not ready.
#[test]
fn what_has_to_last_does_so_from_when_the_release_is_ready_again() {
    let mut play = Play::new(Engine::Argo, unchanging_resource_script(5000));
    play.commit("kubevirt", available("1.0.0", "1.0.0", "1.0.0"));
    play.until_ready("kubevirt");
    let position = play.position();
    play.commit("kubevirt", available("2.0.0", "1.0.0", "2.0.0"));
    play.rehearsal.run_for(10_000);
    let deployment = Key::new("apps/v1", "Deployment", NAMESPACE, "kubevirt");
    let flap = |play: &mut Play, outcome: Outcome, replicas: u64| {
        play.rehearsal.world.script.behave("kubevirt", "2.0.0", outcome, 1000);
        let set = |status: &mut Map<String, Value>| {
            status.insert("availableReplicas".into(), replicas.into());
            status.insert("updatedReplicas".into(), replicas.into());
        };
        play.rehearsal.world.store.edit_status("user", &deployment, set).unwrap();
    };
    flap(&mut play, Outcome::Hangs, 0);
    play.rehearsal.run_for(50_000);
    assert_eq!(play.reason("kubevirt"), "Progressing", "{}", play.message("kubevirt"));
    flap(&mut play, Outcome::Succeeds, 1);
    let again = play.rehearsal.now();
    play.until_ready("kubevirt");
    assert!(verified(&play, position, "kubevirt") - again >= 59_000, "{}", play.tell());
}

/// Whatever changes before the engine has begun has other causes.
#[test]
fn what_lapses_before_the_engine_has_begun_proves_nothing() {
    let mut play = Play::new(Engine::Flux, unchanging_resource_script(5000));
    play.commit("kubevirt", available("1.0.0", "1.0.0", "1.0.0"));
    play.until_ready("kubevirt");
    let position = play.position();
    play.rehearsal.world.stopped.insert(Part::HelmController);
    play.commit("kubevirt", available("2.0.0", "1.0.0", "2.0.0"));
    play.rehearsal.run_for(5000);
    let resource = Key::new("kubevirt.io/v1", "KubeVirt", NAMESPACE, "kubevirt");
    for (value, at) in [("False", "2026-01-01T00:00:01Z"), ("True", "2026-01-01T00:00:02Z")] {
        let set = |status: &mut Map<String, Value>| {
            status["conditions"][0]["status"] = value.into();
            status["conditions"][0]["lastTransitionTime"] = at.into();
        };
        play.rehearsal.world.store.edit_status("user", &resource, set).unwrap();
        play.rehearsal.run_for(5000);
    }
    play.rehearsal.world.stopped.clear();
    let begun = play.rehearsal.now();
    play.until_ready("kubevirt");
    assert!(verified(&play, position, "kubevirt") - begun >= 59_000, "{}", play.tell());
}

/// What comes next stands on it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_was_verified_earlier_in_a_walk_is_kept_as_it_was_written(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let spec = |version: &str| package(version, vec![component("a", version, &[]), component("b", version, &["a"])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    play.rehearsal.world.script.behave("b", "2.0.0", Outcome::Succeeds, 300_000);
    play.commit("app", spec("2.0.0"));
    play.rehearsal.run_for(30_000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    let a = play.child("app", "a");
    play.rehearsal.world.store.delete("user", &a, &Expected::default()).unwrap();
    play.rehearsal.run_for(60_000);
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"), "{}", play.tell());
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    play.until_ready("app");
}

/// An operator that was there for a while has left its version behind, and the one
/// that runs does not write that field.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_version_that_was_rolled_back_is_not_the_first_of_its_kind_again(#[case] engine: Engine) {
    let mut script = kubevirt_script(5000);
    script.operators[0].care.insert("1.0.0".into(), Care::Silent);
    script.behave("z", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str, z: &str| {
        let mut spec = kubevirt(version, version, "1.0.0", json!({"safe": true}));
        if version == "1.0.0" {
            spec["components"][1]["install"]["readyWhen"] = json!([]);
        }
        spec["components"].as_array_mut().unwrap().push(component("z", z, &["kubevirt"]));
        spec
    };
    play.commit("kubevirt", spec("1.0.0", "1.0.0"));
    play.until_ready("kubevirt");
    play.commit("kubevirt", spec("2.0.0", "2.0.0"));
    play.until("kubevirt", "UpgradeRolledBack");
    let position = play.position();
    play.commit("kubevirt", spec("2.0.0", "2.0.1"));
    play.until_ready("kubevirt");
    let lasted = verified(&play, position, "kubevirt") - verified(&play, position, "operator");
    assert!(lasted >= 59_000, "{}", play.tell());
}

/// It was verified first and what is above it by now was written then.
#[test]
fn a_new_edge_further_up_voids_what_was_verified_before_it() {
    let mut script = Script::default();
    script.behave("d", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(Engine::Flux, script);
    let spec = |moving: &str, d: &str, above_b: &[&str]| {
        let components = vec![
            component("b", moving, above_b),
            component("c", "1.0.0", &["b"]),
            component("a", moving, &[]),
            component("d", d, &[]),
        ];
        package(d, components)
    };
    play.commit("app", spec("1.0.0", "1.0.0", &[]));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "2.0.0", &[]));
    play.until("app", "UpgradeFailed");
    play.commit("app", spec("2.0.0", "2.0.1", &["a"]));
    play.until_ready("app");
    assert!(!had_a_turn(&play, "app-3", "a"), "{}", play.tell());
    assert!(had_a_turn(&play, "app-3", "c"), "{}", play.tell());
}

/// What it took back was written after everything else was verified.
#[test]
fn a_way_back_that_was_asked_for_and_has_not_ended_has_written_all_the_same() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let spec = |version: &str, a: &str, d: &str| {
        let components = vec![component("a", a, &[]), component("c", "1.0.0", &["a"]), component("d", d, &["c"])];
        package(version, components)
    };
    play.commit("app", spec("1.0.0", "1.0.0", "1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "2.0.0", "2.0.0"));
    play.until_ready("app");
    play.rehearsal.world.script.behave("a", "1.0.0", Outcome::Succeeds, 60_000);
    play.annotate("app", "windlass.dev/rollback-to", "1@force");
    play.rehearsal.run_for(30_000);
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"), "{}", play.tell());
    assert_eq!(play.reason("app"), "RollingBack", "{}", play.message("app"));
    play.commit("app", spec("2.0.1", "1.0.0", "2.0.1"));
    play.until_ready("app");
    assert!(had_a_turn(&play, "app-3", "c"), "{}", play.tell());
}
