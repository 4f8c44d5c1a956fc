//! What depends on what, in forms for people and for drawing.

mod dot;
mod mermaid;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use super::definition::{Component, Definition, Requirement};
use super::names::{Namespace, PackageName};

pub use dot::write_dot;
pub use mermaid::write_mermaid;
pub use text::write_text;

/// Packages and components in the order they move.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    packages: Vec<Node<'a>>,
}

#[derive(Clone, Debug)]
struct Node<'a> {
    definition: &'a Definition,
    /// PreUpgrade hooks, in the order they run.
    hooks: Vec<&'a Component>,
    /// Components in the order they move.
    components: Vec<&'a Component>,
    /// Packages required, in declaration order.
    requires: Vec<Required<'a>>,
}

#[derive(Clone, Debug)]
struct Required<'a> {
    name: &'a PackageName,
    range: Option<&'a str>,
    optional: bool,
    /// Index among the packages, if it is there.
    target: Option<usize>,
}

impl<'a> Graph<'a> {
    /// The graph of a set of Packages, required ones first, ties by namespace
    /// and name. Packages that require each other come in the order of names.
    pub fn new(definitions: impl IntoIterator<Item = &'a Definition>) -> Self {
        let mut definitions: Vec<&Definition> = definitions.into_iter().collect();
        definitions.sort_by_key(|definition| (&definition.namespace, &definition.name));
        let sorted = required_first(&definitions);
        let index: BTreeMap<_, usize> = sorted.iter().enumerate().map(|(index, d)| (key(d), index)).collect();
        let packages = sorted.iter().map(|definition| Node::new(definition, &index)).collect();
        Self { packages }
    }
}

type Key<'a> = (&'a Namespace, &'a PackageName);

fn key(definition: &Definition) -> Key<'_> {
    (&definition.namespace, &definition.name)
}

fn required_first<'a>(definitions: &[&'a Definition]) -> Vec<&'a Definition> {
    let present: BTreeSet<Key<'_>> = definitions.iter().map(|definition| key(definition)).collect();
    let mut placed: BTreeSet<Key<'_>> = BTreeSet::new();
    let mut open: Vec<&Definition> = definitions.to_vec();
    let mut sorted = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let free = open.iter().position(|definition| {
            required(definition).all(|(name, ..)| {
                let required = (&definition.namespace, name);
                !present.contains(&required) || placed.contains(&required)
            })
        });
        let next = open.remove(free.unwrap_or(0));
        placed.insert(key(next));
        sorted.push(next);
    }
    sorted
}

fn required(definition: &Definition) -> impl Iterator<Item = (&PackageName, Option<&str>, bool)> {
    definition.requires.iter().filter_map(|requirement| match requirement {
        Requirement::Package { name, range, optional } => {
            Some((name, range.as_ref().map(super::range::Range::as_written), *optional))
        }
        Requirement::Kubernetes { .. } => None,
    })
}

impl<'a> Node<'a> {
    fn new(definition: &'a Definition, index: &BTreeMap<Key<'_>, usize>) -> Self {
        let order = definition.order();
        let at = |positions: &[usize]| positions.iter().filter_map(|&at| definition.components.get(at)).collect();
        let requires = required(definition).map(|(name, range, optional)| Required {
            name,
            range,
            optional,
            target: index.get(&(&definition.namespace, name)).copied(),
        });
        Self { definition, hooks: at(&order.hooks), components: at(&order.components), requires: requires.collect() }
    }

    /// Components that nothing in the Package depends on.
    fn last(&self) -> impl Iterator<Item = &'a Component> + '_ {
        let needed: BTreeSet<_> = self.components.iter().flat_map(|component| &component.depends_on).collect();
        self.components.iter().copied().filter(move |component| !needed.contains(&component.name))
    }

    /// Components that depend on nothing in the Package.
    fn first(&self) -> impl Iterator<Item = &'a Component> + '_ {
        self.components.iter().copied().filter(|component| component.depends_on.is_empty())
    }
}
