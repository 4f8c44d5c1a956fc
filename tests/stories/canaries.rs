//! DaemonSets behind a canary, as part of a package.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{Engine, RolloutGuard, RolloutPhase, RolloutReason};
use windlass::sim::chart::{Fate, Outcome, Script, Template};
use windlass::sim::guard::Policy;
use windlass::sim::store::Expected;
use windlass::sim::{Change, Key, Verb};

use crate::play::{NAMESPACE, Play, at, component, package};

pub const NODES: usize = 10;

pub fn key() -> Key {
    Key::new("apps/v1", "DaemonSet", NAMESPACE, "agent")
}

pub fn script() -> Script {
    let mut script = Script::default();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}});
    script.charts.insert("agent".into(), vec![Template::daemon_set(strategy)]);
    script
}

pub fn agent(version: &str, canary: Value) -> Value {
    let mut agent = component("agent", version, &[]);
    agent["canary"] = canary;
    agent
}

pub fn agents(version: &str, canary: Value) -> Value {
    package(version, vec![agent(version, canary), component("after", version, &["agent"])])
}

/// A cluster of ten nodes that runs version 1 of a chart which states 50 %.
fn play(engine: Engine, policies: &[Policy], script: Script) -> Play {
    let mut play = Play::new(engine, script);
    play.rehearsal.world.store.policies = policies.iter().copied().collect();
    for number in 1..=NODES {
        play.rehearsal.world.add_node(&format!("n{number}"));
    }
    play
}

/// Budgets of the DaemonSet as the cluster's log shows them, without repetitions.
pub fn budgets(play: &Play, since: usize) -> Vec<String> {
    let mut budgets: Vec<String> = Vec::new();
    for change in play.changes_since(since).filter(|change| change.key.kind == "DaemonSet") {
        let strategy = at(&change.object, "/spec/updateStrategy");
        let budget = match strategy["type"].as_str() {
            Some("OnDelete") => "frozen".to_owned(),
            _ => strategy["rollingUpdate"]["maxUnavailable"].to_string().replace('"', ""),
        };
        if budgets.last() != Some(&budget) {
            budgets.push(budget);
        }
    }
    budgets
}

/// Most pods that were not ready at once.
pub fn most_down(play: &Play, since: usize) -> usize {
    let mut ready = std::collections::BTreeMap::new();
    let mut worst = 0;
    for (position, change) in play.rehearsal.world.store.log().iter().enumerate() {
        if change.key.kind != "Pod" {
            continue;
        }
        let conditions = at(&change.object, "/status/conditions").as_array().cloned().unwrap_or_default();
        let is_ready = change.verb != Verb::Deleted
            && at(&change.object, "/metadata/deletionTimestamp").is_null()
            && conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let node = at(&change.object, "/spec/nodeName").as_str().unwrap_or_default().to_owned();
        ready.insert(node, is_ready);
        if position >= since {
            worst = worst.max(ready.values().filter(|ready| !**ready).count());
        }
    }
    worst
}

/// A cluster in which 1.0.0 runs.
pub fn installed(engine: Engine, policies: &[Policy], script: Script, canary: Value) -> Play {
    let mut play = play(engine, policies, script);
    play.commit("app", agents("1.0.0", canary));
    play.until_ready("app");
    play
}

pub fn images(play: &Play) -> Vec<String> {
    let pods = play.rehearsal.world.store.list("Pod");
    pods.map(|(_, pod)| at(pod, "/spec/containers/0/image").as_str().unwrap().to_owned()).collect()
}

#[rstest]
#[case::strict_on_flux(Engine::Flux, "Strict", &[Policy::Strict], RolloutGuard::AdmissionStrict)]
#[case::compat_on_flux(Engine::Flux, "Compat", &[Policy::Compat], RolloutGuard::AdmissionCompat)]
#[case::rendered_on_flux(Engine::Flux, "Compat", &[], RolloutGuard::Rendered)]
#[case::strict_without_a_policy_on_flux(Engine::Flux, "Strict", &[], RolloutGuard::Rendered)]
#[case::strict_on_argo(Engine::Argo, "Strict", &[Policy::Strict], RolloutGuard::AdmissionStrict)]
#[case::compat_on_argo(Engine::Argo, "Compat", &[Policy::Compat], RolloutGuard::AdmissionCompat)]
#[case::rendered_on_argo(Engine::Argo, "Compat", &[], RolloutGuard::Rendered)]
fn an_upgrade_takes_one_node_first_and_the_next_component_waits_for_the_last(
    #[case] engine: Engine,
    #[case] mode: &str,
    #[case] policies: &[Policy],
    #[case] guard: RolloutGuard,
) {
    let mut play = play(engine, policies, script());
    let canary = json!({"mode": mode, "steps": ["30%"], "soak": "5s"});
    play.commit("app", agents("1.0.0", canary.clone()));
    play.until_ready("app");
    let position = play.position();
    play.commit("app", agents("2.0.0", canary));
    play.until_ready("app");
    assert!(images(&play).iter().all(|image| image == "agent:2.0.0"), "{}", play.tell());
    assert!(budgets(&play, position).ends_with(&["30%".into(), "1".into()]), "{}", play.tell());
    assert!(most_down(&play, position) <= 3, "{} down\n{}", most_down(&play, position), play.tell());
    let after =
        play.changes_since(position).position(|change| change.key.name == "app-after" && change.actor == "windlass");
    let old = |change: &windlass::sim::Change| at(&change.object, "/spec/containers/0/image") == "agent:1.0.0";
    let last = play.changes_since(position).collect::<Vec<_>>();
    let last = last.iter().rposition(|change| change.key.kind == "Pod" && old(change));
    assert!(after > last, "the next component was written before the last old pod had gone");
    let status = play.status("app");
    assert_eq!(status.rollouts.len(), 1);
    assert_eq!((status.rollouts[0].phase, status.rollouts[0].guard), (RolloutPhase::Successful, Some(guard)));
    assert_eq!((status.rollouts[0].updated, status.rollouts[0].desired), (10, 10));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_canary_that_crashes_costs_one_node_and_is_told_with_its_pod(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CrashesAtOnce);
    let mut play = installed(engine, &[Policy::Strict], script, json!({}));
    let position = play.position();
    play.commit("app", agents("2.0.0", json!({})));
    play.until("app", "UpgradeFailed");
    let message = play.message("app");
    assert!(message.contains("component agent: DaemonSet packages/agent: pod agent-"), "{message}");
    assert!(message.contains("on node n1") && message.contains("container main: CrashLoopBackOff"), "{message}");
    play.rehearsal.run_for(3_600_000);
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
    assert_eq!(budgets(&play, position).last().unwrap(), "frozen");
    let status = play.status("app");
    assert_eq!(
        (status.rollouts[0].phase, status.rollouts[0].reason),
        (RolloutPhase::Failed, Some(RolloutReason::Crashing))
    );
    assert!(play.runs("after").as_deref() == Some("1.0.0"), "what depends on it is left alone");
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_fix_is_tried_on_the_node_that_is_down(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = installed(engine, &[Policy::Strict], script, json!({}));
    let position = play.position();
    play.commit("app", agents("2.0.0", json!({})));
    play.until("app", "UpgradeFailed");
    play.commit("app", agents("2.1.0", json!({})));
    play.until_ready("app");
    assert!(images(&play).iter().all(|image| image == "agent:2.1.0"), "{}", play.tell());
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_failed_canary_is_rolled_back_where_that_is_safe(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::InitCrashes);
    let mut play = installed(engine, &[Policy::Strict], script, json!({}));
    let position = play.position();
    let mut spec = agents("2.0.0", json!({}));
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(600_000);
    assert!(images(&play).iter().all(|image| image == "agent:1.0.0"), "{}", play.tell());
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
    assert_eq!(play.status("app").rollouts[0].phase, RolloutPhase::Successful);
    let back = play.position();
    play.rehearsal.run_for(3_600_000);
    assert_eq!(play.moves_since(back), Vec::<String>::new());
    assert_eq!(budgets(&play, back), Vec::<String>::new(), "{}", play.tell());
}

#[test]
fn a_late_crash_during_the_soak_costs_one_node() {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CrashesAfter(20_000));
    let mut play = installed(Engine::Flux, &[Policy::Strict], script, json!({"maxRestarts": 0}));
    let position = play.position();
    play.commit("app", agents("2.0.0", json!({"maxRestarts": 0})));
    play.until("app", "UpgradeFailed");
    play.rehearsal.run_for(3_600_000);
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
}

/// What keeps a DaemonSet down longer than `upgrade.timeout` is its own size.
#[test]
fn the_turn_is_given_the_time_that_the_rollout_takes() {
    let mut play = play(Engine::Flux, &[Policy::Strict], script());
    let mut spec = agents("1.0.0", json!({"steps": ["1"]}));
    spec["upgrade"] = json!({"timeout": "30s"});
    play.commit("app", spec.clone());
    play.until_ready("app");
    let mut spec = agents("2.0.0", json!({"steps": ["1"]}));
    spec["upgrade"] = json!({"timeout": "30s"});
    play.commit("app", spec);
    play.rehearsal.run_for(30_000);
    let told = play.message("app");
    // 30s and the canary's own: 10m, 1m, nine nodes at 10m.
    assert!(told.contains("its turn has 1h41m30s, 1h41m of them for this"), "{told}");
    play.until_ready("app");
}

/// On Argo CD self-heal would take it back.
#[test]
fn a_template_that_somebody_changes_by_hand_is_rolled_out_behind_a_canary_too() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), json!({}));
    play.rehearsal.run_for(60_000);
    let position = play.position();
    let restart =
        json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}});
    play.patch(&key(), restart);
    play.rehearsal.run_for(600_000);
    let pods = play.rehearsal.world.store.list("Pod");
    let old = pods.filter(|(_, pod)| at(pod, "/metadata/annotations/kubectl.kubernetes.io~1restartedAt").is_null());
    assert_eq!(old.count(), 0, "{}", play.tell());
    assert_eq!(budgets(&play, position), ["frozen", "10%", "1"], "{}", play.tell());
    assert_eq!(play.reason("app"), "Ready");
}

#[test]
fn a_suspended_package_freezes_its_rollout() {
    let mut play = play(Engine::Flux, &[Policy::Compat], script());
    let canary = json!({"mode": "Compat", "steps": ["1"], "soak": "5s"});
    play.commit("app", agents("1.0.0", canary.clone()));
    play.until_ready("app");
    play.commit("app", agents("2.0.0", canary.clone()));
    play.rehearsal.run_for(12_000);
    let mut spec = agents("2.0.0", canary.clone());
    spec["suspend"] = json!(true);
    play.commit("app", spec);
    play.rehearsal.run_for(10_000);
    let position = play.position();
    play.rehearsal.run_for(600_000);
    assert_eq!(budgets(&play, position), Vec::<String>::new());
    assert_eq!(play.status("app").rollouts[0].reason, Some(RolloutReason::Paused), "{}", play.tell());
    assert!(images(&play).iter().any(|image| image == "agent:1.0.0"));
    play.commit("app", agents("2.0.0", canary));
    play.until_ready("app");
    assert!(images(&play).iter().all(|image| image == "agent:2.0.0"));
}

/// Somebody holds the release back, and with it what it rolls out.
#[test]
fn a_suspended_release_freezes_its_rollout() {
    let canary = json!({"mode": "Compat", "steps": ["1"], "soak": "5s"});
    let mut play = installed(Engine::Flux, &[Policy::Compat], script(), canary.clone());
    play.commit("app", agents("2.0.0", canary));
    play.rehearsal.run_for(12_000);
    let suspend = |suspend: bool| json!({"spec": {"suspend": suspend}});
    let child = play.child("app", "agent");
    play.patch(&child, suspend(true));
    play.rehearsal.run_for(10_000);
    let old = |play: &Play| images(play).iter().filter(|image| *image == "agent:1.0.0").count();
    let left = old(&play);
    assert!(left > 0 && left < NODES, "{left}");
    play.rehearsal.run_for(600_000);
    assert_eq!((play.reason("app").as_str(), old(&play)), ("Suspended", left), "{}", play.tell());
    play.patch(&child, suspend(false));
    play.until_ready("app");
    assert_eq!(old(&play), 0, "{}", play.tell());
}

/// The policy that a release was rendered for has gone before its turn.
#[test]
fn a_release_states_its_budget_itself_where_the_policy_is_gone() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), json!({}));
    let mut spec = agents("2.0.0", json!({}));
    spec["components"][0]["install"]["dependsOn"] = json!(["first"]);
    spec["components"].as_array_mut().unwrap().push(component("first", "2.0.0", &[]));
    let position = play.position();
    play.commit("app", spec.clone());
    play.rehearsal.run_for(50);
    play.rehearsal.world.store.policies.clear();
    play.until_ready("app");
    assert!(images(&play).iter().all(|image| image == "agent:2.0.0"));
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
    assert_eq!(play.status("app").rollouts[0].guard, Some(RolloutGuard::Rendered));
    // It goes on doing so, whatever comes back.
    play.rehearsal.world.store.policies.insert(Policy::Strict);
    let back = play.position();
    spec["components"][2]["values"] = json!({"a": 1});
    play.commit("app", spec);
    play.until_ready("app");
    assert_eq!(play.moves_since(back), ["app-first"]);
}

/// What is restored was rendered before its component had a canary.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_to_what_was_rendered_without_a_canary_is_guarded_too(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = play(engine, &[], script);
    play.commit("app", package("1.0.0", vec![component("agent", "1.0.0", &[])]));
    play.until_ready("app");
    let canary = json!({"soak": "5s"});
    play.commit("app", package("1.0.0", vec![agent("1.0.0", canary.clone())]));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    let position = play.position();
    let mut spec = package("2.0.0", vec![agent("2.0.0", canary.clone())]);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(60_000);
    assert_eq!(images(&play), vec!["agent:1.0.0"; NODES], "{}", play.tell());
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
    let back = play.position();
    play.commit("app", package("1.0.0", vec![agent("1.0.0", canary)]));
    play.until_ready("app");
    if engine == Engine::Flux {
        assert_eq!(play.moves_since(back), Vec::<String>::new());
    }
    assert!(budgets(&play, back).is_empty() || engine == Engine::Argo);
}

/// A policy of the other mode keeps nothing small.
#[test]
fn compat_beside_the_policy_for_strict_states_its_budget_itself() {
    let canary = json!({"mode": "Compat", "soak": "5s"});
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), canary.clone());
    let position = play.position();
    play.commit("app", agents("2.0.0", canary));
    play.until_ready("app");
    assert!(images(&play).iter().all(|image| image == "agent:2.0.0"));
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
    assert_eq!(play.status("app").rollouts[0].guard, Some(RolloutGuard::Rendered));
}

#[test]
fn once_everything_is_done_nothing_is_written_any_more() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), json!({}));
    play.commit("app", agents("2.0.0", json!({})));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    let position = play.position();
    play.rehearsal.run_for(7_200_000);
    let written: Vec<_> = play.changes_since(position).filter(|change| change.actor == "windlass").collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn a_component_that_loses_its_canary_is_taken_from_under_the_guard() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), json!({}));
    let label = |play: &Play| at(play.object(&key()).unwrap(), "/metadata/labels/windlass.dev~1canary").clone();
    assert_eq!(label(&play), "strict");
    play.commit(
        "app",
        package("1.0.0", vec![component("agent", "1.0.0", &[]), component("after", "1.0.0", &["agent"])]),
    );
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    assert_eq!(label(&play), Value::Null, "{}", play.tell());
    assert_eq!(play.status("app").rollouts.len(), 0);
}

/// Ready says only that it was applied, where Flux does not wait.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_else_the_release_runs_is_waited_for(#[case] engine: Engine) {
    let mut script = script();
    script.charts.get_mut("agent").unwrap().push(Template::deployment());
    let mut play = play(engine, &[Policy::Strict], script);
    play.commit("app", agents("1.0.0", json!({})));
    play.until_ready("app");
    play.rehearsal.world.script.behave("agent", "2.0.0", Outcome::Succeeds, 400_000);
    let position = play.position();
    play.commit("app", agents("2.0.0", json!({"soak": "1s"})));
    play.until_ready("app");
    let first = |what: &dyn Fn(&Change) -> bool| play.changes_since(position).find(|change| what(change)).unwrap().at;
    let ready = first(&|change| {
        change.key.kind == "Deployment"
            && change.key.name == "agent"
            && at(&change.object, "/spec/version") == "2.0.0"
            && at(&change.object, "/status/updatedReplicas") == 1
    });
    let moved = first(&|change| change.key.name == "app-after" && change.actor == "windlass");
    assert!(moved >= ready, "moved at {moved}, ready at {ready}");
}

/// The version before has no canary: nobody would steer its DaemonSets once they
/// are back.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_to_before_there_was_a_canary_leaves_no_guard(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = play(engine, &[Policy::Strict], script);
    play.commit("app", package("1.0.0", vec![component("agent", "1.0.0", &[])]));
    play.until_ready("app");
    let mut spec = package("2.0.0", vec![agent("2.0.0", json!({}))]);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(60_000);
    assert_eq!(images(&play), vec!["agent:1.0.0"; NODES], "{}", play.tell());
    let daemon_set = play.object(&key()).unwrap();
    assert!(at(daemon_set, "/metadata/labels/windlass.dev~1canary").is_null(), "{daemon_set:?}");
    assert_eq!(at(daemon_set, "/spec/updateStrategy/type"), "RollingUpdate");
}

/// Nothing but the canary goes: Argo CD wants the chart's own budget from then on.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_canary_alone_is_removed(#[case] engine: Engine) {
    let mut play = installed(engine, &[Policy::Strict], script(), json!({}));
    let position = play.position();
    let without = package("1.0.0", vec![component("agent", "1.0.0", &[]), component("after", "1.0.0", &["agent"])]);
    play.commit("app", without);
    play.until_ready("app");
    play.rehearsal.run_for(600_000);
    assert!(play.changes_since(position).count() < 60, "{}", play.tell());
    assert!(at(play.object(&key()).unwrap(), "/metadata/labels/windlass.dev~1canary").is_null());
    assert_eq!(play.reason("app"), "Ready");
}

/// Restarts that a pod has had in its life say nothing about a version that comes back.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_forgives_what_pods_went_through_before(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = installed(engine, &[Policy::Strict], script, json!({"soak": "5s"}));
    let on_the_last_node = |pod: &&Key| at(play.object(pod).unwrap(), "/spec/nodeName") == "n9";
    let pod = play.rehearsal.world.store.list("Pod").map(|(key, _)| key).find(on_the_last_node).unwrap().clone();
    let restarted = json!([{"name": "main", "restartCount": 5, "state": {"running": {}}}]);
    let store = &mut play.rehearsal.world.store;
    let restart = |pod: &mut serde_json::Map<String, Value>| pod["status"]["containerStatuses"] = restarted;
    store.edit("kubelet", &pod, &Expected::default(), restart).unwrap();
    let mut spec = agents("2.0.0", json!({"soak": "5s"}));
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.until("app", "UpgradeRolledBack");
    assert_eq!(images(&play), vec!["agent:1.0.0"; NODES], "{}", play.tell());
    assert_eq!(at(play.object(&pod).unwrap(), "/status/containerStatuses/0/restartCount"), 5);
}
