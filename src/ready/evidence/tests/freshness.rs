//! Whether what holds, or has failed, is about the move.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// During an upgrade; the turn began at 0.
fn moment(release_ready_at: Option<i64>, now: i64) -> Moment {
    let freshness =
        Freshness::Fresh { release_ready_at: release_ready_at.map(at), turn_began: Some(at(0)), version_changed: true };
    Moment { now: at(now), freshness }
}

fn recorded(entry: &Entry, object: Value) -> BeforeRead {
    remember(0, &observe(entry, object)).unwrap()
}

fn failed(object: Value) -> Value {
    with(object, "/status/phase", json!("Failed"))
}

fn unavailable(object: Value) -> Value {
    with(object, "/status/conditions/1/status", json!("False"))
}

fn old_version(object: Value) -> Value {
    with(object, "/status/observedKubeVirtVersion", json!("v1.8.2"))
}

#[test]
fn a_condition_left_over_from_the_old_operator_counts_only_after_settle() {
    let entry = condition_entry();
    let before = recorded(&entry, kubevirt());
    let judge_at = |now| judge(&entry, &observe(&entry, kubevirt()), Some(&before), moment(Some(10), now));
    let message = "KubeVirt/kubevirt: Available is True (reason AllComponentsReady) as before; \
        that counts once it has held for 1m";
    for now in [10, 69] {
        assert_eq!(judge_at(now), Verdict::Waiting { message: message.to_owned(), until: Some(at(70)) });
    }
    assert_eq!(judge_at(70), Verdict::Ready);
}

#[test]
fn settle_begins_with_the_later_of_release_and_turn() {
    let entry = condition_entry();
    let before = recorded(&entry, kubevirt());
    let judge_at = |now, ready, began| {
        let freshness = Freshness::Fresh { release_ready_at: ready, turn_began: began, version_changed: false };
        judge(&entry, &observe(&entry, kubevirt()), Some(&before), Moment { now: at(now), freshness })
    };
    assert_eq!(judge_at(160, Some(at(0)), Some(at(100))), Verdict::Ready);
    assert_ne!(judge_at(159, Some(at(0)), Some(at(100))), Verdict::Ready);
    assert_ne!(judge_at(1000, None, Some(at(0))), Verdict::Ready);
    assert_ne!(judge_at(1000, Some(at(0)), None), Verdict::Ready);
}

#[rstest]
#[case::transition("/status/conditions/1/lastTransitionTime", json!("2026-11-29T10:00:00Z"))]
// Another machine's clock may be behind: earlier is different all the same.
#[case::earlier_transition("/status/conditions/1/lastTransitionTime", json!("2026-11-29T08:00:00Z"))]
#[case::made_again("/metadata/uid", json!("uid-2"))]
fn what_is_different_from_the_record_is_fresh(#[case] pointer: &str, #[case] value: Value) {
    let entry = condition_entry();
    let before = recorded(&entry, kubevirt());
    let now = observe(&entry, with(kubevirt(), pointer, value));
    assert_eq!(judge(&entry, &now, Some(&before), moment(None, 1)), Verdict::Ready);
}

#[rstest]
#[case::unavailable(Lookup::Found(unavailable(kubevirt())))]
#[case::absent(Lookup::Absent)]
#[case::kind_unknown(Lookup::KindUnknown)]
fn what_did_not_hold_before_is_fresh(#[case] lookup: Lookup) {
    let entry = condition_entry();
    let before = remember(0, &entry.observe(&lookup, VERSIONS)).unwrap();
    assert_eq!(judge(&entry, &observe(&entry, kubevirt()), Some(&before), moment(None, 1)), Verdict::Ready);
}

#[rstest]
#[case::unavailable(Lookup::Found(unavailable(kubevirt())), true)]
#[case::absent(Lookup::Absent, true)]
#[case::held(Lookup::Found(kubevirt()), false)]
#[case::denied(Lookup::Denied, false)]
#[case::pending(Lookup::Pending, false)]
fn what_was_seen_not_holding_since_is_fresh(#[case] between: Lookup, #[case] fresh: bool) {
    let entry = condition_entry();
    let mut before = recorded(&entry, kubevirt());
    follow(&mut before, &entry.observe(&between, VERSIONS));
    follow(&mut before, &observe(&entry, kubevirt()));
    let verdict = judge(&entry, &observe(&entry, kubevirt()), Some(&before), moment(Some(0), 1));
    assert_eq!(verdict == Verdict::Ready, fresh, "{verdict:?}");
}

#[rstest]
#[case::version_changed(true, true)]
#[case::same_version(false, false)]
fn an_expression_that_names_the_version_is_fresh_by_itself_when_it_changed(#[case] changed: bool, #[case] fresh: bool) {
    let entry = expr_entry();
    assert!(entry.names_version() && !entry.failed_names_version());
    let before = recorded(&entry, kubevirt());
    let freshness =
        Freshness::Fresh { release_ready_at: Some(at(0)), turn_began: Some(at(0)), version_changed: changed };
    let verdict = judge(&entry, &observe(&entry, kubevirt()), Some(&before), Moment { now: at(1), freshness });
    assert_eq!(verdict == Verdict::Ready, fresh, "{verdict:?}");
}

#[rstest]
#[case::bound_name("object.items.all(version, version == '1')", false)]
#[case::text("object.status.version == '1'", false)]
#[case::from_version("object.status.version != fromVersion", false)]
#[case::named("object.status.version.startsWith(version)", true)]
fn only_the_variable_itself_names_the_version(#[case] expr: &str, #[case] names: bool) {
    assert_eq!(entry(json!({"expr": expr})).names_version(), names);
}

#[test]
fn an_expression_that_became_true_is_fresh() {
    let entry = expr_entry();
    let before = recorded(&entry, old_version(kubevirt()));
    assert_eq!(judge(&entry, &observe(&entry, kubevirt()), Some(&before), moment(None, 1)), Verdict::Ready);
}

#[test]
fn what_does_not_hold_waits_with_what_was_found() {
    let entry = condition_entry();
    let before = recorded(&entry, kubevirt());
    let verdict = judge(&entry, &observe(&entry, unavailable(kubevirt())), Some(&before), moment(Some(0), 999));
    let message = "KubeVirt/kubevirt: Available is False (reason AllComponentsReady)".to_owned();
    assert_eq!(verdict, Verdict::Waiting { message, until: None });
}

#[rstest]
#[case::denied(Lookup::Denied)]
#[case::pending(Lookup::Pending)]
fn what_could_not_be_read_before_leaves_only_time_as_proof(#[case] lookup: Lookup) {
    let entry = condition_entry();
    let before = remember(0, &entry.observe(&lookup, VERSIONS));
    assert_eq!(before, None);
    let judge_at = |now| judge(&entry, &observe(&entry, kubevirt()), before.as_ref(), moment(Some(0), now));
    assert_ne!(judge_at(59), Verdict::Ready);
    assert_eq!(judge_at(60), Verdict::Ready);
}

#[test]
fn a_denied_object_tells_nothing_but_its_name() {
    let entry = condition_entry();
    let before = recorded(&entry, kubevirt());
    let verdict = judge(&entry, &entry.observe(&Lookup::Denied, VERSIONS), Some(&before), moment(Some(0), 999));
    assert_eq!(
        verdict,
        Verdict::Denied {
            message: "KubeVirt/kubevirt may not be read: grant get, list and watch to the account in use".into()
        }
    );
}

#[test]
fn what_has_failed_since_fails() {
    let entry = condition_entry();
    let before = recorded(&entry, kubevirt());
    let verdict = judge(&entry, &observe(&entry, failed(kubevirt())), Some(&before), moment(None, 1));
    assert_eq!(
        verdict,
        Verdict::Failed { message: "KubeVirt/kubevirt: `object.status.phase == 'Failed'` is true".into() }
    );
}

#[test]
fn what_had_failed_before_the_fix_does_not_fail_the_fix_until_it_has_held() {
    let entry = condition_entry();
    let before = recorded(&entry, failed(kubevirt()));
    let judge_at = |ready, now| judge(&entry, &observe(&entry, failed(kubevirt())), Some(&before), moment(ready, now));
    let waiting = |until| Verdict::Waiting {
        message: "KubeVirt/kubevirt: `object.status.phase == 'Failed'` is true".into(),
        until,
    };
    assert_eq!(judge_at(None, 999), waiting(None));
    assert_eq!(judge_at(Some(10), 69), waiting(Some(at(70))));
    assert!(matches!(judge_at(Some(10), 70), Verdict::Failed { .. }));
}

#[test]
fn what_had_failed_before_and_recovered_can_fail_again() {
    let entry = condition_entry();
    let mut before = recorded(&entry, failed(kubevirt()));
    follow(&mut before, &observe(&entry, kubevirt()));
    let verdict = judge(&entry, &observe(&entry, failed(kubevirt())), Some(&before), moment(None, 1));
    assert!(matches!(verdict, Verdict::Failed { .. }));
}

#[test]
fn what_failed_on_an_object_made_since_fails() {
    let entry = condition_entry();
    let before = recorded(&entry, failed(kubevirt()));
    let again = with(failed(kubevirt()), "/metadata/uid", json!("uid-2"));
    let verdict = judge(&entry, &observe(&entry, again), Some(&before), moment(None, 1));
    assert!(matches!(verdict, Verdict::Failed { .. }));
}

#[test]
fn what_nobody_knew_to_have_failed_before_does_not_fail_the_fix() {
    let entry = condition_entry();
    let unknown = Observation { failed: Holding::Unknown, ..observe(&entry, kubevirt()) };
    let before = remember(0, &unknown).unwrap();
    let verdict = judge(&entry, &observe(&entry, failed(kubevirt())), Some(&before), moment(None, 1));
    assert!(matches!(verdict, Verdict::Waiting { .. }), "{verdict:?}");
}

#[test]
fn failed_that_names_a_version_that_changed_fails_at_once() {
    let entry = entry(json!({"condition": "Available", "failed": "object.status.failedVersion == version"}));
    let object = || with(kubevirt(), "/status/failedVersion", json!("1.9.0"));
    let before = recorded(&entry, object());
    let verdict = judge(&entry, &observe(&entry, object()), Some(&before), moment(None, 1));
    assert!(matches!(verdict, Verdict::Failed { .. }));
}

#[test]
fn what_is_failed_is_not_ready_although_it_holds() {
    let entry = condition_entry();
    let before = recorded(&entry, failed(unavailable(kubevirt())));
    let verdict = judge(&entry, &observe(&entry, failed(kubevirt())), Some(&before), moment(Some(0), 1));
    assert!(matches!(verdict, Verdict::Waiting { .. }), "{verdict:?}");
}

#[test]
fn without_a_demand_for_evidence_what_is_true_now_counts() {
    let entry = condition_entry();
    let before = recorded(&entry, failed(kubevirt()));
    let moment = Moment { now: at(0), freshness: Freshness::Any };
    assert_eq!(judge(&entry, &observe(&entry, kubevirt()), Some(&before), moment), Verdict::Ready);
    assert!(matches!(judge(&entry, &observe(&entry, failed(kubevirt())), None, moment), Verdict::Failed { .. }));
}

fn observations() -> impl Strategy<Value = Lookup> {
    let flags = (any::<bool>(), any::<bool>(), 0..3_u8, 0..3_u8);
    let found = flags.prop_map(|(available, failing, uid, hour)| {
        let mut object = with(kubevirt(), "/metadata/uid", json!(format!("uid-{uid}")));
        let transition = json!(format!("2026-11-29T0{hour}:00:00Z"));
        object = with(object, "/status/conditions/1/lastTransitionTime", transition);
        object = if available { object } else { unavailable(object) };
        Lookup::Found(if failing { failed(object) } else { object })
    });
    prop_oneof![
        6 => found,
        1 => Just(Lookup::Absent),
        1 => Just(Lookup::KindUnknown),
        1 => Just(Lookup::Denied),
        1 => Just(Lookup::Pending),
    ]
}

proptest! {
    /// However an object changes, an entry is ready only when it holds, and before
    /// `settle` only when something was different from the record at some time.
    #[test]
    fn ready_is_never_stale(first in observations(), since in prop::collection::vec(observations(), 1..6), now in 0..120_i64) {
        let entry = condition_entry();
        let mut before = remember(0, &entry.observe(&first, VERSIONS));
        let mut last = entry.observe(&first, VERSIONS);
        let mut changed = false;
        for lookup in &since {
            last = entry.observe(lookup, VERSIONS);
            changed |= last.holds != Holding::Unknown && *lookup != first;
            if let Some(before) = &mut before {
                follow(before, &last);
            }
        }
        let verdict = judge(&entry, &last, before.as_ref(), moment(Some(0), now));
        if verdict == Verdict::Ready {
            prop_assert_eq!(last.holds, Holding::Yes);
            prop_assert_eq!(last.failed, Holding::No);
            let known = before.is_some();
            prop_assert!(now >= 60 || (known && (changed || !before.as_ref().is_some_and(|before| before.value))));
        }
        if matches!(verdict, Verdict::Failed { .. }) {
            prop_assert_eq!(last.failed, Holding::Yes);
            prop_assert!(now >= 60 || (before.is_some() && changed));
        }
    }

    /// A record only ever gains: what was seen once stays seen.
    #[test]
    fn following_twice_is_following_once(first in observations(), then in observations()) {
        let entry = condition_entry();
        if let Some(before) = remember(0, &entry.observe(&first, VERSIONS)) {
            let seen = entry.observe(&then, VERSIONS);
            let mut once = before.clone();
            follow(&mut once, &seen);
            let mut twice = once.clone();
            follow(&mut twice, &seen);
            prop_assert_eq!(&once, &twice);
            prop_assert!(once.lapsed >= before.lapsed && once.recovered >= before.recovered);
        }
    }
}

#[test]
fn times_beyond_all_bounds_are_no_proof() {
    let entry = entry(json!({"condition": "Available", "settle": "876000h"}));
    let before = recorded(&entry, kubevirt());
    let late = Timestamp::MAX.checked_sub(SignedDuration::from_secs(1)).unwrap();
    let freshness = Freshness::Fresh { release_ready_at: Some(late), turn_began: Some(late), version_changed: false };
    let verdict = judge(&entry, &observe(&entry, kubevirt()), Some(&before), Moment { now: Timestamp::MAX, freshness });
    assert!(matches!(verdict, Verdict::Waiting { until: None, .. }), "{verdict:?}");
}
