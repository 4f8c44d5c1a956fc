//! A simulated cluster with one DaemonSet, and the decisions about it carried out
//! as the controller does: late, under their conditions, and again after a kill.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use windlass::api::{Canary, RolloutGuard, RolloutMode, RolloutRecord};
use windlass::canary::action::Warrant;
use windlass::canary::objects::{DaemonSet, Node, Pod, Revision};
use windlass::canary::{Action, Decision, Moment, Observation, Settings, decide, remember};
use windlass::sim::chart::Script;
use windlass::sim::guard::Policy;
use windlass::sim::store::Expected;
use windlass::sim::{Key, Refusal, World};

use crate::watches::{Lags, Watches};

const HELM: &str = "helm-controller";
const WINDLASS: &str = "windlass";

/// What a core does not see.
pub type Distortion = fn(&mut Observation, &mut RolloutRecord, &mut Settings);

/// A change of the record, and when.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: u64,
    /// Length of the cluster's log by then.
    pub position: usize,
    pub record: RolloutRecord,
}

pub struct Rollout {
    pub world: World,
    pub record: RolloutRecord,
    pub canary: Canary,
    pub guard: RolloutGuard,
    /// Everything that was put on record.
    pub told: Vec<Told>,
    pub refused: usize,
    /// Milliseconds between a change and the look it leads to, and between that
    /// and its write.
    pub latency: u64,
    pub distortion: Option<Distortion>,
    /// Writes are made without their tests.
    pub untested: bool,
    /// Looks until it stops for good: one that does the same for ever ends.
    pub looks_left: u32,
    chart: Value,
    version: String,
    started: u64,
    lags: Lags,
    watches: Watches,
    due: Option<u64>,
    /// A write on its way.
    pending: Option<(u64, Action)>,
}

pub fn key() -> Key {
    Key::new("apps/v1", "DaemonSet", "agents", "agent")
}

impl Rollout {
    /// `nodes` nodes that run version 1 of a chart with this strategy.
    pub fn new(canary: Canary, guarded: bool, nodes: usize, strategy: Value, script: Script) -> Self {
        let mode = canary.mode.unwrap_or(RolloutMode::Strict);
        let guard = match (guarded, mode) {
            (false, _) => RolloutGuard::Rendered,
            (true, RolloutMode::Strict) => RolloutGuard::AdmissionStrict,
            (true, RolloutMode::Compat) => RolloutGuard::AdmissionCompat,
        };
        let mut rollout = Self {
            world: World::new(script),
            record: RolloutRecord {
                daemon_set: "agents/agent".into(),
                component: "agent".into(),
                ..RolloutRecord::default()
            },
            canary,
            guard,
            told: Vec::new(),
            refused: 0,
            latency: 20,
            distortion: None,
            untested: false,
            looks_left: u32::MAX,
            chart: strategy,
            version: "1".into(),
            started: 0,
            lags: Lags::default(),
            watches: Watches::default(),
            due: None,
            pending: None,
        };
        rollout.watch(Lags::default());
        for number in 1..=nodes {
            rollout.world.add_node(&format!("n{number}"));
        }
        if guarded {
            rollout.world.store.policies = [Policy::Strict, Policy::Compat].into();
        }
        rollout.apply();
        let label = if mode == RolloutMode::Strict { "strict" } else { "compat" };
        let patch = json!({"metadata": {"labels": {"windlass.dev/canary": label}}});
        let written = rollout.world.store.patch(WINDLASS, &key(), patch.as_object().unwrap(), &Expected::default());
        written.unwrap();
        rollout.world.settle_writes();
        rollout.play(20_000);
        rollout
    }

    /// Everything is listed, and watched from here on.
    pub fn watch(&mut self, lags: Lags) {
        self.lags = lags;
        self.watches = Watches::start(&self.world.store, lags);
    }

    fn settings(&self) -> Settings {
        Settings::from(&self.canary)
    }

    /// What the core does before the engine gets a new spec: the baseline, and a
    /// small budget.
    pub fn upgrade(&mut self, version: &str) {
        self.remember();
        self.rewrite(version);
    }

    /// Nothing is written before it is known what stands there, unless that never comes.
    fn remember(&mut self) {
        let fresh = windlass::canary::again(&self.record);
        for patience in [self.lags.longest(), 0] {
            if let Some(record) = remember(&self.observe(), &self.settings(), fresh.clone()) {
                self.record = record;
                return;
            }
            self.let_pass(patience);
        }
        self.record = RolloutRecord::default();
    }

    fn let_pass(&mut self, millis: u64) {
        let end = self.world.now() + millis;
        while self.world.next_due().is_some_and(|due| due <= end) {
            self.world.step();
        }
        self.world.wait_until(end);
    }

    /// A new version without an upgrade: somebody changes the template by hand, say.
    pub fn rewrite(&mut self, version: &str) {
        self.version = version.to_owned();
        self.apply();
        self.due = Some(self.world.now() + self.latency);
    }

    /// The engine applies the chart, whatever stands there.
    pub fn apply(&mut self) {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "agents"},
            "spec": {
                "updateStrategy": self.chart,
                "template": {"spec": {"containers": [{"name": "main", "image": format!("agent:{}", self.version)}]}},
            },
        });
        if self.guard == RolloutGuard::Rendered && self.chart["rollingUpdate"]["maxSurge"].as_u64().unwrap_or(0) == 0 {
            object["spec"]["updateStrategy"] = json!({
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
        }
        self.world.store.apply(HELM, object.as_object().unwrap(), &Expected::default()).unwrap();
        self.world.settle_writes();
    }

    /// Somebody writes a budget by hand.
    pub fn edit(&mut self, strategy: Value) {
        let patch = json!([{"op": "replace", "path": "/spec/updateStrategy", "value": strategy}]);
        // An invalid one, or one of a DaemonSet that is gone, is nobody's loss.
        let _ = self.world.store.json_patch("user", &key(), patch.as_array().unwrap());
        self.world.settle_writes();
    }

    /// Somebody deletes the pod of a node.
    pub fn evict(&mut self, node: &str) {
        let here = |pod: &Map<String, Value>| pod["spec"]["nodeName"] == node;
        let pods: Vec<Key> =
            self.world.store.list("Pod").filter(|(_, pod)| here(pod)).map(|(key, _)| key.clone()).collect();
        for pod in pods {
            self.world.store.delete("user", &pod, &Expected::default()).unwrap();
        }
        self.world.settle_writes();
    }

    /// The process is killed and another one starts.
    pub fn restart(&mut self) {
        self.started = self.world.now();
        self.watch(self.lags);
        self.pending = None;
        self.due = Some(self.world.now());
    }

    pub fn observe(&mut self) -> Observation {
        self.watches.catch_up(self.world.store.log(), self.world.now());
        let seen = &self.watches;
        Observation {
            daemon_set: seen.list("DaemonSet").map(|(_, object)| DaemonSet::read(object)).next(),
            revisions: seen.list("ControllerRevision").map(|(_, object)| Revision::read(object)).collect(),
            pods: seen.list("Pod").map(|(_, object)| Pod::read(object)).collect(),
            nodes: Arc::new(seen.list("Node").map(|(key, object)| (key.name.clone(), Node::read(object))).collect()),
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            time: self.world.timestamp(),
            watching_for: Duration::from_millis(self.world.now() - self.started),
            guard: self.guard,
            released: true,
            paused: false,
            returning: false,
            forgiving: false,
        }
    }

    /// Plays for some milliseconds, looking whenever something has changed.
    pub fn play(&mut self, millis: u64) {
        let end = self.world.now() + millis;
        loop {
            if self.watches.catch_up(self.world.store.log(), self.world.now()) {
                let at = self.world.now() + self.latency;
                self.due = Some(self.due.map_or(at, |due| due.min(at)));
            }
            let own = self.pending.as_ref().map(|(at, _)| *at).or(self.due);
            let arrival = self.watches.next(self.world.store.log());
            let next = [own, arrival, self.world.next_due()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            if own != Some(next) && arrival != Some(next) {
                self.world.step();
                continue;
            }
            self.world.wait_until(next);
            if own != Some(next) {
                continue;
            }
            if let Some((_, action)) = self.pending.take() {
                self.write(&action);
            } else {
                self.due = None;
                self.look();
            }
        }
        self.world.wait_until(end);
    }

    fn look(&mut self) {
        self.looks_left = self.looks_left.saturating_sub(1);
        if self.looks_left == 0 {
            return;
        }
        if windlass::canary::is_about_to_end(&self.record) {
            self.watches.note(&key(), &self.world.store);
        }
        let (mut seen, mut settings, mut record) = (self.observe(), self.settings(), self.record.clone());
        if let Some(distortion) = self.distortion {
            distortion(&mut seen, &mut record, &mut settings);
        }
        let Decision { record, action, look_again, .. } = decide(&seen, &record, &settings, self.moment());
        if record != self.record {
            let position = self.world.store.log().len();
            // It is read again as it was written.
            let record: RolloutRecord = serde_json::from_value(serde_json::to_value(&record).unwrap()).unwrap();
            self.told.push(Told { at: self.world.now(), position, record: record.clone() });
            self.record = record;
            self.due = Some(self.world.now() + self.latency);
        }
        if let Some(after) = look_again {
            let at = self.world.now() + u64::try_from(after.as_millis()).unwrap().max(1);
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
        if let Some(action) = action {
            // The write arrives later than it was decided upon.
            self.pending = Some((self.world.now() + self.latency, action));
        }
    }

    fn write(&mut self, action: &Action) {
        let written = self.carry_out(action);
        self.world.settle_writes();
        match written {
            Ok(own) => self.watches.note(&own, &self.world.store),
            Err(_) => {
                self.refused += 1;
                self.due = Some(self.world.now() + 50);
            }
        }
    }

    /// Gives what was written.
    fn carry_out(&mut self, action: &Action) -> Result<Key, Refusal> {
        match action {
            Action::Label(label) => panic!("a decision puts no label: {label:?}"),
            Action::Steer(steering) => {
                let pods: Vec<Pod> = self.world.store.list("Pod").map(|(_, pod)| Pod::read(pod)).collect();
                if steering
                    .proof
                    .as_ref()
                    .is_some_and(|proof| !proof.holds(&pods) && !self.untested && self.distortion.is_none())
                {
                    return Err(Refusal::Conflict);
                }
                let mut patch = steering.json_patch().as_array().cloned().unwrap();
                if self.untested {
                    patch.retain(|step| step["op"] != "test");
                }
                self.world.store.json_patch(WINDLASS, &key(), &patch).map(|_| key())
            }
            Action::DeletePod { namespace, name, uid, warrant, .. } => {
                let pod = Key::new("v1", "Pod", namespace, name);
                let stays = |pod: &&Pod| !pod.deleting;
                let pods: Vec<Pod> = self.world.store.list("Pod").map(|(_, pod)| Pod::read(pod)).collect();
                let staying = || pods.iter().filter(stays).map(|pod| pod.uid.as_str());
                let holds = match warrant {
                    Warrant::Beside(beside) => beside.are_among(staying()),
                    Warrant::Idle => pods.iter().any(|pod| pod.uid == *uid && !pod.ready),
                };
                if !holds && !self.untested {
                    return Err(Refusal::Conflict);
                }
                let expected = Expected { uid: Some(uid.clone()), resource_version: None };
                self.world.store.delete(WINDLASS, &pod, &expected)?;
                Ok(pod)
            }
        }
    }

    /// Image and readiness of the pod of each node that stays.
    pub fn pods(&self) -> BTreeMap<String, (String, bool)> {
        pods(self.world.store.list("Pod").map(|(_, pod)| pod.as_ref()))
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// What was put on record, amid the changes of the DaemonSet and its pods.
    pub fn tell(&self) -> String {
        let told = self.told.iter().map(|told| (told.position, describe_record(told)));
        let log = self.world.store.log().iter().enumerate();
        let seen = log.filter(|(_, change)| matches!(change.key.kind.as_str(), "DaemonSet" | "Pod"));
        let changes = seen.map(|(position, change)| (position, describe_change(change)));
        let mut lines: Vec<(usize, String)> = changes.chain(told).collect();
        lines.sort_by_key(|(position, _)| *position);
        lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
    }
}

fn describe_record(told: &Told) -> String {
    let r = &told.record;
    let (reason, message) = (r.reason.map(|reason| format!("{reason:?}")).unwrap_or_default(), r.message.as_deref());
    let at = format!("{:>8} {} {reason} step {} node {:?}", told.at, r.phase, r.step, r.node);
    let counts = format!("budget {:?} {}/{}/{}", r.budget, r.updated, r.ready, r.desired);
    format!("{at} {counts} {}", message.unwrap_or_default())
}

fn describe_change(change: &windlass::sim::Change) -> String {
    let at =
        |pointer: &str| Value::Object(change.object.as_ref().clone()).pointer(pointer).cloned().unwrap_or_default();
    let what = if change.key.kind == "Pod" {
        let ready = at("/status/conditions/0/status");
        let going = at("/metadata/deletionTimestamp").is_string();
        format!("{} {} ready {ready} going {going}", at("/spec/nodeName"), at("/spec/containers/0/image"))
    } else {
        format!("{} {}", at("/spec/template/spec/containers/0/image"), at("/spec/updateStrategy"))
    };
    format!("{:>12} {:?} {} by {}: {what}", change.at, change.verb, change.key.name, change.actor)
}

/// Image and readiness of the pod of each node that stays; of two the ready one.
pub fn pods<'a>(pods: impl Iterator<Item = &'a Map<String, Value>>) -> BTreeMap<String, (String, bool)> {
    let mut found = BTreeMap::new();
    for pod in pods.filter(|pod| pod["metadata"].get("deletionTimestamp").is_none()) {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or("").to_owned();
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or("").to_owned();
        let conditions = pod.get("status").and_then(|status| status["conditions"].as_array());
        let ready = conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True");
        let better = found.get(&node).is_none_or(|(_, known): &(String, bool)| ready && !known);
        if better {
            found.insert(node, (image, ready));
        }
    }
    found
}
