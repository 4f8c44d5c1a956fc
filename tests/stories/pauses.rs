//! Suspension, restarts, and what counts as time.

use rstest::rstest;
use serde_json::json;
use windlass::api::{ComponentState, Engine};
use windlass::rollout::{Snapshot, Unreadable};
use windlass::sim::chart::{Outcome, Script};
use windlass::sim::world::Part;

use crate::play::{Play, component, kubevirt, kubevirt_script, package, package_key};

fn hanging(engine: Engine) -> Play {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str| {
        let mut spec = package(version, vec![component("a", version, &[])]);
        spec["upgrade"] = json!({"timeout": "5m"});
        spec
    };
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0"));
    play.rehearsal.run_for(60_000);
    assert_eq!(play.reason("app"), "Progressing");
    play
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_suspended_package_is_not_out_of_time(#[case] engine: Engine) {
    let mut play = hanging(engine);
    play.patch(&package_key("app"), json!({"spec": {"suspend": true}}));
    play.rehearsal.run_for(3_600_000);
    assert_eq!(play.reason("app"), "Suspended");
    play.patch(&package_key("app"), json!({"spec": {"suspend": false}}));
    play.rehearsal.run_for(200_000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    play.until("app", "UpgradeFailed");
}

#[test]
fn a_suspended_child_pauses_the_clock_and_is_said() {
    let mut play = hanging(Engine::Flux);
    let child = play.child("app", "a");
    play.patch(&child, json!({"spec": {"suspend": true}}));
    play.rehearsal.run_for(3_600_000);
    assert_eq!(play.reason("app"), "Suspended");
    assert_eq!(play.message("app"), "component a: HelmRelease/app-a is suspended");
    assert_eq!(play.status("app").components[0].state, ComponentState::Suspended);
    assert_eq!(play.object(&child).unwrap()["spec"]["suspend"], true, "somebody's suspension is respected");
    play.patch(&child, json!({"spec": {"suspend": false}}));
    play.until("app", "UpgradeFailed");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn time_in_which_the_controller_was_stopped_does_not_count(#[case] engine: Engine) {
    let mut play = hanging(engine);
    // Nobody decides for two hours, and Flux does not try again either: attempts count.
    play.rehearsal.world.stopped.insert(Part::HelmController);
    let end = play.rehearsal.now() + 7_200_000;
    while play.rehearsal.world.next_due().is_some_and(|due| due <= end) {
        play.rehearsal.world.step();
    }
    play.rehearsal.world.wait_until(end);
    play.rehearsal.restart(0);
    play.rehearsal.run_for(100_000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    // Of the action that seems to run still a verdict is awaited for another moment.
    play.rehearsal.run_for(205_000);
    assert_eq!(play.reason("app"), "UpgradeFailed", "{}", play.message("app"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_suspended_package_moves_nothing(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    let mut spec = package("2.0.0", vec![component("a", "2.0.0", &[])]);
    spec["suspend"] = json!(true);
    let position = play.position();
    play.commit("app", spec.clone());
    play.rehearsal.run_for(600_000);
    assert_eq!(play.moves_since(position), Vec::<String>::new());
    assert_eq!(play.reason("app"), "Suspended");
    spec["suspend"] = json!(false);
    play.commit("app", spec);
    play.until_ready("app");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"));
}

/// With other clocks on the machines of the leaders.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn leaders_with_other_clocks_come_to_the_same_end(#[case] engine: Engine) {
    for skew in [-3_600_000, 3_600_000] {
        let mut play = Play::new(engine, Script::default());
        play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[]), component("b", "1.0.0", &["a"])]));
        play.rehearsal.run_for(600);
        play.rehearsal.restart(skew);
        play.until_ready("app");
        play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[]), component("b", "2.0.0", &["a"])]));
        play.rehearsal.run_for(600);
        play.rehearsal.restart(0);
        play.until_ready("app");
        assert_eq!(play.runs("b").as_deref(), Some("2.0.0"));
    }
}

/// The next leader's clock is an hour behind: what the last one wrote lies in its
/// future, and time counts all the same.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_leader_whose_clock_is_behind_still_runs_out_of_time(#[case] engine: Engine) {
    let mut play = hanging(engine);
    play.rehearsal.restart(-3_600_000);
    play.rehearsal.run_for(600_000);
    assert_eq!(play.reason("app"), "UpgradeFailed", "{}", play.message("app"));
}

/// The next leader's clock is an hour ahead: evidence that has to last lasts as
/// long by its own clock.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_leader_whose_clock_is_ahead_does_not_take_evidence_for_lasting(#[case] engine: Engine) {
    let mut play = Play::new(engine, kubevirt_script(20_000));
    let spec = |version: &str| {
        let mut spec = kubevirt(version, version, "1.0.0", json!({}));
        spec["components"][1]["install"]["readyWhen"] =
            json!([{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Available"}]);
        spec
    };
    play.commit("kubevirt", spec("1.0.0"));
    play.until_ready("kubevirt");
    play.commit("kubevirt", spec("2.0.0"));
    play.rehearsal.run_for(15_000);
    assert_eq!(play.reason("kubevirt"), "Progressing");
    play.rehearsal.restart(3_600_000);
    play.rehearsal.run_for(40_000);
    assert_eq!(play.reason("kubevirt"), "Progressing", "{}", play.message("kubevirt"));
    play.until_ready("kubevirt");
}

/// What another version of Windlass has recorded may say that nothing here is
/// safe: without knowing it nothing is touched, neither forward nor away.
#[test]
fn nothing_is_changed_while_a_revision_cannot_be_read() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.faults.distortion = Some(|snapshot| snapshot.unreadable.push(unreadable(snapshot, "app-1")));
    let position = play.position();
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until("app", "InvalidSpec");
    play.delete("app");
    play.rehearsal.run_for(600_000);
    assert_eq!(play.moves_since(position), Vec::<String>::new());
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"));
    assert_eq!(play.status("app").version.as_deref(), Some("1.0.0"), "the rest of the status stays");
    assert!(play.message("app").starts_with("app-1 cannot be read"), "{}", play.message("app"));

    play.rehearsal.faults.distortion = None;
    play.annotate("app", "example.org/touched", "true");
    play.until_gone("app");
}

fn unreadable(snapshot: &Snapshot, name: &str) -> Unreadable {
    let revision = snapshot.revisions.iter().find(|revision| revision.name == name);
    Unreadable {
        name: name.to_owned(),
        uid: revision.map_or_else(String::new, |revision| revision.uid.clone()),
        deleting: revision.is_some_and(|revision| revision.deleting),
        held: revision.is_some_and(|revision| revision.held),
        message: format!("{name} cannot be read"),
    }
}

/// Somebody follows the message, and deletes it.
#[test]
fn a_revision_that_cannot_be_read_is_gone_when_it_is_deleted() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.faults.distortion = Some(|snapshot| {
        if snapshot.revisions.iter().any(|revision| revision.name == "app-2") {
            snapshot.unreadable.push(unreadable(snapshot, "app-2"));
            snapshot.revisions.retain(|revision| revision.name != "app-2");
        }
    });
    let key = windlass::sim::Key::new("windlass.dev/v1alpha1", "PackageRevision", crate::play::NAMESPACE, "app-2");
    let uid = |play: &Play| play.object(&key).map(|revision| revision["metadata"]["uid"].clone());
    let before = uid(&play);
    play.rehearsal.world.store.delete("user", &key, &windlass::sim::store::Expected::default()).unwrap();
    play.rehearsal.run_for(60_000);
    assert_ne!(uid(&play), before, "what the spec asks for is recorded anew: {}", play.tell());
}

/// A commit that comes before the one before has done anything takes its place.
#[test]
fn revisions_that_did_nothing_are_not_kept() {
    let mut script = Script::default();
    script.published.insert(("a".into(), "9.9.9".into()), u64::MAX);
    let mut play = Play::new(Engine::Flux, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    for minor in 1..20 {
        // No chart has this version: nothing moves.
        let mut nowhere = component("a", "9.9.9", &[]);
        nowhere["values"] = json!({"minor": minor});
        play.commit("app", package("1.1.0", vec![nowhere]));
        play.rehearsal.run_for(30_000);
    }
    let revisions = play.rehearsal.world.store.all().filter(|(key, _)| key.kind == "PackageRevision").count();
    assert!(revisions <= 3, "{revisions} revisions\n{}", play.tell());
}

/// Without its record nobody knows any more what is safe.
#[test]
fn the_record_of_what_runs_outlives_its_deletion() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    let revision = |number: u64| {
        windlass::sim::Key::new(
            "windlass.dev/v1alpha1",
            "PackageRevision",
            crate::play::NAMESPACE,
            &format!("app-{number}"),
        )
    };
    play.rehearsal.world.store.delete("user", &revision(1), &windlass::sim::store::Expected::default()).unwrap();
    play.rehearsal.run_for(600_000);
    assert!(play.object(&revision(1)).is_some(), "it is held while it is in use");
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.run_for(600_000);
    assert!(play.object(&revision(1)).is_none(), "it goes once it is not in use any more");
    assert!(play.object(&revision(2)).is_some());
}
