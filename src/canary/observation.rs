//! One look at a DaemonSet and everything its rollout depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::guard::{COMPAT, STRICT};
use super::objects::{DaemonSet, Node, Pod, Revision};
use crate::api::{RolloutGuard, RolloutPhase, RolloutRecord};

/// What was seen of one DaemonSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The DaemonSet; `None`: there is none.
    pub daemon_set: Option<DaemonSet>,
    /// ControllerRevisions that match its selector, whosoever they are.
    pub revisions: Vec<Revision>,
    /// Pods that match its selector, whosoever they are.
    pub pods: Vec<Pod>,
    /// All nodes, by name; those of one look are the same for every DaemonSet.
    pub nodes: Arc<BTreeMap<String, Node>>,
}

/// How much is known of a DaemonSet at the moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// It has not been read yet.
    Pending,
    /// It, or what belongs to it, may not be read; the message says what to grant.
    Denied(String),
    /// The object alone; `None`: there is none.
    Alone(Option<Box<DaemonSet>>),
    /// Everything.
    Full(Arc<Observation>),
}

impl Sight {
    /// The DaemonSet, as far as it is known.
    pub fn daemon_set(&self) -> Option<&DaemonSet> {
        match self {
            Self::Pending | Self::Denied(_) => None,
            Self::Alone(daemon_set) => daemon_set.as_deref(),
            Self::Full(seen) => seen.daemon_set.as_ref(),
        }
    }
}

/// A DaemonSet of which nothing but the object need be looked at: its last
/// rollout has ended, and nothing has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calm {
    uid: String,
    template: i64,
    guard: Option<RolloutGuard>,
}

impl Calm {
    /// What ended well.
    pub fn after(record: &RolloutRecord) -> Option<Self> {
        let ended = record.phase == RolloutPhase::Successful;
        Some(Self { uid: record.uid.clone().filter(|_| ended)?, template: record.template?, guard: record.guard })
    }

    /// Whether the DaemonSet is as it was then.
    pub fn holds(&self, daemon_set: &DaemonSet) -> bool {
        let strategy = &daemon_set.strategy;
        let label = daemon_set.guarded_as.as_deref();
        let is_guarded = match self.guard {
            Some(RolloutGuard::AdmissionStrict) => label == Some(STRICT),
            Some(RolloutGuard::AdmissionCompat) => label == Some(COMPAT),
            Some(RolloutGuard::Rendered | RolloutGuard::Unguarded) => label.is_some(),
            Some(RolloutGuard::Observed) | None => true,
        };
        is_guarded
            && daemon_set.uid == self.uid
            && daemon_set.template == Some(self.template)
            && strategy.pace == super::idle()
    }
}

impl DaemonSet {
    /// The hash of its newest template: of the ControllerRevision with the
    /// highest number that it owns, by uid. The hash is Go's own and never
    /// computed here. Until its controller has acted on the present spec the
    /// newest one is still the old one: then there is no answer.
    pub fn newest<'a>(&self, revisions: &'a [Revision]) -> Option<&'a str> {
        if !self.is_observed() {
            return None;
        }
        let own = revisions.iter().filter(|revision| revision.owner.as_ref() == Some(&self.uid));
        own.max_by_key(|revision| revision.number).map(|revision| revision.hash.as_str())
    }
}
