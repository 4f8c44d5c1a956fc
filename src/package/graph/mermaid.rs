//! The graph for Mermaid, which Git hosts draw in Markdown.

use std::fmt::Write as _;

use super::{Graph, Node};
use crate::package::definition::Component;

/// A `flowchart`: a subgraph per Package, arrows from what comes first to what
/// waits for it, dotted ones from hooks and for optional requirements.
pub fn write_mermaid(graph: &Graph<'_>) -> String {
    let mut out = String::from("flowchart LR\n");
    for (index, node) in graph.packages.iter().enumerate() {
        package(&mut out, index, node);
    }
    for (index, node) in graph.packages.iter().enumerate() {
        for required in &node.requires {
            let Some(target) = required.target else { continue };
            let arrow = if required.optional { "-.->" } else { "-->" };
            let _ = writeln!(out, "  p{target} {arrow} p{index}");
        }
    }
    out
}

fn package(out: &mut String, index: usize, node: &Node<'_>) {
    let definition = node.definition;
    let title = format!("{}/{} {}", definition.namespace, definition.name, definition.version);
    let _ = writeln!(out, "  subgraph p{index}[{}]", quote(&title));
    for hook in &node.hooks {
        let _ = writeln!(out, "    {}([{}])", id(index, node, hook), quote(hook.name.as_str()));
    }
    for component in &node.components {
        let _ = writeln!(out, "    {}[{}]", id(index, node, component), quote(component.name.as_str()));
        for dependency in node.components.iter().filter(|other| component.depends_on.contains(&other.name)) {
            let _ = writeln!(out, "    {} --> {}", id(index, node, dependency), id(index, node, component));
        }
    }
    for (from, to) in node.hooks.iter().zip(node.hooks.iter().skip(1)) {
        let _ = writeln!(out, "    {} -.-> {}", id(index, node, from), id(index, node, to));
    }
    for (last, first) in node.hooks.last().into_iter().flat_map(|last| node.first().map(move |first| (last, first))) {
        let _ = writeln!(out, "    {} -.-> {}", id(index, node, last), id(index, node, first));
    }
    if node.components.is_empty() && node.hooks.is_empty() {
        let _ = writeln!(out, "    p{index}c0[\"a group\"]");
    }
    out.push_str("  end\n");
}

/// Words such as `end` are no identifiers in Mermaid, so positions are.
fn id(index: usize, node: &Node<'_>, component: &Component) -> String {
    let position = node.definition.components.iter().position(|other| other.name == component.name);
    format!("p{index}c{}", position.unwrap_or_default())
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "#quot;"))
}
