//! `windlass render` as people and scripts use it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

const PACKAGE: &str = "\
apiVersion: windlass.dev/v1alpha1
kind: Package
metadata:
  name: app
spec:
  version: 1.0.0
  components:
  - name: one
    chart: {repository: https://charts.example.org, name: one, version: 1.0.0}
  - name: two
    chart: {repository: https://charts.example.org, name: two, version: 1.0.0}
    install: {dependsOn: [one]}
";
const PATH_PACKAGE: &str = "\
apiVersion: windlass.dev/v1alpha1
kind: Package
metadata: {name: files}
spec:
  version: 1.0.0
  components:
  - name: one
    path: charts/one
";
const HOOK: &str = "  - name: migrate
    chart: {repository: https://charts.example.org, name: migrate, version: 1.0.0}
    install: {phase: PreUpgrade}
";
const COMMIT: &str = "0123456789012345678901234567890123456789";

fn render(directory: &Path, arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("windlass").unwrap().current_dir(directory).arg("render").args(arguments).assert()
}

fn files(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

fn stdout(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn without_a_mode_the_children_are_shown_as_the_controller_writes_them() {
    let directory = files(&[("packages/app.yaml", PACKAGE)]);
    let by_default = render(directory.path(), &["--engine", "flux", "packages"]).success();
    let managed = render(directory.path(), &["--engine", "flux", "--mode", "managed", "packages"]).success();
    assert_eq!(stdout(&by_default), stdout(&managed));
    assert!(stdout(&by_default).contains("app.kubernetes.io/managed-by: windlass"));
    assert!(stderr(&by_default).contains("--mode native"), "{}", stderr(&by_default));
}

#[test]
fn standard_input_is_read_and_the_namespace_forced() {
    let output = Command::cargo_bin("windlass")
        .unwrap()
        .args(["render", "--engine", "argo", "-n", "elsewhere", "-"])
        .write_stdin(PACKAGE)
        .assert()
        .success();
    assert_eq!(stdout(&output).matches("  namespace: elsewhere").count(), 4, "{}", stdout(&output));
}

#[test]
fn files_are_named_by_kind_and_name() {
    let directory = files(&[("app.yaml", PACKAGE), ("out/kept.yaml", "kept")]);
    let written = render(directory.path(), &["--engine", "argo", "-o", "out", "app.yaml"]).success();
    assert_eq!(stdout(&written), "");
    assert!(
        stderr(&written).contains("note: not of this run, and left as they are: kept.yaml\n"),
        "{}",
        stderr(&written)
    );
    assert_eq!(
        names(&directory.path().join("out")),
        ["application_app-one.yaml", "application_app-two.yaml", "kept.yaml"]
    );
    let stream = stdout(&render(directory.path(), &["--engine", "argo", "app.yaml"]).success());
    let joined: String = ["one", "two"]
        .map(|name| fs::read_to_string(directory.path().join(format!("out/application_app-{name}.yaml"))).unwrap())
        .concat();
    assert_eq!(joined, stream);
}

/// Components that are gone leave files that somebody may still apply.
#[test]
fn what_an_earlier_run_left_is_named_and_kept() {
    let directory = files(&[("app.yaml", PACKAGE), ("out/README.md", ""), ("out/deep/x.yaml", "")]);
    let render = |text: &str| {
        fs::write(directory.path().join("app.yaml"), text).unwrap();
        stderr(&render(directory.path(), &["--engine", "argo", "-o", "out", "app.yaml"]).success())
    };
    assert!(!render(PACKAGE).contains("not of this run"));
    assert!(!render(PACKAGE).contains("not of this run"));
    let smaller = PACKAGE.split("  - name: two").next().unwrap();
    let said = render(smaller);
    assert!(said.contains("not of this run, and left as they are: application_app-two.yaml\n"), "{said}");
    assert!(directory.path().join("out/application_app-two.yaml").exists());
}

#[test]
fn hooks_are_skipped_in_native_mode_alone() {
    let directory = files(&[("app.yaml", PACKAGE)]);
    for mode in ["managed", "package"] {
        let refused =
            render(directory.path(), &["--engine", "flux", "--mode", mode, "--skip-hooks", "app.yaml"]).code(2);
        assert!(stderr(&refused).starts_with("error: --skip-hooks goes with --mode native"), "{}", stderr(&refused));
    }
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let directory = files(&[("app.yaml", PACKAGE), ("out/application_app-two.yaml/x", "")]);
    render(directory.path(), &["--engine", "argo", "-o", "out", "app.yaml"]).code(3);
    assert_eq!(names(&directory.path().join("out")), ["application_app-two.yaml"]);
}

#[test]
fn an_error_anywhere_writes_nothing() {
    let broken = PACKAGE.replace("dependsOn: [one]", "dependsOn: [on3]").replace("name: app", "name: broken");
    let directory = files(&[("a.yaml", PACKAGE), ("b.yaml", &broken)]);
    let failed = render(directory.path(), &["--engine", "argo", "-o", "out", "."]).code(1);
    assert!(stderr(&failed).contains("b.yaml:12"), "{}", stderr(&failed));
    assert!(stderr(&failed).contains("did you mean `one`?"), "{}", stderr(&failed));
    assert!(!directory.path().join("out").exists());
    assert_eq!(stdout(&render(directory.path(), &["--engine", "argo", "."]).code(1)), "");
}

/// What is made of the rest is applied by someone who deletes what is missing.
#[test]
fn a_document_without_kind_is_an_error_in_a_directory_too() {
    let directory = files(&[("app.yaml", PACKAGE), ("b.yaml", "apiVersion: v1\nmetadata: {name: settings}\n")]);
    for mode in ["managed", "native", "package"] {
        let failed = render(directory.path(), &["--engine", "flux", "--mode", mode, "."]).code(1);
        assert_eq!(stdout(&failed), "");
        let message = "error[WL022]: this document is no Kubernetes object: kind is missing\n --> b.yaml:1:1\n";
        assert!(stderr(&failed).starts_with(message), "{}", stderr(&failed));
    }
}

#[test]
fn an_engine_is_needed() {
    let directory = files(&[("app.yaml", PACKAGE)]);
    let failed = render(directory.path(), &["app.yaml"]).code(1);
    assert_eq!(
        stderr(&failed),
        "error: app.yaml:4: app: no engine: write spec.engine, or say --engine flux or --engine argo\n"
    );
}

#[test]
fn refusals_are_placed_and_told_together() {
    let second = "  - name: two\n    path: charts/two\n";
    let directory = files(&[("files.yaml", &format!("{PATH_PACKAGE}{second}"))]);
    let failed = render(directory.path(), &["--engine", "argo", "files.yaml"]).code(1);
    let said = stderr(&failed);
    let starts = ["error: files.yaml:7: files/one: a path needs", "error: files.yaml:9: files/two: a path needs"];
    assert!(said.lines().zip(starts).all(|(line, start)| line.starts_with(start)), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

/// Who mends the errors should not find the next ones behind them.
#[test]
fn what_is_refused_is_told_with_the_errors_of_others() {
    let directory = files(&[("app.yaml", &PACKAGE.replace("[one]", "[ona]")), ("files.yaml", PATH_PACKAGE)]);
    let failed = render(directory.path(), &["--engine", "argo", "."]).code(1);
    let said = stderr(&failed);
    assert!(said.contains("error[WL013]: there is no component `ona`"), "{said}");
    assert!(said.contains("error: files.yaml:7: files/one: a path needs its repository"), "{said}");
    assert!(!said.contains("it has errors"), "{said}");
    let source = ["--repo-url", "https://git.example.org/a", "--revision", COMMIT, "--chart-root", "."];
    let chart = directory.path().join("charts/one");
    fs::create_dir_all(&chart).unwrap();
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: one\nversion: 3.2.1\n").unwrap();
    let failed = render(directory.path(), &[&["--engine", "argo"], &source[..], &["."]].concat()).code(1);
    assert!(stderr(&failed).contains("WL013") && !stderr(&failed).contains("files/one"), "{}", stderr(&failed));
}

#[test]
fn a_namespace_that_nobody_names_is_said() {
    let directory = files(&[("app.yaml", PACKAGE)]);
    let note = "note: app names no namespace: `default` is written; -n NAMESPACE says another\n";
    for mode in ["managed", "native", "package"] {
        let said = |more: &[&str]| {
            stderr(
                &render(directory.path(), &[&["--engine", "flux", "--mode", mode, "app.yaml"], more].concat())
                    .success(),
            )
        };
        assert!(said(&[]).contains(note), "{mode}: {}", said(&[]));
        assert!(!said(&["-n", "apps"]).contains("no namespace"), "{mode}");
    }
    fs::write(directory.path().join("app.yaml"), PACKAGE.replace("  name: app", "  name: app\n  namespace: apps"))
        .unwrap();
    assert!(!stderr(&render(directory.path(), &["--engine", "flux", "app.yaml"]).success()).contains("no namespace"));
}

#[test]
fn no_package_is_an_error() {
    let directory = files(&[("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")]);
    let failed = render(directory.path(), &["--engine", "flux", "."]).code(1);
    assert!(stderr(&failed).starts_with("error[WL045]: there is no Package here"), "{}", stderr(&failed));
}

#[test]
fn what_is_not_there_is_an_error_of_reading() {
    let directory = files(&[]);
    let failed = render(directory.path(), &["--engine", "flux", "nothing.yaml"]).code(3);
    assert!(stderr(&failed).starts_with("error: cannot read nothing.yaml"), "{}", stderr(&failed));
}

#[test]
fn a_file_is_no_directory_to_write_into() {
    let directory = files(&[("app.yaml", PACKAGE), ("out", "")]);
    let failed = render(directory.path(), &["--engine", "flux", "-o", "out", "app.yaml"]).code(3);
    assert!(stderr(&failed).ends_with("error: cannot write into out: it is a file, and a directory is wanted\n"));
}

#[test]
fn repository_and_commit_go_together() {
    let directory = files(&[("app.yaml", PACKAGE)]);
    render(directory.path(), &["--engine", "argo", "--revision", COMMIT, "app.yaml"]).code(2);
    render(directory.path(), &["--engine", "argo", "--repo-url", "https://git.example.org/a", "app.yaml"]).code(2);
}

#[test]
fn a_revision_that_argo_cd_would_follow_is_told() {
    let chart = ("charts/one/Chart.yaml", "apiVersion: v2\nname: one\nversion: 3.2.1\n");
    let directory = files(&[("files.yaml", PATH_PACKAGE), ("app.yaml", PACKAGE), chart]);
    let notes = |revision: &str, file: &str, mode: &str| {
        let url = "https://git.example.org/a";
        let source = ["--engine", "argo", "--repo-url", url, "--revision", revision, "--chart-root", "."];
        stderr(&render(directory.path(), &[&source[..], &["--mode", mode, file]].concat()).success())
    };
    for mode in ["managed", "native", "package"] {
        let told = notes("main", "files.yaml", mode);
        assert!(told.contains("note: `main` is no full commit id: Argo CD follows"), "{mode}: {told}");
        assert!(told.contains("git rev-parse main"), "{mode}: {told}");
        assert!(!notes(COMMIT, "files.yaml", mode).contains("commit id"), "{mode}");
    }
    assert!(!notes("main", "app.yaml", "native").contains("commit id"), "it is used for nothing");
}

#[test]
fn paths_take_their_source_from_the_command_line() {
    let chart = ("charts/one/Chart.yaml", "apiVersion: v2\nname: one\nversion: 3.2.1\n");
    let directory = files(&[("app.yaml", PATH_PACKAGE), chart]);
    let flags = ["--engine", "argo", "--repo-url", "https://git.example.org/a", "--revision", COMMIT];
    let refused = render(directory.path(), &["--engine", "argo", "app.yaml"]).code(1);
    assert!(stderr(&refused).contains("--repo-url and --revision"), "{}", stderr(&refused));
    let unknown = render(directory.path(), &[&flags[..], &["app.yaml"]].concat()).code(1);
    assert!(stderr(&unknown).contains("neither its content nor its chartVersion is known"), "{}", stderr(&unknown));
    let known =
        render(directory.path(), &[&flags[..], &["--chart-root", ".", "--mode", "package", "app.yaml"]].concat());
    let text = stdout(&known.success());
    assert!(text.contains("chartVersion: \"3.2.1\""), "{text}");
    assert!(text.contains("contentDigest: sha256:"), "{text}");
    let missing = render(directory.path(), &[&flags[..], &["--chart-root", "charts", "app.yaml"]].concat()).code(1);
    assert!(stderr(&missing).contains("there is no chart at `charts/one`"), "{}", stderr(&missing));
}

#[test]
fn hooks_are_refused_in_native_mode_unless_they_are_to_be_left_out() {
    let directory = files(&[("app.yaml", &format!("{PACKAGE}{HOOK}"))]);
    let native = ["--engine", "flux", "--mode", "native", "app.yaml"];
    let refused = render(directory.path(), &native).code(1);
    assert_eq!(stdout(&refused), "");
    let left_out = render(directory.path(), &[&native[..], &["--skip-hooks"]].concat()).success();
    assert!(!stdout(&left_out).contains("migrate"));
    assert!(
        stderr(&left_out).starts_with("note: app/migrate: a hook needs the controller: it is left out\n"),
        "{}",
        stderr(&left_out)
    );
}

#[test]
fn the_same_input_gives_the_same_bytes_in_every_mode() {
    let directory = files(&[("app.yaml", PACKAGE)]);
    for mode in ["managed", "native", "package"] {
        for engine in ["flux", "argo"] {
            let bytes = || stdout(&render(directory.path(), &["--engine", engine, "--mode", mode, "."]).success());
            assert_eq!(bytes(), bytes());
        }
    }
}
