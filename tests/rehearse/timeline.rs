//! The timeline tells what happened in the order in which it happened.

use rstest::rstest;
use serde_json::Value;

use crate::{States, events, json, package, stderr, stdout, text};

const SAFE: &str = "  rollback: {safe: true}\n";

fn position(events: &[String], event: &str) -> usize {
    events.iter().position(|found| found == event).unwrap_or_else(|| panic!("no `{event}` in {events:#?}"))
}

#[rstest]
fn a_hand_over_is_no_uninstall(#[values("flux", "argo")] engine: &str) {
    let old = package("app", "1.0.0", "", &[("a", "")]);
    let new = package("app", "2.0.0", "", &[("b", ", releaseName: a")]).replace("name: b, version", "name: a, version");
    let report = States::new(&old, &new).play(&["--engine", engine]);
    let events = events(&report);
    position(&events, "a handsOver");
    assert!(!events.iter().any(|event| event.contains("ninstall")), "{events:#?}");
}

#[rstest]
fn what_does_not_move_is_looked_at_again_after_what_it_depends_on(#[values("flux", "argo")] engine: &str) {
    let components = [("z", ", dependsOn: [a, b]"), ("a", ""), ("b", "")];
    let [old, new] = ["1.0.0", "2.0.0"].map(|version| package("app", version, "", &components));
    let new = new.replace("name: z, version: 2.0.0", "name: z, version: 1.0.0");
    let events = events(&States::new(&old, &new).play(&["--engine", engine]));
    let again = position(&events, "z verifiedAgain");
    assert!(["a verified", "b verified"].iter().all(|before| position(&events, before) < again), "{events:#?}");
    assert!(again < position(&events, "z verified"), "{events:#?}");
}

#[test]
fn the_way_back_begins_with_its_reason_and_ends_with_what_came_first() {
    let old = package("app", "1.0.0", SAFE, &[("a", "")]);
    let new = package("app", "2.0.0", SAFE, &[("a", ""), ("new", ", dependsOn: [a]"), ("last", ", dependsOn: [new]")]);
    let report = States::new(&old, &new).play(&["--fail", "last@workload"]);
    let all = report["events"].as_array().unwrap();
    let back = all.iter().position(|event| event["reason"] == "RollingBack").unwrap();
    let events = events(&report);
    let order = ["last uninstalls", "last uninstalled", "new uninstalls", "new uninstalled", "a goesBack"];
    let order: Vec<usize> = order.iter().map(|event| position(&events, event)).collect();
    assert!(back < order[0] && order.is_sorted(), "{events:#?}");
}

#[rstest]
#[case::upgrade(&[])]
#[case::failure(&["--fail", "migrate"])]
fn what_it_took_is_the_time_from_its_beginning(#[case] more: &[&str], #[values("flux", "argo")] engine: &str) {
    let arguments = ["examples/database/v2", "--from", "examples/database/v1", "--engine", engine];
    let report = json(&[&arguments, more].concat());
    let hook = |event: &&Value| event["component"] == "migrate" && text(event, "/event").starts_with("hook");
    let hook: Vec<&Value> = report["events"].as_array().unwrap().iter().filter(hook).collect();
    let at = |event: &Value| event["at"].as_u64().unwrap();
    assert_eq!(at(hook[1]) - at(hook[0]), hook[1]["took"].as_u64().unwrap(), "{report:#}");
}

#[test]
fn packages_of_one_name_are_told_apart() {
    let one = package("app", "1.0.0", "", &[("web", "")]);
    let other = one.replace("namespace: packages", "namespace: others").replace("{namespace: apps", "{namespace: more");
    let states = States::new("", &(one + &other));
    let set = states.0.path().join("v2.yaml").display().to_string();
    let output = crate::rehearse(&[&set, "--fail", "app/web"]);
    let message = "`app/web` is ambiguous: say packages/app/web or others/app/web";
    assert!(stderr(&output).contains(message), "{}", stderr(&output));
    let output = crate::rehearse(&[&set, "--fail", "others/app/web"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout(&output);
    let tells = |subject: &str, verb: &str| {
        shown.lines().any(|line| line.split_whitespace().skip(1).take(2).eq([subject, verb]))
    };
    assert!(tells("packages/app/web", "verified") && tells("others/app", "InstallFailed"), "{shown}");
}
