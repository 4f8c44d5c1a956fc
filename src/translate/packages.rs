//! Packages among each other: what requires what, and in which order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::{Refusal, Subject};
use crate::package::definition::{Definition, Requirement};

/// The Packages of a set, required ones first, ties in the given order.
pub(super) struct Packages<'a> {
    all: &'a [Definition],
    /// For each Package the positions of those it requires.
    requires: Vec<BTreeSet<usize>>,
    /// Positions in order.
    pub order: Vec<usize>,
}

impl<'a> Packages<'a> {
    pub fn new(all: &'a [Definition]) -> Result<Self, Refusal> {
        let mut positions = BTreeMap::new();
        for (position, package) in all.iter().enumerate() {
            if positions.insert((package.namespace.as_str(), package.name.as_str()), position).is_some() {
                return Err(Refusal::new(Subject::package(package), "there are two Packages of this name"));
            }
        }
        let requires: Vec<BTreeSet<usize>> = all
            .iter()
            .map(|package| {
                let names = required_names(package);
                names.filter_map(|name| positions.get(&(package.namespace.as_str(), name)).copied()).collect()
            })
            .collect();
        let order = sort(all, &requires)?;
        Ok(Self { all, requires, order })
    }

    pub fn get(&self, position: usize) -> Option<&'a Definition> {
        self.all.get(position)
    }

    /// Positions of the Packages that a Package requires and that are in the set.
    pub fn required(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        self.requires.get(position).into_iter().flatten().copied()
    }

    /// Names that a Package requires and that are not in the set.
    pub fn outside(&self, position: usize) -> Vec<&'a str> {
        let Some(package) = self.get(position) else { return Vec::new() };
        let inside: BTreeSet<&str> =
            self.required(position).filter_map(|required| self.get(required)).map(|p| p.name.as_str()).collect();
        let mandatory = package.requires.iter().filter_map(|requirement| match requirement {
            Requirement::Package { name, optional: false, .. } => Some(name.as_str()),
            Requirement::Package { optional: true, .. } | Requirement::Kubernetes { .. } => None,
        });
        mandatory.filter(|name| !inside.contains(name)).collect()
    }
}

fn required_names(package: &Definition) -> impl Iterator<Item = &str> {
    package.requires.iter().filter_map(|requirement| match requirement {
        Requirement::Package { name, .. } => Some(name.as_str()),
        Requirement::Kubernetes { .. } => None,
    })
}

fn sort(all: &[Definition], requires: &[BTreeSet<usize>]) -> Result<Vec<usize>, Refusal> {
    let mut requirers = vec![Vec::new(); all.len()];
    for (position, required) in requires.iter().enumerate() {
        for &required in required {
            if let Some(list) = requirers.get_mut(required) {
                list.push(position);
            }
        }
    }
    let mut open: Vec<usize> = requires.iter().map(BTreeSet::len).collect();
    let mut next: BinaryHeap<Reverse<usize>> =
        open.iter().enumerate().filter(|(_, count)| **count == 0).map(|(position, _)| Reverse(position)).collect();
    let mut order = Vec::with_capacity(all.len());
    while let Some(Reverse(position)) = next.pop() {
        order.push(position);
        for &requirer in requirers.get(position).into_iter().flatten() {
            if let Some(count) = open.get_mut(requirer) {
                *count -= 1;
                if *count == 0 {
                    next.push(Reverse(requirer));
                }
            }
        }
    }
    match open.iter().zip(all).find(|(count, _)| **count > 0) {
        Some((_, package)) => Err(Refusal::new(Subject::package(package), "Packages require each other in a circle")),
        None => Ok(order),
    }
}
