//! What must be looked up before a decision can be made.

use std::collections::{BTreeMap, BTreeSet};

use super::snapshot::{RevisionView, Snapshot};
use super::{Right, canaries, compile, release, removal, rights, volumes, workloads};
use crate::api::RevisionPhase;
use crate::canary::Calm;
use crate::canary::objects::DaemonSet;
use crate::engine::ObjectKey;
use crate::package::definition::{ChartSource, MAX_READY_OBJECTS};

/// Objects to look up, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// As the Package's account: objects of `readyWhen`, and what releases had.
    pub as_package: BTreeSet<ObjectKey>,
    /// As Windlass itself: accounts, Flux sources, and workloads of releases with
    /// a canary.
    pub as_windlass: BTreeSet<ObjectKey>,
    /// DaemonSets behind a canary, as Windlass itself.
    pub daemon_sets: BTreeMap<ObjectKey, Depth>,
    /// Those of them that are to be read now, and not as a watch last told of them.
    pub fresh: BTreeSet<ObjectKey>,
    /// Namespaces of which the canary guard's policies are to be known.
    pub guarded: BTreeSet<String>,
    /// What accounts have to be allowed to do for an uninstall.
    pub rights: BTreeSet<Right>,
    /// Whether the spec asks for something new that its requirements let start:
    /// then every release object is looked at, for foreign ones at our places and for
    /// those that are to be adopted.
    pub foreign_releases: bool,
}

/// How closely a DaemonSet behind a canary is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Depth {
    /// With its revisions and pods, and the nodes.
    Full,
    /// The object alone, as long as it is as it was when its rollout ended.
    UnlessCalm(Calm),
    /// The object alone: its component has no canary any more.
    Alone,
}

impl Depth {
    /// Whether more than the object is needed, given the object.
    pub fn is_full(&self, daemon_set: &DaemonSet) -> bool {
        match self {
            Self::Full => true,
            Self::UnlessCalm(calm) => !calm.holds(daemon_set),
            Self::Alone => false,
        }
    }
}

/// What [`super::decide`] will ask of [`Snapshot::objects`]. Nothing while no
/// move is open and nothing is to go.
pub fn needs(snapshot: &Snapshot) -> Needs {
    let mut needs = Needs::default();
    needs.as_windlass.extend(removal::accounts(snapshot));
    needs.rights.extend(rights::needed(snapshot));
    if let Ok(definition) = &snapshot.package.definition {
        let has_path = definition.components.iter().any(|c| matches!(c.chart, ChartSource::Path(_)));
        if let (true, Some(source)) = (has_path, &definition.source) {
            needs.as_windlass.insert(compile::git_repository_key(snapshot, &source.name));
        }
    }
    needs.foreign_releases =
        !snapshot.package.deleting && (super::is_about_to_change(snapshot) || lacks_a_release(snapshot));
    needs.as_windlass.extend(super::owners_of_given(snapshot));
    needs.as_package.extend(volumes::needed(snapshot));
    canaries::needed(snapshot, &mut needs);
    if let Some(latest) = snapshot.revisions.last() {
        needs.as_package.extend(removal::remembered(&latest.status));
        if is_moving(latest) {
            ready_when(snapshot, latest, &mut needs);
            needs.as_windlass.extend(workloads::needed(snapshot));
        }
    }
    needs
}

/// Whether a release of an open revision is not among the children: what it
/// takes over carries our labels only afterwards.
fn lacks_a_release(snapshot: &Snapshot) -> bool {
    let open = snapshot.revisions.last().filter(|revision| is_moving(revision));
    let Some(latest) = open else { return false };
    let mut taken_over = latest.spec.components.iter().filter(|component| component.adopted);
    taken_over.any(|component| release::child(snapshot, component).is_none())
}

pub(crate) fn is_moving(revision: &RevisionView) -> bool {
    revision.is_open() || revision.status.phase == RevisionPhase::Failed
}

fn ready_when(snapshot: &Snapshot, latest: &RevisionView, needs: &mut Needs) {
    let target = latest.status.rollback.as_ref().map(|rollback| rollback.to);
    let target = target.and_then(|number| snapshot.revisions.iter().find(|revision| revision.number() == number));
    let mut wanted = BTreeSet::new();
    for component in target.into_iter().chain([latest]).flat_map(|revision| &revision.spec.components) {
        for entry in &component.ready_when {
            wanted.insert(ObjectKey {
                api_version: entry.api_version.clone(),
                kind: entry.kind.clone(),
                namespace: entry.namespace.clone().unwrap_or_else(|| component.release.namespace.clone()),
                name: entry.name.clone(),
            });
        }
    }
    // No Package may name as many: two revisions of one, or a forged record.
    needs.as_package.extend(wanted.into_iter().take(2 * MAX_READY_OBJECTS));
}
