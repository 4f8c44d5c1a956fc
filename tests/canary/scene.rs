//! A DaemonSet, its pods and nodes, put up by hand.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass::api::{Canary, RolloutGuard, RolloutMode, RolloutPhase, RolloutReason, RolloutRecord};
use windlass::canary::action::Steering;
use windlass::canary::objects::{DaemonSet, Node, Pod, Revision};
use windlass::canary::phase::is_allowed;
use windlass::canary::strategy::Pace;
use windlass::canary::{Action, Decision, Moment, Observation, Settings, Standing, decide};

/// uid of the DaemonSet.
const UID: &str = "daemon-set-1";
/// Annotation that a scene with `annotated` compares.
pub const ANNOTATION: &str = "kubevirt.io/install-strategy-version";

/// How a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    Unready,
    Pending,
    Terminating,
    Restarted(u32),
    Waiting(&'static str, u32),
    InitWaiting(&'static str, u32),
}

pub struct Scene {
    pub daemon_set: Value,
    pub revisions: Vec<Value>,
    pub pods: Vec<Value>,
    pub nodes: Vec<Value>,
    pub record: RolloutRecord,
    pub canary: Canary,
    pub moment: Moment,
    pods_made: u32,
}

impl Scene {
    /// `nodes` nodes `n1`, `n2`, … that run the template `old`, which is on
    /// record, and a component that has just been written.
    pub fn new(mode: RolloutMode, nodes: usize) -> Self {
        let guard = match mode {
            RolloutMode::Strict => RolloutGuard::AdmissionStrict,
            RolloutMode::Compat => RolloutGuard::AdmissionCompat,
        };
        let mut scene = Self {
            daemon_set: json!({
                "metadata": {"namespace": "agents", "name": "agent", "uid": UID, "generation": 1},
                "spec": {"updateStrategy": rolling(1)},
                "status": {"observedGeneration": 1},
            }),
            revisions: vec![revision("old", 1)],
            pods: Vec::new(),
            nodes: Vec::new(),
            record: record(),
            canary: Canary { mode: Some(mode), ..Canary::default() },
            moment: Moment {
                time: "2026-12-01T00:00:00Z".parse().unwrap(),
                watching_for: Duration::from_secs(3600),
                guard,
                released: true,
                paused: false,
                returning: false,
                forgiving: false,
            },
            pods_made: 0,
        };
        for number in 1..=nodes {
            scene.add_node(&format!("n{number}"));
            scene.put(&format!("n{number}"), "old", State::Ready);
        }
        scene.remember();
        scene
    }

    /// What the core does before it writes a component.
    pub fn remember(&mut self) {
        let seen = self.observe();
        self.record = windlass::canary::remember(&seen, &self.settings(), self.record.clone()).unwrap();
    }

    pub fn settings(&self) -> Settings {
        Settings::from(&self.canary)
    }

    pub fn add_node(&mut self, name: &str) {
        let ready = json!({"type": "Ready", "status": "True"});
        self.nodes.push(json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {}, "status": {"conditions": [ready]},
        }));
    }

    pub fn node(&mut self, name: &str) -> &mut Value {
        self.nodes.iter_mut().find(|node| node["metadata"]["name"] == name).unwrap()
    }

    pub fn kill_node(&mut self, name: &str) {
        self.node(name)["status"]["conditions"][0]["status"] = json!("Unknown");
        for pod in self.pods.iter_mut().filter(|pod| pod["spec"]["nodeName"] == name) {
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
        }
    }

    pub fn revive_node(&mut self, name: &str) {
        self.node(name)["status"]["conditions"][0]["status"] = json!("True");
    }

    pub fn remove_node(&mut self, name: &str) {
        self.nodes.retain(|node| node["metadata"]["name"] != name);
    }

    /// A new template, which the DaemonSet controller has acted on.
    pub fn template(&mut self, hash: &str) {
        let number = i64::try_from(self.revisions.len()).unwrap() + 1;
        self.revisions.push(revision(hash, number));
        if self.daemon_set["metadata"]["annotations"].is_object() {
            self.daemon_set["metadata"]["annotations"][ANNOTATION] = json!(hash);
        }
        self.touch();
        if self.canary.mode == Some(RolloutMode::Strict) {
            self.daemon_set["spec"]["updateStrategy"] = frozen();
        }
    }

    /// The number that the API server gives the template.
    pub fn number(&mut self, template: i64) {
        self.daemon_set["metadata"]["annotations"]["deprecated.daemonset.template.generation"] =
            json!(template.to_string());
    }

    /// The spec was written, and the DaemonSet controller has seen it.
    pub fn touch(&mut self) {
        let generation = self.daemon_set["metadata"]["generation"].as_i64().unwrap() + 1;
        self.daemon_set["metadata"]["generation"] = json!(generation);
        self.daemon_set["status"]["observedGeneration"] = json!(generation);
    }

    pub fn strategy(&mut self, strategy: Value) {
        self.daemon_set["spec"]["updateStrategy"] = strategy;
        self.touch();
    }

    /// Pods carry the DaemonSet's annotation of their template.
    pub fn annotated(mut self, on: bool) -> Self {
        if on {
            self.canary.match_annotations = vec![ANNOTATION.to_owned()];
            self.daemon_set["metadata"]["annotations"] = json!({ANNOTATION: "old"});
            for pod in &mut self.pods {
                pod["metadata"]["annotations"] =
                    json!({ANNOTATION: pod["metadata"]["labels"]["controller-revision-hash"]});
            }
        }
        self
    }

    /// The pod of a node is this one from now on.
    pub fn put(&mut self, node: &str, hash: &str, state: State) {
        self.pods.retain(|pod| pod["spec"]["nodeName"] != node);
        self.beside(node, hash, state);
    }

    /// A further pod on a node.
    pub fn beside(&mut self, node: &str, hash: &str, state: State) {
        self.pods_made += 1;
        let number = self.pods_made;
        let mut pod = pod(node, hash, number, state);
        if !self.canary.match_annotations.is_empty() {
            pod["metadata"]["annotations"] = json!({ANNOTATION: hash});
        }
        self.pods.push(pod);
    }

    pub fn empty(&mut self, node: &str) {
        self.pods.retain(|pod| pod["spec"]["nodeName"] != node);
    }

    pub fn uid(&self, node: &str) -> String {
        let pod = self.pods.iter().find(|pod| pod["spec"]["nodeName"] == node).unwrap();
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// The counts as the DaemonSet controller keeps them.
    fn count(&mut self) {
        let newest = self.revisions.last().unwrap()["metadata"]["labels"]["controller-revision-hash"].clone();
        let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let ready = |pod: &&Value| pod["status"]["conditions"][0]["status"] == "True";
        let new = |pod: &&Value| pod["metadata"]["labels"]["controller-revision-hash"] == newest;
        let status = &mut self.daemon_set["status"];
        if status["desiredNumberScheduled"].is_null() {
            status["desiredNumberScheduled"] = json!(self.nodes.len());
        }
        let updated = self.pods.iter().filter(stays).filter(new).count();
        let available = self.pods.iter().filter(stays).filter(ready).count();
        status["updatedNumberScheduled"] = json!(updated);
        status["numberAvailable"] = json!(available);
    }

    /// The DaemonSet controller says that so many nodes should run it.
    pub fn desired(&mut self, nodes: usize) {
        self.daemon_set["status"]["desiredNumberScheduled"] = json!(nodes);
    }

    pub fn observe(&mut self) -> Observation {
        self.count();
        let map = |value: &Value| -> Map<String, Value> { value.as_object().unwrap().clone() };
        Observation {
            daemon_set: (!self.daemon_set.is_null()).then(|| DaemonSet::read(&map(&self.daemon_set))),
            revisions: self.revisions.iter().map(|revision| Revision::read(&map(revision))).collect(),
            pods: self.pods.iter().map(|pod| Pod::read(&map(pod))).collect(),
            nodes: Arc::new(
                self.nodes.iter().map(|node| Node::read(&map(node))).map(|node| (node.name.clone(), node)).collect(),
            ),
        }
    }

    /// Decides, and keeps the record.
    pub fn look(&mut self) -> Decision {
        let seen = self.observe();
        let decision = decide(&seen, &self.record, &self.settings(), self.moment);
        let (from, to) = (self.record.phase, decision.record.phase);
        assert!(is_allowed(from, to), "from {from} to {to} is no way: {decision:?}");
        self.record = decision.record.clone();
        decision
    }

    /// Looks, does what is decided, and looks again until nothing is to be done.
    pub fn settle(&mut self) -> Decision {
        for _ in 0..10 {
            let decision = self.look();
            let again = decision.look_again == Some(Duration::ZERO);
            match &decision.action {
                Some(action) => self.carry_out(&action.clone()),
                None if again => {}
                None => return decision,
            }
        }
        panic!("it does not come to rest: {:?}", self.record);
    }

    pub fn carry_out(&mut self, action: &Action) {
        match action {
            Action::Label(label) => panic!("a decision puts no label: {label:?}"),
            Action::Steer(steering) => self.strategy(steering.strategy.clone()),
            Action::DeletePod { uid, .. } => {
                let pod = self.pods.iter_mut().find(|pod| pod["metadata"]["uid"] == *uid).unwrap();
                pod["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:00:00Z");
            }
        }
    }

    pub fn wait(&mut self, seconds: i64) {
        self.moment.time = self.moment.time.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap();
        self.moment.watching_for += Duration::from_secs(u64::try_from(seconds).unwrap());
    }

    /// Another process looks on from here.
    pub fn restart(&mut self) {
        self.moment.watching_for = Duration::ZERO;
    }
}

/// Phase and reason of a record.
pub fn stands(record: &RolloutRecord) -> (RolloutPhase, Option<RolloutReason>) {
    (record.phase, record.reason)
}

pub fn steering(decision: &Decision) -> &Steering {
    match &decision.action {
        Some(Action::Steer(steering)) => steering,
        other => panic!("no write of the strategy but {other:?}; {:?}", decision.record),
    }
}

/// The pace a decision asks for, as text.
pub fn pace(decision: &Decision) -> String {
    match steering(decision).pace {
        Pace::Frozen => "frozen".to_owned(),
        rolling @ Pace::Rolling(_) => rolling.to_string(),
    }
}

pub fn deleted(decision: &Decision) -> &str {
    match &decision.action {
        Some(Action::DeletePod { uid, .. }) => uid,
        other => panic!("no pod is deleted but {other:?}; {:?}", decision.record),
    }
}

pub fn message(decision: &Decision) -> &str {
    match &decision.standing {
        Standing::Done => "",
        Standing::Waiting(message) | Standing::Failed(message) => message,
    }
}

pub fn rolling(unavailable: impl Into<Value>) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable.into(), "maxSurge": 0}})
}

pub fn surging(surge: impl Into<Value>) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": surge.into()}})
}

pub fn frozen() -> Value {
    json!({"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
}

fn record() -> RolloutRecord {
    RolloutRecord { daemon_set: "agents/agent".into(), component: "agent".into(), ..RolloutRecord::default() }
}

fn owner(uid: &str) -> Value {
    json!([{"kind": "DaemonSet", "name": "agent", "uid": uid, "controller": true}])
}

pub fn revision(hash: &str, number: i64) -> Value {
    json!({
        "metadata": {
            "name": format!("agent-{hash}"), "labels": {"controller-revision-hash": hash},
            "ownerReferences": owner(UID),
        },
        "revision": number,
    })
}

fn pod(node: &str, hash: &str, number: u32, state: State) -> Value {
    let mut pod = json!({
        "metadata": {
            "namespace": "agents", "name": format!("agent-{number}"), "uid": format!("pod-{number}"),
            "labels": {"controller-revision-hash": hash}, "ownerReferences": owner(UID),
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    });
    let container = |restarts: u32, state: Value| json!([{"name": "main", "restartCount": restarts, "state": state}]);
    let status = &mut pod["status"];
    match state {
        State::Ready => status["conditions"] = json!([{"type": "Ready", "status": "True"}]),
        State::Unready => status["containerStatuses"] = container(0, json!({"running": {}})),
        State::Pending => {
            status["phase"] = json!("Pending");
            let message = "0/3 nodes are available: 3 Insufficient cpu.";
            status["conditions"] = json!([{"type": "Ready", "status": "False"}, {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            }]);
        }
        State::Terminating => pod["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:00:00Z"),
        State::Restarted(restarts) => status["containerStatuses"] = container(restarts, json!({"running": {}})),
        State::Waiting(reason, restarts) => {
            status["containerStatuses"] = container(restarts, json!({"waiting": {"reason": reason}}));
            status["containerStatuses"][0]["lastState"] =
                json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        }
        State::InitWaiting(reason, restarts) => {
            status["phase"] = json!("Pending");
            status["initContainerStatuses"] = container(restarts, json!({"waiting": {"reason": reason}}));
            status["initContainerStatuses"][0]["name"] = json!("setup");
            status["containerStatuses"] = container(0, json!({"waiting": {"reason": "PodInitializing"}}));
        }
    }
    pod
}
