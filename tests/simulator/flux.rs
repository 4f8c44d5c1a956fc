//! helm-controller and source-controller.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::sim::chart::{Outcome, Script, Template};
use windlass::sim::store::Expected;
use windlass::sim::{Key, Verb, World};

use crate::recordings::{Recording, What};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recordings/helm-controller-1.6.3");
/// Timeouts that the parser of the recordings shortens for its own purpose.
const TIMEOUTS: [(&str, &str); 3] = [("37s", "60s"), ("12s", "45s"), ("6s", "10s")];

/// The charts of the recordings.
pub fn charts() -> Script {
    let mut script = Script::default();
    let conf = Template::new("v1", "ConfigMap", "{release}-cm", json!({"version": "{version}", "config": "{values}"}));
    script.charts.insert("conf".into(), vec![conf.clone()]);
    let deployment = json!({"release": "{release}", "version": "{version}"});
    let deployment = Template::new("apps/v1", "Deployment", "{release}", deployment);
    script.charts.insert("app".into(), vec![deployment, conf]);
    script.charts.insert("migrate".into(), vec![Template::job()]);
    script
}

/// What is told of a HelmRelease by one write, without what differs from run to run.
fn shape(object: &Map<String, Value>, change: &str) -> String {
    let status = object.get("status").cloned().unwrap_or_default();
    let at = |pointer: &str| status.pointer(pointer).cloned().unwrap_or_default();
    let mut conditions: Vec<String> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| format!("{}={}:{}@{}", c["type"], c["status"], c["reason"], c["observedGeneration"]).replace('"', ""))
        .collect();
    conditions.sort();
    let history: Vec<String> = status["history"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|h| format!("{} {} {} {}", h["version"], h["status"], h["chartVersion"], h["action"]).replace('"', ""))
        .collect();
    let failures = ["failures", "installFailures", "upgradeFailures"].map(|field| at(&format!("/{field}")));
    let attempted = ["lastAttemptedGeneration", "lastAttemptedRevision", "lastAttemptedReleaseAction"]
        .map(|field| at(&format!("/{field}")));
    let inventory = at("/inventory/entries").as_array().map(Vec::len);
    format!(
        "{change} g{} {} observed {} {conditions:?} {history:?} {failures:?} {attempted:?} {inventory:?}",
        object["generation"],
        if object["deleting"] == true { "deleting" } else { "" },
        status["observedGeneration"],
    )
}

fn recorded(text: &str) -> Vec<String> {
    let recording: Value = serde_json::from_str(text).unwrap();
    let events = recording["events"].as_array().unwrap();
    let mut shapes: Vec<String> =
        events.iter().map(|event| shape(event.as_object().unwrap(), event["type"].as_str().unwrap())).collect();
    shapes.dedup();
    shapes
}

fn played(world: &World) -> Vec<String> {
    let mut shapes = Vec::new();
    for change in world.store.log().iter().filter(|change| change.key.kind == "HelmRelease") {
        let mut object = change.object.as_ref().clone();
        object.insert("generation".into(), object["metadata"]["generation"].clone());
        object.insert("deleting".into(), object["metadata"].get("deletionTimestamp").is_some().into());
        let verb = match change.verb {
            Verb::Created => "ADDED",
            Verb::Updated => "MODIFIED",
            Verb::Deleted => "DELETED",
        };
        shapes.push(shape(&object, verb));
    }
    shapes.dedup();
    shapes
}

pub fn run_to(world: &mut World, time: u64) {
    world.settle_writes();
    while world.next_due().is_some_and(|due| due <= time) {
        world.step();
    }
    world.wait_until(time);
}

fn act(world: &mut World, what: What) {
    match what {
        What::Apply { kind, name, mut spec } => {
            if let Some((_, long)) = TIMEOUTS.iter().find(|(short, _)| spec["timeout"] == *short) {
                spec["timeout"] = json!(long);
            }
            let group = if kind == "HelmRelease" { "helm.toolkit.fluxcd.io/v2" } else { "source.toolkit.fluxcd.io/v1" };
            let object = json!({
                "apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": "ns"}, "spec": spec,
            });
            world.store.apply("user", object.as_object().unwrap(), &Expected::default()).unwrap();
        }
        What::Delete { kind, name } => {
            let key = Key::new("helm.toolkit.fluxcd.io/v2", &kind, "ns", &name);
            world.store.delete("user", &key, &Expected::default()).unwrap();
        }
    }
}

/// The first write that differs, with those around it.
pub fn compare(recorded: &[String], played: &[String]) {
    for index in 0..recorded.len().max(played.len()) {
        let (one, other) = (recorded.get(index), played.get(index));
        let before = index.checked_sub(1).and_then(|before| recorded.get(before));
        assert_eq!(other, one, "write {index} (played, recorded); before it: {before:#?}");
    }
}

#[rstest]
#[case::install_upgrade_values_uninstall("install-upgrade-values-uninstall")]
#[case::chartref_install_upgrade_uninstall("chartref-install-upgrade-uninstall")]
#[case::chartref_missing_version("chartref-missing-version")]
#[case::chartref_wait_timeout_retry("chartref-wait-timeout-retry")]
#[case::wait_timeout_retry("wait-timeout-retry")]
#[case::template_failure_retry("template-failure-retry")]
#[case::oneshot_failure_retries_0("oneshot-failure-retries-0")]
#[case::suspend_then_change("suspend-then-change")]
#[case::fix_forward_during_wait("fix-forward-during-wait")]
#[case::fix_forward_cancel_gate("fix-forward-cancel-gate")]
#[case::job_chart("job-chart")]
#[case::daemonset_upgrade_disablewait("daemonset-upgrade-disablewait")]
#[case::daemonset_upgrade_wait("daemonset-upgrade-wait")]
fn helm_controller_writes_what_was_recorded(#[case] scenario: &str) {
    let text = std::fs::read_to_string(format!("{DIRECTORY}/{scenario}.json")).unwrap();
    let recording = Recording::parse(&text).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let mut script = charts();
    script.behave("a", "1.2.0", Outcome::Fails, 1000);
    let hangs = scenario.contains("timeout") || scenario.starts_with("fix-forward");
    script.behave("a", "1.1.0", if hangs { Outcome::Hangs } else { Outcome::Succeeds }, 1000);
    script.behave("h", "1.1.0", Outcome::Hangs, 1000);
    script
        .charts
        .insert("stuck".into(), vec![Template::deployment(), Template::new("v1", "ConfigMap", "c", json!({}))]);
    script.published.insert(("conf".into(), "7.7.7".into()), u64::MAX);
    let mut world = World::new(script);
    if scenario == "fix-forward-cancel-gate" {
        world.cancel_health_checks();
    }
    for (action, step) in recording.actions().unwrap().into_iter().zip(whole["steps"].as_array().unwrap()) {
        run_to(&mut world, (step["t"].as_f64().unwrap() * 1000.0) as u64);
        act(&mut world, action.what);
    }
    let end = whole["events"].as_array().unwrap().last().unwrap()["t"].as_f64().unwrap();
    run_to(&mut world, (end * 1000.0) as u64 + 1500);
    compare(&recorded(&text), &played(&world));
}

fn release(version: &str, values: Value) -> What {
    let spec = json!({
        "interval": "10m", "timeout": "5m", "chartRef": {"kind": "HelmChart", "name": format!("app-{version}")}, "values": values,
        "upgrade": {"strategy": {"name": "RetryOnFailure"}}, "install": {"strategy": {"name": "RetryOnFailure"}},
    });
    What::Apply { kind: "HelmRelease".into(), name: "a".into(), spec }
}

#[test]
fn what_still_runs_after_a_refused_upgrade_is_told_as_a_success_of_now() {
    let mut script = charts();
    script.behave("a", "2.0.0", Outcome::Fails, 1000);
    let mut world = World::new(script);
    let repository = json!({"interval": "10m", "url": "http://charts"});
    act(&mut world, What::Apply { kind: "HelmRepository".into(), name: "repo".into(), spec: repository });
    for version in ["1.0.0", "2.0.0"] {
        let source = json!({"kind": "HelmRepository", "name": "repo"});
        let spec = json!({"chart": "app", "version": version, "interval": "10m", "sourceRef": source});
        act(&mut world, What::Apply { kind: "HelmChart".into(), name: format!("app-{version}"), spec });
    }
    for (time, version, values) in [(10, "1.0.0", 1), (20, "2.0.0", 2), (30, "1.0.0", 1)] {
        act(&mut world, release(version, json!({"x": values})));
        run_to(&mut world, time * 1000);
    }
    let key = Key::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", "ns", "a");
    let status = &world.store.get(&key).unwrap()["status"];
    assert_eq!(status["history"].as_array().unwrap().len(), 1, "{status:#}");
    assert_eq!(status["lastAttemptedConfigDigest"], status["history"][0]["configDigest"]);
    for type_ in ["Ready", "Released"] {
        let mut conditions = status["conditions"].as_array().unwrap().iter();
        let condition = conditions.find(|condition| condition["type"] == type_).unwrap();
        assert_eq!((&condition["status"], &condition["reason"]), (&json!("True"), &json!("UpgradeSucceeded")));
    }
    assert_eq!(status.get("failures"), None);
}
