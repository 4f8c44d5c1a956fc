//! What `plan` and `validate` say of charts, with the charts of `tests/data`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;
#[path = "charts/rendered.rs"]
mod rendered;

use std::fs;
use std::path::Path;
use std::process::Output;

use rstest::rstest;
use serde_json::Value;

use common::{root, text};

fn run(arguments: &[&str]) -> Output {
    let charts = root().join("tests/data/charts/unpacked").display().to_string();
    common::windlass(arguments.iter().map(|argument| if *argument == "CHARTS" { charts.as_str() } else { argument }))
}

fn package(version: &str, components: &[&str]) -> String {
    let components: String = components.iter().map(|component| format!("  - {component}\n")).collect();
    format!(
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: widgets, namespace: packages}}\n\
         spec:\n  version: {version}\n  components:\n{components}"
    )
}

fn component(name: &str, chart: &str, version: &str, more: &str) -> String {
    format!(
        "{{name: {name}, chart: {{repository: https://charts.example.org, name: {chart}, version: {version}}}, \
         install: {{namespace: widgets{more}}}}}"
    )
}

/// Findings of the plan between two Packages, as `code object message`.
fn planned(from: &str, to: &str, arguments: &[&str]) -> (Vec<String>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let sides = [("v1", from), ("v2", to)].map(|(name, text)| {
        let side = directory.path().join(name);
        fs::create_dir(&side).unwrap();
        fs::write(side.join("widgets.yaml"), text).unwrap();
        side.display().to_string()
    });
    let output = run(&[&["plan", &sides[0], &sides[1], "--format", "json"], arguments].concat());
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let findings = plan["packages"][0]["findings"].as_array().unwrap().iter();
    let told = |finding: &Value| {
        format!("{} {} {}", text(finding, "/code"), text(finding, "/object"), text(finding, "/message"))
    };
    (findings.map(told).collect(), plan)
}

const WIDGETS: &str = "CustomResourceDefinition/widgets.example.org";
const GADGETS: &str = "CustomResourceDefinition/gadgets.example.org";

#[test]
fn what_changes_of_definitions_is_told_with_the_object_and_a_code() {
    let [old, new] =
        ["1.0.0", "2.0.0"].map(|version| package(version, &[&component("operator", "widget-operator", version, "")]));
    let (found, _) = planned(&old, &new, &["--charts", "CHARTS"]);
    let starts = [
        format!("WL048 {WIDGETS} version v1alpha1 is not served any more"),
        format!("WL049 {WIDGETS} version v1alpha1 is removed, and objects are stored in it"),
        format!("WL050 {WIDGETS} version v1 has no `spec.color`, `spec.parts[].weight` any more"),
        format!("WL051 {GADGETS} is not in the chart any more: the cluster keeps it"),
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(&start), "{found}");
    }
    let (found, plan) = planned(&old, &new, &[]);
    assert_eq!((found.len(), plan["notes"].to_string().contains("--charts")), (0, false), "{plan:#}");
}

#[rstest]
#[case::skipped(", upgradeCRDs: Skip", "2.0.0", &["WL051"])]
#[case::as_before("", "1.0.0", &[])]
fn what_is_not_applied_is_not_told(#[case] more: &str, #[case] version: &str, #[case] expected: &[&str]) {
    let old = package("1.0.0", &[&component("operator", "widget-operator", "1.0.0", more)]);
    let new = package("2.0.0", &[&component("operator", "widget-operator", version, more)]);
    let (found, _) = planned(&old, &new, &["--charts", "CHARTS"]);
    let codes: Vec<&str> = found.iter().filter_map(|found| found.split(' ').next()).collect();
    assert_eq!(codes, expected);
}

#[test]
fn on_argo_cd_a_definition_that_goes_is_pruned() {
    let [old, new] =
        ["1.0.0", "2.0.0"].map(|version| package(version, &[&component("operator", "widget-operator", version, "")]));
    let (found, _) = planned(&old, &new, &["--charts", "CHARTS", "--engine", "argo"]);
    assert!(found.iter().any(|found| found.starts_with("WL051") && found.contains("Argo CD prunes it")), "{found:#?}");
}

#[test]
fn a_definition_that_may_have_moved_is_not_missed() {
    let old = package("1.0.0", &[&component("operator", "widget-operator", "1.0.0", "")]);
    let new = package(
        "2.0.0",
        &[&component("operator", "widget-operator", "2.0.0", ""), &component("crds", "not-here", "1.0.0", "")],
    );
    let (found, plan) = planned(&old, &new, &["--charts", "CHARTS"]);
    assert!(!found.iter().any(|found| found.starts_with("WL051")), "{found:#?}");
    assert!(plan["notes"].to_string().contains("not in --charts, and so not looked into: not-here 1.0.0"), "{plan:#}");
    let moved = package(
        "2.0.0",
        &[&component("operator", "widgets", "1.0.0", ""), &component("crds", "widget-operator", "1.0.0", "")],
    );
    assert_eq!(planned(&old, &moved, &["--charts", "CHARTS"]).0, Vec::<String>::new());
}

#[test]
fn every_form_of_a_plan_has_the_code() {
    let sides = ["docs/charts/v1", "docs/charts/v2"].map(|side| root().join(side).display().to_string());
    for (format, expected) in
        [("text", "warning[WL048]: component operator, "), ("markdown", "- ⚠️ WL048: component operator, ")]
    {
        let output = run(&["plan", &sides[0], &sides[1], "--charts", "CHARTS", "--format", format]);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn missing_edges_are_added_and_the_file_stays_as_it_is_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("widgets.yaml");
    let tools = "  - name: tools # last\n    chart:\n      repository: https://charts.example.org\n      name: widget-tools\n      \
                 version: 1.0.0\n    install: {namespace: widgets, dependsOn: []}\n  - name: data\n    chart: {repository: \
                 \"https://charts.example.org\", name: elsewhere, version: 1.0.0}\n    install: {namespace: widget-data}\n";
    let before = fs::read_to_string(root().join("docs/charts/v2/widgets.yaml")).unwrap() + tools;
    fs::write(&file, &before).unwrap();
    let path = directory.path().to_str().unwrap();
    let warned = run(&["validate", path, "--engine", "flux", "--charts", "CHARTS"]);
    let shown = String::from_utf8(warned.stdout).unwrap();
    assert_eq!((warned.status.code(), shown.matches("warning[WL052]").count()), (Some(0), 3), "{shown}");
    let said = String::from_utf8(warned.stderr).unwrap();
    assert_eq!(said, "note: not in --charts, and so not looked into: elsewhere 1.0.0\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let fixed = run(&["validate", path, "--engine", "flux", "--charts", "CHARTS", "--fix", "--deny-warnings"]);
    assert_eq!(fixed.status.code(), Some(0), "{fixed:?}");
    let expected = before
        .replace("      # Beside the operator.", "      dependsOn: [operator]\n      # Beside the operator.")
        .replace("dependsOn: []", "dependsOn: [operator]")
        .replace("{namespace: widget-data}", "{namespace: widget-data, dependsOn: [tools]}");
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    assert!(
        String::from_utf8(fixed.stderr)
            .unwrap()
            .ends_with("mended 3 places\nnote: not in --charts, and so not looked into: elsewhere 1.0.0\n")
    );
}

#[test]
fn charts_at_a_path_are_looked_into_below_the_root() {
    let directory = tempfile::tempdir().unwrap();
    copy(&root().join("tests/data/charts/unpacked"), &directory.path().join("charts"));
    let at = |name: &str, path: &str| format!("{{name: {name}, path: charts/{path}, install: {{namespace: widgets}}}}");
    let text = package("1.0.0", &[&at("operator", "widget-operator-1.0.0"), &at("widgets", "widgets")]);
    fs::write(directory.path().join("widgets.yaml"), text).unwrap();
    let path = directory.path().to_str().unwrap();
    let guessed = run(&["validate", path]);
    assert_eq!(String::from_utf8(guessed.stdout).unwrap(), "1 Package, no findings\n");
    let named = run(&["validate", path, "--chart-root", path]);
    let shown = String::from_utf8(named.stdout).unwrap();
    assert!(
        shown.contains("warning[WL052]: component `widgets` uses Widget of example.org (templates/widgets.yaml)"),
        "{shown}"
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[rstest]
#[case::file("widgets/Chart.yaml", "is no directory: charts are read unpacked")]
#[case::absent("nowhere", "cannot read")]
fn what_is_no_directory_of_charts_is_refused(#[case] charts: &str, #[case] message: &str) {
    let charts = root().join("tests/data/charts/unpacked").join(charts).display().to_string();
    let packages = root().join("docs/charts/v1").display().to_string();
    for arguments in [vec!["validate", &packages], vec!["plan", &packages, &packages]] {
        let output = run(&[&arguments[..], &["--charts", &charts]].concat());
        assert_eq!(output.status.code(), Some(3));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn examples_have_every_edge_that_their_charts_need() {
    for example in ["kubevirt", "database", "node-agent", "platform"] {
        let states = ["v1", "v2"].map(|state| root().join("examples").join(example).join(state));
        let charts = states.each_ref().map(|state| state.join("charts").display().to_string());
        let states = states.map(|state| state.display().to_string());
        for (state, charts) in states.iter().zip(&charts) {
            let output = run(&[
                "validate",
                state,
                "--engine",
                "flux",
                "--chart-root",
                state,
                "--charts",
                charts,
                "--deny-warnings",
            ]);
            assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{output:?}");
        }
        let arguments = ["plan", &states[0], &states[1], "--charts", &charts[0], "--charts", &charts[1]];
        let shown = String::from_utf8(run(&arguments).stdout).unwrap();
        assert!(!shown.contains("WL0") && !shown.contains("not looked into"), "{shown}");
    }
}

#[test]
fn without_its_edge_the_resource_of_an_operator_gets_it_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("package.yaml");
    let text = fs::read_to_string(root().join("examples/kubevirt/v2/package.yaml")).unwrap();
    fs::write(&file, text.replace("      dependsOn: [operator]\n", "")).unwrap();
    let charts = root().join("examples/kubevirt/v2/charts").display().to_string();
    let output = run(&["validate", file.to_str().unwrap(), "--engine", "flux", "--charts", &charts, "--fix"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "mended 1 place\n");
    let mended = fs::read_to_string(&file).unwrap();
    let moved = text.replace(
        "      namespace: kubevirt\n      dependsOn: [operator]\n",
        "      dependsOn: [operator]\n      namespace: kubevirt\n",
    );
    assert_eq!(mended, moved);
}
