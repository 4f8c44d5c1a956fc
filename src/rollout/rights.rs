//! What an account must be allowed to do for an uninstall to remove anything.

use std::fmt;

use super::live::Live;
use super::release;
use super::replace;
use super::snapshot::Snapshot;
use super::volumes;
use crate::api::{HookOutcome, RevisionPhase};
use crate::engine::ObjectKey;

/// Something that an account may do, or not: asked from the API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Name of the ServiceAccount, in the Package's namespace.
    pub account: String,
    /// What is done.
    pub verb: &'static str,
    /// `apiVersion` of the objects.
    pub api_version: String,
    /// Kind of the objects.
    pub kind: String,
    /// Namespace of the objects; empty for cluster-scoped kinds.
    pub namespace: String,
}

impl fmt::Display for Right {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb, self.kind)?;
        if !self.namespace.is_empty() {
            write!(formatter, " in namespace {}", self.namespace)?;
        }
        Ok(())
    }
}

/// Helm's records, and every kind of object that the release has.
pub(super) fn to_uninstall(child: &Live) -> Vec<Right> {
    let Some(ObjectKey { name: account, .. }) = release::service_account(child) else { return Vec::new() };
    let Some(claim) = release::claim(child) else { return Vec::new() };
    let right = |verb, api_version: &str, kind: &str, namespace: &str| Right {
        account: account.clone(),
        verb,
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
    };
    let records = ["list", "delete"].map(|verb| right(verb, "v1", "Secret", &claim.storage_namespace));
    let objects = release::objects_of(child);
    let objects = objects.iter().map(|key| right("delete", &key.api_version, &key.kind, &key.namespace));
    let mut rights: Vec<Right> = records.into_iter().chain(objects).collect();
    rights.sort();
    rights.dedup();
    rights
}

/// Rights to ask for: those of the children that are removed next.
pub(super) fn needed(snapshot: &Snapshot) -> impl Iterator<Item = Right> {
    volumes::going(snapshot).filter(|child| are_asked(snapshot, child)).flat_map(to_uninstall)
}

/// Whether a child that is to go may do so now. Each right is a request of its own,
/// so none is asked for as long as a rollout has yet to come to the child.
pub(super) fn are_asked(snapshot: &Snapshot, child: &Live) -> bool {
    let Some(latest) = snapshot.revisions.last() else { return snapshot.package.deleting };
    let phase = latest.status.phase;
    let is_replaced = || {
        let own = child.component().and_then(|name| latest.component(name));
        own.is_some_and(|component| replace::is_replaced_by(&snapshot.revisions, child, component))
    };
    let is_left = || {
        let run = latest.status.hooks.iter().find(|record| child.component() == Some(record.name.as_str()));
        release::is_hook(child) && run.is_none_or(|record| record.outcome == HookOutcome::ToRepeat)
    };
    let by_phase = matches!(phase, RevisionPhase::Succeeded | RevisionPhase::RollingBack);
    snapshot.package.deleting || by_phase || is_replaced() || is_left()
}
