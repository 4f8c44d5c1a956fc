//! Strict: no pod dies until Windlass says so; surges; what Windlass is paused by.

use rstest::rstest;
use serde_json::json;
use windlass::api::{CanaryFailure, RolloutGuard, RolloutMode, RolloutPhase, RolloutReason};
use windlass::canary::{Calm, Standing, decide};

use crate::scene::{Scene, State, deleted, frozen, message, pace, rolling, stands, surging};

/// The whole way of ten nodes, write by write.
#[test]
fn one_pod_is_deleted_then_nothing_moves_until_it_has_soaked() {
    let mut scene = Scene::new(RolloutMode::Strict, 10);
    scene.template("new");
    let uid = scene.uid("n1");
    let chosen = scene.look();
    assert_eq!(deleted(&chosen), uid);
    assert_eq!(stands(&chosen.record), (RolloutPhase::Canary, Some(RolloutReason::Frozen)));
    assert_eq!(chosen.record.pod.as_ref(), Some(&uid), "it is on record before it is done");
    scene.carry_out(&chosen.action.unwrap());
    scene.empty("n1");
    assert_eq!(scene.look().action, None);
    scene.put("n1", "new", State::Ready);
    let soaking = scene.look();
    assert_eq!(stands(&soaking.record), (RolloutPhase::Canary, Some(RolloutReason::Soaking)));
    assert_eq!(soaking.look_again.map(|after| after.as_secs()), Some(60));
    assert_eq!(soaking.action, None);
    scene.wait(60);
    let thaw = scene.look();
    assert_eq!((thaw.record.phase, pace(&thaw).as_str()), (RolloutPhase::Increasing, "10%"));
    scene.carry_out(&thaw.action.unwrap());
    for number in 2..=10 {
        assert_eq!(scene.look().record.phase, RolloutPhase::Waiting);
        scene.put(&format!("n{number}"), "new", State::Ready);
        scene.wait(11);
    }
    let back = scene.look();
    assert_eq!(pace(&back), "1");
    scene.carry_out(&back.action.unwrap());
    assert_eq!(scene.look().record.reason, Some(RolloutReason::Settling));
    scene.wait(1);
    let decision = scene.look();
    assert_eq!((decision.standing, decision.action, decision.look_again), (Standing::Done, None, None));
}

/// Old pods that are not available go whatever the budget says: they have a minute to
/// come back before the freeze is lifted.
#[rstest]
#[case::not_ready(9, State::Unready, None)]
#[case::not_ready_for_long_enough(9, State::Ready, Some(3))]
#[case::as_many_as_the_step_admits(2, State::Unready, None)]
fn a_freeze_is_not_lifted_over_old_pods_that_are_not_available(
    #[case] many: usize,
    #[case] state: State,
    #[case] available: Option<i64>,
) {
    let mut scene = Scene::new(RolloutMode::Strict, 12);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    for number in 2..2 + many {
        scene.put(&format!("n{number}"), "old", state);
    }
    let look = |scene: &mut Scene| {
        let mut seen = scene.observe();
        if let (Some(available), Some(daemon_set)) = (available, &mut seen.daemon_set) {
            daemon_set.counts.available = available;
        }
        let decision = decide(&seen, &scene.record, &scene.settings(), scene.moment);
        scene.record = decision.record.clone();
        decision
    };
    let first = look(&mut scene);
    if many == 2 {
        assert_eq!(pace(&first), "10%");
        return;
    }
    assert_eq!((&first.action, first.record.phase), (&None, RolloutPhase::Canary), "{first:?}");
    assert!(message(&first).contains("9 old pods are not available"), "{first:?}");
    assert_eq!(first.look_again.map(|after| after.as_secs()), Some(60));
    scene.wait(60);
    assert_eq!(pace(&look(&mut scene)), "10%", "a version that does not run is mended all the same");
}

/// Another operator takes it over in the middle of the trial.
#[test]
fn no_pod_of_a_daemon_set_is_deleted_that_somebody_else_looks_after() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.template("new");
    let uid = scene.uid("n1");
    assert_eq!(deleted(&scene.look()), uid);
    scene.moment.guard = RolloutGuard::Observed;
    assert_eq!(scene.look().action, None);
}

/// A deletion that did not happen is asked for again, of the same pod.
#[test]
fn a_write_that_was_lost_is_made_again() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.template("new");
    let first = scene.look();
    assert_eq!(scene.look().action, first.action);
    scene.restart();
    assert_eq!(scene.look().action, first.action);
}

/// Without the policy the template comes with a budget of 1: frozen at once, and
/// the pod that has died meanwhile is the canary.
#[test]
fn without_the_policy_it_freezes_and_takes_what_has_died() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.moment.guard = RolloutGuard::Rendered;
    scene.template("new");
    scene.strategy(rolling(1));
    scene.put("n2", "old", State::Terminating);
    let freeze = scene.look();
    assert_eq!((pace(&freeze).as_str(), freeze.record.node.as_deref()), ("frozen", Some("n2")));
    scene.carry_out(&freeze.action.unwrap());
    scene.put("n2", "new", State::Ready);
    let decision = scene.look();
    assert_eq!((decision.action, decision.record.reason), (None, Some(RolloutReason::Soaking)));
}

/// Steps follow when as many nodes as the step allows at once are ready.
#[test]
fn steps_follow_one_another() {
    let mut scene = Scene::new(RolloutMode::Strict, 20);
    scene.canary.steps = Some(vec!["2".into(), "25%".into(), "50%".into()]);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    let mut budgets = Vec::new();
    for number in 1..=20 {
        scene.put(&format!("n{number}"), "new", State::Ready);
        scene.wait(11);
        scene.settle();
        let budget = scene.record.budget.clone().unwrap();
        if budgets.last().map(|(_, last)| last) != Some(&budget) {
            budgets.push((number, budget));
        }
    }
    let budgets: Vec<(i32, &str)> = budgets.iter().map(|(number, budget)| (*number, budget.as_str())).collect();
    assert_eq!(budgets, [(1, "2"), (3, "25%"), (8, "50%"), (20, "1")]);
}

/// A step that has been reached is never left backwards.
#[test]
fn a_pod_that_is_unready_for_a_moment_lowers_no_step() {
    let mut scene = Scene::new(RolloutMode::Strict, 20);
    scene.canary.steps = Some(vec!["1".into(), "50%".into()]);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.put("n2", "new", State::Ready);
    scene.settle();
    scene.put("n2", "new", State::Unready);
    let decision = scene.settle();
    assert_eq!((decision.action, decision.record.budget.as_deref()), (None, Some("50%")));
}

/// A chart that says OnDelete is rolled out like any other, and does not freeze
/// what comes after.
#[rstest]
fn a_chart_that_says_on_delete(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = Scene::new(mode, 2);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.strategy(json!({"type": "OnDelete"}));
    let first = scene.look();
    match mode {
        RolloutMode::Strict => assert_eq!(deleted(&first), scene.uid("n1")),
        RolloutMode::Compat => assert_eq!(pace(&first), "1"),
    }
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.put("n2", "new", State::Ready);
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(1));
}

/// With maxSurge the new pod comes beside the old one; a freeze takes away what
/// has not become available, so it waits for the first.
#[test]
fn a_surge_is_let_go_one_at_a_time_and_frozen_behind_the_first() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.template("new");
    scene.strategy(json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}));
    let go = scene.look();
    assert_eq!(crate::scene::steering(&go).strategy, surging(1));
    scene.carry_out(&go.action.unwrap());
    scene.beside("n2", "new", State::Unready);
    let decision = scene.look();
    assert_eq!((decision.action, decision.record.node.as_deref()), (None, Some("n2")));
    assert!(message(&scene.look()).contains("node n2: not ready"));
    scene.put("n2", "new", State::Ready);
    scene.beside("n3", "new", State::Unready);
    let freeze = scene.look();
    assert_eq!(pace(&freeze), "frozen");
    assert_eq!(freeze.record.reason, Some(RolloutReason::Soaking));
    scene.carry_out(&freeze.action.unwrap());
    scene.put("n3", "old", State::Ready);
    scene.wait(60);
    let on = scene.look();
    assert_eq!(crate::scene::steering(&on).strategy, surging("10%"));
    scene.carry_out(&on.action.unwrap());
    for node in ["n1", "n3"] {
        scene.put(node, "new", State::Ready);
    }
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], surging(1));
}

#[test]
fn a_surge_in_compat_goes_from_one_to_the_steps_and_back() {
    let mut scene = Scene::new(RolloutMode::Compat, 30);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.strategy(surging("50%"));
    assert_eq!(crate::scene::steering(&scene.look()).strategy, surging(1));
    scene.settle();
    scene.put("n1", "new", State::Ready);
    assert_eq!(crate::scene::steering(&scene.look()).strategy, surging("10%"));
}

/// A broken pod beside a good old one: nothing is lost, and the surge ends.
#[test]
fn a_surge_that_fails_leaves_the_old_pod() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.template("new");
    scene.strategy(surging(1));
    scene.beside("n1", "new", State::Waiting("ImagePullBackOff", 0));
    let decision = scene.look();
    assert_eq!((decision.record.phase, pace(&decision).as_str()), (RolloutPhase::Failed, "frozen"));
}

#[rstest]
#[case::in_the_trial(false)]
#[case::on_the_way(true)]
fn a_pause_freezes_and_stops_the_clock(
    #[case] expanding: bool,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let mut scene = Scene::new(mode, 3);
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    if expanding {
        scene.wait(61);
        scene.settle();
    }
    let phase = scene.record.phase;
    scene.moment.paused = true;
    let decision = scene.settle();
    assert_eq!(stands(&decision.record), (phase, Some(RolloutReason::Paused)));
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"]["type"], "OnDelete");
    scene.wait(10_000);
    assert_eq!(scene.settle().record, decision.record, "nothing is written while it is paused");
    scene.moment.paused = false;
    let decision = scene.settle();
    assert_eq!(decision.record.phase, phase, "{decision:?}");
    if expanding {
        assert_eq!(scene.daemon_set["spec"]["updateStrategy"]["type"], "RollingUpdate");
    }
}

/// The engine has not applied the new spec: what is seen is the old template.
#[test]
fn nothing_is_told_of_a_template_that_is_still_to_come() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.moment.released = false;
    let before = scene.record.clone();
    let decision = scene.look();
    assert!(matches!(decision.standing, Standing::Waiting(_)));
    assert_eq!((decision.record.phase, decision.action), (before.phase, None));
    scene.moment.released = true;
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done, "a release that leaves the template alone");
}

/// Done for good only with the release.
#[test]
fn a_rollout_is_not_done_before_the_release_is() {
    let mut scene = Scene::new(RolloutMode::Strict, 1);
    scene.canary.soak = Some("0s".into());
    scene.moment.released = false;
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    scene.wait(60);
    assert!(matches!(scene.settle().standing, Standing::Waiting(_)));
    scene.moment.released = true;
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
}

/// Revisions have a watch of their own, which may be late: what is seen then is the old
/// hash on every pod, and a controller that counts none of them as updated.
#[rstest]
fn a_template_whose_revision_is_not_seen_yet_lifts_no_freeze(#[values(false, true)] ended: bool) {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.number(1);
    scene.remember();
    if ended {
        scene.settle();
        scene.wait(2);
        assert_eq!(scene.settle().standing, Standing::Done);
    }
    scene.number(2);
    scene.strategy(frozen());
    let mut seen = scene.observe();
    let daemon_set = seen.daemon_set.as_mut().unwrap();
    daemon_set.counts.updated = 0;
    let decision = decide(&seen, &scene.record, &scene.settings(), scene.moment);
    assert_eq!(decision.action, None);
    assert!(message(&decision).contains("ControllerRevision"), "{decision:?}");
    let calm = Calm::after(&decision.record).is_some_and(|calm| calm.holds(seen.daemon_set.as_ref().unwrap()));
    assert!(!calm, "nobody would look again");
    assert!(matches!(decision.standing, Standing::Waiting(_)));
}

/// A template that was changed and changed back before its controller has looked.
#[test]
fn a_template_that_was_another_for_a_moment_is_done() {
    let mut scene = Scene::new(RolloutMode::Strict, 3);
    scene.number(1);
    scene.remember();
    scene.number(3);
    scene.strategy(frozen());
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(1));
}

/// The end of a rollout lifts a freeze only with the DaemonSet controller's own word.
#[test]
fn a_freeze_is_not_lifted_at_the_end_before_the_controller_counts_every_node() {
    let mut scene = Scene::new(RolloutMode::Strict, 1);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    let mut seen = scene.observe();
    seen.daemon_set.as_mut().unwrap().counts.updated = 0;
    let decision = decide(&seen, &scene.record, &scene.settings(), scene.moment);
    assert_eq!(decision.action, None);
    assert_eq!(pace(&scene.look()), "1");
}

/// `kubectl rollout restart` is a new template like any other.
#[rstest]
fn a_restart_by_hand_is_a_rollout(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = Scene::new(mode, 2);
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    scene.template("restarted");
    let decision = scene.settle();
    assert_eq!(decision.record.revision.as_deref(), Some("restarted"));
    assert!(matches!(decision.standing, Standing::Waiting(_)));
    assert_eq!(decision.record.reason.is_some(), mode == RolloutMode::Strict, "{decision:?}");
}

/// What was rolled out comes back under its old hash: the nodes that never had
/// the other one need nothing.
#[test]
fn going_back_replaces_only_what_went() {
    let mut scene = Scene::new(RolloutMode::Strict, 5);
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Waiting("ImagePullBackOff", 0));
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.template("old");
    let uid = scene.uid("n1");
    scene.look();
    assert_eq!(deleted(&scene.look()), uid);
    scene.settle();
    scene.put("n1", "old", State::Ready);
    scene.settle();
    scene.wait(61);
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], rolling(1));
}

/// Frozen after a failure, then thawed by another attempt at the same template.
#[test]
fn a_frozen_failure_is_taken_up_by_another_attempt() {
    let mut scene = Scene::new(RolloutMode::Compat, 5);
    scene.canary.on_failure = Some(CanaryFailure::Freeze);
    scene.template("new");
    scene.put("n1", "new", State::Waiting("ImagePullBackOff", 0));
    scene.settle();
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"], frozen());
    scene.put("n1", "new", State::Unready);
    scene.record = windlass::canary::again(&scene.record);
    let decision = scene.look();
    assert_eq!((decision.record.phase, pace(&decision).as_str()), (RolloutPhase::Canary, "1"));
}

/// The way back: the controller counts the nodes that never left as updated, while the
/// newest revision that is seen is still that of the version that has failed.
#[rstest]
fn a_template_that_returns_is_waited_for_until_its_revision_is_seen(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let mut scene = Scene::new(mode, 3);
    scene.number(1);
    scene.remember();
    scene.number(2);
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Waiting("ErrImagePull", 0));
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.record = windlass::canary::again(&scene.record);
    scene.remember();
    scene.number(3);
    scene.touch();
    let mut seen = scene.observe();
    seen.daemon_set.as_mut().unwrap().counts.updated = 2;
    let decision = decide(&seen, &scene.record, &scene.settings(), scene.moment);
    assert_eq!((&decision.action, decision.record.phase), (&None, RolloutPhase::Started), "{decision:?}");
    assert!(message(&decision).contains("ControllerRevision"), "{decision:?}");
    scene.record = decision.record;
    scene.template("old");
    scene.settle();
    scene.put("n1", "old", State::Ready);
    scene.settle();
    scene.wait(61);
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done, "{:?}", scene.record);
}

/// What went wrong while nothing could be written is not told of what is done.
#[test]
fn a_mismatch_of_the_guard_that_is_over_is_not_told_any_more() {
    let mut scene = Scene::new(RolloutMode::Strict, 1);
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    scene.record.reason = Some(RolloutReason::GuardMismatch);
    scene.record.message = Some("not us".into());
    assert_eq!(scene.look().standing, Standing::Done);
    assert_eq!((scene.record.reason, &scene.record.message), (None, &None));
}

/// Without its label nothing keeps the next template small.
#[rstest]
#[case::as_it_was(Some("strict"), true)]
#[case::another(Some("compat"), false)]
#[case::none(None, false)]
fn a_label_that_was_lost_is_noticed(#[case] label: Option<&str>, #[case] calm: bool) {
    let mut scene = Scene::new(RolloutMode::Strict, 1);
    scene.number(1);
    scene.remember();
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
    let mut seen = scene.observe();
    let daemon_set = seen.daemon_set.as_mut().unwrap();
    daemon_set.guarded_as = label.map(str::to_owned);
    assert_eq!(Calm::after(&scene.record).unwrap().holds(daemon_set), calm);
}
