//! Room for a release: hand-over from whoever held it, replacement of what
//! stood at its place.

use super::adopt;
use super::live::Live;
use super::release;
use super::removal;
use super::work::Work;
use crate::api::{Blocker, Reason, RecordedComponent};

/// Makes room for a component's release; a message while something is still in
/// the way.
///
/// A child of ours that holds the same release under another name is suspended
/// and deleted, so that the release itself is handed over untouched. A child at
/// the component's own place that holds another release is deleted, which
/// uninstalls it, unless a wanted component claims that release.
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
        hand_over(work, holder);
        return Some(format!("{}: handing its release {} over", holder.name(), component.release.name));
    }
    let Some(own) = own else { return removal::left_in_the_way(work, &component.name) };
    if !release::is_replaced_by(own, component) {
        return None;
    }
    if is_claimed(work, own) {
        hand_over(work, own);
        return Some(format!("{}: its former release is being handed over", own.name()));
    }
    Some(removal::remove(work, own))
}

/// Whether somebody suspended the release that is to make room for a component's:
/// uninstalling it waits for them. The way back lifts it.
pub(crate) fn is_held(work: &Work<'_>, component: &RecordedComponent) -> bool {
    let replaced = work.child(component).filter(|own| release::is_replaced_by(own, component) && !own.is_deleting());
    replaced.is_some_and(|own| release::is_suspended(own) && !is_claimed(work, own))
}

fn is_claimed(work: &Work<'_>, child: &Live) -> bool {
    release::claim(child).is_some_and(|claim| is_wanted(work, &claim))
}

/// A child of ours that holds a component's release under another name.
pub(crate) fn holder<'a>(work: &Work<'a>, component: &RecordedComponent) -> Option<&'a Live> {
    let wanted = release::object_key(component)?;
    work.inventory().find(|child| *child.key() != wanted && release::claim(child).as_ref() == Some(&component.release))
}

/// Whether a component of the latest revision claims a release.
pub(crate) fn is_wanted(work: &Work<'_>, claim: &crate::api::Claim) -> bool {
    work.latest.spec.components.iter().any(|component| !component.hook && component.release == *claim)
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
