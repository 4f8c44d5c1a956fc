//! helm-controller 1.6.3.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::engine::observe::flux;
use windlass::ready::release::{Release, ReleaseState, Wanted};

use super::replay::{Recording, component, distinct, metadata, object, word};

const ENGINE: &str = "helm-controller-1.6.3";

/// The object as it stood at an event, as if Windlass had written it: the
/// recording names what of the spec matters, and the generation the rest.
fn live(event: &Value) -> Map<String, Value> {
    let mut live = wanted(event);
    let meta = live["metadata"].as_object_mut().unwrap();
    meta.insert("generation".into(), event["generation"].clone());
    if event["deleting"] == true {
        meta.insert("deletionTimestamp".into(), json!("2026-11-29T16:00:00Z"));
    }
    if !event["suspend"].is_null() {
        live["spec"]["suspend"] = event["suspend"].clone();
    }
    live.insert("status".into(), event["status"].clone());
    live
}

fn wanted(event: &Value) -> Map<String, Value> {
    let name = event["name"].as_str().unwrap();
    let spec = match event.get("chartRef") {
        Some(chart_ref) => json!({"interval": "10m", "chartRef": chart_ref}),
        None => json!({"interval": "10m", "chart": {"spec": {"version": event["chartVersion"]}}}),
    };
    let digest = format!("v1:{}", event["generation"]);
    object(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": metadata(name, &digest),
        "spec": spec,
    }))
}

fn chart_version(event: &Value) -> &str {
    match event["chartVersion"].as_str() {
        Some(version) => version,
        None => event["chartRef"]["name"].as_str().unwrap().rsplit_once('-').unwrap().1,
    }
}

/// What the event says about what was wanted at `asked`.
fn read(event: &Value, asked: &Value) -> Release {
    let name = event["name"].as_str().unwrap();
    let component = component(name, wanted(asked), chart_version(asked));
    let wanted = Wanted::of(&component).unwrap();
    if event["type"] == "DELETED" { flux(None, &wanted) } else { flux(Some(&live(event)), &wanted) }
}

/// Installation of a release whose chart is there already, and of one whose
/// chart has to be fetched first.
const INSTALL: &str = "Queued Progressing Ready";
const FETCH_AND_INSTALL: &str = "Queued Progressing Progressing!source Progressing Ready";

#[rstest]
#[case::chart_ref("chartref-install-upgrade-uninstall", "a", &[INSTALL, "Queued Progressing Ready", "Deleting Absent"])]
#[case::missing_version("chartref-missing-version", "a", &[
    INSTALL,
    "Queued Progressing Progressing!source",
    "Queued Progressing Ready",
])]
#[case::wait_timeout("chartref-wait-timeout-retry", "a", &[
    INSTALL,
    "Queued Progressing Failed/1 Progressing/1 Progressing/2 Failed/2",
    "Queued Progressing Ready",
])]
#[case::daemon_set_without_wait("daemonset-upgrade-disablewait", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing Ready",
])]
#[case::daemon_set_not_done("daemonset-upgrade-wait", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing",
])]
#[case::dependency("depends-on", "a", &[
    "Queued Progressing Progressing!source Progressing",
    "Queued Progressing Ready",
])]
#[case::dependent("depends-on", "b", &["Queued Progressing"])]
#[case::fix_with_cancellation("fix-forward-cancel-gate", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing",
    "Queued Progressing Progressing!source Progressing Ready",
])]
#[case::fix_waits_for_the_old_wait("fix-forward-during-wait", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing",
    "Queued Progressing Progressing!source Progressing Ready",
])]
#[case::values("install-upgrade-values-uninstall", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing Ready",
    "Queued Progressing Ready",
    "Deleting Absent",
])]
#[case::job("job-chart", "m", &[FETCH_AND_INSTALL, "Deleting Absent"])]
#[case::one_shot("oneshot-failure-retries-0", "h", &["Queued Progressing GivenUp/1"])]
#[case::suspended("suspend-then-change", "a", &[
    FETCH_AND_INSTALL,
    "Suspended",
    "Queued Progressing Progressing!source Progressing Ready",
])]
#[case::render_failure("template-failure-retry", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing",
    "Failed/1 Progressing/1 Failed/1 Failed/2 Progressing/2 Failed/2 Failed/3",
    "Progressing/3 Failed/3 Failed/4 Progressing/4 Failed/4 Failed/5",
    "Queued Progressing Progressing!source Progressing Ready",
])]
#[case::wait_timeout_with_chart("wait-timeout-retry", "a", &[
    FETCH_AND_INSTALL,
    "Queued Progressing Progressing!source Progressing",
    "Failed/1 Progressing/1 Progressing/2 Failed/2 Progressing/2",
    "Queued Progressing Progressing!source Progressing Ready",
])]
fn every_status_is_read_rightly(#[case] scenario: &str, #[case] name: &str, #[case] expected: &[&str]) {
    let recording = Recording::load(ENGINE, scenario);
    let words = recording.of(name).map(|event| word(&read(event, event), None)).collect();
    assert_eq!(distinct(words), expected.join(" "));
}

#[test]
fn no_recording_is_left_out() {
    let source = include_str!("flux.rs");
    for scenario in Recording::scenarios(ENGINE) {
        assert!(source.contains(&format!("(\"{scenario}\"")), "{scenario}");
    }
}

/// Whatever is shown, it is not about a spec that is not there any more, or not yet.
#[test]
fn no_status_is_ready_for_another_spec_than_the_one_that_is_there() {
    for scenario in Recording::scenarios(ENGINE) {
        let recording = Recording::load(ENGINE, &scenario);
        for event in &recording.events {
            for asked in recording.of(event["name"].as_str().unwrap()) {
                if asked["generation"] != event["generation"]
                    && event["deleting"] == false
                    && asked["deleting"] == false
                {
                    assert_eq!(read(event, asked).state, ReleaseState::Outdated, "{scenario} at {}", event["t"]);
                }
            }
        }
    }
}

/// `Ready=True` is written before `history`, and both before `observedGeneration`.
#[test]
fn ready_is_never_trusted_before_history_and_generation() {
    let mut early = 0;
    for scenario in Recording::scenarios(ENGINE) {
        for event in &Recording::load(ENGINE, &scenario).events {
            let status = &event["status"];
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let shows_ready = conditions.iter().any(|found| found["type"] == "Ready" && found["status"] == "True");
            let proved = status["observedGeneration"] == event["generation"]
                && status["history"][0]["chartVersion"] == chart_version(event);
            if shows_ready && !proved {
                early += 1;
                assert_ne!(read(event, event).state, ReleaseState::Ready, "{scenario} at {}", event["t"]);
            }
        }
    }
    assert!(early > 50, "the recordings show {early} of them");
}

#[test]
fn what_is_queued_says_what_is_waited_for() {
    let recording = Recording::load(ENGINE, "fix-forward-during-wait");
    let queued =
        recording.of("a").filter(|event| event["generation"] == 3).map(|event| read(event, event)).next().unwrap();
    assert_eq!(queued.state, ReleaseState::Queued);
    let told = "HelmRelease/a: Flux finishes what it began before: Running 'upgrade' action with timeout of 45s, which ends at ";
    let end = queued.message.strip_prefix(told).unwrap_or_else(|| panic!("{}", queued.message));
    assert!(end.parse::<jiff::Timestamp>().is_ok(), "{end}");
}
