//! Whatever comes with a commit is played.

use rstest::rstest;
use serde_json::Value;

use crate::{States, events, package, reason, text};

#[rstest]
fn charts_with_a_digest_are_known(
    #[values("https://charts.example.org", "oci://charts.example.org/charts")] repository: &str,
    #[values(true, false)] pinned_before: bool,
) {
    let at = |version: &str, digest: &str| {
        let package = package("app", version, "  rollback: {safe: true}\n", &[("a", "")]);
        let package = package.replace("https://charts.example.org", repository);
        package.replace(&format!("{version}}}"), &format!("{version}{digest}}}"))
    };
    let digest = |letter: &str| format!(", digest: \"sha256:{}\"", letter.repeat(64));
    let old = at("1.0.0", &if pinned_before { digest("a") } else { String::new() });
    let states = States::new(&old, &at("2.0.0", &digest("b")));
    assert_eq!(reason(&states.play(&[]), "app"), "Ready");
    assert_eq!(reason(&states.play(&["--fail", "a"]), "app"), "UpgradeRolledBack");
    assert_eq!(reason(&states.play(&["--fail", "a@chart"]), "app"), "SourceNotFound");
}

#[test]
fn a_canary_that_is_added_goes_to_daemon_sets_that_are_there() {
    let [old, new] = ["1.0.0", "2.0.0"].map(|version| package("app", version, "", &[("a", "")]));
    let states = States::new(&old, &(new + "    canary: {soak: 5s}\n"));
    let phases = |report: &Value| {
        let events = report["events"].as_array().unwrap().iter().filter(|event| event["event"] == "rollsOut");
        events.map(|event| text(event, "/phase").to_owned()).collect::<Vec<_>>()
    };
    let report = states.play(&["--nodes", "3"]);
    assert_eq!(reason(&report, "app"), "Ready", "{report:#}");
    assert!(phases(&report).iter().any(|phase| phase == "canary"), "{report:#}");
    let report = states.play(&["--nodes", "3", "--fail", "a@canary"]);
    assert_eq!(reason(&report, "app"), "UpgradeFailed", "{report:#}");
    assert!(phases(&report).iter().any(|phase| phase == "failed"), "{report:#}");
}

#[rstest]
#[case::another("two", "2.0.0")]
#[case::one_more("one, two", "2.0.0")]
#[case::one_more_of_the_same_chart("one, two", "1.0.0")]
fn a_canary_may_name_other_daemon_sets(#[case] names: &str, #[case] version: &str) {
    let old = package("app", "1.0.0", "", &[("a", "")]) + "    canary: {soak: 1s, daemonSets: [one]}\n";
    let new = package("app", "2.0.0", "", &[("a", "")])
        .replace("name: a, version: 2.0.0", &format!("name: a, version: {version}"));
    let report =
        States::new(&old, &format!("{new}    canary: {{soak: 1s, daemonSets: [{names}]}}\n")).play(&["--nodes", "2"]);
    assert_eq!(reason(&report, "app"), "Ready", "{report:#}");
}

#[test]
fn pods_that_run_well_do_so_again_with_their_values() {
    let of = |values: &str| {
        let package = package("app", "1.0.0", "  rollback: {safe: true}\n", &[("a", "")]);
        format!("{package}    canary: {{soak: 5s}}\n    values: {values}\n")
    };
    let report = States::new(&of("{x: 1}"), &of("{x: 2}")).play(&["--nodes", "3", "--fail", "a@canary"]);
    assert_eq!(reason(&report, "app"), "UpgradeRolledBack", "{report:#}");
}

#[rstest]
fn ready_when_that_is_added_to_a_chart_finds_its_object(
    #[values("flux", "argo")] engine: &str,
    #[values("1.0.0", "2.0.0")] operator: &str,
) {
    let ready = ", dependsOn: [operator], readyWhen: [{apiVersion: example.org/v1, kind: Thing, name: thing, \
        expr: \"object.status.phase == 'Up'\"}]";
    let old = package("app", "1.0.0", "", &[("operator", ""), ("resource", ", dependsOn: [operator]")]);
    let new = package("app", "1.0.0", "", &[("operator", ""), ("resource", ready)]);
    let new = new.replace("version: 1.0.0\n", "version: 2.0.0\n").replacen("1.0.0}", &format!("{operator}}}"), 1);
    let report = States::new(&old, &new).play(&["--engine", engine]);
    assert_eq!(reason(&report, "app"), "Ready", "{report:#}");
}

/// Milliseconds that a Package waited before it began.
fn waited(report: &Value, package: &str) -> u64 {
    let mut events = report["events"].as_array().unwrap().iter();
    let begins = events.find(|event| event["event"] == "begins" && event["package"] == package);
    begins.unwrap_or_else(|| panic!("{package} does not begin: {report:#}"))["waited"].as_u64().unwrap()
}

#[rstest]
#[case::renamed_package(
    package("one", "1.0.0", "", &[("a", ""), ("b", ", dependsOn: [a]")]),
    package("two", "1.0.0", "", &[("a", ""), ("b", ", dependsOn: [a]")])
)]
#[case::moved_component(
    package("one", "1.0.0", "", &[("a", ""), ("b", "")]) + &package("two", "1.0.0", "", &[("c", "")]),
    package("one", "2.0.0", "", &[("a", "")]) + &package("two", "2.0.0", "", &[("c", ""), ("b", "")])
)]
fn a_release_that_is_handed_over_is_waited_for_no_longer_than_that(
    #[case] old: String,
    #[case] new: String,
    #[values("flux", "argo")] engine: &str,
) {
    let report = States::new(&old, &new).play(&["--engine", engine]);
    assert_eq!(reason(&report, "two"), "Ready", "{report:#}");
    assert!(waited(&report, "two") < 10_000, "{report:#}");
    assert!(!events(&report).iter().any(|event| event == "a uninstalls"), "{report:#}");
}
