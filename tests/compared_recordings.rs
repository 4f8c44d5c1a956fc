//! The comparison with recorded runs of helm-controller: that it accepts what may differ, and
//! refuses everything else.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test program")]

use std::path::PathBuf;

use rstest::rstest;
use serde_json::Value;

#[path = "support/recordings.rs"]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod recordings;

use recordings::{Recording, What, Write, compare, times_to_ready};

fn all() -> Vec<Recording> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/helm-controller-1.6.3");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| Recording::parse(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

fn named(scenario: &str) -> Recording {
    all().into_iter().find(|recording| recording.scenario == scenario).unwrap()
}

fn refused(recorded: &[Write], replayed: &[Write]) -> String {
    compare(recorded, replayed, "ns").expect_err("the difference is not seen")
}

#[test]
fn every_recording_equals_itself() {
    let all = all();
    assert_eq!(all.len(), 14);
    for recording in all {
        compare(recording.writes(), recording.writes(), "ns").unwrap();
    }
}

#[test]
fn a_missing_write_is_refused_wherever_it_is_missing() {
    for recording in all() {
        for index in 0..recording.writes().len() {
            let mut replayed = recording.writes().to_vec();
            replayed.remove(index);
            refused(recording.writes(), &replayed);
        }
    }
}

#[test]
fn an_extra_write_is_refused_wherever_it_is() {
    for recording in all() {
        for index in 0..recording.writes().len() {
            let mut replayed = recording.writes().to_vec();
            replayed.insert(index, replayed[index].clone());
            refused(recording.writes(), &replayed);
        }
    }
}

#[test]
fn two_writes_of_one_object_may_not_change_places() {
    for recording in all() {
        let writes = recording.writes();
        for index in 1..writes.len() {
            if writes[index - 1].name == writes[index].name {
                let mut replayed = writes.to_vec();
                replayed.swap(index - 1, index);
                refused(writes, &replayed);
            }
        }
    }
}

#[test]
fn writes_of_different_objects_may_change_places() {
    let recording = named("depends-on");
    let mut replayed = recording.writes().to_vec();
    let index = (1..replayed.len()).find(|index| replayed[index - 1].name != replayed[*index].name).unwrap();
    replayed.swap(index - 1, index);
    compare(recording.writes(), &replayed, "ns").unwrap();
}

/// Changes every write of a recording.
fn changed(recording: &Recording, mut change: impl FnMut(&mut Value)) -> Vec<Write> {
    let mut writes = recording.writes().to_vec();
    writes.iter_mut().for_each(|write| change(&mut write.status));
    writes
}

fn each(status: &mut Value, list: &str, mut change: impl FnMut(&mut Value)) {
    let items = status.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(&mut change);
}

#[test]
fn times_durations_and_digests_may_differ() {
    for recording in all() {
        let replayed = changed(&recording, |status| {
            each(status, "conditions", |condition| {
                condition["lastTransitionTime"] = "2030-01-01T00:00:00Z".into();
            });
            each(status, "history", |snapshot| {
                snapshot["lastDeployed"] = "2030-01-01T00:00:00Z".into();
                let digest = snapshot["digest"].as_str().unwrap().replace("sha256:", "sha256:0");
                snapshot["digest"] = digest.into();
            });
            if let Some(duration) = status.get_mut("lastAttemptedReleaseActionDuration") {
                *duration = "1s".into();
            }
        });
        compare(recording.writes(), &replayed, "ns").unwrap();
    }
}

#[test]
fn the_namespace_may_differ() {
    for recording in all() {
        let mut writes = recording.writes().to_vec();
        for write in &mut writes {
            let text = write.status.to_string();
            let text = text
                .replace("ns/ns-", "other-7/other-7-")
                .replace("ns/", "other-7/")
                .replace(r#""ns""#, r#""other-7""#)
                .replace("ns_", "other-7_");
            write.status = serde_json::from_str(&text).unwrap();
        }
        compare(recording.writes(), &writes, "other-7").unwrap();
    }
}

#[rstest]
#[case::condition_status("conditions", "status", "Unknown")]
#[case::condition_reason("conditions", "reason", "Else")]
#[case::condition_message("conditions", "message", "else")]
#[case::history_status("history", "status", "else")]
#[case::history_action("history", "action", "else")]
#[case::history_chart_version("history", "chartVersion", "9.9.9")]
#[case::history_values("history", "configDigest", "sha256:0")]
fn everything_else_must_be_the_same(#[case] list: &str, #[case] field: &str, #[case] other: &str) {
    let recording = named("install-upgrade-values-uninstall");
    let replayed = changed(&recording, |status| {
        each(status, list, |item| item[field] = other.into());
    });
    refused(recording.writes(), &replayed);
}

#[test]
fn a_superseded_release_must_have_another_digest_than_before() {
    let recording = named("install-upgrade-values-uninstall");
    let first = recording.writes().iter().find_map(|write| write.status.pointer("/history/0/digest").cloned()).unwrap();
    let replayed = changed(&recording, |status| {
        each(status, "history", |snapshot| {
            if snapshot["version"] == 1 {
                snapshot["digest"] = first.clone();
            }
        });
    });
    refused(recording.writes(), &replayed);
}

#[test]
fn steps_that_were_cut_are_completed() {
    let recording = named("chartref-wait-timeout-retry");
    let actions = recording.actions().unwrap();
    assert_eq!(actions.len(), 7);
    let What::Apply { spec, .. } = &actions[5].what else {
        panic!("{:?}", actions[5]);
    };
    assert_eq!(spec["chartRef"]["name"], "app-1.1.0");
    assert_eq!(spec["timeout"], "6s");
    let patch = &spec["postRenderers"][0]["kustomize"]["patches"][0];
    assert_eq!(patch["target"]["kind"], "Deployment");
    let text = recording.writes().iter().map(|write| write.status.to_string());
    assert!(text.into_iter().any(|text| text.contains("'upgrade' action with timeout of 6s")));
}

#[test]
fn every_step_is_understood_and_follows_the_writes_before_it() {
    for recording in all() {
        let actions = recording.actions().unwrap();
        assert!(actions.is_sorted_by_key(|action| action.after), "{}", recording.scenario);
        for action in actions {
            if let What::Apply { kind, spec, .. } = action.what
                && kind == "HelmRelease"
            {
                assert!(spec["chart"].is_object() != spec["chartRef"].is_object(), "{spec}");
            }
        }
    }
}

#[test]
fn times_are_taken_from_the_new_spec_to_its_observation() {
    let recording = named("install-upgrade-values-uninstall");
    let times = times_to_ready(recording.writes(), "conf");
    let rounded: Vec<f64> = times.iter().map(|time| (time * 1000.0).round() / 1000.0).collect();
    assert_eq!(rounded, [1.944, 0.377, 0.266]);
    assert!(times_to_ready(recording.writes(), "app").is_empty());
    assert_eq!(times_to_ready(named("suspend-then-change").writes(), "conf").len(), 2);
}
