//! A Package that is being deleted: uninstall in reverse, or let go.

use super::canaries;
use super::cleanup;
use super::decision::Action;
use super::live::Live;
use super::release;
use super::removal::{self, Removal};
use super::replace;
use super::snapshot::{OtherPackage, Snapshot};
use super::work::Work;
use crate::api::wellknown::{
    ANNOTATION_FORCE_DELETE, ARGO_TRACKING_ID, FINALIZER, FLUX_OWNER_NAME, FLUX_OWNER_NAMESPACE,
};
use crate::api::{Blocker, DeletionPolicy, DeletionRecord, Reason, RecordedComponent};

/// What becomes of the children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// They are uninstalled, dependents first.
    Uninstall,
    /// They stay as they are, labelled, to be taken over again.
    Orphan,
    /// Their namespace goes and takes them along: they are suspended first, so
    /// that workloads elsewhere stay.
    Namespace,
}

/// Takes a deletion as far as it will go now; a message while something is
/// awaited.
pub(crate) fn step(work: &mut Work<'_>) -> Option<String> {
    let mark = owner_mark(work.snapshot);
    let generation = work.snapshot.package.generation;
    let first_seen =
        work.status.deletion.get_or_insert(DeletionRecord { generation, owner_mark: mark.clone() }).clone();
    let waiting = match way(work.snapshot, &first_seen, &mark) {
        Way::Orphan => canaries::let_all_go(work, |_| true),
        Way::Namespace => let_all_go(work),
        Way::Uninstall => {
            let waiting = hand_over(work).or_else(|| required_by(work)).or_else(|| settle(work));
            if waiting.is_some() {
                canaries::pause(work);
            }
            waiting.or_else(|| canaries::let_kept_go(work)).or_else(|| uninstall(work))
        }
    };
    if waiting.is_none() {
        forget(work);
    }
    waiting
}

/// The Package is orphaned when asked for, when its kind is going away, or when
/// somebody has applied it again since its deletion was first seen: it moved
/// between directories or owners.
fn way(snapshot: &Snapshot, first_seen: &DeletionRecord, mark: &str) -> Way {
    let package = &snapshot.package;
    let applied_again = package.generation != first_seen.generation || *mark != first_seen.owner_mark;
    if package.deletion_policy == DeletionPolicy::Orphan || snapshot.cluster.crd_terminating || applied_again {
        Way::Orphan
    } else if snapshot.cluster.namespace_terminating {
        Way::Namespace
    } else {
        Way::Uninstall
    }
}

/// Who applied the Package, as Flux or Argo CD mark it.
pub(crate) fn owner_mark(snapshot: &Snapshot) -> String {
    let label = |key: &str| snapshot.package.labels.get(key).map_or("", String::as_str);
    let tracking = snapshot.package.annotations.get(ARGO_TRACKING_ID).map_or("", String::as_str);
    let flux = format!("{}/{}", label(FLUX_OWNER_NAMESPACE), label(FLUX_OWNER_NAME));
    match (flux.as_str(), tracking) {
        ("/", tracking) => tracking.to_owned(),
        (_, "") => flux,
        (_, tracking) => format!("{flux} {tracking}"),
    }
}

/// What other Packages claim is let go at once, whoever requires this one.
fn hand_over(work: &mut Work<'_>) -> Option<String> {
    let claimed: Vec<&Live> = work.inventory().filter(|child| removal::is_claimed_elsewhere(work, child)).collect();
    let snapshot = work.snapshot;
    let leaves = |child: &Live| {
        let claim = release::claim(child);
        let takes_over = |peer: &OtherPackage| claim.is_some_and(|claim| peer.guarded.contains(claim));
        claimed.iter().any(|claimed| claimed.key() == child.key()) && !snapshot.peers.iter().any(takes_over)
    };
    if let Some(waiting) = canaries::let_all_go(work, leaves) {
        return Some(waiting);
    }
    for child in &claimed {
        replace::hand_over(work, child);
    }
    let first = claimed.first()?;
    Some(format!("{}: handing its release over to another package", first.name()))
}

/// A package that others require waits for them, unless nothing is left of it or
/// its deletion is forced.
fn required_by(work: &mut Work<'_>) -> Option<String> {
    // Nothing is kept up for anybody where nothing is left.
    work.inventory().next()?;
    if is_forced(work.snapshot) {
        return None;
    }
    let own = &work.snapshot.package.name;
    // An optional requirement holds only as long as the other goes as well.
    let requires_it = |peer: &&OtherPackage| {
        peer.namespace == work.snapshot.package.namespace
            && peer.requires.iter().any(|required| required.name == *own && (!required.optional || peer.deleting))
    };
    let requirers: Vec<&OtherPackage> = work.snapshot.peers.iter().filter(requires_it).collect();
    for peer in &requirers {
        work.blocked_by.push(Blocker {
            kind: "Package".into(),
            namespace: work.snapshot.package.namespace.clone(),
            name: peer.name.to_string(),
            reason: Reason::Deleting.to_string(),
        });
    }
    let names: Vec<String> = requirers.iter().map(|peer| peer.name.to_string()).collect();
    (!names.is_empty()).then(|| format!("required by {}: waiting until they are gone", names.join(", ")))
}

fn is_forced(snapshot: &Snapshot) -> bool {
    snapshot.package.annotations.get(ANNOTATION_FORCE_DELETE).is_some_and(|value| value == "true")
}

/// Whoever moves a Package may delete it before applying it again: nothing is
/// uninstalled at once.
fn settle(work: &mut Work<'_>) -> Option<String> {
    let snapshot = work.snapshot;
    let left = snapshot.cluster.deletion_settle.checked_sub(snapshot.package.still_for);
    let left = left.filter(|left| !left.is_zero() && !is_forced(snapshot) && !has_begun(work))?;
    // Nothing to uninstall, nothing to wait for.
    work.inventory().next()?;
    work.look_again(left);
    Some("uninstalling begins in a moment, unless the package is applied again".to_owned())
}

/// Whether something has been asked to go already, by whichever process.
fn has_begun(work: &Work<'_>) -> bool {
    let is_gone = |component: &RecordedComponent| {
        let asked = work.record(&component.name).is_some_and(|record| !record.objects.is_empty());
        asked && work.children_of(&component.name).is_empty()
    };
    work.inventory().any(Live::is_deleting) || work.latest.spec.components.iter().any(is_gone)
}

fn uninstall(work: &mut Work<'_>) -> Option<String> {
    let children: Vec<&Live> = work.inventory().collect();
    match removal::of(work, &children) {
        Removal::Gone => None,
        Removal::Waiting(message) => Some(message),
    }
}

fn let_all_go(work: &mut Work<'_>) -> Option<String> {
    let children: Vec<&Live> = work.inventory().filter(|child| !release::is_let_go(child)).collect();
    for child in &children {
        work.actions.extend(release::let_go(child));
    }
    // It does not wait for them: the namespace does not either.
    canaries::let_all_go(work, |_| true);
    let first = children.first()?;
    Some(format!("{}: suspending it before its namespace is gone", first.name()))
}

/// Revisions lose their finalizer and go with the Package, unless children stay
/// behind whose history they are; the Package goes last.
fn forget(work: &mut Work<'_>) {
    let orphaned = work.inventory().next().is_some();
    if !orphaned {
        // Without a revision nothing tells any more that they are to go.
        cleanup::own_sources(work);
    }
    for revision in &work.snapshot.revisions {
        let (name, uid) = (revision.name.clone(), revision.uid.clone());
        if !orphaned || revision.deleting {
            work.actions.push(Action::DeleteRevision { name, uid });
        } else if revision.held {
            work.actions.push(Action::ReleaseRevision { name, uid });
        }
    }
    if work.snapshot.package.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        work.actions.push(Action::ReleasePackage);
    }
}

/// A Package goes with its namespace, and the revisions that can be read with it.
pub(crate) fn let_package_go(snapshot: &Snapshot) -> Vec<Action> {
    let held = snapshot.revisions.iter().filter(|revision| revision.held);
    let revisions =
        held.map(|revision| Action::ReleaseRevision { name: revision.name.clone(), uid: revision.uid.clone() });
    let is_held = snapshot.package.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    revisions.chain(is_held.then_some(Action::ReleasePackage)).collect()
}
