//! Room for a release: hand-over from whoever held it, replacement of what
//! stood at its place.

use super::adopt;
use super::live::Live;
use super::release;
use super::removal;
use super::snapshot::RevisionView;
use super::wanted;
use super::work::Work;
use crate::api::{Blocker, Reason, RecordedComponent};

/// Makes room for a component's release; a message while something is still in
/// the way.
///
/// A child of ours that holds the same release under another name is suspended
/// and deleted, so that the release itself is handed over untouched. A child that
/// the component replaces is deleted, which uninstalls its release, unless another
/// wanted component claims that.
pub(crate) fn make_room(work: &mut Work<'_>, component: &RecordedComponent) -> Option<String> {
    let own = work.child(component);
    if let Some(own) = own.filter(|own| own.is_deleting()) {
        return Some(format!("{}: its deletion is awaited", own.name()));
    }
    if let Some(foreign) = own.filter(|own| adopt::is_foreign(work.snapshot, own)) {
        let key = foreign.key().clone();
        let message = format!("{key} exists and is not this package's: remove it, or annotate it for adoption");
        let reason = Reason::Conflict.to_string();
        work.blocked_by.push(Blocker { kind: key.kind, namespace: key.namespace, name: key.name, reason });
        return Some(message);
    }
    if let Some(holder) = holder(work, component) {
        if is_replaced_by(&work.snapshot.revisions, holder, component) {
            return Some(removal::remove(work, holder));
        }
        hand_over(work, holder);
        return Some(format!("{}: handing its release {} over", holder.name(), component.release.name));
    }
    let Some(own) = own else { return removal::left_in_the_way(work) };
    if !is_replaced_by(&work.snapshot.revisions, own, component) {
        return None;
    }
    if is_claimed(work, own, component) {
        hand_over(work, own);
        return Some(format!("{}: its former release is being handed over", own.name()));
    }
    Some(removal::remove(work, own))
}

/// Whether somebody suspended the release that is to make room for a component's:
/// uninstalling it waits for them. The way back lifts it.
pub(crate) fn is_held(work: &Work<'_>, component: &RecordedComponent) -> bool {
    let there = work.child(component).or_else(|| holder(work, component));
    let replaced = |child: &&Live| is_replaced_by(&work.snapshot.revisions, child, component) && !child.is_deleting();
    there.filter(replaced).is_some_and(|child| release::is_suspended(child) && !is_claimed(work, child, component))
}

/// Whether a child holds what a component is meant to replace: a release of another
/// identity, or of another chart. A component that has replaced it already goes on
/// with what it has.
pub(crate) fn is_replaced_by(revisions: &[RevisionView], child: &Live, component: &RecordedComponent) -> bool {
    let has_other_claim = || release::claim(child).is_some_and(|claim| *claim != component.release);
    let has_other_chart =
        || written_from(revisions, child).is_some_and(|known| wanted::difference(component, known).is_some());
    component.replaces && (has_other_claim() || has_other_chart())
}

/// The component that a child was written from, as the newest revision has it.
pub(crate) fn written_from<'a>(revisions: &'a [RevisionView], child: &Live) -> Option<&'a RecordedComponent> {
    let (name, digest) = (child.component()?, child.digest()?);
    let mut known = revisions.iter().rev().filter_map(|revision| revision.component(name));
    known.find(|component| !component.hook && component.digest == digest)
}

/// Whether another component than the one that replaces a child's release claims that.
fn is_claimed(work: &Work<'_>, child: &Live, component: &RecordedComponent) -> bool {
    let others = || work.latest.spec.components.iter().filter(|other| !other.hook && other.name != component.name);
    release::claim(child).is_some_and(|claim| others().any(|other| other.release == *claim))
}

/// A child of ours that holds a component's release under another name.
pub(crate) fn holder<'a>(work: &Work<'a>, component: &RecordedComponent) -> Option<&'a Live> {
    let wanted = release::object_key(component)?;
    work.inventory().find(|child| *child.key() != wanted && release::claim(child) == Some(&component.release))
}

/// Lets go of a release without uninstalling it: suspend (Flux) or drop the
/// finalizer (Argo CD), then delete the object.
pub(crate) fn hand_over(work: &mut Work<'_>, child: &Live) {
    if let Some(patch) = release::let_go(child) {
        work.actions.push(patch);
    }
    if !child.is_deleting() && release::is_let_go(child) {
        work.delete(child);
    }
}
