//! HelmReleases made by hand.

use rstest::{fixture, rstest};
use serde_json::{Value, json};

use super::*;
use crate::api::{Claim, RecordedComponent};
use crate::ready::release::Foreign;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn condition(kind: &str, status: &str, reason: &str, generation: i64) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("{reason}\nat length"), "observedGeneration": generation})
}

/// A HelmRelease that runs the wanted spec, as helm-controller leaves it.
#[fixture]
fn ready() -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {
            "name": "pkg-app",
            "namespace": "packages",
            "generation": 4,
            "labels": {
                "windlass.dev/package": "pkg",
                "windlass.dev/component": "app",
                "app.kubernetes.io/managed-by": "windlass",
            },
            "annotations": {"windlass.dev/digest": "v1:new"},
        },
        "spec": {
            "chartRef": {"kind": "OCIRepository", "name": "windlass-0123456789ab"},
            "values": {"replicas": 2},
            "upgrade": {"crds": "CreateReplace"},
        },
        "status": {
            "observedGeneration": 4,
            "lastAttemptedGeneration": 4,
            "lastAttemptedConfigDigest": "sha256:cc",
            "conditions": [condition("Ready", "True", "UpgradeSucceeded", 4), condition("Released", "True", "UpgradeSucceeded", 4)],
            "history": [
                {"name": "app", "namespace": "ns", "version": 7, "status": "deployed", "action": "upgrade", "chartName": "app",
                 "chartVersion": "1.1.0+0123456789ab", "configDigest": "sha256:cc", "ociDigest": "sha256:dd"},
                {"name": "app", "namespace": "ns", "version": 6, "status": "superseded", "chartName": "app", "chartVersion": "1.0.0"},
            ],
        },
    })
}

fn component() -> RecordedComponent {
    let mut release = object(ready());
    release.remove("status");
    release["metadata"].as_object_mut().unwrap().remove("generation");
    let repository = json!({"kind": "OCIRepository", "spec": {"ref": {"digest": "sha256:dd"}}});
    RecordedComponent {
        name: "app".into(),
        wave: 0,
        digest: "v1:new".into(),
        release: Claim { storage_namespace: "ns".into(), namespace: "ns".into(), name: "app".into() },
        chart_name: "app".into(),
        chart_version: "1.1.0".into(),
        chart_digest: String::new(),
        depends_on: Vec::new(),
        manifests: vec![object(repository), release],
        ready_when: Vec::new(),
        canary: None,
        hook: false,
        delete_data: false,
        replaces: false,
        adopted: false,
    }
}

fn look(release: Value) -> Release {
    let component = component();
    flux(Some(&object(release)), &Wanted::of(&component).unwrap())
}

fn with(mut release: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    match release.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        Value::Object(fields) if value.is_null() => drop(fields.remove(&key)),
        Value::Object(fields) => drop(fields.insert(key, value)),
        other => panic!("{other}"),
    }
    release
}

fn with_conditions(release: Value, conditions: &[Value]) -> Value {
    with(release, "/status/conditions", json!(conditions))
}

#[rstest]
fn a_release_with_the_whole_proof_is_ready(ready: Value) {
    assert_eq!(look(ready).state, ReleaseState::Ready);
}

#[rstest]
#[case::generation("/status/observedGeneration", json!(3), "observedGeneration is not 4 yet")]
#[case::no_history("/status/history", json!([]), "no release is recorded yet")]
#[case::failed_release("/status/history/0/status", json!("failed"), "the release that runs is failed")]
#[case::pending("/status/history/0/status", json!("pending-upgrade"), "the release that runs is pending-upgrade")]
#[case::rolled_back("/status/history/0/action", json!("rollback"), "the last action was rollback")]
#[case::uninstalled("/status/history/0/action", json!("uninstall-remediation"), "the last action was uninstall-remediation")]
#[case::older_chart("/status/history/0/chartVersion", json!("1.0.0"), "the release that runs has chart version 1.0.0, not 1.1.0")]
#[case::longer_version("/status/history/0/chartVersion", json!("1.1.0-rc.1"), "the release that runs has chart version 1.1.0-rc.1, not 1.1.0")]
#[case::other_values("/status/history/0/configDigest", json!("sha256:old"), "the release that runs has other values")]
#[case::other_artifact("/status/history/0/ociDigest", json!("sha256:ee"), "the release that runs has chart digest sha256:ee, not sha256:dd")]
#[case::other_release("/status/history/0/name", json!("app-2"), "the release that runs has name app-2, not app")]
#[case::other_namespace("/status/history/0/namespace", json!("ns-2"), "the release that runs has namespace ns-2, not ns")]
fn a_proof_with_one_piece_missing_is_none(
    ready: Value,
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] message: &str,
) {
    let seen = look(with(ready, pointer, value));
    assert_eq!(seen.state, ReleaseState::Progressing);
    assert_eq!(seen.message, format!("HelmRelease/pkg-app: {message}"));
}

#[rstest]
#[case::as_is("1.1.0")]
#[case::with_digest("1.1.0+abcdef012345")]
#[case::with_v("v1.1.0")]
fn a_chart_version_is_the_same_without_what_does_not_distinguish_it(ready: Value, #[case] version: &str) {
    assert_eq!(look(with(ready, "/status/history/0/chartVersion", json!(version))).state, ReleaseState::Ready);
}

/// Flux before 2.8 does not record actions, before 2.3 no config digest.
#[rstest]
#[case::action("/status/history/0/action")]
#[case::config_digest("/status/lastAttemptedConfigDigest")]
fn what_an_older_flux_does_not_record_is_not_asked_for(ready: Value, #[case] pointer: &str) {
    assert_eq!(look(with(ready, pointer, Value::Null)).state, ReleaseState::Ready);
}

#[rstest]
#[case::reconciling(condition("Reconciling", "True", "Progressing", 4))]
#[case::reconciling_for_an_older_generation(condition("Reconciling", "True", "Progressing", 3))]
#[case::stalled_at_an_older_generation(condition("Stalled", "True", "RetriesExceeded", 3))]
fn a_release_with_an_abnormal_condition_is_not_ready(ready: Value, #[case] also: Value) {
    let conditions = [condition("Ready", "True", "UpgradeSucceeded", 4), also];
    assert_eq!(look(with_conditions(ready, &conditions)).state, ReleaseState::Progressing);
}

#[rstest]
#[case::source_not_ready("SourceNotReady", Some(Trouble::NoSource))]
#[case::dependency("DependencyNotReady", None)]
#[case::cancelled("HealthCheckCanceled", None)]
#[case::artifact("ArtifactFailed", None)]
#[case::later_addition("SomethingNew", None)]
fn ready_false_for_other_reasons_than_a_failed_action_is_progress(
    ready: Value,
    #[case] reason: &str,
    #[case] trouble: Option<Trouble>,
) {
    let retrying = condition("Reconciling", "True", "ProgressingWithRetry", 4);
    let seen = look(with_conditions(
        with(ready, "/status/failures", json!(1)),
        &[condition("Ready", "False", reason, 4), retrying],
    ));
    assert_eq!((seen.state, seen.trouble), (ReleaseState::Progressing, trouble));
    let told = match trouble {
        Some(_) => "waits for its chart".to_owned(),
        None => format!("Ready is False ({reason})"),
    };
    assert_eq!(seen.message, format!("HelmRelease/pkg-app: {told}: {reason} at length"));
}

#[rstest]
#[case::running("Unknown", "Running 'upgrade' action with timeout of 2m0s", true)]
#[case::before_it_runs("Unknown", "Fulfilling prerequisites", false)]
#[case::failed("False", "Running 'upgrade' action with timeout of 2m0s", false)]
fn while_an_action_runs_a_verdict_is_due(ready: Value, #[case] status: &str, #[case] message: &str, #[case] due: bool) {
    let mut busy = condition("Reconciling", "True", "Progressing", 4);
    busy["message"] = json!(message);
    busy["lastTransitionTime"] = json!("2026-11-29T10:00:00Z");
    let seen = look(with_conditions(ready, &[condition("Ready", status, "Progressing", 4), busy]));
    assert_eq!((seen.state, seen.verdict_is_due), (ReleaseState::Progressing, due));
}

#[rstest]
fn ready_unknown_is_progress(ready: Value) {
    let conditions =
        [condition("Ready", "Unknown", "Progressing", 4), condition("Reconciling", "True", "Progressing", 4)];
    let seen = look(with_conditions(ready, &conditions));
    assert_eq!(
        (seen.state, seen.message.as_str()),
        (ReleaseState::Progressing, "HelmRelease/pkg-app: Progressing at length")
    );
}

#[rstest]
#[case::install("InstallFailed")]
#[case::upgrade("UpgradeFailed")]
fn a_failed_action_is_a_failed_attempt(ready: Value, #[case] reason: &str) {
    let conditions =
        [condition("Ready", "False", reason, 4), condition("Reconciling", "True", "ProgressingWithRetry", 4)];
    let failed = with(with_conditions(ready, &conditions), "/status/failures", json!(2));
    let seen = look(failed.clone());
    assert_eq!((seen.state, seen.attempts), (ReleaseState::Failed(Failure::Attempt), 2));
    assert_eq!(seen.message, format!("HelmRelease/pkg-app: Ready is False ({reason}): {reason} at length"));
    for (pointer, value) in [
        // Written in a later step, or left over from the spec before.
        ("/status/observedGeneration", json!(3)),
        ("/status/lastAttemptedGeneration", json!(3)),
        ("/status/failures", json!(0)),
        ("/status/conditions/0/observedGeneration", json!(3)),
    ] {
        assert_eq!(look(with(failed.clone(), pointer, value)).state, ReleaseState::Progressing, "{pointer}");
    }
}

#[rstest]
fn a_stalled_release_has_given_up(ready: Value) {
    let conditions =
        [condition("Stalled", "True", "RetriesExceeded", 4), condition("Ready", "False", "InstallFailed", 4)];
    let stalled = with(with_conditions(ready, &conditions), "/status/failures", json!(1));
    let seen = look(stalled.clone());
    assert_eq!((seen.state, seen.attempts), (ReleaseState::Failed(Failure::GivenUp), 1));
    assert_eq!(seen.message, "HelmRelease/pkg-app: Ready is False (InstallFailed): InstallFailed at length");
    let old = with(stalled.clone(), "/status/conditions/0/observedGeneration", json!(3));
    assert_eq!(look(old).state, ReleaseState::Progressing);
    let not_written = with(stalled, "/status/observedGeneration", json!(3));
    assert_eq!(look(not_written).state, ReleaseState::Progressing);
}

#[rstest]
fn an_invalid_spec_is_named(ready: Value) {
    let seen = look(with_conditions(ready, &[condition("Stalled", "True", "InvalidCELExpression", 4)]));
    assert_eq!(seen.state, ReleaseState::Failed(Failure::GivenUp));
    assert_eq!(
        seen.message,
        "HelmRelease/pkg-app: Stalled is True (InvalidCELExpression): InvalidCELExpression at length"
    );
}

#[rstest]
#[case::nothing(&[], None)]
#[case::old_ready(&[condition("Ready", "True", "UpgradeSucceeded", 4)], None)]
#[case::old_failure(&[condition("Ready", "False", "UpgradeFailed", 4)], None)]
#[case::old_stall(&[condition("Stalled", "True", "RetriesExceeded", 4)], None)]
#[case::old_wait(&[condition("Reconciling", "True", "Progressing", 4)], Some("Flux finishes what it began before: Progressing at length"))]
#[case::old_action(
    &[json!({
        "type": "Reconciling", "status": "True", "reason": "Progressing", "observedGeneration": 4,
        "message": "Running 'upgrade' action with timeout of 1m30s", "lastTransitionTime": "2026-01-02T03:04:05Z",
    })],
    Some("Flux finishes what it began before: Running 'upgrade' action with timeout of 1m30s, which ends at 2026-01-02T03:05:35Z")
)]
#[case::no_generation(&[json!({"type": "Ready", "status": "True"})], None)]
fn a_new_spec_is_queued_until_the_engine_begins(
    ready: Value,
    #[case] conditions: &[Value],
    #[case] message: Option<&str>,
) {
    let seen = look(with(with_conditions(ready, conditions), "/metadata/generation", json!(5)));
    assert_eq!((seen.state, seen.attempts), (ReleaseState::Queued, 0));
    assert_eq!(seen.message, format!("HelmRelease/pkg-app: {}", message.unwrap_or("Flux has not begun yet")));
}

#[rstest]
#[case::reconciling(condition("Reconciling", "True", "Progressing", 5))]
#[case::ready(condition("Ready", "False", "SourceNotReady", 5))]
fn a_condition_about_the_new_spec_shows_that_the_engine_has_begun(ready: Value, #[case] also: Value) {
    let begun = with(with_conditions(ready, &[also]), "/metadata/generation", json!(5));
    assert_eq!(look(begun).state, ReleaseState::Progressing);
}

/// A suspended object's `observedGeneration` moves to the new spec, and Ready is
/// that of the old release.
#[rstest]
fn a_suspended_release_is_never_ready(ready: Value) {
    let seen = look(with(ready, "/spec/suspend", json!(true)));
    assert_eq!((seen.state, seen.message.as_str()), (ReleaseState::Suspended, "HelmRelease/pkg-app is suspended"));
}

#[rstest]
#[case::values("/spec/values/replicas", json!(3), "spec.values.replicas is not as it was written")]
#[case::chart("/spec/chartRef/name", json!("windlass-ba9876543210"), "spec.chartRef.name is not as it was written")]
#[case::crds("/spec/upgrade/crds", json!("Skip"), "spec.upgrade.crds is not as it was written")]
#[case::digest("/metadata/annotations/windlass.dev~1digest", json!("v1:old"), "metadata.annotations.windlass.dev/digest is not as it was written")]
fn an_edited_spec_is_outdated_whatever_the_digest_says(
    ready: Value,
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] message: &str,
) {
    let seen = look(with(ready, pointer, value));
    assert_eq!((seen.state, seen.message), (ReleaseState::Outdated, format!("HelmRelease/pkg-app: {message}")));
}

#[rstest]
fn after_a_rollback_the_crd_policy_is_left_out(ready: Value) {
    let component = component();
    let wanted = Wanted::of(&component).unwrap().without(&[&["spec", "upgrade", "crds"]]);
    let rolled_back = object(with(ready, "/spec/upgrade/crds", json!("Skip")));
    assert_eq!(flux(Some(&rolled_back), &wanted).state, ReleaseState::Ready);
}

#[rstest]
fn fields_of_others_are_let_be(ready: Value) {
    let seen = look(with(ready, "/spec/uninstall", json!({"keepHistory": true})));
    assert_eq!(seen.state, ReleaseState::Ready);
}

#[rstest]
#[case::no_labels(json!({}), None)]
#[case::rendered_for_git(json!({"windlass.dev/package": "pkg", "windlass.dev/component": "app"}), None)]
#[case::of_another_package(
    json!({"windlass.dev/package": "other", "windlass.dev/component": "app", "app.kubernetes.io/managed-by": "windlass"}),
    Some(("other".to_owned(), "app".to_owned()))
)]
#[case::of_another_component(
    json!({"windlass.dev/package": "pkg", "windlass.dev/component": "b", "app.kubernetes.io/managed-by": "windlass"}),
    Some(("pkg".to_owned(), "b".to_owned()))
)]
fn an_object_without_our_labels_is_foreign(
    ready: Value,
    #[case] labels: Value,
    #[case] owner: Option<(String, String)>,
) {
    let seen = look(with(ready, "/metadata/labels", labels));
    assert_eq!(seen.state, ReleaseState::Foreign(Foreign { owner, adopt: None }));
}

#[rstest]
fn a_foreign_object_shows_who_may_adopt_it(ready: Value) {
    let foreign = with(ready, "/metadata/labels", json!({}));
    let foreign = with(foreign, "/metadata/annotations", json!({"windlass.dev/adopt": "packages/pkg/app"}));
    let adopt = Some("packages/pkg/app".to_owned());
    assert_eq!(look(foreign).state, ReleaseState::Foreign(Foreign { owner: None, adopt }));
}

#[rstest]
fn an_object_that_is_going_says_why_it_is_still_there(ready: Value) {
    let going = with(ready, "/metadata/deletionTimestamp", json!("2026-11-29T10:00:00Z"));
    let going = with_conditions(going, &[condition("Ready", "False", "UninstallFailed", 5)]);
    let seen = look(going);
    assert_eq!(seen.state, ReleaseState::Deleting);
    assert_eq!(
        seen.message,
        "HelmRelease/pkg-app is being deleted: Ready is False (UninstallFailed): UninstallFailed at length"
    );
}

#[test]
fn nothing_there_is_absent() {
    let component = component();
    let seen = flux(None, &Wanted::of(&component).unwrap());
    assert_eq!((seen.state, seen.message.as_str()), (ReleaseState::Absent, "HelmRelease/pkg-app does not exist"));
}

#[rstest]
#[case::empty(json!({}))]
#[case::wrong_types(json!({"conditions": {"a": 1}, "history": "x", "observedGeneration": "4", "failures": -1}))]
#[case::wrong_items(json!({"conditions": [1, null, {"type": 3}], "history": [null], "observedGeneration": 4, "failures": 1e99}))]
fn a_status_of_any_shape_is_read_without_trust(ready: Value, #[case] status: Value) {
    let state = look(with(ready, "/status", status)).state;
    assert!(matches!(state, ReleaseState::Queued | ReleaseState::Progressing), "{state:?}");
}

#[rstest]
fn long_messages_are_cut(ready: Value) {
    let long = json!({"type": "Ready", "status": "False", "reason": "X", "message": "é".repeat(1000), "observedGeneration": 4});
    let seen = look(with_conditions(ready, &[long]));
    assert_eq!(seen.message.chars().count(), "HelmRelease/pkg-app: Ready is False (X): ".len() + 301);
}
