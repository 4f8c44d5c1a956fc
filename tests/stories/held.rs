//! A spec that is refused, or has to wait, beside what is under way and what runs.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script};
use windlass::sim::store::Expected;
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, component, safe};

fn pair(version: &str) -> Value {
    safe(version, vec![component("a", version, &[]), component("b", version, &["a"])])
}

fn broken() -> Value {
    json!({"version": "three", "components": []})
}

fn waiting() -> Value {
    let mut spec = pair("3.0.0");
    spec["requires"] = json!([{"package": "nobody"}]);
    spec
}

#[rstest]
fn a_rollback_goes_on_beside_a_spec_that_is_not_taken(
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
    #[values((broken(), "InvalidSpec"), (waiting(), "RequirementsNotMet"))] next: (Value, &str),
) {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", pair("1.0.0"));
    play.until_ready("app");
    play.commit("app", pair("2.0.0"));
    play.until("app", "RollingBack");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"), "{}", play.tell());
    play.commit("app", next.0);
    play.rehearsal.run_for(300_000);
    assert_eq!((play.runs("a").as_deref(), play.runs("b").as_deref()), (Some("1.0.0"), Some("1.0.0")));
    assert_eq!(play.reason("app"), next.1, "{}", play.tell());
}

/// Whether it fails is asked of the turn that is open; none is begun beside it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_open_turn_fails_beside_a_spec_that_waits(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", pair("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", pair("2.0.0"));
    play.rehearsal.run_for(60_000);
    play.commit("app", waiting());
    play.rehearsal.run_for(1_500_000);
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"), "{}", play.tell());
    assert_eq!(play.moves_since(position)[..2], ["app-a", "app-a"], "{}", play.tell());
    assert_eq!(play.runs("b").as_deref(), Some("1.0.0"));
    assert!(play.message("app").contains("package nobody is required"), "{}", play.message("app"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn no_turn_begins_beside_a_spec_that_waits(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Succeeds, 60_000);
    let mut play = Play::new(engine, script);
    play.commit("app", pair("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", pair("2.0.0"));
    play.rehearsal.run_for(30_000);
    play.commit("app", waiting());
    play.rehearsal.run_for(1_500_000);
    assert_eq!(play.moves_since(position), ["app-a"], "{}", play.tell());
    assert_eq!((play.runs("a").as_deref(), play.runs("b").as_deref()), (Some("2.0.0"), Some("1.0.0")));
}

#[rstest]
fn what_runs_is_kept_beside_a_spec_that_is_not_taken(
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
    #[values((broken(), "InvalidSpec"), (waiting(), "RequirementsNotMet"))] next: (Value, &str),
) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", pair("1.0.0"));
    play.until_ready("app");
    play.commit("app", next.0);
    play.until("app", next.1);
    let position = play.position();
    let child = play.child("app", "a");
    play.rehearsal.world.store.delete("user", &child, &Expected::default()).unwrap();
    let source = play.rehearsal.world.store.list("HelmRepository").map(|(key, _)| key.clone()).next();
    if let Some(source) = &source {
        play.rehearsal.world.store.delete("user", source, &Expected::default()).unwrap();
    }
    play.rehearsal.run_for(300_000);
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"), "{}", play.tell());
    assert!(source.iter().all(|source| play.object(source).is_some()), "{}", play.tell());
    let gone =
        |key: &Key| play.changes_since(position).any(|change| change.verb == Verb::Deleted && *change.key == *key);
    assert!(gone(&child));
}

/// What the next version asks of the engine is nothing for the one that runs.
#[test]
fn what_is_written_again_beside_a_waiting_spec_has_nothing_of_it_but_the_account() {
    let mut play = Play::new(Engine::Flux, Script::default());
    for name in ["old", "new"] {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        play.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
    }
    let acting_as = |mut spec: Value, account: &str| {
        spec["serviceAccountName"] = json!(account);
        spec
    };
    play.commit("app", acting_as(pair("1.0.0"), "old"));
    play.until_ready("app");
    let mut next = acting_as(waiting(), "new");
    next["upgrade"] = json!({"timeout": "1h"});
    play.commit("app", next);
    play.until("app", "RequirementsNotMet");
    let child = play.child("app", "a");
    play.rehearsal.world.store.delete("user", &child, &Expected::default()).unwrap();
    play.rehearsal.run_for(300_000);
    let spec = &play.object(&child).unwrap()["spec"];
    assert_eq!((&spec["serviceAccountName"], &spec["timeout"]), (&json!("new"), &json!("10m")), "{}", play.tell());
}
