//! Several packages.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script};

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
