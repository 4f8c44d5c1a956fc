//! The objects of a rollout, as far as it looks at them: read once, at the
//! border, from what the API server gives.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::strategy::Strategy;
use crate::api::wellknown::{ARGO_SYNC_OPTIONS, LABEL_CANARY};

/// Label of pods and ControllerRevisions: hash of the template they are of.
const REVISION_HASH: &str = "controller-revision-hash";

/// Annotation of a DaemonSet: raised by the API server with every change of the
/// template, and by nothing else (measured).
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Annotation of what outlives its release.
const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Labels of nodes of the control plane.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// A DaemonSet.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonSet {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
    /// Generation of the spec.
    pub generation: i64,
    /// Generation the DaemonSet controller has acted on.
    pub observed_generation: i64,
    /// Number of its template: another one for every change of it.
    pub template: Option<i64>,
    /// Whether its deletion has begun.
    pub deleting: bool,
    /// Labels that its pods carry.
    pub selector: Value,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Value of the label that picks the guard's policy.
    pub guarded_as: Option<String>,
    /// Its own annotations.
    pub annotations: BTreeMap<String, String>,
    /// Kind and name of the object whose controller makes it.
    pub controller: Option<String>,
    /// How it replaces pods.
    pub strategy: Strategy,
    /// Taints that its pods tolerate.
    pub tolerations: Vec<Toleration>,
    /// Seconds for which a pod must be ready to count as available.
    pub min_ready_seconds: u64,
    /// What its controller says of it.
    pub counts: Counts,
}

/// What the DaemonSet controller counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes that should run a pod.
    pub desired: i64,
    /// Of these, nodes whose pod is of the newest template.
    pub updated: i64,
    /// Of these, nodes whose pod is available.
    pub available: i64,
}

/// A ControllerRevision: one template a DaemonSet has had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// uid of the DaemonSet whose it is.
    pub owner: Option<String>,
    /// Number, rising with each change; a template that returns is numbered anew.
    pub number: i64,
    /// Hash of the template, as pods carry it.
    pub hash: String,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
    /// uid of the controller whose it is.
    pub owner: Option<String>,
    /// Node it runs on, or is made for.
    pub node: Option<String>,
    /// Hash of the template it was made from.
    pub hash: Option<String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Whether its deletion has begun.
    pub deleting: bool,
    /// `status.phase`.
    pub phase: String,
    /// Whether the condition Ready is True.
    pub ready: bool,
    /// Why it is not scheduled, where the scheduler says so.
    pub unscheduled: Option<String>,
    /// Its containers, init containers first.
    pub containers: Vec<Container>,
}

/// What became of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Name.
    pub name: String,
    /// Whether it is an init container, whose end is no failure.
    pub init: bool,
    /// Restarts so far.
    pub restarts: u32,
    /// Reason and message of what it waits for.
    pub waiting: Option<(String, String)>,
    /// How it ended, if it has not been started again.
    pub terminated: Option<Exit>,
    /// How it ended before.
    pub last: Option<Exit>,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit code.
    pub code: i64,
    /// Reason, such as `OOMKilled`.
    pub reason: String,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Whether the condition Ready is True.
    pub ready: bool,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints that keep pods away.
    pub taints: Vec<Taint>,
}

/// A taint with the effect NoSchedule or NoExecute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
    /// Effect.
    pub effect: String,
}

/// A taint that pods tolerate; empty fields match any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toleration {
    /// Key; empty: any.
    pub key: String,
    /// Value; `None`: any.
    pub value: Option<String>,
    /// Effect; empty: any.
    pub effect: String,
}

impl DaemonSet {
    /// Reads a DaemonSet.
    pub fn read(object: &Map<String, Value>) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let status = object.get("status").unwrap_or(&Value::Null);
        let count = |field: &str| status[field].as_i64().unwrap_or(0);
        let metadata = Metadata::of(object);
        let labels = metadata.map("labels");
        Self {
            namespace: metadata.text("namespace"),
            name: metadata.text("name"),
            uid: metadata.text("uid"),
            generation: metadata.0["generation"].as_i64().unwrap_or(0),
            observed_generation: count("observedGeneration"),
            template: metadata.map("annotations").get(TEMPLATE_GENERATION).and_then(|number| number.parse().ok()),
            deleting: metadata.is_deleting(),
            selector: spec["selector"].clone(),
            guarded_as: labels.get(LABEL_CANARY).cloned(),
            labels,
            annotations: metadata.map("annotations"),
            controller: metadata.controller().map(|owner| format!("{}/{}", text(owner, "kind"), text(owner, "name"))),
            strategy: Strategy::read(&spec["updateStrategy"]),
            tolerations: items(&spec["template"]["spec"]["tolerations"]).map(Toleration::read).collect(),
            min_ready_seconds: spec["minReadySeconds"].as_u64().unwrap_or(0),
            counts: Counts {
                desired: count("desiredNumberScheduled"),
                updated: count("updatedNumberScheduled"),
                available: count("numberAvailable"),
            },
        }
    }

    /// `<namespace>/<name>`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Whether it outlives the release that it is of.
    pub fn is_kept(&self) -> bool {
        let is = |key: &str, holds: fn(&str) -> bool| self.annotations.get(key).is_some_and(|value| holds(value));
        is(HELM_RESOURCE_POLICY, |value| value == "keep")
            || is(ARGO_SYNC_OPTIONS, |options| options.split(',').any(|option| option.trim() == "Delete=false"))
    }

    /// Whether its controller has acted on the present spec.
    pub fn is_observed(&self) -> bool {
        self.observed_generation >= self.generation
    }

    /// Whether a pod of it is made for the node, or would be: taints that keep
    /// it away are tolerated. What the DaemonSet controller tolerates for every
    /// pod counts too.
    pub fn tolerates(&self, node: &Node) -> bool {
        node.taints.iter().all(|taint| self.bears(taint))
    }

    /// Whether somebody keeps it off the node. The taints that Kubernetes gives a node
    /// that has died are no such order.
    pub fn is_kept_off(&self, node: &Node) -> bool {
        let of_the_dead = |taint: &Taint| {
            matches!(taint.key.as_str(), "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
        };
        node.taints.iter().any(|taint| !of_the_dead(taint) && !self.bears(taint))
    }

    fn bears(&self, taint: &Taint) -> bool {
        let always = |taint: &Taint| match taint.effect.as_str() {
            "NoExecute" => {
                matches!(taint.key.as_str(), "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
            }
            _ => matches!(
                taint.key.as_str(),
                "node.kubernetes.io/disk-pressure"
                    | "node.kubernetes.io/memory-pressure"
                    | "node.kubernetes.io/pid-pressure"
                    | "node.kubernetes.io/unschedulable"
            ),
        };
        always(taint) || self.tolerations.iter().any(|by| by.matches(taint))
    }
}

impl Revision {
    /// Reads a ControllerRevision.
    pub fn read(object: &Map<String, Value>) -> Self {
        let metadata = Metadata::of(object);
        Self {
            owner: metadata.controller().map(|owner| text(owner, "uid")),
            number: object.get("revision").and_then(Value::as_i64).unwrap_or(0),
            hash: metadata.map("labels").remove(REVISION_HASH).unwrap_or_default(),
        }
    }
}

impl Pod {
    /// Reads a pod.
    pub fn read(object: &Map<String, Value>) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let status = object.get("status").unwrap_or(&Value::Null);
        let metadata = Metadata::of(object);
        let condition = |type_: &str| items(&status["conditions"]).find(|c| c["type"] == type_);
        let unscheduled = condition("PodScheduled").filter(|scheduled| scheduled["status"] == "False");
        let init = items(&status["initContainerStatuses"]).map(|status| Container::read(status, true));
        let regular = items(&status["containerStatuses"]).map(|status| Container::read(status, false));
        Self {
            namespace: metadata.text("namespace"),
            name: metadata.text("name"),
            uid: metadata.text("uid"),
            owner: metadata.controller().map(|owner| text(owner, "uid")),
            node: spec["nodeName"].as_str().map(str::to_owned).or_else(|| made_for(spec)),
            hash: metadata.map("labels").remove(REVISION_HASH),
            annotations: metadata.map("annotations"),
            deleting: metadata.is_deleting(),
            phase: text(status, "phase"),
            ready: condition("Ready").is_some_and(|ready| ready["status"] == "True"),
            unscheduled: unscheduled
                .map(|scheduled| format!("{}: {}", text(scheduled, "reason"), text(scheduled, "message"))),
            containers: init.chain(regular).collect(),
        }
    }
}

/// The node that the DaemonSet controller has made the pod for, before the
/// scheduler has bound it.
fn made_for(spec: &Value) -> Option<String> {
    let terms =
        &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let fields = items(terms).flat_map(|term| items(&term["matchFields"]));
    let name = fields.into_iter().find(|field| field["key"] == "metadata.name")?;
    Some(name["values"][0].as_str()?.to_owned())
}

impl Pod {
    /// Restarts of its containers.
    pub fn restarts(&self) -> u32 {
        self.containers.iter().map(|container| container.restarts).sum()
    }
}

impl Container {
    fn read(status: &Value, init: bool) -> Self {
        let exit = |state: &Value| {
            let ended = state.get("terminated")?;
            Some(Exit { code: ended["exitCode"].as_i64().unwrap_or(0), reason: text(ended, "reason") })
        };
        let waiting = status["state"].get("waiting");
        Self {
            name: text(status, "name"),
            init,
            restarts: status["restartCount"].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
            waiting: waiting.map(|waiting| (text(waiting, "reason"), text(waiting, "message"))),
            terminated: exit(&status["state"]),
            last: exit(&status["lastState"]),
        }
    }
}

impl Node {
    /// Reads a node.
    pub fn read(object: &Map<String, Value>) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let status = object.get("status").unwrap_or(&Value::Null);
        let metadata = Metadata::of(object);
        let ready = items(&status["conditions"]).find(|condition| condition["type"] == "Ready");
        let taints = items(&spec["taints"]).map(|taint| Taint {
            key: text(taint, "key"),
            value: text(taint, "value"),
            effect: text(taint, "effect"),
        });
        Self {
            name: metadata.text("name"),
            ready: ready.is_some_and(|ready| ready["status"] == "True"),
            unschedulable: spec["unschedulable"].as_bool().unwrap_or(false),
            labels: metadata.map("labels"),
            taints: taints.filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")).collect(),
        }
    }
}

impl Node {
    /// Whether it is one of the control plane.
    pub fn is_control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|label| self.labels.contains_key(*label))
    }
}

impl Toleration {
    fn read(toleration: &Value) -> Self {
        let exists = toleration["operator"] == "Exists";
        Self {
            key: text(toleration, "key"),
            value: (!exists).then(|| text(toleration, "value")),
            effect: text(toleration, "effect"),
        }
    }

    fn matches(&self, taint: &Taint) -> bool {
        (self.key.is_empty() || self.key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
            && (self.effect.is_empty() || self.effect == taint.effect)
    }
}

struct Metadata<'a>(&'a Value);

impl<'a> Metadata<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        Self(object.get("metadata").unwrap_or(&Value::Null))
    }

    fn text(&self, field: &str) -> String {
        text(self.0, field)
    }

    fn map(&self, field: &str) -> BTreeMap<String, String> {
        let entries = self.0[field].as_object().into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    }

    fn is_deleting(&self) -> bool {
        self.0.get("deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    fn controller(&self) -> Option<&'a Value> {
        items(&self.0["ownerReferences"]).find(|owner| owner["controller"] == true)
    }
}

fn items(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or([].iter(), |items| items.iter())
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
