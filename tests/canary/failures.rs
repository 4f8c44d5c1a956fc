//! What fails a rollout, in every phase, and what does not.

use std::time::Duration;

use rstest::rstest;
use windlass::api::{CanaryFailure, RolloutMode, RolloutPhase, RolloutReason};
use windlass::canary::action::Premise;
use windlass::canary::{Action, Standing};

use crate::scene::{Scene, State, deleted, message, pace, rolling, stands};

/// Where a rollout of ten nodes stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Canary,
    Soaking,
    Expanding,
    Finishing,
}

/// A rollout at a place, and the node whose new pod is looked at.
fn rollout(mode: RolloutMode, at: At) -> (Scene, &'static str) {
    let mut scene = Scene::new(mode, 10);
    scene.template("new");
    if mode == RolloutMode::Strict {
        scene.settle();
    }
    scene.put("n1", "new", State::Unready);
    scene.settle();
    if at == At::Canary {
        return (scene, "n1");
    }
    scene.put("n1", "new", State::Ready);
    scene.settle();
    if at == At::Soaking {
        return (scene, "n1");
    }
    scene.wait(61);
    scene.settle();
    assert_eq!(scene.record.phase, RolloutPhase::Waiting, "{:?}", scene.record);
    let last = if at == At::Expanding { 2 } else { 10 };
    for number in 2..=last {
        scene.put(&format!("n{number}"), "new", State::Ready);
    }
    scene.settle();
    (scene, "n2")
}

#[rstest]
#[case::crash_loop(
    State::Waiting("CrashLoopBackOff", 2),
    RolloutReason::Crashing,
    "container main: CrashLoopBackOff, 2 restarts, last exit code 137 (OOMKilled)"
)]
#[case::restarts(State::Restarted(3), RolloutReason::Crashing, "container main: crashed, 3 restarts")]
#[case::init_crash(
    State::InitWaiting("CrashLoopBackOff", 2),
    RolloutReason::Crashing,
    "container setup: CrashLoopBackOff"
)]
#[case::pull_error(State::Waiting("ErrImagePull", 0), RolloutReason::ImageUnavailable, "container main: ErrImagePull")]
#[case::pull_back_off(State::Waiting("ImagePullBackOff", 0), RolloutReason::ImageUnavailable, "ImagePullBackOff")]
#[case::image_name(State::Waiting("InvalidImageName", 0), RolloutReason::ImageUnavailable, "InvalidImageName")]
#[case::init_pull_error(
    State::InitWaiting("ImagePullBackOff", 0),
    RolloutReason::ImageUnavailable,
    "container setup: ImagePullBackOff"
)]
#[case::configuration(
    State::Waiting("CreateContainerConfigError", 0),
    RolloutReason::CannotStart,
    "CreateContainerConfigError"
)]
#[case::container(State::Waiting("CreateContainerError", 0), RolloutReason::CannotStart, "CreateContainerError")]
#[case::hook(State::Waiting("PostStartHookError", 0), RolloutReason::CannotStart, "PostStartHookError")]
fn a_broken_pod_fails_every_phase_at_once(
    #[case] state: State,
    #[case] reason: RolloutReason,
    #[case] says: &str,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(At::Canary, At::Soaking, At::Expanding, At::Finishing)] at: At,
) {
    let (mut scene, node) = rollout(mode, at);
    scene.put(node, "new", state);
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(reason)));
    assert!(matches!(decision.standing, Standing::Failed(_)));
    let message = message(&decision);
    assert!(message.contains(says) && message.contains(node) && message.contains("agents/agent"), "{message}");
    assert!(message.contains("pod agent-"), "{message}");
}

#[rstest]
#[case::one_restart(State::Restarted(1))]
#[case::as_many_as_forgiven(State::Restarted(2))]
#[case::first_crash(State::Waiting("CrashLoopBackOff", 0))]
#[case::second_crash(State::Waiting("CrashLoopBackOff", 1))]
#[case::creating(State::Waiting("ContainerCreating", 0))]
#[case::starting(State::InitWaiting("PodInitializing", 0))]
#[case::pending(State::Pending)]
fn what_may_still_come_right_is_waited_for(
    #[case] state: State,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(At::Canary, At::Soaking, At::Expanding, At::Finishing)] at: At,
) {
    let (mut scene, node) = rollout(mode, at);
    scene.put(node, "new", state);
    let decision = scene.look();
    assert!(matches!(decision.standing, Standing::Waiting(_)), "{decision:?}");
}

/// An old pod that crashes is what the new template may be the cure for.
#[rstest]
fn old_pods_are_not_judged(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let mut scene = Scene::new(mode, 3);
    scene.put("n2", "old", State::Waiting("CrashLoopBackOff", 40));
    scene.template("new");
    assert!(matches!(scene.look().standing, Standing::Waiting(_)));
}

#[rstest]
#[case::unscheduled(State::Pending, "not scheduled: Unschedulable: 0/3 nodes are available")]
#[case::never_ready(State::Unready, "not ready")]
#[case::created(State::Waiting("ContainerCreating", 0), "ContainerCreating")]
#[case::gone(State::Terminating, "a new pod on node n1 is awaited")]
fn a_canary_that_is_not_ready_in_time_fails(
    #[case] state: State,
    #[case] says: &str,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let (mut scene, _) = rollout(mode, At::Canary);
    scene.put("n1", "new", state);
    scene.wait(599);
    let decision = scene.settle();
    assert!(matches!(decision.standing, Standing::Waiting(_)), "{decision:?}");
    assert_eq!(decision.look_again.map(|after| after.as_secs()), Some(1));
    scene.wait(1);
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::TimedOut)));
    assert!(message(&decision).contains("not ready within 10m") && message(&decision).contains(says), "{decision:?}");
}

/// Time in which nobody looked on does not count.
#[test]
fn a_restart_of_windlass_does_not_run_the_clock_down() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Canary);
    scene.wait(500);
    scene.look();
    scene.wait(5000);
    scene.restart();
    assert!(matches!(scene.look().standing, Standing::Waiting(_)));
    scene.wait(100);
    assert!(matches!(scene.look().standing, Standing::Failed(_)), "{:?}", scene.record);
}

#[rstest]
fn a_rollout_without_progress_fails(#[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode) {
    let (mut scene, _) = rollout(mode, At::Expanding);
    scene.put("n3", "new", State::Unready);
    // Counts are written, and with them progress, at most every 10 s.
    assert_eq!(scene.look().look_again, Some(Duration::from_secs(10)));
    scene.wait(10);
    scene.look();
    scene.wait(300);
    let decision = scene.look();
    assert!(message(&decision).contains("node n3: not ready"), "what holds it up is named: {decision:?}");
    // A further node is progress.
    scene.put("n4", "new", State::Ready);
    scene.wait(10);
    scene.look();
    scene.wait(599);
    assert!(matches!(scene.look().standing, Standing::Waiting(_)), "{:?}", scene.record);
    scene.wait(1);
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
    assert!(message(&decision).contains("no further node within 10m"), "{decision:?}");
}

/// A pod that comes and goes makes no progress.
#[test]
fn a_node_that_is_ready_again_is_no_progress() {
    let (mut scene, _) = rollout(RolloutMode::Compat, At::Expanding);
    for _ in 0..11 {
        scene.put("n2", "new", State::Unready);
        scene.wait(30);
        scene.look();
        scene.put("n2", "new", State::Ready);
        scene.wait(30);
        scene.look();
    }
    assert_eq!(stands(&scene.record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
}

/// A container that crashes and is ready again before anybody sees it begins its
/// soak anew.
#[rstest]
#[case::seen_unready(true)]
#[case::restarted_in_between(false)]
fn a_crash_during_the_soak_begins_it_anew(#[case] seen: bool) {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Soaking);
    scene.wait(50);
    if seen {
        let ready = scene.pods.iter_mut().find(|pod| pod["spec"]["nodeName"] == "n1").unwrap();
        ready["status"]["conditions"][0]["status"] = "False".into();
        assert_eq!(scene.look().record.reason, Some(RolloutReason::Frozen));
        let ready = scene.pods.iter_mut().find(|pod| pod["spec"]["nodeName"] == "n1").unwrap();
        ready["status"]["conditions"][0]["status"] = "True".into();
    } else {
        let pod = scene.pods.iter_mut().find(|pod| pod["spec"]["nodeName"] == "n1").unwrap();
        pod["status"]["containerStatuses"] = serde_json::json!([{"name": "main", "restartCount": 1}]);
    }
    assert_eq!(scene.look().record.reason, Some(RolloutReason::Soaking));
    scene.wait(59);
    assert_eq!(scene.look().record.reason, Some(RolloutReason::Soaking));
    scene.wait(2);
    assert_eq!(scene.look().record.phase, RolloutPhase::Increasing);
}

fn set_ready(scene: &mut Scene, node: &str, ready: &str) {
    let pod = scene.pods.iter_mut().find(|pod| pod["spec"]["nodeName"] == node).unwrap();
    pod["status"]["conditions"][0]["status"] = ready.into();
}

/// `timeout` is for becoming ready, and again for becoming ready again: a soak may be
/// longer.
#[test]
fn a_moment_without_readiness_late_in_a_long_soak_is_no_timeout() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Canary);
    scene.canary.soak = Some("30m".into());
    scene.wait(570);
    set_ready(&mut scene, "n1", "True");
    assert_eq!(scene.look().record.reason, Some(RolloutReason::Soaking));
    for _ in 0..3 {
        scene.wait(720);
        set_ready(&mut scene, "n1", "False");
        assert_eq!(scene.look().record.phase, RolloutPhase::Canary, "{:?}", scene.record);
        scene.wait(590);
        assert_eq!(scene.look().record.phase, RolloutPhase::Canary, "{:?}", scene.record);
        set_ready(&mut scene, "n1", "True");
        assert_eq!(scene.look().record.reason, Some(RolloutReason::Soaking));
    }
    scene.wait(1801);
    assert_eq!(scene.look().record.phase, RolloutPhase::Increasing);
}

#[test]
fn a_canary_that_does_not_become_ready_again_has_its_time_once_more() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Soaking);
    scene.wait(50);
    set_ready(&mut scene, "n1", "False");
    scene.look();
    scene.wait(599);
    assert_eq!(scene.look().record.phase, RolloutPhase::Canary);
    scene.wait(2);
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::TimedOut)));
    assert!(message(&decision).contains("was ready, and has not been again for 10m:"), "{decision:?}");
}

#[rstest]
#[case::strict_holds_frozen(RolloutMode::Strict, CanaryFailure::Hold, Some("frozen"))]
#[case::strict_freezes(RolloutMode::Strict, CanaryFailure::Freeze, Some("frozen"))]
#[case::strict_rolls_back(RolloutMode::Strict, CanaryFailure::Rollback, Some("frozen"))]
#[case::compat_holds_at_one(RolloutMode::Compat, CanaryFailure::Hold, Some("1"))]
#[case::compat_freezes(RolloutMode::Compat, CanaryFailure::Freeze, Some("frozen"))]
#[case::compat_rolls_back(RolloutMode::Compat, CanaryFailure::Rollback, Some("1"))]
fn a_failure_leaves_the_smallest_budget_behind(
    #[case] mode: RolloutMode,
    #[case] on_failure: CanaryFailure,
    #[case] leaves: Option<&str>,
) {
    let mut scene = Scene::new(mode, 30);
    scene.canary.on_failure = Some(on_failure);
    scene.canary.soak = Some("0s".into());
    scene.template("new");
    scene.settle();
    scene.put("n1", "new", State::Ready);
    scene.settle();
    assert_eq!(scene.daemon_set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "10%");
    scene.put("n2", "new", State::Waiting("ErrImagePull", 0));
    let decision = scene.look();
    assert_eq!(decision.action.as_ref().map(|_| pace(&decision)).as_deref(), leaves);
    let premise = &crate::scene::steering(&decision).premise;
    assert!(!matches!(premise, Premise::Spec { .. }), "what makes it smaller does not wait for the newest spec");
    scene.carry_out(&decision.action.unwrap());
    let after = scene.look();
    assert_eq!((after.action, after.record.phase), (None, RolloutPhase::Failed));
    scene.strategy(rolling("50%"));
    assert_eq!(Some(pace(&scene.look())).as_deref(), leaves, "somebody raises it: it is brought back");
}

/// In Strict it stays failed; in Compat KubeVirt's rule stands: it goes on.
#[rstest]
#[case::strict(RolloutMode::Strict, RolloutPhase::Failed)]
#[case::compat(RolloutMode::Compat, RolloutPhase::Canary)]
fn a_canary_that_recovers(#[case] mode: RolloutMode, #[case] then: RolloutPhase) {
    let (mut scene, _) = rollout(mode, At::Canary);
    scene.put("n1", "new", State::Waiting("ImagePullBackOff", 0));
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.put("n1", "new", State::Unready);
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.put("n1", "new", State::Ready);
    assert_eq!(scene.settle().record.phase, then);
}

/// With everything new and ready there is nothing to hold back any more.
#[rstest]
fn a_failed_rollout_that_comes_to_its_end_succeeds(
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
) {
    let (mut scene, node) = rollout(mode, At::Finishing);
    scene.put(node, "new", State::Waiting("ImagePullBackOff", 0));
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.put(node, "new", State::Ready);
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done);
}

/// Another template is another attempt; in Strict the node that is down already
/// goes first, and no other one is touched.
#[test]
fn a_fix_is_tried_where_the_canary_failed() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Canary);
    scene.put("n1", "new", State::Waiting("CrashLoopBackOff", 5));
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.template("fix");
    let uid = scene.uid("n1");
    let superseded = scene.look();
    assert_eq!(stands(&superseded.record), (RolloutPhase::Started, Some(RolloutReason::Superseded)));
    let decision = scene.look();
    assert_eq!(deleted(&decision), uid);
    scene.carry_out(&decision.action.unwrap());
    scene.put("n1", "fix", State::Ready);
    scene.settle();
    scene.wait(61);
    assert_eq!(scene.look().record.phase, RolloutPhase::Increasing);
}

/// The same while it happens to be ready between two crashes.
#[test]
fn a_fix_is_tried_where_the_canary_crashes_now_and_then() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Soaking);
    scene.template("fix");
    let uid = scene.uid("n1");
    scene.look();
    let decision = scene.look();
    assert!(matches!(&decision.action, Some(Action::DeletePod { uid: of, .. }) if *of == uid), "{decision:?}");
}

/// A pod that is ready, whatever it has been through.
fn has_restarted(scene: &mut Scene, node: &str, hash: &str, restarts: u32) {
    scene.put(node, hash, State::Restarted(restarts));
    restarts_now(scene, node, restarts);
}

fn restarts_now(scene: &mut Scene, node: &str, restarts: u32) {
    let pod = scene.pods.iter_mut().find(|pod| pod["spec"]["nodeName"] == node).unwrap();
    pod["status"]["conditions"] = serde_json::json!([{"type": "Ready", "status": "True"}]);
    pod["status"]["containerStatuses"][0]["restartCount"] = restarts.into();
}

/// What crashes already, and is to be tried once more, has had its chance.
#[test]
fn another_attempt_forgives_no_pod_that_is_down() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Canary);
    scene.put("n1", "new", State::Waiting("CrashLoopBackOff", 5));
    assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
    scene.record = windlass::canary::again(&scene.record);
    assert_eq!(stands(&scene.settle().record), (RolloutPhase::Failed, Some(RolloutReason::Crashing)));
    scene.record = windlass::canary::again(&scene.record);
    scene.remember();
    assert_eq!(stands(&scene.settle().record), (RolloutPhase::Failed, Some(RolloutReason::Crashing)));
}

/// Where pods run the newest template that no rollout of it has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// They never lost it: only the canary did.
    ItComesBack,
    /// The same, by hand.
    ItComesBackByHand,
    /// Their component gets a canary.
    NothingIsOnRecord,
    /// A release that leaves the template alone.
    ItStays,
    /// A node that was dead is back with its old pod, long after the end.
    ItEnded,
}

/// A node that has been rebooted a few times is no reason against a version.
#[rstest]
fn crashes_before_the_rollout_are_forgiven(
    #[values(
        Before::ItComesBack,
        Before::ItComesBackByHand,
        Before::NothingIsOnRecord,
        Before::ItStays,
        Before::ItEnded
    )]
    before: Before,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(false, true)] crashes_on: bool,
) {
    let mut scene = Scene::new(mode, 3);
    scene.canary.soak = Some("0s".into());
    has_restarted(&mut scene, "n2", "old", 5);
    scene.remember();
    match before {
        Before::ItComesBack | Before::ItComesBackByHand => {
            scene.template("new");
            scene.settle();
            scene.put("n1", "new", State::Waiting("ErrImagePull", 0));
            assert_eq!(scene.settle().record.phase, RolloutPhase::Failed);
            if before == Before::ItComesBack {
                scene.record = windlass::canary::again(&scene.record);
                scene.remember();
            }
            scene.template("old");
            scene.settle();
            scene.put("n1", "old", State::Unready);
        }
        Before::NothingIsOnRecord => {
            scene.record = windlass::canary::again(&scene.record);
            scene.put("n3", "old", State::Unready);
        }
        Before::ItStays => scene.put("n3", "old", State::Unready),
        Before::ItEnded => {
            scene.settle();
            scene.wait(2);
            assert_eq!(scene.settle().standing, Standing::Done);
            restarts_now(&mut scene, "n2", 10);
            scene.put("n3", "older", State::Ready);
        }
    }
    let decision = scene.settle();
    assert!(matches!(decision.standing, Standing::Waiting(_)), "{decision:?}");
    if crashes_on {
        let so_far = if before == Before::ItEnded { 10 } else { 5 };
        restarts_now(&mut scene, "n2", so_far + 2);
        assert!(matches!(scene.settle().standing, Standing::Waiting(_)), "{:?}", scene.record);
        restarts_now(&mut scene, "n2", so_far + 3);
        assert_eq!(stands(&scene.settle().record), (RolloutPhase::Failed, Some(RolloutReason::Crashing)));
        return;
    }
    for node in ["n1", "n3"] {
        scene.put(node, "old", State::Ready);
    }
    scene.settle();
    scene.wait(2);
    assert_eq!(scene.settle().standing, Standing::Done, "{:?}", scene.record);
    assert!(scene.record.crashed.is_empty(), "what is over is forgotten: {:?}", scene.record);
}

/// Time in which nothing can be said counts for no clock.
#[test]
fn a_daemon_set_controller_that_stands_still_does_not_run_the_clock_down() {
    let (mut scene, _) = rollout(RolloutMode::Strict, At::Canary);
    scene.wait(500);
    scene.look();
    let observed = scene.daemon_set["status"]["observedGeneration"].clone();
    scene.daemon_set["status"]["observedGeneration"] = 0.into();
    scene.wait(30);
    scene.look();
    scene.wait(5000);
    scene.look();
    scene.daemon_set["status"]["observedGeneration"] = observed;
    assert!(matches!(scene.look().standing, Standing::Waiting(_)), "{:?}", scene.record);
    scene.wait(100);
    assert!(matches!(scene.look().standing, Standing::Failed(_)), "{:?}", scene.record);
}

/// The next pod goes only once one has been ready for `minReadySeconds`.
#[test]
fn the_deadline_for_progress_begins_when_a_pod_counts_as_available() {
    let (mut scene, _) = rollout(RolloutMode::Compat, At::Expanding);
    scene.daemon_set["spec"]["minReadySeconds"] = 900.into();
    scene.look();
    scene.wait(10);
    scene.look();
    scene.wait(1400);
    assert!(matches!(scene.look().standing, Standing::Waiting(_)), "{:?}", scene.record);
    scene.wait(101);
    let decision = scene.look();
    assert_eq!(stands(&decision.record), (RolloutPhase::Failed, Some(RolloutReason::NoProgress)));
    assert!(message(&decision).contains("within 25m"), "{decision:?}");
}
