//! Charts at a path.

use super::*;
use crate::api::Engine;
use crate::package::content::chart_content;
use crate::package::tree::EntryKind;
use crate::package::tree::testing::Files;

fn charts() -> Files {
    Files::new([
        ("charts/a/Chart.yaml", "name: a\nversion: 1.2.3\n"),
        ("charts/a/values-prod.yaml", ""),
        ("charts/real/Chart.yaml", "name: a\nversion: 1.2.3\n"),
    ])
    .link("charts/link", Some("charts/real"))
}

fn found_of_chart(files: &Files, severity: Severity) -> Vec<String> {
    let options = Options { charts: Some(Charts { roots: &[files], severity }), ..Options::default() };
    found_with(&package("db", "components: [{name: a, path: charts/a, chartVersion: 1.0.0}]"), &options)
}

/// What the plugin and `render` refuse.
#[rstest]
#[case::partial_version(
    "version: \"1.0\"",
    "WL032 `charts/a` is no chart: its Chart.yaml states no exact version: `1.0` is no exact version: write all three numbers, such as `1.4.0`"
)]
#[case::number("version: 1.0", "WL032 `charts/a` is no chart: its Chart.yaml states no version")]
#[case::no_version("name: a", "WL032 `charts/a` is no chart: its Chart.yaml states no version")]
#[case::empty("", "WL032 `charts/a` is no chart: its Chart.yaml states no version")]
#[case::no_yaml("name: [", "WL032 `charts/a` is no chart: its Chart.yaml is no YAML: ")]
#[case::binary("name: \0", "WL032 `charts/a` is no chart: its Chart.yaml is no YAML: ")]
#[case::twice(
    "version: 1.0.0\nversion: 1.0.0",
    "WL032 `charts/a` is no chart: its Chart.yaml is no YAML: the key `version` is there twice"
)]
fn a_chart_that_cannot_be_used_is_found(#[case] chart: &str, #[case] message: &str) {
    let files = Files::new([("charts/a/Chart.yaml", chart)]);
    for severity in [Severity::Error, Severity::Warning] {
        let found = found_of_chart(&files, severity);
        let start = format!("{} 5:53 {message}", severity.as_str());
        assert!(found.len() == 1 && found[0].starts_with(&start), "{found:?}");
    }
}

#[test]
fn a_link_inside_a_chart_is_found() {
    let files = Files::new([("charts/a/Chart.yaml", "version: 1.0.0")]).link("charts/a/templates/x.yaml", None);
    assert_eq!(
        found_of_chart(&files, Severity::Error),
        ["error 5:53 WL016 `charts/a/templates/x.yaml` is a symbolic link: put the files themselves there"]
    );
}

#[rstest]
#[case::there("path: charts/a, chartVersion: 1.2.3, valuesFiles: [values-prod.yaml]", &[])]
#[case::version_unknown("path: ./charts//a/", &[])]
#[case::missing("path: charts/b", &["error WL032 there is no chart at `charts/b`"])]
#[case::no_chart("path: charts", &["error WL032 there is no chart at `charts`"])]
#[case::values_missing("path: charts/a, valuesFiles: [x.yaml]", &["error WL032 the chart has no file `x.yaml`"])]
#[case::version("path: charts/a, chartVersion: 1.2.4", &["error WL033 chartVersion is 1.2.4, but charts/a/Chart.yaml says 1.2.3"])]
#[case::link("path: charts/link", &["error WL016 `charts/link` leads through a symbolic link"])]
#[case::out("path: ../x", &["error WL016 `../x` leads out of the source"])]
fn chart_directories_are_looked_at(#[case] rest: &str, #[case] expected: &[&str]) {
    let files = charts();
    let options =
        Options { charts: Some(Charts { roots: &[&files], severity: Severity::Error }), ..Options::default() };
    let found = found_with(&package("db", &format!("components: [{{name: a, {rest}}}]")), &options);
    let without_place = found.iter().map(|line| {
        let mut words = line.splitn(3, ' ');
        format!("{} {}", words.next().unwrap(), words.nth(1).unwrap())
    });
    assert_eq!(without_place.collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_chart_is_only_a_warning_where_the_root_is_a_guess() {
    let files = charts();
    let options =
        Options { charts: Some(Charts { roots: &[&files], severity: Severity::Warning }), ..Options::default() };
    let found = found_with(&package("db", "components: [{name: a, path: nowhere}]"), &options);
    assert!(found.len() == 1 && found[0].starts_with("warning"), "{found:?}");
}

#[rstest]
#[case::flux(Some(Engine::Flux), &["error 5:70 WL032 the chart has no file `values.yaml`, which Flux needs beside valuesFiles"])]
#[case::argo(Some(Engine::Argo), &[])]
fn flux_needs_the_own_values_of_a_chart_beside_others(#[case] engine: Option<Engine>, #[case] expected: &[&str]) {
    let files = charts();
    let charts = Some(Charts { roots: &[&files], severity: Severity::Error });
    let spec = "sourceRef: {kind: GitRepository, name: g}, components: [{name: a, path: charts/a, chartVersion: 1.2.3,
 valuesFiles: [values-prod.yaml]}]";
    let text = package("db", &spec.replace('\n', ""));
    let found = found_with(&text, &Options { engine, charts, ..Options::default() });
    let column = text.lines().last().unwrap().find("valuesFiles").unwrap() + 1;
    let expected: Vec<String> = expected.iter().map(|line| line.replace("5:70", &format!("5:{column}"))).collect();
    assert_eq!(found, expected);
}

/// A tree with a submodule, or with one that is not checked out.
struct WithSubmodule(EntryKind);

impl Tree for WithSubmodule {
    fn entries(&self, path: &str) -> io::Result<Vec<(String, EntryKind)>> {
        match path {
            "" => Ok(vec![("vendor".to_owned(), self.0)]),
            "vendor" if self.0 == EntryKind::Directory => Ok(Vec::new()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn read(&self, _: &str, _: u64) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn kind(&self, path: &str) -> io::Result<Option<EntryKind>> {
        Ok((path == "vendor").then_some(self.0))
    }
}

#[rstest]
#[case::submodule(EntryKind::Submodule, "`vendor` is a Git submodule, whose files are not in this repository: ")]
#[case::not_checked_out(EntryKind::Directory, "there is no directory `vendor/a`, and `vendor` is empty: ")]
fn a_chart_in_a_submodule_is_told_from_one_that_is_nowhere(#[case] kind: EntryKind, #[case] message: &str) {
    let tree = WithSubmodule(kind);
    let options = Options { charts: Some(Charts { roots: &[&tree], severity: Severity::Error }), ..Options::default() };
    let found = found_with(&package("db", "components: [{name: a, path: vendor/a}]"), &options);
    assert!(found.len() == 1 && found[0].contains(message), "{found:?}");
    assert!(chart_content(&tree, "vendor/a").unwrap_err().to_string().starts_with(message));
}
