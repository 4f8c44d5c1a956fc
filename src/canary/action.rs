//! What a rollout does, with what must be true when the write arrives.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::objects::{DaemonSet, Pod};
use super::strategy::{self, Drive, Pace};
use crate::api::wellknown::LABEL_CANARY;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Writes `spec.updateStrategy` of the DaemonSet.
    Steer(Steering),
    /// Puts the DaemonSet under a policy of the guard, or takes it from there.
    Label(Label),
    /// Deletes a pod.
    DeletePod {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// uid it must have.
        uid: String,
        /// The DaemonSet that it is of.
        daemon_set: String,
        /// Why it may go, which must still be true then.
        warrant: Warrant,
    },
}

/// Why a pod may be asked to go. Pods are seen by a watch, which may be late, so it is
/// asked for anew before one goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warrant {
    /// It is not ready: nobody misses it.
    Idle,
    /// It serves, and none of the others is missing.
    Beside(Beside),
}

/// Pods of a DaemonSet that serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Labels that the DaemonSet's pods carry.
    pub selector: Value,
    /// Their uids.
    pub uids: BTreeSet<String>,
}

/// A write of the label that picks the guard's policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid it must have.
    pub uid: String,
    /// The value; `None` takes the label away.
    pub value: Option<String>,
}

/// A write of `spec.updateStrategy`.
#[derive(Clone, Debug, PartialEq)]
pub struct Steering {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid it must have.
    pub uid: String,
    /// What must be true of it otherwise.
    pub premise: Premise,
    /// The new value.
    pub strategy: Value,
    /// Its pace.
    pub pace: Pace,
    /// Pods that must still be well when more are let go.
    pub proof: Option<Proof>,
}

/// Pods of the new template that were seen to be well. They are seen by a watch, which
/// may have been dead for minutes: before more pods go they are asked for anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Labels that the DaemonSet's pods carry.
    pub selector: Value,
    /// Restarts they had, by uid.
    pub restarts: BTreeMap<String, u32>,
}

/// What must be true of a DaemonSet when a write of its strategy arrives.
#[derive(Clone, Debug, PartialEq)]
pub enum Premise {
    /// Nothing: a freeze is always right.
    Nothing,
    /// Its strategy is the one that was to be lowered. A new template may have
    /// frozen it since, and a smaller budget would lift that.
    Strategy(Value),
    /// All of its spec is as it was when more pods were let go.
    Spec {
        /// Generation of the spec.
        generation: i64,
        /// `spec.updateStrategy`.
        strategy: Value,
    },
}

impl Action {
    /// Brings a DaemonSet to a pace.
    pub fn steer(daemon_set: &DaemonSet, pace: Pace, drive: Drive) -> Self {
        let desired = daemon_set.counts.desired;
        let live = &daemon_set.strategy;
        let lowers = drive == live.drive && pace.of(desired) < live.pace.of(desired);
        let strategy = live.as_written().clone();
        let premise = match pace {
            Pace::Frozen => Premise::Nothing,
            Pace::Rolling(_) if lowers => Premise::Strategy(strategy),
            Pace::Rolling(_) => Premise::Spec { generation: daemon_set.generation, strategy },
        };
        Self::Steer(Steering {
            namespace: daemon_set.namespace.clone(),
            name: daemon_set.name.clone(),
            uid: daemon_set.uid.clone(),
            premise,
            strategy: strategy::written(pace, drive),
            pace,
            proof: None,
        })
    }

    /// The same, if these pods are still well by then.
    #[must_use]
    pub fn proved_by<'p>(self, daemon_set: &DaemonSet, pods: impl Iterator<Item = &'p Pod>) -> Self {
        match self {
            Self::Steer(steering) => {
                let restarts = pods.map(|pod| (pod.uid.clone(), pod.restarts())).collect();
                let proof = Proof { selector: daemon_set.selector.clone(), restarts };
                Self::Steer(Steering { proof: Some(proof), ..steering })
            }
            other @ (Self::Label(_) | Self::DeletePod { .. }) => other,
        }
    }

    /// Puts a DaemonSet under a policy, or takes it from there.
    pub fn label(daemon_set: &DaemonSet, value: Option<&str>) -> Self {
        Self::Label(Label {
            namespace: daemon_set.namespace.clone(),
            name: daemon_set.name.clone(),
            uid: daemon_set.uid.clone(),
            value: value.map(str::to_owned),
        })
    }

    /// Deletes a pod.
    pub fn delete(daemon_set: &DaemonSet, pod: &Pod, warrant: Warrant) -> Self {
        Self::DeletePod {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            daemon_set: daemon_set.name.clone(),
            warrant,
        }
    }
}

impl Proof {
    /// Whether none of them has gone, is not ready or has been restarted since.
    pub fn holds(&self, found: &[Pod]) -> bool {
        let well = |pod: &&Pod| pod.ready && !pod.deleting;
        let found: BTreeMap<&str, u32> =
            found.iter().filter(well).map(|pod| (pod.uid.as_str(), pod.restarts())).collect();
        self.restarts.iter().all(|(uid, restarts)| found.get(uid.as_str()).is_some_and(|found| found <= restarts))
    }
}

impl Beside {
    /// Pods of a DaemonSet that serve, but for one.
    pub fn of(daemon_set: &DaemonSet, pods: &[Pod], but: &Pod) -> Self {
        let own = pods.iter().filter(|pod| pod.owner.as_ref() == Some(&daemon_set.uid) && pod.uid != but.uid);
        let serving = own.filter(|pod| pod.ready && !pod.deleting);
        Self { selector: daemon_set.selector.clone(), uids: serving.map(|pod| pod.uid.clone()).collect() }
    }

    /// Whether all of them are among those that stay.
    pub fn are_among<'a>(&self, staying: impl IntoIterator<Item = &'a str>) -> bool {
        let staying: BTreeSet<&str> = staying.into_iter().collect();
        self.uids.iter().all(|uid| staying.contains(uid.as_str()))
    }
}

impl Label {
    /// The write as a merge patch.
    pub fn merge_patch(&self) -> Value {
        json!({"metadata": {"uid": self.uid, "labels": {LABEL_CANARY: self.value}}})
    }
}

impl Steering {
    /// Whether the write would still be right: what must be true of the DaemonSet is.
    pub fn holds(&self, live: &DaemonSet) -> bool {
        let is_as_seen = match &self.premise {
            Premise::Nothing => true,
            Premise::Strategy(strategy) => live.strategy.as_written() == strategy,
            Premise::Spec { generation, strategy } => {
                live.generation == *generation && live.strategy.as_written() == strategy
            }
        };
        live.uid == self.uid && is_as_seen
    }

    /// The write as a JSON patch (RFC 6902). An API server answers a test that
    /// fails with 422 (measured): the object has changed, look again.
    pub fn json_patch(&self) -> Value {
        let test = |path: &str, value: Value| json!({"op": "test", "path": path, "value": value});
        let mut patch = vec![test("/metadata/uid", self.uid.as_str().into())];
        if let Premise::Spec { generation, .. } = &self.premise {
            patch.push(test("/metadata/generation", (*generation).into()));
        }
        if let Premise::Strategy(strategy) | Premise::Spec { strategy, .. } = &self.premise {
            patch.push(test("/spec/updateStrategy", strategy.clone()));
        }
        patch.push(json!({"op": "replace", "path": "/spec/updateStrategy", "value": self.strategy}));
        patch.into()
    }
}
