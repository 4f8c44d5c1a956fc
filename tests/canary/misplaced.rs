//! Nodes that are not to run the DaemonSet any more, and pods that are not what
//! `matchAnnotations` asks for.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{RolloutMode, RolloutPhase, RolloutReason};
use windlass::canary::{Action, Standing};

use crate::scene::{ANNOTATION, Scene, State, message, rolling, stands};

fn keep_off(scene: &mut Scene, node: &str) {
    scene.node(node)["spec"]["taints"] = json!([{"key": "maintenance", "value": "now", "effect": "NoSchedule"}]);
}

fn going(scene: &Scene) -> Vec<&Value> {
    scene.pods.iter().filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()).collect()
}

/// The pod of a node that keeps others off stays there, and stands for no other one.
#[test]
fn a_pod_on_a_node_that_keeps_off_does_not_make_up_for_one_that_is_missing() {
    let mut scene = Scene::new(RolloutMode::Strict, 10);
    keep_off(&mut scene, "n7");
    scene.desired(9);
    scene.remember();
    scene.template("new");
    // Its successor is refused, by a quota say: nothing tells of it but its absence.
    scene.empty("n3");
    scene.settle();
    scene.wait(30);
    scene.settle();
    assert!(going(&scene).is_empty(), "n3 is without a pod, and {:?} goes", going(&scene));
}

/// A rollout of ten nodes, half of which are updated.
fn half(mode: RolloutMode) -> Scene {
    let mut scene = Scene::new(mode, 10);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    for number in 2..=5 {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    scene.settle();
    scene
}

#[rstest]
#[case::not_ready(State::Unready)]
#[case::crashing(State::Waiting("CrashLoopBackOff", 9))]
#[case::going(State::Terminating)]
fn what_becomes_of_a_pod_that_is_not_wanted_there_fails_nothing(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[case] state: State,
) {
    let mut scene = half(mode);
    keep_off(&mut scene, "n5");
    scene.desired(9);
    scene.put("n5", "new", state);
    assert_ne!(scene.settle().record.phase, RolloutPhase::Failed, "{:?}", scene.record);
    for number in 6..=10 {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done, "{:?}", scene.record);
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(1));
    let told = scene.record.message.clone().unwrap_or_default();
    assert!(state == State::Terminating || told.contains("n5"), "{told}");
}

/// A taint that a dead node gets from Kubernetes itself is no order to keep off.
#[test]
fn a_node_that_dies_with_its_new_pod_is_a_failure_though_it_is_tainted_for_that() {
    let mut scene = half(RolloutMode::Strict);
    scene.kill_node("n5");
    scene.node("n5")["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]);
    scene.desired(9);
    for number in 6..=10 {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    scene.settle();
    scene.wait(601);
    assert_eq!(stands(&scene.settle().record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
}

/// A pool of nodes that goes during the trial takes its pods along: other nodes were
/// never meant.
#[rstest]
fn a_pool_that_is_scaled_to_nothing_is_no_failure(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(false, true)] all: bool,
) {
    let mut scene = Scene::new(mode, 3);
    scene.desired(3);
    scene.remember();
    scene.add_node("elsewhere");
    scene.template("new");
    scene.look();
    for node in ["n1", "n2", "n3"] {
        scene.empty(node);
        if all || node != "n2" {
            scene.remove_node(node);
        }
    }
    scene.desired(0);
    let decision = scene.settle();
    if !all {
        let expected = (RolloutPhase::Failed, Some(RolloutReason::NoNodes));
        assert_eq!(stands(&decision.record), expected, "n2 had a pod, and is there");
        return;
    }
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done, "{:?}", scene.record);
    assert_eq!(scene.record.reason, Some(RolloutReason::NoNodes));
}

/// Charts usually annotate the pods alone: there is nothing to compare with, and it
/// is said so before any pod goes.
#[rstest]
fn a_daemon_set_without_the_annotation_fails_before_a_pod_goes(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let mut scene = Scene::new(mode, 3);
    scene.canary.match_annotations = vec!["example.org/version".into()];
    scene.template("new");
    let decision = scene.settle();
    assert_eq!(decision.record.phase, RolloutPhase::Failed, "{decision:?}");
    let told = message(&decision);
    assert!(told.contains("example.org/version") && told.contains("matchAnnotations"), "{told}");
    assert!(going(&scene).is_empty());
}

/// A pod of the newest template is what its successor would be.
#[test]
fn a_pod_of_the_newest_template_is_never_asked_to_go() {
    let mut scene = Scene::new(RolloutMode::Strict, 3).annotated(true);
    scene.canary.timeout = Some("5m".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Unready);
    scene.pods.last_mut().unwrap()["metadata"]["annotations"] = json!({ANNOTATION: "another"});
    for _ in 0..5 {
        let decision = scene.look();
        assert!(!matches!(decision.action, Some(Action::DeletePod { .. })), "{decision:?}");
        scene.wait(10);
    }
    scene.wait(300);
    let decision = scene.settle();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::TimedOut)));
}
