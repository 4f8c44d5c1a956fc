//! What is asked to fail fails, in the state that is committed only, or it is said
//! that it did not.

use rstest::rstest;
use serde_json::Value;

use crate::{RESOURCE, States, events, package, reason};

const SAFE: &str = "  rollback: {safe: true}\n";

/// Gives the component at the end other values.
fn with_values(package: &str, values: &str) -> String {
    format!("{package}    values: {values}\n")
}

fn notes(report: &Value) -> String {
    report["notes"].to_string()
}

#[rstest]
#[case::refused("flux", "a")]
#[case::never_ready("flux", "a@workload")]
#[case::refused_on_argo("argo", "a")]
fn other_values_go_back_with_the_rest(#[case] engine: &str, #[case] fails: &str) {
    let components = [("op", ""), ("a", ", dependsOn: [op]")];
    let old = with_values(&package("app", "1.0.0", "", &components), "{x: 1}");
    let new = with_values(&package("app", "2.0.0", SAFE, &components), "{x: 2}");
    let report = States::new(&old, &new).play(&["--fail", fails, "--engine", engine]);
    assert_eq!(reason(&report, "app"), "UpgradeRolledBack", "{report:#}");
}

#[test]
fn a_chart_that_is_gone_is_there_for_the_way_back_of_its_values() {
    let old = with_values(&package("app", "1.0.0", SAFE, &[("a", "")]), "{x: 1}");
    let new = with_values(&package("app", "1.0.0", SAFE, &[("a", "")]), "{x: 2}");
    let report = States::new(&old, &new).play(&["--fail", "a@chart", "--engine", "argo"]);
    assert_eq!(reason(&report, "app"), "UpgradeRolledBack", "{report:#}");
}

#[rstest]
#[case::failure_alone("object.status.v == version")]
#[case::phase_too("object.status.v == version && object.status.phase == 'Deployed'")]
fn a_failure_that_is_told_is_taken_back_with_the_version(#[case] expression: &str) {
    let ready = RESOURCE.replace("object.status.version == version", expression);
    let components = [("operator", ""), ("resource", ready.as_str())];
    let [old, new] = ["1.0.0", "2.0.0"].map(|version| package("app", version, SAFE, &components));
    let report = States::new(&old, &new).play(&["--fail", "resource@ready"]);
    assert_eq!(reason(&report, "app"), "UpgradeRolledBack", "{report:#}");
}

#[rstest]
#[case::condition("condition: Available")]
#[case::expression("expr: \"object.status.phase == 'Up'\"")]
fn what_never_holds_does_not_hold_because_it_did_before(
    #[case] test: &str,
    #[values("flux", "argo")] engine: &str,
    #[values("1.0.0}", "2.0.0}")] resource: &str,
) {
    let ready = format!(
        ", dependsOn: [operator], readyWhen: [{{apiVersion: example.org/v1, kind: Thing, name: thing, {test}}}]"
    );
    let components = [("operator", ""), ("resource", ready.as_str())];
    let old = package("app", "1.0.0", "", &components);
    let new = old.replace("version: 1.0.0\n", "version: 2.0.0\n").replacen("1.0.0}", "2.0.0}", 1);
    let new = new.replacen("version: 1.0.0}", &format!("version: {resource}"), 1);
    let report = States::new(&old, &new).play(&["--fail", "resource@ready", "--engine", engine]);
    assert_eq!(reason(&report, "app"), "UpgradeFailed", "{report:#}");
    assert!(!events(&report).contains(&"resource verified".to_owned()), "{report:#}");
    assert_eq!(notes(&report), "[]");
}

const IDLE: &str = "app/b: it did not come to what was to fail";
const WELL: &str = "app/b: what was to fail went well: nothing new was done that could fail there";

#[rstest]
#[case::unmoved("1.0.0", "", "b@chart", IDLE)]
#[case::values_alone("1.0.0", "    values: {x: 1}\n", "b@chart", WELL)]
#[case::no_node("2.0.0", "    canary: {soak: 5s}\n", "b@late", WELL)]
fn a_failure_that_did_not_come_to_pass_is_said(
    #[case] version: &str,
    #[case] more: &str,
    #[case] fails: &str,
    #[case] note: &str,
) {
    let old = package("app", "1.0.0", "", &[("a", ""), ("b", "")]);
    let new = package("app", "2.0.0", "", &[("a", ""), ("b", "")]);
    let new = new.replace("name: b, version: 2.0.0", &format!("name: b, version: {version}")) + more;
    let report = States::new(&old, &new).play(&["--fail", fails, "--nodes", "0"]);
    assert_eq!(reason(&report, "app"), "Ready", "{report:#}");
    assert!(notes(&report).contains(note), "{report:#}");
}

#[test]
fn a_failure_is_looked_for_in_its_own_package() {
    let other = package("app", "1.0.0", "", &[("b", ", releaseName: other")]);
    let [old, new] = ["1.0.0", "2.0.0"].map(|version| package("moves", version, "", &[("b", "")]) + &other);
    let report = States::new(&old, &new).play(&["--fail", "app/b"]);
    assert!(notes(&report).contains(IDLE), "{report:#}");
}

#[test]
fn a_way_back_that_was_to_fail_and_did_not_is_said() {
    let [old, new] = ["1.0.0", "2.0.0"].map(|version| package("app", version, SAFE, &[("b", "")]));
    // Its upgrade is refused: there is nothing to bring back.
    let report = States::new(&old, &new).play(&["--fail", "b", "--fail", "b@rollback"]);
    assert_eq!(reason(&report, "app"), "UpgradeRolledBack", "{report:#}");
    assert!(notes(&report).contains(WELL), "{report:#}");
}
