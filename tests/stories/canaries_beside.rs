//! DaemonSets behind a canary beside the straight way: several in one component,
//! changed by hand, failed on the way back, let go.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{Engine, RolloutPhase, RolloutReason};
use windlass::sim::chart::{Fate, Outcome, Script, Template};
use windlass::sim::guard::Policy;
use windlass::sim::store::Expected;

use crate::canaries::{NODES, agent, agents, budgets, images, installed, key, most_down, script};
use crate::play::{Play, at, component, package};

/// A chart with a second DaemonSet, whose image is `two`.
fn script_of_two() -> Script {
    let mut script = script();
    let mut two = Template::daemon_set(json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}));
    two.name = "{release}-two".into();
    two.spec["template"]["spec"]["containers"][0]["image"] = json!("two:{version}");
    two.spec["template"]["metadata"]["labels"]["app"] = json!("two");
    script.charts.get_mut("agent").unwrap().push(two);
    script
}

fn running(play: &Play, image: &str) -> usize {
    images(play).iter().filter(|found| *found == image).count()
}

/// Both get the same release: once one of them has failed no pod of the other goes.
#[rstest]
#[case::strict_on_flux(Engine::Flux, "Strict", Policy::Strict)]
#[case::compat_on_flux(Engine::Flux, "Compat", Policy::Compat)]
#[case::strict_on_argo(Engine::Argo, "Strict", Policy::Strict)]
fn a_daemon_set_waits_while_another_of_its_component_has_failed(
    #[case] engine: Engine,
    #[case] mode: &str,
    #[case] policy: Policy,
    #[values("agent:2.0.0", "two:2.0.0")] broken: &str,
) {
    let canary = json!({"mode": mode, "steps": ["30%"], "soak": "5s"});
    let mut script = script_of_two();
    script.pods_behave(broken, "*", Fate::CannotPull);
    let mut play = installed(engine, &[policy], script, canary.clone());
    play.commit("app", agents("2.0.0", canary.clone()));
    play.until("app", "UpgradeFailed");
    play.rehearsal.run_for(3_600_000);
    let other = if broken == "two:2.0.0" { "agent:2.0.0" } else { "two:2.0.0" };
    assert!(running(&play, other) <= 1, "{} run {other}\n{}", running(&play, other), play.tell());
    let status = play.status("app");
    let paused = status.rollouts.iter().filter(|rollout| rollout.reason == Some(RolloutReason::Paused)).count();
    assert_eq!((status.rollouts.len(), paused), (2, 1), "{:?}", status.rollouts);
    play.commit("app", agents("2.1.0", canary));
    play.until_ready("app");
    assert_eq!((running(&play, "agent:2.1.0"), running(&play, "two:2.1.0")), (NODES, NODES));
}

fn restart_by_hand(play: &mut Play) {
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": "now"});
    play.patch(&key(), json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}));
}

fn not_restarted(play: &Play) -> usize {
    let pods = play.rehearsal.world.store.list("Pod");
    let old = |pod: &serde_json::Map<String, Value>| {
        at(pod, "/metadata/annotations/kubectl.kubernetes.io~1restartedAt").is_null()
    };
    pods.filter(|(key, pod)| key.name.starts_with("agent-") && old(pod)).count()
}

/// Whatever the package does meanwhile, a template that is changed by hand is rolled
/// out, and does not stand there frozen until something is over.
#[rstest]
#[case::its_wanted_spec_waits(false)]
#[case::another_component_has_failed(true)]
fn a_restart_by_hand_does_not_wait_for_the_package(#[case] fails: bool) {
    let canary = json!({"soak": "5s", "steps": ["30%"]});
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), canary.clone());
    play.rehearsal.run_for(60_000);
    if fails {
        play.rehearsal.world.script.behave("after", "2.0.0", Outcome::Fails, 1000);
        let spec = package("2.0.0", vec![agent("1.0.0", canary), component("after", "2.0.0", &["agent"])]);
        play.commit("app", spec);
        play.until("app", "UpgradeFailed");
    } else {
        let mut spec = agents("2.0.0", canary);
        spec["requires"] = json!([{"package": "base", "version": ">=1.0.0"}]);
        play.commit("app", spec);
        play.until("app", "RequirementsNotMet");
    }
    let position = play.position();
    restart_by_hand(&mut play);
    play.rehearsal.run_for(600_000);
    assert_eq!(not_restarted(&play), 0, "{}", play.tell());
    assert_eq!(budgets(&play, position), ["frozen", "30%", "1"], "{}", play.tell());
    assert_eq!(play.reason("app"), if fails { "UpgradeFailed" } else { "RequirementsNotMet" });
}

#[test]
fn a_suspended_package_freezes_what_somebody_has_begun_by_hand() {
    let canary = json!({"mode": "Compat", "steps": ["1"], "soak": "1s"});
    let mut play = installed(Engine::Flux, &[Policy::Compat], script(), canary.clone());
    play.rehearsal.run_for(60_000);
    restart_by_hand(&mut play);
    play.rehearsal.run_for(12_000);
    let mut spec = agents("1.0.0", canary.clone());
    spec["suspend"] = json!(true);
    play.commit("app", spec);
    play.rehearsal.run_for(10_000);
    let (position, left) = (play.position(), not_restarted(&play));
    assert!(left > 0, "{}", play.tell());
    play.rehearsal.run_for(600_000);
    assert_eq!((budgets(&play, position), not_restarted(&play)), (Vec::new(), left), "{}", play.tell());
    play.commit("app", agents("1.0.0", canary));
    play.rehearsal.run_for(600_000);
    assert_eq!(not_restarted(&play), 0, "{}", play.tell());
}

#[test]
fn a_rollout_by_hand_that_failed_is_told_and_tried_again_when_asked_for() {
    let canary = json!({"soak": "1s", "timeout": "30s"});
    let mut script = script();
    let by_hand = "agent:by-hand";
    script.pods_behave(by_hand, "*", Fate::NeverReady);
    let mut play = installed(Engine::Flux, &[Policy::Strict], script, canary);
    play.rehearsal.run_for(20_000);
    let containers = json!([{"name": "main", "image": by_hand}]);
    play.patch(&key(), json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    play.rehearsal.run_for(60_000);
    assert_eq!(play.status("app").rollouts[0].phase, RolloutPhase::Failed, "{}", play.tell());
    let message = play.message("app");
    assert!(play.reason("app") == "Ready" && message.contains("DaemonSet packages/agent"), "{message}");
    // What it lacked is there now, and somebody makes its pod anew.
    play.rehearsal.world.script.pods.clear();
    let mut pods = play.rehearsal.world.store.list("Pod");
    let broken = pods.find(|(_, pod)| at(pod, "/spec/containers/0/image") == by_hand).unwrap().0.clone();
    drop(pods);
    play.rehearsal.world.store.delete("user", &broken, &Expected::default()).unwrap();
    play.rehearsal.run_for(60_000);
    assert_eq!(running(&play, by_hand), 1, "it stays failed until somebody asks");
    play.annotate("app", "windlass.dev/retry", "again");
    play.rehearsal.run_for(120_000);
    assert_eq!(running(&play, by_hand), NODES, "{}", play.tell());
    assert_eq!(play.status("app").rollouts[0].phase, RolloutPhase::Successful);
}

/// The freeze of what could not be restored is looked after: it may not have been
/// written, or somebody else writes over it.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_that_failed_stays_frozen(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = installed(engine, &[Policy::Strict], script, json!({"soak": "5s"}));
    play.rehearsal.world.script.pods_behave("agent:1.0.0", "*", Fate::CannotPull);
    let mut spec = agents("2.0.0", json!({"soak": "5s"}));
    spec["rollback"] = json!({"safe": true});
    let position = play.position();
    play.commit("app", spec);
    play.until("app", "RollbackFailed");
    play.rehearsal.world.store.policies.clear();
    play.patch(
        &key(),
        json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}}}),
    );
    play.rehearsal.run_for(3_600_000);
    assert_eq!(budgets(&play, position).last().unwrap(), "frozen", "{}", play.tell());
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
    assert_eq!(play.reason("app"), "RollbackFailed");
}

/// Who lets go of a package leaves nothing under the guard: nobody would lift a freeze.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn an_orphaned_daemon_set_is_taken_from_under_the_guard(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::CannotPull);
    let mut play = installed(engine, &[Policy::Strict], script, json!({}));
    play.commit("app", agents("2.0.0", json!({})));
    play.until("app", "UpgradeFailed");
    assert_eq!(budgets(&play, 0).last().unwrap(), "frozen");
    let mut spec = agents("2.0.0", json!({}));
    spec["deletionPolicy"] = json!("Orphan");
    play.commit("app", spec);
    play.delete("app");
    play.until_gone("app");
    let daemon_set = play.object(&key()).unwrap();
    assert!(at(daemon_set, "/metadata/labels/windlass.dev~1canary").is_null(), "{daemon_set:?}");
    assert_eq!(at(daemon_set, "/spec/updateStrategy/type"), "RollingUpdate");
    assert_eq!(at(daemon_set, "/spec/updateStrategy/rollingUpdate/maxUnavailable"), 1);
}

/// A DaemonSet that the canary does not name is waited for like a Deployment.
#[test]
fn a_daemon_set_that_is_not_named_is_waited_for() {
    let mut script = script_of_two();
    script.pods_behave("two:2.0.0", "n3", Fate::NeverReady);
    let canary = json!({"soak": "1s", "daemonSets": ["agent"]});
    let mut play = installed(Engine::Flux, &[Policy::Strict], script, canary.clone());
    play.commit("app", agents("2.0.0", canary));
    play.rehearsal.run_for(300_000);
    assert_eq!(play.reason("app"), "Progressing");
    assert!(play.message("app").contains("DaemonSet/agent-two"), "{}", play.message("app"));
}

/// A release that has another DaemonSet from now on.
#[test]
fn a_daemon_set_that_is_gone_is_not_told_any_more() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script_of_two(), json!({"soak": "1s"}));
    play.rehearsal.run_for(60_000);
    assert_eq!(play.status("app").rollouts.len(), 2);
    play.rehearsal.world.script.charts.get_mut("agent").unwrap().pop();
    play.commit("app", agents("2.0.0", json!({"soak": "1s"})));
    play.until_ready("app");
    play.rehearsal.run_for(60_000);
    let rollouts = play.status("app").rollouts;
    assert_eq!(rollouts.iter().map(|rollout| rollout.daemon_set.as_str()).collect::<Vec<_>>(), ["packages/agent"]);
}

/// The same image with other values: nothing but the template tells.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_change_of_configuration_alone_is_rolled_out_behind_a_canary(#[case] engine: Engine) {
    let canary = json!({"soak": "5s", "steps": ["30%"]});
    let mut play = installed(engine, &[Policy::Strict], script(), canary.clone());
    let position = play.position();
    let mut spec = agents("1.0.0", canary);
    spec["components"][0]["values"] = json!({"level": "debug"});
    play.commit("app", spec);
    play.until_ready("app");
    assert!(budgets(&play, position).ends_with(&["frozen".into(), "30%".into(), "1".into()]), "{}", play.tell());
    let pods = play.rehearsal.world.store.list("Pod");
    let of_now = pods.map(|(_, pod)| at(pod, "/spec/containers/0/env/0/value").clone()).collect::<Vec<_>>();
    let template = at(play.object(&key()).unwrap(), "/spec/template/spec/containers/0/env/0/value");
    assert!(of_now.len() == NODES && of_now.iter().all(|value| value == template), "{of_now:?}");
}

/// The policy is removed in the middle of an upgrade that then fails.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_rollback_is_guarded_though_the_policy_went_away_meanwhile(#[case] engine: Engine) {
    let mut script = script();
    script.pods_behave("agent:2.0.0", "*", Fate::NeverReady);
    let canary = json!({"soak": "5s", "timeout": "60s"});
    let mut play = installed(engine, &[Policy::Strict], script, canary.clone());
    let position = play.position();
    let mut spec = agents("2.0.0", canary);
    spec["rollback"] = json!({"safe": true});
    play.commit("app", spec);
    play.rehearsal.run_for(20_000);
    play.rehearsal.world.store.policies.clear();
    play.until("app", "UpgradeRolledBack");
    play.rehearsal.run_for(60_000);
    assert_eq!(images(&play), vec!["agent:1.0.0"; NODES], "{}", play.tell());
    assert_eq!(most_down(&play, position), 1, "{}", play.tell());
}
