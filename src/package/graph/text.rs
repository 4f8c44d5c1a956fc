//! The graph as indented lines.

use std::fmt::Write as _;

use super::{Graph, Node, Required};
use crate::package::definition::Requirement;

/// Each Package with what it requires, its hooks and its components, numbered
/// in the order they move.
pub fn write_text(graph: &Graph<'_>) -> String {
    let packages: Vec<String> = graph.packages.iter().map(package).collect();
    packages.join("\n")
}

fn package(node: &Node<'_>) -> String {
    let definition = node.definition;
    let mut out = format!("{}/{} {}\n", definition.namespace, definition.name, definition.version);
    for required in &node.requires {
        let _ = writeln!(out, "  requires {}", requirement(required));
    }
    for requirement in &definition.requires {
        if let Requirement::Kubernetes { range } = requirement {
            let _ = writeln!(out, "  requires Kubernetes {range}");
        }
    }
    if !node.hooks.is_empty() {
        let hooks: Vec<&str> = node.hooks.iter().map(|hook| hook.name.as_str()).collect();
        let _ = writeln!(out, "  before an upgrade: {}", hooks.join(", then "));
    }
    let width = node.components.len().to_string().len();
    for (index, component) in node.components.iter().enumerate() {
        let after: Vec<&str> = component.depends_on.iter().map(|name| name.as_str()).collect();
        let after = if after.is_empty() { String::new() } else { format!("  after {}", after.join(", ")) };
        let _ = writeln!(out, "  {:>width$}. {}{after}", index + 1, component.name);
    }
    if node.components.is_empty() && node.hooks.is_empty() {
        out.push_str("  no components: a group\n");
    }
    out
}

fn requirement(required: &Required<'_>) -> String {
    let range = required.range.map_or_else(String::new, |range| format!(" {range}"));
    let note = match (required.optional, required.target) {
        (true, _) => ", if there",
        (false, None) => ", not among these files",
        (false, Some(_)) => "",
    };
    format!("{}{range}{note}", required.name)
}
