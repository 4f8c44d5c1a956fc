//! `--explore`: what every failure and every restart leads to.

use std::collections::BTreeSet;

use clap::Parser as _;
use rstest::rstest;
use serde_json::{Value, json};
use windlass::cli::{Arguments, Streams, run};

use super::{common::text, events, files, json, package, reason, rehearse, stderr, stdout};

fn explore(arguments: &[&str]) -> Value {
    json(&[arguments, &["--explore"]].concat())
}

fn example(name: &str) -> [String; 3] {
    [format!("examples/{name}/v2"), "--from".to_owned(), format!("examples/{name}/v1")]
}

/// The outcome that the failure of a component at a step leads to.
fn outcome<'a>(found: &'a Value, component: &str, step: &str) -> &'a Value {
    let is_it = |case: &Value| {
        case.as_array().unwrap().len() == 1 && case[0]["component"] == component && case[0]["step"] == step
    };
    let groups = found["failures"].as_array().unwrap();
    let group = groups.iter().find(|group| group["cases"].as_array().unwrap().iter().any(is_it));
    &group.unwrap_or_else(|| panic!("{component}@{step} was not tried: {found:#}"))["outcome"]
}

/// `name version` of what runs.
fn runs(outcome: &Value) -> Vec<String> {
    let components = outcome["packages"][0]["components"].as_array().unwrap().iter();
    components.map(|component| format!("{} {}", text(component, "/name"), text(component, "/runs/0/version"))).collect()
}

#[test]
fn a_failure_is_told_with_the_versions_that_then_run() {
    let [new, from, old] = example("kubevirt");
    let found = explore(&[&new, &from, &old]);
    let stands = |step: &str| {
        let outcome = outcome(&found, "kubevirt", step);
        (text(outcome, "/packages/0/reason").to_owned(), runs(outcome))
    };
    let old = |reason: &str, operator: &str| {
        (reason.to_owned(), vec![format!("operator {operator}"), "kubevirt 1.8.2".to_owned()])
    };
    assert_eq!(stands("release"), old("UpgradeFailed", "1.9.0"));
    assert_eq!(stands("chart"), old("SourceNotFound", "1.8.2"));
    let (reason, runs) = stands("ready");
    assert_eq!((reason.as_str(), runs.join(", ").as_str()), ("UpgradeFailed", "operator 1.9.0, kubevirt 1.9.0"));
    assert_eq!(found["outcome"]["end"], "ready");
}

/// What is written to standard error, on a terminal and in a pipe.
#[rstest]
#[case::terminal(true)]
#[case::pipe(false)]
fn how_far_it_is_is_shown_on_a_terminal_alone(#[case] live_stderr: bool) {
    let old = files(&[("p.yaml", &package("one", "1.0.0", "", &[("a", "")]))]);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let path = old.path().to_str().unwrap();
    let arguments = Arguments::try_parse_from(["windlass", "rehearse", path, "--explore"]).unwrap();
    let mut streams = Streams {
        stdin: &mut std::io::empty(),
        stdout: &mut stdout,
        stderr: &mut stderr,
        color_stdout: false,
        color_stderr: false,
        live_stderr,
    };
    run(arguments, &mut streams).unwrap();
    let said = String::from_utf8(stderr).unwrap();
    let lines: Vec<&str> = said.split("\r\u{1b}[K").collect();
    if live_stderr {
        assert!(
            lines[1].starts_with("restart 1 of ") && lines.iter().any(|line| line.starts_with("failure 1 of ")),
            "{said:?}"
        );
        assert!(said.ends_with("\r\u{1b}[K"), "{said:?}");
    } else {
        assert_eq!(said, "");
    }
    assert!(!stdout.is_empty());
}

#[test]
fn a_hook_that_fails_moves_nothing() {
    let [new, from, old] = example("database");
    let found = explore(&[&new, &from, &old]);
    for step in ["release", "workload"] {
        let outcome = outcome(&found, "migrate", step);
        assert_eq!(text(outcome, "/packages/0/reason"), "HookFailed");
        assert_eq!(outcome["packages"][0]["moved"], false);
        assert_eq!(runs(outcome), ["database 16.4.0", "api 1.4.0"]);
    }
    assert_eq!(outcome(&found, "api", "release")["packages"][0]["hooks"], json!({"migrate": 1}));
}

#[test]
fn where_all_goes_back_that_can_fail_too() {
    let [new, from, old] = example("node-agent");
    let found = explore(&[&new, &from, &old]);
    assert_eq!(runs(outcome(&found, "agent", "release")), ["collector 0.9.0", "agent 0.9.0"]);
    let groups = found["failures"].as_array().unwrap().iter();
    let failed: Vec<&Value> =
        groups.filter(|group| text(group, "/outcome/packages/0/reason") == "RollbackFailed").collect();
    let cases = failed.iter().flat_map(|group| group["cases"].as_array().unwrap());
    assert!(cases.clone().count() > 0 && cases.clone().all(|case| case[1]["step"] == "rollback"), "{failed:#?}");
    // One node has the new template, and it crashes there.
    let canary = outcome(&found, "agent", "canary");
    assert_eq!(text(canary, "/packages/0/reason"), "UpgradeRolledBack");
}

#[rstest]
fn a_restart_after_any_step_comes_to_the_same(
    #[values("kubevirt", "database", "node-agent", "platform")] name: &str,
    #[values("flux", "argo")] engine: &str,
) {
    let [new, from, old] = example(name);
    let found = explore(&[&new, &from, &old, "--engine", engine]);
    let plain = json(&[&new, &from, &old, "--engine", engine]);
    let restarts = &found["restarts"];
    assert_eq!(restarts["others"], json!([]));
    assert_eq!((&restarts["steps"], &restarts["tried"]), (&plain["summary"]["steps"], &plain["summary"]["steps"]));
}

/// What is explored is what `--fail` plays.
#[rstest]
fn every_failure_is_tried_once_and_each_outcome_told_once(#[values("database", "node-agent", "platform")] name: &str) {
    let [new, from, old] = example(name);
    let found = explore(&[&new, &from, &old]);
    let (mut tried, mut outcomes) = (BTreeSet::new(), BTreeSet::new());
    for group in found["failures"].as_array().unwrap() {
        let outcome = &group["outcome"];
        let told = format!("{}{}", outcome["end"], outcome["packages"]);
        assert!(outcomes.insert(told), "twice: {outcome:#}");
        for (position, case) in group["cases"].as_array().unwrap().iter().enumerate() {
            assert!(tried.insert(case.to_string()), "twice: {case}");
            if position > 0 {
                continue;
            }
            let failures: Vec<String> = case
                .as_array()
                .unwrap()
                .iter()
                .map(|failure| {
                    format!("{}/{}@{}", text(failure, "/package"), text(failure, "/component"), text(failure, "/step"))
                })
                .collect();
            let fail: Vec<&str> = failures.iter().flat_map(|failure| ["--fail", failure]).collect();
            let played = json(&[&[new.as_str(), &from, &old][..], &fail].concat());
            assert_eq!(played["summary"]["end"], outcome["end"], "{failures:?}");
            for package in outcome["packages"].as_array().unwrap() {
                assert_eq!(reason(&played, text(package, "/name")), text(package, "/reason"), "{failures:?}");
            }
            assert!(!events(&played).is_empty());
        }
    }
    assert!(tried.len() > 3, "{tried:?}");
}

#[rstest]
#[case::operator("an_operator_and_its_resource_explored", "kubevirt")]
#[case::hook("a_migration_explored", "database")]
#[case::packages("packages_that_wait_for_each_other_explored", "platform")]
#[case::canary("a_canary_explored", "node-agent")]
fn an_exploration_reads_like_this(#[case] snapshot: &str, #[case] name: &str) {
    let [new, from, old] = example(name);
    let output = rehearse(&[&new, &from, &old, "--explore"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    insta::assert_snapshot!(snapshot, stdout(&output));
}

#[test]
fn what_is_not_ready_even_if_nothing_fails_is_a_finding() {
    let requires = "  requires: [{package: elsewhere}]\n";
    let set = files(&[("app.yaml", &package("app", "1.0.0", requires, &[("one", "")]))]);
    let output = rehearse(&[set.path().to_str().unwrap(), "--explore"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("app waits at RequirementsNotMet"), "{}", stdout(&output));
}

#[test]
fn what_ran_before_must_run() {
    let bad =
        ", readyWhen: [{apiVersion: example.org/v1, kind: Thing, name: thing, condition: Ready}], phase: PreUpgrade";
    let old = package("app", "1.0.0", "  requires: [{package: elsewhere}]\n", &[("one", "")]);
    let set = files(&[("v1.yaml", &old), ("v2.yaml", &package("app", "2.0.0", "", &[("one", ""), ("two", bad)]))]);
    let [old, new] = ["v1.yaml", "v2.yaml"].map(|name| set.path().join(name).display().to_string());
    let output = rehearse(&[&new, "--from", &old, "--explore"]);
    assert_eq!(output.status.code(), Some(1));
    let found = explore(&[&new, "--from", &old]);
    assert_eq!((&found["outcome"]["end"], &found["failures"]), (&json!("notBegun"), &json!([])));
}

#[rstest]
#[case::fail(&["--fail", "api"])]
#[case::restart(&["--restart-at", "3"])]
fn single_mishaps_and_all_of_them_do_not_go_together(#[case] arguments: &[&str]) {
    let output = rehearse(&[&["examples/database/v2", "--explore"], arguments].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}

#[test]
fn fields_are_documented() {
    let documented = std::fs::read_to_string(super::root().join("docs/rehearse.md")).unwrap();
    let [new, from, old] = example("node-agent");
    let mut names = BTreeSet::new();
    keys(&explore(&[&new, &from, &old]), &mut names);
    let missing: Vec<&String> = names.iter().filter(|name| !documented.contains(&format!("`{name}`"))).collect();
    assert!(names.len() > 15 && missing.is_empty(), "docs/rehearse.md does not explain {missing:?}");
}

fn keys(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                names.insert(key.clone());
                keys(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, names)),
        _ => {}
    }
}
