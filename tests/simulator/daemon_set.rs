//! The simulated DaemonSet controller against what was measured of the real one.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::sim::chart::{Fate, Script};
use windlass::sim::guard::Policy;
use windlass::sim::store::{Expected, Refusal};
use windlass::sim::{Key, Verb, World};

fn key() -> Key {
    Key::new("apps/v1", "DaemonSet", "agents", "agent")
}

fn rolling(budget: Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": budget, "maxSurge": 0}})
}

fn frozen() -> Value {
    json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
}

struct Cluster(World);

impl Cluster {
    fn new(nodes: usize, strategy: Value, script: Script) -> Self {
        let mut cluster = Self(World::new(script));
        for number in 1..=nodes {
            cluster.0.add_node(&format!("n{number}"));
        }
        cluster.apply("1", &strategy);
        cluster.play(10_000);
        assert_eq!(cluster.count("numberAvailable"), nodes as i64);
        cluster
    }

    fn apply(&mut self, version: &str, strategy: &Value) {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "agents"},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": format!("agent:{version}")}]}}},
        });
        if !strategy.is_null() {
            object["spec"]["updateStrategy"] = strategy.clone();
        }
        self.0.store.apply("helm-controller", object.as_object().unwrap(), &Expected::default()).unwrap();
        self.0.settle_writes();
    }

    fn label(&mut self, value: &str) {
        let patch = json!({"metadata": {"labels": {"windlass.dev/canary": value}}});
        self.0.store.patch("windlass", &key(), patch.as_object().unwrap(), &Expected::default()).unwrap();
        self.0.settle_writes();
    }

    fn write(&mut self, actor: &'static str, strategy: Value) -> Result<(), Refusal> {
        let patch = json!([{"op": "replace", "path": "/spec/updateStrategy", "value": strategy}]);
        let written = self.0.store.json_patch(actor, &key(), patch.as_array().unwrap());
        self.0.settle_writes();
        written.map(|_| ())
    }

    fn play(&mut self, millis: u64) {
        let end = self.0.now() + millis;
        while self.0.next_due().is_some_and(|due| due <= end) {
            self.0.step();
        }
        self.0.wait_until(end);
    }

    fn live(&self) -> &Value {
        &self.0.store.get(&key()).unwrap()["spec"]["updateStrategy"]
    }

    fn generation(&self) -> i64 {
        self.0.store.get(&key()).unwrap()["metadata"]["generation"].as_i64().unwrap()
    }

    fn count(&self, field: &str) -> i64 {
        self.0.store.get(&key()).unwrap()["status"][field].as_i64().unwrap()
    }

    fn terminating(&self) -> usize {
        self.0.store.list("Pod").filter(|(_, pod)| pod["metadata"].get("deletionTimestamp").is_some()).count()
    }

    /// Nodes that have a pod of the image which is not ready.
    fn bad(&self, image: &str) -> usize {
        let bad = |pod: &serde_json::Map<String, Value>| {
            let ready = &pod["status"]["conditions"][0]["status"];
            pod["spec"]["containers"][0]["image"] == image && ready != "True"
        };
        self.0.store.list("Pod").filter(|(_, pod)| bad(pod)).count()
    }
}

#[rstest]
#[case::ten_percent(json!("10%"), 10)]
#[case::a_quarter(json!("25%"), 25)]
#[case::half(json!("50%"), 50)]
#[case::with_the_template_in_one_write(json!(1), 1)]
fn the_whole_budget_dies_at_the_first_look(#[case] budget: Value, #[case] die: usize) {
    let mut cluster = Cluster::new(100, rolling(budget.clone()), Script::default());
    cluster.apply("2", &rolling(budget));
    cluster.play(15);
    // A controller that reacts to the write lowers it here, and is too late.
    cluster.write("windlass", rolling(json!(1))).unwrap();
    cluster.play(100);
    assert_eq!(cluster.terminating(), die);
}

#[test]
fn frozen_no_pod_dies_and_a_deleted_one_comes_back_new() {
    let mut cluster = Cluster::new(10, rolling(json!(3)), Script::default());
    cluster.apply("2", &frozen());
    cluster.play(60_000);
    assert_eq!((cluster.terminating(), cluster.count("updatedNumberScheduled")), (0, 0));
    let pod = cluster.0.store.list("Pod").next().unwrap().0.clone();
    cluster.0.store.delete("windlass", &pod, &Expected::default()).unwrap();
    cluster.0.settle_writes();
    cluster.play(60_000);
    assert_eq!((cluster.count("updatedNumberScheduled"), cluster.count("numberAvailable")), (1, 10));
    cluster.write("windlass", rolling(json!(3))).unwrap();
    cluster.play(60_000);
    assert_eq!(cluster.count("updatedNumberScheduled"), 10);
}

#[rstest]
#[case::budget_of_one(1, 0)]
#[case::and_one_for_the_dead(2, 9)]
fn one_dead_node_uses_up_the_budget(#[case] budget: i64, #[case] updated: i64) {
    let mut cluster = Cluster::new(10, rolling(json!(1)), Script::default());
    cluster.0.kill_node("n5");
    cluster.play(100);
    assert_eq!(cluster.count("desiredNumberScheduled"), 9, "its taint keeps pods away");
    cluster.apply("2", &rolling(json!(budget)));
    cluster.play(60_000);
    assert_eq!(cluster.count("updatedNumberScheduled"), updated);
}

/// Ready at once, crashing 20 s later: how many nodes are bad after 3 minutes.
#[test]
fn late_crashes_go_from_node_to_node_at_a_budget_of_one() {
    let mut script = Script::default();
    script.pods_behave("agent:2", "*", Fate::CrashesAfter(20_000));
    let mut cluster = Cluster::new(50, rolling(json!(1)), script);
    cluster.apply("2", &rolling(json!(1)));
    let mut worst = 0;
    for _ in 0..180 {
        cluster.play(1000);
        worst = worst.max(cluster.count("updatedNumberScheduled"));
    }
    assert!(worst >= 8, "{worst} nodes have the bad template");
}

#[test]
fn a_surge_adds_a_pod_and_then_takes_the_old_one() {
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}});
    let mut cluster = Cluster::new(6, surge.clone(), Script::default());
    cluster.apply("2", &surge);
    cluster.play(100);
    assert_eq!((cluster.0.store.list("Pod").count(), cluster.terminating()), (8, 0));
    for _ in 0..600 {
        cluster.play(100);
        assert!(cluster.count("numberAvailable") >= 6, "nothing is ever missing");
    }
    assert_eq!(cluster.count("updatedNumberScheduled"), 6);
}

/// Frozen, a node may not have two: the new one, which is younger, goes.
#[test]
fn a_freeze_takes_a_surging_pod_away() {
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}});
    let mut cluster = Cluster::new(6, surge.clone(), Script::default());
    cluster.apply("2", &surge);
    cluster.play(100);
    cluster.write("windlass", frozen()).unwrap();
    cluster.play(10_000);
    assert_eq!((cluster.0.store.list("Pod").count(), cluster.count("updatedNumberScheduled")), (6, 0));
}

#[test]
fn a_template_that_returns_keeps_its_hash_under_a_new_number() {
    let mut cluster = Cluster::new(2, rolling(json!(1)), Script::default());
    cluster.apply("2", &rolling(json!(1)));
    cluster.play(30_000);
    cluster.apply("1", &rolling(json!(1)));
    cluster.play(30_000);
    let revisions: Vec<i64> =
        cluster.0.store.list("ControllerRevision").map(|(_, r)| r["revision"].as_i64().unwrap()).collect();
    let mut sorted = revisions.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [2, 3]);
    assert_eq!(cluster.count("updatedNumberScheduled"), 2);
}

#[test]
fn nodes_join_and_leave() {
    let mut cluster = Cluster::new(2, rolling(json!(1)), Script::default());
    cluster.0.add_node("n3");
    cluster.play(10_000);
    assert_eq!(cluster.count("numberAvailable"), 3);
    cluster.0.remove_node("n1");
    cluster.play(10_000);
    assert_eq!((cluster.count("desiredNumberScheduled"), cluster.0.store.list("Pod").count()), (2, 2));
}

#[test]
fn what_a_daemon_set_has_goes_with_it() {
    let mut cluster = Cluster::new(3, rolling(json!(1)), Script::default());
    cluster.0.store.delete("user", &key(), &Expected::default()).unwrap();
    cluster.0.settle_writes();
    cluster.play(10_000);
    assert_eq!(cluster.0.store.list("Pod").count() + cluster.0.store.list("ControllerRevision").count(), 0);
}

#[rstest]
#[case::both(json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}))]
#[case::neither(json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}))]
fn exactly_one_number_is_above_zero(#[case] strategy: Value) {
    let mut cluster = Cluster::new(1, rolling(json!(1)), Script::default());
    assert_eq!(cluster.write("windlass", strategy), Err(Refusal::Invalid));
}

#[test]
fn a_test_that_fails_refuses_the_whole_patch() {
    let mut cluster = Cluster::new(1, rolling(json!(1)), Script::default());
    let patch = json!([
        {"op": "test", "path": "/metadata/generation", "value": 99},
        {"op": "replace", "path": "/spec/updateStrategy", "value": frozen()},
    ]);
    let refused = cluster.0.store.json_patch("windlass", &key(), patch.as_array().unwrap());
    assert_eq!(refused.map(|_| ()), Err(Refusal::Invalid));
    assert_eq!(*cluster.live(), rolling(json!(1)));
}

/// The table of writes that was seen on an API server with the policies.
#[rstest]
#[case::compat("compat", rolling(json!(1)))]
#[case::strict("strict", frozen())]
fn the_guard_keeps_the_first_step_small(#[case] label: &str, #[case] arrives: Value) {
    let half = rolling(json!("50%"));
    let mut cluster = Cluster::new(10, half.clone(), Script::default());
    cluster.0.store.policies = [Policy::Strict, Policy::Compat].into();
    cluster.label(label);
    cluster.apply("2", &half);
    assert_eq!(*cluster.live(), arrives, "a new template");
    let generation = cluster.generation();
    cluster.apply("2", &half);
    assert_eq!((cluster.live(), cluster.generation()), (&arrives, generation), "the same again is no write");
    cluster.write("user", rolling(json!(5))).unwrap();
    assert_eq!((cluster.live(), cluster.generation()), (&arrives, generation), "nor is an edit by hand");
    cluster.write("windlass", rolling(json!("10%"))).unwrap();
    assert_eq!(*cluster.live(), rolling(json!("10%")), "our own write goes through");
    cluster.apply("2", &half);
    assert_eq!(*cluster.live(), rolling(json!("10%")));
    cluster.apply("3", &Value::Null);
    assert_eq!(*cluster.live(), arrives, "another template, whose manifest omits the strategy");
    cluster.apply("4", &json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}}));
    assert_eq!(cluster.live()["rollingUpdate"], json!({"maxUnavailable": 0, "maxSurge": 1}));
}

#[test]
fn without_its_label_a_daemon_set_is_not_guarded() {
    let half = rolling(json!("50%"));
    let mut cluster = Cluster::new(10, half.clone(), Script::default());
    cluster.0.store.policies = [Policy::Strict, Policy::Compat].into();
    cluster.apply("2", &half);
    cluster.play(100);
    assert_eq!(cluster.terminating(), 5);
}

#[rstest]
#[case::early(Fate::CrashesAtOnce, "CrashLoopBackOff")]
#[case::image(Fate::CannotPull, "ErrImagePull")]
fn broken_pods_say_why(#[case] fate: Fate, #[case] reason: &str) {
    let mut script = Script::default();
    script.pods_behave("agent:2", "*", fate);
    let mut cluster = Cluster::new(2, rolling(json!(1)), script);
    cluster.apply("2", &rolling(json!(1)));
    cluster.play(60_000);
    assert_eq!((cluster.bad("agent:2"), cluster.count("updatedNumberScheduled")), (1, 1));
    let told = cluster.0.store.log().iter().any(|change| {
        change.key.kind == "Pod"
            && change.verb == Verb::Updated
            && change.object["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
    });
    assert!(told);
}
