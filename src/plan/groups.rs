//! Packages that have something to do with each other.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::required;
use super::{Id, id};
use crate::package::definition::Component;
use crate::translate::Compiled;

/// Something that several Packages can be about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Matter {
    /// A Package, by itself or by what requires it.
    Package(Id),
    /// A release.
    Release(String, String),
    /// An object that the engine reads a release from.
    Child(String, String),
    /// An object that a `readyWhen` looks at.
    Object(String, String, String),
}

/// The same Packages before and after, apart from those that they have nothing
/// to do with: neither by requirements, nor by releases, nor by what they look at.
pub fn apart(before: Vec<Compiled>, after: Vec<Compiled>) -> Vec<(Vec<Compiled>, Vec<Compiled>)> {
    let mut matters: BTreeMap<Matter, BTreeSet<Id>> = BTreeMap::new();
    for package in before.iter().chain(&after) {
        for matter in about(package) {
            matters.entry(matter).or_default().insert(id(package));
        }
    }
    let mut groups: BTreeMap<Id, usize> = BTreeMap::new();
    for packages in matters.into_values() {
        let joined: BTreeSet<usize> = packages.iter().filter_map(|id| groups.get(id)).copied().collect();
        let group = joined.first().copied().unwrap_or(groups.len());
        groups.values_mut().filter(|own| joined.contains(own)).for_each(|own| *own = group);
        groups.extend(packages.into_iter().map(|id| (id, group)));
    }
    let mut apart: BTreeMap<usize, (Vec<Compiled>, Vec<Compiled>)> = BTreeMap::new();
    for package in before {
        let group = groups.get(&id(&package)).copied().unwrap_or_default();
        apart.entry(group).or_default().0.push(package);
    }
    for package in after {
        let group = groups.get(&id(&package)).copied().unwrap_or_default();
        apart.entry(group).or_default().1.push(package);
    }
    apart.into_values().collect()
}

fn about(package: &Compiled) -> Vec<Matter> {
    let definition = &package.definition;
    let mut matters = vec![Matter::Package(id(package))];
    matters.extend(required(package).map(Matter::Package));
    for component in &definition.components {
        matters.push(Matter::Release(component.namespace.to_string(), component.release_name.to_string()));
        matters
            .push(Matter::Child(definition.namespace.to_string(), format!("{}-{}", definition.name, component.name)));
        matters.extend(looked_at(component));
    }
    matters
}

fn looked_at(component: &Component) -> impl Iterator<Item = Matter> + '_ {
    component
        .ready_when
        .iter()
        .map(|entry| Matter::Object(entry.kind.clone(), entry.namespace.to_string(), entry.name.clone()))
}
