//! One look at a DaemonSet and everything its rollout depends on.

use std::collections::BTreeMap;

use super::objects::{DaemonSet, Node, Pod, Revision};

/// What was seen of one DaemonSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The DaemonSet; `None`: there is none.
    pub daemon_set: Option<DaemonSet>,
    /// ControllerRevisions that match its selector, whosoever they are.
    pub revisions: Vec<Revision>,
    /// Pods that match its selector, whosoever they are.
    pub pods: Vec<Pod>,
    /// All nodes, by name.
    pub nodes: BTreeMap<String, Node>,
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
