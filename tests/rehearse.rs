//! `windlass rehearse` as people and scripts use it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

#[path = "rehearse/commits.rs"]
mod commits;
mod common;
#[path = "rehearse/explore.rs"]
mod explore;
#[path = "rehearse/picture.rs"]
mod picture;
#[path = "rehearse/timeline.rs"]
mod timeline;
#[path = "rehearse/what_if.rs"]
mod what_if;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

use common::{root, text};

/// Runs `windlass rehearse` in the root of the tree, or beside some files.
fn rehearse(arguments: &[&str]) -> Output {
    common::windlass(["rehearse"].iter().chain(arguments).map(|argument| in_tree(argument)))
}

fn in_tree(argument: &str) -> String {
    if argument.starts_with("examples/") { root().join(argument).display().to_string() } else { argument.to_owned() }
}

fn json(arguments: &[&str]) -> Value {
    let output = rehearse(&[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
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

/// Packages before and after a commit.
struct States(TempDir);

impl States {
    fn new(old: &str, new: &str) -> Self {
        Self(files(&[("v1.yaml", old), ("v2.yaml", new)]))
    }

    /// The report of a rehearsal of the commit.
    fn play(&self, arguments: &[&str]) -> Value {
        let [old, new] = ["v1.yaml", "v2.yaml"].map(|name| self.0.path().join(name).display().to_string());
        json(&[&[new.as_str(), "--from", &old], arguments].concat())
    }
}

/// A Package of components, each of a chart named like it.
fn package(name: &str, version: &str, more: &str, components: &[(&str, &str)]) -> String {
    let mut text = format!(
        "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: {name}, namespace: packages}}\n\
         spec:\n  version: {version}\n{more}  components:\n"
    );
    for (component, install) in components {
        text.push_str(&format!(
            "  - name: {component}\n    chart: {{repository: https://charts.example.org, name: {component}, \
             version: {version}}}\n    install: {{namespace: apps{install}}}\n"
        ));
    }
    text
}

/// Events of a rehearsal, as `component event`.
fn events(report: &Value) -> Vec<String> {
    let events = report["events"].as_array().unwrap().iter();
    events.map(|event| format!("{} {}", text(event, "/component"), text(event, "/event")).trim().to_owned()).collect()
}

fn reason<'a>(report: &'a Value, package: &str) -> &'a str {
    let packages = report["packages"].as_array().unwrap();
    let found = packages.iter().find(|found| found["name"] == package);
    text(found.unwrap_or_else(|| panic!("there is no {package}: {report:#}")), "/reason")
}

#[rstest]
fn every_example_is_installed_and_upgraded(
    #[values("kubevirt", "database", "node-agent", "platform")] example: &str,
    #[values("flux", "argo")] engine: &str,
) {
    let (old, new) = (format!("examples/{example}/v1"), format!("examples/{example}/v2"));
    for arguments in [vec![old.as_str()], vec![&new], vec![&new, "--from", &old]] {
        let output = rehearse(&[&arguments[..], &["--engine", engine]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}:\n{}{}", stdout(&output), stderr(&output));
    }
}

#[rstest]
#[case::operator("an_operator_and_its_resource_are_upgraded", &["examples/kubevirt/v2", "--from", "examples/kubevirt/v1"], 0)]
#[case::packages("packages_wait_for_each_other", &["examples/platform/v2", "--from", "examples/platform/v1"], 0)]
#[case::rollback(
    "a_safe_upgrade_that_fails_goes_back_newest_first",
    &["examples/node-agent/v2", "--from", "examples/node-agent/v1", "--fail", "agent@workload", "--engine", "argo"],
    1
)]
#[case::chain("what_a_failure_holds_up_is_named", &["examples/platform/v2", "--from", "examples/platform/v1", "--fail", "ingress"], 1)]
fn a_rehearsal_reads_like_this(#[case] name: &str, #[case] arguments: &[&str], #[case] code: i32) {
    let output = rehearse(arguments);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    insta::assert_snapshot!(name, stdout(&output));
}

#[test]
fn an_unsafe_upgrade_that_fails_stays_as_it_is() {
    let report = json(&["examples/database/v2", "--from", "examples/database/v1", "--fail", "api"]);
    assert_eq!(reason(&report, "shop"), "UpgradeFailed");
    let events = events(&report);
    assert!(events.contains(&"migrate hookSucceeded".to_owned()), "{events:?}");
    assert!(!events.iter().any(|event| event.ends_with("goesBack")), "{events:?}");
    assert_eq!(report["packages"][0]["version"], "1.4.0");
    assert_eq!(report["summary"]["end"], "stopped");
}

#[test]
fn a_failed_hook_changes_nothing_else() {
    let report = json(&["examples/database/v2", "--from", "examples/database/v1", "--fail", "migrate@workload"]);
    assert_eq!(reason(&report, "shop"), "HookFailed");
    assert!(!events(&report).iter().any(|event| event.ends_with(" moves")), "{report:#}");
}

#[test]
fn a_rollback_can_fail_too() {
    let report = json(&[
        "examples/node-agent/v2",
        "--from",
        "examples/node-agent/v1",
        "--fail",
        "agent",
        "--fail",
        "collector@rollback",
    ]);
    assert_eq!(reason(&report, "node-agent"), "RollbackFailed");
}

#[rstest]
#[case::flux("flux", "SourceNotFound", 0)]
#[case::argo("argo", "UpgradeFailed", 1)]
fn a_chart_that_is_not_there_is_found_beforehand_on_flux(
    #[case] engine: &str,
    #[case] expected: &str,
    #[case] moved: usize,
) {
    let arguments = ["examples/kubevirt/v2", "--from", "examples/kubevirt/v1", "--fail", "kubevirt@chart"];
    let report = json(&[&arguments[..], &["--engine", engine]].concat());
    assert_eq!(reason(&report, "kubevirt"), expected);
    let moves = events(&report).iter().filter(|event| *event == "operator moves").count();
    assert_eq!(moves, moved, "{report:#}");
}

const RESOURCE: &str = ", dependsOn: [operator], readyWhen: [{apiVersion: example.org/v1, kind: Thing, name: thing, \
    expr: \"object.status.version == version\", failed: \"object.status.phase == 'Failed'\"}]";

#[test]
fn a_resource_that_reports_failure_fails_at_once() {
    let components = [("operator", ""), ("resource", RESOURCE)];
    let states = files(&[
        ("v1.yaml", &package("app", "1.0.0", "", &components)),
        ("v2.yaml", &package("app", "2.0.0", "", &components)),
    ]);
    let [old, new] = ["v1.yaml", "v2.yaml"].map(|name| states.path().join(name).display().to_string());
    let report = json(&[&new, "--from", &old, "--fail", "resource@ready"]);
    assert_eq!(reason(&report, "app"), "UpgradeFailed");
    let message = text(&report, "/packages/0/message");
    assert!(message.contains("`object.status.phase == 'Failed'` is true"), "{message}");
    assert!(report["summary"]["took"].as_u64() < Some(60_000), "{report:#}");
}

#[test]
fn what_becomes_ready_after_its_timeout_goes_on() {
    let arguments = ["examples/database/v2", "--from", "examples/database/v1", "--slow", "api=20m"];
    let report = json(&arguments);
    assert_eq!(report["summary"]["end"], "ready");
    let events = events(&report);
    assert!(events.contains(&"goesOn".to_owned()), "{events:?}");
}

#[test]
fn a_condition_that_stays_true_counts_only_once_it_has_settled() {
    let ready = ", dependsOn: [operator], readyWhen: [{apiVersion: example.org/v1, kind: Thing, name: thing, \
        condition: Available}]";
    let old = package("app", "1.0.0", "", &[("operator", ""), ("resource", ready)]);
    // Only the operator moves.
    let new = old.replace("version: 1.0.0\n", "version: 2.0.0\n").replacen("version: 1.0.0}", "version: 2.0.0}", 1);
    let states = files(&[("v1.yaml", &old), ("v2.yaml", &new)]);
    let [old, new] = ["v1.yaml", "v2.yaml"].map(|name| states.path().join(name).display().to_string());
    let report = json(&[&new, "--from", &old]);
    assert_eq!(report["summary"]["end"], "ready");
    let is_it = |event: &&Value| event["event"] == "verified" && event["component"] == "resource";
    let verified = report["events"].as_array().unwrap().iter().find(is_it).unwrap();
    // Since when a condition holds is recorded to the second.
    assert!(verified["took"].as_u64() >= Some(59_000), "{report:#}");
}

#[test]
fn what_waits_for_something_outside_is_said_and_is_no_success() {
    let requires = "  requires: [{package: cert-manager, version: '>=1.14'}]\n";
    let set = files(&[("app.yaml", &package("app", "1.0.0", requires, &[("one", "")]))]);
    let output = rehearse(&[set.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout(&output);
    assert!(shown.contains("package cert-manager is required and does not exist"), "{shown}");
    assert!(shown.contains("waits for Package cert-manager (not among the given Packages)"), "{shown}");
}

/// Each of them knows its own version, also of an object that both look at.
#[test]
fn an_object_that_two_packages_wait_for_satisfies_both() {
    let ready = |field: &str| {
        format!(
            ", readyWhen: [{{apiVersion: example.org/v1, kind: Thing, name: shared, expr: object.status.{field} == version}}]"
        )
    };
    let set = |versions: [&str; 2]| {
        let one = package("one", versions[0], "", &[("a", &ready("one"))]);
        let two = package("two", versions[1], "", &[("b", &ready("two"))]);
        files(&[("one.yaml", &one), ("two.yaml", &two)])
    };
    let (before, after) = (set(["1.0.0", "2.0.0"]), set(["1.1.0", "2.1.0"]));
    let [before, after] = [&before, &after].map(|set| set.path().to_str().unwrap());
    for engine in ["flux", "argo"] {
        let output = rehearse(&[after, "--from", before, "--engine", engine]);
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    }
}

#[test]
fn a_ready_when_that_cannot_be_played_is_said() {
    let ready = ", readyWhen: [{apiVersion: example.org/v1, kind: Thing, name: thing, \
        expr: \"object.status.a * 2 == object.status.b * 3\"}]";
    let set = files(&[("app.yaml", &package("app", "1.0.0", "", &[("one", ready)]))]);
    let output = rehearse(&[set.path().to_str().unwrap()]);
    let shown = stdout(&output);
    assert!(
        shown.contains(
            "note: app/one: readyWhen[0], Thing/thing: not checked, since nothing on the stage can make it hold"
        ),
        "{shown}"
    );
}

/// What is in neither spec nor status is made by nobody on the stage.
#[rstest]
#[case::data("v1", "Secret", "has(object.data.key)")]
#[case::label("example.org/v1", "Thing", "object.metadata.labels.ready == 'yes'")]
fn a_ready_when_of_other_fields_fails_nothing(#[case] api: &str, #[case] kind: &str, #[case] expr: &str) {
    let ready = format!(", readyWhen: [{{apiVersion: {api}, kind: {kind}, name: thing, expr: \"{expr}\"}}]");
    let set = files(&[("app.yaml", &package("app", "1.0.0", "", &[("one", &ready)]))]);
    let output = rehearse(&[set.path().to_str().unwrap()]);
    let (shown, note) =
        (stdout(&output), format!("{kind}/thing: not checked, since nothing on the stage can make it hold"));
    assert!(output.status.code() == Some(0) && shown.contains(&note), "{shown}");
}

#[test]
fn a_failure_that_had_no_occasion_is_said() {
    let output = rehearse(&["examples/database/v2", "--from", "examples/database/v1", "--fail", "database"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stdout(&output).contains("note: shop/database: it did not come to what was to fail"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn what_is_no_longer_in_git_is_uninstalled() {
    let app = package("app", "1.0.0", "  requires: [{package: base}]\n", &[("one", ""), ("two", ", dependsOn: [one]")]);
    let base = package("base", "1.0.0", "", &[("base", "")]);
    let states = files(&[("v1.yaml", &(app + &base)), ("v2.yaml", &package("other", "1.0.0", "", &[("other", "")]))]);
    let [old, new] = ["v1.yaml", "v2.yaml"].map(|name| states.path().join(name).display().to_string());
    let report = json(&[&new, "--from", &old]);
    assert_eq!(report["summary"]["end"], "ready", "{report:#}");
    let gone: Vec<&str> = report["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["event"] == "uninstalled")
        .map(|event| text(event, "/component"))
        .collect();
    assert_eq!(gone, ["two", "one", "base"]);
    assert_eq!(report["packages"].as_array().unwrap().len(), 1);
}

#[rstest]
fn wherever_the_controller_is_killed_the_end_is_the_same(#[values("flux", "argo")] engine: &str) {
    let arguments = ["examples/database/v2", "--from", "examples/database/v1", "--engine", engine];
    let whole = json(&arguments);
    let steps = whole["summary"]["steps"].as_u64().unwrap();
    for step in (1..=steps).step_by(4) {
        let report = json(&[&arguments[..], &["--restart-at", &step.to_string()]].concat());
        assert!(events(&report).contains(&"restarted".to_owned()), "{step}");
        assert_eq!(report["summary"]["end"], "ready", "{step}: {report:#}");
        let runs = events(&report).iter().filter(|event| *event == "migrate hookRuns").count();
        assert_eq!(runs, 1, "{step}: {report:#}");
    }
    let late = json(&[&arguments[..], &["--restart-at", "100000"]].concat());
    assert!(text(&late, "/notes/0").contains("was not killed"), "{late:#}");
}

#[rstest]
#[case::component(&["--fail", "apii"], "there is no component `apii`: did you mean `api`?")]
#[case::step(&["--fail", "api@start"], "no step `start`: chart, release, workload, ready, rollback, canary or late")]
#[case::no_ready_when(&["--fail", "api@ready"], "shop/api has no readyWhen that could fail")]
#[case::hook(&["--fail", "migrate@rollback"], "shop/migrate is a hook: it is not rolled back")]
#[case::nothing_before(&["--fail", "api@rollback"], "say with --from what runs before")]
#[case::slow(&["--slow", "api"], "say COMPONENT=DURATION")]
#[case::duration(&["--slow", "api=soon"], "--slow api=soon: ")]
#[case::too_slow(&["--slow", "api=24h1s"], "--slow api=24h1s: at most 24h are played")]
#[case::restart(&["--restart-at", "0"], "0 is not in 1..")]
fn arguments_that_make_no_sense_are_refused(#[case] arguments: &[&str], #[case] message: &str) {
    let output = rehearse(&[&["examples/database/v2"], arguments].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
}

#[test]
fn a_component_name_of_two_packages_needs_its_package() {
    let set =
        package("a", "1.0.0", "", &[("web", "")]) + &package("b", "1.0.0", "", &[("web", ", releaseName: other")]);
    let set = files(&[("set.yaml", &set)]);
    let path = set.path().to_str().unwrap();
    let output = rehearse(&[path, "--fail", "web"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`web` is ambiguous: say a/web or b/web"), "{}", stderr(&output));
    let report = json(&[path, "--fail", "b/web"]);
    assert_eq!((reason(&report, "a"), reason(&report, "b")), ("Ready", "InstallFailed"));
}

#[test]
fn errors_are_shown_as_validate_shows_them() {
    let bad = package("app", "1.0.0", "", &[("one", ", dependsOn: [two]")]);
    let set = files(&[("app.yaml", &bad)]);
    let path = set.path().to_str().unwrap();
    let validated = common::windlass(["validate", path]);
    for arguments in [vec![path], vec!["examples/database/v1", "--from", path]] {
        let output = rehearse(&arguments);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stderr(&output), stdout(&validated));
        assert_eq!(stdout(&output), "");
    }
    assert_eq!(rehearse(&["no/such/path"]).status.code(), Some(3));
}

#[test]
fn what_the_engine_needs_is_asked_for_with_its_place() {
    let from_path = package("app", "1.0.0", "", &[("one", "")]).replace("chart: {", "path: p # {");
    let set = files(&[("app.yaml", &from_path)]);
    let path = set.path().to_str().unwrap();
    let output = rehearse(&[path]);
    assert_eq!(output.status.code(), Some(1));
    let place = format!("error[WL028]: component `one` has a path but no chartVersion\n --> {path}/app.yaml:9:11\n");
    assert!(stderr(&output).starts_with(&place), "{}", stderr(&output));
}

#[test]
fn standard_input_is_read_once() {
    let output = rehearse(&["-", "--from", "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("standard input can be read only once"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let script = format!(
        "set -o pipefail; {} rehearse {} | head -n 1 >/dev/null",
        env!("CARGO_BIN_EXE_windlass"),
        root().join("examples/platform/v2").display()
    );
    assert!(Command::new("bash").args(["-c", &script]).status().unwrap().success());
}

#[test]
fn colours_are_for_terminals() {
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["rehearse", &in_tree("examples/database/v2")])
        .env_remove("NO_COLOR")
        .output()
        .unwrap();
    assert!(!stdout(&output).contains('\u{1b}'), "{}", stdout(&output));
}

/// Whatever a program reads is in the table of the documentation.
#[test]
fn events_and_their_fields_are_documented() {
    let plays: [&[&str]; 4] = [
        &["examples/platform/v2", "--from", "examples/platform/v1", "--fail", "ingress", "--restart-at", "9"],
        &["examples/database/v2", "--from", "examples/database/v1", "--fail", "migrate"],
        &["examples/node-agent/v2", "--from", "examples/node-agent/v1", "--fail", "agent"],
        &["examples/kubevirt/v2", "--from", "examples/kubevirt/v1", "--slow", "kubevirt=40m"],
    ];
    let documented = fs::read_to_string(root().join("docs/rehearse.md")).unwrap();
    let mut names = BTreeSet::new();
    for play in plays {
        let report = json(play);
        names.extend(report.as_object().unwrap().keys().cloned());
        for part in ["events", "packages"] {
            for item in report[part].as_array().unwrap() {
                names.extend(item.as_object().unwrap().keys().cloned());
                names.extend(item["event"].as_str().map(str::to_owned));
            }
        }
    }
    assert!(names.len() > 30, "{names:?}");
    let missing: Vec<&String> = names.iter().filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/rehearse.md does not explain {missing:?}");
}

/// A repository with one version of a Package committed, and another one in its files.
fn repository() -> TempDir {
    let directory = files(&[("packages/shop.yaml", &package("shop", "1.0.0", "", &[("api", "")]))]);
    let git = git2::Repository::init(directory.path()).unwrap();
    let mut index = git.index().unwrap();
    index.add_path(std::path::Path::new("packages/shop.yaml")).unwrap();
    let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
    let author = git2::Signature::now("Test", "test@windlass.dev").unwrap();
    git.commit(Some("refs/heads/v1"), &author, &author, "Change", &tree, &[]).unwrap();
    std::fs::write(directory.path().join("packages/shop.yaml"), package("shop", "1.1.0", "", &[("api", "")])).unwrap();
    directory
}

#[test]
fn what_runs_before_may_be_a_revision() {
    let directory = repository();
    let packages = directory.path().join("packages");
    let (path, file) = (packages.display().to_string(), packages.join("shop.yaml").display().to_string());
    for arguments in [[&path, "v1"], [&file, "v1"], [&path, "v1:packages"], [&path, "v1:packages/shop.yaml"]] {
        let output = rehearse(&[arguments[0], "--from", arguments[1]]);
        assert!(stdout(&output).contains("upgraded from 1.0.0 to 1.1.0"), "{arguments:?}: {}", stderr(&output));
    }
    let elsewhere = files(&[("shop.yaml", &package("shop", "1.1.0", "", &[("api", "")]))]);
    let elsewhere = elsewhere.path().display().to_string();
    let new = files(&[]);
    std::fs::create_dir(directory.path().join("new")).unwrap();
    let new = new.path().join("gone").display().to_string();
    let inside = directory.path().join("new").display().to_string();
    for (arguments, message) in [
        ([&path, "v9"], "`v9` is neither a directory nor a revision of the Git repository at"),
        ([&path, new.as_str()], "is neither a directory nor a revision"),
        ([&path, "v9:packages"], "`v9` is neither a directory nor a revision"),
        ([&inside, "v1"], "`new` is not in v1: say REV:PATH"),
        ([&elsewhere, "v1"], "`v1` is no file or directory, and no revision either"),
        ([&path, "v1:../x"], "leads out of the repository"),
    ] {
        let output = rehearse(&[arguments[0], "--from", arguments[1]]);
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
    }
}

#[test]
fn what_runs_before_is_refused_where_it_is_a_file_and_a_revision() {
    let directory = repository();
    std::fs::write(directory.path().join("v1"), package("shop", "1.0.5", "", &[("api", "")])).unwrap();
    let rehearse = |from: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.current_dir(directory.path()).args(["rehearse", "packages", "--from", from]).output().unwrap()
    };
    let output = rehearse("v1");
    let said = "`v1` is a file and a revision of the Git repository: write `./v1` for the file, or `refs/heads/v1`";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&rehearse("./v1")).contains("upgraded from 1.0.5 to 1.1.0"));
    assert!(stdout(&rehearse("refs/heads/v1")).contains("upgraded from 1.0.0 to 1.1.0"));
}

#[test]
fn errors_in_a_revision_are_named_with_it() {
    let directory = repository();
    let git = git2::Repository::open(directory.path()).unwrap();
    let broken = git.blob(package("shop", "1.0.0", "  suspnd: true\n", &[("api", "")]).as_bytes()).unwrap();
    let mut packages = git.treebuilder(None).unwrap();
    packages.insert("shop.yaml", broken, 0o100_644).unwrap();
    let mut top = git.treebuilder(None).unwrap();
    top.insert("packages", packages.write().unwrap(), 0o040_000).unwrap();
    let tree = git.find_tree(top.write().unwrap()).unwrap();
    let author = git2::Signature::now("Test", "test@windlass.dev").unwrap();
    git.commit(Some("refs/heads/broken"), &author, &author, "Change", &tree, &[]).unwrap();
    let output = rehearse(&[&directory.path().join("packages").display().to_string(), "--from", "broken"]);
    assert!(stderr(&output).contains("broken:packages/shop.yaml:"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

/// Helm refuses a second release with the objects of the first.
#[test]
fn a_component_under_a_new_name_beside_its_own_chart_is_told() {
    let text = |component: &str, version: &str, more: &str| {
        format!(
            "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: app, namespace: apps}}\nspec:\n  \
             version: {version}\n  components:\n  - name: {component}\n    chart: {{repository: https://charts.example.org, \
             name: operator, version: {version}}}\n    install: {{{more}}}\n"
        )
    };
    let before = files(&[("app.yaml", &text("operator", "1.0.0", ""))]);
    let told = |more: &str| {
        let after = files(&[("app.yaml", &text("the-operator", "1.1.0", more))]);
        let arguments = [after.path().to_str().unwrap(), "--from", before.path().to_str().unwrap()];
        stdout(&rehearse(&arguments)).to_owned()
    };
    let shown = told("");
    assert!(shown.contains("write `install.releaseName: operator`"), "{shown}");
    let shown = told("releaseName: operator");
    assert!(!shown.contains("releaseName"), "{shown}");
}
