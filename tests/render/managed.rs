//! Sets of Packages as the controller writes them.

use rstest::rstest;
use serde_json::json;
use windlass::api::Engine;
use windlass::package::definition::Definition;
use windlass::translate::{Options, managed};

use super::support::{definition, package, releases, single, text};

fn kubevirt() -> Definition {
    definition(json!({
        "version": "1.9.0",
        "serviceAccountName": "kubevirt",
        "rollback": {"safe": true},
        "components": [
            {"name": "kubevirt", "chart": {"repository": "https://charts.example.org", "name": "kubevirt", "version": "1.9.0"},
             "install": {"namespace": "kubevirt", "dependsOn": ["operator"],
                         "readyWhen": [{"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "condition": "Available"}]}},
            {"name": "migrate", "chart": {"repository": "https://charts.example.org", "name": "migrate", "version": "1.9.0"},
             "install": {"phase": "PreUpgrade"}},
            {"name": "operator", "chart": {"repository": "https://charts.example.org", "name": "kubevirt-operator", "version": "1.9.0"},
             "install": {"namespace": "kubevirt", "privileged": true}},
        ],
    }))
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn children_come_in_the_order_in_which_they_move(#[case] engine: Engine) {
    let translation = managed(&[kubevirt()], &Options::for_engine(Some(engine))).unwrap();
    let notes: String = translation.notes.iter().map(|note| format!("# {note}\n")).collect();
    insta::assert_snapshot!(engine.as_str(), format!("{notes}{}", text(translation.objects)));
}

#[test]
fn required_packages_come_first_and_ties_stay() {
    let set = [
        package("z", &["m"], &[("one", &[])]),
        package("b", &[], &[("one", &[])]),
        package("m", &["a"], &[]),
        package("a", &[], &[("two", &["one"]), ("one", &[])]),
    ];
    let translation = managed(&set, &Options::for_engine(Some(Engine::Flux))).unwrap();
    assert_eq!(releases(&translation.objects), ["b-one", "a-one", "a-two", "z-one"]);
}

#[test]
fn a_source_occurs_once() {
    let set = [package("a", &[], &[("one", &[])]), package("b", &[], &[("one", &[])])];
    let objects = managed(&set, &Options::for_engine(Some(Engine::Flux))).unwrap().objects;
    let kinds: Vec<&str> = objects.iter().map(|object| object.kind()).collect();
    assert_eq!(kinds, ["HelmRepository", "HelmChart", "HelmRelease", "HelmRelease"]);
}

#[test]
fn two_components_never_become_one_object() {
    let set = [package("a-b", &[], &[("c", &[])]), package("a", &[], &[("b-c", &[])])];
    let refusals = managed(&set, &Options::for_engine(Some(Engine::Argo))).unwrap_err();
    assert_eq!(refusals[0].to_string(), "a/b-c: Application/packages/a-b-c is also what a-b/c becomes");
}

#[rstest]
#[case::circle(vec![package("a", &["b"], &[]), package("b", &["a"], &[])], "a: Packages require each other in a circle")]
#[case::twice(vec![package("a", &[], &[]), package("a", &[], &[])], "a: there are two Packages of this name")]
#[case::path_without_source(
    vec![definition(json!({"version": "1.0.0", "components": [{"name": "one", "path": "a", "chartVersion": "1.0.0"}]}))],
    "app/one: component `one` has a path, but the Package has no sourceRef"
)]
fn what_stands_in_the_way_is_said(#[case] set: Vec<Definition>, #[case] message: &str) {
    let refusals = managed(&set, &Options::for_engine(Some(Engine::Flux))).unwrap_err();
    assert_eq!(refusals.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
}

#[test]
fn an_engine_is_needed_and_never_overruled() {
    let none = managed(&[package("a", &[], &[])], &Options::for_engine(None)).unwrap_err();
    assert_eq!(none[0].to_string(), "a: no engine: write spec.engine, or say --engine flux or --engine argo");
    let mut own = package("a", &[], &[("one", &[])]);
    own.engine = Some(Engine::Argo);
    let set = [own];
    let other = managed(&set, &Options::for_engine(Some(Engine::Flux))).unwrap_err();
    assert_eq!(
        other[0].to_string(),
        "a: its spec.engine is argo, and this is for flux: keep the Packages of either engine in a directory of their own"
    );
    let objects = managed(&set, &Options::for_engine(None)).unwrap().objects;
    assert_eq!(objects[0].kind(), "Application");
}

#[rstest]
#[case::commit("0123456789012345678901234567890123456789", &["GitRepository", "HelmChart", "HelmRelease"], 0)]
#[case::branch("main", &["HelmChart", "HelmRelease"], 1)]
fn a_path_is_pinned_where_the_commit_is_known(#[case] revision: &str, #[case] kinds: &[&str], #[case] notes: usize) {
    let source = json!({"repoURL": "https://git.example.org/packages", "revision": revision});
    let package = single(json!({"path": "charts/one", "chartVersion": "1.0.0", "source": source}));
    let translation = managed(&[package], &Options::for_engine(Some(Engine::Flux))).unwrap();
    assert_eq!(translation.objects.iter().map(|object| object.kind()).collect::<Vec<_>>(), kinds);
    assert_eq!(translation.notes.len(), notes);
}

#[test]
fn the_same_packages_give_the_same_bytes() {
    let bytes = || text(managed(&[kubevirt()], &Options::for_engine(Some(Engine::Flux))).unwrap().objects);
    assert_eq!(bytes(), bytes());
}
