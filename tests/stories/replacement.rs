//! Components whose releases get another identity.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::Key;
use windlass::sim::chart::{Outcome, Script};

use crate::ownership::{named, uid};
use crate::play::{NAMESPACE, Play, component, package};

/// Another namespace for a release is an uninstallation and an installation.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_component_with_another_release_name_is_replaced_only_when_that_is_meant(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", package("1.0.0", vec![named("a", "web", "1.0.0", &[])]));
    play.until_ready("app");
    play.commit("app", package("2.0.0", vec![named("a", "other", "2.0.0", &[])]));
    play.until("app", "InvalidSpec");
    assert_eq!(play.runs("web").as_deref(), Some("1.0.0"));
    let mut meant = named("a", "other", "2.0.0", &[]);
    meant["install"]["replace"] = json!(true);
    play.commit("app", package("2.0.0", vec![meant]));
    play.until_ready("app");
    assert_eq!(play.runs("web"), None);
    assert_eq!(play.runs("other").as_deref(), Some("2.0.0"));
}

fn replaced() -> Value {
    let mut meant = named("a", "other", "2.0.0", &[]);
    meant["install"]["replace"] = json!(true);
    package("2.0.0", vec![meant])
}

/// Two releases of one chart may have objects of the same names.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_release_that_makes_room_is_gone_with_its_objects_first(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", package("1.0.0", vec![named("a", "web", "1.0.0", &[])]));
    play.until_ready("app");
    let lingering = Key::new("apps/v1", "Deployment", NAMESPACE, "web");
    play.patch(&lingering, json!({"metadata": {"finalizers": ["example.org/slow"]}}));
    play.commit("app", replaced());
    play.rehearsal.run_for(300_000);
    assert_eq!(play.runs("other"), None, "{}", play.tell());
    play.patch(&lingering, json!({"metadata": {"finalizers": []}}));
    play.until_ready("app");
    assert_eq!((play.runs("web"), play.runs("other").as_deref()), (None, Some("2.0.0")));
}

/// Deleted while suspended, it would go on running beside the new one.
#[test]
fn a_suspended_release_makes_room_once_it_is_resumed() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", package("1.0.0", vec![named("a", "web", "1.0.0", &[])]));
    play.until_ready("app");
    play.patch(&play.child("app", "a"), json!({"spec": {"suspend": true}}));
    play.commit("app", replaced());
    play.until("app", "Suspended");
    play.rehearsal.run_for(300_000);
    assert_eq!((play.runs("web").as_deref(), play.runs("other")), (Some("1.0.0"), None), "{}", play.tell());
    play.patch(&play.child("app", "a"), json!({"spec": {"suspend": false}}));
    play.until_ready("app");
    assert_eq!((play.runs("web"), play.runs("other").as_deref()), (None, Some("2.0.0")));
}

/// Without its account helm-controller would drop the release that makes room.
#[test]
fn a_release_whose_account_is_gone_makes_no_room() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": NAMESPACE},
    });
    play.apply(&account);
    let acting = |mut spec: Value| {
        spec["serviceAccountName"] = json!("deployer");
        spec
    };
    play.commit("app", acting(package("1.0.0", vec![named("a", "web", "1.0.0", &[])])));
    play.until_ready("app");
    let key = Key::new("v1", "ServiceAccount", NAMESPACE, "deployer");
    play.rehearsal.world.store.delete("user", &key, &windlass::sim::store::Expected::default()).unwrap();
    play.commit("app", acting(replaced()));
    play.rehearsal.run_for(300_000);
    let blocked = play.status("app").blocked_by;
    assert_eq!(blocked.first().map(|blocker| blocker.name.as_str()), Some("deployer"), "{}", play.tell());
    assert_eq!((play.runs("web").as_deref(), play.runs("other")), (Some("1.0.0"), None));
    play.apply(&account);
    play.until_ready("app");
    assert_eq!((play.runs("web"), play.runs("other").as_deref()), (None, Some("2.0.0")));
}

/// Under another name, too, a release does not become another chart unasked.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_renamed_component_with_another_chart_is_a_replacement(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", package("1.0.0", vec![named("old", "web", "1.0.0", &[])]));
    play.until_ready("app");
    let mut renamed = named("new", "web", "2.0.0", &[]);
    renamed["chart"]["name"] = json!("other");
    play.commit("app", package("2.0.0", vec![renamed]));
    play.until("app", "InvalidSpec");
    assert!(play.message("app").contains("component `new` gets another chart name"), "{}", play.message("app"));
    assert_eq!(play.runs("web").as_deref(), Some("1.0.0"));
}

/// The same release, but of another chart.
fn of_other_chart(name: &str, version: &str) -> Value {
    let mut meant = named(name, "web", version, &[]);
    meant["chart"]["name"] = json!("other");
    meant["install"]["replace"] = json!(true);
    meant
}

/// Helm would upgrade one chart to the other over all that the first has left.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn another_chart_is_installed_where_the_former_was_uninstalled(
    #[case] engine: Engine,
    #[values("a", "renamed")] name: &str,
) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", package("1.0.0", vec![named("a", "web", "1.0.0", &[])]));
    play.until_ready("app");
    let before = uid(&play, "web");
    play.commit("app", package("2.0.0", vec![of_other_chart(name, "2.0.0")]));
    play.until_ready("app");
    assert_ne!(uid(&play, "web"), before, "{}", play.tell());
    assert_eq!(play.runs("web").as_deref(), Some("2.0.0"));
}

/// What a release is replaced by is what it runs, not what was last asked for.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_replacement_that_is_corrected_before_its_turn_is_still_one(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("z", "2.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    let meant = |version: &str, before: &str| {
        let mut replaced = of_other_chart("a", version);
        replaced["dependsOn"] = json!(["z"]);
        package(version, vec![component("z", before, &[]), replaced])
    };
    play.commit("app", package("1.0.0", vec![component("z", "1.0.0", &[]), named("a", "web", "1.0.0", &["z"])]));
    play.until_ready("app");
    let before = uid(&play, "web");
    play.commit("app", meant("2.0.0", "2.0.0"));
    play.until("app", "UpgradeFailed");
    assert_eq!(uid(&play, "web"), before);
    play.commit("app", meant("3.0.0", "3.0.0"));
    play.until_ready("app");
    assert_ne!(uid(&play, "web"), before, "{}", play.tell());
    assert_eq!(play.runs("web").as_deref(), Some("3.0.0"));
}

/// The revision that is gone back to has replaced a release, long ago.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_to_a_revision_that_replaced_a_release_replaces_nothing(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("z", "3.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    let with = |version: &str, own: Value| package(version, vec![own, component("z", version, &["a"])]);
    play.commit("app", with("1.0.0", named("a", "web", "1.0.0", &[])));
    play.until_ready("app");
    play.commit("app", with("2.0.0", of_other_chart("a", "2.0.0")));
    play.until_ready("app");
    let before = uid(&play, "web");
    let mut spec = with("3.0.0", of_other_chart("a", "3.0.0"));
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(600_000);
    assert_eq!(uid(&play, "web"), before, "{}", play.tell());
    assert_eq!(play.runs("web").as_deref(), Some("2.0.0"));
}
