//! Which DaemonSets a component has, and how closely they are looked at.

use crate::api::{RecordedComponent, RolloutRecord};
use crate::canary::Calm;
use crate::engine::ObjectKey;
use crate::rollout::live::Live;
use crate::rollout::needs::{Depth, Needs, is_moving};
use crate::rollout::release;
use crate::rollout::snapshot::{RevisionView, Snapshot};

const APPS: &str = "apps/v1";
const KIND: &str = "DaemonSet";

/// The DaemonSets of a component, as its engine or the Package names them.
pub enum Places {
    /// These.
    Known(Vec<ObjectKey>),
    /// The engine does not say what the release has; the message says what to do.
    Unknown(String),
}

/// Asks for the DaemonSets behind a canary, closely as long as they may be in
/// the middle of a rollout.
pub fn needed(snapshot: &Snapshot, needs: &mut Needs) {
    let Some(latest) = snapshot.revisions.last() else { return };
    if snapshot.package.deleting {
        let guarded = latest.spec.components.iter().filter(|component| has_been_guarded(snapshot, component));
        let keys = guarded.flat_map(|component| watched(snapshot, component));
        needs.daemon_sets.extend(keys.map(|key| (key, Depth::Alone)));
        return;
    }
    let back = latest.status.rollback.as_ref().map(|rollback| rollback.to);
    let back = back.and_then(|number| snapshot.revisions.iter().find(|revision| revision.number() == number));
    for revision in back.into_iter().chain([latest]) {
        for component in revision.spec.components.iter().filter(|component| component.canary.is_some()) {
            needs.guarded.insert(component.release.namespace.clone());
            for key in watched(snapshot, component) {
                let depth = depth(latest, component, &key);
                needs.guarded.insert(key.namespace.clone());
                needs.daemon_sets.insert(key, depth);
            }
        }
    }
    for component in latest.spec.components.iter().filter(|component| has_lost_it(snapshot, component)) {
        let former = watched(snapshot, component);
        former.into_iter().for_each(|key| {
            needs.daemon_sets.entry(key).or_insert(Depth::Alone);
        });
    }
    if let Ok(definition) = &snapshot.package.definition {
        let canaried = definition.components.iter().filter(|component| component.canary.is_some());
        needs.guarded.extend(canaried.map(|component| component.namespace.to_string()));
    }
}

/// Whether a component had a canary, as far as revisions are kept.
pub fn has_lost_it(snapshot: &Snapshot, component: &RecordedComponent) -> bool {
    component.canary.is_none() && has_been_guarded(snapshot, component)
}

/// Whether a component, or whichever had its release before, had a canary in any
/// revision.
pub fn has_been_guarded(snapshot: &Snapshot, component: &RecordedComponent) -> bool {
    let is_it = |known: &RecordedComponent| known.name == component.name || known.release == component.release;
    let had = |revision: &RevisionView| revision.spec.components.iter().any(|c| c.canary.is_some() && is_it(c));
    snapshot.revisions.iter().any(had)
}

pub fn watched(snapshot: &Snapshot, component: &RecordedComponent) -> Vec<ObjectKey> {
    match release::child(snapshot, component).map(|child| places(child, component)) {
        Some(Places::Known(keys)) => keys,
        Some(Places::Unknown(_)) | None => Vec::new(),
    }
}

fn depth(latest: &RevisionView, component: &RecordedComponent, key: &ObjectKey) -> Depth {
    let awaited = latest.record(&component.name).is_none_or(|record| record.verified_at.is_none());
    let known = latest.status.rollouts.iter().find(|record| is_of(record, component, key));
    match known.and_then(Calm::after) {
        Some(calm) if !(awaited && is_moving(latest)) => Depth::UnlessCalm(calm),
        Some(_) | None => Depth::Full,
    }
}

/// What the engine says the release has, of what the Package names.
pub fn places(child: &Live, component: &RecordedComponent) -> Places {
    let named = component.canary.as_ref().map(|canary| canary.daemon_sets.as_slice()).unwrap_or_default();
    let is_named = |key: &ObjectKey| named.is_empty() || named.contains(&key.name);
    match release::known_objects_of(child) {
        Some(objects) => {
            let own = objects.into_iter().filter(|key| key.kind == KIND && key.api_version == APPS);
            Places::Known(own.filter(is_named).collect())
        }
        None if named.is_empty() => Places::Unknown(format!(
            "{} does not say yet which objects the release has: before helm-controller 1.5 they must be named in canary.daemonSets",
            child.name()
        )),
        None => {
            let namespace = &component.release.namespace;
            let key = |name: &String| ObjectKey {
                api_version: APPS.into(),
                kind: KIND.into(),
                namespace: namespace.clone(),
                name: name.clone(),
            };
            Places::Known(named.iter().map(key).collect())
        }
    }
}

pub fn id(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

pub fn is_of(record: &RolloutRecord, component: &RecordedComponent, key: &ObjectKey) -> bool {
    record.component == component.name && record.daemon_set == id(key)
}

/// A DaemonSet that the Package names and the release does not have.
pub fn unnamed(component: &RecordedComponent, keys: &[ObjectKey]) -> Option<String> {
    let named = component.canary.iter().flat_map(|canary| &canary.daemon_sets);
    let missing = named.into_iter().find(|name| !keys.iter().any(|key| key.name == **name))?;
    Some(format!("canary.daemonSets names `{missing}`, which the release does not have"))
}
