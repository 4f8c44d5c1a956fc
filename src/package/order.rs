//! The order in which components move.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;

use thiserror::Error;

use super::definition::Component;
use super::names::ComponentName;

/// The order of one Package, as positions in its list of components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Hooks, in declaration order.
    pub hooks: Vec<usize>,
    /// The other components: every one after all it depends on, ties in
    /// declaration order.
    pub components: Vec<usize>,
}

/// Components that depend on each other in a circle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Cycle {
    /// Positions along the circle; the last depends on the first.
    pub positions: Vec<usize>,
    /// Names along the circle.
    pub names: Vec<ComponentName>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.names.as_slice() {
            return write!(formatter, "component `{only}` depends on itself");
        }
        formatter.write_str("components depend on each other in a circle: ")?;
        for name in &self.names {
            write!(formatter, "{name} -> ")?;
        }
        self.names.first().map_or(Ok(()), |first| first.fmt(formatter))
    }
}

/// Orders the components of a Package. Edges to hooks or to nothing are
/// ignored: parsing has refused them.
///
/// # Errors
/// The circle, if there is one.
pub fn order(components: &[Component]) -> Result<Order, Cycle> {
    let graph = Graph::new(components);
    let mut open: Vec<usize> = graph.upstream.iter().map(BTreeSet::len).collect();
    let mut next: BinaryHeap<Reverse<usize>> =
        graph.nodes.iter().copied().filter(|&node| open.get(node) == Some(&0)).map(Reverse).collect();
    let mut sorted = Vec::with_capacity(graph.nodes.len());
    while let Some(Reverse(node)) = next.pop() {
        sorted.push(node);
        for &dependent in graph.downstream.get(node).into_iter().flatten() {
            if let Some(count) = open.get_mut(dependent) {
                *count -= 1;
                if *count == 0 {
                    next.push(Reverse(dependent));
                }
            }
        }
    }
    if sorted.len() < graph.nodes.len() {
        return Err(graph.cycle(components, &sorted));
    }
    let hooks = positions(components, |component| component.hook);
    Ok(Order { hooks, components: sorted })
}

/// For each component the level it stands on: 0 without dependencies, else one
/// more than the highest of them. Hooks are on level 0.
///
/// # Errors
/// The circle, if there is one.
pub fn levels(components: &[Component]) -> Result<Vec<u32>, Cycle> {
    let order = order(components)?;
    let graph = Graph::new(components);
    let mut levels = vec![0; components.len()];
    for node in order.components {
        let above = graph.upstream.get(node).into_iter().flatten();
        let level = above.filter_map(|&up| levels.get(up)).max().map_or(0, |highest| highest + 1);
        if let Some(slot) = levels.get_mut(node) {
            *slot = level;
        }
    }
    Ok(levels)
}

fn positions(components: &[Component], wanted: impl Fn(&Component) -> bool) -> Vec<usize> {
    components.iter().enumerate().filter(|(_, component)| wanted(component)).map(|(index, _)| index).collect()
}

struct Graph {
    nodes: Vec<usize>,
    upstream: Vec<BTreeSet<usize>>,
    downstream: Vec<BTreeSet<usize>>,
}

impl Graph {
    fn new(components: &[Component]) -> Self {
        let nodes = positions(components, |component| !component.hook);
        let by_name: BTreeMap<&ComponentName, usize> =
            nodes.iter().filter_map(|&node| components.get(node).map(|component| (&component.name, node))).collect();
        let mut upstream = vec![BTreeSet::new(); components.len()];
        let mut downstream = vec![BTreeSet::new(); components.len()];
        for (node, component) in components.iter().enumerate().filter(|(_, component)| !component.hook) {
            for &dependency in component.depends_on.iter().filter_map(|name| by_name.get(name)) {
                if let (Some(up), Some(down)) = (upstream.get_mut(node), downstream.get_mut(dependency)) {
                    up.insert(dependency);
                    down.insert(node);
                }
            }
        }
        Self { nodes, upstream, downstream }
    }

    /// Walks upstream among the nodes that could not be sorted: each of them
    /// has one that could not be sorted either, so the walk meets itself.
    fn cycle(&self, components: &[Component], sorted: &[usize]) -> Cycle {
        let sorted: BTreeSet<usize> = sorted.iter().copied().collect();
        let unsorted = |node: &&usize| !sorted.contains(*node);
        let mut walk: Vec<usize> = Vec::new();
        let mut current = self.nodes.iter().find(unsorted).copied();
        while let Some(node) = current {
            if let Some(start) = walk.iter().position(|&seen| seen == node) {
                walk.drain(..start);
                break;
            }
            walk.push(node);
            current = self.upstream.get(node).and_then(|up| up.iter().find(unsorted)).copied();
        }
        let names = walk.iter().filter_map(|&node| components.get(node)).map(|component| component.name.clone());
        Cycle { names: names.collect(), positions: walk }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::definition::testing::component;

    fn named(edges: &[(&str, &[&str])]) -> Vec<Component> {
        edges.iter().map(|(name, depends_on)| component(name, depends_on)).collect()
    }

    fn names(components: &[Component], positions: &[usize]) -> Vec<String> {
        positions.iter().map(|&position| components[position].name.to_string()).collect()
    }

    #[test]
    fn dependencies_come_first() {
        let components = named(&[("app", &["db", "cache"]), ("cache", &[]), ("db", &["cache"])]);
        assert_eq!(names(&components, &order(&components).unwrap().components), ["cache", "db", "app"]);
    }

    #[test]
    fn ties_are_broken_by_declaration() {
        let components = named(&[("c", &[]), ("a", &[]), ("b", &["c"]), ("d", &[])]);
        assert_eq!(names(&components, &order(&components).unwrap().components), ["c", "a", "b", "d"]);
    }

    #[test]
    fn hooks_are_apart_and_in_declaration_order() {
        let mut components = named(&[("z", &[]), ("app", &[]), ("a", &[])]);
        components[0].hook = true;
        components[2].hook = true;
        assert_eq!(order(&components).unwrap(), Order { hooks: vec![0, 2], components: vec![1] });
    }

    #[test]
    fn a_circle_is_named_from_end_to_end() {
        let components = named(&[("free", &[]), ("a", &["c"]), ("b", &["a"]), ("c", &["b"]), ("d", &["c"])]);
        let cycle = order(&components).unwrap_err();
        assert_eq!(cycle.to_string(), "components depend on each other in a circle: a -> c -> b -> a");
    }

    #[test]
    fn a_component_that_depends_on_itself_is_a_circle() {
        let components = named(&[("a", &["a"])]);
        let cycle = order(&components).unwrap_err();
        assert_eq!(
            (cycle.positions.as_slice(), cycle.to_string().as_str()),
            (&[0][..], "component `a` depends on itself")
        );
    }

    #[test]
    fn levels_rise_with_the_longest_way() {
        let components = named(&[("app", &["db", "cache"]), ("cache", &[]), ("db", &["cache"])]);
        assert_eq!(levels(&components).unwrap(), [2, 0, 1]);
    }
}
