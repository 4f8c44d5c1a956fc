//! Whether an entry holds for an object.

use rstest::rstest;

use super::*;

#[rstest]
#[case::condition(condition_entry(), kubevirt(), "KubeVirt/kubevirt: Available is True (reason AllComponentsReady)")]
#[case::wanted_false(entry(json!({"condition": "Progressing", "status": "False"})), kubevirt(), "KubeVirt/kubevirt: Progressing is False")]
#[case::no_observed_generation(
    condition_entry(),
    with(kubevirt(), "/status/observedGeneration", Value::Null),
    "KubeVirt/kubevirt: Available is True (reason AllComponentsReady)"
)]
#[case::no_generation(
    condition_entry(),
    with(kubevirt(), "/metadata/generation", Value::Null),
    "KubeVirt/kubevirt: Available is True (reason AllComponentsReady)"
)]
fn an_entry_holds(#[case] entry: Entry, #[case] object: Value, #[case] message: &str) {
    let seen = observe(&entry, object);
    assert_eq!((seen.holds, seen.failed, seen.message.as_str()), (Holding::Yes, Holding::No, message));
}

#[test]
fn an_expression_that_is_true_holds() {
    let seen = observe(&expr_entry(), kubevirt());
    assert_eq!((seen.holds, seen.failed), (Holding::Yes, Holding::No));
    assert_eq!((seen.status, seen.last_transition_time), (None, None));
}

#[rstest]
#[case::status("/status/conditions/1/status", json!("False"), ": Available is False (reason AllComponentsReady)")]
#[case::unknown("/status/conditions/1/status", json!("Unknown"), ": Available is Unknown (reason AllComponentsReady)")]
#[case::no_status(
    "/status/conditions/1/status",
    Value::Null,
    ": Available is without a status (reason AllComponentsReady)"
)]
#[case::no_condition("/status/conditions/1", json!({}), ": condition Available is not there yet")]
#[case::no_conditions("/status/conditions", Value::Null, ": condition Available is not there yet")]
#[case::no_object_status("/status", Value::Null, ": condition Available is not there yet")]
#[case::going("/metadata/deletionTimestamp", json!("2026-11-29T09:00:00Z"), " is being deleted")]
#[case::behind("/metadata/generation", json!(4), ": observedGeneration is 3, the object is at generation 4")]
#[case::condition_behind("/status/conditions/1/observedGeneration", json!(2), ": observedGeneration is 2, the object is at generation 3")]
fn a_condition_that_does_not_hold_says_what_was_found(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] message: &str,
) {
    let seen = observe(&condition_entry(), with(kubevirt(), pointer, value));
    assert_eq!((seen.holds, seen.failed), (Holding::No, Holding::No));
    assert_eq!(seen.message, format!("KubeVirt/kubevirt{message}"));
}

#[rstest]
#[case::old_version("/status/observedKubeVirtVersion", json!("v1.8.2"), ": `object.status.observedKubeVirtVersion == 'v' + version` is false")]
#[case::second_part("/status/conditions/1/status", json!("False"), ": `object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')` is false")]
#[case::missing_field(
    "/status/observedKubeVirtVersion",
    Value::Null,
    ": status.observedKubeVirtVersion is not there yet"
)]
#[case::missing_status("/status", Value::Null, ": status is not there yet")]
#[case::other_type("/status/conditions", json!("none"), ": `object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')` fails: Unexpected type: got 'string', want 'iterable'")]
#[case::behind("/metadata/generation", json!(4), ": observedGeneration is 3, the object is at generation 4")]
fn an_expression_that_does_not_hold_says_what_was_found(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] message: &str,
) {
    let seen = observe(&expr_entry(), with(kubevirt(), pointer, value));
    assert_eq!((seen.holds, seen.message), (Holding::No, format!("KubeVirt/kubevirt{message}")));
}

#[test]
fn a_value_that_is_no_truth_does_not_hold() {
    let seen = observe(&entry(json!({"expr": "object.status.phase"})), kubevirt());
    assert_eq!(seen.holds, Holding::No);
    assert_eq!(seen.message, "KubeVirt/kubevirt: `object.status.phase` is of type string, not bool");
}

#[rstest]
#[case::absent(Lookup::Absent, Holding::No, false, "KubeVirt/kubevirt does not exist")]
#[case::kind_unknown(
    Lookup::KindUnknown,
    Holding::No,
    false,
    "KubeVirt/kubevirt: the cluster does not know KubeVirt of kubevirt.io/v1 yet"
)]
#[case::denied(
    Lookup::Denied,
    Holding::Unknown,
    true,
    "KubeVirt/kubevirt may not be read: grant get, list and watch to the account in use"
)]
#[case::not_impersonated(
    Lookup::NotImpersonated,
    Holding::Unknown,
    true,
    "KubeVirt/kubevirt may not be read: Windlass may not act as the account in use, see manifests/tenant"
)]
#[case::pending(Lookup::Pending, Holding::Unknown, false, "KubeVirt/kubevirt has not been read yet")]
fn without_an_object_the_reason_is_named(
    #[case] lookup: Lookup,
    #[case] holds: Holding,
    #[case] denied: bool,
    #[case] message: &str,
) {
    let seen = condition_entry().observe(&lookup, VERSIONS);
    assert_eq!((seen.holds, seen.failed, seen.denied), (holds, holds, denied));
    assert_eq!((seen.message.as_str(), seen.uid), (message, None));
}

#[rstest]
#[case::failed("/status/phase", json!("Failed"), Holding::Yes)]
#[case::not_failed("/status/phase", json!("Deploying"), Holding::No)]
#[case::no_phase("/status/phase", Value::Null, Holding::No)]
fn failed_is_looked_at_beside_the_test(#[case] pointer: &str, #[case] value: Value, #[case] failed: Holding) {
    assert_eq!(observe(&condition_entry(), with(kubevirt(), pointer, value)).failed, failed);
}

#[test]
fn failed_counts_although_the_object_was_not_observed_since() {
    let object = with(with(kubevirt(), "/status/phase", json!("Failed")), "/metadata/generation", json!(4));
    let seen = observe(&condition_entry(), object);
    assert_eq!((seen.holds, seen.failed), (Holding::No, Holding::Yes));
    assert_eq!(seen.message, "KubeVirt/kubevirt: `object.status.phase == 'Failed'` is true");
}

#[test]
fn an_entry_with_a_wrong_expression_is_refused() {
    let namespace = Namespace::parse("kubevirt").unwrap();
    let wrong = |field: &str| {
        let text = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "expr": "true", field: "object.("});
        let entry: api::ReadyWhen = serde_json::from_value(text).unwrap();
        Entry::parse(&parse_ready_when(&entry, &namespace).unwrap()).unwrap_err().field
    };
    assert_eq!((wrong("expr"), wrong("failed")), ("expr", "failed"));
}
