//! `windlass validate` and `windlass graph` as programs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

const PACKAGE: &str = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: db, namespace: apps}\nspec:\n  version: 1.0.0\n  components:\n  - name: a\n    chart: {repository: \"https://charts.example.org\", name: x, version: 1.0.0}\n";

fn windlass(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("windlass").unwrap();
    command.current_dir(directory).env_remove("NO_COLOR").args(arguments).output().unwrap()
}

fn exit(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

#[test]
fn a_sound_set_is_said_to_be_sound() {
    let at = directory(&[("packages/db.yaml", PACKAGE)]);
    let output = windlass(at.path(), &["validate", "packages", "--engine", "flux"]);
    assert_eq!(
        (exit(&output), text(&output.stdout), text(&output.stderr)),
        (0, "1 Package, no findings\n".into(), String::new())
    );
}

#[test]
fn a_path_that_is_named_twice_is_read_once() {
    let at = directory(&[("packages/db.yaml", PACKAGE)]);
    let absolute = at.path().join("packages").display().to_string();
    std::os::unix::fs::symlink("packages", at.path().join("link")).unwrap();
    for paths in [
        ["packages", "packages/"],
        ["packages", "./packages"],
        ["./packages/db.yaml", "packages/db.yaml"],
        ["./packages", "packages/./db.yaml"],
        [".", "./packages/db.yaml"],
        [".", "packages"],
        ["packages", "."],
        ["packages", absolute.as_str()],
        ["packages", "packages/../packages/db.yaml"],
        ["packages", "link"],
        ["link/db.yaml", "packages/db.yaml"],
    ] {
        let output = windlass(at.path(), &["validate", paths[0], paths[1]]);
        assert_eq!(text(&output.stdout), "1 Package, no findings\n", "{paths:?}");
    }
}

#[test]
fn without_a_cluster_the_kubeconfig_is_named_once() {
    let at = directory(&[]);
    for arguments in [&["controller"][..], &["status"], &["status", "--kubeconfig", "gone"]] {
        let mut command = Command::cargo_bin("windlass").unwrap();
        let environment = [("KUBECONFIG", "gone"), ("HOME", "/nonexistent")];
        let output = command.current_dir(at.path()).env_clear().envs(environment).args(arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(
            (exit(&output), said.matches("gone").count(), said.matches("os error").count()),
            (3, 1, 1),
            "{said}"
        );
    }
}

/// A run that looked at nothing must not look like one that found nothing.
#[test]
fn warnings_about_other_files_do_not_make_up_for_no_package() {
    let at = directory(&[("values.yaml", "replicas: 1\n")]);
    let output = windlass(at.path(), &["validate", "."]);
    assert!(exit(&output) == 1 && text(&output.stdout).contains("error[WL045]"), "{output:?}");
    let graph = windlass(at.path(), &["graph", "."]);
    assert_eq!((exit(&graph), text(&graph.stdout)), (1, String::new()));
    assert!(
        text(&graph.stderr).starts_with("error[WL045]: there is no Package here\n --> values.yaml:1:1"),
        "{graph:?}"
    );
}

#[test]
fn findings_come_with_the_line_and_without_colours_in_a_pipe() {
    let at = directory(&[("db.yaml", &PACKAGE.replace("version: 1.0.0\n  c", "vresion: 1.0.0\n  c"))]);
    let output = windlass(at.path(), &["validate", "db.yaml"]);
    assert_eq!(exit(&output), 1);
    insta::assert_snapshot!(text(&output.stdout));
}

/// Nobody says where the charts are, and there is no Git repository: they are
/// looked for up to where one stands.
#[test]
fn charts_are_looked_at_outside_of_git_too() {
    let with_path = PACKAGE.replace("chart: {", "path: charts/x # {");
    assert_ne!(with_path, PACKAGE);
    let at = directory(&[("packages/db.yaml", &with_path)]);
    let output = windlass(at.path(), &["validate", "packages"]);
    assert!(text(&output.stdout).contains("warning[WL032]: there is no chart at `charts/x`"), "{output:?}");
}

#[test]
fn warnings_are_no_errors_unless_denied() {
    let at = directory(&[("db.yaml", &format!("{PACKAGE}    values: {{a: yes}}\n"))]);
    assert_eq!(exit(&windlass(at.path(), &["validate", "db.yaml"])), 0);
    assert_eq!(exit(&windlass(at.path(), &["validate", "--deny-warnings", "db.yaml"])), 1);
}

/// A package with what is wrong in it, and what the help says.
#[rstest]
#[case::group(
    "    install: {readyWhen: [{apiVersion: ceph.rook.io, kind: A, name: a, expr: 'true'}]}\n",
    "help: write group/version, such as `ceph.rook.io/v1`"
)]
#[case::substitution("    values: {a: ${x}}\n", "help: put text with `${…}` in quotes")]
#[case::function(
    "    install: {readyWhen: [{apiVersion: v1, kind: A, name: a, expr: \"object.kind.beginsWith('A')\"}]}\n",
    "help: did you mean `startsWith`?"
)]
#[case::bounds(
    "  upgrade: {from: '>=1.16 <1.14'}\n",
    "help: its lower bound is not below its upper one: exchange them"
)]
#[case::equal("  upgrade: {from: '1.1 1.2'}\n", "help: write alternatives with `||` between them")]
fn common_slips_are_told_what_to_write(#[case] line: &str, #[case] help: &str) {
    let at = directory(&[("db.yaml", &format!("{PACKAGE}{line}"))]);
    let output = windlass(at.path(), &["validate", "db.yaml"]);
    assert_eq!(exit(&output), 1, "{output:?}");
    assert!(text(&output.stdout).contains(help), "{}", text(&output.stdout));
}

/// What passes here must not come as a surprise there.
#[test]
fn what_others_refuse_is_said_where_it_is_only_warned_of() {
    let at = directory(&[("db.yaml", PACKAGE), ("values-prod.yaml", "replicas: 1\n")]);
    let output = windlass(at.path(), &["validate", "."]);
    assert_eq!(exit(&output), 0);
    let help = "help: `render` and `plugin generate` refuse it: move it to another directory";
    assert!(text(&output.stdout).contains(help), "{}", text(&output.stdout));
    assert_eq!(exit(&windlass(at.path(), &["render", "--engine", "flux", "."])), 1);
}

#[test]
fn that_rules_of_one_engine_were_not_checked_is_said() {
    let at = directory(&[("db.yaml", PACKAGE)]);
    let note = "note: no engine is named: what holds on Flux or on Argo CD alone was not checked; --engine flux or --engine argo does\n";
    assert_eq!(text(&windlass(at.path(), &["validate", "."]).stderr), note);
    assert_eq!(text(&windlass(at.path(), &["validate", "--engine", "argo", "."]).stderr), "");
    let own = PACKAGE.replace("spec:\n", "spec:\n  engine: flux\n");
    fs::write(at.path().join("db.yaml"), own).unwrap();
    assert_eq!(text(&windlass(at.path(), &["validate", "."]).stderr), "");
}

#[test]
fn a_kustomization_that_does_more_than_list_is_said_not_to_be_run() {
    let kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [db.yaml]\n";
    let at = directory(&[("db.yaml", PACKAGE), ("kustomization.yaml", kustomization)]);
    let said = || text(&windlass(at.path(), &["validate", "--engine", "flux", "."]).stderr);
    assert_eq!(said(), "");
    fs::write(at.path().join("kustomization.yaml"), format!("{kustomization}namePrefix: a-\n")).unwrap();
    let note = "note: kustomization.yaml: kustomize is not run: `kustomize build DIR | windlass validate -` checks what it makes\n";
    assert_eq!(said(), note);
}

#[test]
fn two_packages_of_one_name_are_told_of_clusters() {
    let at = directory(&[("a/db.yaml", PACKAGE), ("b/db.yaml", PACKAGE)]);
    let output = windlass(at.path(), &["validate", "."]);
    assert!(text(&output.stdout).contains("for different clusters"), "{}", text(&output.stdout));
}

#[test]
fn standard_input_is_read() {
    let output = Command::cargo_bin("windlass").unwrap().args(["validate", "-"]).write_stdin(PACKAGE).output().unwrap();
    assert_eq!((exit(&output), text(&output.stdout)), (0, "1 Package, no findings\n".into()));
}

#[rstest]
#[case::missing(&["validate", "nowhere"], 3)]
#[case::missing_chart_root(&["validate", "--chart-root", "nowhere", "db.yaml"], 3)]
#[case::chart_root_is_a_file(&["validate", "--chart-root", "db.yaml", "db.yaml"], 3)]
#[case::no_path(&["validate"], 2)]
#[case::unknown_engine(&["validate", "--engine", "helm", "db.yaml"], 2)]
#[case::unknown_format(&["validate", "--format", "xml", "db.yaml"], 2)]
#[case::fix_of_standard_input(&["validate", "--fix", "-"], 2)]
#[case::nothing_there(&["validate", "empty"], 1)]
#[case::graph_missing(&["graph", "nowhere"], 3)]
#[case::sound(&["validate", "db.yaml"], 0)]
fn exit_codes_tell_what_happened(#[case] arguments: &[&str], #[case] code: i32) {
    let at = directory(&[("db.yaml", PACKAGE), ("empty/readme.md", "")]);
    let output = windlass(at.path(), arguments);
    assert_eq!(exit(&output), code, "{output:?}");
    if code == 3 {
        assert!(text(&output.stderr).starts_with("error: "), "{output:?}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn workflow_commands_name_file_and_line() {
    let at = directory(&[("packages/db.yaml", &PACKAGE.replace("1.0.0}", "\"1\"}"))]);
    let output = windlass(at.path(), &["validate", "--format", "github", "packages"]);
    assert!(text(&output.stdout).starts_with("::error file=packages/db.yaml,line=8,endLine=8,col="), "{output:?}");
    assert_eq!(exit(&output), 1);
}

#[test]
fn json_is_there_for_a_sound_set_too() {
    let at = directory(&[("db.yaml", PACKAGE)]);
    let output = windlass(at.path(), &["validate", "--format", "json", "."]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json, serde_json::json!({"diagnostics": [], "summary": {"errors": 0, "warnings": 0}}));
}

#[test]
fn what_is_certain_is_mended_in_place() {
    let before = format!(
        "{PACKAGE}    # kept\n    values: {{a: yes, mode: 0644, size: 1_000, at: 12:30, v: 1.10}}\n    install:\n      readyWhen:\n      - {{apiVersion: v1, kind: A, name: a, condition: Up, status: True}}\n"
    );
    let at = directory(&[("db.yaml", &before)]);
    let output = windlass(at.path(), &["validate", "--engine", "flux", "--fix", "db.yaml"]);
    assert_eq!((exit(&output), text(&output.stderr)), (0, "mended 5 places\n".into()), "{output:?}");
    let after = fs::read_to_string(at.path().join("db.yaml")).unwrap();
    let expected = before
        .replace("a: yes, mode: 0644, size: 1_000, at: 12:30", "a: true, mode: 420, size: 1000, at: \"12:30\"")
        .replace("status: True", "status: \"True\"");
    assert_eq!(after, expected);
    assert_eq!(fs::read_dir(at.path()).unwrap().count(), 1);
}

#[test]
fn nothing_is_written_where_nothing_can_be_mended() {
    let at = directory(&[("db.yaml", PACKAGE)]);
    let before = fs::metadata(at.path().join("db.yaml")).unwrap().modified().unwrap();
    let output = windlass(at.path(), &["validate", "--engine", "flux", "--fix", "db.yaml"]);
    assert_eq!((exit(&output), text(&output.stderr)), (0, String::new()));
    assert_eq!(fs::metadata(at.path().join("db.yaml")).unwrap().modified().unwrap(), before);
}

#[test]
fn a_missing_chart_is_an_error_where_the_root_is_named() {
    let package = PACKAGE
        .replace("chart: {repository: \"https://charts.example.org\", name: x, version: 1.0.0}", "path: charts/x");
    let at = directory(&[("packages/db.yaml", &package), (".git/HEAD", "")]);
    let guessed = windlass(at.path(), &["validate", "packages"]);
    assert_eq!((exit(&guessed), text(&guessed.stdout).contains("warning[WL032]")), (0, true), "{guessed:?}");
    let named = windlass(at.path(), &["validate", "--chart-root", ".", "packages"]);
    assert_eq!((exit(&named), text(&named.stdout).contains("error[WL032]")), (1, true), "{named:?}");
    fs::create_dir_all(at.path().join("charts/x")).unwrap();
    fs::write(at.path().join("charts/x/Chart.yaml"), "name: x\nversion: 1.0.0\n").unwrap();
    assert_eq!(text(&windlass(at.path(), &["validate", "packages"]).stdout), "1 Package, no findings\n");
}

#[rstest]
#[case::text("text", "apps/db 1.0.0\n  1. a\n")]
#[case::dot("dot", "digraph packages {")]
#[case::mermaid("mermaid", "flowchart LR\n")]
fn the_graph_has_three_forms(#[case] format: &str, #[case] start: &str) {
    let at = directory(&[("db.yaml", PACKAGE)]);
    let output = windlass(at.path(), &["graph", "--format", format, "."]);
    assert!(exit(&output) == 0 && text(&output.stdout).starts_with(start), "{output:?}");
}

#[test]
fn a_circle_is_no_graph() {
    let at = directory(&[("db.yaml", &format!("{PACKAGE}    install: {{dependsOn: [a]}}\n"))]);
    let output = windlass(at.path(), &["graph", "."]);
    assert_eq!((exit(&output), text(&output.stdout)), (1, String::new()));
    assert!(text(&output.stderr).contains("component `a` depends on itself"), "{output:?}");
}

#[rstest]
#[case::validate("validate")]
#[case::graph("graph")]
#[case::crds("crds")]
#[case::completion("completion")]
#[case::man("man")]
fn help_has_examples(#[case] command: &str) {
    let output = Command::cargo_bin("windlass").unwrap().args([command, "--help"]).output().unwrap();
    assert!(exit(&output) == 0 && text(&output.stdout).contains("Example"), "{output:?}");
}

#[rstest]
#[case("bash")]
#[case("zsh")]
#[case("fish")]
fn completion_scripts_know_the_commands(#[case] shell: &str) {
    let output = Command::cargo_bin("windlass").unwrap().args(["completion", shell]).output().unwrap();
    assert!(exit(&output) == 0 && text(&output.stdout).contains("validate"));
}

/// `windlass … | head` has read enough.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.arg("crds").stdout(writer).stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

/// What was found stays found.
#[test]
fn a_closed_pipe_does_not_change_the_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("package.yaml");
    std::fs::write(
        &file,
        "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: a}\nspec: {versoin: 1}\n",
    )
    .unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.args(["validate", "--format", "json"]).arg(&file).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), String::new()));
}
