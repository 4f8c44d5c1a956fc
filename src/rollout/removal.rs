//! Uninstalling children, one at a time, dependents first.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::live::Live;
use super::operation;
use super::release;
use super::replace::hand_over;
use super::rights;
use super::snapshot::Snapshot;
use super::volumes;
use super::work::Work;
use crate::api::wellknown::{ARGO_SYNC_OPTIONS, HELM_RESOURCE_POLICY};
use crate::api::{Blocker, Claim, Engine, Reason, RecordedComponent};
use crate::engine::ObjectKey;
use crate::package::definition::Definition;
use crate::ready::evidence::Lookup;

/// How often a right that an account lacks is looked for again.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// The same of rights that have not been looked for yet.
const ASK_SOON: Duration = Duration::from_secs(1);

/// Where the removal of some children stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// They, and the objects they had, are gone.
    Gone,
    /// The message names what is awaited.
    Waiting(String),
}

/// Removes children, dependents first; asks for the next only when the one
/// before, and the objects it had, are gone.
pub(crate) fn of(work: &mut Work<'_>, children: &[&Live]) -> Removal {
    let going = children.iter().find(|child| child.is_deleting());
    if going.is_none()
        && let Some(message) = left_behind(work, !children.is_empty())
    {
        return Removal::Waiting(message);
    }
    match going.copied().or_else(|| next(work, children)) {
        Some(child) => Removal::Waiting(remove(work, child)),
        None => Removal::Gone,
    }
}

/// A child that no other one depends on; of several the one of the highest wave.
/// Edges count as the newest revision that knows the dependent has them: waves
/// of children that were written by different revisions cannot be compared.
fn next<'a>(work: &Work<'_>, children: &[&'a Live]) -> Option<&'a Live> {
    let mut children = children.to_vec();
    children.sort_by_key(|child| (Reverse(child.wave()), child.name().to_owned()));
    let needed: BTreeSet<&str> =
        children.iter().flat_map(|child| depends_on(work, child)).map(String::as_str).collect();
    let free = children.iter().find(|child| child.component().is_none_or(|name| !needed.contains(name)));
    free.or_else(|| children.first()).copied()
}

fn depends_on<'a>(work: &Work<'a>, child: &Live) -> &'a [String] {
    let recorded = child.component().and_then(|name| work.newest(name));
    recorded.map_or(&[], |recorded| &recorded.depends_on)
}

/// Removes one child, as far as that goes now; the message names what is awaited.
pub(crate) fn remove(work: &mut Work<'_>, child: &Live) -> String {
    let name = child.name().to_owned();
    if is_claimed_elsewhere(work, child) {
        hand_over(work, child);
        return format!("{name}: handing its release over to another package");
    }
    if let Some(message) = lacks_account(work, child) {
        return format!("{name}: {message}");
    }
    if child.is_deleting() {
        work.actions.extend(operation::end(child));
        return release::deletion_message(child);
    }
    if let Some(waiting) = would_lose_data(work, child).or_else(|| volumes::settle(work, child)) {
        return waiting;
    }
    if let Some(patch) = release::cascading(child) {
        work.actions.push(patch);
        return format!("{name}: putting back the finalizer that takes its release along");
    }
    if release::is_suspended(child) {
        work.actions.push(release::lift(child));
    }
    remember_objects(work, child);
    work.delete(child);
    format!("{name}: uninstalling")
}

/// A release that a component of another Package, which is not going away,
/// claims is never uninstalled.
pub(crate) fn is_claimed_elsewhere(work: &Work<'_>, child: &Live) -> bool {
    let snapshot = work.snapshot;
    let claims = |claim: &Claim| snapshot.peers.iter().any(|peer| !peer.deleting && peer.has_claimed(snapshot, claim));
    release::claim(child).is_some_and(claims)
}

/// A release that was taken over and has not moved since does not keep its data
/// when Flux uninstalls it: Helm goes by what the release was rendered with.
fn would_lose_data(work: &mut Work<'_>, child: &Live) -> Option<String> {
    if release::engine_of(&child.key().kind) != Some(Engine::Flux) {
        return None;
    }
    let newest = child.component().and_then(|name| work.newest(name));
    let unmoved = is_as_taken_over(work, child) && newest.is_some_and(|newest| !newest.delete_data);
    let data = release::data_of(child).into_iter().next().filter(|_| unmoved)?;
    work.blocked_by.push(Blocker {
        kind: data.kind.clone(),
        namespace: data.namespace.clone(),
        name: data.name.clone(),
        reason: Reason::Deleting.to_string(),
    });
    Some(format!(
        "{}: {data} would go with its release, which was taken over and has not moved since: let the release \
         go with deletionPolicy Orphan, or move it once",
        child.name()
    ))
}

/// Whether a child was taken over and is as it was then, whatever later revisions
/// want it to be.
fn is_as_taken_over(work: &Work<'_>, child: &Live) -> bool {
    let Some(name) = child.component() else { return false };
    let revisions = work.snapshot.revisions.iter().rev();
    let same = |component: &&RecordedComponent| !component.hook && child.digest() == Some(component.digest.as_str());
    let known: Vec<_> = revisions.filter_map(|revision| revision.component(name)).filter(same).collect();
    match known.iter().find(|component| release::is_as_written(component, child)) {
        Some(component) => component.adopted,
        None => known.iter().any(|component| component.adopted),
    }
}

/// The account that the engine needs to uninstall is gone, or may not do it any
/// more: helm-controller would drop the release and leave its objects (measured
/// on 1.6.3).
fn lacks_account(work: &mut Work<'_>, child: &Live) -> Option<String> {
    const OTHERWISE: &str =
        "without that the release would be dropped and its objects left: restore it, or set deletionPolicy: Orphan";
    let account = release::service_account(child)?;
    if !child.is_deleting() && !rights::are_asked(work.snapshot, child) {
        // It was decided in this very look that it goes.
        work.look_again(ASK_SOON);
        return Some(format!("what its ServiceAccount {} may do is being asked", account.name));
    }
    let (reason, message) = match work.snapshot.objects.get(&account).unwrap_or(&Lookup::Pending) {
        Lookup::Pending => return Some(format!("its ServiceAccount {} is being looked up", account.name)),
        Lookup::Absent => ("NotFound", format!("its ServiceAccount {} is gone; {OTHERWISE}", account.name)),
        Lookup::Found(_) | Lookup::KindUnknown | Lookup::Denied | Lookup::NotImpersonated => {
            let needed = rights::to_uninstall(child);
            let lost = needed.into_iter().find(|right| work.snapshot.rights.get(right) == Some(&false))?;
            // Nobody tells when roles change.
            work.look_again(ASK_AGAIN);
            ("Forbidden", format!("its ServiceAccount {} may no longer {lost}; {OTHERWISE}", account.name))
        }
    };
    let (kind, namespace, name) = (account.kind, account.namespace, account.name);
    work.blocked_by.push(Blocker { kind, namespace, name, reason: reason.into() });
    Some(message)
}

/// The engine drops its own list with the child: what the release had is
/// remembered before it is asked to go.
fn remember_objects(work: &mut Work<'_>, child: &Live) {
    let Some(component) = child.component() else { return };
    let mut record = work.take_record(component);
    record.objects = release::objects_of(child).into_iter().map(|key| written(&key)).collect();
    work.put_record(record);
}

/// An object of a release whose child is gone, and that no other one has taken up.
/// What may not be read matters only where something else goes after it: its
/// finalizer may be somebody's who is next.
fn left_behind(work: &mut Work<'_>, more_to_go: bool) -> Option<String> {
    let remembered = remembered_of_gone(work);
    let matters = more_to_go || leads_on(work.snapshot);
    left_of(work, remembered, matters)
}

/// The same where a release is to be made at a place that is free now: that which
/// stood in its way may have had another name.
pub(crate) fn left_in_the_way(work: &mut Work<'_>) -> Option<String> {
    let remembered = remembered_of_gone(work);
    let is_any = !remembered.is_empty();
    let left = left_of(work, remembered, true);
    if is_any && left.is_none() {
        work.status.components.iter_mut().for_each(|record| record.objects.clear());
    }
    left
}

fn remembered_of_gone(work: &Work<'_>) -> Vec<ObjectKey> {
    let gone = work.status.components.iter().filter(|record| work.children_of(&record.name).is_empty());
    let remembered: Vec<ObjectKey> = gone.flat_map(|record| &record.objects).filter_map(|text| read(text)).collect();
    if remembered.is_empty() {
        return remembered;
    }
    let taken_up: BTreeSet<ObjectKey> =
        work.inventory().filter(|child| !child.is_deleting()).flat_map(release::objects_of).collect();
    remembered.into_iter().filter(|key| !taken_up.contains(key)).collect()
}

fn left_of(work: &mut Work<'_>, remembered: Vec<ObjectKey>, matters: bool) -> Option<String> {
    let mut unread = None;
    for key in remembered {
        match work.snapshot.objects.get(&key).unwrap_or(&Lookup::Pending) {
            Lookup::Found(object) if is_kept(object) => {}
            Lookup::Found(_) => return Some(format!("{key}: still there although its release is gone")),
            Lookup::Pending => return Some(format!("{key}: whether it is gone is being read")),
            Lookup::Denied | Lookup::NotImpersonated if matters && is_custom(&key) => drop(unread.get_or_insert(key)),
            Lookup::Absent | Lookup::KindUnknown | Lookup::Denied | Lookup::NotImpersonated => {}
        }
    }
    let key = unread?;
    let message =
        format!("{key}: may not be read, so nobody knows whether it is gone: allow get, list and watch of it");
    let (kind, namespace, name) = (key.kind, key.namespace, key.name);
    work.blocked_by.push(Blocker { kind, namespace, name, reason: "Forbidden".into() });
    Some(message)
}

/// Whether what a deleted Package requires may go once it is gone.
fn leads_on(snapshot: &Snapshot) -> bool {
    let requires = |definition: &Definition| !definition.requires.is_empty();
    snapshot.package.deleting && snapshot.package.definition.as_ref().map_or(true, |known| requires(known))
}

/// Whether objects of the kind may have finalizers that a component removes.
/// Those of Kubernetes' own kinds are removed by Kubernetes.
fn is_custom(key: &ObjectKey) -> bool {
    let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Whether the engine leaves an object behind because it says so itself.
fn is_kept(object: &Value) -> bool {
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str().unwrap_or_default();
    annotation(HELM_RESOURCE_POLICY) == "keep"
        || annotation(ARGO_SYNC_OPTIONS).split(',').any(|option| option.trim() == "Delete=false")
}

/// Accounts of the children that are to go, to be looked up.
pub(crate) fn accounts(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    let leaving = snapshot.own_children().filter(|child| child.is_deleting());
    volumes::going(snapshot).chain(leaving).filter_map(release::service_account)
}

/// Objects that [`left_behind`] wants looked up.
pub(crate) fn remembered(status: &crate::api::PackageRevisionStatus) -> impl Iterator<Item = ObjectKey> {
    status.components.iter().flat_map(|record| &record.objects).filter_map(|text| read(text))
}

fn written(key: &ObjectKey) -> String {
    format!("{}|{}|{}|{}", key.api_version, key.kind, key.namespace, key.name)
}

fn read(text: &str) -> Option<ObjectKey> {
    let mut parts = text.split('|').map(str::to_owned);
    Some(ObjectKey { api_version: parts.next()?, kind: parts.next()?, namespace: parts.next()?, name: parts.next()? })
}
