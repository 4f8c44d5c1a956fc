//! What is to be done, in order, and under which conditions.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::api::{PackageRevisionSpec, PackageRevisionStatus, PackageStatus, Reason};
use crate::canary;
use crate::engine::ObjectKey;

/// The outcome of one look at a Package.
///
/// The executor first writes `records`, then runs `actions` in order and stops
/// at the first that fails (DaemonSets each for themselves, freezes first), then
/// writes `status`. What must not be forgotten is
/// therefore recorded before it is done, and everything that is done can be
/// done again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Statuses of revisions to write, before anything else.
    pub records: Vec<Record>,
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// Status of the Package; compared before it is written.
    pub status: PackageStatus,
    /// Transitions worth an event.
    pub events: Vec<Event>,
    /// The same of DaemonSets.
    pub rollout_events: Vec<RolloutEvent>,
    /// When to look again if nothing changes; `None`: only on a change.
    pub look_again: Option<Duration>,
}

/// A revision's status to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Name of the revision.
    pub revision: String,
    /// Resource version that was decided upon.
    pub resource_version: String,
    /// The status.
    pub status: PackageRevisionStatus,
}

/// What must be true of the object when a write arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// There is no such object.
    Absent,
    /// It is this object, unchanged since it was looked at.
    Unchanged {
        /// uid.
        uid: String,
        /// Resource version.
        resource_version: String,
    },
    /// Whatever is there: an object that is only ever written with one content.
    Any,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Puts our finalizer on the Package.
    HoldPackage,
    /// Takes our finalizer off the Package: it is gone after this.
    ReleasePackage,
    /// Records a new revision, with our finalizer.
    CreateRevision(Box<PackageRevisionSpec>),
    /// Puts our finalizer on a revision.
    HoldRevision {
        /// Name.
        name: String,
        /// uid.
        uid: String,
    },
    /// Takes our finalizer off a revision.
    ReleaseRevision {
        /// Name.
        name: String,
        /// uid.
        uid: String,
    },
    /// Takes our finalizer off a revision and deletes it.
    DeleteRevision {
        /// Name.
        name: String,
        /// uid.
        uid: String,
    },
    /// Server-side apply as our field manager, with force.
    Apply {
        /// The object.
        object: Map<String, Value>,
        /// What must be true of the live object.
        precondition: Precondition,
    },
    /// Merge patch of the live object.
    Patch {
        /// Which object.
        object: ObjectKey,
        /// uid it must have.
        uid: String,
        /// Resource version it must have, where it matters.
        resource_version: Option<String>,
        /// The patch.
        patch: Value,
    },
    /// One write of an Application, which then is exactly what is given here:
    /// what an apply leaves in place would be part of what Argo CD installs.
    Operate {
        /// Which Application.
        object: ObjectKey,
        /// uid it must have.
        uid: String,
        /// Resource version it must have.
        resource_version: String,
        /// The Application as it is wanted: its labels and annotations are
        /// added, its spec takes the place of the live one. `None`: both stay.
        spec: Option<Map<String, Value>>,
        /// An operation to ask for; no trace of the one before is left. `None`:
        /// whatever is under way goes on.
        operation: Option<Value>,
    },
    /// Sets annotations of a PersistentVolumeClaim, as the Package's account:
    /// whether an uninstall by Argo CD keeps it. `null` takes one away.
    MarkVolumeClaim {
        /// Which claim.
        object: ObjectKey,
        /// uid it must have.
        uid: String,
        /// Resource version it must have: the annotations hold what others wrote.
        resource_version: String,
        /// The annotations.
        annotations: Value,
    },
    /// Takes the rollout of a DaemonSet a step on, as Windlass itself: the guard
    /// lets nobody else through.
    Rollout(canary::Action),
    /// Deletes an object.
    Delete {
        /// Which object.
        object: ObjectKey,
        /// uid it must have.
        uid: String,
    },
}

impl Action {
    /// The object of an engine that it writes.
    pub fn object(&self) -> Option<ObjectKey> {
        match self {
            Self::Apply { object, .. } => Some(super::live::key_of(object)),
            Self::Patch { object, .. }
            | Self::Operate { object, .. }
            | Self::MarkVolumeClaim { object, .. }
            | Self::Delete { object, .. } => Some(object.clone()),
            Self::HoldPackage
            | Self::ReleasePackage
            | Self::CreateRevision(_)
            | Self::HoldRevision { .. }
            | Self::ReleaseRevision { .. }
            | Self::DeleteRevision { .. }
            | Self::Rollout(_) => None,
        }
    }

    /// The same without what tells one state of the object from the next: two
    /// actions that are alike do the same thing.
    pub fn without_versions(&self) -> Self {
        let mut action = self.clone();
        match &mut action {
            Self::Apply { precondition, .. } => *precondition = Precondition::Any,
            Self::Patch { resource_version, .. } => *resource_version = None,
            Self::Operate { resource_version, .. } | Self::MarkVolumeClaim { resource_version, .. } => {
                resource_version.clear();
            }
            Self::HoldPackage
            | Self::ReleasePackage
            | Self::CreateRevision(_)
            | Self::HoldRevision { .. }
            | Self::ReleaseRevision { .. }
            | Self::DeleteRevision { .. }
            | Self::Rollout(_)
            | Self::Delete { .. } => {}
        }
        action
    }

    /// Namespace and name of the DaemonSet that it is about, if it is about one.
    pub fn daemon_set(&self) -> Option<(&str, &str)> {
        match self {
            Self::Rollout(canary::Action::Steer(steering)) => Some((&steering.namespace, &steering.name)),
            Self::Rollout(canary::Action::Label(label)) => Some((&label.namespace, &label.name)),
            Self::Rollout(canary::Action::DeletePod { namespace, daemon_set, .. }) => Some((namespace, daemon_set)),
            Self::HoldPackage
            | Self::ReleasePackage
            | Self::CreateRevision(_)
            | Self::HoldRevision { .. }
            | Self::ReleaseRevision { .. }
            | Self::DeleteRevision { .. }
            | Self::Apply { .. }
            | Self::Patch { .. }
            | Self::Operate { .. }
            | Self::MarkVolumeClaim { .. }
            | Self::Delete { .. } => None,
        }
    }
}

/// A transition of a DaemonSet's rollout, told of the DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutEvent {
    /// The DaemonSet.
    pub daemon_set: ObjectKey,
    /// uid of the DaemonSet.
    pub uid: String,
    /// What happened.
    pub reason: RolloutEventReason,
    /// What happened; one line.
    pub message: String,
}

/// Reasons of events about a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutEventReason {
    /// The rollout failed; KubeVirt's own reason.
    FailedUpdate,
    /// One node has its turn.
    CanaryStarted,
    /// The canary is ready, and must stay so.
    CanaryReady,
    /// More pods may be unavailable from here on.
    RolloutExpanding,
    /// Every node that counts runs the new template.
    RolloutCompleted,
    /// Another template came before the rollout had ended.
    RolloutSuperseded,
    /// It is done but for nodes that were not ready before.
    NodesExcluded,
}

impl RolloutEventReason {
    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailedUpdate => "FailedUpdate",
            Self::CanaryStarted => "CanaryStarted",
            Self::CanaryReady => "CanaryReady",
            Self::RolloutExpanding => "RolloutExpanding",
            Self::RolloutCompleted => "RolloutCompleted",
            Self::RolloutSuperseded => "RolloutSuperseded",
            Self::NodesExcluded => "NodesExcluded",
        }
    }

    /// Whether something went wrong.
    pub const fn is_warning(self) -> bool {
        matches!(self, Self::FailedUpdate)
    }
}

/// A transition worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether something went wrong.
    pub warning: bool,
    /// Why.
    pub reason: Reason,
    /// The component that it is about; `None`: the Package as a whole.
    pub component: Option<String>,
    /// What happened; one line.
    pub message: String,
}
