//! Applications made by hand: the races of Argo CD's controllers.

mod objects;
mod operations;

use objects::*;
use rstest::{fixture, rstest};
use serde_json::{Value, json};

use super::*;
use crate::ready::release::Foreign;

#[fixture]
fn ready() -> Value {
    application()
}

#[rstest]
fn an_application_with_the_whole_proof_is_ready(ready: Value) {
    let seen = look(ready, &proved());
    assert_eq!((seen.release.state, seen.need, seen.proof), (ReleaseState::Ready, None, proved()));
}

/// R1.
#[rstest]
fn a_new_spec_over_the_status_of_the_old_is_not_ready(ready: Value) {
    let old = with(ready, "/status/operationState", state("Succeeded", &old_source(), Some("token-0")));
    let old = with(old, "/status/sync/comparedTo/source", old_source());
    let seen = look(old, &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, Some(Need::Operation)));
}

#[rstest]
#[case::source("/status/sync/comparedTo/source", old_source())]
#[case::destination("/status/sync/comparedTo/destination", json!({"server": "https://other", "namespace": "ns"}))]
#[case::ignores("/status/sync/comparedTo/ignoreDifferences", Value::Null)]
#[case::several_sources("/status/sync/comparedTo/sources", json!([old_source()]))]
fn a_comparison_with_another_spec_proves_nothing(ready: Value, #[case] pointer: &str, #[case] value: Value) {
    let seen = look(with(ready, pointer, value), &proved());
    assert_eq!(seen.release.state, ReleaseState::Progressing);
    assert_eq!(seen.release.message, "Application/pkg-app: the comparison shown is not with this spec");
}

/// R2: a branch that moved. Windlass pins, so the revision that was compared
/// must be the one that was synchronised.
#[rstest]
fn a_comparison_with_another_revision_is_not_ready(ready: Value) {
    let seen = look(with(ready, "/status/sync/revision", json!("1.0.9")), &proved());
    assert_eq!(seen.release.state, ReleaseState::Progressing);
}

/// R3 and R7: sync and health are those of before the operation.
#[rstest]
fn an_operation_that_has_just_succeeded_asks_for_a_refresh_whatever_is_shown(ready: Value) {
    let seen = look(ready, &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Progressing, Some(Need::Refresh)));
    assert!(seen.proof.succeeded && !seen.proof.refresh_seen);
}

/// R4: Argo CD may drop the refresh after a sync; ours is asked for and awaited.
#[rstest]
fn a_refresh_that_is_asked_for_is_awaited_and_remembered(ready: Value) {
    let refreshing = with(ready.clone(), "/metadata/annotations/argocd.argoproj.io~1refresh", json!("normal"));
    let asked_for = look(refreshing.clone(), &look(ready.clone(), &asked()).proof);
    assert_eq!((asked_for.release.state, asked_for.need), (ReleaseState::Progressing, None));
    assert!(asked_for.proof.refresh_seen);
    assert_eq!(look(ready, &asked_for.proof).release.state, ReleaseState::Ready);
    assert_eq!(look(refreshing, &proved()).release.state, ReleaseState::Progressing);
}

#[rstest]
fn a_refresh_from_before_the_success_proves_nothing(ready: Value) {
    let running = with(ready.clone(), "/status/operationState", state("Running", &source(), Some(TOKEN)));
    let running = with(running, "/operation", operation(&source(), Some(TOKEN)));
    let refreshing = with(running, "/metadata/annotations/argocd.argoproj.io~1refresh", json!("hard"));
    let seen = look(refreshing, &asked());
    assert!(!seen.proof.refresh_seen);
    assert_eq!(look(ready, &seen.proof).need, Some(Need::Refresh));
}

/// R5.
#[rstest]
#[case::same_second("2026-11-29T10:00:05Z")]
#[case::earlier("2026-11-29T10:00:00Z")]
#[case::later("2026-11-29T11:00:00Z")]
fn timestamps_prove_nothing(ready: Value, #[case] reconciled_at: &str) {
    let application = with(ready, "/status/reconciledAt", json!(reconciled_at));
    assert_eq!(look(application.clone(), &asked()).need, Some(Need::Refresh));
    assert_eq!(look(application, &proved()).release.state, ReleaseState::Ready);
}

/// R6: health that has not caught up is only bounded by the refresh; what it
/// says after that counts, and whatever is not Healthy is not ready.
#[rstest]
#[case::progressing("Progressing", None)]
#[case::degraded("Degraded", Some(Trouble::Degraded))]
#[case::missing("Missing", None)]
#[case::unknown("Unknown", None)]
// R15: a paused Deployment.
#[case::suspended("Suspended", None)]
#[case::later_addition("Thriving", None)]
fn only_healthy_is_ready(ready: Value, #[case] health: &str, #[case] trouble: Option<Trouble>) {
    let seen = look(with(ready, "/status/health", json!({"status": health, "message": "pod x"})), &proved());
    assert_eq!((seen.release.state, seen.release.trouble, seen.need), (ReleaseState::Progressing, trouble, None));
    assert_eq!(seen.release.message, format!("Application/pkg-app: health is {health}: pod x"));
}

#[rstest]
fn health_from_before_our_operation_is_no_trouble_of_it(ready: Value) {
    let degraded = with(ready, "/status/health", json!({"status": "Degraded"}));
    assert_eq!(look(degraded.clone(), &asked()).release.trouble, None);
    let old = with(degraded, "/status/sync/comparedTo/source", old_source());
    assert_eq!(look(old, &proved()).release.trouble, None);
}

#[rstest]
#[case::out_of_sync("OutOfSync")]
#[case::unknown("Unknown")]
fn only_synced_is_ready(ready: Value, #[case] sync: &str) {
    let seen = look(with(ready, "/status/sync/status", json!(sync)), &proved());
    assert_eq!(seen.release.message, format!("Application/pkg-app: is {sync}"));
    assert_eq!(seen.release.state, ReleaseState::Progressing);
}

/// R13: the repository server is away, and the old answers stay.
#[rstest]
fn a_refresh_that_is_never_handled_is_never_ready(ready: Value) {
    let refreshing = with(ready, "/metadata/annotations/argocd.argoproj.io~1refresh", json!("normal"));
    let mut proof = asked();
    for _ in 0..3 {
        let seen = look(refreshing.clone(), &proof);
        assert_eq!((&seen.release.state, seen.need), (&ReleaseState::Progressing, None));
        proof = seen.proof;
    }
}

/// R14 and R15: nothing to be unhealthy (no objects, a DaemonSet with OnDelete)
/// is Healthy to Argo CD. The release is ready; `readyWhen` is what asks for more.
#[rstest]
fn an_application_without_anything_that_has_health_is_ready(ready: Value) {
    assert_eq!(look(with(ready, "/status/resources", json!([])), &proved()).release.state, ReleaseState::Ready);
}

/// R16: a status that cannot be stored, and other errors.
#[rstest]
#[case::unknown("UnknownError", None)]
#[case::invalid("InvalidSpecError", None)]
#[case::sync("SyncError", None)]
#[case::comparison("ComparisonError", Some(Trouble::NoSource))]
fn an_error_is_not_ready(ready: Value, #[case] kind: &str, #[case] trouble: Option<Trouble>) {
    let seen = look(with(ready, "/status/conditions", json!([{"type": kind, "message": "no such\nchart"}])), &proved());
    assert_eq!((seen.release.state, seen.release.trouble), (ReleaseState::Progressing, trouble));
    assert_eq!(seen.release.message, format!("Application/pkg-app: {kind}: no such chart"));
}

#[rstest]
fn a_warning_does_not_count(ready: Value) {
    let warned = with(ready, "/status/conditions", json!([{"type": "OrphanedResourceWarning", "message": "x"}]));
    assert_eq!(look(warned, &proved()).release.state, ReleaseState::Ready);
}

/// R19: deleted and made again, status restored or not.
#[rstest]
fn nothing_seen_on_an_application_proves_anything_of_its_successor(ready: Value) {
    let again = with(ready, "/metadata/uid", json!("uid-2"));
    let seen = look(with(again.clone(), "/status/operationState", state("Succeeded", &source(), None)), &proved());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, Some(Need::Operation)));
    assert!(!seen.proof.succeeded && !seen.proof.refresh_seen);
    let seen = look(again, &proved());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Progressing, Some(Need::Refresh)));
}

/// R21: health flaps; only what is shown now counts.
#[rstest]
fn health_that_flaps_is_followed(ready: Value) {
    let states = ["Healthy", "Progressing", "Healthy"]
        .map(|health| look(with(ready.clone(), "/status/health/status", json!(health)), &proved()).release.state);
    assert_eq!(states, [ReleaseState::Ready, ReleaseState::Progressing, ReleaseState::Ready]);
}

/// R22: Argo CD is down, and its status is frozen.
#[rstest]
fn a_frozen_status_never_becomes_ready_for_a_new_operation(ready: Value) {
    let frozen = with(ready, "/operation", operation(&source(), Some("token-2")));
    let frozen = with(frozen, "/status/operationState", Value::Null);
    let seen = look(frozen, &proved().asked("token-2".into()));
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, None));
}

/// R23: without a status Argo CD could not record an operation.
#[rstest]
#[case::no_status("/status", Value::Null)]
#[case::never_compared("/status/reconciledAt", Value::Null)]
fn an_application_that_was_never_looked_at_is_not_asked_for_anything(
    ready: Value,
    #[case] pointer: &str,
    #[case] value: Value,
) {
    let seen = look(with(ready, pointer, value), &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, None));
    assert_eq!(
        seen.release.message,
        "Application/pkg-app: Argo CD has not looked at it yet; if it never does, namespace packages is not among its application.namespaces"
    );
}

#[rstest]
fn zero_values_that_argo_cd_drops_make_no_difference_and_values_do(ready: Value) {
    let mut compared = source();
    compared["helm"]["skipCrds"] = json!(false);
    compared["helm"]["valueFiles"] = json!([]);
    compared["path"] = json!("");
    compared["directory"] = json!({"recurse": false});
    let seen = look(with(ready.clone(), "/status/sync/comparedTo/source", compared.clone()), &proved());
    assert_eq!(seen.release.state, ReleaseState::Ready);
    compared["helm"]["valuesObject"].as_object_mut().unwrap().remove("debug");
    let seen = look(with(ready, "/status/sync/comparedTo/source", compared), &proved());
    assert_eq!(seen.release.state, ReleaseState::Progressing);
}

/// Argo CD writes what it has compared as a merge patch, which drops nulls.
#[rstest]
fn values_that_are_null_make_no_difference(ready: Value) {
    let pointer = "/status/sync/comparedTo/source/helm/valuesObject/unset";
    assert_eq!(look(with(ready, pointer, json!({"a": null})), &proved()).release.state, ReleaseState::Progressing);
    let mut application = application();
    application["status"]["sync"]["comparedTo"]["source"]["helm"]["valuesObject"]["unset"] = Value::Null;
    assert_eq!(look(application, &proved()).release.state, ReleaseState::Ready);
}

#[rstest]
#[case::added_value("/spec/source/helm/valuesObject/extra", json!(1))]
#[case::added_file("/spec/source/helm/valueFiles", json!(["more.yaml"]))]
#[case::second_source("/spec/sources", json!([old_source()]))]
fn a_source_with_more_than_was_written_is_not_judged(ready: Value, #[case] pointer: &str, #[case] value: Value) {
    let seen = look(with(ready, pointer, value), &proved());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Outdated, None));
}

#[rstest]
#[case::skipped("/metadata/annotations/argocd.argoproj.io~1skip-reconcile", json!("true"), ReleaseState::Suspended)]
#[case::skipped_with_one("/metadata/annotations/argocd.argoproj.io~1skip-reconcile", json!("1"), ReleaseState::Suspended)]
#[case::skipped_with_a_capital("/metadata/annotations/argocd.argoproj.io~1skip-reconcile", json!("True"), ReleaseState::Suspended)]
#[case::not_skipped("/metadata/annotations/argocd.argoproj.io~1skip-reconcile", json!("yes"), ReleaseState::Ready)]
#[case::deleting("/metadata/deletionTimestamp", json!("2026-11-29T10:00:00Z"), ReleaseState::Deleting)]
#[case::edited("/spec/source/targetRevision", json!("9.9.9"), ReleaseState::Outdated)]
#[case::older_digest("/metadata/annotations/windlass.dev~1digest", json!("v1:old"), ReleaseState::Outdated)]
#[case::not_ours("/metadata/labels", json!({}), ReleaseState::Foreign(Foreign { owner: None, adopt: None }))]
fn what_is_not_the_wanted_object_is_not_judged(
    ready: Value,
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] expected: ReleaseState,
) {
    let seen = look(with(ready, pointer, value), &proved());
    assert_eq!((seen.release.state, seen.need, seen.proof), (expected, None, proved()));
}

fn resource(kind: &str, name: &str, status: &str) -> Value {
    json!({"kind": kind, "namespace": "ns", "name": name, "status": status})
}

#[rstest]
fn what_is_out_of_sync_is_named(ready: Value) {
    let differs = |count: usize| {
        let mut resources = vec![resource("Service", "web", "Synced")];
        resources.extend((0..count).map(|n| resource("Deployment", &format!("web-{n}"), "OutOfSync")));
        let out = with(ready.clone(), "/status/sync/status", json!("OutOfSync"));
        with(out, "/status/resources", resources.into())
    };
    let says = |application: Value| look(application, &proved()).release.message;
    assert_eq!(says(differs(1)), "Application/pkg-app: is OutOfSync: Deployment/ns/web-0");
    let many = "is OutOfSync: Deployment/ns/web-0, Deployment/ns/web-1, Deployment/ns/web-2 and 2 more";
    assert_eq!(says(differs(5)), format!("Application/pkg-app: {many}"));
    assert_eq!(says(differs(0)), "Application/pkg-app: is OutOfSync");
    let mut left_over = resource("ClusterRole", "web", "OutOfSync");
    left_over["requiresPruning"] = json!(true);
    left_over["namespace"] = json!("");
    let left_over = with(differs(0), "/status/resources", json!([left_over]));
    assert_eq!(says(left_over), "Application/pkg-app: is OutOfSync: ClusterRole/web (to be pruned)");
}

/// Outside of any turn; while Argo CD is at it nothing is said.
#[rstest]
fn what_stays_out_of_sync_is_trouble(ready: Value) {
    let out = with(ready.clone(), "/status/sync/status", json!("OutOfSync"));
    let out = with(out, "/status/resources", json!([resource("Deployment", "web", "OutOfSync")]));
    let found = trouble_now(&object(out.clone()));
    assert_eq!(found.as_deref(), Some("Application/pkg-app: is OutOfSync: Deployment/ns/web"));
    let healing = with(out, "/operation", operation(&source(), None));
    assert_eq!(trouble_now(&object(healing)), None);
    assert_eq!(trouble_now(&object(ready)), None);
}

/// The chart is there: what the API server refuses is not missing.
#[rstest]
#[case::not_rendered("Failed to load target state: no such chart", Some(Trouble::NoSource))]
#[case::not_compared(
    "Failed to compare desired state to live state: failed to calculate diff: field is immutable",
    None
)]
fn what_the_api_server_refuses_is_no_missing_chart(
    ready: Value,
    #[case] message: &str,
    #[case] trouble: Option<Trouble>,
) {
    let application = with(ready, "/status/conditions", json!([{"type": "ComparisonError", "message": message}]));
    let seen = look(application, &proved()).release;
    assert_eq!((seen.state, seen.trouble), (ReleaseState::Progressing, trouble));
    assert!(seen.message.ends_with(message), "{}", seen.message);
}
