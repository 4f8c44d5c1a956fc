//! Argo CD's application controller. Its comparisons and its operations write
//! side by side, in an order that differs from run to run, and it runs a second
//! operation or not: each of the two is compared by itself, and what is played
//! must be part of what was recorded, in that order, with the same end.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::sim::chart::Outcome;
use windlass::sim::store::Expected;
use windlass::sim::{Key, World};

use crate::flux::{charts, run_to};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recordings/argocd-3.5.7");

/// What is told of operations.
fn operations(object: &Map<String, Value>) -> String {
    let state = object.get("status").and_then(|status| status.get("operationState")).cloned().unwrap_or_default();
    let asked = object.get("operation").is_some_and(|operation| !operation.is_null());
    let at = |pointer: &str| state.pointer(pointer).cloned().unwrap_or_default();
    format!(
        "asked {asked} phase {} finished {} of {} result {} retries {}",
        at("/phase"),
        state.get("finishedAt").is_some(),
        at("/operation/sync/revision"),
        // While it runs the result comes and goes.
        if at("/phase") == "Running" { Value::Null } else { at("/syncResult/revision") },
        at("/retryCount"),
    )
}

/// What is told of comparisons.
fn comparisons(object: &Map<String, Value>) -> String {
    let status = object.get("status").cloned().unwrap_or_default();
    let at = |pointer: &str| status.pointer(pointer).cloned().unwrap_or_default();
    let conditions: Vec<String> =
        status["conditions"].as_array().into_iter().flatten().map(|c| c["type"].to_string()).collect();
    format!(
        "{} {} of {} health {} {conditions:?}",
        at("/sync/status"),
        at("/sync/revision"),
        at("/sync/comparedTo/source/targetRevision"),
        at("/health/status"),
    )
}

fn recorded(recording: &Value, of: fn(&Map<String, Value>) -> String) -> Vec<String> {
    // What is told of an Application that is being deleted is not played.
    let events = recording["events"].as_array().unwrap().iter().filter(|event| event["deleting"] != true);
    let mut told: Vec<String> = events.map(|event| of(event.as_object().unwrap())).collect();
    told.dedup();
    told
}

fn played(world: &World, of: fn(&Map<String, Value>) -> String) -> Vec<String> {
    let applications = world.store.log().iter().filter(|change| change.key.kind == "Application");
    let mut told: Vec<String> = applications.map(|change| of(&change.object)).collect();
    told.dedup();
    told
}

fn is_part_of(played: &[String], recorded: &[String]) {
    let mut rest = recorded.iter();
    for (index, told) in played.iter().enumerate() {
        assert!(rest.any(|known| known == told), "{index}: {told}\nplayed {played:#?}\nrecorded {recorded:#?}");
    }
    assert_eq!(played.last(), recorded.last());
}

fn act(world: &mut World, step: &str) {
    let mut words = step.splitn(4, ' ');
    let verb = words.next().unwrap();
    let (first, second, rest) = (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
    let key = |name: &str| Key::new("argoproj.io/v1alpha1", "Application", "argocd", name);
    match verb {
        "apply" => {
            let spec: Value = serde_json::from_str(rest).unwrap();
            let object = json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": first,
                "metadata": {
                    "name": second, "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"],
                },
                "spec": spec,
            });
            world.store.apply("user", object.as_object().unwrap(), &Expected::default()).unwrap();
        }
        "delete" => world.store.delete("user", &key(second), &Expected::default()).unwrap(),
        "refresh" => {
            let patch = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
            world.store.patch("user", &key(first), patch.as_object().unwrap(), &Expected::default()).unwrap();
        }
        _ => panic!("unknown step {step}"),
    }
}

#[rstest]
#[case::missing_chart_version("missing-chart-version")]
#[case::render_failure("render-failure")]
#[case::sync_failure("sync-failure")]
#[case::never_available("never-available")]
#[case::job_chart("job-chart")]
#[case::upgrade_without_refresh_then_refresh("upgrade-without-refresh-then-refresh")]
#[case::install_upgrade_values_delete("install-upgrade-values-delete")]
fn argo_cd_writes_what_was_recorded(#[case] scenario: &str) {
    let text = std::fs::read_to_string(format!("{DIRECTORY}/{scenario}.json")).unwrap();
    let recording: Value = serde_json::from_str(&text).unwrap();
    let mut script = charts();
    script.published.insert(("conf".into(), "9.9.9".into()), u64::MAX);
    // A chart that cannot be rendered shows like one that is not there.
    script.published.insert(("conf".into(), "1.2.0".into()), u64::MAX);
    script.behave("s1", "1.1.0", Outcome::Fails, 1000);
    script.behave("n1", "1.1.0", Outcome::Hangs, 1000);
    let mut world = World::new(script);
    for step in recording["steps"].as_array().unwrap() {
        run_to(&mut world, (step["t"].as_f64().unwrap() * 1000.0) as u64);
        act(&mut world, step["step"].as_str().unwrap());
    }
    let end = recording["events"].as_array().unwrap().last().unwrap()["t"].as_f64().unwrap();
    run_to(&mut world, (end * 1000.0) as u64 + 1500);
    is_part_of(&played(&world, operations), &recorded(&recording, operations));
    is_part_of(&played(&world, comparisons), &recorded(&recording, comparisons));
}
