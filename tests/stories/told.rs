//! What is told while it happens: to people who read the status and the events.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::{Engine, Reason};
use windlass::rehearse::Happening;
use windlass::sim::chart::{Commit, Outcome, Script};
use windlass::sim::store::Expected;

use crate::play::{Play, at, component, package, package_key};

fn pair(version: &str) -> Value {
    package(version, vec![component("a", version, &[]), component("b", version, &["a"])])
}

fn running(engine: Engine, script: Script) -> Play {
    let mut play = Play::new(engine, script);
    play.commit("app", pair("1.0.0"));
    play.until_ready("app");
    play
}

/// Reasons of Ready since a place in the log, without repetition.
fn reasons_since(play: &Play, position: usize) -> Vec<String> {
    let written = play.changes_since(position).filter(|change| *change.key == package_key("app"));
    let mut reasons: Vec<String> = written
        .filter_map(|change| Some(at(&change.object, "/status/conditions/0/reason").as_str()?.to_owned()))
        .collect();
    reasons.dedup();
    reasons
}

/// The index was fetched before the new version was published, as it is in every upgrade.
#[test]
fn a_chart_that_is_newer_than_the_index_is_prepared_and_not_missed() {
    let mut script = Script::default();
    script.published.insert(("b".into(), "2.0.0".into()), 60_000);
    let mut play = running(Engine::Flux, script);
    play.rehearsal.run_for(60_000);
    let position = play.position();
    play.commit("app", pair("2.0.0"));
    play.until_ready("app");
    let reasons = reasons_since(&play, position);
    assert!(reasons.iter().any(|reason| reason == "Preparing"), "{reasons:?}");
    assert!(reasons.iter().all(|reason| reason != "SourceNotFound"), "{reasons:?}\n{}", play.tell());
}

/// It is looked for again now and then: that is no news.
#[test]
fn a_chart_that_is_not_published_is_missed_for_good() {
    let mut play = running(Engine::Flux, Script::default());
    play.rehearsal.world.script.published.insert(("b".into(), "2.0.0".into()), u64::MAX);
    play.commit("app", pair("2.0.0"));
    play.until("app", "SourceNotFound");
    let position = play.position();
    play.rehearsal.run_for(600_000);
    assert_eq!(play.reason("app"), "SourceNotFound");
    assert!(reasons_since(&play, position).iter().all(|reason| reason == "SourceNotFound"), "{}", play.tell());
    assert!(play.message("app").contains("version matching '2.0.0'"), "{}", play.message("app"));
}

/// The engine's own timeout ends a moment after that of the turn.
#[test]
fn a_timeout_tells_the_cause_that_helm_found() {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Hangs, 0);
    let mut play = running(Engine::Flux, script);
    let mut spec = pair("2.0.0");
    spec["upgrade"] = json!({"timeout": "2m"});
    play.commit("app", spec);
    play.until("app", "UpgradeFailed");
    let message = play.message("app");
    assert!(message.starts_with("component b: not ready within 2m: HelmRelease/app-b: "), "{message}");
    assert!(message.contains("Helm upgrade failed for release"), "{message}");
}

/// Argo CD forgets why an operation failed when the next one is asked for.
#[test]
fn a_timeout_during_another_attempt_tells_why_the_one_before_failed() {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Fails, 0);
    let mut play = running(Engine::Argo, script);
    let mut spec = pair("2.0.0");
    spec["upgrade"] = json!({"timeout": "1m", "retries": 9});
    play.commit("app", spec);
    play.until("app", "UpgradeFailed");
    let message = play.message("app");
    assert!(message.contains("not ready within 1m"), "{message}");
    assert!(message.contains("operation failed"), "{message}");
}

#[test]
fn what_stays_out_of_sync_is_named() {
    let mut play = running(Engine::Argo, Script::default());
    let child = play.child("app", "b");
    let differs = |child: &mut Map<String, Value>| {
        child["status"]["sync"]["status"] = json!("OutOfSync");
        child["status"]["resources"] =
            json!([{"kind": "Deployment", "namespace": "packages", "name": "b", "status": "OutOfSync"}]);
    };
    play.rehearsal.world.store.edit("engine", &child, &Expected::default(), differs).unwrap();
    play.rehearsal.run_for(100);
    let message = "1.0.0 runs; component b: Application/app-b: is OutOfSync: Deployment/packages/b";
    assert_eq!((play.reason("app").as_str(), play.message("app").as_str()), ("Ready", message));
}

/// Events about components, by what they say.
fn told(play: &Play) -> Vec<(Reason, String)> {
    let events = play.rehearsal.notes.iter().filter_map(|note| match &note.what {
        Happening::Event(event) if event.component.is_some() => Some((event.reason, event.message.clone())),
        _ => None,
    });
    events.collect()
}

fn said(events: &[(Reason, &str)]) -> Vec<(Reason, String)> {
    events.iter().map(|(reason, message)| (*reason, (*message).to_owned())).collect()
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn each_transition_of_a_component_is_told_once(#[case] engine: Engine) {
    let play = running(engine, Script::default());
    let expected = [
        (Reason::Progressing, "component a moves (chart 1.0.0)"),
        (Reason::Progressing, "component a is verified (chart 1.0.0)"),
        (Reason::Progressing, "component b moves (chart 1.0.0)"),
        (Reason::Progressing, "component b is verified (chart 1.0.0)"),
    ];
    assert_eq!(told(&play), said(&expected));
}

/// On Flux the second look is over in no time, and only its end is told.
#[test]
fn what_stands_on_a_change_is_told_to_be_verified_again_and_then_verified() {
    let mut play = running(Engine::Argo, Script::default());
    let before = told(&play).len();
    let mut next = pair("1.0.0");
    next["components"][0]["values"] = json!({"x": 1});
    play.commit("app", next);
    play.until_ready("app");
    let expected = [
        (Reason::Progressing, "component a moves (chart 1.0.0)"),
        (Reason::Progressing, "component a is verified (chart 1.0.0)"),
        (Reason::Progressing, "component b is to be verified again (chart 1.0.0)"),
        (Reason::Progressing, "component b is verified (chart 1.0.0)"),
    ];
    assert_eq!(told(&play)[before..], said(&expected));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_was_never_verified_is_not_verified_again(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("a", "1.0.0", Outcome::Hangs, 1000);
    let mut play = Play::new(engine, script);
    play.commit("app", pair("1.0.0"));
    play.rehearsal.run_for(20_000);
    let mut next = pair("1.0.0");
    next["version"] = json!("1.0.1");
    play.commit("app", next);
    play.rehearsal.run_for(20_000);
    let told = told(&play);
    let a: Vec<&str> = told.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(a, ["component a moves (chart 1.0.0)", "component a is to be verified (chart 1.0.0)"]);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn the_way_back_of_each_component_is_told(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("b", "2.0.0", Outcome::Fails, 1000);
    let mut play = running(engine, script);
    let before = told(&play).len();
    let mut spec = pair("2.0.0");
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    let expected = [
        (Reason::Progressing, "component a moves (chart 2.0.0)"),
        (Reason::Progressing, "component a is verified (chart 2.0.0)"),
        (Reason::Progressing, "component b moves (chart 2.0.0)"),
        (Reason::RollingBack, "component b goes back (chart 1.0.0)"),
        (Reason::RollingBack, "component b is back (chart 1.0.0)"),
        (Reason::RollingBack, "component a goes back (chart 1.0.0)"),
        (Reason::RollingBack, "component a is back (chart 1.0.0)"),
    ];
    assert_eq!(told(&play)[before..], said(&expected));
}

#[test]
fn what_is_suspended_and_what_goes_is_told() {
    let mut play = running(Engine::Flux, Script::default());
    let before = told(&play).len();
    play.rehearsal.world.store.edit("user", &play.child("app", "b"), &Expected::default(), suspend(true)).unwrap();
    play.commit("app", pair("2.0.0"));
    play.until("app", "Suspended");
    play.rehearsal.world.store.edit("user", &play.child("app", "b"), &Expected::default(), suspend(false)).unwrap();
    play.until_ready("app");
    play.commit("app", package("3.0.0", vec![component("a", "2.0.0", &[])]));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    let events = told(&play);
    for event in [
        (Reason::Suspended, "component b is suspended: HelmRelease/app-b is suspended"),
        (Reason::Progressing, "component b goes on"),
        (Reason::Progressing, "component b is being removed"),
    ] {
        let times = events[before..].iter().filter(|told| **told == said(&[event])[0]).count();
        assert_eq!(times, 1, "{event:?}: {events:?}");
    }
}

fn suspend(value: bool) -> impl Fn(&mut Map<String, Value>) {
    move |child| child["spec"]["suspend"] = json!(value)
}

/// Flux keeps the artifact of the commit before, beside the name of the one in which there
/// is no such chart: to pin that one would wait for ever.
#[test]
fn a_commit_that_lacks_a_chart_is_not_pinned() {
    let commit = |id: u32, charts: &[(&str, &str)]| Commit {
        id: format!("{id:040x}"),
        charts: charts.iter().map(|(path, version)| ((*path).to_owned(), (*version).to_owned())).collect(),
    };
    let both = [("charts/a", "1.0.0"), ("charts/b", "2.0.0")];
    let chart =
        |name: &str, version: &str| json!({"name": name, "path": format!("charts/{name}"), "chartVersion": version});
    let source = json!({"kind": "GitRepository", "name": "packages"});
    let spec =
        json!({"version": "1.0.0", "sourceRef": source, "components": [chart("a", "1.0.0"), chart("b", "2.0.0")]});
    let mut play = Play::new(Engine::Flux, Script { commits: vec![commit(1, &both[..1])], ..Script::default() });
    play.apply(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "packages", "namespace": "packages"},
        "spec": {"interval": "10s", "url": "https://git.example.org/packages.git", "ref": {"branch": "main"}},
    }));
    play.commit("app", spec);
    play.rehearsal.run_for(60_000);
    play.rehearsal.world.script.commits.push(commit(2, &both[1..]));
    play.rehearsal.run_for(60_000);
    assert_eq!(play.message("app"), "chart charts/a is wanted at 1.0.0, the source shows none in its newest commit");
    play.rehearsal.world.script.commits.push(commit(3, &both));
    play.until_ready("app");
}
