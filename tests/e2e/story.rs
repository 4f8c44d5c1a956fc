//! What happened to a DaemonSet, its pods and its nodes, and what must be true of it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::nodes::KUBELET;
use crate::support::recorder::{Change, Entry};

const DAEMON_SET: &str = "DaemonSet";
const TEMPLATE: &str = "deprecated.daemonset.template.generation";

/// What happened, in the order of the API server.
pub struct Story {
    pub log: Vec<Entry>,
}

impl Story {
    /// Budgets of the DaemonSet since its first template was followed by another, without
    /// repetitions; `frozen` for OnDelete.
    pub fn budgets(&self) -> Vec<String> {
        self.budgets_from(0)
    }

    /// The same from what stood after so many changes on.
    pub fn budgets_from(&self, position: usize) -> Vec<String> {
        let is_it = |entry: &Entry| entry.kind == DAEMON_SET;
        let stood = self.log.iter().take(position).rposition(is_it).unwrap_or(position);
        let mut budgets: Vec<String> = Vec::new();
        for entry in self.log.iter().skip(stood).filter(|entry| entry.kind == DAEMON_SET) {
            let budget = budget(&entry.object);
            if budgets.last() != Some(&budget) {
                budgets.push(budget);
            }
        }
        budgets
    }

    /// Most nodes without a ready pod at once, among those that had one; but for one that the
    /// DaemonSet controller may have missed, see [`Ready`].
    pub fn most_down(&self) -> usize {
        let mut ready = Ready::default();
        self.log.iter().map(|entry| ready.follow(entry).len()).max().unwrap_or(0)
    }

    /// Versions that the pods run that are left.
    pub fn versions(&self) -> Vec<String> {
        let mut pods: BTreeMap<&str, String> = BTreeMap::new();
        for entry in self.log.iter().filter(|entry| entry.kind == "Pod") {
            match entry.change {
                Change::Deleted => {
                    pods.remove(entry.name.as_str());
                }
                Change::Added | Change::Modified => {
                    let version = entry.object["metadata"]["labels"]["version"].as_str().unwrap_or_default();
                    pods.insert(&entry.name, version.to_owned());
                }
            }
        }
        pods.into_values().collect()
    }

    /// Versions of pods that are ready, by their node.
    pub fn ready_on(&self) -> BTreeMap<String, String> {
        let mut pods: BTreeMap<&str, &Entry> = BTreeMap::new();
        for entry in self.log.iter().filter(|entry| entry.kind == "Pod") {
            match entry.change {
                Change::Deleted => pods.remove(entry.name.as_str()),
                Change::Added | Change::Modified => pods.insert(&entry.name, entry),
            };
        }
        let ready = pods.into_values().filter(|entry| is_ready(&entry.object));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        ready
            .map(|entry| {
                let object = &entry.object;
                (text(&object["spec"]["nodeName"]), text(&object["metadata"]["labels"]["version"]))
            })
            .collect()
    }

    /// See [`Story::judged`].
    pub fn is_within_the_budget(&self, dead: usize) {
        self.judged(dead).unwrap_or_else(|error| panic!("{error}\n{}", self.tell()));
    }

    /// Never more nodes without a ready pod than the budget allows that its controller knows, or
    /// is about to know; and than were so, or dead, before that was lowered. While nothing is to
    /// be replaced, no other than the one that is on record by then.
    fn judged(&self, dead: usize) -> Result<(), String> {
        let (mut ready, mut allowed, mut template) = (Ready::default(), usize::MAX, Value::Null);
        // Of budgets that its controller may still work through the largest.
        let mut budget = usize::MAX;
        let (mut nodes, mut freeze) = (Nodes::default(), Freeze::default());
        for entry in &self.log {
            nodes.follow(entry)?;
            if entry.kind == DAEMON_SET {
                let own = &entry.object["metadata"]["annotations"][TEMPLATE];
                let live = pods_of(&entry.object);
                let known = entry.object["status"]["observedGeneration"] == entry.object["metadata"]["generation"];
                if *own != template {
                    // What comes with a template is what it may take at once.
                    budget = if template.is_null() { usize::MAX } else { live };
                    allowed = budget.max(if budget == usize::MAX { 0 } else { ready.down().len() });
                    template = own.clone();
                } else if budget != usize::MAX {
                    budget = if known { live } else { budget.max(live) };
                    allowed = allowed.max(budget);
                }
            }
            let down = ready.follow(entry);
            if allowed == usize::MAX {
                continue;
            }
            if down.len() > allowed + dead {
                let found = down.len();
                return Err(format!(
                    "{found} nodes without a ready pod at {}, {allowed} allowed and {dead} dead",
                    entry.version
                ));
            }
            allowed = budget.max(allowed.min(down.len()));
            let here = down.into_iter().filter(|node| !nodes.away.contains(node)).collect();
            freeze.follow(entry, here)?;
        }
        Ok(())
    }

    pub fn tell(&self) -> String {
        let began = self.log.first().map(|entry| entry.seen);
        let mut ready = Ready::default();
        let line = |entry: &Entry| {
            let down = ready.follow(entry).len();
            let seconds = began.map(|began| entry.seen.duration_since(began).as_secs_f64()).unwrap_or_default();
            let gist = match entry.kind.as_str() {
                "DaemonSet" => format!("budget {} {}", budget(&entry.object), entry.object["status"]),
                "Pod" => format!(
                    "{} {} ready {} going {}",
                    entry.object["spec"]["nodeName"],
                    entry.object["metadata"]["labels"]["version"],
                    is_ready(&entry.object),
                    !entry.object["metadata"]["deletionTimestamp"].is_null()
                ),
                "Node" => format!("ready {} kubelet {}", is_ready(&entry.object), has_kubelet(&entry.object)),
                _ => format!("{} {}", entry.object["status"]["summary"], entry.object["status"]["rollouts"]),
            };
            format!(
                "{seconds:8.3} {} {:?} {} {} down {down} {gist}",
                entry.version, entry.change, entry.kind, entry.name
            )
        };
        self.log.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Nodes that have had a ready pod, and whether they have one now.
///
/// The DaemonSet controller does not count a node whose pod went between its two looks at the
/// pods in one pass (`manage`, then `rollingUpdate`; pkg/controller/daemon of Kubernetes 1.36), so
/// that one more goes now and then. While it rolls, one node that had no pod at all when the next
/// one went is not counted here either; a second one is.
#[derive(Default)]
struct Ready {
    pods: BTreeMap<String, OnNode>,
    had: BTreeSet<String>,
    uncounted: BTreeSet<String>,
    rolls: bool,
}

struct OnNode {
    node: String,
    ready: bool,
    going: bool,
}

impl Ready {
    /// Those that have none. A node that is gone counts no more.
    fn follow(&mut self, entry: &Entry) -> BTreeSet<String> {
        if entry.kind == DAEMON_SET {
            self.rolls = budget(&entry.object) != "frozen";
        }
        if entry.kind == "Node" && entry.change == Change::Deleted {
            self.had.remove(&entry.name);
        }
        if entry.kind == "Pod" {
            let node = entry.object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
            let going = !entry.object["metadata"]["deletionTimestamp"].is_null();
            let ready = is_ready(&entry.object) && !going;
            match entry.change {
                Change::Deleted => {
                    self.pods.remove(&entry.name);
                }
                Change::Added | Change::Modified => {
                    let before = self.pods.get(&entry.name);
                    if self.rolls && going && before.is_some_and(|pod| !pod.going) {
                        let has_a_pod = |node: &&String| self.pods.values().any(|pod| pod.node == **node);
                        if self.uncounted.is_empty() {
                            self.uncounted.extend(self.had.iter().find(|node| !has_a_pod(node)).cloned());
                        }
                    }
                    self.pods.insert(entry.name.clone(), OnNode { node: node.clone(), ready, going });
                }
            }
            if ready {
                self.uncounted.remove(&node);
                self.had.insert(node);
            }
        }
        self.down()
    }

    /// The same, as it stands.
    fn down(&self) -> BTreeSet<String> {
        let has = |node: &&String| self.pods.values().any(|pod| pod.node == **node && pod.ready);
        let down = self.had.iter().filter(|node| !has(node)).filter(|node| !self.uncounted.contains(*node));
        down.cloned().collect()
    }
}

/// Nodes that are not ready, or gone.
#[derive(Default)]
struct Nodes {
    ready: BTreeSet<String>,
    away: BTreeSet<String>,
}

impl Nodes {
    /// Fails when the bench itself has lost a node: one that a test kills loses its kubelet first.
    fn follow(&mut self, entry: &Entry) -> Result<(), String> {
        if entry.kind != "Node" {
            return Ok(());
        }
        let name = entry.name.clone();
        if entry.change != Change::Deleted && is_ready(&entry.object) {
            self.away.remove(&name);
            self.ready.insert(name);
            return Ok(());
        }
        self.away.insert(name);
        let lost = self.ready.remove(&entry.name) && entry.change != Change::Deleted;
        if lost && has_kubelet(&entry.object) {
            return Err(format!("the bench lost the kubelet of node {} at {}", entry.name, entry.version));
        }
        Ok(())
    }
}

/// While the DaemonSet is frozen, and its controller knows: nodes without a ready pod.
#[derive(Default)]
struct Freeze {
    frozen: bool,
    /// Those that were down when it froze, and those that were chosen since.
    down: BTreeSet<String>,
    /// The node of the canary, as the revision has it: written before anything is done there.
    chosen: Option<String>,
}

impl Freeze {
    fn follow(&mut self, entry: &Entry, down: BTreeSet<String>) -> Result<(), String> {
        let object = &entry.object;
        match entry.kind.as_str() {
            "PackageRevision" => {
                let node = object["status"]["rollouts"][0]["node"].as_str();
                self.chosen = node.map(str::to_owned).or(self.chosen.take());
            }
            DAEMON_SET => {
                let known = object["status"]["observedGeneration"] == object["metadata"]["generation"];
                let frozen = budget(object) == "frozen" && (known || self.frozen);
                if frozen && !self.frozen {
                    self.down.clone_from(&down);
                }
                self.frozen = frozen;
            }
            _ => {}
        }
        for node in down.into_iter().filter(|_| self.frozen) {
            if self.down.insert(node.clone()) && self.chosen.as_ref() != Some(&node) {
                let chosen = &self.chosen;
                return Err(format!("the pod on {node} goes at {}, frozen, and chosen is {chosen:?}", entry.version));
            }
        }
        Ok(())
    }
}

fn has_kubelet(node: &Value) -> bool {
    node["metadata"]["labels"][KUBELET].is_string()
}

fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn budget(daemon_set: &Value) -> String {
    let strategy = &daemon_set["spec"]["updateStrategy"];
    let rolling = &strategy["rollingUpdate"];
    let surge = &rolling["maxSurge"];
    match strategy["type"].as_str() {
        Some("OnDelete") => "frozen".to_owned(),
        _ if !surge.is_null() && *surge != 0 => format!("surge {}", surge.to_string().replace('"', "")),
        _ => rolling["maxUnavailable"].to_string().replace('"', ""),
    }
}

/// Pods that may be gone at once. Frozen: the one that Windlass deletes.
fn pods_of(daemon_set: &Value) -> usize {
    let desired = daemon_set["status"]["desiredNumberScheduled"].as_u64().unwrap_or(0) as usize;
    let budget = budget(daemon_set);
    let number = budget.trim_start_matches("surge ");
    match number.strip_suffix('%') {
        Some(share) => (desired * share.parse::<usize>().expect("a share")).div_ceil(100).max(1),
        None => number.parse().unwrap_or(1),
    }
}

/// The measure itself, on stories made by hand.
pub mod measure {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn log(entries: Vec<(&str, &str, Value)>) -> Story {
        let entry = |(position, (kind, name, object)): (usize, (&str, &str, Value))| Entry {
            version: position as u64,
            seen: Instant::now(),
            change: Change::Modified,
            kind: kind.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
            object,
        };
        Story { log: entries.into_iter().enumerate().map(entry).collect() }
    }

    fn daemon_set(template: &str, strategy: &str) -> (&'static str, &'static str, Value) {
        let object = json!({
            "metadata": {"generation": 1, "annotations": {TEMPLATE: template}},
            "spec": {"updateStrategy": {"type": strategy, "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 2},
        });
        ("DaemonSet", "agent", object)
    }

    fn pod(node: &'static str, going: bool) -> (&'static str, &'static str, Value) {
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        let metadata = if going { json!({"deletionTimestamp": "now"}) } else { json!({}) };
        ("Pod", node, json!({"metadata": metadata, "spec": {"nodeName": node}, "status": {"conditions": conditions}}))
    }

    fn node(name: &'static str, ready: bool, kubelet: bool) -> (&'static str, &'static str, Value) {
        let labels = if kubelet { json!({KUBELET: "running"}) } else { json!({}) };
        let status = if ready { "True" } else { "Unknown" };
        let conditions = json!([{"type": "Ready", "status": status}]);
        ("Node", name, json!({"metadata": {"labels": labels}, "status": {"conditions": conditions}}))
    }

    fn chosen(node: &str) -> (&'static str, &'static str, Value) {
        ("PackageRevision", "agent-2", json!({"status": {"rollouts": [{"node": node}]}}))
    }

    fn frozen(then: Vec<(&'static str, &'static str, Value)>) -> Result<(), String> {
        let before = vec![
            daemon_set("1", "RollingUpdate"),
            pod("n1", false),
            pod("n2", false),
            daemon_set("2", "OnDelete"),
            chosen("n1"),
        ];
        log(before.into_iter().chain(then).collect()).judged(0)
    }

    pub fn only_the_chosen_pod_goes_while_frozen() {
        assert_eq!(frozen(vec![pod("n1", true), pod("n1", false)]), Ok(()));
        let error = frozen(vec![pod("n2", true)]).expect_err("it is not on record");
        assert!(error.contains("the pod on n2 goes"), "{error}");
        let error = frozen(vec![pod("n1", true), pod("n1", false), pod("n2", true)]).expect_err("one after the other");
        assert!(error.contains("the pod on n2 goes"), "{error}");
    }

    /// A budget that is back at 1 does not admit what one of 3 did.
    pub fn a_budget_that_was_larger_once_admits_nothing_later() {
        let rolling = |template: &str, budget: u64, seen: u64| {
            let (kind, name, mut object) = daemon_set(template, "RollingUpdate");
            object["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = budget.into();
            object["status"]["observedGeneration"] = seen.into();
            (kind, name, object)
        };
        let story = |then: Vec<_>| {
            let nodes = ["n1", "n2", "n3"].map(|node| pod(node, false));
            let before = [rolling("1", 1, 1)].into_iter().chain(nodes).chain([rolling("2", 1, 1), rolling("2", 3, 1)]);
            log(before.chain(then).collect()).judged(0)
        };
        let two = || vec![pod("n1", true), pod("n2", true)];
        assert_eq!(story(two()), Ok(()));
        let under_way = vec![pod("n1", true), pod("n2", true), rolling("2", 1, 1), pod("n2", false)];
        assert_eq!(story(under_way.clone()), Ok(()), "what was under way when it was lowered");
        assert_eq!(story([vec![rolling("2", 1, 0)], two()].concat()), Ok(()), "its controller does not know yet");
        assert!(story([vec![rolling("2", 1, 1)], two()].concat()).is_err());
        assert!(story([under_way, vec![pod("n3", true)]].concat()).is_err());
    }

    pub fn a_node_that_the_bench_loses_is_told_from_one_that_a_test_kills() {
        let lost = log(vec![node("n1", true, true), node("n1", false, true)]).judged(0);
        assert!(lost.is_err_and(|error| error.contains("the bench lost the kubelet of node n1")));
        let killed = vec![node("n1", true, true), node("n1", true, false), node("n1", false, false)];
        let back = vec![node("n1", false, true), node("n1", true, true)];
        assert_eq!(log(killed.into_iter().chain(back).collect()).judged(0), Ok(()));
    }
}
