//! What a failure leads to.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Care, Outcome, Script, Template};
use windlass::sim::world::Part;
use windlass::sim::{Change, Key, Verb};

use crate::play::{
    NAMESPACE, Play, at, component, kubevirt, kubevirt_script, package, safe, unchanging_resource_script,
};

/// The resource goes back first. It cannot report the old version while the new
/// operator runs, and nobody waits for that.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn operator_and_resource_go_back_newest_first(#[case] engine: Engine) {
    let mut script = kubevirt_script(5000);
    script.operators[0].care.insert("2.0.0".into(), Care::Fails);
    let mut play = Play::new(engine, script);
    play.commit("kubevirt", kubevirt("1.0.0", "1.0.0", "1.0.0", json!({})));
    play.until_ready("kubevirt");
    let position = play.position();
    play.commit("kubevirt", kubevirt("2.0.0", "2.0.0", "2.0.0", json!({"safe": true})));
    play.until("kubevirt", "UpgradeRolledBack");
    assert_eq!(
        play.moves_since(position),
        ["kubevirt-operator", "kubevirt-kubevirt", "kubevirt-kubevirt", "kubevirt-operator"]
    );
    assert_eq!(play.runs("operator").as_deref(), Some("1.0.0"));
    assert_eq!(play.status("kubevirt").version.as_deref(), Some("1.0.0"));
    let back = play.position();
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.moves_since(back), Vec::<String>::new(), "a rolled back package is left alone");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_component_that_is_new_since_then_is_removed_by_the_rollback(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("c", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[]), component("c", "1.0.0", &["a"])]));
    play.until_ready("app");
    let components =
        vec![component("a", "2.0.0", &[]), component("b", "2.0.0", &["a"]), component("c", "2.0.0", &["b"])];
    let mut spec = package("2.0.0", components);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"));
    assert_eq!(play.runs("b"), None);
    assert_eq!(play.runs("c").as_deref(), Some("1.0.0"));
}

/// The one that is new stands between two that go back: it goes when the one
/// above is back, and before the one below is.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_new_component_is_removed_at_its_place_on_the_way_back(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("c", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[]), component("c", "1.0.0", &["a"])]));
    play.until_ready("app");
    let components =
        vec![component("a", "2.0.0", &[]), component("b", "2.0.0", &["a"]), component("c", "2.0.0", &["a", "b"])];
    let mut spec = package("2.0.0", components);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "RollingBack");
    let position = play.position();
    play.until("app", "UpgradeRolledBack");
    let log = || play.changes_since(position).enumerate();
    let first = |what: &dyn Fn(&Change) -> bool| log().find(|(_, change)| what(change)).expect("it happens").0;
    let written = |child: &'static str| first(&|change| change.key.name == child && change.actor == "windlass");
    let back = first(&|change| {
        change.key.kind == "Deployment" && change.key.name == "c" && at(&change.object, "/spec/version") == "1.0.0"
    });
    let asked_to_go = first(&|c| c.key.name == "app-b" && at(&c.object, "/metadata/deletionTimestamp").is_string());
    let gone = first(&|c| c.key.kind == "Deployment" && c.key.name == "b" && c.verb == Verb::Deleted);
    assert!(back < asked_to_go && gone < written("app-a"), "{}", play.tell());
}

/// Nothing that goes back has to wait for it, nor it for anything that goes back.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_new_component_that_nothing_needs_goes_first_on_the_way_back(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("z", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[]), component("z", "1.0.0", &["a"])]));
    play.until_ready("app");
    let components = vec![component("a", "2.0.0", &[]), component("b", "2.0.0", &[]), component("z", "2.0.0", &["a"])];
    let mut spec = package("2.0.0", components);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "RollingBack");
    let position = play.position();
    play.until("app", "UpgradeRolledBack");
    let went = play
        .changes_since(position)
        .position(|change| change.key.kind == "Deployment" && change.key.name == "b" && change.verb == Verb::Deleted);
    let restored =
        play.changes_since(position).position(|change| change.key.name == "app-a" && change.actor == "windlass");
    assert!(went.expect("it goes") < restored.expect("it goes back"), "{}", play.tell());
}

/// A CRD at the older version may lack what its newer objects have; that holds for as
/// long as the older version runs.
#[test]
fn what_is_written_again_after_a_rollback_leaves_crds_alone() {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(Engine::Flux, script);
    let spec = |version: &str| safe(version, vec![component("a", version, &[])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0"));
    play.until("app", "UpgradeRolledBack");
    let child = play.child("app", "a");
    let policy = |play: &Play| at(play.object(&child).unwrap(), "/spec/upgrade/crds").clone();
    assert_eq!(policy(&play), "Skip");
    play.patch(&child, json!({"spec": {"releaseName": "edited", "upgrade": {"crds": "CreateReplace"}}}));
    play.rehearsal.run_for(60_000);
    assert_eq!(policy(&play), "Skip", "{}", play.tell());
}

/// The range of the way back is about other versions, by default those that this one
/// may follow.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_change_within_a_version_goes_back_to_that_version(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "1.9.1", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.8.0", vec![component("a", "1.8.0", &[])]));
    play.until_ready("app");
    let next = |chart: &str| {
        let mut spec = package("1.9.0", vec![component("a", chart, &[])]);
        spec["rollback"] = json!({"safe": true});
        spec["upgrade"] = json!({"from": "~1.8"});
        spec
    };
    play.commit("app", next("1.9.0"));
    play.until_ready("app");
    play.commit("app", next("1.9.1"));
    play.until("app", "UpgradeRolledBack");
    assert_eq!(play.runs("a").as_deref(), Some("1.9.0"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_unsafe_revision_in_between_forbids_the_way_back(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("b", "1.9.0", Outcome::Hangs, 1000);
    script.behave("b", "1.9.1", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    let commit = |play: &mut Play, version: &str, safe: bool| {
        let mut spec = package(version, vec![component("a", version, &[]), component("b", version, &["a"])]);
        spec["rollback"] = json!({"safe": safe});
        play.commit("app", spec);
    };
    commit(&mut play, "1.8.0", true);
    play.until_ready("app");
    commit(&mut play, "1.9.0", false);
    let key = play.child("app", "b");
    let moved = play.rehearsal.run_until(600_000, |rehearsal| {
        let child = rehearsal.world.store.get(&key).unwrap();
        child["metadata"]["generation"].as_i64() > Some(1)
            && serde_json::to_string(&child["metadata"]).unwrap().contains("digest")
    });
    assert!(moved);
    play.rehearsal.run_for(5000);
    commit(&mut play, "1.9.1", true);
    play.until("app", "UpgradeFailed");
    assert!(play.message("app").contains("1.9.0"), "{}", play.message("app"));
    assert_eq!(play.runs("a").as_deref(), Some("1.9.1"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_failed_unsafe_upgrade_is_left_as_it_stands_and_mended_forward(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str| package(version, vec![component("a", version, &[]), component("b", version, &["a"])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0"));
    play.until("app", "UpgradeFailed");
    let position = play.position();
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.moves_since(position), Vec::<String>::new());
    assert_eq!(play.reason("app"), "UpgradeFailed");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"));
    play.commit("app", spec("2.0.1"));
    play.until_ready("app");
    assert_eq!(play.status("app").version.as_deref(), Some("2.0.1"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_first_install_is_tried_until_it_succeeds(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "1.0.0", Outcome::FailsFirst(20), 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until("app", "InstallFailed");
    play.until_ready("app");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_tries_a_rolled_back_upgrade_again(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    let mut spec = package("2.0.0", vec![component("a", "2.0.0", &[])]);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(play.status("app").version.as_deref(), Some("2.0.0"));
    assert_eq!(play.status("app").last_handled_retry.as_deref(), Some("again"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_tries_a_failed_upgrade_again(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until("app", "UpgradeFailed");
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_by_hand_is_refused_where_the_rule_forbids_it_and_can_be_forced(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let spec = |version: &str| package(version, vec![component("a", version, &[]), component("b", version, &["a"])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.annotate("app", "windlass.dev/rollback-to", "1@first");
    play.until("app", "RollbackRefused");
    assert_eq!(play.moves_since(position), Vec::<String>::new());
    play.annotate("app", "windlass.dev/rollback-to", "1@force-second");
    play.until("app", "RolledBack");
    assert_eq!(play.moves_since(position), ["app-b", "app-a"]);
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"));
    assert_eq!(play.status("app").version.as_deref(), Some("1.0.0"));
    play.commit("app", spec("2.0.1"));
    play.until_ready("app");
    assert_eq!(play.runs("b").as_deref(), Some("2.0.1"));
}

/// A refusal is about what was attempted then: the commit that mends it is not
/// spoken of as if somebody wanted to leave it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_refused_rollback_is_over_with_the_next_revision(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let spec = |version: &str| package(version, vec![component("a", version, &[])]);
    for version in ["1.0.0", "2.0.0"] {
        play.commit("app", spec(version));
        play.until_ready("app");
    }
    play.annotate("app", "windlass.dev/rollback-to", "1@first");
    play.until("app", "RollbackRefused");
    play.commit("app", spec("2.0.1"));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    assert_eq!(play.reason("app"), "Ready");
}

/// helm-controller tries again every half minute, for as long as nobody mends it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_failed_upgrade_says_so_once_however_often_the_engine_tries(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until("app", "UpgradeFailed");
    play.rehearsal.run_for(10_000);
    let (position, message) = (play.position(), play.message("app"));
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.changes_since(position).filter(|change| change.actor == "windlass").count(), 0);
    assert_eq!(play.message("app"), message);
    assert!(message.contains("not rolled back"), "{message}");
}

/// The component that failed did not move: there is nothing to ask the engine
/// for, but it is given its time again.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_gives_what_was_only_verified_again_its_time_anew(#[case] engine: Engine) {
    let mut script = kubevirt_script(5000);
    script.operators[0].care.insert("2.0.0".into(), Care::Silent);
    let mut play = Play::new(engine, script);
    play.commit("kubevirt", kubevirt("1.0.0", "1.0.0", "1.0.0", json!({})));
    play.until_ready("kubevirt");
    play.commit("kubevirt", kubevirt("2.0.0", "2.0.0", "1.0.0", json!({})));
    play.until("kubevirt", "UpgradeFailed");
    let position = play.position();
    play.annotate("kubevirt", "windlass.dev/retry", "again");
    play.rehearsal.run_for(300_000);
    assert_eq!(play.reason("kubevirt"), "Progressing", "{}", play.message("kubevirt"));
    play.until("kubevirt", "UpgradeFailed");
    assert_eq!(play.moves_since(position), Vec::<String>::new());
}

/// Argo CD goes on with a synchronisation whose hook never ends for as long as
/// nobody ends it.
fn hangs_at_2_0_0(safe: bool) -> Play {
    let mut script = Script::default();
    script.hanging_syncs.insert(("b".into(), "2.0.0".into()));
    let mut play = Play::new(Engine::Argo, script);
    play.commit("app", two("1.0.0"));
    play.until_ready("app");
    let mut spec = two("2.0.0");
    spec["rollback"] = json!({"safe": safe});
    play.commit("app", spec);
    play
}

fn two(version: &str) -> Value {
    package(version, vec![component("a", version, &[]), component("b", version, &["a"])])
}

#[test]
fn a_fix_ends_the_operation_that_holds_it_up() {
    let mut play = hangs_at_2_0_0(false);
    play.rehearsal.run_for(60_000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.tell());
    let began = play.rehearsal.now();
    play.commit("app", two("2.0.1"));
    play.until_ready("app");
    assert_eq!(play.runs("b").as_deref(), Some("2.0.1"));
    assert!(play.rehearsal.now() - began < 30_000, "{}", play.tell());
}

/// What the fix takes away is not there any more, whoever wrote it how.
#[test]
fn a_fix_that_takes_values_away_during_an_operation_takes_them_away() {
    let mut script = Script::default();
    script.hanging_syncs.insert(("b".into(), "2.0.0".into()));
    let mut play = Play::new(Engine::Argo, script);
    let mut spec = two("1.0.0");
    play.commit("app", spec.clone());
    play.until_ready("app");
    spec["components"][1]["chart"]["version"] = json!("2.0.0");
    spec["components"][1]["values"] = json!({"hook": "hangs"});
    play.commit("app", spec);
    play.rehearsal.run_for(60_000);
    play.commit("app", two("1.0.0"));
    play.until_ready("app");
    let application = play.object(&play.child("app", "b")).unwrap();
    assert_eq!(*at(application, "/spec/source/helm/valuesObject"), Value::Null, "{}", play.tell());
}

#[test]
fn a_rollback_ends_the_operation_that_holds_it_up() {
    let mut play = hangs_at_2_0_0(true);
    play.until("app", "UpgradeRolledBack");
    assert_eq!((play.runs("a").as_deref(), play.runs("b").as_deref()), (Some("1.0.0"), Some("1.0.0")));
}

/// Without an end it would go on for as long as nobody changes the spec.
#[test]
fn a_retry_ends_an_operation_that_hangs() {
    let mut play = hangs_at_2_0_0(false);
    play.until("app", "UpgradeFailed");
    play.rehearsal.world.script.hanging_syncs.clear();
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(play.runs("b").as_deref(), Some("2.0.0"));
}

/// Its hook ends late, and nobody has to ask for anything.
#[test]
fn an_operation_that_ends_after_all_lets_the_walk_go_on() {
    let mut play = hangs_at_2_0_0(false);
    play.until("app", "UpgradeFailed");
    play.rehearsal.world.script.hanging_syncs.clear();
    play.until_ready("app");
    assert_eq!(play.runs("b").as_deref(), Some("2.0.0"));
}

/// What it asks for is said once, and it is left to Argo CD.
#[test]
fn an_operation_that_never_ends_fails_the_upgrade_and_is_left_alone() {
    let mut play = hangs_at_2_0_0(false);
    play.until("app", "UpgradeFailed");
    let position = play.position();
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.changes_since(position).filter(|change| change.actor == "windlass").count(), 0, "{}", play.tell());
}

/// On Argo CD nothing can be fetched beforehand: a version that does not exist
/// shows when its turn has come.
#[test]
fn a_chart_that_is_not_there_is_said_in_its_turn_and_taken_once_it_is() {
    let mut play = Play::new(Engine::Argo, Script::default());
    play.commit("app", two("1.0.0"));
    play.until_ready("app");
    let published = play.rehearsal.now() + 40_000;
    play.rehearsal.world.script.published.insert(("b".into(), "2.0.0".into()), published);
    play.commit("app", two("2.0.0"));
    play.until("app", "SourceNotFound");
    let message = play.message("app");
    assert!(message.contains("component b") && message.contains("2.0.0"), "{message}");
    assert_eq!((play.runs("a").as_deref(), play.runs("b").as_deref()), (Some("2.0.0"), Some("1.0.0")));
    play.rehearsal.run_for(20_000);
    assert_eq!(play.reason("app"), "SourceNotFound", "{}", play.message("app"));
    play.until_ready("app");
    assert_eq!(play.runs("b").as_deref(), Some("2.0.0"));
}

#[test]
fn a_chart_that_never_comes_fails_the_upgrade() {
    let mut play = Play::new(Engine::Argo, Script::default());
    play.commit("app", two("1.0.0"));
    play.until_ready("app");
    play.rehearsal.world.script.published.insert(("b".into(), "2.0.0".into()), u64::MAX);
    play.commit("app", two("2.0.0"));
    play.until("app", "UpgradeFailed");
    assert!(play.message("app").contains("2.0.0\" not found"), "{}", play.message("app"));
}

/// The release waits for a workload, up to its timeout; what `failed` asks about
/// has happened already.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_is_said_to_have_failed_is_not_waited_for(#[case] engine: Engine) {
    let mut script = kubevirt_script(5000);
    script.operators[0].care.insert("2.0.0".into(), Care::Fails);
    script.charts.get_mut("kubevirt").unwrap().push(Template::deployment());
    script.behave("kubevirt", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("kubevirt", kubevirt("1.0.0", "1.0.0", "1.0.0", json!({})));
    play.until_ready("kubevirt");
    let began = play.rehearsal.now();
    play.commit("kubevirt", kubevirt("2.0.0", "2.0.0", "2.0.0", json!({})));
    play.until("kubevirt", "UpgradeFailed");
    assert!(play.rehearsal.now() - began < 60_000, "{}", play.tell());
    assert!(play.message("kubevirt").contains("object.status.phase == 'Failed'"), "{}", play.message("kubevirt"));
}

/// What stopped the way back is said for as long as it stands there, and each
/// component is shown at the version that it runs.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_that_fails_says_what_stopped_it_and_what_runs(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("c", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    let three = |version: &str| {
        let names = [("a", &[][..]), ("b", &["a"][..]), ("c", &["b"][..])];
        package(version, names.iter().map(|(name, after)| component(name, version, after)).collect())
    };
    play.commit("app", three("1.0.0"));
    play.until_ready("app");
    let mut spec = three("2.0.0");
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "RollingBack");
    play.rehearsal.world.script.behave("a", "1.0.0", Outcome::Fails, 1000);
    play.until("app", "RollbackFailed");
    let told = play.message("app");
    assert!(told.starts_with("1.0.0 could not be restored, it stopped at component a: "), "{told}");
    assert!(told.contains(&format!("{}/app-a", play.child("app", "a").kind)), "{told}");
    play.rehearsal.run_for(600_000);
    assert_eq!(play.message("app"), told);
    let versions: Vec<String> = play.status("app").components.into_iter().filter_map(|c| c.version).collect();
    assert_eq!(versions, ["2.0.0", "1.0.0", "1.0.0"]);
    let a = &play.status("app").components[0];
    assert!(a.message.as_deref().is_some_and(|message| message.contains("app-a")), "{a:?}");
}

/// A rollback leaves CRDs alone; that it said so to the engine moves nothing later.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_was_rolled_back_and_is_not_changed_does_not_move_with_the_next_version(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("z", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str, a: &str, z: &str| safe(version, vec![component("a", a, &[]), component("z", z, &["a"])]);
    play.commit("app", spec("1.0.0", "1.0.0", "1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "2.0.0", "2.0.0"));
    play.until("app", "UpgradeRolledBack");
    let position = play.position();
    play.commit("app", spec("2.1.0", "1.0.0", "2.1.0"));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    assert_eq!(play.moves_since(position), ["app-z"], "{}", play.tell());
}

/// A window of the project holds every operation back, the first one as well as the
/// way back: nobody has failed.
#[test]
fn a_sync_window_is_no_failure() {
    let mut play = Play::new(Engine::Argo, Script::default());
    play.commit("app", two("1.0.0"));
    play.until_ready("app");
    play.rehearsal.world.script.sync_window = true;
    let mut spec = two("2.0.0");
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.rehearsal.run_for(7_200_000);
    assert_eq!(play.reason("app"), "Suspended", "{}", play.message("app"));
    assert!(play.message("app").contains("blocked by sync window"), "{}", play.message("app"));
    play.rehearsal.world.script.sync_window = false;
    play.until_ready("app");
    assert_eq!(play.runs("b").as_deref(), Some("2.0.0"));
}

/// What failed is not tried once more when it has been told as failed, or while its
/// way back begins.
#[rstest]
#[case::not_safe(false, "UpgradeFailed")]
#[case::safe(true, "UpgradeRolledBack")]
fn no_operation_is_asked_for_once_a_component_has_failed(#[case] safe: bool, #[case] reason: &str) {
    let mut script = Script::default();
    script.charts.insert("a".into(), vec![Template::hook_job(), Template::deployment()]);
    let mut play = Play::new(Engine::Argo, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Hangs, 40_000);
    let mut spec = package("2.0.0", vec![component("a", "2.0.0", &[])]);
    spec["rollback"] = json!({"safe": safe});
    spec["upgrade"] = json!({"timeout": "1h"});
    let position = play.position();
    play.commit("app", spec);
    play.until("app", reason);
    play.rehearsal.run_for(1_200_000);
    let asked = |change: &&Change| change.actor == "windlass" && !at(&change.object, "/operation").is_null();
    let asked = play
        .changes_since(position)
        .filter(asked)
        .filter(|change| at(&change.object, "/operation/sync/source/targetRevision") == "2.0.0");
    assert_eq!(asked.count(), 3, "{}", play.tell());
}

/// The fix is for what runs above it: what has failed before its turn does not fail
/// it, however often helm-controller has tried meanwhile.
#[test]
fn failures_from_before_its_turn_do_not_fail_a_component_that_does_not_move() {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(Engine::Flux, script);
    let spec = |version: &str, a: &str, b: &str| safe(version, vec![component("a", a, &[]), component("b", b, &["a"])]);
    play.commit("app", spec("1.0.0", "1.0.0", "1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "2.0.0", "2.0.0"));
    play.rehearsal.run_for(40_000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    play.rehearsal.world.script.behave("a", "2.0.1", Outcome::Succeeds, 150_000);
    play.commit("app", spec("2.0.1", "2.0.1", "2.0.0"));
    let b = play.child("app", "b");
    let revision = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, "app-3");
    let has_begun = |revision: &Map<String, Value>| {
        let records = at(revision, "/status/components").as_array().cloned().unwrap_or_default();
        records.iter().any(|record| record["name"] == "b" && record.get("turnBegan").is_some())
    };
    let begun = play.rehearsal.run_until(600_000, |rehearsal| {
        rehearsal.world.store.get(&revision).is_some_and(|revision| has_begun(revision))
    });
    assert!(begun, "{}", play.tell());
    let failures = at(play.object(&b).unwrap(), "/status/failures").as_u64();
    assert!(failures > Some(3), "{}", play.tell());
    play.rehearsal.world.script.behave("b", "2.0.0", Outcome::Succeeds, 1000);
    play.until_ready("app");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.1"));
    assert_eq!(play.runs("b").as_deref(), Some("2.0.0"));
    let asked = at(play.object(&b).unwrap(), "/metadata/annotations/reconcile.fluxcd.io~1resetAt");
    assert!(asked.is_string(), "another attempt is asked for, and nobody waits for the next one\n{}", play.tell());
}

#[test]
fn a_retry_forgets_the_failures_of_what_does_not_move() {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(Engine::Flux, script);
    let spec =
        |version: &str, a: &str, b: &str| package(version, vec![component("a", a, &[]), component("b", b, &["a"])]);
    play.commit("app", spec("1.0.0", "1.0.0", "1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "2.0.0", "2.0.0"));
    play.until("app", "UpgradeFailed");
    play.commit("app", spec("2.0.1", "2.0.1", "2.0.0"));
    play.until("app", "UpgradeFailed");
    play.rehearsal.run_for(600_000);
    play.rehearsal.world.script.behave("b", "2.0.0", Outcome::Succeeds, 1000);
    let (position, began) = (play.position(), play.rehearsal.now());
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert!(play.rehearsal.now() - began < 10_000, "{}", play.tell());
    let failed = play
        .changes_since(position)
        .filter(|change| change.key.kind == "PackageRevision" && at(&change.object, "/status/phase") == "Failed");
    assert_eq!(failed.count(), 0, "{}", play.tell());
}

/// helm-controller will never say that it has handled ours.
#[test]
fn a_request_for_another_attempt_that_somebody_replaces_hides_no_failure() {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(Engine::Flux, script);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until("app", "UpgradeFailed");
    play.rehearsal.world.stopped.insert(Part::HelmController);
    play.annotate("app", "windlass.dev/retry", "again");
    play.rehearsal.run_for(1000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    let theirs = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "theirs"}}});
    play.patch(&play.child("app", "a"), theirs);
    play.rehearsal.run_for(1000);
    assert_eq!(play.reason("app"), "Progressing", "what failed before does not count: {}", play.message("app"));
    play.rehearsal.world.stopped.clear();
    play.until("app", "UpgradeFailed");
}

/// What the failed version is asked about its health may be what made it fail.
#[test]
fn the_way_back_has_the_settings_of_what_it_goes_back_to() {
    let mut script = Script::default();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(Engine::Flux, script);
    let spec = |version: &str| safe(version, vec![component("a", version, &[])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    let child = play.child("app", "a");
    let before = play.object(&child).unwrap()["spec"].clone();
    let mut next = spec("2.0.0");
    next["upgrade"] = json!({"timeout": "3m"});
    next["components"][0]["install"]["healthCheckExprs"] =
        json!([{"apiVersion": "example.org/v1", "kind": "App", "current": "status.newField == 'ok'"}]);
    play.commit("app", next);
    play.until("app", "UpgradeRolledBack");
    let check = |play: &Play| {
        let spec = play.object(&child).unwrap()["spec"].clone();
        for field in ["timeout", "healthCheckExprs", "waitStrategy"] {
            assert_eq!(spec.get(field), before.get(field), "{field}");
        }
    };
    check(&play);
    play.patch(&child, json!({"spec": {"releaseName": "edited"}}));
    play.rehearsal.run_for(60_000);
    check(&play);
}

/// The engine waits for a resource that has a condition Ready. It cannot have it at
/// the old version while the new operator runs, so the way back does not wait.
#[rstest]
#[case::with_ready_when(true)]
#[case::without(false)]
fn the_way_back_does_not_wait_for_what_the_new_operator_reports(
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
    #[case] has_ready_when: bool,
) {
    let mut script = kubevirt_script(5000);
    script.operators[0].condition = "Ready".into();
    script.operators[0].stays_true = false;
    script.operators[0].care.insert("2.0.0".into(), Care::Fails);
    let mut play = Play::new(engine, script);
    let spec = |version: &str| {
        let mut spec = kubevirt(version, version, version, json!({"safe": true}));
        spec["components"][1]["install"]["readyWhen"] = if has_ready_when {
            json!([{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Ready"}])
        } else {
            json!([])
        };
        spec
    };
    play.commit("kubevirt", spec("1.0.0"));
    play.until_ready("kubevirt");
    let position = play.position();
    play.commit("kubevirt", spec("2.0.0"));
    play.until("kubevirt", "UpgradeRolledBack");
    assert_eq!(play.runs("operator").as_deref(), Some("1.0.0"));
    let back = ["kubevirt-operator", "kubevirt-kubevirt", "kubevirt-kubevirt", "kubevirt-operator"];
    assert_eq!(play.moves_since(position), back, "{}", play.tell());
    let settled = play.position();
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.moves_since(settled), Vec::<String>::new(), "a rolled back package is left alone");
}

/// Only lasting proves it, and it lasts from when its release is ready, told as
/// failed or not.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_becomes_ready_after_the_failure_was_told_counts_once_it_has_lasted(#[case] engine: Engine) {
    let mut script = unchanging_resource_script(5000);
    script.behave("kubevirt", "2.0.0", Outcome::Succeeds, 150_000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str, resource: &str| {
        let mut spec = kubevirt(version, "1.0.0", resource, json!({}));
        spec["upgrade"] = json!({"timeout": "1m"});
        spec["components"][1]["install"]["readyWhen"] =
            json!([{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Available"}]);
        spec
    };
    play.commit("kubevirt", spec("1.0.0", "1.0.0"));
    play.until_ready("kubevirt");
    play.commit("kubevirt", spec("2.0.0", "2.0.0"));
    play.until("kubevirt", "UpgradeFailed");
    play.until_ready("kubevirt");
    assert_eq!(play.status("kubevirt").version.as_deref(), Some("2.0.0"));
}
