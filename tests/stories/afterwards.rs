//! What runs, after its rollout: what is told of it, and what is kept of it.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script};
use windlass::sim::store::Expected;
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, at, component, package, safe};

fn pair(version: &str) -> Value {
    safe(version, vec![component("a", version, &[]), component("b", version, &["a"])])
}

fn running(engine: Engine) -> Play {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", pair("1.0.0"));
    play.until_ready("app");
    play
}

fn told_of(play: &Play, component: &str) -> Option<String> {
    let status = play.status("app");
    status.components.into_iter().find(|known| known.name == component).and_then(|known| known.message)
}

#[test]
fn a_release_that_is_suspended_is_told_beside_ready() {
    let mut play = running(Engine::Flux);
    play.patch(&play.child("app", "b"), json!({"spec": {"suspend": true}}));
    play.rehearsal.run_for(1_000);
    assert_eq!(play.reason("app"), "Ready");
    assert_eq!(play.message("app"), "1.0.0 runs; component b: HelmRelease/app-b is suspended");
    assert_eq!(told_of(&play, "b").as_deref(), Some("HelmRelease/app-b is suspended"));
    play.patch(&play.child("app", "b"), json!({"spec": {"suspend": false}}));
    play.rehearsal.run_for(60_000);
    assert_eq!((play.message("app").as_str(), told_of(&play, "b")), ("1.0.0 runs", None));
}

#[rstest]
#[case::flux(Engine::Flux, "HelmRelease/app-a: Ready is False")]
#[case::argo(Engine::Argo, "Application/app-a: health is Degraded")]
fn what_the_engine_complains_of_is_told_beside_ready(#[case] engine: Engine, #[case] said: &str) {
    let mut play = running(engine);
    let child = play.child("app", "a");
    let failed = |child: &mut serde_json::Map<String, Value>| match engine {
        Engine::Flux => {
            let conditions = child["status"]["conditions"].as_array_mut().unwrap();
            let ready = conditions.iter_mut().find(|condition| condition["type"] == "Ready").unwrap();
            (ready["status"], ready["reason"]) = (json!("False"), json!("UpgradeFailed"));
        }
        Engine::Argo => child["status"]["health"]["status"] = json!("Degraded"),
    };
    play.rehearsal.world.store.edit("engine", &child, &windlass::sim::store::Expected::default(), failed).unwrap();
    play.rehearsal.run_for(100);
    assert_eq!(play.reason("app"), "Ready", "{}", play.tell());
    assert!(play.message("app").contains(said), "{}", play.message("app"));
    assert!(told_of(&play, "a").is_some_and(|message| message.contains(said)), "{:?}", told_of(&play, "a"));
}

/// What they acted as before is mostly gone.
#[test]
fn what_was_rolled_back_acts_as_the_account_of_now() {
    let mut play = running(Engine::Flux);
    play.commit("app", pair("2.0.0"));
    play.until_ready("app");
    play.annotate("app", "windlass.dev/rollback-to", "1@back");
    play.until("app", "RolledBack");
    let mut spec = pair("2.0.0");
    spec["serviceAccountName"] = json!("new");
    play.commit("app", spec);
    play.until("app", "RolledBack");
    play.rehearsal.run_for(60_000);
    for name in ["a", "b"] {
        let child = play.object(&play.child("app", name)).unwrap();
        assert_eq!(child["spec"]["serviceAccountName"], "new", "{name}\n{}", play.tell());
    }
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"));
}

/// Helm would upgrade the release with them.
#[rstest]
#[case::a_value(json!({"values": {"debug": true}}))]
#[case::a_value_below(json!({"values": {"image": {"debug": true}}}))]
#[case::a_reference(json!({"valuesFrom": [{"kind": "ConfigMap", "name": "more"}]}))]
#[case::a_post_renderer(json!({"postRenderers": [{"kustomize": {"images": []}}]}))]
fn what_somebody_adds_to_a_release_is_taken_away_again(#[case] more: Value, #[values(true, false)] values: bool) {
    let mut play = Play::new(Engine::Flux, Script::default());
    let mut a = component("a", "1.0.0", &[]);
    if values {
        a["values"] = json!({"image": {"tag": "1"}, "unset": null});
    }
    play.commit("app", package("1.0.0", vec![a]));
    play.until_ready("app");
    let child = play.child("app", "a");
    let before = play.object(&child).unwrap()["spec"].clone();
    play.patch(&child, json!({"spec": more}));
    play.rehearsal.run_for(60_000);
    let after = &play.object(&child).unwrap()["spec"];
    for field in ["values", "valuesFrom", "postRenderers"] {
        assert_eq!(after.get(field), before.get(field), "{field}\n{}", play.tell());
    }
    assert_eq!(play.message("app"), "1.0.0 runs");
}

/// Without it Argo CD would leave the release behind.
#[test]
fn an_application_whose_finalizer_is_gone_takes_its_release_along_all_the_same() {
    let mut play = running(Engine::Argo);
    play.patch(&play.child("app", "b"), json!({"metadata": {"finalizers": []}}));
    play.delete("app");
    play.until_gone("app");
    assert_eq!(play.rehearsal.world.store.list("Deployment").count(), 0, "{}", play.tell());
}

#[test]
fn revisions_of_upgrades_that_were_rolled_back_are_pruned() {
    let mut play = running(Engine::Flux);
    for bad in 1..=6 {
        let version = format!("2.0.{bad}");
        play.rehearsal.world.script.behave("a", &version, Outcome::Fails, 1000);
        let mut spec = pair(&version);
        spec["revisionHistoryLimit"] = json!(2);
        play.commit("app", spec);
        play.until("app", "UpgradeRolledBack");
    }
    play.rehearsal.run_for(60_000);
    let revisions = play.rehearsal.world.store.list("PackageRevision").filter(|(key, _)| key.namespace == NAMESPACE);
    let mut numbers: Vec<u64> = revisions.filter_map(|(_, revision)| revision["spec"]["number"].as_u64()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 5, 6, 7], "the one that runs, the newest, and two more");
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"));
}

/// It was made again with a spec that waits: its first deletion is history.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_that_was_made_again_is_uninstalled_although_its_spec_waits(#[case] engine: Engine) {
    let mut play = running(engine);
    let mut left = pair("1.0.0");
    left["deletionPolicy"] = json!("Orphan");
    play.commit("app", left);
    play.rehearsal.run_for(60_000);
    play.delete("app");
    play.until_gone("app");
    let mut waiting = pair("2.0.0");
    waiting["requires"] = json!([{"package": "nobody"}]);
    play.commit("app", waiting);
    play.until("app", "RequirementsNotMet");
    play.delete("app");
    play.until_gone("app");
    let left: Vec<String> =
        play.rehearsal.world.store.list("Deployment").map(|(key, _): (&Key, _)| key.to_string()).collect();
    assert_eq!(left, Vec::<String>::new(), "{}", play.tell());
    assert!(play.changes_since(0).any(|change| change.verb == Verb::Deleted && change.key.kind == "Deployment"));
}

/// Revisions of `app` with their finalizers, oldest first.
fn revisions(play: &Play) -> Vec<(String, bool)> {
    let revisions = play.rehearsal.world.store.list("PackageRevision");
    revisions.map(|(key, object)| (key.name.clone(), at(object, "/metadata/finalizers/0").is_string())).collect()
}

/// The one that runs is what a rollback needs, and what an uninstall goes by.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn revisions_beyond_the_limit_go_and_only_the_one_that_runs_is_held(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    for version in ["1.0.0", "2.0.0", "3.0.0", "4.0.0"] {
        let mut spec = package(version, vec![component("a", version, &[])]);
        spec["revisionHistoryLimit"] = json!(1);
        play.commit("app", spec);
        play.until_ready("app");
        play.rehearsal.run_for(60_000);
    }
    assert_eq!(revisions(&play), [("app-3".to_owned(), false), ("app-4".to_owned(), true)], "{}", play.tell());
    let running = Key::new("windlass.dev/v1alpha1", "PackageRevision", NAMESPACE, "app-4");
    play.rehearsal.world.store.delete("user", &running, &Expected::default()).unwrap();
    play.rehearsal.run_for(60_000);
    assert!(play.object(&running).is_some(), "{}", play.tell());
}

#[test]
fn a_source_goes_with_the_last_revision_that_refers_to_it() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let commit = |play: &mut Play, version: &str, repository: &str| {
        let mut spec = package(version, vec![component("a", version, &[])]);
        spec["components"][0]["chart"]["repository"] = json!(repository);
        spec["revisionHistoryLimit"] = json!(1);
        play.commit("app", spec);
        play.until_ready("app");
        play.rehearsal.run_for(60_000);
    };
    let urls = |play: &Play| -> Vec<String> {
        let repositories = play.rehearsal.world.store.list("HelmRepository");
        repositories.map(|(_, object)| at(object, "/spec/url").as_str().unwrap().to_owned()).collect()
    };
    let (old, new) = ("https://old.example.org", "https://new.example.org");
    commit(&mut play, "1.0.0", old);
    commit(&mut play, "2.0.0", new);
    let mut both = urls(&play);
    both.sort();
    assert_eq!(both, [new, old], "the way back needs it");
    commit(&mut play, "3.0.0", new);
    assert_eq!(urls(&play), [new], "{}", play.tell());
}

/// Its chart was never there, so nothing was done by it that somebody could ask about.
#[test]
fn a_revision_that_did_nothing_goes_with_the_next_one() {
    let mut script = Script::default();
    script.published.insert(("a".into(), "2.0.0".into()), u64::MAX);
    let mut play = Play::new(Engine::Flux, script);
    let spec = |version: &str| package(version, vec![component("a", version, &[])]);
    play.commit("app", spec("1.0.0"));
    play.until_ready("app");
    play.commit("app", spec("2.0.0"));
    play.until("app", "SourceNotFound");
    play.commit("app", spec("2.1.0"));
    play.until_ready("app");
    let names: Vec<String> = revisions(&play).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["app-1", "app-3"], "{}", play.tell());
}
