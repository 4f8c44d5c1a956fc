//! Which DaemonSets a component has, and how closely they are looked at.

use std::collections::BTreeSet;

use crate::api::{RecordedComponent, RolloutRecord};
use crate::canary::{self, Calm};
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
    let ever = Ever::of(snapshot);
    for (child, component) in kept_up(snapshot, &ever) {
        let Some(Places::Known(keys)) = component.canary.as_ref().map(|_| places(child, component)) else { continue };
        needs.guarded.extend(keys.iter().map(|key| key.namespace.clone()));
        needs.daemon_sets.extend(keys.into_iter().map(|key| (key.clone(), depth(latest, component, &key))));
    }
    if snapshot.package.deleting {
        let keys = kept_up(snapshot, &ever).flat_map(|(child, component)| ever.places(child, component));
        keys.for_each(|key| {
            needs.daemon_sets.entry(key).or_insert(Depth::Alone);
        });
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
    for component in &latest.spec.components {
        former(snapshot, &ever, component).into_iter().for_each(|key| {
            needs.daemon_sets.entry(key).or_insert(Depth::Alone);
        });
    }
    let about_to_end = |key: &&ObjectKey| {
        let of_it = |record: &&RolloutRecord| record.daemon_set == id(key);
        latest.status.rollouts.iter().filter(of_it).any(canary::is_about_to_end)
    };
    needs.fresh = needs.daemon_sets.keys().filter(about_to_end).cloned().collect();
    if let Ok(definition) = &snapshot.package.definition {
        let canaried = definition.components.iter().filter(|component| component.canary.is_some());
        needs.guarded.extend(canaried.map(|component| component.namespace.to_string()));
    }
}

/// What was ever behind a canary, as far as revisions are kept.
pub struct Ever<'a>(Vec<&'a RecordedComponent>);

impl<'a> Ever<'a> {
    pub fn of(snapshot: &'a Snapshot) -> Self {
        let all = snapshot.revisions.iter().flat_map(|revision| &revision.spec.components);
        Self(all.filter(|component| component.canary.is_some()).collect())
    }

    /// What is recorded of a component with a canary, or of whichever had its release before.
    fn of_component(&self, component: &RecordedComponent) -> impl Iterator<Item = &'a RecordedComponent> {
        let is_it = |known: &RecordedComponent| known.name == component.name || known.release == component.release;
        self.0.iter().copied().filter(move |known| is_it(known))
    }

    /// DaemonSets of a component that may have been behind a canary in any revision.
    pub fn places(&self, child: &Live, component: &RecordedComponent) -> Vec<ObjectKey> {
        let mut canaries = self.of_component(component).filter_map(|known| known.canary.as_ref()).peekable();
        if canaries.peek().is_none() {
            return Vec::new();
        }
        match release::known_objects_of(child) {
            Some(objects) => objects.into_iter().filter(is_daemon_set).collect(),
            None => {
                let named: BTreeSet<&String> = canaries.flat_map(|canary| &canary.daemon_sets).collect();
                named.into_iter().map(|name| named_in(component, name)).collect()
            }
        }
    }
}

/// DaemonSets that were behind the canary of a component, or of whichever had its
/// release before, and are no more, as far as revisions are kept.
pub fn former(snapshot: &Snapshot, ever: &Ever<'_>, component: &RecordedComponent) -> Vec<ObjectKey> {
    let names_all = component.canary.as_ref().is_some_and(|canary| canary.daemon_sets.is_empty());
    if names_all || ever.of_component(component).next().is_none() {
        return Vec::new();
    }
    let Some(child) = release::child(snapshot, component) else { return Vec::new() };
    let present = match component.canary.as_ref().map(|_| places(child, component)) {
        Some(Places::Known(keys)) => keys,
        Some(Places::Unknown(_)) | None => Vec::new(),
    };
    let mut former = ever.places(child, component);
    former.retain(|key| !present.contains(key));
    former
}

/// Our children, each with the component that it was written for: of the newest
/// revision that has it so, or else of its name. Nothing where no canary ever was.
pub fn kept_up<'a>(
    snapshot: &'a Snapshot,
    ever: &Ever<'_>,
) -> impl Iterator<Item = (&'a Live, &'a RecordedComponent)> + use<'a> {
    let written_for = |child: &'a Live| {
        let components = || snapshot.revisions.iter().rev().flat_map(|revision| &revision.spec.components);
        let is_it = |component: &&RecordedComponent| {
            child.digest() == Some(&component.digest) && release::place(component) == Some(child.place())
        };
        let is_named = |component: &&RecordedComponent| child.component() == Some(component.name.as_str());
        let found = components().find(is_it).or_else(|| components().find(is_named))?;
        (!found.hook).then_some((child, found))
    };
    let children = if ever.0.is_empty() { &[][..] } else { &snapshot.children[..] };
    let own = |child: &&Live| child.package() == Some(snapshot.package.name.as_str());
    children.iter().filter(own).filter_map(written_for)
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
        Some(objects) => Places::Known(objects.into_iter().filter(is_daemon_set).filter(is_named).collect()),
        None if named.is_empty() => Places::Unknown(format!(
            "{} does not say yet which objects the release has: before helm-controller 1.5 they must be named in canary.daemonSets",
            child.name()
        )),
        None => Places::Known(named.iter().map(|name| named_in(component, name)).collect()),
    }
}

fn is_daemon_set(key: &ObjectKey) -> bool {
    key.kind == KIND && key.api_version == APPS
}

fn named_in(component: &RecordedComponent, name: &str) -> ObjectKey {
    ObjectKey {
        api_version: APPS.into(),
        kind: KIND.into(),
        namespace: component.release.namespace.clone(),
        name: name.to_owned(),
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
