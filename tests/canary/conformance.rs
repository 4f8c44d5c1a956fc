//! The rows of KubeVirt's own tests (`pkg/virt-operator/resource/apply/apps_test.go`)
//! in Compat: with the revision hash, and with its annotations as well.
//!
//! T8 and T9 change the template a second time within one update, which a
//! component's values cannot do here: they do not apply. What differs: the new
//! template is the engine's to write, so what KubeVirt's rows 1 and C5 write is
//! the budget alone; and `successful` comes at the second look.

use rstest::rstest;
use windlass::api::{RolloutMode, RolloutPhase, RolloutReason};
use windlass::canary::Standing;

use crate::scene::{Scene, State, pace, rolling, stands};

fn compat(nodes: usize, annotated: bool) -> Scene {
    let mut scene = Scene::new(RolloutMode::Compat, nodes).annotated(annotated);
    scene.canary.soak = Some("0s".into());
    scene.canary.max_restarts = Some(0);
    scene
}

/// A rollout that has its canary behind it and runs with 10 %.
fn open(nodes: usize, annotated: bool) -> Scene {
    let mut scene = compat(nodes, annotated);
    scene.template("new");
    scene.put("n1", "new", State::Ready);
    let raise = scene.look();
    assert_eq!(raise.record.phase, RolloutPhase::Increasing);
    scene.carry_out(&raise.action.unwrap());
    scene
}

/// C1: made anew, there is no canary; it is done once its pods are ready.
#[rstest]
fn c1_created(#[values(false, true)] annotated: bool) {
    let mut scene = compat(0, annotated);
    scene.record.uid = None;
    scene.record.revision = None;
    scene.desired(1);
    scene.add_node("n1");
    assert_eq!(scene.settle().record.phase, RolloutPhase::Waiting);
    scene.put("n1", "old", State::Ready);
    scene.settle();
    scene.wait(2);
    let decision = scene.settle();
    assert_eq!((decision.standing, decision.action), (Standing::Done, None));
}

/// C2: every change of the template is a rollout, there and back.
#[rstest]
fn c2_changed_and_changed_back(#[values(false, true)] annotated: bool) {
    let mut scene = compat(2, annotated);
    scene.template("new");
    scene.put("n1", "new", State::Ready);
    assert_eq!(scene.look().record.phase, RolloutPhase::Increasing);
    // A template that returns keeps its hash and is numbered anew.
    scene.template("old");
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Started, Some(RolloutReason::Superseded)));
    assert_eq!(decision.record.revision.as_deref(), Some("old"));
}

/// C3: nothing is known, all is as it should be: no new canary, no write.
#[rstest]
fn c3_unknown_and_complete(#[values(false, true)] annotated: bool) {
    let mut scene = compat(1, annotated);
    scene.template("new");
    scene.put("n1", "new", State::Ready);
    scene.record.uid = None;
    scene.record.revision = None;
    let first = scene.look();
    assert_eq!(stands(&first.record), (RolloutPhase::Waiting, Some(RolloutReason::Settling)));
    assert_eq!(first.action, None);
    scene.wait(2);
    let decision = scene.look();
    assert_eq!((decision.record.phase, decision.standing), (RolloutPhase::Successful, Standing::Done));
    assert_eq!(decision.action, None);
}

/// C4: an open rollout goes on as it is after a restart.
#[rstest]
fn c4_open_rollout_after_a_restart(#[values(false, true)] annotated: bool) {
    let mut scene = open(2, annotated);
    scene.restart();
    let decision = scene.look();
    assert!(matches!(decision.standing, Standing::Waiting(_)), "{decision:?}");
    assert_eq!(decision.action, None);
}

/// C5, T1: a new template starts with a budget of 1.
#[rstest]
fn c5_t1_start(#[values(false, true)] annotated: bool) {
    let mut scene = compat(2, annotated);
    scene.template("new");
    scene.strategy(rolling("50%"));
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Started);
    assert_eq!(pace(&decision), "1");
    assert!(matches!(decision.standing, Standing::Waiting(_)));
}

/// T2: the new pod is not there yet.
#[rstest]
#[case::old_one_still_going(true)]
#[case::between_the_two(false)]
fn t2_wait_for_the_canary_to_be_created(#[case] going: bool, #[values(false, true)] annotated: bool) {
    let mut scene = compat(1, annotated);
    scene.template("new");
    scene.put("n1", "old", State::Terminating);
    scene.look();
    if !going {
        scene.empty("n1");
    }
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Canary);
    assert_eq!(decision.action, None);
    assert!(matches!(decision.standing, Standing::Waiting(_)));
}

/// T3: it is there and not ready.
#[rstest]
fn t3_wait_for_the_canary_to_be_ready(#[values(false, true)] annotated: bool) {
    let mut scene = compat(1, annotated);
    scene.template("new");
    scene.put("n1", "new", State::Unready);
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Canary);
    assert_eq!(decision.action, None);
    assert!(matches!(decision.standing, Standing::Waiting(_)));
}

/// T4: it is ready, the others follow faster.
#[rstest]
fn t4_speed_up(#[values(false, true)] annotated: bool) {
    let mut scene = compat(2, annotated);
    scene.template("new");
    scene.daemon_set["spec"]["updateStrategy"] = serde_json::json!({"type": "RollingUpdate"});
    scene.put("n1", "new", State::Ready);
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Increasing);
    assert_eq!(pace(&decision), "10%");
    assert!(matches!(decision.standing, Standing::Waiting(_)));
}

/// T5: it crashes.
#[rstest]
fn t5_canary_fails(#[values(false, true)] annotated: bool) {
    let mut scene = compat(1, annotated);
    scene.template("new");
    scene.put("n1", "new", State::Restarted(1));
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::Crashing)));
    assert!(matches!(decision.standing, Standing::Failed(_)));
    assert_eq!(decision.action, None);
}

/// T6: the others are on their way.
#[rstest]
fn t6_wait_for_the_others(#[values(false, true)] annotated: bool) {
    let mut scene = open(2, annotated);
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Waiting);
    assert_eq!(decision.action, None);
    assert!(matches!(decision.standing, Standing::Waiting(_)));
}

/// T7: all are there; the budget is 1 again.
#[rstest]
fn t7_complete(#[values(false, true)] annotated: bool) {
    let mut scene = open(2, annotated);
    scene.put("n2", "new", State::Ready);
    let back = scene.look();
    assert_eq!(pace(&back), "1");
    assert!(matches!(back.standing, Standing::Waiting(_)), "not before it is back: {back:?}");
    scene.carry_out(&back.action.unwrap());
    scene.settle();
    scene.wait(2);
    let decision = scene.look();
    assert_eq!((decision.record.phase, decision.standing), (RolloutPhase::Successful, Standing::Done));
}

/// A pod with the right hash and a foreign annotation is not updated; KubeVirt's
/// own rule, the annotation alone, would take it for new.
#[test]
fn annotations_count_only_beside_the_hash() {
    let mut scene = compat(2, true);
    scene.template("new");
    scene.put("n1", "new", State::Ready);
    scene.pods.last_mut().unwrap()["metadata"]["annotations"] = serde_json::json!({});
    assert_eq!(scene.look().record.updated, 0, "no annotation");
    scene.put("n1", "old", State::Ready);
    scene.pods.last_mut().unwrap()["metadata"]["annotations"][crate::scene::ANNOTATION] = "new".into();
    assert_eq!(scene.look().record.updated, 0, "an old hash");
}
