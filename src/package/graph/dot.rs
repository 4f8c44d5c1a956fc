//! The graph for Graphviz.

use std::fmt::Write as _;

use super::{Graph, Node};
use crate::package::definition::Component;

/// A `digraph`: a cluster per Package, arrows from what comes first to what
/// waits for it, dashed ones from hooks and for optional requirements.
pub fn write_dot(graph: &Graph<'_>) -> String {
    let mut out = String::from("digraph packages {\n  rankdir=LR;\n  compound=true;\n  node [shape=box];\n");
    for (index, node) in graph.packages.iter().enumerate() {
        package(&mut out, index, node);
    }
    for (index, node) in graph.packages.iter().enumerate() {
        for required in &node.requires {
            let Some(target) = required.target.and_then(|target| Some((target, graph.packages.get(target)?))) else {
                continue;
            };
            let style = if required.optional { ", style=dashed" } else { "" };
            let from = target.1.last().next().map_or_else(|| group(target.0), |component| id(target.0, component));
            let to = node.first().next().map_or_else(|| group(index), |component| id(index, component));
            let _ = writeln!(out, "  {from} -> {to} [ltail=cluster_{}, lhead=cluster_{index}{style}];", target.0);
        }
    }
    out.push_str("}\n");
    out
}

fn package(out: &mut String, index: usize, node: &Node<'_>) {
    let definition = node.definition;
    let label = format!("{}/{} {}", definition.namespace, definition.name, definition.version);
    let _ = writeln!(out, "  subgraph cluster_{index} {{\n    label={};", quote(&label));
    for hook in &node.hooks {
        let _ = writeln!(out, "    {} [label={}, style=dashed];", id(index, hook), quote(hook.name.as_str()));
    }
    for component in &node.components {
        let _ = writeln!(out, "    {} [label={}];", id(index, component), quote(component.name.as_str()));
        for dependency in node.components.iter().filter(|other| component.depends_on.contains(&other.name)) {
            let _ = writeln!(out, "    {} -> {};", id(index, dependency), id(index, component));
        }
    }
    for (from, to) in node.hooks.iter().zip(node.hooks.iter().skip(1)) {
        let _ = writeln!(out, "    {} -> {} [style=dashed];", id(index, from), id(index, to));
    }
    for (last, first) in node.hooks.last().into_iter().flat_map(|last| node.first().map(move |first| (last, first))) {
        let _ = writeln!(out, "    {} -> {} [style=dashed];", id(index, last), id(index, first));
    }
    if node.components.is_empty() {
        let _ = writeln!(out, "    {} [label=\"\", shape=point];", group(index));
    }
    out.push_str("  }\n");
}

fn id(index: usize, component: &Component) -> String {
    quote(&format!("{index}/{}", component.name))
}

fn group(index: usize) -> String {
    quote(&format!("{index}/"))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
