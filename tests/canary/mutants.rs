//! Cores that overlook something. Each is made from the real one by what it sees:
//! a fact that a rule looks at is painted over before the decision, which is the
//! same as a core without that rule. Every one of them must be caught, by the
//! property that is meant for it.

use std::time::Duration;

use rstest::rstest;
use windlass::api::{CanaryFailure, RolloutMode, RolloutPhase, RolloutRecord, UnreadyNodes};
use windlass::canary::{Observation, Settings};
use windlass::sim::chart::Fate;

use crate::history::{Event, History, history};
use crate::judge::judge;
use crate::rollout::Distortion;

/// Whatever generation the controller has acted on, it is taken for the present one.
fn generation_check_skipped(seen: &mut Observation, _: &mut RolloutRecord, _: &mut Settings) {
    seen.daemon_set.iter_mut().for_each(|found| found.observed_generation = found.generation);
}

/// A pod counts as ready whatever its node does and its condition says.
fn readiness_of_containers(seen: &mut Observation, _: &mut RolloutRecord, _: &mut Settings) {
    std::sync::Arc::make_mut(&mut seen.nodes).values_mut().for_each(|node| node.ready = true);
    for pod in seen.pods.iter_mut().filter(|pod| pod.phase == "Running") {
        pod.ready = true;
    }
}

/// What the DaemonSet controller counts as updated is not compared with what is seen.
fn late_revisions_not_noticed(seen: &mut Observation, _: &mut RolloutRecord, _: &mut Settings) {
    seen.daemon_set.iter_mut().for_each(|found| found.counts.updated = i64::MAX);
}

/// Pods on their way out count.
fn terminating_pods_counted(seen: &mut Observation, _: &mut RolloutRecord, _: &mut Settings) {
    for pod in &mut seen.pods {
        pod.ready |= pod.deleting;
        pod.deleting = false;
    }
}

/// Every pod is taken for one of the newest template.
fn template_not_looked_at(seen: &mut Observation, _: &mut RolloutRecord, _: &mut Settings) {
    let newest = seen.daemon_set.as_ref().and_then(|found| found.newest(&seen.revisions)).map(str::to_owned);
    seen.pods.iter_mut().for_each(|pod| pod.hash.clone_from(&newest));
}

/// What containers say is not looked at.
fn crashes_not_seen(seen: &mut Observation, _: &mut RolloutRecord, _: &mut Settings) {
    seen.pods.iter_mut().for_each(|pod| pod.containers.clear());
}

/// Crashes count only as long as no new pod is ready, as KubeVirt has it.
fn crashes_seen_in_the_first_phase_only(seen: &mut Observation, record: &mut RolloutRecord, _: &mut Settings) {
    if record.ready > 0 {
        seen.pods.iter_mut().for_each(|pod| pod.containers.clear());
    }
}

/// Dead nodes are not added to the budget.
fn dead_nodes_not_in_the_budget(_: &mut Observation, _: &mut RolloutRecord, settings: &mut Settings) {
    settings.unready_nodes = UnreadyNodes::Block;
}

/// Whatever is dead now is left out.
fn dead_nodes_asked_for_afterwards(seen: &mut Observation, record: &mut RolloutRecord, _: &mut Settings) {
    record.dead = seen.nodes.values().filter(|node| !node.ready).map(|node| node.name.clone()).collect();
}

/// The canary need not be ready before the others follow.
fn canary_not_tried(_: &mut Observation, record: &mut RolloutRecord, _: &mut Settings) {
    record.trial = false;
    record.step = record.step.max(1);
}

/// The canary soaks no longer than it takes to be ready.
fn soak_skipped(_: &mut Observation, _: &mut RolloutRecord, settings: &mut Settings) {
    settings.soak = Duration::ZERO;
}

/// The strategy in use is not looked at: it is always what it should be.
fn budget_not_looked_at(seen: &mut Observation, record: &mut RolloutRecord, settings: &mut Settings) {
    let Some(found) = &mut seen.daemon_set else { return };
    let idle = serde_json::json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let newest = found.newest(&seen.revisions).map(str::to_owned);
    if !record.trial && seen.pods.iter().all(|pod| pod.deleting || pod.hash == newest) {
        found.strategy = windlass::canary::strategy::Strategy::read(&idle);
    }
    settings.on_failure = CanaryFailure::Hold;
}

/// Seen once is enough.
fn seen_once(_: &mut Observation, record: &mut RolloutRecord, _: &mut Settings) {
    if record.phase == RolloutPhase::Waiting {
        record.settled = true;
        record.active_seconds = record.active_seconds.max(5);
    }
}

/// There is always more time.
fn deadlines_not_kept(_: &mut Observation, record: &mut RolloutRecord, _: &mut Settings) {
    record.since = None;
    record.active_seconds = 0;
    record.counted_at = None;
}

/// Whatever node has a new pod has replaced an old one.
fn joined_nodes_taken_for_replaced(_: &mut Observation, record: &mut RolloutRecord, _: &mut Settings) {
    record.nodes = i64::MAX;
}

fn judged(history: &History, distortion: Option<Distortion>, untested: bool) -> Result<(), String> {
    let mut rollout = history.start();
    let from = rollout.world.store.log().len();
    history.play(&mut rollout, distortion, untested);
    judge(history, &mut rollout, from)
}

#[rstest]
#[case::generation_check_skipped(generation_check_skipped, "is deleted before", history(|h| {
    h.events = vec![(1, Event::Stall(10_000))];
}))]
#[case::late_revisions_not_noticed(late_revisions_not_noticed, "is deleted before", history(|h| {
    h.lags.revisions = 1000;
    h.events = vec![(60_000, Event::Rewrite(3))];
}))]
#[case::readiness_of_containers(readiness_of_containers, "is verified", history(|h| h.fate.0 = Fate::NeverReady))]
#[case::terminating_pods_counted(terminating_pods_counted, "successful, and", history(|h| {
    h.nodes = 1;
    h.events = vec![(8_200, Event::Evict(0))];
}))]
#[case::template_not_looked_at(template_not_looked_at, "nothing fails", history(|_| {}))]
#[case::crashes_not_seen(crashes_not_seen, "is broken since", history(|h| h.fate.0 = Fate::CannotPull))]
#[case::crashes_seen_in_the_first_phase_only(crashes_seen_in_the_first_phase_only, "is broken since", history(|h| {
    h.fate = (Fate::CannotPull, Some(5));
}))]
#[case::dead_nodes_not_in_the_budget(dead_nodes_not_in_the_budget, "nothing fails", history(|h| h.dead = 1))]
#[case::dead_nodes_asked_for_afterwards(dead_nodes_asked_for_afterwards, "died with its new pod", history(|h| {
    h.nodes = 2;
    h.events = vec![(8_000, Event::Kill(0))];
}))]
#[case::canary_not_tried(canary_not_tried, "is verified", history(|h| h.fate.0 = Fate::NeverReady))]
#[case::soak_skipped(soak_skipped, "is verified", history(|_| {}))]
#[case::joined_nodes_taken_for_replaced(joined_nodes_taken_for_replaced, "joined later", history(|h| {
    h.mode = RolloutMode::Compat;
    h.events = vec![(1, Event::Join)];
}))]
#[case::budget_not_looked_at(budget_not_looked_at, "successful with", history(|_| {}))]
#[case::seen_once(seen_once, "told at", history(|_| {}))]
#[case::deadlines_not_kept(deadlines_not_kept, "does not end", history(|h| h.fate.0 = Fate::NeverReady))]
fn a_core_that_overlooks_something_is_caught(
    #[case] distortion: Distortion,
    #[case] by: &str,
    #[case] history: History,
) {
    assert_eq!(judged(&history, None, false), Ok(()), "the real core passes");
    let error = judged(&history, Some(distortion), false).expect_err("it is not caught");
    assert!(error.contains(by), "caught by another property: {error}");
}

/// A raise that was decided upon before a new template came.
#[test]
fn writes_without_tests_are_caught() {
    let caught = (0..1200).step_by(40).find_map(|offset| {
        let history = history(|h| {
            h.mode = RolloutMode::Compat;
            h.soak = 0;
            h.steps = vec!["50%".into()];
            h.latency = 400;
            h.events = vec![(2_600 + offset, Event::Template(3))];
        });
        assert_eq!(judged(&history, None, false), Ok(()), "the real core passes");
        judged(&history, None, true).err()
    });
    let error = caught.expect("it is not caught");
    assert!(error.contains("before the canary is verified") || error.contains("without a ready pod"), "{error}");
}

/// The DaemonSet's watch tells of a new template before that of the revisions does.
#[rstest]
#[case::in_a_move(Event::Template(3))]
#[case::by_hand(Event::Rewrite(3))]
fn a_late_revision_costs_no_node(
    #[case] event: Event,
    #[values(RolloutMode::Strict, RolloutMode::Compat)] mode: RolloutMode,
    #[values(100, 300, 1000)] late: u64,
) {
    for at in [100, 4_000, 9_500, 60_000] {
        let history = history(|h| {
            h.mode = mode;
            h.soak = 2;
            h.lags.revisions = late;
            h.events = vec![(at, event.clone())];
        });
        assert_eq!(judged(&history, None, false), Ok(()), "at {at}");
    }
}

/// The budget goes back to 1 at the end of one rollout, and the freeze of the next is
/// there first.
#[test]
fn a_late_lowering_without_tests_is_caught() {
    let caught = (0..4000).step_by(40).find_map(|offset| {
        let history = history(|h| {
            h.soak = 0;
            h.steps = vec!["100%".into()];
            h.latency = 400;
            h.events = vec![(3_000 + offset, Event::Template(3))];
        });
        assert_eq!(judged(&history, None, false), Ok(()), "the real core passes at {offset}");
        judged(&history, None, true).err()
    });
    let error = caught.expect("it is not caught");
    assert!(error.contains("before the canary is verified"), "{error}");
}

/// Without the policy the DaemonSet controller takes the first pod itself, which the watch
/// of the pods tells later than that of the DaemonSet tells of the freeze.
#[rstest]
fn late_pods_cost_no_second_node(#[values(20, 100, 400, 1500)] late: u64, #[values(2, 8)] nodes: usize) {
    let history = history(|h| {
        h.nodes = nodes;
        h.guarded = false;
        h.latency = 5;
        h.lags.pods = late;
    });
    assert_eq!(judged(&history, None, false), Ok(()));
}

/// The soak is what a late crash is caught by.
#[test]
fn a_core_that_skips_the_soak_loses_more_than_one_node() {
    let history = history(|h| {
        h.soak = 60;
        h.fate.0 = Fate::CrashesAfter(20_000);
    });
    let bad = |distortion: Option<Distortion>| {
        let mut rollout = history.start();
        history.play(&mut rollout, distortion, false);
        rollout.pods().values().filter(|(image, _)| image == "agent:2").count()
    };
    assert_eq!(bad(None), 1, "the real core loses one");
    assert!(bad(Some(soak_skipped)) > 1);
}
