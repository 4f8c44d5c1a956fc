//! New pods that are ready at once and crash 20 s later, on 50 nodes: how many
//! nodes go bad, by three rules.

use serde_json::{Value, json};
use windlass::api::{Canary, RolloutMode, RolloutPhase, RolloutReason};
use windlass::sim::chart::{Fate, PodBehaviour, Script};

use crate::rollout::{Rollout, key};
use crate::watches::Lags;

const NODES: usize = 50;

fn script() -> Script {
    let mut script = Script::default();
    let late = PodBehaviour { ready_after: 1500, gone_after: 1000, fate: Fate::CrashesAfter(20_000) };
    script.pods.insert(("agent:2".into(), "*".into()), late);
    script
}

fn bad(rollout: &Rollout) -> usize {
    rollout.pods().values().filter(|(image, _)| image == "agent:2").count()
}

/// Nodes with the bad template after a minute of the native rolling update, with
/// a budget that something else may raise.
fn without_windlass(raise: impl Fn(&Rollout) -> Option<Value>) -> usize {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let mut rollout = Rollout::new(Canary::default(), false, NODES, strategy, script());
    rollout.latency = u64::MAX / 4;
    rollout.upgrade("2");
    let mut worst = 0;
    for _ in 0..120 {
        let end = rollout.world.now() + 500;
        while rollout.world.next_due().is_some_and(|due| due <= end) {
            rollout.world.step();
        }
        rollout.world.wait_until(end);
        if let Some(strategy) = raise(&rollout) {
            rollout.edit(strategy);
        }
        worst = worst.max(bad(&rollout));
    }
    worst
}

/// One canary that is ready once, then 10 %, and no freeze.
fn one_then_ten_percent(rollout: &Rollout) -> Option<Value> {
    let ready = rollout.pods().values().filter(|(image, ready)| image == "agent:2" && *ready).count();
    let live = &rollout.world.store.get(&key()).unwrap()["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
    let raised = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}});
    (ready > 0 && *live == 1).then_some(raised)
}

#[test]
fn in_strict_a_late_crash_costs_one_node() {
    let native = without_windlass(|_| None);
    let without_freeze = without_windlass(one_then_ten_percent);
    let canary = Canary { mode: Some(RolloutMode::Strict), ..Canary::default() };
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}});
    let mut rollout = Rollout::new(canary, true, NODES, strategy, script());
    rollout.upgrade("2");
    rollout.play(1_800_000);
    let strict = bad(&rollout);
    println!("bad of {NODES}: budget of 1: {native}, 1 then 10 % without a freeze: {without_freeze}, Strict: {strict}");
    assert_eq!(strict, 1, "{}", rollout.tell());
    assert!(native > 1 && without_freeze > native);
    assert_eq!((rollout.record.phase, rollout.record.reason), (RolloutPhase::Failed, Some(RolloutReason::Crashing)));
}

/// The pod crashes more slowly than the soak is long, and comes again and again:
/// it is stopped in the steps, by the same judgement.
#[test]
fn crashes_after_the_soak_stop_the_steps() {
    let mut script = script();
    let later = PodBehaviour { ready_after: 1500, gone_after: 1000, fate: Fate::CrashesAfter(70_000) };
    script.pods.insert(("agent:2".into(), "*".into()), later);
    let canary = Canary { max_restarts: Some(0), ..Canary::default() };
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    let mut rollout = Rollout::new(canary, true, NODES, strategy, script);
    rollout.upgrade("2");
    rollout.play(1_800_000);
    assert_eq!((rollout.record.phase, rollout.record.reason), (RolloutPhase::Failed, Some(RolloutReason::Crashing)));
    let strategy = &rollout.world.store.get(&key()).unwrap()["spec"]["updateStrategy"];
    assert_eq!(strategy["type"], "OnDelete");
    assert!(bad(&rollout) < NODES / 2 + 10, "{} of {NODES}", bad(&rollout));
}

/// The watch of pods may be dead for minutes, and nothing tells of it: before more pods go
/// the canary is asked for anew.
#[test]
fn a_crash_that_no_watch_has_told_of_yet_costs_one_node() {
    let mut script = Script::default();
    script.pods_behave("agent:2", "*", Fate::CrashesAfter(30_000));
    let canary = Canary { soak: Some("20s".into()), max_restarts: Some(0), ..Canary::default() };
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let mut rollout = Rollout::new(canary, true, 20, strategy, script);
    rollout.watch(Lags { pods: 40_000, ..Lags::default() });
    rollout.upgrade("2");
    rollout.play(600_000);
    let replaced = rollout.pods().values().filter(|(image, _)| image == "agent:2").count();
    assert_eq!((replaced, rollout.record.phase), (1, RolloutPhase::Failed), "{}", rollout.tell());
}

/// What the engine has applied is seen by a watch of its own, which may be sooner.
#[test]
fn a_rollout_does_not_end_before_its_template_was_seen() {
    let canary = Canary { soak: Some("1s".into()), ..Canary::default() };
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    let mut rollout = Rollout::new(canary, true, 3, strategy, Script::default());
    rollout.watch(Lags { daemon_sets: 12_000, revisions: 12_000, pods: 12_000, nodes: 0 });
    let before = rollout.told.len();
    rollout.upgrade("2");
    rollout.play(600_000);
    let ends = rollout.told[before..].iter().filter(|told| told.record.phase == RolloutPhase::Successful);
    assert_eq!(ends.count(), 1, "{}", rollout.tell());
    assert!(rollout.pods().values().all(|(image, _)| image == "agent:2"), "{}", rollout.tell());
}
