//! Requirements between packages, in both directions.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::gate::{Held, waiting};
use super::history::History;
use super::snapshot::{OtherPackage, Peer, Required, Snapshot};
use crate::api::{Blocker, Reason};
use crate::package::definition::{Definition, Requirement};
use crate::package::names::PackageName;
use crate::package::range::Range;
use crate::package::version::Version;

/// What is required is there, and nobody who requires this package excludes what it
/// asks for.
pub(crate) fn met(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    required(snapshot, definition)?;
    excluded_by_requirers(snapshot, definition)
}

/// One commit changes several packages one after the other: whoever requires
/// others starts only when it and what it requires have been still.
pub(crate) fn still(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    let required: Vec<&OtherPackage> = definition
        .requires
        .iter()
        .filter_map(|requirement| match requirement {
            Requirement::Package { name, .. } => neighbours(snapshot).find(|peer| peer.name == *name),
            Requirement::Kubernetes { .. } => None,
        })
        .collect();
    let requires_packages = definition.requires.iter().any(|r| matches!(r, Requirement::Package { .. }));
    if !requires_packages {
        return Ok(());
    }
    let still =
        required.iter().map(|peer| peer.still_for).chain([snapshot.package.still_for]).min().unwrap_or_default();
    match snapshot.cluster.requirements_settle.checked_sub(still) {
        Some(left) if !left.is_zero() => Err(Held::Settling { left }),
        Some(_) | None => Ok(()),
    }
}

/// The other Packages of the namespace.
fn neighbours(snapshot: &Snapshot) -> impl Iterator<Item = &OtherPackage> {
    snapshot.peers.iter().filter(|peer| peer.namespace == snapshot.package.namespace)
}

/// Each required package has a last succeeded version in the range and is not
/// moving; Kubernetes is in the range.
fn required(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    let waiters = Waiters { snapshot, found: OnceCell::new() };
    let mut messages = Vec::new();
    let mut blocked_by = Vec::new();
    for requirement in &definition.requires {
        match requirement {
            Requirement::Kubernetes { range } => {
                let version = snapshot.cluster.kubernetes.as_ref();
                if !version.is_some_and(|version| range.admits(version)) {
                    let found = version.map_or_else(|| "unknown".to_owned(), Version::to_string);
                    messages.push(format!("Kubernetes {} is required, found {found}", range.as_written()));
                }
            }
            Requirement::Package { name, range, optional } => {
                let peer = neighbours(snapshot).find(|peer| peer.name == *name).map(|other| other.peer.as_ref());
                if let Some(unmet) = unmet(&waiters, name, range.as_ref(), *optional, peer) {
                    messages.push(unmet);
                    blocked_by.push(package_blocker(snapshot, name));
                }
            }
        }
    }
    waiting(Reason::RequirementsNotMet, messages, blocked_by)
}

fn unmet(
    waiters: &Waiters<'_>,
    name: &PackageName,
    range: Option<&Range>,
    optional: bool,
    peer: Option<&Peer>,
) -> Option<String> {
    let Some(peer) = peer else {
        return (!optional).then(|| format!("package {name} is required and does not exist"));
    };
    let wanted = range.map_or_else(String::new, |range| format!(" {}", range.as_written()));
    let Some(version) = &peer.succeeded else {
        return Some(format!("package {name}{wanted} is required and has not succeeded yet"));
    };
    if range.is_some_and(|range| !range.admits(version)) {
        return Some(format!("package {name}{wanted} is required, {version} runs"));
    }
    waiters.is_moving(peer).then(|| format!("package {name} is required and is moving"))
}

/// Packages that wait for this one, directly or through others: found when they are
/// first asked for, in time linear in what Packages require.
struct Waiters<'a> {
    snapshot: &'a Snapshot,
    found: OnceCell<BTreeSet<&'a PackageName>>,
}

impl<'a> Waiters<'a> {
    /// A revision has started and not ended, or is wanted and waits for something
    /// other than a refusal or the package that asks, directly or through others.
    fn is_moving(&self, peer: &Peer) -> bool {
        let waits_for_us = || self.found.get_or_init(|| self.find()).contains(&peer.name);
        peer.open || (peer.wants_change && !peer.refused && !waits_for_us())
    }

    fn find(&self) -> BTreeSet<&'a PackageName> {
        let snapshot = self.snapshot;
        let all: BTreeMap<&PackageName, &Peer> =
            neighbours(snapshot).map(|other| (&other.name, &*other.peer)).collect();
        let mut requirers: BTreeMap<&PackageName, Vec<&Peer>> = BTreeMap::new();
        for peer in all.values() {
            peer.requires.iter().for_each(|required| requirers.entry(&required.name).or_default().push(peer));
        }
        let of = |name: &PackageName| requirers.get(name).into_iter().flatten().copied();
        let excluded = all.values().copied().filter(|peer| is_excluded_by_us(snapshot, peer));
        let mut next: Vec<&Peer> = of(&snapshot.package.name).chain(excluded).collect();
        let mut found = BTreeSet::new();
        while let Some(peer) = next.pop() {
            // What waits for one that has nothing to do waits for nobody.
            if found.insert(&peer.name) && peer.wants_change {
                let required = peer.requires.iter().filter_map(|required| all.get(&required.name).copied());
                next.extend(of(&peer.name).chain(required.filter(|other| excludes(peer, other))));
            }
        }
        found
    }
}

/// Whether what this package asks for keeps another one from its version.
fn is_excluded_by_us(snapshot: &Snapshot, peer: &Peer) -> bool {
    let (Ok(definition), Some(wanted)) = (&snapshot.package.definition, &peer.wanted) else { return false };
    let excludes = |requirement: &Requirement| match requirement {
        Requirement::Package { name, range: Some(range), .. } => *name == peer.name && !range.admits(wanted),
        Requirement::Package { range: None, .. } | Requirement::Kubernetes { .. } => false,
    };
    definition.requires.iter().any(excludes) && History::new(&snapshot.revisions).verified().is_some()
}

/// Whether an installed requirer keeps another package from its version.
fn excludes(requirer: &Peer, peer: &Peer) -> bool {
    let Some(wanted) = &peer.wanted else { return false };
    let out = |required: &Required| required.range.as_ref().is_some_and(|range| !range.admits(wanted));
    let installed = requirer.succeeded.is_some() && !requirer.deleting;
    installed && requirer.requires.iter().any(|required| required.name == peer.name && out(required))
}

/// A package does not start towards a version that the wanted spec of an
/// installed requirer excludes.
fn excluded_by_requirers(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    let mut messages = Vec::new();
    let mut blocked_by = Vec::new();
    for peer in neighbours(snapshot).filter(|peer| peer.succeeded.is_some() && !peer.deleting) {
        let excluding = peer.requires.iter().find(|required| {
            required.name == definition.name && required.range.as_ref().is_some_and(|r| !r.admits(&definition.version))
        });
        if let Some(range) = excluding.and_then(|required| required.range.as_ref()) {
            messages.push(format!(
                "package {} requires {} {}, {} is outside of it",
                peer.name,
                definition.name,
                range.as_written(),
                definition.version
            ));
            blocked_by.push(package_blocker(snapshot, &peer.name));
        }
    }
    waiting(Reason::RequirementsNotMet, messages, blocked_by)
}

fn package_blocker(snapshot: &Snapshot, name: &PackageName) -> Blocker {
    Blocker {
        kind: "Package".into(),
        namespace: snapshot.package.namespace.clone(),
        name: name.to_string(),
        reason: Reason::RequirementsNotMet.to_string(),
    }
}
