use rstest::rstest;
use serde_json::json;

use super::*;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn wanted() -> Map<String, Value> {
    object(json!({
        "kind": "HelmChart",
        "metadata": {"name": "windlass-0123456789ab", "labels": {"app.kubernetes.io/managed-by": "windlass"}},
        "spec": {"chart": "app", "version": "1.1.0"},
    }))
}

fn chart(status: Value) -> Map<String, Value> {
    let mut live = wanted();
    live["metadata"]["generation"] = json!(1);
    live.insert("status".into(), status);
    live
}

fn fetched(revision: &str, digest: &str) -> Map<String, Value> {
    chart(json!({
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}],
        "artifact": {"revision": revision, "digest": digest},
        "observedSourceArtifactRevision": "main@sha1:abc",
    }))
}

fn look(live: &Map<String, Value>, digest: Option<&str>) -> SourceState {
    source(Some(live), &wanted(), Some(ChartArtifact { version: "1.1.0", digest }))
}

#[rstest]
#[case::http("1.1.0", "sha256:aa", None)]
#[case::http_pinned("1.1.0", "sha256:aa", Some("sha256:aa"))]
#[case::oci("1.1.0@sha256:mm", "sha256:aa", None)]
#[case::oci_pinned("1.1.0@sha256:mm", "sha256:aa", Some("sha256:mm"))]
#[case::oci_digest_only("sha256:mm", "sha256:aa", Some("sha256:mm"))]
#[case::build_metadata("1.1.0+7", "sha256:aa", None)]
#[case::build_metadata_as_tag("v1.1.0_7@sha256:mm", "sha256:aa", None)]
fn the_wanted_chart_is_ready(#[case] revision: &str, #[case] digest: &str, #[case] pinned: Option<&str>) {
    let expected = SourceState::Ready {
        revision: revision.to_owned(),
        digest: digest.to_owned(),
        built_from: Some("main@sha1:abc".to_owned()),
    };
    assert_eq!(look(&fetched(revision, digest), pinned), expected);
}

#[rstest]
#[case::version("1.0.0", "sha256:aa", None, "the chart's version is 1.0.0, not 1.1.0")]
#[case::tag("1.0.0@sha256:mm", "sha256:aa", None, "the chart's version is 1.0.0, not 1.1.0")]
#[case::digest("1.1.0", "sha256:bb", Some("sha256:aa"), "the chart's digest is sha256:bb, not sha256:aa")]
#[case::archive_is_not_manifest(
    "1.1.0@sha256:mm",
    "sha256:aa",
    Some("sha256:aa"),
    "the chart's digest is sha256:mm, not sha256:aa"
)]
fn another_chart_is_a_mismatch(
    #[case] revision: &str,
    #[case] digest: &str,
    #[case] pinned: Option<&str>,
    #[case] message: &str,
) {
    let message = format!("HelmChart/windlass-0123456789ab: {message}");
    assert_eq!(look(&fetched(revision, digest), pinned), SourceState::Mismatch { message });
}

fn told(status: &str, generation: i64, observed: i64) -> Map<String, Value> {
    chart(json!({
        "observedGeneration": observed,
        "conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "m", "observedGeneration": generation}],
    }))
}

#[rstest]
#[case::nothing_yet(chart(json!({})), "Flux has not answered yet")]
#[case::about_an_older_spec(told("False", 0, 0), "Flux has not answered yet")]
#[case::unknown(told("Unknown", 1, 0), "Ready is Unknown (R): m")]
#[case::generation_not_written(told("True", 1, 0), "Ready is True (R): m")]
fn no_answer_about_the_present_spec_is_progress(#[case] live: Map<String, Value>, #[case] message: &str) {
    let message = format!("HelmChart/windlass-0123456789ab: {message}");
    assert_eq!(look(&live, None), SourceState::Progressing { message });
}

#[test]
fn ready_without_an_artifact_is_progress() {
    assert!(matches!(look(&told("True", 1, 1), None), SourceState::Progressing { .. }));
}

#[test]
fn a_chart_that_cannot_be_had_says_why() {
    let message = "HelmChart/windlass-0123456789ab: Ready is False (R): m".to_owned();
    assert_eq!(look(&told("False", 1, 1), None), SourceState::Unavailable { message });
}

#[test]
fn a_suspended_source_cannot_be_had() {
    let mut live = fetched("1.1.0", "sha256:aa");
    live["spec"]["suspend"] = json!(true);
    assert!(matches!(look(&live, None), SourceState::Unavailable { .. }));
}

#[test]
fn what_is_not_the_wanted_source_is_not_judged() {
    assert_eq!(source(None, &wanted(), None), SourceState::Absent);
    let mut foreign = fetched("1.1.0", "sha256:aa");
    foreign["metadata"].as_object_mut().unwrap().remove("labels");
    assert!(matches!(look(&foreign, None), SourceState::Foreign { .. }));
    let mut edited = fetched("1.1.0", "sha256:aa");
    edited["spec"]["version"] = json!("*");
    assert!(matches!(look(&edited, None), SourceState::Outdated { .. }));
    let mut going = fetched("1.1.0", "sha256:aa");
    going["metadata"]["deletionTimestamp"] = json!("2026-11-29T10:00:00Z");
    assert!(matches!(look(&going, None), SourceState::Outdated { .. }));
}

/// That of the source is told for itself.
#[rstest]
#[case::not_fetched_yet("NoSourceArtifact", false)]
#[case::not_there_yet("SourceUnavailable", false)]
#[case::no_such_version("InvalidChartReference", true)]
fn a_chart_whose_source_is_not_there_yet_is_awaited(#[case] reason: &str, #[case] is_missing: bool) {
    let ready = json!({"type": "Ready", "status": "False", "reason": reason, "observedGeneration": 1});
    let found = look(&chart(json!({"observedGeneration": -1, "conditions": [ready]})), None);
    assert_eq!(matches!(found, SourceState::Unavailable { .. }), is_missing, "{found:?}");
    assert_eq!(matches!(found, SourceState::Progressing { .. }), !is_missing, "{found:?}");
}
