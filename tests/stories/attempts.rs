//! Another attempt at what failed: asked for, or by edited settings.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::{ComponentState, Engine};
use windlass::sim::Key;
use windlass::sim::chart::{Care, Fate, Outcome, Script};
use windlass::sim::guard::Policy;
use windlass::sim::store::Expected;

use crate::canaries;
use crate::play::{NAMESPACE, Play, at, component, hook, kubevirt, kubevirt_script, migration_script, package, safe};

fn with_timeout(mut spec: Value, timeout: &str) -> Value {
    spec["upgrade"] = json!({"timeout": timeout});
    spec
}

/// Events of a Package, as far as they contain a text.
fn told(play: &Play, text: &str) -> usize {
    play.rehearsal.notes.iter().filter(|note| format!("{:?}", note.what).contains(text)).count()
}

/// What runs is tried again without another change, and gets its time anew.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn edited_settings_are_another_attempt_at_a_failed_upgrade(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Succeeds, 150_000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str, timeout: &str| {
        with_timeout(package(version, vec![component("a", version, &[]), component("b", version, &["a"])]), timeout)
    };
    play.commit("app", spec("1.0.0", "1m"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "1m"));
    play.until("app", "UpgradeFailed");
    let position = play.position();
    play.commit("app", spec("2.0.0", "2m"));
    play.rehearsal.run_for(1000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.message("app"));
    let b = play.status("app").components[1].clone();
    assert_ne!(b.state, ComponentState::Failed, "{b:?}");
    play.until_ready("app");
    assert_eq!(play.status("app").version.as_deref(), Some("2.0.0"));
    let failed = play
        .changes_since(position)
        .filter(|change| change.key.kind == "PackageRevision" && at(&change.object, "/status/phase") == "Failed")
        .filter(|change| change.at > play.changes_since(position).next().unwrap().at);
    assert_eq!(failed.count(), 0, "{}", play.tell());
    assert_eq!(told(&play, "settings were edited: another attempt"), 1);
}

/// It failed because it was given too little time.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_longer_timeout_lets_a_failed_hook_run_again(#[case] engine: Engine) {
    let mut script = migration_script();
    script.behave("migrate", "1.0.0", Outcome::Succeeds, 120_000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str, timeout: &str| {
        with_timeout(package(version, vec![hook("migrate", "1.0.0"), component("a", version, &[])]), timeout)
    };
    play.commit("app", spec("1.0.0", "1m"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0", "1m"));
    play.until("app", "HookFailed");
    play.commit("app", spec("2.0.0", "10m"));
    play.until_ready("app");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"));
}

/// Only the Package's owner means another attempt by what they edit; what
/// succeeded is not tried again at all.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn edited_settings_of_what_succeeded_are_no_attempt(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let spec = || package("1.0.0", vec![component("a", "1.0.0", &[])]);
    play.commit("app", spec());
    play.until_ready("app");
    play.commit("app", with_timeout(spec(), "11m"));
    play.until_ready("app");
    assert_eq!(told(&play, "another attempt"), 0, "{}", play.tell());
}

fn three(version: &str) -> Value {
    let names = [("a", &[][..]), ("b", &["a"][..]), ("c", &["b"][..])];
    safe(version, names.iter().map(|(name, after)| component(name, version, after)).collect())
}

/// What ended well on the way back is not done again.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_goes_on_with_a_failed_rollback_where_it_stopped(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("c", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", three("1.0.0"));
    play.until_ready("app");
    play.commit("app", three("2.0.0"));
    play.until("app", "RollingBack");
    play.rehearsal.world.script.behave("a", "1.0.0", Outcome::Fails, 1000);
    play.until("app", "RollbackFailed");
    play.rehearsal.run_for(600_000);
    play.rehearsal.world.script.behave("a", "1.0.0", Outcome::Succeeds, 120_000);
    let position = play.position();
    play.annotate("app", "windlass.dev/retry", "again");
    play.rehearsal.run_for(1000);
    assert_eq!(play.reason("app"), "RollingBack", "{}", play.message("app"));
    play.until("app", "UpgradeRolledBack");
    assert!(play.moves_since(position).iter().all(|name| name == "app-a"), "{}", play.tell());
    let runs = ["a", "b", "c"].map(|name| play.runs(name));
    assert_eq!(runs, ["1.0.0", "1.0.0", "1.0.0"].map(|version| Some(version.to_owned())), "{}", play.tell());
}

/// An uninstallation that never ends would hold up the way back for ever.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_does_not_go_on_the_way_back_fails_it_in_time(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("c", "2.0.0", Outcome::Fails, 1000);
    script.stuck_uninstalls.insert("b".into());
    let mut play = Play::new(engine, script);
    play.commit("app", safe("1.0.0", vec![component("a", "1.0.0", &[]), component("c", "1.0.0", &["a"])]));
    play.until_ready("app");
    play.commit("app", three("2.0.0"));
    play.until("app", "RollingBack");
    let began = play.rehearsal.now();
    play.until("app", "RollbackFailed");
    assert!(play.rehearsal.now() - began > 590_000, "it has its time\n{}", play.tell());
    assert!(play.message("app").contains("component b: not gone within 10m"), "{}", play.message("app"));
    let b = play.status("app").components[1].clone();
    assert_eq!((b.name.as_str(), b.state), ("b", ComponentState::Failed), "{b:?}");
    if engine == Engine::Flux {
        assert!(play.message("app").contains("uninstalling fails: uninstallation failed"), "{}", play.message("app"));
    }
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"), "what is below it stays while it is there");
    play.rehearsal.world.script.stuck_uninstalls.clear();
    let looked_at = json!({"metadata": {"annotations": {"example.org/looked-at": "again"}}});
    play.patch(&play.child("app", "b"), looked_at);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until("app", "UpgradeRolledBack");
    let runs = ["a", "b", "c"].map(|name| play.runs(name));
    assert_eq!(runs, [Some("1.0.0".into()), None, Some("1.0.0".into())], "{}", play.tell());
}

/// That it ended is seen, and it does not run twice.
#[rstest]
fn a_hook_ends_beside_a_spec_that_is_not_taken(
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
    #[values(json!({"requires": [{"package": "nobody"}]}), json!({"version": "three"}))] flaw: Value,
) {
    let mut script = migration_script();
    script.behave("migrate", "1.0.0", Outcome::Succeeds, 60_000);
    let mut play = Play::new(engine, script);
    let spec = |version: &str| safe(version, vec![hook("migrate", "1.0.0"), component("a", version, &[])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", spec("2.0.0"));
    play.rehearsal.run_for(30_000);
    let mut next = spec("3.0.0");
    next.as_object_mut().unwrap().extend(flaw.as_object().cloned().unwrap());
    play.commit("app", next);
    play.rehearsal.run_for(300_000);
    let revision = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, "app-2");
    let outcome = at(play.object(&revision).unwrap(), "/status/hooks/0/outcome").clone();
    assert_eq!(outcome, "Succeeded", "{}", play.tell());
    play.commit("app", spec("2.0.0"));
    play.until_ready("app");
    assert_eq!(play.moves_since(position), ["app-migrate-2", "app-a"], "{}", play.tell());
}

/// The check at the end of a rollback has its time, and once more when it is asked for.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_gives_the_check_at_the_end_of_a_rollback_its_time_anew(#[case] engine: Engine) {
    let mut script = kubevirt_script(5000);
    script.operators[0].care.insert("2.0.0".into(), Care::Fails);
    let mut play = Play::new(engine, script);
    play.commit("kubevirt", kubevirt("1.0.0", "1.0.0", "1.0.0", json!({})));
    play.until_ready("kubevirt");
    play.commit("kubevirt", kubevirt("2.0.0", "2.0.0", "2.0.0", json!({"safe": true})));
    play.until("kubevirt", "RollingBack");
    play.rehearsal.world.script.operators[0].care.insert("1.0.0".into(), Care::Silent);
    play.until("kubevirt", "RollbackFailed");
    assert!(play.message("kubevirt").contains("the check at the end: not ready within 10m"), "{}", play.tell());
    let position = play.position();
    play.annotate("kubevirt", "windlass.dev/retry", "again");
    play.rehearsal.run_for(300_000);
    assert_eq!(play.reason("kubevirt"), "RollingBack", "{}", play.message("kubevirt"));
    play.until("kubevirt", "RollbackFailed");
    assert_eq!(play.moves_since(position), Vec::<String>::new());
}

/// Ten nodes of an agent whose version 2 no node can run.
fn with_broken_pods(engine: Engine, safe: bool, broken: &[&str]) -> Play {
    let mut script = canaries::script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = canaries::installed(engine, &[Policy::Strict], script, canary("30s"));
    for image in broken {
        play.rehearsal.world.script.pods_behave(image, "*", Fate::CannotPull);
    }
    let mut spec = canaries::agents("2.0.0", canary("30s"));
    spec["rollback"] = json!({"safe": safe});
    play.commit("app", spec);
    play
}

fn canary(timeout: &str) -> Value {
    json!({"soak": "5s", "timeout": timeout})
}

/// What they lacked is there now, and somebody makes those that lack it anew.
fn mend_pods(play: &mut Play) {
    play.rehearsal.world.script.pods.clear();
    let pods = play.rehearsal.world.store.list("Pod");
    let is_broken = |pod: &Map<String, Value>| {
        at(pod, "/status/conditions")
            .as_array()
            .into_iter()
            .flatten()
            .all(|c| c["type"] != "Ready" || c["status"] != "True")
    };
    let broken: Vec<Key> = pods.filter(|(_, pod)| is_broken(pod)).map(|(key, _)| key.clone()).collect();
    assert!(!broken.is_empty());
    for pod in &broken {
        play.rehearsal.world.store.delete("user", pod, &Expected::default()).unwrap();
    }
}

/// Whether all nodes run an image.
fn all_run(play: &Play, image: &str) -> bool {
    let images = canaries::images(play);
    images.len() == canaries::NODES && images.iter().all(|found| found == image)
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_thaws_what_a_failed_rollback_has_frozen(#[case] engine: Engine) {
    let mut play = with_broken_pods(engine, true, &["agent:1.0.0"]);
    let position = play.position();
    play.until("app", "RollbackFailed");
    play.rehearsal.run_for(60_000);
    mend_pods(&mut play);
    play.rehearsal.run_for(60_000);
    assert_eq!(play.reason("app"), "RollbackFailed", "it stays failed until somebody asks");
    play.annotate("app", "windlass.dev/retry", "again");
    play.until("app", "UpgradeRolledBack");
    assert!(all_run(&play, "agent:1.0.0"), "{}", play.tell());
    assert!(canaries::most_down(&play, position) <= 1, "{}", play.tell());
}

/// What was written back already brings no new template that could be awaited.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_of_a_failed_rollback_fails_again_at_once_where_its_pods_are_still_broken(#[case] engine: Engine) {
    let mut play = with_broken_pods(engine, true, &["agent:1.0.0"]);
    play.until("app", "RollbackFailed");
    play.rehearsal.run_for(60_000);
    play.annotate("app", "windlass.dev/retry", "again");
    let asked = play.rehearsal.now();
    play.rehearsal.run_for(1000);
    play.until("app", "RollbackFailed");
    assert_eq!(told(&play, "another attempt was asked for"), 1);
    let took = play.rehearsal.now() - asked;
    assert!(took < 120_000, "it took {} s\n{}", took / 1000, play.message("app"));
    assert!(play.message("app").contains("ErrImagePull"), "{}", play.message("app"));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_retry_rolls_out_what_was_rolled_back_because_of_its_pods(#[case] engine: Engine) {
    let mut play = with_broken_pods(engine, true, &[]);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(60_000);
    play.rehearsal.world.script.pods.clear();
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert!(all_run(&play, "agent:2.0.0"), "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn edited_settings_are_another_attempt_at_a_rollout_that_failed(#[case] engine: Engine) {
    let mut play = with_broken_pods(engine, false, &[]);
    play.until("app", "UpgradeFailed");
    play.rehearsal.run_for(60_000);
    mend_pods(&mut play);
    play.rehearsal.run_for(60_000);
    assert_eq!(play.reason("app"), "UpgradeFailed", "it stays failed until somebody asks");
    play.commit("app", with_timeout(canaries::agents("2.0.0", canary("30s")), "11m"));
    play.until_ready("app");
    assert!(all_run(&play, "agent:2.0.0"), "{}", play.tell());
}
