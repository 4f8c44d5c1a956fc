//! PreUpgrade hooks.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script, Template};
use windlass::sim::store::Expected;
use windlass::sim::world::Part;
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, at, component, hook, migration_script, package};

fn spec(version: &str, safe: bool) -> Value {
    let mut spec = package(version, vec![hook("migrate", "1.0.0"), component("a", version, &[])]);
    spec["rollback"] = json!({"safe": safe});
    spec
}

/// Jobs that were started since a place in the log.
fn runs(play: &Play, position: usize) -> usize {
    play.changes_since(position).filter(|change| change.key.kind == "Job" && change.verb == Verb::Created).count()
}

fn installed(engine: Engine) -> Play {
    let mut play = Play::new(engine, migration_script());
    play.commit("app", spec("1.0.0", true));
    play.until_ready("app");
    assert_eq!(runs(&play, 0), 0, "a first install runs no hook");
    play
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_hook_runs_once_before_anything_moves_and_is_tidied_up(#[case] engine: Engine) {
    let mut play = installed(engine);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until_ready("app");
    assert_eq!(runs(&play, position), 1);
    assert_eq!(play.moves_since(position), ["app-migrate-2", "app-a"]);
    let done =
        play.changes_since(position).find(|c| c.key.kind == "Job" && at(&c.object, "/status/updatedReplicas") == 1);
    let written = play.changes_since(position).find(|c| c.key.name == "app-a" && c.actor == "windlass");
    assert!(done.unwrap().at <= written.unwrap().at);
    let left = play.rehearsal.run_until(60_000, |rehearsal| rehearsal.world.store.list("Job").next().is_none());
    assert!(left, "{}", play.tell());
}

/// Deleted while suspended, its release would stay, and the next run be no run.
#[test]
fn a_hook_that_was_suspended_is_run_afresh() {
    let mut play = installed(Engine::Flux);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until("app", "UpgradeRolledBack");
    play.patch(&play.child("app", "migrate-2"), json!({"spec": {"suspend": true}}));
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(runs(&play, position), 2, "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_hook_runs_again_after_a_rollback(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until("app", "UpgradeRolledBack");
    assert_eq!(runs(&play, position), 1);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(runs(&play, position), 2, "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_hook_of_the_next_version_is_told_what_was_migrated(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Hangs, 1000);
    let position = play.position();
    play.commit("app", spec("2.0.0", false));
    let child = play.child("app", "a");
    let begun = play.rehearsal.run_until(600_000, |rehearsal| {
        serde_json::to_string(&rehearsal.world.store.get(&child).unwrap()["spec"]).unwrap().len() > 2
            && rehearsal.world.store.list("Job").any(|(_, job)| at(job, "/status/updatedReplicas") == 1)
    });
    assert!(begun);
    play.rehearsal.run_for(10_000);
    play.commit("app", spec("2.1.0", false));
    play.until_ready("app");
    assert_eq!(runs(&play, position), 2, "{}", play.tell());
    let told = play.changes_since(position).find(|change| change.key.name == "app-migrate-3").expect("it runs");
    let values = match engine {
        Engine::Flux => at(&told.object, "/spec/values").clone(),
        Engine::Argo => at(&told.object, "/spec/source/helm/valuesObject").clone(),
    };
    assert_eq!(values["windlass"]["migratedTo"], "2.0.0");
    assert_eq!(values["kubepkg"], json!({"fromVersion": "1.0.0", "toVersion": "2.1.0"}));
}

#[test]
fn a_retry_that_a_new_commit_takes_over_from_has_failed_by_its_hook() {
    let mut play = installed(Engine::Flux);
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Hangs, 1000);
    play.commit("app", spec("2.0.0", true));
    play.until("app", "HookFailed");
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 1000);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Hangs, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    let begun = play.rehearsal.run_until(600_000, |rehearsal| {
        let key = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, "app-2");
        rehearsal.world.store.get(&key).is_some_and(|revision| revision["status"]["hooks"][0]["outcome"] == "Succeeded")
    });
    assert!(begun, "{}", play.tell());
    play.commit("app", spec("2.1.0", true));
    play.until_ready("app");
    assert_eq!(status_of_revision(&play, 2), ("Superseded".to_owned(), "HookFailed".to_owned()));
}

/// Phase and reason of a revision of `app`.
fn status_of_revision(play: &Play, number: u64) -> (String, String) {
    let key = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, &format!("app-{number}"));
    let revision = play.object(&key).unwrap_or_else(|| panic!("revision {number} is gone"));
    let text = |field: &str| revision["status"][field].as_str().unwrap_or_default().to_owned();
    (text("phase"), text("reason"))
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_attempt_that_failed_is_known_once_a_new_commit_has_taken_over(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Fails, 1000);
    play.commit("app", spec("2.0.0", true));
    let tried = play.rehearsal.run_until(600_000, |rehearsal| {
        let key = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, "app-2");
        let revision = rehearsal.world.store.get(&key);
        let records = revision.and_then(|revision| revision["status"].pointer("/components").cloned());
        records
            .is_some_and(|records| records.as_array().unwrap().iter().any(|record| record.get("lastFailure").is_some()))
    });
    assert!(tried, "{}", play.tell());
    play.commit("app", spec("2.1.0", true));
    play.until_ready("app");
    assert_eq!(status_of_revision(&play, 2), ("Superseded".to_owned(), "UpgradeFailed".to_owned()));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_failed_hook_stops_the_upgrade_with_nothing_else_changed(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Hangs, 1000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until("app", "HookFailed");
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.moves_since(position), ["app-migrate-2"]);
    assert_eq!(runs(&play, position), 1);
    assert!(play.rehearsal.world.store.list("Job").next().is_some(), "it stays for its logs");
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(runs(&play, position), 2);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_changed_spec_waits_for_the_hook_that_runs_and_starts_no_other_of_its_version(#[case] engine: Engine) {
    let two = |version: &str| {
        let mut spec = spec(version, true);
        spec["components"].as_array_mut().unwrap().insert(1, hook("index", "1.0.0"));
        spec
    };
    let mut play = Play::new(engine, migration_script());
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 30_000);
    play.commit("app", two("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", two("2.0.0"));
    let begun = play.rehearsal.run_until(60_000, |rehearsal| rehearsal.world.store.list("Job").next().is_some());
    assert!(begun);
    play.commit("app", two("3.0.0"));
    play.rehearsal.run_for(1000);
    assert!(play.message("app").contains("hook migrate is waited for first"), "{}", play.message("app"));
    play.until_ready("app");
    let moves = play.moves_since(position);
    assert_eq!(moves, ["app-migrate-2", "app-migrate-3", "app-index-3", "app-a"], "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_voids_the_hooks_of_every_revision_before_it(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Hangs, 1000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.rehearsal.run_for(30_000);
    assert_eq!(runs(&play, position), 1);
    // The same version with other values: the hook has run for it.
    let mut changed = spec("2.0.0", true);
    changed["components"][1]["values"] = json!({"replicas": 2});
    play.commit("app", changed);
    play.until("app", "UpgradeRolledBack");
    assert_eq!(runs(&play, position), 1);
    play.rehearsal.world.script.behave("a", "2.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(runs(&play, position), 2, "{}", play.tell());
}

/// A hook that has failed may have migrated half of the data: an attempt to run it
/// again does not undo that.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_hook_that_failed_was_started_whatever_is_asked_for_afterwards(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Hangs, 1000);
    play.commit("app", spec("2.0.0", false));
    play.until("app", "HookFailed");
    // Its leftover cannot go, so it does not start again.
    play.rehearsal.world.stopped.insert(match engine {
        Engine::Flux => Part::HelmController,
        Engine::Argo => Part::ArgoCd,
    });
    play.annotate("app", "windlass.dev/retry", "again");
    play.rehearsal.run_for(5000);
    play.rehearsal.world.stopped.clear();
    play.rehearsal.world.script.behave("a", "3.0.0", Outcome::Fails, 1000);
    let mut next = package("3.0.0", vec![component("a", "3.0.0", &[])]);
    next["rollback"] = json!({"safe": true});
    play.commit("app", next);
    play.until("app", "UpgradeFailed");
    assert!(play.message("app").contains("revision 2 (2.0.0) does not say rollback.safe"), "{}", play.message("app"));
}

/// Somebody holds the hook back: nothing fails, nothing moves, and it is said.
#[test]
fn a_hook_that_is_suspended_is_waited_for_and_said() {
    let mut play = installed(Engine::Flux);
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 30_000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    let hook = play.child("app", "migrate-2");
    assert!(play.rehearsal.run_until(60_000, |rehearsal| rehearsal.world.store.get(&hook).is_some()));
    play.patch(&hook, json!({"spec": {"suspend": true}}));
    play.rehearsal.run_for(3_600_000);
    assert_eq!(play.reason("app"), "Suspended", "{}", play.message("app"));
    assert!(play.message("app").contains("HelmRelease/app-migrate-2 is suspended"), "{}", play.message("app"));
    assert_eq!(play.moves_since(position), ["app-migrate-2"]);
    play.patch(&hook, json!({"spec": {"suspend": false}}));
    play.until_ready("app");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"));
}

/// It runs under its dependents until the new set is ready, and what has run
/// before it is not called unchanged.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_component_that_becomes_a_hook_runs_until_the_new_set_is_ready(#[case] engine: Engine) {
    let mut play = Play::new(engine, migration_script());
    let components = vec![component("db", "1.0.0", &[]), component("api", "1.0.0", &["db"])];
    play.commit("app", package("1.0.0", components));
    play.until_ready("app");
    let mut becomes_a_hook = hook("db", "1.0.0");
    let next = |hook: Value| package("2.0.0", vec![hook, component("api", "2.0.0", &[])]);
    play.commit("app", next(becomes_a_hook.clone()));
    play.until("app", "InvalidSpec");
    let message = "hook `db` would take release db, in which component `db` runs";
    assert!(play.message("app").contains(message), "{}", play.message("app"));
    becomes_a_hook["install"]["releaseName"] = json!("db-migration");
    play.rehearsal.world.script.behave("db-migration", "1.0.0", Outcome::Hangs, 1000);
    play.commit("app", next(becomes_a_hook));
    play.until("app", "HookFailed");
    assert_eq!(play.runs("db").as_deref(), Some("1.0.0"), "{}", play.tell());
    play.rehearsal.world.script.behave("db-migration", "1.0.0", Outcome::Succeeds, 1000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    let gone = play
        .rehearsal
        .run_until(60_000, |r| r.world.store.get(&Key::new("apps/v1", "Deployment", NAMESPACE, "db")).is_none());
    assert!(gone, "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_failed_hook_says_what_was_changed_before_it(#[case] engine: Engine) {
    let mut play = Play::new(engine, migration_script());
    let hooked = |version: &str| {
        package(version, vec![hook("migrate", "1.0.0"), hook("index", "1.0.0"), component("a", version, &[])])
    };
    play.commit("app", hooked("1.0.0"));
    play.until_ready("app");
    play.rehearsal.world.script.behave("index", "1.0.0", Outcome::Hangs, 1000);
    play.commit("app", hooked("2.0.0"));
    play.until("app", "HookFailed");
    let said = "hook index failed, what went before it stays (hook migrate): ";
    assert!(play.message("app").starts_with(said), "{}", play.message("app"));
}

/// Helm would upgrade the release of somebody else to the chart of the hook.
#[test]
fn a_hook_takes_no_release_that_somebody_else_holds() {
    let mut play = installed(Engine::Flux);
    play.apply(&json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "theirs", "namespace": NAMESPACE},
        "spec": {"releaseName": "migrate", "suspend": true, "interval": "1h",
            "chart": {"spec": {"chart": "x", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "x"}}}},
    }));
    play.commit("app", spec("2.0.0", true));
    play.until("app", "Conflict");
    let said = "holds release migrate of hook `migrate`: remove it, or give the hook another releaseName";
    assert!(play.message("app").contains(said), "{}", play.message("app"));
}

/// A chart whose Job is a Helm hook, as those of most migrations are: Argo CD makes
/// it again with every operation, its own retries included.
fn helm_hook_script() -> Script {
    let mut script = Script::default();
    script.charts.insert("migration".into(), vec![Template::hook_job()]);
    script
}

fn installed_with_helm_hook() -> Play {
    let mut play = Play::new(Engine::Argo, helm_hook_script());
    play.commit("app", spec("1.0.0", true));
    play.until_ready("app");
    play
}

#[test]
fn a_helm_hook_that_fails_late_is_run_once_by_argo_cd() {
    let mut play = installed_with_helm_hook();
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Hangs, 40_000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until("app", "HookFailed");
    play.rehearsal.run_for(1_200_000);
    assert_eq!(runs(&play, position), 1, "{}", play.tell());
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 40_000);
    play.annotate("app", "windlass.dev/retry", "again");
    play.until_ready("app");
    assert_eq!(runs(&play, position), 2, "{}", play.tell());
}

#[test]
fn a_helm_hook_that_succeeds_is_run_once_by_argo_cd() {
    let mut play = installed_with_helm_hook();
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 40_000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until_ready("app");
    assert_eq!(runs(&play, position), 1, "{}", play.tell());
}

/// Until it begins.
fn begun(play: &mut Play) {
    let begun = play.rehearsal.run_until(60_000, |rehearsal| rehearsal.world.store.list("Job").next().is_some());
    assert!(begun, "{}", play.tell());
    play.rehearsal.run_for(2000);
}

/// Whoever takes the operation or what is told of it away: it has run.
#[rstest]
#[case::operation(json!({"operation": null}))]
#[case::state(json!({"operation": null, "status": {"operationState": null}}))]
fn a_hook_whose_operation_is_taken_away_is_not_run_again(#[case] patch: Value) {
    let mut play = installed_with_helm_hook();
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 40_000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    begun(&mut play);
    play.patch(&play.child("app", "migrate-2"), patch);
    play.until("app", "HookFailed");
    assert!(play.message("app").contains("a hook is not run a second time"), "{}", play.message("app"));
    assert_eq!(runs(&play, position), 1, "{}", play.tell());
}

/// Nothing has run where the chart could not be had.
#[test]
fn a_hook_whose_chart_cannot_be_had_yet_is_asked_for_again() {
    let mut play = installed_with_helm_hook();
    let published = play.rehearsal.now() + 45_000;
    play.rehearsal.world.script.published.insert(("migration".into(), "1.0.0".into()), published);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.until_ready("app");
    assert_eq!(runs(&play, position), 1, "{}", play.tell());
}

/// To write it again would be to run it again.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_hook_that_somebody_deletes_while_it_runs_has_failed(#[case] engine: Engine) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 40_000);
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    begun(&mut play);
    let hook = play.child("app", "migrate-2");
    play.rehearsal.world.store.delete("user", &hook, &Expected::default()).unwrap();
    play.until("app", "HookFailed");
    assert!(play.message("app").contains("app-migrate-2 was deleted while it ran"), "{}", play.message("app"));
    assert_eq!(runs(&play, position), 1, "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux, json!({"spec": {"releaseName": "another"}}))]
#[case::argo(Engine::Argo, json!({"spec": {"source": {"helm": {"valuesObject": {"edited": true}}}}}))]
fn a_hook_that_somebody_edits_while_it_runs_is_not_written_again(#[case] engine: Engine, #[case] patch: Value) {
    let mut play = installed(engine);
    play.rehearsal.world.script.behave("migrate", "1.0.0", Outcome::Succeeds, 40_000);
    play.commit("app", spec("2.0.0", true));
    begun(&mut play);
    let hook = play.child("app", "migrate-2");
    play.patch(&hook, patch);
    let position = play.position();
    play.rehearsal.run_for(60_000);
    let written = play.changes_since(position).filter(|change| *change.key == hook && change.actor == "windlass");
    assert_eq!(written.count(), 0, "{}", play.tell());
    assert!(play.message("app").contains("a hook that was started is not written again"), "{}", play.message("app"));
}

/// Argo CD holds the operation back: nothing fails, and it is said.
#[test]
fn a_hook_in_a_sync_window_is_waited_for() {
    let mut play = installed_with_helm_hook();
    play.rehearsal.world.script.sync_window = true;
    let position = play.position();
    play.commit("app", spec("2.0.0", true));
    play.rehearsal.run_for(3_600_000);
    assert_eq!(play.reason("app"), "Suspended", "{}", play.message("app"));
    play.rehearsal.world.script.sync_window = false;
    play.until_ready("app");
    assert_eq!(runs(&play, position), 1, "{}", play.tell());
}
