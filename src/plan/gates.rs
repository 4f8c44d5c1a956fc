//! What a step waits for, in words.

use crate::package::definition::{Component, Definition, ReadyTest, ReadyWhen};
use crate::rehearse::scene::chart_version;

/// What being verified means for a component.
pub fn verified(definition: &Definition, name: &str) -> Vec<String> {
    let Some(component) = component(definition, name) else { return vec![format!("`{name}` is verified")] };
    let version = chart_version(component);
    let release = match version {
        "" => format!("`{name}` runs what is wanted, and its release is ready"),
        version => format!("`{name}` runs {version}, and its release is ready"),
    };
    let canary = component.canary.as_ref().map(|_| format!("`{name}`: its canary and the rest of its nodes are done"));
    let entries = component.ready_when.iter().map(|entry| format!("`{name}`: {}", told(entry)));
    std::iter::once(release).chain(entries).chain(canary).collect()
}

pub fn component<'a>(definition: &'a Definition, name: &str) -> Option<&'a Component> {
    definition.components.iter().find(|component| component.name.as_str() == name)
}

fn told(entry: &ReadyWhen) -> String {
    let object = format!("{}/{}", entry.kind, entry.name);
    match &entry.test {
        ReadyTest::Condition { condition, status } => format!("{object} has {condition}={status}"),
        ReadyTest::Expr(expr) => format!("{object}: {}", expr.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}
