//! What is tidied up once a revision has succeeded: removed components, hooks,
//! revisions beyond the history limit, sources nobody points at.

use std::collections::BTreeSet;

use super::decision::Action;
use super::live::{Live, key_of};
use super::release;
use super::removal::{self, Removal};
use super::work::Work;
use crate::api::RevisionPhase;
use crate::engine::ObjectKey;

/// Tidies up; a message while something is still being removed.
pub(crate) fn after_success(work: &mut Work<'_>, history_limit: u32) -> Option<String> {
    let removed = components_not_wanted(work).or_else(|| finished_hooks(work));
    if removed.is_none() {
        work.status.components.iter_mut().for_each(|record| record.objects.clear());
        old_revisions(work, history_limit);
        sources(work);
    }
    removed
}

/// Uninstalled after the new set is ready, dependents first.
fn components_not_wanted(work: &mut Work<'_>) -> Option<String> {
    let wanted = |child: &&Live| {
        let component = child.component().and_then(|name| work.latest.component(name));
        component.is_some_and(|c| !c.hook && release::object_key(c).as_ref() == Some(&child.key()))
    };
    let unwanted: Vec<&Live> =
        work.inventory().filter(|child| !release::is_hook(child)).filter(|child| !wanted(child)).collect();
    match removal::of(work, &unwanted) {
        Removal::Gone => None,
        Removal::Waiting(message) => Some(message),
    }
}

fn finished_hooks(work: &mut Work<'_>) -> Option<String> {
    let hooks: Vec<&Live> = work.inventory().filter(|child| release::is_hook(child)).collect();
    match removal::of(work, &hooks) {
        Removal::Gone => None,
        Removal::Waiting(message) => Some(message),
    }
}

/// Keeps `limit` revisions besides *T* and the latest.
fn old_revisions(work: &mut Work<'_>, limit: u32) {
    let verified = work.history.verified().map(super::snapshot::RevisionView::number);
    let ended: Vec<_> = work
        .snapshot
        .revisions
        .iter()
        .filter(|revision| revision.number() != work.latest.number() && Some(revision.number()) != verified)
        .collect();
    let surplus = ended.len().saturating_sub(limit as usize);
    for revision in ended.into_iter().take(surplus).filter(|revision| !revision.deleting || revision.held) {
        work.actions.push(Action::DeleteRevision { name: revision.name.clone(), uid: revision.uid.clone() });
    }
}

/// A source goes when no child and no kept revision refers to it.
fn sources(work: &mut Work<'_>) {
    if work.status.phase != RevisionPhase::Succeeded {
        return;
    }
    let referred: BTreeSet<ObjectKey> = work
        .snapshot
        .revisions
        .iter()
        .flat_map(|revision| &revision.spec.components)
        .flat_map(|component| &component.manifests)
        .map(key_of)
        .collect();
    let unused: Vec<&Live> = work
        .snapshot
        .sources
        .iter()
        .filter(|source| source.package() == Some(work.snapshot.package.name.as_str()))
        .filter(|source| !referred.contains(&source.key()))
        .collect();
    for source in unused {
        work.delete(source);
    }
}
