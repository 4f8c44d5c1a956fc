//! Canaries on the real DaemonSet controller, scheduler and API server, with simulated kubelets.
//! Each test has nodes, a guard and a controller of its own; each says which guard is active and
//! fails when more nodes are without a ready pod than that allows.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass::api::Engine;

use crate::agents::{Agents, Guard, SOON, Wish, install};
use crate::story::Story;
use crate::support::bench::Bench;
use crate::support::recorder::Recorder;

const LONG: Duration = Duration::from_secs(120);

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn rolls_out(bench: &Bench, guard: Guard, mode: &str, expected: &[&str]) {
    rolls_out_on(Engine::Flux, bench, guard, mode, expected).await;
}

async fn rolls_out_on(engine: Engine, bench: &Bench, guard: Guard, mode: &str, expected: &[&str]) {
    let stage = Agents::set_on(engine, bench, "rollout", guard, 12).await;
    let canary = json!({"mode": mode, "soak": "1s"});
    stage.wants(&Wish::new("1.0.0").canary(canary.clone())).await;
    stage.runs("1.0.0", SOON).await;
    let installed = stage.story(0).await.log.len();
    // Slow enough for the native rollout to be under way when the soak is over.
    stage.wants(&Wish::new("1.1.0").canary(canary).pods("ready", &[("ready-after", "1500ms")])).await;
    stage.runs("1.1.0", LONG).await;
    let story = stage.story(0).await;
    // What Argo CD creates has the chart's budget for a moment.
    let from = if engine == Engine::Argo { installed } else { 0 };
    assert_eq!(story.budgets_from(from), expected, "{}", story.tell());
    assert_eq!(story.versions(), vec!["1.1.0"; 12], "{}", story.tell());
    assert!(story.most_down() <= 2, "{} nodes down\n{}", story.most_down(), story.tell());
    let rollout = stage.is_in("successful", None, SOON).await;
    eprintln!("{}: {} of {}, at most {} down", stage.name, rollout["updated"], rollout["desired"], story.most_down());
}

/// The chart states 50 %, of which nothing is left from the first installation on.
pub async fn strict_goes_from_none_to_ten_percent_and_back_to_one(bench: &Bench) {
    rolls_out(bench, Guard::Strict, "Strict", &["1", "frozen", "10%", "1"]).await;
}

pub async fn compat_goes_from_one_to_ten_percent_and_back_to_one(bench: &Bench) {
    rolls_out(bench, Guard::Compat, "Compat", &["1", "10%", "1"]).await;
}

/// Without a policy the post-renderer states the 1.
pub async fn without_a_policy_the_release_itself_arrives_with_one(bench: &Bench) {
    rolls_out(bench, Guard::Absent, "Compat", &["1", "10%", "1"]).await;
}

/// Argo CD leaves the live strategy alone.
pub async fn argo_cd_keeps_the_budget_that_a_strict_rollout_has(bench: &Bench) {
    rolls_out_on(Engine::Argo, bench, Guard::Strict, "Strict", &["1", "frozen", "10%", "1"]).await;
}

pub async fn argo_cd_without_a_policy_keeps_the_live_one(bench: &Bench) {
    rolls_out_on(Engine::Argo, bench, Guard::Absent, "Compat", &["1", "10%", "1"]).await;
}

/// A version that cannot run costs one node, is told with pod, node and container, and the one
/// that mends it goes there first.
async fn fails_early(bench: &Bench, behaviour: &str, more: &[(&str, &str)], told: &str) {
    let stage = Agents::set(bench, "early", Guard::Strict, 5).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    stage.wants(&Wish::new("1.1.0").canary(json!({"maxRestarts": 0, "timeout": "15s"})).pods(behaviour, more)).await;
    let message = stage.says("UpgradeFailed", SOON).await;
    let rollout = stage.is_in("failed", None, SOON).await;
    let node = text(&rollout["node"]).to_owned();
    assert!(message.contains(told), "{message}");
    assert!(message.contains(&format!("on node {node}")), "{message} of {rollout}");
    assert_eq!(stage.story(0).await.most_down(), 1);
    stage.wants(&Wish::new("2.0.0")).await;
    stage.runs("2.0.0", SOON).await;
    let story = stage.story(0).await;
    assert_eq!(story.versions(), vec!["2.0.0"; 5], "{}", story.tell());
    assert_eq!(story.most_down(), 1, "{}", story.tell());
    let events = stage.bench.cluster().await.dynamic("events.k8s.io/v1", "Event", &stage.name).await;
    let events = events.list(&Default::default()).await.expect("events");
    let failed = |event: &&kube::api::DynamicObject| event.data["reason"] == "FailedUpdate";
    let event = events.items.iter().find(failed).expect("an event FailedUpdate");
    assert_eq!(event.data["regarding"]["kind"], "DaemonSet");
    eprintln!("{}: {message}", stage.name);
}

pub async fn a_crashing_init_container_costs_one_node_and_is_mended_there(bench: &Bench) {
    fails_early(bench, "init-crash", &[("restart-after", "300ms")], "container").await;
}

pub async fn an_image_that_cannot_be_had_costs_one_node(bench: &Bench) {
    fails_early(bench, "image-pull-error", &[], "ImagePull").await;
}

pub async fn a_canary_that_never_becomes_ready_fails_at_its_deadline(bench: &Bench) {
    fails_early(bench, "never-ready", &[], "the canary is not ready within 15s").await;
}

pub async fn a_failed_canary_is_rolled_back_behind_a_canary(bench: &Bench) {
    let stage = Agents::set(bench, "back", Guard::Strict, 5).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    let wish = Wish::new("1.1.0").canary(json!({"maxRestarts": 0})).safe();
    stage.wants(&wish.pods("image-pull-error", &[])).await;
    stage.says("UpgradeRolledBack", LONG).await;
    let story = stage.story(0).await;
    assert_eq!(story.versions(), vec!["1.0.0"; 5], "{}", story.tell());
    assert_eq!(story.most_down(), 1, "{}", story.tell());
}

const CRASHING: [(&str, &str); 2] = [("crash-after", "20s"), ("restart-after", "600s")];
const MANY: usize = 50;

/// Ready at once, crashing 20 s later.
pub async fn a_late_crash_costs_one_node_in_strict_and_many_without(bench: &Bench) {
    let strict = async {
        let stage = Agents::set(bench, "late", Guard::Strict, MANY).await;
        stage.wants(&Wish::new("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        let wish = Wish::new("1.1.0").canary(json!({"maxRestarts": 0, "soak": "30s"})).pods("crash", &CRASHING);
        stage.wants(&wish).await;
        let message = stage.says("UpgradeFailed", LONG).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let story = stage.story(0).await;
        eprintln!("{}: {message}", stage.name);
        assert!(story.most_down() <= 1, "{}", story.tell());
        story.most_down()
    };
    let native = late_crash_without(bench, "native", false);
    let rule = late_crash_without(bench, "rule", true);
    let (strict, native, rule) = tokio::join!(strict, native, rule);
    eprintln!(
        "late crash, {MANY} nodes: Strict {strict} down, native budget 1 {native}, 1 to 10 % without freeze {rule}"
    );
    assert!(native > strict && rule >= native, "strict {strict}, native {native}, rule {rule}");
}

/// The same with nothing but the DaemonSet controller; with `rule` the budget is raised to 10 %
/// as soon as the first new pod is ready. Gives the nodes that are down after 40 s.
async fn late_crash_without(bench: &Bench, prefix: &str, rule: bool) -> usize {
    let cluster = bench.cluster().await;
    let name = cluster.namespace(prefix).await;
    let _pool = bench.nodes().await.add_pool(&name, MANY).await;
    let recorder = Recorder::start(cluster, &name, &[("apps/v1", "DaemonSet"), ("v1", "Pod")]).await;
    let daemon_set = |version: &str, annotations: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {
                    "metadata": {"labels": {"app": "agent", "version": version}, "annotations": annotations},
                    "spec": {
                        "nodeSelector": {"bench.windlass.dev/pool": name},
                        "tolerations": [{"key": "bench.windlass.dev/pool", "value": name, "effect": "NoSchedule"}],
                        "containers": [{"name": "agent", "image": "example.org/agent:1"}],
                    },
                },
            },
        })
    };
    let ready = |wanted: &'static str, count: usize| {
        move |log: &[crate::support::recorder::Entry]| {
            let is = |entry: &&crate::support::recorder::Entry| {
                entry.kind == "Pod"
                    && entry.object["metadata"]["labels"]["version"] == wanted
                    && entry.object["status"]["containerStatuses"][0]["ready"] == true
            };
            let names: std::collections::BTreeSet<&str> =
                log.iter().filter(is).map(|entry| entry.name.as_str()).collect();
            if names.len() >= count { Ok(()) } else { Err(format!("{} of {count}", names.len())) }
        }
    };
    cluster.apply(&name, daemon_set("1", json!({}))).await;
    recorder.until(SOON, "all old pods ready", ready("1", MANY)).await;
    let prefix = "bench.windlass.dev";
    let annotations = json!({
        format!("{prefix}/behaviour"): "crash", format!("{prefix}/crash-after"): "20s",
        format!("{prefix}/restart-after"): "600s",
    });
    cluster.apply(&name, daemon_set("2", annotations)).await;
    recorder.until(SOON, "the first new pod ready", ready("2", 1)).await;
    if rule {
        let api = cluster.dynamic("apps/v1", "DaemonSet", &name).await;
        let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}});
        api.patch("agent", &PatchParams::default(), &Patch::Merge(patch)).await.expect("a patch");
    }
    tokio::time::sleep(Duration::from_secs(45)).await;
    Story { log: recorder.complete().await }.most_down()
}

/// Killed in each phase, the next controller goes on where it stood.
pub async fn a_controller_killed_in_each_phase_comes_to_the_same_end(bench: &Bench) {
    let mut stage = Agents::set(bench, "killed", Guard::Strict, 12).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    // Pods take a second, so that every phase can be met.
    let wish = Wish::new("1.1.0").canary(json!({"soak": "4s"})).pods("ready", &[("ready-after", "1500ms")]);
    stage.wants(&wish).await;
    for (phase, reason) in
        [("canary", Some("Frozen")), ("canary", Some("Soaking")), ("waiting", None), ("waiting", Some("Settling"))]
    {
        let rollout = stage.is_in(phase, reason, SOON).await;
        eprintln!("{}: killed in {phase} {reason:?} at {} of {}", stage.name, rollout["updated"], rollout["desired"]);
        stage = stage.another_controller().await;
    }
    stage.runs("1.1.0", LONG).await;
    let story = stage.story(0).await;
    assert_eq!(story.budgets(), ["1", "frozen", "10%", "1"], "{}", story.tell());
    assert_eq!(story.versions(), vec!["1.1.0"; 12], "{}", story.tell());
    stage.wants(&Wish::new("2.0.0").canary(json!({"maxRestarts": 0})).pods("image-pull-error", &[])).await;
    stage.is_in("failed", None, SOON).await;
    stage = stage.another_controller().await;
    stage.wants(&Wish::new("2.0.0")).await;
    stage.runs("2.0.0", LONG).await;
    let story = stage.story(0).await;
    assert_eq!(story.versions(), vec!["2.0.0"; 12], "{}", story.tell());
}

/// The policy goes away during the soak: the rollout says so and goes on, and a manifest that
/// somebody applies with its own budget is set right.
pub async fn a_policy_that_is_removed_during_the_soak_is_told(bench: &Bench) {
    let stage = Agents::set(bench, "unguarded", Guard::Strict, 5).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    stage.wants(&Wish::new("1.1.0").canary(json!({"soak": "10s"}))).await;
    stage.is_in("canary", Some("Soaking"), SOON).await;
    stage.remove_guard().await;
    let rollout =
        stage.sees("another guard", SOON, |package| package["status"]["rollouts"][0]["guard"] == "Unguarded").await;
    eprintln!("{}: {}", stage.name, rollout["status"]["rollouts"][0]["guard"]);
    stage.runs("1.1.0", LONG).await;
    let story = stage.story(0).await;
    assert_eq!(story.versions(), vec!["1.1.0"; 5], "{}", story.tell());
    // The next version was rendered for no policy, and states a budget of 1 itself.
    stage.wants(&Wish::new("2.0.0")).await;
    stage.runs("2.0.0", LONG).await;
    let story = stage.story(0).await;
    assert!(story.most_down() <= 1, "{}", story.tell());
}

/// What a person does to the strategy comes to nothing, and a restart by kubectl is rolled out
/// behind a canary.
pub async fn edits_by_hand_are_undone_or_rolled_out_behind_a_canary(bench: &Bench) {
    let stage = Agents::set(bench, "hand", Guard::Strict, 5).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    stage.patch(json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 4}}}})).await;
    assert_eq!(stage.daemon_set().await["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 1);
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": "2026-11-30T00:00:00Z"});
    stage.patch(json!({"spec": {"template": {"metadata": {"annotations": annotations}}}})).await;
    stage.is_in("canary", None, SOON).await;
    stage.is_in("successful", None, SOON).await;
    let story = stage.story(0).await;
    assert_eq!(story.budgets(), ["1", "frozen", "10%", "1"], "{}", story.tell());
    assert_eq!(story.most_down(), 1, "{}", story.tell());
    let pods = stage.bench.cluster().await.dynamic("v1", "Pod", &stage.name).await;
    let pods = pods.list(&Default::default()).await.expect("pods");
    let restarted = |pod: &&kube::api::DynamicObject| {
        let annotations = pod.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key("kubectl.kubernetes.io/restartedAt"))
    };
    assert_eq!(pods.items.iter().filter(restarted).count(), 5);
}

/// Another version in the middle of a rollout begins it anew.
pub async fn a_new_version_in_the_middle_begins_anew(bench: &Bench) {
    let stage = Agents::set(bench, "anew", Guard::Strict, 12).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    let slow = [("ready-after", "2s")];
    stage.wants(&Wish::new("1.1.0").pods("ready", &slow)).await;
    stage.is_in("waiting", None, SOON).await;
    stage.wants(&Wish::new("2.0.0").pods("ready", &[("ready-after", "500ms")])).await;
    stage.runs("2.0.0", LONG).await;
    let story = stage.story(0).await;
    assert_eq!(story.versions(), vec!["2.0.0"; 12], "{}", story.tell());
    assert_eq!(story.budgets(), ["1", "frozen", "10%", "frozen", "10%", "1"], "{}", story.tell());
}

/// A DaemonSet on no node is done at once, and one on a single node after its soak.
pub async fn no_node_and_one_node(bench: &Bench) {
    let none = async {
        let stage = Agents::set(bench, "none", Guard::Strict, 0).await;
        stage.wants(&Wish::new("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        stage.wants(&Wish::new("1.1.0")).await;
        stage.runs("1.1.0", SOON).await;
        stage.is_in("successful", Some("NoNodes"), SOON).await;
    };
    let one = async {
        let stage = Agents::set(bench, "one", Guard::Strict, 1).await;
        stage.wants(&Wish::new("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        stage.wants(&Wish::new("1.1.0")).await;
        stage.runs("1.1.0", SOON).await;
        let story = stage.story(0).await;
        assert_eq!(story.budgets(), ["1", "frozen", "1"], "{}", story.tell());
        assert_eq!(story.versions(), ["1.1.0"], "{}", story.tell());
    };
    tokio::join!(none, one);
}

/// A chart that states OnDelete is rolled out all the same, in either mode.
pub async fn a_chart_that_states_on_delete_is_rolled_out(bench: &Bench) {
    let rolls_out = async |guard: Guard, mode: &str| {
        let stage = Agents::set(bench, "ondelete", guard, 5).await;
        let wish = |version| Wish::new(version).canary(json!({"mode": mode})).strategy(json!({"type": "OnDelete"}));
        stage.wants(&wish("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        stage.wants(&wish("1.1.0")).await;
        stage.runs("1.1.0", LONG).await;
        let story = stage.story(0).await;
        assert_eq!(story.versions(), vec!["1.1.0"; 5], "{}", story.tell());
        assert_eq!(story.most_down(), 1, "{}", story.tell());
    };
    tokio::join!(rolls_out(Guard::Strict, "Strict"), rolls_out(Guard::Compat, "Compat"));
}

/// A DaemonSet that surges is driven by its surge, and no node is ever without a pod.
pub async fn a_surge_is_kept_and_costs_no_node(bench: &Bench) {
    let rolls_out = async |guard: Guard, mode: &str| {
        let stage = Agents::set(bench, "surge", guard, 12).await;
        let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}});
        let wish = |version| Wish::new(version).canary(json!({"mode": mode})).strategy(surge.clone());
        stage.wants(&wish("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        stage.wants(&wish("1.1.0")).await;
        stage.runs("1.1.0", LONG).await;
        let story = stage.story(0).await;
        assert_eq!(story.versions(), vec!["1.1.0"; 12], "{}", story.tell());
        assert_eq!(story.most_down(), 0, "{}", story.tell());
        eprintln!("{}: {:?}", stage.name, story.budgets());
    };
    tokio::join!(rolls_out(Guard::Strict, "Strict"), rolls_out(Guard::Compat, "Compat"));
}

/// A node that was dead before is left out; one that is cordoned is not chosen; one that joins is
/// served; one that leaves is not waited for.
pub async fn nodes_that_are_dead_cordoned_joining_and_leaving(bench: &Bench) {
    let stage = Agents::set(bench, "nodes", Guard::Strict, 6).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    let nodes = bench.nodes().await;
    let api = bench.cluster().await.dynamic("v1", "Node", "").await;
    let cordon = json!({"spec": {"unschedulable": true}});
    api.patch(&stage.nodes[0], &PatchParams::default(), &Patch::Merge(cordon)).await.expect("a patch");
    nodes.kill(&stage.nodes[1]).await;
    let slow = [("ready-after", "1500ms")];
    stage.wants(&Wish::new("1.1.0").pods("ready", &slow)).await;
    let rollout = stage.is_in("canary", Some("Soaking"), SOON).await;
    assert!(![&stage.nodes[0], &stage.nodes[1]].contains(&&text(&rollout["node"]).to_owned()), "{rollout}");
    api.delete(&stage.nodes[5], &DeleteParams::default()).await.expect("a deletion");
    let joined = nodes.join(&stage.nodes).await;
    stage.runs("1.1.0", LONG).await;
    let rollout = stage.is_in("successful", Some("NodesExcluded"), SOON).await;
    assert!(text(&rollout["message"]).contains(&stage.nodes[1]), "{rollout}");
    nodes.revive(&stage.nodes[1]).await;
    // The one that was dead is updated, and so was the one that has joined.
    stage.pods(&[&stage.nodes[1], &joined], "1.1.0").await;
    let story = stage.story(1).await;
    assert!(story.most_down() <= 3, "{}", story.tell());
}

/// The canary's node dies while it soaks: another one is tried, or it fails; never two at once.
pub async fn a_node_that_dies_with_its_canary_fails_the_rollout(bench: &Bench) {
    let stage = Agents::set(bench, "dying", Guard::Strict, 5).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    stage.wants(&Wish::new("1.1.0").canary(json!({"soak": "20s", "timeout": "10s"}))).await;
    let rollout = stage.is_in("canary", Some("Soaking"), SOON).await;
    bench.nodes().await.kill(text(&rollout["node"])).await;
    let message = stage.says("UpgradeFailed", LONG).await;
    assert!(message.contains("the node is not ready"), "{message}");
    let story = stage.story(0).await;
    assert_eq!(story.most_down(), 1, "{}", story.tell());
    bench.nodes().await.revive(text(&rollout["node"])).await;
}

/// Deleted by hand during the soak, it comes back from the release and needs no canary.
pub async fn a_daemon_set_that_is_deleted_by_hand_comes_back(bench: &Bench) {
    let stage = Agents::set(bench, "deleted", Guard::Strict, 3).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    stage.wants(&Wish::new("1.1.0").canary(json!({"soak": "20s"}))).await;
    stage.is_in("canary", Some("Soaking"), SOON).await;
    stage.daemon_sets().await.delete("agent", &DeleteParams::default()).await.expect("a deletion");
    // helm-controller makes it again when it corrects drift, asked for here.
    let releases = bench.cluster().await.dynamic("helm.toolkit.fluxcd.io/v2", "HelmRelease", &stage.name).await;
    let asked = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now", "reconcile.fluxcd.io/forceAt": "now"}}});
    let release = format!("{}-agent", stage.name);
    releases.patch(&release, &PatchParams::default(), &Patch::Merge(asked)).await.expect("a patch");
    stage.runs("1.1.0", LONG).await;
    stage.wants(&Wish::new("2.0.0")).await;
    stage.runs("2.0.0", LONG).await;
    let label = &stage.daemon_set().await["metadata"]["labels"]["windlass.dev/canary"];
    assert_eq!(label, "strict");
}

/// The release's own manifest, applied again by somebody else in the middle of a rollout, with
/// each state of the guard.
pub async fn a_manifest_that_is_applied_again_in_the_middle(bench: &Bench) {
    let applies = async |guard: Guard, removed: bool| {
        let stage = Agents::set(bench, "again", guard, 12).await;
        stage.wants(&Wish::new("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        stage.wants(&Wish::new("1.1.0").canary(json!({"soak": "8s"}))).await;
        stage.is_in("canary", Some("Soaking"), SOON).await;
        if removed {
            stage.remove_guard().await;
            stage.sees("no guard", SOON, |p| p["status"]["rollouts"][0]["guard"] == "Unguarded").await;
        }
        let live = stage.daemon_set().await;
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}});
        stage.patch(json!({"spec": {"updateStrategy": strategy}})).await;
        let after = stage.daemon_set().await;
        let kept = after["spec"]["updateStrategy"] == live["spec"]["updateStrategy"];
        stage.runs("1.1.0", LONG).await;
        // With what stood in the way of the budget that somebody wrote.
        let story = stage.story(0).await;
        eprintln!("{}: strategy kept: {kept}, at most {} down, {:?}", stage.name, story.most_down(), story.budgets());
        assert_eq!(story.versions(), vec!["1.1.0"; 12]);
        if guard != Guard::Absent && !removed {
            assert!(kept, "the policy gives the live strategy back");
            assert!(story.most_down() <= 2, "{}", story.tell());
        }
    };
    tokio::join!(applies(Guard::Strict, false), applies(Guard::Strict, true), applies(Guard::Absent, false));
}

/// A policy that lets another account through: nothing is moved before it is mended.
pub async fn a_policy_for_another_account_stops_everything(bench: &Bench) {
    let stage = Agents::set(bench, "mismatch", Guard::Absent, 3).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    install(bench, &stage.name, Guard::Strict).await;
    let api = bench.cluster().await.dynamic("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "").await;
    let policy = format!("windlass-canary-strict-{}", stage.name);
    let other = json!({"spec": {"matchConditions": [{
        "name": "not-windlass", "expression": "request.userInfo.username != 'system:serviceaccount:other:windlass'",
    }]}});
    api.patch(&policy, &PatchParams::default(), &Patch::Merge(other)).await.expect("a patch");
    stage.wants(&Wish::new("1.1.0")).await;
    let message = stage.says("GuardMismatch", SOON).await;
    assert!(message.contains("system:serviceaccount:windlass-system:windlass"), "{message}");
    assert_eq!(stage.story(0).await.versions(), vec!["1.0.0"; 3]);
    install(bench, &stage.name, Guard::Strict).await;
    stage.runs("1.1.0", LONG).await;
}

/// A late crash with each other state of the guard: what the policy does not do Windlass does.
pub async fn a_late_crash_without_a_policy_costs_one_node(bench: &Bench) {
    let crashes = async |guard: Guard, removed: bool| {
        let stage = Agents::set(bench, "later", guard, 12).await;
        stage.wants(&Wish::new("1.0.0")).await;
        stage.runs("1.0.0", SOON).await;
        let wish = Wish::new("1.1.0").canary(json!({"maxRestarts": 0, "soak": "30s"})).pods("crash", &CRASHING);
        stage.wants(&wish).await;
        if removed {
            stage.is_in("canary", Some("Soaking"), SOON).await;
            stage.remove_guard().await;
        }
        let message = stage.says("UpgradeFailed", LONG).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let story = stage.story(0).await;
        eprintln!("{}: removed: {removed}, at most {} down: {message}", stage.name, story.most_down());
        assert!(story.most_down() <= 1, "{}", story.tell());
    };
    tokio::join!(crashes(Guard::Absent, false), crashes(Guard::Strict, true));
}

/// In Compat a failure freezes where that is asked for; in Strict it always does.
pub async fn a_failure_in_compat_freezes_where_that_is_asked_for(bench: &Bench) {
    let fails = async |on_failure: &str, left: &str| {
        let stage = Agents::set(bench, "compat", Guard::Compat, 5).await;
        stage.wants(&Wish::new("1.0.0").canary(json!({"mode": "Compat"}))).await;
        stage.runs("1.0.0", SOON).await;
        let canary = json!({"mode": "Compat", "onFailure": on_failure, "maxRestarts": 0});
        stage.wants(&Wish::new("1.1.0").canary(canary).pods("image-pull-error", &[])).await;
        stage.says("UpgradeFailed", SOON).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let story = stage.story(0).await;
        assert_eq!(story.budgets().last().map(String::as_str), Some(left), "{}", story.tell());
        assert_eq!(story.most_down(), 1, "{}", story.tell());
    };
    tokio::join!(fails("Freeze", "frozen"), fails("Hold", "1"));
}

/// A dead node that counts holds the rollout up until the deadline.
pub async fn a_dead_node_that_counts_fails_the_rollout(bench: &Bench) {
    let stage = Agents::set(bench, "block", Guard::Strict, 4).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    bench.nodes().await.kill(&stage.nodes[3]).await;
    let canary = json!({"unreadyNodes": "Block", "progressDeadline": "15s", "timeout": "15s"});
    stage.wants(&Wish::new("1.1.0").canary(canary)).await;
    let message = stage.says("UpgradeFailed", LONG).await;
    stage.story(1).await;
    eprintln!("{}: {message}", stage.name);
    bench.nodes().await.revive(&stage.nodes[3]).await;
}

/// Who lets go of a Package leaves nothing frozen, and nothing under the guard.
pub async fn an_orphaned_package_leaves_nothing_frozen(bench: &Bench) {
    let stage = Agents::set(bench, "orphan", Guard::Strict, 3).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    stage.wants(&Wish::new("1.1.0").canary(json!({"maxRestarts": 0})).pods("image-pull-error", &[])).await;
    stage.says("UpgradeFailed", SOON).await;
    assert_eq!(stage.daemon_set().await["spec"]["updateStrategy"]["type"], "OnDelete");
    stage.is_orphaned(SOON).await;
    let daemon_set = stage.daemon_set().await;
    assert!(daemon_set["metadata"]["labels"]["windlass.dev/canary"].is_null(), "{daemon_set}");
    let strategy = &daemon_set["spec"]["updateStrategy"];
    assert_eq!((&strategy["type"], &strategy["rollingUpdate"]["maxUnavailable"]), (&json!("RollingUpdate"), &json!(1)));
    stage.story(0).await;
}

/// A policy that names the account and changes its writes all the same: what comes back is not
/// what was written.
pub async fn a_write_that_comes_back_changed_is_a_mismatch(bench: &Bench) {
    let stage = Agents::set(bench, "changed", Guard::Strict, 3).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    let api = bench.cluster().await.dynamic("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "").await;
    let policy = format!("windlass-canary-strict-{}", stage.name);
    let always = json!({"spec": {"matchConditions": [{
        "name": "not-windlass",
        "expression": "request.userInfo.username != 'system:serviceaccount:windlass-system:windlass' || true",
    }]}});
    api.patch(&policy, &PatchParams::default(), &Patch::Merge(always)).await.expect("a patch");
    stage.wants(&Wish::new("1.1.0")).await;
    let message = stage.says("GuardMismatch", LONG).await;
    assert!(message.contains("came back"), "{message}");
    let story = stage.story(0).await;
    assert!(story.most_down() <= 1, "{}", story.tell());
    install(bench, &stage.name, Guard::Strict).await;
    stage.runs("1.1.0", LONG).await;
}

/// An admission that says no is answered with 422 like a test that fails, and is told from it.
pub async fn a_write_that_admission_refuses_is_told(bench: &Bench) {
    let stage = Agents::set(bench, "refused", Guard::Strict, 3).await;
    stage.wants(&Wish::new("1.0.0")).await;
    stage.runs("1.0.0", SOON).await;
    let cluster = bench.cluster().await;
    let name = format!("no-strategy-{}", stage.name);
    let group = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["daemonsets"]},
            ]},
            "validations": [{
                "expression": "object.spec.updateStrategy == oldObject.spec.updateStrategy || object.spec.template != oldObject.spec.template",
                "message": "the strategy is ours",
            }],
        },
    });
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": stage.name}});
    let binding = json!({
        "apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector}},
    });
    cluster.apply("", policy).await;
    cluster.apply("", binding).await;
    stage.wants(&Wish::new("1.1.0")).await;
    let message = stage.says("AccessDenied", LONG).await;
    assert!(message.contains("the strategy is ours"), "{message}");
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        let api = cluster.dynamic(group, kind, "").await;
        cluster.delete(&api, &name, SOON).await;
    }
    stage.runs("1.1.0", LONG).await;
    stage.story(0).await;
}
