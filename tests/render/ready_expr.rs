//! What a release waits for without a controller, evaluated.
//!
//! Flux's own evaluator (fluxcd/pkg/runtime 0.115.0 on cel-go 0.29.2, compiled with
//! the variables `self` and `dep`) gave the same verdict in every case here and in
//! `native.rs`.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::engine::{ChartEvidence, DependencyState, ready_expr};
use windlass::package::digest::ComponentDigest;
use windlass::package::version::Version;

use super::cel::evaluate;
use super::support::fixed_digest;

fn digest(fill: char) -> ComponentDigest {
    ComponentDigest::from_record(format!("v1:{}", fill.to_string().repeat(64)))
}

/// A release that runs the wanted state.
fn ready() -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "app-db", "generation": 3,
                     "annotations": {"windlass.dev/digest": fixed_digest().as_str(), "windlass.dev/upstream": "v1:abc"}},
        "spec": {"interval": "10m"},
        "status": {
            "observedGeneration": 3,
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Released", "status": "True"}],
            "history": [{"chartVersion": "1.1.0", "status": "deployed", "version": 2},
                        {"chartVersion": "1.0.0", "status": "superseded", "version": 1}],
        },
    })
}

fn patched(pointer: &str, value: Value) -> Value {
    let mut dep = ready();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    match dep.pointer_mut(parent).unwrap() {
        Value::Object(map) => {
            if value.is_null() {
                map.remove(&key)
            } else {
                map.insert(key, value)
            };
        }
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        other => panic!("{other}"),
    }
    dep
}

fn wanted(chart: ChartEvidence<'_>) -> String {
    ready_expr(&DependencyState { digest: &fixed_digest(), upstream: Some("v1:abc"), chart })
}

#[test]
fn the_expression_is_readable() {
    insta::assert_snapshot!(wanted(ChartEvidence::Exact("1.1.0")).replace(" && ", "\n&& "));
}

#[test]
fn the_new_state_is_enough() {
    assert_eq!(evaluate(&wanted(ChartEvidence::Exact("1.1.0")), &ready()), Ok(true));
}

#[rstest]
#[case::old_digest("/metadata/annotations/windlass.dev~1digest", json!("v1:old"))]
#[case::something_above_is_old("/metadata/annotations/windlass.dev~1upstream", json!("v1:old"))]
#[case::no_annotations("/metadata/annotations", Value::Null)]
#[case::new_spec_not_seen("/metadata/generation", json!(4))]
#[case::suspended("/spec/suspend", json!(true))]
#[case::not_ready("/status/conditions/0", json!({"type": "Ready", "status": "False"}))]
#[case::unknown("/status/conditions/0", json!({"type": "Ready", "status": "Unknown"}))]
#[case::reconciling("/status/conditions/1", json!({"type": "Reconciling", "status": "True"}))]
#[case::stalled("/status/conditions/1", json!({"type": "Stalled", "status": "True"}))]
#[case::no_conditions("/status/conditions", Value::Null)]
#[case::empty_conditions("/status/conditions", json!([]))]
#[case::old_chart("/status/history/0/chartVersion", json!("1.0.0"))]
#[case::failed_release("/status/history/0/status", json!("failed"))]
#[case::empty_history("/status/history", json!([]))]
#[case::no_history("/status/history", Value::Null)]
#[case::no_status("/status", Value::Null)]
#[case::empty_status("/status", json!({}))]
#[case::new_object("/status", json!({"observedGeneration": -1}))]
fn anything_less_is_false_and_never_an_error(#[case] pointer: &str, #[case] value: Value) {
    let dep = patched(pointer, value);
    assert_eq!(evaluate(&wanted(ChartEvidence::Exact("1.1.0")), &dep), Ok(false));
}

#[test]
fn a_values_only_change_is_held_back_by_the_digest() {
    let expr =
        ready_expr(&DependencyState { digest: &digest('b'), upstream: None, chart: ChartEvidence::Exact("1.1.0") });
    assert_eq!(evaluate(&expr, &ready()), Ok(false));
}

#[rstest]
#[case::plain("1.1.0", true)]
#[case::with_the_digest_of_the_artifact("1.1.0+0123456789ab", true)]
#[case::longer("1.1.0-rc.1", false)]
#[case::another("1.1.01", false)]
fn charts_of_an_oci_repository_carry_a_digest(#[case] version: &str, #[case] enough: bool) {
    let dep = patched("/status/history/0/chartVersion", json!(version));
    for written in ["1.1.0", "v1.1.0+build"] {
        let wanted = wanted(ChartEvidence::Oci(&Version::parse(written).unwrap()));
        let dep =
            if version == "1.1.0" { patched("/status/history/0/chartVersion", json!(written)) } else { dep.clone() };
        assert_eq!(evaluate(&wanted, &dep), Ok(enough));
    }
}

/// source-controller takes one for the other, and the history has the chart's own word.
#[rstest]
#[case::chart_with_v("1.1.0", "v1.1.0", true)]
#[case::chart_without_v("v1.1.0", "1.1.0", true)]
#[case::same("v1.1.0", "v1.1.0", true)]
#[case::another("1.1.0", "v1.1.1", false)]
fn a_leading_v_does_not_count(#[case] wanted_version: &str, #[case] found: &str, #[case] enough: bool) {
    let dep = patched("/status/history/0/chartVersion", json!(found));
    assert_eq!(evaluate(&wanted(ChartEvidence::Exact(wanted_version)), &dep), Ok(enough));
    let oci = wanted(ChartEvidence::Oci(&Version::parse(wanted_version).unwrap()));
    assert_eq!(evaluate(&oci, &dep), Ok(enough));
}

#[test]
fn the_version_of_a_path_chart_is_not_asked_for() {
    let dep = patched("/status/history/0/chartVersion", json!("0.0.0"));
    assert_eq!(evaluate(&wanted(ChartEvidence::Unknown), &dep), Ok(true));
}

#[rstest]
#[case::quote("1.0.0' || true || '")]
#[case::backslash("1.0.0\\' || true || '")]
#[case::newline("1.0.0\n' || true")]
#[case::control("\u{0}\u{7f}\u{85}")]
#[case::substitution("${x} {{ y }}")]
fn text_never_becomes_code(#[case] text: &str) {
    let expr = wanted(ChartEvidence::Exact(text));
    assert_eq!(evaluate(&expr, &ready()), Ok(false), "{expr}");
    let dep = patched("/status/history/0/chartVersion", json!(text));
    assert_eq!(evaluate(&expr, &dep), Ok(true), "{expr}");
}
