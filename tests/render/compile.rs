//! Packages compiled for the controller.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{Engine, PackageSpec};
use windlass::package::content::{ChartContent, ContentError};
use windlass::package::definition::{self, RelativePath};
use windlass::package::load::{Input, LoadedPackage, NamespaceRule, load};
use windlass::package::names::Namespace;
use windlass::package::version::Version;
use windlass::package::yaml::write::write;
use windlass::translate::{Compilation, Refusal, compile};

const COMMIT: &str = "0123456789012345678901234567890123456789";

fn package() -> Value {
    json!({
        "kind": "Package",
        "apiVersion": "windlass.dev/v1alpha1",
        "metadata": {"name": "app", "annotations": {"mine": "x"}, "labels": {}},
        "status": {"version": "0.1.0"},
        "spec": {
            "version": "1.0.0",
            "sourceRef": {"kind": "GitRepository", "name": "packages"},
            "components": [
                {"values": {"on": null, "n": 1.0}, "name": "b", "path": "./charts//b", "chartVersion": "1.2.3"},
                {"name": "a", "chart": {"repository": "https://charts.example.org", "name": "a", "version": "1.0.0"}},
            ],
        },
    })
}

/// A Package as it is loaded where another namespace than its own is wanted.
fn loaded(package: &Value) -> LoadedPackage {
    loaded_into(package, NamespaceRule::Forced(Namespace::parse("forced").unwrap()))
}

fn loaded_into(package: &Value, rule: NamespaceRule) -> LoadedPackage {
    let input = Input::Text { bytes: package.to_string().into_bytes(), shown: "package.json".to_owned() };
    load(&[input], &rule).unwrap().packages.remove(0)
}

fn content(path: &RelativePath) -> Result<ChartContent, ContentError> {
    match path.as_str() {
        "charts/b" => {
            let files = vec!["Chart.yaml".to_owned(), "production.yaml".to_owned()];
            Ok(ChartContent {
                name: "b".into(),
                digest: "sha256:b".into(),
                version: Version::parse("1.2.3").unwrap(),
                files,
            })
        }
        other => Err(ContentError::Missing(other.to_owned())),
    }
}

fn options(engine: Option<Engine>) -> Compilation<'static> {
    let origin = Some(("https://git.example.org/packages", COMMIT));
    Compilation { engine, origin, origin_stated_in: "flags", charts: Some(&content) }
}

fn messages(refusals: &[Refusal]) -> Vec<String> {
    refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn a_compiled_package_is_the_same_with_what_only_the_reader_knows() {
    let compiled = compile(loaded(&package()), &options(Some(Engine::Argo))).unwrap().object;
    insta::assert_snapshot!(write(&[compiled.into()]).unwrap());
}

#[test]
fn compiling_again_changes_nothing() {
    let compiled = compile(loaded(&package()), &options(Some(Engine::Flux))).unwrap().object;
    let again = compile(loaded(&compiled.clone().into()), &options(Some(Engine::Flux))).unwrap();
    assert_eq!(again.object, compiled);
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn the_object_says_what_was_judged(#[case] engine: Engine) {
    let compiled = compile(loaded(&package()), &options(Some(engine))).unwrap();
    let spec: PackageSpec = serde_json::from_value(compiled.object["spec"].clone()).unwrap();
    let namespace = compiled.object["metadata"]["namespace"].as_str().unwrap();
    assert_eq!(definition::parse("app", namespace, &spec).unwrap(), compiled.definition);
}

#[test]
fn a_package_with_errors_is_refused() {
    let mut package = package();
    package["spec"]["version"] = "one".into();
    let refused = compile(loaded(&package), &options(Some(Engine::Flux))).unwrap_err();
    assert_eq!(messages(&refused), ["app: it has errors: `windlass validate` shows them"]);
}

#[rstest]
#[case::as_written(Some("mine"), NamespaceRule::Default, "mine")]
#[case::default(None, NamespaceRule::Default, "other")]
#[case::forced(Some("mine"), NamespaceRule::Forced, "other")]
fn namespaces(#[case] written: Option<&str>, #[case] rule: fn(Namespace) -> NamespaceRule, #[case] result: &str) {
    let mut package = package();
    if let Some(written) = written {
        package["metadata"]["namespace"] = written.into();
    }
    let package = loaded_into(&package, rule(Namespace::parse("other").unwrap()));
    let compiled = compile(package, &options(Some(Engine::Flux))).unwrap().object;
    assert_eq!(compiled["metadata"]["namespace"], result);
}

#[test]
fn an_engine_is_needed_and_never_overruled() {
    let mut package = package();
    let none = compile(loaded(&package), &options(None)).unwrap_err();
    assert_eq!(messages(&none), ["app: no engine: write spec.engine, or say --engine flux or --engine argo"]);
    package["spec"]["engine"] = "flux".into();
    let other = compile(loaded(&package), &options(Some(Engine::Argo))).unwrap_err();
    assert_eq!(
        messages(&other),
        [
            "app: its spec.engine is flux, and this is for argo: keep the Packages of either engine in a directory of their own"
        ]
    );
    assert_eq!(compile(loaded(&package), &options(None)).unwrap().object["spec"]["engine"], "flux");
}

#[rstest]
#[case::missing("charts/c", "1.2.3", "app/b: there is no directory `charts/c`")]
#[case::version(
    "charts/b",
    "1.2.4",
    "app/b: chartVersion is 1.2.4, but charts/b/Chart.yaml says 1.2.3: make them equal"
)]
fn a_chart_directory_must_be_what_the_package_says(#[case] path: &str, #[case] version: &str, #[case] message: &str) {
    let mut package = package();
    package["spec"]["components"][0]["path"] = path.into();
    package["spec"]["components"][0]["chartVersion"] = version.into();
    assert_eq!(messages(&compile(loaded(&package), &options(Some(Engine::Flux))).unwrap_err()), [message]);
}

#[test]
fn what_the_engine_cannot_do_is_refused() {
    let mut package = package();
    package["spec"]["components"][1]["valuesFrom"] = json!([{"kind": "Secret", "name": "s"}]);
    assert!(compile(loaded(&package), &options(Some(Engine::Flux))).is_ok());
    let refused = messages(&compile(loaded(&package), &options(Some(Engine::Argo))).unwrap_err());
    assert!(refused[0].contains("valuesFrom"), "{refused:?}");
}

#[rstest]
#[case::flux(Engine::Flux, true)]
#[case::argo(Engine::Argo, false)]
fn without_repository_and_commit_only_flux_can_go_on(#[case] engine: Engine, #[case] possible: bool) {
    let options = Compilation { origin: None, charts: None, ..options(Some(engine)) };
    let compiled = compile(loaded(&package()), &options);
    assert_eq!(compiled.is_ok(), possible);
    if let Ok(compiled) = compiled {
        assert_eq!(compiled.object["spec"]["components"][0].get("source"), None);
    }
}
