//! Sets of Packages that keep their order without a controller.

use std::collections::{BTreeMap, BTreeSet};

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::engine::Manifest;
use windlass::package::definition::Definition;
use windlass::translate::{Options, native};

use super::cel::evaluate;
use super::support::{at, definition, package, releases, text};

fn objects(set: &[Definition], engine: Engine) -> Vec<Manifest> {
    native(set, &Options::for_engine(Some(engine))).unwrap().objects
}

fn full() -> Definition {
    let chart = |name: &str| json!({"repository": "https://charts.example.org", "name": name, "version": "1.9.0"});
    definition(json!({
        "version": "1.9.0",
        "serviceAccountName": "app",
        "rollback": {"safe": true},
        "upgrade": {"from": ">=1"},
        "requires": [{"package": "elsewhere"}, {"package": "maybe", "optional": true}, {"kubernetes": ">=1.30"}],
        "components": [
            {"name": "operator", "chart": chart("operator"), "install": {"namespace": "app", "privileged": true}},
            {"name": "agent", "chart": {"repository": "oci://registry.example.org/charts", "name": "agent", "version": "1.9.0"},
             "canary": {}, "install": {"dependsOn": ["operator"], "replace": true,
             "readyWhen": [{"apiVersion": "v1", "kind": "Service", "name": "a", "expr": "true"}]}},
            {"name": "last", "chart": chart("last"), "install": {"dependsOn": ["agent"], "upgradeCRDs": "Skip",
             "healthCheckExprs": [{"apiVersion": "example.org/v1", "current": "true"}]}},
            {"name": "migrate", "chart": chart("migrate"), "install": {"phase": "PreUpgrade"}},
        ],
    }))
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn releases_wait_for_each_other_and_what_is_lost_is_said(#[case] engine: Engine) {
    let options = Options { skip_hooks: true, ..Options::for_engine(Some(engine)) };
    let translation = native(&[full()], &options).unwrap();
    let notes: String = translation.notes.iter().map(|note| format!("# {note}\n")).collect();
    insta::assert_snapshot!(engine.as_str(), format!("{notes}{}", text(translation.objects)));
}

#[test]
fn hooks_are_refused_unless_they_are_to_be_left_out() {
    let refusals = native(&[full()], &Options::for_engine(Some(Engine::Flux))).unwrap_err();
    let message = "app/migrate: a hook needs the controller; only `windlass render --skip-hooks` leaves it out";
    assert_eq!(refusals.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
}

#[test]
fn a_suspended_package_is_refused() {
    let mut suspended = package("a", &[], &[("one", &[])]);
    suspended.suspend = true;
    let refusals = native(&[suspended], &Options::for_engine(Some(Engine::Flux))).unwrap_err();
    assert_eq!(refusals[0].to_string(), "a: suspend needs the controller: these objects would move all the same");
}

/// `group` has no components; `top` waits for what it requires.
fn set() -> Vec<Definition> {
    vec![
        package("top", &["group"], &[("second", &["first"]), ("first", &[])]),
        package("group", &["base", "side"], &[]),
        package("base", &[], &[("a", &[]), ("b", &["a"]), ("c", &["a"])]),
        package("side", &[], &[("only", &[])]),
    ]
}

#[test]
fn requirers_wait_for_the_last_components_also_through_groups() {
    let objects = objects(&set(), Engine::Flux);
    assert_eq!(releases(&objects), ["base-a", "base-b", "base-c", "side-only", "top-first", "top-second"]);
    let edges = edges(&objects);
    assert_eq!(edges["top-first"], BTreeSet::from(["base-b".into(), "base-c".into(), "side-only".into()]));
    assert_eq!(edges["top-second"], BTreeSet::from(["top-first".into()]));
    assert_eq!(edges["base-b"], BTreeSet::from(["base-a".into()]));
    assert_eq!(edges["base-a"], BTreeSet::new());
}

#[test]
fn waves_rise_across_packages() {
    let objects = objects(&set(), Engine::Argo);
    let waves: Vec<(&str, Value)> = objects
        .iter()
        .map(|object| (object.name(), at(object, "metadata.annotations")["argocd.argoproj.io/sync-wave"].clone()))
        .collect();
    let expected = [
        ("base-a", "0"),
        ("base-b", "1"),
        ("base-c", "1"),
        ("side-only", "0"),
        ("top-first", "2"),
        ("top-second", "3"),
    ];
    assert_eq!(waves, expected.map(|(name, wave)| (name, json!(wave))));
}

#[test]
fn waves_can_be_left_off() {
    let options = Options { waves: false, ..Options::for_engine(Some(Engine::Argo)) };
    let text = text(native(&set(), &options).unwrap().objects);
    assert!(!text.contains("sync-wave"));
}

#[test]
fn packages_of_two_engines_cannot_wait_for_each_other() {
    let mut set = set();
    set[2].engine = Some(Engine::Argo);
    let refusals = native(&set, &Options::for_engine(None)).unwrap_err();
    assert!(refusals.iter().any(|refusal| refusal.to_string().starts_with("group: no engine")), "{refusals:?}");
    for package in &mut set {
        package.engine.get_or_insert(Engine::Flux);
    }
    let refusals = native(&set, &Options::for_engine(None)).unwrap_err();
    let message = "top/first: it cannot wait for argo without the controller: both need one engine";
    assert_eq!(refusals.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
}

fn edges(objects: &[Manifest]) -> BTreeMap<String, BTreeSet<String>> {
    let releases = objects.iter().filter(|object| object.kind() == "HelmRelease");
    releases
        .map(|release| {
            let depends_on = at(release, "spec.dependsOn");
            let names =
                depends_on.as_array().into_iter().flatten().map(|edge| edge["name"].as_str().unwrap().to_owned());
            (release.name().to_owned(), names.collect())
        })
        .collect()
}

/// A release as it looks in a cluster while it runs what `objects` state.
fn live(release: &Manifest) -> Value {
    let mut object = Value::from(release.clone());
    object["metadata"]["generation"] = json!(5);
    object["status"] = json!({
        "observedGeneration": 5,
        "conditions": [{"type": "Ready", "status": "True"}],
        "history": [{"status": "deployed", "chartVersion": "1.0.0"}],
    });
    object
}

fn above(edges: &BTreeMap<String, BTreeSet<String>>, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        open.extend(edges[&name].iter().filter(|above| found.insert((*above).clone())).cloned());
    }
    found
}

/// One commit changes one component. While a cluster still runs the old state,
/// nothing below that component may go ahead, however far below it is, even if
/// all between them stays as it was; once the new state runs, everything may.
#[rstest]
#[case::base_a(2, 0, "base-a")]
#[case::base_b(2, 1, "base-b")]
#[case::side(3, 0, "side-only")]
#[case::top(0, 1, "top-first")]
fn nothing_goes_ahead_of_a_change_above_it(#[case] package: usize, #[case] component: usize, #[case] moved: &str) {
    let before = objects(&set(), Engine::Flux);
    let mut set = set();
    set[package].components[component].values.insert("changed".into(), json!(true));
    let after = objects(&set, Engine::Flux);
    let edges = edges(&after);
    for release in after.iter().filter(|object| object.kind() == "HelmRelease") {
        let depends_on = at(release, "spec.dependsOn");
        let free = |state: &[Manifest]| {
            depends_on.as_array().into_iter().flatten().all(|edge| {
                let dependency = state.iter().find(|object| object.name() == edge["name"].as_str().unwrap()).unwrap();
                evaluate(edge["readyExpr"].as_str().unwrap(), &live(dependency)).unwrap()
            })
        };
        let held = above(&edges, release.name()).contains(moved);
        assert_eq!(free(&before), !held, "{} while the old state runs", release.name());
        assert!(free(&after), "{} once the new state runs", release.name());
    }
}
