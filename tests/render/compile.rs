//! Packages compiled for the controller.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::Engine;
use windlass::package::content::{ChartContent, ContentError};
use windlass::package::definition::RelativePath;
use windlass::package::version::Version;
use windlass::package::yaml::write::write;
use windlass::translate::{Compilation, Refusal, compile};

const COMMIT: &str = "0123456789012345678901234567890123456789";

fn package() -> Map<String, Value> {
    let package = json!({
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
    });
    package.as_object().unwrap().clone()
}

fn content(path: &RelativePath) -> Result<ChartContent, ContentError> {
    match path.as_str() {
        "charts/b" => Ok(ChartContent { digest: "sha256:b".into(), version: Version::parse("1.2.3").unwrap() }),
        other => Err(ContentError::Missing(other.to_owned())),
    }
}

fn options(engine: Option<Engine>) -> Compilation<'static> {
    let origin = Some(("https://git.example.org/packages", COMMIT));
    Compilation { namespace: Some("forced"), engine, origin, charts: Some(&content) }
}

fn messages(refusals: &[Refusal]) -> Vec<String> {
    refusals.iter().map(ToString::to_string).collect()
}

#[test]
fn a_compiled_package_is_the_same_with_what_only_the_reader_knows() {
    let compiled = compile(&package(), &options(Some(Engine::Argo))).unwrap().object;
    insta::assert_snapshot!(write(&[compiled.into()]).unwrap());
}

#[test]
fn compiling_again_changes_nothing() {
    let compiled = compile(&package(), &options(Some(Engine::Flux))).unwrap().object;
    assert_eq!(compile(&compiled, &options(Some(Engine::Flux))).unwrap().object, compiled);
}

#[rstest]
#[case::as_written(Some("mine"), None, "mine")]
#[case::default(None, None, "default")]
#[case::forced(Some("mine"), Some("forced"), "forced")]
fn namespaces(#[case] written: Option<&str>, #[case] forced: Option<&str>, #[case] result: &str) {
    let mut package = package();
    if let Some(written) = written {
        package["metadata"]["namespace"] = written.into();
    }
    let compiled = compile(&package, &Compilation { namespace: forced, ..options(Some(Engine::Flux)) }).unwrap().object;
    assert_eq!(compiled["metadata"]["namespace"], result);
}

#[test]
fn an_engine_is_needed_and_never_overruled() {
    let mut package = package();
    let none = compile(&package, &options(None)).unwrap_err();
    assert_eq!(messages(&none), ["app: no engine: write spec.engine, or say --engine flux or --engine argo"]);
    package["spec"]["engine"] = "flux".into();
    let other = compile(&package, &options(Some(Engine::Argo))).unwrap_err();
    assert_eq!(messages(&other), ["app: it is for engine flux, not argo"]);
    assert_eq!(compile(&package, &options(None)).unwrap().object["spec"]["engine"], "flux");
}

#[rstest]
#[case::missing("charts/c", "1.2.3", "app/b: there is no directory `charts/c`")]
#[case::outside("../charts/b", "1.2.3", "app/b: `../charts/b` leads out of the source")]
#[case::version(
    "charts/b",
    "1.2.4",
    "app/b: chartVersion is 1.2.4, but charts/b/Chart.yaml says 1.2.3: make them equal"
)]
fn a_chart_directory_must_be_what_the_package_says(#[case] path: &str, #[case] version: &str, #[case] message: &str) {
    let mut package = package();
    package["spec"]["components"][0]["path"] = path.into();
    package["spec"]["components"][0]["chartVersion"] = version.into();
    assert_eq!(messages(&compile(&package, &options(Some(Engine::Flux))).unwrap_err()), [message]);
}

#[test]
fn what_the_engine_cannot_do_is_refused() {
    let mut package = package();
    package["spec"]["components"][1]["valuesFrom"] = json!([{"kind": "Secret", "name": "s"}]);
    assert!(compile(&package, &options(Some(Engine::Flux))).is_ok());
    let refused = messages(&compile(&package, &options(Some(Engine::Argo))).unwrap_err());
    assert!(refused[0].contains("valuesFrom"), "{refused:?}");
}

#[rstest]
#[case::flux(Engine::Flux, true)]
#[case::argo(Engine::Argo, false)]
fn without_repository_and_commit_only_flux_can_go_on(#[case] engine: Engine, #[case] possible: bool) {
    let options = Compilation { origin: None, charts: None, ..options(Some(engine)) };
    let compiled = compile(&package(), &options);
    assert_eq!(compiled.is_ok(), possible);
    if let Ok(compiled) = compiled {
        assert_eq!(compiled.object["spec"]["components"][0].get("source"), None);
    }
}
