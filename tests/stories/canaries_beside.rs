//! DaemonSets behind a canary beside the straight way: several in one component,
//! changed by hand, failed on the way back, let go.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{Engine, RolloutGuard, RolloutPhase, RolloutReason};
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

fn labelled(play: &Play, name: &str) -> Option<String> {
    let key = windlass::sim::Key::new("apps/v1", "DaemonSet", crate::play::NAMESPACE, name);
    at(play.object(&key).unwrap(), "/metadata/labels/windlass.dev~1canary").as_str().map(str::to_owned)
}

/// What the canary names no more is nobody's to roll out under the guard, which holds
/// every new template of it.
#[rstest]
#[case::from_all_to_one(json!({"soak": "5s"}))]
#[case::from_two_to_one(json!({"soak": "5s", "daemonSets": ["agent", "agent-two"]}))]
#[case::from_one_to_another(json!({"soak": "5s", "daemonSets": ["agent-two"]}))]
fn a_daemon_set_that_is_named_no_more_is_taken_from_under_the_guard(
    #[case] before: Value,
    #[values(Engine::Flux, Engine::Argo)] engine: Engine,
    #[values("1.0.0", "2.0.0")] version: &str,
) {
    let mut play = installed(engine, &[Policy::Strict], script_of_two(), before);
    play.rehearsal.run_for(60_000);
    assert_eq!(labelled(&play, "agent-two").as_deref(), Some("strict"));
    let after = json!({"soak": "5s", "daemonSets": ["agent"]});
    play.commit("app", agents(version, after.clone()));
    play.until_ready("app");
    play.rehearsal.run_for(300_000);
    assert_eq!(labelled(&play, "agent-two"), None, "{}", play.tell());
    let (one, two) = (format!("agent:{version}"), format!("two:{version}"));
    assert_eq!((running(&play, &one), running(&play, &two)), (NODES, NODES), "{}", play.tell());
    play.commit("app", agents("3.0.0", after));
    play.until_ready("app");
    play.rehearsal.run_for(300_000);
    assert_eq!((running(&play, "agent:3.0.0"), running(&play, "two:3.0.0")), (NODES, NODES), "{}", play.tell());
}

fn old(play: &Play) -> usize {
    running(play, "agent:1.0.0")
}

/// From when a newer revision is there until its component has its turn, nobody else
/// looks after the rollout that was open.
#[rstest]
#[case::a_component_before_it_takes_long(false, false)]
#[case::a_hook_takes_long(true, false)]
#[case::it_is_suspended_then(false, true)]
fn a_rollout_that_a_newer_revision_has_overtaken_stands_still_until_its_turn(
    #[case] hook: bool,
    #[case] suspended: bool,
) {
    let canary = json!({"mode": "Compat", "steps": ["1"], "soak": "5s"});
    let mut play = installed(Engine::Flux, &[Policy::Compat], script(), canary.clone());
    play.rehearsal.world.script.behave("first", "3.0.0", Outcome::Hangs, 1000);
    play.rehearsal.world.script.behave("migration", "3.0.0", Outcome::Hangs, 1000);
    play.commit("app", agents("2.0.0", canary.clone()));
    play.rehearsal.run_for(15_000);
    let mut spec = agents("3.0.0", canary);
    if hook {
        spec["components"].as_array_mut().unwrap().push(crate::play::hook("migration", "3.0.0"));
    } else {
        spec["components"].as_array_mut().unwrap().push(component("first", "3.0.0", &[]));
        spec["components"][0]["install"]["dependsOn"] = json!(["first"]);
    }
    play.commit("app", spec.clone());
    play.rehearsal.run_for(10_000);
    if suspended {
        spec["suspend"] = json!(true);
        play.commit("app", spec);
        play.rehearsal.run_for(5_000);
    }
    // The freeze of the look that made the revision does not last: somebody writes over it.
    play.rehearsal.world.store.policies.clear();
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    play.patch(&key(), json!({"spec": {"updateStrategy": rolling}}));
    play.rehearsal.run_for(2_000);
    let left = old(&play);
    assert!(left > 0 && left < NODES, "{left}\n{}", play.tell());
    play.rehearsal.run_for(300_000);
    assert_eq!(old(&play), left, "{}", play.tell());
    assert_eq!(budgets(&play, 0).last().unwrap(), "frozen");
    let rollouts = play.status("app").rollouts;
    let told: Vec<_> = rollouts.iter().map(|rollout| (rollout.daemon_set.as_str(), rollout.reason)).collect();
    assert_eq!(told, [("packages/agent", Some(RolloutReason::Paused))]);
}

/// It was told to have failed: what was begun of it goes no further.
#[test]
fn pods_of_a_release_that_has_failed_stay() {
    let canary = json!({"soak": "20m"});
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), canary.clone());
    play.rehearsal.world.script.behave("agent", "2.0.0", Outcome::Fails, 1000);
    play.commit("app", agents("2.0.0", canary));
    play.rehearsal.run_for(500);
    // What the release changed before it failed.
    let containers = json!([{"name": "main", "image": "agent:2.0.0"}]);
    play.patch(&key(), json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    play.until("app", "UpgradeFailed");
    let there = old(&play);
    play.rehearsal.run_for(1_800_000);
    assert_eq!((old(&play), play.reason("app").as_str()), (there, "UpgradeFailed"), "{}", play.tell());
}

/// A version that says of itself that it has failed is not rolled to every node first.
#[test]
fn a_version_that_says_that_it_failed_is_not_rolled_out_further() {
    let canary = json!({"soak": "30m"});
    let with_claim = |version: &str| {
        let mut spec = agents(version, canary.clone());
        spec["components"][0]["install"]["readyWhen"] = json!([{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "expr": "true",
            "failed": "has(object.metadata.annotations) && 'says' in object.metadata.annotations",
        }]);
        spec
    };
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), canary.clone());
    play.commit("app", with_claim("1.0.0"));
    play.until_ready("app");
    play.commit("app", with_claim("2.0.0"));
    play.rehearsal.run_for(30_000);
    play.patch(&key(), json!({"metadata": {"annotations": {"says": "it failed"}}}));
    play.rehearsal.run_for(60_000);
    assert_eq!((play.reason("app").as_str(), old(&play)), ("UpgradeFailed", NODES - 1), "{}", play.tell());
}

/// Admission, or a right that is missing: time in which nothing may be written is nobody's
/// failure.
#[rstest]
#[case::the_raise(60_000)]
#[case::the_first_pod(0)]
fn a_write_that_is_refused_fails_no_rollout(#[case] soak: u64) {
    let canary = json!({"soak": format!("{}s", soak / 1000), "timeout": "60s", "progressDeadline": "60s"});
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), canary.clone());
    play.commit("app", agents("2.0.0", canary));
    play.rehearsal.run_for(soak / 2);
    play.rehearsal.faults.rollouts_refused = Some("a webhook says no".into());
    play.rehearsal.run_for(1_200_000);
    assert_eq!(play.reason("app"), "Progressing", "{}", play.tell());
    assert!(old(&play) >= NODES - 1);
    play.rehearsal.faults.rollouts_refused = None;
    play.until_ready("app");
    assert_eq!(old(&play), 0);
}

/// An upgrade of the engine that is seen sooner than the DaemonSet which it has changed.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_depends_on_a_rollout_waits_until_it_was_seen(#[case] engine: Engine) {
    let canary = json!({"soak": "5s"});
    let mut play = installed(engine, &[Policy::Strict], script(), canary.clone());
    play.rehearsal.faults.lag.insert("DaemonSet".into(), 12_000);
    let position = play.position();
    play.commit("app", agents("2.0.0", canary));
    play.until_ready("app");
    let log: Vec<_> = play.changes_since(position).collect();
    let after = log.iter().position(|change| change.key.name == "app-after" && change.actor == "windlass").unwrap();
    let last = log.iter().rposition(|change| {
        change.key.kind == "Pod" && at(&change.object, "/spec/containers/0/image") == "agent:1.0.0"
    });
    assert!(last.unwrap() < after, "{}", play.tell());
}

/// Which guard is told is that of now, and not that of the last rollout.
#[test]
fn a_guard_that_has_gone_is_told_no_more() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), json!({"soak": "1s"}));
    play.rehearsal.run_for(60_000);
    assert_eq!(play.status("app").rollouts[0].guard, Some(RolloutGuard::AdmissionStrict));
    play.rehearsal.world.store.policies.clear();
    play.rehearsal.run_for(900_000);
    assert_eq!(play.status("app").rollouts[0].guard, Some(RolloutGuard::Rendered));
    play.rehearsal.world.store.policies.insert(Policy::Strict);
    play.rehearsal.run_for(900_000);
    assert_eq!(play.status("app").rollouts[0].guard, Some(RolloutGuard::AdmissionStrict));
}

/// A policy that is installed, or goes, between two rollouts: the label follows.
#[test]
fn the_label_follows_the_policy_that_is_there() {
    let mut play = installed(Engine::Flux, &[Policy::Compat], script(), json!({"soak": "1s"}));
    play.rehearsal.run_for(60_000);
    assert_eq!(labelled(&play, "agent").as_deref(), Some("compat"));
    play.rehearsal.world.store.policies.insert(Policy::Strict);
    play.rehearsal.run_for(900_000);
    assert_eq!(labelled(&play, "agent").as_deref(), Some("strict"));
    assert_eq!(play.status("app").rollouts[0].guard, Some(RolloutGuard::AdmissionStrict));
}
