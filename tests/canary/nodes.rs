//! Nodes that are dead, die, join, leave or are cordoned.

use rstest::rstest;
use serde_json::json;
use windlass::api::{Canary, RolloutMode, RolloutPhase, RolloutReason, UnreadyNodes};
use windlass::canary::{Action, Standing};
use windlass::sim::chart::Script;

use crate::rollout::Rollout;
use crate::scene::{Scene, State, deleted, message, rolling, stands};

fn done(scene: &mut Scene) -> Standing {
    scene.settle();
    scene.wait(2);
    scene.settle().standing
}

#[rstest]
fn zero_nodes_are_done(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = Scene::new(mode, 0);
    scene.template("new");
    assert_eq!(done(&mut scene), Standing::Done);
    assert_eq!(stands(&scene.record), (RolloutPhase::Successful, Some(RolloutReason::NoNodes)));
}

#[rstest]
fn one_node_is_canary_and_everything(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = Scene::new(mode, 1);
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    assert_eq!(scene.settle().record.reason, Some(RolloutReason::Soaking), "{:?}", scene.record);
    scene.wait(61);
    assert_eq!(done(&mut scene), Standing::Done);
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(1));
}

/// It was dead before: it neither holds the rollout up nor uses its budget.
#[rstest]
#[case::counted_by_its_controller(true, 10)]
#[case::kept_away_by_its_taint(false, 9)]
fn a_node_that_was_dead_before_is_left_out(#[case] tolerated: bool, #[case] desired: usize) {
    let mut scene = Scene::new(RolloutMode::Compat, 10);
    scene.kill_node("n10");
    scene.node("n10")["spec"]["taints"] = json!([
        {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    ]);
    if tolerated {
        scene.daemon_set["spec"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    }
    scene.desired(desired);
    scene.remember();
    assert_eq!(scene.record.dead, ["n10"]);
    scene.template("new");
    // The DaemonSet controller takes the unavailable pod first.
    scene.put("n10", "old", State::Terminating);
    let uid = scene.uid("n1");
    assert_eq!(deleted(&scene.look()), uid, "the dead one uses the budget up, which stays at 1");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.wait(61);
    scene.settle();
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(2), "10 % of it, and the dead one");
    for number in 2..=9 {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    assert_eq!(done(&mut scene), Standing::Done, "{:?}", scene.record);
    assert_eq!(stands(&scene.record), (RolloutPhase::Successful, Some(RolloutReason::NodesExcluded)));
    assert!(scene.record.message.as_ref().unwrap().contains("n10"));
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(1));
}

#[test]
fn a_dead_node_that_comes_back_is_updated_like_any_other() {
    let mut scene = Scene::new(RolloutMode::Compat, 2);
    scene.kill_node("n2");
    scene.remember();
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.wait(61);
    scene.settle();
    scene.revive_node("n2");
    scene.put("n2", "old", State::Ready);
    assert!(matches!(done(&mut scene), Standing::Waiting(_)), "{:?}", scene.record);
    scene.put("n2", "new", State::Ready);
    assert_eq!(done(&mut scene), Standing::Done);
    assert_eq!(scene.record.reason, None);
}

#[test]
fn dead_nodes_block_where_the_author_says_so() {
    let mut scene = Scene::new(RolloutMode::Compat, 2);
    scene.canary.unready_nodes = Some(UnreadyNodes::Block);
    scene.canary.soak = Some("0s".into());
    scene.kill_node("n2");
    scene.remember();
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    assert!(matches!(done(&mut scene), Standing::Waiting(_)));
    scene.wait(600);
    let decision = scene.settle();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
    assert!(message(&decision).contains("node n2"), "{decision:?}");
}

/// A rack that is not to be reached for a moment, just when the freeze is lifted.
#[test]
fn nodes_that_were_away_for_a_moment_keep_their_pods() {
    let canary = Canary { soak: Some("5s".into()), ..Canary::default() };
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let start = || {
        let mut rollout = Rollout::new(canary.clone(), true, 12, strategy.clone(), Script::default());
        rollout.upgrade("2");
        rollout
    };
    let mut calm = start();
    let began = calm.world.now();
    calm.play(60_000);
    let thaw = calm.told.iter().find(|told| told.record.phase == RolloutPhase::Increasing).unwrap().at - began;
    let mut rollout = start();
    rollout.play(thaw - 150);
    let node = rollout.record.node.clone().unwrap();
    let away: Vec<String> = (1..=12).map(|n| format!("n{n}")).filter(|name| *name != node).take(9).collect();
    away.iter().for_each(|name| rollout.world.kill_node(name));
    rollout.play(300);
    away.iter().for_each(|name| rollout.world.revive_node(name));
    rollout.play(5_000);
    let replaced = rollout.pods().values().filter(|(image, _)| image == "agent:2").count();
    assert!(replaced <= 8, "{replaced} replaced in five seconds\n{}", rollout.tell());
    rollout.play(600_000);
    assert_eq!(rollout.record.phase, RolloutPhase::Successful, "{}", rollout.tell());
}

/// With its new pod: that is a failure, whatever else the machine may have.
#[rstest]
#[case::of_the_canary("n1")]
#[case::later("n2")]
fn a_node_that_dies_with_its_new_pod_is_not_left_out(
    #[case] node: &str,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let mut scene = Scene::new(mode, 3);
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    if node == "n2" {
        scene.wait(61);
        scene.settle();
        scene.put("n2", "new", State::Ready);
        scene.settle();
        scene.put("n3", "new", State::Ready);
    }
    scene.kill_node(node);
    scene.settle();
    scene.wait(601);
    let decision = scene.settle();
    assert_eq!(decision.record.phase, RolloutPhase::Failed, "{decision:?}");
    assert!(message(&decision).contains(node), "{decision:?}");
}

/// With its old pod: it is not the new template's fault, but neither is it done.
#[test]
fn a_node_that_dies_before_its_turn_is_named_when_time_is_up() {
    let mut scene = Scene::new(RolloutMode::Compat, 2);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.kill_node("n2");
    scene.settle();
    scene.wait(601);
    let decision = scene.settle();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
    assert!(message(&decision).contains("node n2: the node is not ready"), "{decision:?}");
}

/// Its pod is made from the new template and shows nothing of a replacement.
#[rstest]
fn a_node_that_joins_is_no_canary(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = Scene::new(mode, 3);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.add_node("n0");
    scene.put("n0", "new", State::Ready);
    let decision = scene.look();
    assert_ne!(decision.record.phase, RolloutPhase::Increasing);
    assert_ne!(decision.record.node.as_deref(), Some("n0"));
}

#[test]
fn a_pod_that_a_reboot_brought_back_is_as_good_a_canary_as_any() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.template("new");
    scene.put("n2", "new", State::Ready);
    let decision = scene.settle();
    assert_eq!((decision.record.node.as_deref(), decision.record.reason), (Some("n2"), Some(RolloutReason::Soaking)));
}

/// The canary's node is gone: another one is tried.
#[test]
fn a_canary_that_leaves_with_its_node_is_replaced() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.template("new");
    scene.settle();
    assert_eq!(scene.record.node.as_deref(), Some("n1"));
    scene.put("n1", "new", State::Unready);
    scene.settle();
    scene.remove_node("n1");
    scene.desired(2);
    let uid = scene.uid("n2");
    assert_eq!(deleted(&scene.look()), uid);
    assert_eq!(scene.record.node.as_deref(), Some("n2"));
}

#[test]
fn a_node_that_leaves_is_not_waited_for() {
    let mut scene = Scene::new(RolloutMode::Compat, 3);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.put("n2", "new", State::Ready);
    scene.remove_node("n3");
    scene.desired(2);
    assert_eq!(done(&mut scene), Standing::Done);
}

/// More nodes run it than should, such as one that was tainted since: told by
/// nobody, and no failure.
#[test]
fn more_updated_nodes_than_desired_are_no_failure() {
    let mut scene = Scene::new(RolloutMode::Compat, 3);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.desired(2);
    for number in 1..=3 {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    assert_eq!(done(&mut scene), Standing::Done);
}

/// It is about to be drained: not the place to learn something.
#[test]
fn a_cordoned_node_is_updated_but_not_chosen() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.node("n1")["spec"]["unschedulable"] = json!(true);
    scene.node("n1")["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    scene.template("new");
    scene.settle();
    assert_eq!(scene.record.node.as_deref(), Some("n2"));
    scene.put("n2", "new", State::Ready);
    scene.settle();
    scene.wait(61);
    scene.settle();
    scene.put("n3", "new", State::Ready);
    assert!(matches!(done(&mut scene), Standing::Waiting(_)), "the cordoned one is still to come");
    scene.put("n1", "new", State::Ready);
    assert_eq!(done(&mut scene), Standing::Done);
}

#[rstest]
#[case::dead("dead")]
#[case::tainted("tainted")]
#[case::not_selected("not selected")]
fn the_canary_is_chosen_among_nodes_that_can_show_something(#[case] why: &str) {
    let mut scene = Scene::new(RolloutMode::Strict, 2);
    match why {
        "dead" => scene.kill_node("n1"),
        "tainted" => {
            scene.node("n1")["spec"]["taints"] = json!([{"key": "maintenance", "effect": "NoSchedule"}]);
            scene.desired(1);
        }
        _ => scene.canary.node_selector = [("kubernetes.io/hostname".to_owned(), "n2".to_owned())].into(),
    }
    scene.remember();
    scene.template("new");
    let uid = scene.uid("n2");
    assert_eq!(deleted(&scene.look()), uid);
}

/// Else a fix could never begin: no other pod may go while that one is down.
#[rstest]
#[case::cordoned("cordoned")]
#[case::not_selected("not selected")]
fn a_broken_pod_is_replaced_first_wherever_it_is(#[case] why: &str) {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    match why {
        "cordoned" => scene.node("n3")["spec"]["unschedulable"] = json!(true),
        _ => scene.canary.node_selector = [("kubernetes.io/hostname".to_owned(), "n2".to_owned())].into(),
    }
    scene.put("n3", "old", State::Unready);
    scene.template("new");
    let uid = scene.uid("n3");
    assert_eq!(deleted(&scene.look()), uid);
}

#[test]
fn of_two_broken_pods_the_one_on_a_chosen_node_is_replaced_first() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.canary.node_selector = [("kubernetes.io/hostname".to_owned(), "n3".to_owned())].into();
    scene.put("n2", "old", State::Unready);
    scene.put("n3", "old", State::Unready);
    scene.template("new");
    let uid = scene.uid("n3");
    assert_eq!(deleted(&scene.look()), uid);
}

#[test]
fn without_a_node_to_try_it_on_it_fails_in_time() {
    let mut scene = Scene::new(RolloutMode::Strict, 2);
    scene.canary.node_selector = [("pool".to_owned(), "canary".to_owned())].into();
    scene.template("new");
    let decision = scene.look();
    assert_eq!((decision.record.phase, decision.action), (RolloutPhase::Started, None));
    scene.wait(600);
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::TimedOut)));
    assert!(message(&decision).contains("nodeSelector"), "{decision:?}");
}

/// A pod that is unavailable anyway costs nothing.
#[test]
fn the_canary_is_where_the_old_pod_is_of_no_use() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.put("n3", "old", State::Unready);
    scene.template("new");
    let uid = scene.uid("n3");
    assert_eq!(deleted(&scene.look()), uid);
}

/// Pods whose node is gone, of another owner, or on their way out do not count.
#[test]
fn nodes_are_counted_and_not_pods() {
    let mut scene = Scene::new(RolloutMode::Compat, 3);
    scene.template("new");
    scene.put("n1", "new", State::Unready);
    scene.beside("gone", "new", State::Ready);
    scene.beside("n2", "new", State::Terminating);
    scene.beside("n1", "new", State::Ready);
    scene.pods.last_mut().unwrap()["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    let decision = scene.look();
    assert_eq!((decision.record.updated, decision.record.ready), (1, 0));
}

/// Names that begin with another's name are not that other's.
#[test]
fn revisions_are_those_of_its_uid() {
    let mut scene = Scene::new(RolloutMode::Compat, 1);
    let mut other = crate::scene::revision("other", 99);
    other["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    scene.revisions.insert(0, other);
    assert!(scene.settle().record.revision.as_deref() == Some("old"));
}

/// Until its controller has acted on the new spec the newest revision is the old
/// one, and every pod looks updated.
#[test]
fn nothing_is_believed_before_the_spec_is_observed() {
    let mut scene = Scene::new(RolloutMode::Compat, 1);
    scene.daemon_set["metadata"]["generation"] = json!(2);
    for _ in 0..3 {
        let decision = scene.look();
        assert!(matches!(decision.standing, Standing::Waiting(_)));
        assert_eq!(decision.action, None);
        scene.wait(10);
    }
}

#[rstest]
fn a_daemon_set_that_is_deleted_by_hand_is_awaited_and_starts_without_a_canary(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let mut scene = Scene::new(mode, 2);
    scene.template("new");
    scene.settle();
    let whole = scene.daemon_set.take();
    let pods = std::mem::take(&mut scene.pods);
    let seen = windlass::canary::Observation::default();
    let missing = windlass::canary::decide(&seen, &scene.record, &scene.settings(), scene.moment);
    assert_eq!(stands(&missing.record), (RolloutPhase::Started, Some(RolloutReason::Missing)));
    scene.record = missing.record;
    scene.daemon_set = whole;
    scene.daemon_set["metadata"]["uid"] = json!("daemon-set-2");
    scene.daemon_set["spec"]["updateStrategy"] = rolling(1);
    for revision in &mut scene.revisions {
        revision["metadata"]["ownerReferences"][0]["uid"] = json!("daemon-set-2");
    }
    let decision = scene.look();
    assert_eq!((decision.record.phase, decision.action), (RolloutPhase::Waiting, None));
    for mut pod in pods {
        pod["metadata"]["ownerReferences"][0]["uid"] = json!("daemon-set-2");
        pod["metadata"]["labels"]["controller-revision-hash"] = json!("new");
        pod["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        scene.pods.push(pod);
    }
    assert_eq!(done(&mut scene), Standing::Done);
}

/// Somebody else writes it: looked at, never touched.
#[test]
fn a_daemon_set_of_another_operator_is_only_observed() {
    let mut scene = Scene::new(RolloutMode::Compat, 3);
    scene.moment.guard = windlass::api::RolloutGuard::Observed;
    scene.template("new");
    scene.strategy(rolling("50%"));
    let mut actions: Vec<Action> = Vec::new();
    for number in 1..=3 {
        scene.put(&format!("n{number}"), "new", State::Unready);
        actions.extend(scene.look().action);
        scene.put(&format!("n{number}"), "new", State::Ready);
        actions.extend(scene.look().action);
        scene.wait(61);
    }
    assert_eq!(done(&mut scene), Standing::Done);
    scene.template("newer");
    scene.put("n1", "newer", State::Waiting("ImagePullBackOff", 0));
    scene.look();
    let decision = scene.look();
    assert_eq!(decision.record.phase, RolloutPhase::Failed);
    actions.extend(decision.action);
    assert_eq!(actions, []);
}

/// It came back, took the new pod, and dies of it.
#[rstest]
fn a_node_that_was_dead_before_is_left_out_only_until_it_has_the_new_pod(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let mut scene = Scene::new(mode, 3);
    scene.canary.soak = Some("0s".into());
    scene.kill_node("n3");
    scene.remember();
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.revive_node("n3");
    scene.put("n3", "new", State::Unready);
    scene.settle();
    scene.kill_node("n3");
    scene.put("n2", "new", State::Ready);
    assert!(matches!(done(&mut scene), Standing::Waiting(_)), "{:?}", scene.record);
    scene.wait(601);
    let decision = scene.settle();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
    assert!(message(&decision).contains("node n3"), "{decision:?}");
}

/// The DaemonSet controller takes the pods away, whatever the budget says.
#[rstest]
fn a_template_that_fits_no_node_fails(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(false, true)] returning: bool,
) {
    let mut scene = Scene::new(mode, 3);
    scene.moment.returning = returning;
    scene.template("new");
    scene.desired(0);
    (1..=3).for_each(|number| scene.put(&format!("n{number}"), "old", State::Terminating));
    scene.settle();
    (1..=3).for_each(|number| scene.empty(&format!("n{number}")));
    if returning {
        assert_eq!(done(&mut scene), Standing::Done, "an earlier version is known to run nowhere");
        return;
    }
    let decision = scene.settle();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::NoNodes)));
    assert!(message(&decision).contains("fits no node, 3 had a pod before"), "{decision:?}");
    let again = scene.settle();
    assert_eq!((again.record, again.action), (decision.record, None), "it stays so");
}

/// With the nodes themselves it is no mistake.
#[test]
fn a_template_without_any_node_left_is_done() {
    let mut scene = Scene::new(RolloutMode::Strict, 2);
    scene.template("new");
    scene.desired(0);
    for node in ["n1", "n2"] {
        scene.remove_node(node);
        scene.empty(node);
    }
    assert_eq!(done(&mut scene), Standing::Done);
}

/// A pod that goes for good is not replaced, so it is no canary.
#[rstest]
fn a_node_that_the_new_template_does_not_want_is_no_canary(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(false, true)] seen_going: bool,
) {
    let mut scene = Scene::new(mode, 4);
    scene.template("new");
    scene.desired(3);
    if seen_going {
        scene.put("n1", "old", State::Terminating);
        scene.settle();
        assert_ne!(scene.record.node.as_deref(), Some("n1"));
    } else {
        // The deletion is seen late, and the pod is asked to go in vain.
        scene.settle();
    }
    scene.empty("n1");
    let next = if mode == RolloutMode::Strict { "n2" } else { "n3" };
    scene.settle();
    if mode == RolloutMode::Strict {
        assert_eq!(scene.record.node.as_deref(), Some(next), "{:?}", scene.record);
    }
    scene.put(next, "new", State::Ready);
    scene.settle();
    assert_eq!((scene.record.node.as_deref(), scene.record.reason), (Some(next), Some(RolloutReason::Soaking)));
    scene.wait(61);
    scene.settle();
    for node in ["n2", "n3", "n4"] {
        scene.put(node, "new", State::Ready);
    }
    assert_eq!(done(&mut scene), Standing::Done, "{:?}", scene.record);
}

/// One node that can run no pod of any version says nothing about this one.
#[rstest]
fn a_node_whose_pod_was_not_ready_before_is_left_out(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(State::Pending, State::Waiting("CrashLoopBackOff", 9))] state: State,
) {
    let mut scene = Scene::new(mode, 9);
    scene.put("n1", "old", state);
    scene.remember();
    scene.template("new");
    let uid = scene.uid("n2");
    assert_eq!(deleted(&scene.look()), uid, "neither is it the canary, nor does it keep another from being it");
    scene.settle();
    scene.put("n2", "new", State::Ready);
    scene.put("n1", "new", state);
    scene.settle();
    scene.wait(61);
    scene.settle();
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(2), "10 % and the one that is down");
    (3..=9).for_each(|number| scene.put(&format!("n{number}"), "new", State::Ready));
    assert_eq!(done(&mut scene), Standing::Done, "{:?}", scene.record);
    assert_eq!(stands(&scene.record), (RolloutPhase::Successful, Some(RolloutReason::NodesExcluded)));
    assert!(scene.record.message.as_ref().unwrap().contains("n1"));
}

/// As long as it is not ready, and only where those are the exception.
#[rstest]
#[case::it_becomes_ready(1, false, false)]
#[case::more_than_a_step(2, false, true)]
#[case::after_a_failure(1, true, true)]
fn what_the_new_template_has_to_mend_is_not_left_out(
    #[case] sick: usize,
    #[case] failed: bool,
    #[case] goes_first: bool,
) {
    let mut scene = Scene::new(RolloutMode::Strict, 9);
    if failed {
        scene.template("broken");
        scene.settle();
        scene.put("n1", "broken", State::Unready);
        scene.wait(601);
        assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
        scene.record = windlass::canary::again(&scene.record);
    }
    (1..=sick).for_each(|number| scene.put(&format!("n{number}"), "old", State::Unready));
    scene.remember();
    scene.template("new");
    scene.settle();
    let node = scene.record.node.clone().unwrap();
    assert_eq!(node == "n1", goes_first, "{:?}", scene.record);
    if !goes_first {
        scene.put("n1", "old", State::Ready);
        scene.settle();
        scene.put("n1", "old", State::Unready);
        (2..=9).for_each(|number| scene.put(&format!("n{number}"), "new", State::Ready));
        scene.settle();
        scene.wait(61);
        assert!(matches!(done(&mut scene), Standing::Waiting(_)), "{:?}", scene.record);
    }
}

/// What keeps the cluster itself running is not where to learn something.
#[test]
fn a_node_of_the_control_plane_is_chosen_last() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    for (node, label) in [("n1", "node-role.kubernetes.io/control-plane"), ("n2", "node-role.kubernetes.io/master")] {
        scene.node(node)["metadata"]["labels"][label] = json!("");
    }
    scene.remember();
    scene.template("new");
    let uid = scene.uid("n3");
    assert_eq!(deleted(&scene.look()), uid);
}

/// The DaemonSet controller chooses: a node outside the selector is as good.
#[test]
fn a_surge_is_frozen_behind_whichever_node_is_first() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.canary.node_selector = [("kubernetes.io/hostname".to_owned(), "n3".to_owned())].into();
    scene.template("new");
    scene.strategy(crate::scene::surging(1));
    scene.settle();
    scene.put("n1", "new", State::Ready);
    let decision = scene.look();
    assert_eq!((crate::scene::pace(&decision).as_str(), scene.record.reason), ("frozen", Some(RolloutReason::Soaking)));
}
