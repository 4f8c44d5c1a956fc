//! What is written, with which tests; and what is never written twice.

use rstest::rstest;
use serde_json::json;
use windlass::api::{RolloutMode, RolloutPhase};
use windlass::canary::action::{Action, Premise, Steering};

use crate::scene::{Scene, State, pace, rolling, steering};

fn soaked(mode: RolloutMode) -> Scene {
    let mut scene = Scene::new(mode, 10);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene
}

/// uid, generation and value: whatever else has happened meanwhile, the API
/// server refuses it (422), and the next look decides anew.
#[test]
fn a_raise_is_tested_against_what_was_seen() {
    let mut scene = soaked(RolloutMode::Strict);
    let patch = steering(&scene.look()).json_patch();
    let generation = scene.daemon_set["metadata"]["generation"].clone();
    let live = scene.daemon_set["spec"]["updateStrategy"].clone();
    assert_eq!(
        patch,
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "daemon-set-1"},
            {"op": "test", "path": "/metadata/generation", "value": generation},
            {"op": "test", "path": "/spec/updateStrategy", "value": live},
            {"op": "replace", "path": "/spec/updateStrategy", "value": rolling("10%")},
        ])
    );
}

/// Pods are seen by a watch, which may be late: none that was seen to be well may be
/// worse when more of them are let go.
#[rstest]
#[case::as_it_was(|_: &mut serde_json::Value| {}, true)]
#[case::not_ready(|pod: &mut serde_json::Value| pod["status"]["conditions"][0]["status"] = "False".into(), false)]
#[case::restarted(|pod: &mut serde_json::Value| pod["status"]["containerStatuses"] = json!([{"restartCount": 1}]), false)]
#[case::going(|pod: &mut serde_json::Value| pod["metadata"]["deletionTimestamp"] = "now".into(), false)]
#[case::another_one(|pod: &mut serde_json::Value| pod["metadata"]["uid"] = "other".into(), false)]
fn a_raise_wants_the_canary_as_it_was_seen(#[case] change: fn(&mut serde_json::Value), #[case] holds: bool) {
    let mut scene = soaked(RolloutMode::Strict);
    let raise = scene.look();
    let proof = steering(&raise).proof.clone().unwrap();
    change(scene.pods.last_mut().unwrap());
    assert_eq!(proof.holds(&scene.observe().pods), holds);
}

#[test]
fn a_freeze_wants_no_proof() {
    let mut scene = soaked(RolloutMode::Strict);
    scene.settle();
    scene.put("n2", "new", State::Waiting("ErrImagePull", 0));
    assert_eq!(steering(&scene.look()).proof, None);
}

#[test]
fn a_freeze_is_tested_against_the_uid_alone() {
    let mut scene = soaked(RolloutMode::Strict);
    scene.settle();
    scene.put("n2", "new", State::Waiting("ErrImagePull", 0));
    let patch = steering(&scene.look()).json_patch();
    let paths: Vec<&str> = patch.as_array().unwrap().iter().map(|step| step["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/metadata/uid", "/spec/updateStrategy"]);
}

/// Back at the end, or to a smaller step: what has frozen it meanwhile stays.
#[rstest]
#[case::the_end(10, "1")]
#[case::a_smaller_step(5, "10%")]
fn a_lower_budget_meets_no_freeze(#[case] updated: usize, #[case] expected: &str) {
    let mut scene = soaked(RolloutMode::Strict);
    scene.settle();
    for number in 2..=updated {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    scene.strategy(rolling(4));
    let lower = scene.look();
    assert_eq!(pace(&lower), expected);
    assert_eq!(
        steering(&lower).json_patch(),
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "daemon-set-1"},
            {"op": "test", "path": "/spec/updateStrategy", "value": rolling(4)},
            {"op": "replace", "path": "/spec/updateStrategy",
                "value": rolling(if expected == "1" { json!(1) } else { json!(expected) })},
        ])
    );
}

/// A test that failed (422) leaves everything as it was: the same decision again.
#[test]
fn a_refused_raise_is_decided_anew() {
    let mut scene = soaked(RolloutMode::Strict);
    let first = scene.look();
    scene.touch();
    let second = scene.look();
    assert_eq!(second.record.phase, RolloutPhase::Increasing);
    let generation = |action: &Option<Action>| match action {
        Some(Action::Steer(Steering { premise: Premise::Spec { generation, .. }, .. })) => Some(*generation),
        _ => None,
    };
    assert_eq!(generation(&second.action), generation(&first.action).map(|before| before + 1));
}

/// The change of a template between the look and the write: the generation is
/// another, so the raise never meets it.
#[test]
fn a_new_template_is_never_met_by_a_raise() {
    let mut scene = soaked(RolloutMode::Compat);
    let raise = scene.look();
    scene.template("newer");
    let generation = scene.daemon_set["metadata"]["generation"].as_i64().unwrap();
    let Premise::Spec { generation: before, .. } = steering(&raise).premise else { panic!("{raise:?}") };
    assert!(before < generation);
    scene.look();
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Started);
    assert_eq!(decision.action, None);
}

/// Somebody writes a budget of his own: it is brought back, up or down.
#[rstest]
#[case::above("50%", "10%", true)]
#[case::below("1", "10%", false)]
fn a_budget_edited_by_hand_is_brought_back(#[case] edited: &str, #[case] back: &str, #[case] lowers: bool) {
    let mut scene = Scene::new(RolloutMode::Compat, 30);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.strategy(rolling(if edited == "1" { json!(1) } else { json!(edited) }));
    let decision = scene.look();
    assert_eq!(pace(&decision), back);
    assert_eq!(matches!(steering(&decision).premise, Premise::Strategy(_)), lowers);
}

#[test]
fn a_budget_edited_while_the_canary_is_tried_is_brought_back_to_one() {
    let mut scene = Scene::new(RolloutMode::Compat, 30);
    scene.template("new");
    scene.put("n1", "new", State::Unready);
    scene.settle();
    scene.strategy(rolling(5));
    assert_eq!(pace(&scene.look()), "1");
}

/// Counts change with every pod; they are written every ten seconds at most.
#[test]
fn counts_alone_are_not_written_all_the_time() {
    let mut scene = Scene::new(RolloutMode::Compat, 100);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    let mut writes = 0;
    for number in 1..=99 {
        scene.put(&format!("n{number}"), "new", State::Ready);
        let before = scene.record.clone();
        scene.settle();
        writes += usize::from(scene.record != before);
        scene.wait(1);
    }
    assert!((8..=16).contains(&writes), "{writes} writes in 99 s");
}

/// Once nothing changes any more nothing is written any more.
#[rstest]
fn nothing_is_written_at_rest(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = soaked(mode);
    scene.settle();
    for number in 2..=10 {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    scene.settle();
    scene.wait(2);
    scene.settle();
    assert_eq!(scene.record.phase, RolloutPhase::Successful);
    let rest = scene.record.clone();
    for _ in 0..5 {
        scene.wait(100);
        let decision = scene.look();
        assert_eq!((decision.record, decision.action, decision.look_again), (rest.clone(), None, None));
    }
}
