//! Several packages.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Commit, Outcome, Script};
use windlass::sim::{Change, Key, Verb};

use crate::play::{Play, component, package};

fn requiring(version: &str, name: &str, required: &str, range: &str) -> Value {
    let mut spec = package(version, vec![component(name, version, &[])]);
    spec["requires"] = json!([{"package": required, "version": range}]);
    spec
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_waits_for_what_it_requires(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("cdi", requiring("1.0.0", "cdi", "base", ">=1"));
    play.until("cdi", "RequirementsNotMet");
    assert_eq!(play.status("cdi").blocked_by[0].name, "base");
    play.commit("base", package("1.0.0", vec![component("base", "1.0.0", &[])]));
    play.until_ready("cdi");
    assert_eq!(play.moves_since(0), ["base-base", "cdi-cdi"]);
}

/// A commit is applied object by object, the dependent first.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn one_commit_that_changes_both_moves_the_required_one_first(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("base", package("1.0.0", vec![component("base", "1.0.0", &[])]));
    play.commit("app", requiring("1.0.0", "app", "base", ">=1"));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", requiring("2.0.0", "app", "base", ">=1"));
    play.rehearsal.run_for(1000);
    play.commit("base", package("2.0.0", vec![component("base", "2.0.0", &[])]));
    play.until_ready("app");
    play.until_ready("base");
    assert_eq!(play.moves_since(position), ["base-base", "app-app"]);
}

/// The old requirer excludes the new version, the new requirer asks for it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_version_that_an_installed_requirer_excludes_waits_for_it(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("base", package("1.0.0", vec![component("base", "1.0.0", &[])]));
    play.commit("app", requiring("1.0.0", "app", "base", "<2"));
    play.until_ready("app");
    let position = play.position();
    play.commit("base", package("2.0.0", vec![component("base", "2.0.0", &[])]));
    play.until("base", "RequirementsNotMet");
    assert_eq!(play.moves_since(position), Vec::<String>::new());
    play.commit("app", requiring("2.0.0", "app", "base", ">=2"));
    play.until_ready("base");
    play.until_ready("app");
    assert_eq!(play.moves_since(position), ["base-base", "app-app"]);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn independent_packages_go_on(#[case] engine: Engine) {
    let mut script = Script::default();
    script.behave("broken", "1.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.commit("broken", package("1.0.0", vec![component("broken", "1.0.0", &[])]));
    play.commit("app", requiring("1.0.0", "app", "broken", ">=1"));
    play.commit("other", package("1.0.0", vec![component("other", "1.0.0", &[])]));
    play.until_ready("other");
    play.until("broken", "InstallFailed");
    assert_eq!(play.reason("app"), "RequirementsNotMet");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_required_package_is_uninstalled_after_its_requirers(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("base", package("1.0.0", vec![component("base", "1.0.0", &[])]));
    play.commit("app", requiring("1.0.0", "app", "base", ">=1"));
    play.until_ready("app");
    play.delete("base");
    play.rehearsal.run_for(120_000);
    assert!(play.runs("base").is_some());
    assert_eq!(play.status("base").blocked_by[0].name, "app");
    play.delete("app");
    play.until_gone("base");
    assert_eq!(play.runs("app"), None);
    assert_eq!(play.runs("base"), None);
}

/// A chart that follows the Git source until it shows the wanted version belongs
/// to no revision yet: whoever tidies up meanwhile leaves it alone.
#[test]
fn a_chart_that_another_package_still_waits_for_is_not_tidied_up() {
    let of = |name: &str, version: &str, replicas: u32| {
        let chart = json!({"name": name, "path": format!("charts/{name}"), "chartVersion": version, "values": {"replicas": replicas}});
        json!({"version": version, "sourceRef": {"kind": "GitRepository", "name": "packages"}, "components": [chart]})
    };
    let charts = |second: &str| Commit {
        id: format!("{:040x}", second.len()),
        charts: [("charts/first", "1.0.0"), ("charts/second", second)].map(|(path, v)| (path.into(), v.into())).into(),
    };
    let mut play = Play::new(Engine::Flux, Script { commits: vec![charts("none")], ..Script::default() });
    play.apply(&json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "packages", "namespace": "packages"},
        "spec": {"interval": "10s", "url": "https://git.example.org/packages.git", "ref": {"branch": "main"}},
    }));
    play.commit("first", of("first", "1.0.0", 1));
    play.until_ready("first");
    play.commit("second", of("second", "1.0.0", 1));
    play.rehearsal.run_for(60_000);
    let position = play.position();
    play.commit("first", of("first", "1.0.0", 2));
    play.until_ready("first");
    play.rehearsal.run_for(60_000);
    let of_second = |change: &&Change| change.object["spec"]["chart"] == "./charts/second";
    let deleted = play.changes_since(position).filter(of_second).any(|change| change.verb == Verb::Deleted);
    assert!(!deleted, "{}", play.tell());
    play.rehearsal.world.script.commits.push(charts("1.0.0"));
    play.until_ready("second");
    let commit_of = |revision: &str| {
        let key = Key::new("windlass.dev/v1alpha1", "PackageRevision", "packages", revision);
        play.object(&key).unwrap()["spec"]["commit"].clone()
    };
    assert_eq!(commit_of("first-1"), format!("{:040x}", 4));
    assert_eq!(commit_of("second-1"), format!("{:040x}", 5), "the commit that has the chart is on record");
}

/// The required one waits for the very package that asks: nobody would ever start.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_package_does_not_wait_for_one_that_it_keeps_from_its_version(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("base", package("1.0.0", vec![component("base", "1.0.0", &[])]));
    play.commit("app", requiring("1.0.0", "app", "base", ">=1"));
    play.until_ready("app");
    play.commit("app", requiring("2.0.0", "app", "base", "<2"));
    play.commit("base", package("2.0.0", vec![component("base", "2.0.0", &[])]));
    play.until_ready("app");
    assert_eq!(play.runs("app").as_deref(), Some("2.0.0"));
    play.until("base", "RequirementsNotMet");
    assert_eq!(play.runs("base").as_deref(), Some("1.0.0"));
}

/// A revision that waits for its chart has begun with nothing: what it requires may
/// have begun to move meanwhile.
#[test]
fn requirements_are_asked_again_of_a_revision_that_has_not_begun() {
    let mut script = Script::default();
    script.published.insert(("a".into(), "2.0.0".into()), 300_000);
    script.behave("b", "1.1.0", Outcome::Succeeds, 400_000);
    let mut play = Play::new(Engine::Flux, script);
    let app = |version: &str| {
        let mut spec = package(version, vec![component("a", version, &[])]);
        spec["requires"] = json!([{"package": "base", "version": ">=1"}]);
        spec
    };
    play.commit("base", package("1.0.0", vec![component("b", "1.0.0", &[])]));
    play.commit("app", app("1.0.0"));
    play.until_ready("app");
    play.commit("app", app("2.0.0"));
    play.until("app", "SourceNotFound");
    play.commit("base", package("1.1.0", vec![component("b", "1.1.0", &[])]));
    play.rehearsal.run_for(350_000);
    assert_eq!(play.reason("app"), "RequirementsNotMet", "{}", play.tell());
    assert_eq!(play.status("app").blocked_by[0].name, "base");
    assert_eq!(play.runs("a").as_deref(), Some("1.0.0"));
    play.until_ready("app");
    assert_eq!(play.runs("a").as_deref(), Some("2.0.0"));
    assert_eq!(play.status("base").version.as_deref(), Some("1.1.0"));
}
