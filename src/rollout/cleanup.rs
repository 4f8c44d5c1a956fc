//! What is tidied up once a revision has succeeded: removed components, hooks,
//! revisions beyond the history limit, sources nobody points at.

use std::collections::BTreeSet;

use super::decision::Action;
use super::live::{Live, Place};
use super::prepare;
use super::release;
use super::removal::{self, Removal};
use super::snapshot::RevisionView;
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
    let components = work.latest.spec.components.iter().filter(|component| !component.hook);
    let wanted: BTreeSet<(&str, Option<Place<'_>>)> =
        components.map(|component| (component.name.as_str(), release::place(component))).collect();
    let is_wanted = |child: &&Live| wanted.contains(&(child.component().unwrap_or_default(), Some(child.place())));
    let unwanted: Vec<&Live> =
        work.inventory().filter(|child| !release::is_hook(child)).filter(|child| !is_wanted(child)).collect();
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

/// Revisions in use carry our finalizer, others do not.
pub(crate) fn hold_revisions(work: &mut Work<'_>) {
    let verified = work.history.verified().map(RevisionView::number);
    let target = work.status.rollback.as_ref().map(|rollback| rollback.to);
    for revision in &work.snapshot.revisions {
        let number = Some(revision.number());
        let in_use = number == verified || number == target || revision.number() == work.latest.number();
        let (name, uid) = (revision.name.clone(), revision.uid.clone());
        match (in_use, revision.held) {
            // A finalizer cannot be put on what is going.
            (true, false) if !revision.deleting => work.actions.push(Action::HoldRevision { name, uid }),
            (false, true) => work.actions.push(Action::ReleaseRevision { name, uid }),
            (true, _) | (false, false) => {}
        }
    }
}

/// Keeps `limit` revisions besides *T* and the latest. Where one of them runs, what
/// those between them have moved is undone or verified.
pub(crate) fn old_revisions(work: &mut Work<'_>, limit: u32) {
    let verified = work.history.verified().map(RevisionView::number);
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

/// Revisions that a later one took over from before they did anything tell nothing:
/// they go at once, whatever becomes of the package.
pub(crate) fn idle_revisions(work: &mut Work<'_>) {
    let verified = work.history.verified().map(RevisionView::number);
    let target = work.status.rollback.as_ref().map(|rollback| rollback.to);
    let is_evidence = |revision: &RevisionView| {
        let status = &revision.status;
        revision.touched_anything()
            || status.succeeded
            || !status.inherits.is_empty()
            || !status.hooks.is_empty()
            || status.components.iter().any(|record| record.verified_at.is_some())
    };
    let older = work.snapshot.revisions.iter().filter(|revision| revision.number() < work.latest.number());
    for revision in older.filter(|revision| revision.status.phase == RevisionPhase::Superseded && !revision.deleting) {
        let number = Some(revision.number());
        if number != verified && number != target && !is_evidence(revision) {
            work.actions.push(Action::DeleteRevision { name: revision.name.clone(), uid: revision.uid.clone() });
        }
    }
}

/// A source goes when no child and no kept revision refers to it.
fn sources(work: &mut Work<'_>) {
    if work.status.phase != RevisionPhase::Succeeded {
        return;
    }
    let components = work.snapshot.revisions.iter().flat_map(|revision| &revision.spec.components);
    let referred: BTreeSet<Place<'_>> = components.flat_map(prepare::sources_of).map(Place::of).collect();
    let unreferred = work.snapshot.sources.iter().filter(|source| !referred.contains(&source.place()));
    let elsewhere = |source: &Live| work.snapshot.peers.iter().any(|peer| peer.sources.contains(source.key()));
    let orphaned = orphaned(work);
    let unused = unreferred.filter(|source| !elsewhere(source) && !orphaned.contains(source.key()));
    let unused: Vec<&Live> = unused.collect();
    for source in unused {
        work.delete(source);
    }
}

/// The sources of a Package that goes, but for those that others point at.
pub(crate) fn own_sources(work: &mut Work<'_>) {
    let elsewhere: BTreeSet<&ObjectKey> = work.snapshot.peers.iter().flat_map(|peer| peer.sources.iter()).collect();
    let orphaned = orphaned(work);
    let own = work.snapshot.sources.iter().filter(|source| !elsewhere.contains(source.key()));
    let own: Vec<&Live> = own.filter(|source| !orphaned.contains(source.key())).collect();
    for source in own {
        work.delete(source);
    }
}

/// What releases live on whose Package has left them running, and what is behind it.
fn orphaned(work: &Work<'_>) -> BTreeSet<ObjectKey> {
    let pointed_at = &work.snapshot.orphaned_sources;
    let used = work.snapshot.sources.iter().filter(|source| pointed_at.contains(source.key()));
    used.filter_map(release::source_behind).chain(pointed_at.iter().cloned()).collect()
}
