//! The end of packages and of components.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script, Template};
use windlass::sim::store::Expected;
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, at, component, package, package_key};

fn chain(version: &str) -> Value {
    package(
        version,
        vec![component("a", version, &[]), component("b", version, &["a"]), component("c", version, &["b"])],
    )
}

/// Deployments in the order in which they went.
fn gone(play: &Play, position: usize) -> Vec<&str> {
    play.changes_since(position)
        .filter(|change| change.verb == Verb::Deleted && change.key.kind == "Deployment")
        .map(|change| change.key.name.as_str())
        .collect()
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_is_uninstalled_in_reverse_and_leaves_nothing(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.delete("app");
    play.until_gone("app");
    assert_eq!(gone(&play, position), ["c", "b", "a"]);
    play.rehearsal.run_for(60_000);
    let left: Vec<String> = play.rehearsal.world.store.all().map(|(key, _)| key.to_string()).collect();
    assert_eq!(left, Vec::<String>::new(), "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_is_deleted_in_the_middle_of_its_installation(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("b", "1.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", chain("1.0.0"));
    play.rehearsal.run_for(30_000);
    let position = play.position();
    play.delete("app");
    play.until_gone("app");
    assert_eq!(gone(&play, position), ["b", "a"]);
}

/// Without its account helm-controller would drop the release and leave the
/// workload.
#[test]
fn an_account_that_is_gone_blocks_the_uninstallation_by_name() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": NAMESPACE},
    });
    play.apply(&account);
    let mut spec = chain("1.0.0");
    spec["serviceAccountName"] = json!("deployer");
    play.commit("app", spec);
    play.until_ready("app");
    let key = windlass::sim::Key::new("v1", "ServiceAccount", NAMESPACE, "deployer");
    play.rehearsal.world.store.delete("user", &key, &windlass::sim::store::Expected::default()).unwrap();
    play.delete("app");
    play.rehearsal.run_for(1_200_000);
    let blocked = play.status("app").blocked_by;
    assert_eq!(blocked.len(), 1, "{}", play.tell());
    assert_eq!((blocked[0].kind.as_str(), blocked[0].name.as_str()), ("ServiceAccount", "deployer"));
    for release in ["a", "b", "c"] {
        assert!(play.runs(release).is_some(), "{release} is still there");
    }
    play.apply(&account);
    play.until_gone("app");
    assert_eq!(play.rehearsal.world.store.list("Deployment").count(), 0);
}

/// The RoleBinding went first: the account is there and may do nothing.
#[test]
fn an_account_without_its_rights_blocks_the_uninstallation_by_name() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.apply(&json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": NAMESPACE},
    }));
    let mut spec = chain("1.0.0");
    spec["serviceAccountName"] = json!("deployer");
    play.commit("app", spec);
    play.until_ready("app");
    play.rehearsal.faults.distortion = Some(|snapshot| {
        snapshot.rights = windlass::rollout::needs(snapshot).rights.into_iter().map(|right| (right, false)).collect();
    });
    play.delete("app");
    play.rehearsal.run_for(1_200_000);
    let blocked = play.status("app").blocked_by;
    assert_eq!((blocked[0].kind.as_str(), blocked[0].reason.as_str()), ("ServiceAccount", "Forbidden"));
    assert!(play.message("app").contains("its ServiceAccount deployer may no longer"), "{}", play.message("app"));
    assert!(["a", "b", "c"].iter().all(|release| play.runs(release).is_some()));
    play.rehearsal.faults.distortion = None;
    play.until_gone("app");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn removed_components_go_after_the_new_set_is_ready(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until_ready("app");
    assert_eq!(gone(&play, position), ["c", "b"]);
    let succeeded = play
        .changes_since(position)
        .find(|change| change.key.kind == "PackageRevision" && at(&change.object, "/status/phase") == "Succeeded");
    let first = play.changes_since(position).find(|c| c.verb == Verb::Deleted && c.key.kind == "Deployment");
    assert!(succeeded.unwrap().at <= first.unwrap().at);
}

fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}})
}

fn acting_as(name: &str, mut spec: Value) -> Value {
    spec["serviceAccountName"] = json!(name);
    spec
}

fn lose_account(play: &mut Play, name: &str) {
    let key = Key::new("v1", "ServiceAccount", NAMESPACE, name);
    play.rehearsal.world.store.delete("user", &key, &Expected::default()).unwrap();
}

/// It is not the Package that goes, but the account is needed all the same.
#[test]
fn a_removed_component_waits_for_its_account() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.apply(&account("deployer"));
    play.commit("app", acting_as("deployer", chain("1.0.0")));
    play.until_ready("app");
    lose_account(&mut play, "deployer");
    play.commit("app", acting_as("deployer", package("2.0.0", vec![component("a", "2.0.0", &[])])));
    play.rehearsal.run_for(1_200_000);
    assert!(["b", "c"].iter().all(|release| play.runs(release).is_some()), "{}", play.tell());
    assert!(play.message("app").contains("its ServiceAccount deployer is gone"), "{}", play.message("app"));
    play.apply(&account("deployer"));
    play.until_ready("app");
    assert!(["b", "c"].iter().all(|release| play.runs(release).is_none()), "{}", play.tell());
}

/// One commit removes a component and the account that it acted as.
#[test]
fn a_component_that_goes_acts_as_the_account_of_now() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.apply(&account("old"));
    play.commit("app", acting_as("old", chain("1.0.0")));
    play.until_ready("app");
    play.apply(&account("new"));
    lose_account(&mut play, "old");
    play.commit("app", acting_as("new", package("2.0.0", vec![component("a", "2.0.0", &[])])));
    play.until_ready("app");
    assert!(["b", "c"].iter().all(|release| play.runs(release).is_none()), "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_orphaned_package_leaves_everything_running(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let mut spec = chain("1.0.0");
    spec["deletionPolicy"] = json!("Orphan");
    play.commit("app", spec);
    play.until_ready("app");
    let position = play.position();
    play.delete("app");
    play.until_gone("app");
    play.rehearsal.run_for(600_000);
    assert_eq!(gone(&play, position), Vec::<&str>::new());
    assert!(play.object(&play.child("app", "a")).is_some());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_suspended_child_is_lifted_and_uninstalled(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    if engine == Engine::Flux {
        play.patch(&play.child("app", "b"), json!({"spec": {"suspend": true}}));
    }
    let position = play.position();
    play.delete("app");
    play.until_gone("app");
    assert_eq!(gone(&play, position), ["c", "b", "a"]);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn the_next_one_waits_until_the_objects_of_the_one_before_are_gone(#[case] engine: Engine) {
    uninstalls_around_what_lingers(engine, |play| play.rehearsal.run_for(600_000));
}

/// A new process has read nothing yet, and takes nothing for gone because of that.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn the_next_one_waits_for_what_is_left_after_a_restart_too(#[case] engine: Engine) {
    uninstalls_around_what_lingers(engine, |play| {
        play.rehearsal.run_for(600_000);
        play.rehearsal.restart(0);
        play.rehearsal.run_for(600_000);
    });
}

/// An object of the last component stays for as long as `meanwhile` takes.
fn uninstalls_around_what_lingers(engine: Engine, meanwhile: impl FnOnce(&mut Play)) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    let lingering = Key::new("apps/v1", "Deployment", NAMESPACE, "c");
    play.patch(&lingering, json!({"metadata": {"finalizers": ["example.org/slow"]}}));
    let position = play.position();
    play.delete("app");
    meanwhile(&mut play);
    let begun = play
        .changes_since(position)
        .any(|change| change.key.name == "app-b" && at(&change.object, "/metadata/deletionTimestamp").is_string());
    assert!(!begun, "{}", play.tell());
    play.patch(&lingering, json!({"metadata": {"finalizers": []}}));
    play.until_gone("app");
    assert_eq!(gone(&play, position), ["c", "b", "a"]);
}

/// The operator that would remove the resource's finalizer may be next.
#[test]
fn a_resource_that_may_not_be_read_holds_the_next_one_up_by_name() {
    let mut play = Play::new(Engine::Flux, crate::play::kubevirt_script(5_000));
    let mut spec = crate::play::kubevirt("1.8.0", "1.8.0", "1.8.0", json!({}));
    spec["components"][1]["install"].as_object_mut().unwrap().remove("readyWhen");
    play.commit("kubevirt", spec);
    play.until_ready("kubevirt");
    play.rehearsal.faults.distortion = Some(|snapshot| {
        let resources = snapshot.objects.iter_mut().filter(|(key, _)| key.kind == "KubeVirt");
        resources.for_each(|(_, lookup)| *lookup = windlass::ready::evidence::Lookup::Denied);
    });
    play.delete("kubevirt");
    play.rehearsal.run_for(600_000);
    assert!(play.message("kubevirt").contains("may not be read"), "{}", play.message("kubevirt"));
    let blocked = play.status("kubevirt").blocked_by;
    assert_eq!((blocked[0].kind.as_str(), blocked[0].reason.as_str()), ("KubeVirt", "Forbidden"), "{}", play.tell());
    assert_eq!(play.runs("operator").as_deref(), Some("1.8.0"));
    play.rehearsal.faults.distortion = None;
    play.annotate("kubevirt", "example.org/looked-at", "again");
    play.until_gone("kubevirt");
}

/// A hook in a later version moves the waves of what moves with it, and not of
/// what stays.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn waves_of_different_revisions_do_not_decide(#[case] engine: Engine) {
    let mut play = Play::new(engine, crate::play::migration_script());
    let above = || component("b", "1.0.0", &["a"]);
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[]), above()]));
    play.until_ready("app");
    let hooks = [crate::play::hook("one", "1.0.0"), crate::play::hook("two", "1.0.0")];
    let [one, two] = hooks;
    play.commit("app", package("2.0.0", vec![one, two, component("a", "2.0.0", &[]), above()]));
    play.until_ready("app");
    let position = play.position();
    play.delete("app");
    play.until_gone("app");
    assert_eq!(gone(&play, position), ["b", "a"]);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_uninstallation_that_is_interrupted_anywhere_leaves_nothing(#[case] engine: Engine) {
    for steps in 1..30 {
        let mut play = Play::new(engine, Script::default());
        play.commit("app", chain("1.0.0"));
        play.until_ready("app");
        play.rehearsal.faults.kills.push_back(play.rehearsal.steps() + steps);
        play.delete("app");
        play.until_gone("app");
        play.rehearsal.run_for(60_000);
        let left: Vec<String> = play.rehearsal.world.store.all().map(|(key, _)| key.to_string()).collect();
        assert_eq!(left, Vec::<String>::new(), "killed after {steps} steps");
    }
}

fn with_volume() -> Script {
    let mut script = Script::default();
    let claim = Template::new("v1", "PersistentVolumeClaim", "{release}-data", json!({"size": "1Mi"}));
    script.charts.insert("b".into(), vec![Template::deployment(), claim]);
    script
}

fn claims(play: &Play) -> usize {
    play.rehearsal.world.store.list("PersistentVolumeClaim").count()
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn volume_claims_outlive_an_uninstallation(#[case] engine: Engine) {
    let mut play = Play::new(engine, with_volume());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    play.delete("app");
    play.until_gone("app");
    assert_eq!(claims(&play), 1, "{}", play.tell());
    assert_eq!(play.rehearsal.world.store.list("Deployment").count(), 0);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn volume_claims_outlive_a_component_that_is_removed(#[case] engine: Engine) {
    let mut play = Play::new(engine, with_volume());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![component("a", "2.0.0", &[])]));
    play.until_ready("app");
    assert_eq!((play.runs("b"), claims(&play)), (None, 1), "{}", play.tell());
}

/// A new process knows nothing of what the last one has marked or asked for.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn volume_claims_outlive_an_uninstallation_that_is_interrupted_anywhere(#[case] engine: Engine) {
    for steps in 1..30 {
        let mut play = Play::new(engine, with_volume());
        play.commit("app", chain("1.0.0"));
        play.until_ready("app");
        play.rehearsal.faults.kills.push_back(play.rehearsal.steps() + steps);
        play.delete("app");
        play.until_gone("app");
        assert_eq!(claims(&play), 1, "killed after {steps} steps");
    }
}

/// Also those that an earlier uninstallation has kept.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn volume_claims_go_where_the_data_is_to_be_deleted(#[case] engine: Engine) {
    let mut play = Play::new(engine, with_volume());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    play.delete("app");
    play.until_gone("app");
    let mut spec = chain("1.0.0");
    spec["components"][1]["install"]["deleteData"] = json!(true);
    play.commit("app", spec);
    play.until_ready("app");
    play.delete("app");
    play.until_gone("app");
    assert_eq!(claims(&play), 0, "{}", play.tell());
}

/// Argo CD goes on with an operation before it looks at a deletion.
#[test]
fn an_operation_that_never_ends_does_not_hold_an_uninstallation_up() {
    let mut script = Script::default();
    script.hanging_syncs.insert(("b".into(), "2.0.0".into()));
    let mut play = Play::new(Engine::Argo, script);
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    play.commit("app", chain("2.0.0"));
    play.rehearsal.run_for(60_000);
    let began = play.rehearsal.now();
    play.delete("app");
    play.until_gone("app");
    assert!(play.rehearsal.now() - began < 60_000, "{}", play.tell());
}

/// Whoever deletes the kind takes all Packages with it: nothing is uninstalled.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_whose_kind_goes_leaves_everything_running(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    let position = play.position();
    play.rehearsal.settings.crd_terminating = true;
    play.delete("app");
    play.until_gone("app");
    play.rehearsal.run_for(600_000);
    assert_eq!(gone(&play, position), Vec::<&str>::new());
}

/// Their namespace takes the children along; what they installed elsewhere stays.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_namespace_that_goes_leaves_what_runs_elsewhere(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let mut elsewhere = component("a", "1.0.0", &[]);
    elsewhere["install"]["namespace"] = json!("elsewhere");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "finalizers": ["kubernetes"]},
    });
    play.apply(&namespace);
    play.commit("app", package("1.0.0", vec![elsewhere]));
    play.until_ready("app");
    let position = play.position();
    let namespace = Key::new("v1", "Namespace", "", NAMESPACE);
    play.rehearsal.world.store.delete("user", &namespace, &Expected::default()).unwrap();
    play.delete("app");
    play.until_gone("app");
    let child = play.child("app", "a");
    if play.object(&child).is_some() {
        play.rehearsal.world.store.delete("namespace", &child, &Expected::default()).unwrap();
    }
    play.rehearsal.run_for(600_000);
    assert!(play.object(&child).is_none(), "{}", play.tell());
    assert_eq!(gone(&play, position), Vec::<&str>::new());
    assert!(play.deployment("elsewhere", "a").is_some());
}

/// A file moves from one directory to another, and the first is looked at before the
/// second: the package is deleted, and applied again a few seconds later.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_that_is_pruned_before_its_new_owner_applies_it_keeps_every_release(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    let uid = |play: &Play, release: &str| play.deployment(NAMESPACE, release).map(|d| d["metadata"]["uid"].clone());
    let before: Vec<_> = ["a", "b", "c"].map(|release| uid(&play, release)).into();
    let position = play.position();
    play.delete("app");
    play.rehearsal.run_for(5_000);
    play.patch(&package_key("app"), json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "two"}}}));
    play.until_gone("app");
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    assert_eq!(gone(&play, position), Vec::<&str>::new(), "{}", play.tell());
    assert_eq!(["a", "b", "c"].map(|release| uid(&play, release)).to_vec(), before);
}

#[test]
fn a_forced_deletion_begins_at_once() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", chain("1.0.0"));
    play.until_ready("app");
    play.annotate("app", "windlass.dev/force-delete", "true");
    play.delete("app");
    assert!(
        play.object(&play.child("app", "c")).is_none_or(|child| child["metadata"]["deletionTimestamp"].is_string())
    );
}
