//! Why a Package is not ready: along `blockedBy` to the root.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::remedy::remedy;
use super::{children, full_name, is_current, ready};
use crate::api::wellknown::{LABEL_COMPONENT, LABEL_PACKAGE};
use crate::api::{Blocker, ComponentState, Package, Reason};

/// Namespace and name.
pub type Key = (String, String);

/// What was fetched: all that a Package's blockers lead to.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Packages.
    pub packages: BTreeMap<Key, Package>,
    /// HelmReleases and Applications with our labels.
    pub children: Vec<Map<String, Value>>,
    /// What could not be read for want of rights.
    pub unread: Vec<String>,
}

/// The Packages that hold one up, directly.
pub fn blockers(package: &Package) -> Vec<Key> {
    let status = package.status.as_ref();
    let blockers = status.into_iter().flat_map(|status| &status.blocked_by);
    blockers.filter(|blocker| blocker.kind == "Package").map(|b| (b.namespace.clone(), b.name.clone())).collect()
}

/// The chain from a Package to what holds it up in the end, and what to do.
pub fn write(start: &Key, found: &Found) -> String {
    let mut text = String::new();
    let mut told = BTreeSet::new();
    tell(start, found, 0, &mut told, &mut text);
    text
}

fn tell(key: &Key, found: &Found, depth: usize, told: &mut BTreeSet<Key>, text: &mut String) {
    let indent = "  ".repeat(depth);
    let Some(package) = found.packages.get(key) else {
        let _ = writeln!(text, "{indent}{}/{}: there is no such Package", key.0, key.1);
        return;
    };
    if !told.insert(key.clone()) {
        let _ = writeln!(text, "{indent}{}: see above", full_name(package));
        return;
    }
    let Some(ready) = ready(package).filter(|_| is_current(package)) else {
        let _ = writeln!(text, "{indent}{}: the controller has not seen this spec yet", full_name(package));
        let _ = writeln!(text, "{indent}  To do: see whether the controller runs and watches this namespace.");
        return;
    };
    let is_ready = if ready.status == "True" { "is ready" } else { "is not ready" };
    let _ = writeln!(text, "{indent}{} {is_ready}: {}", full_name(package), ready.reason);
    let _ = writeln!(text, "{indent}  {}", ready.message);
    let packages = blockers(package);
    for other in other_blockers(package) {
        let _ = writeln!(text, "{indent}  blocked by {} {} ({})", other.kind, other.name, other.reason);
    }
    for blocker in &packages {
        tell(blocker, found, depth + 1, told, text);
    }
    if packages.is_empty() {
        root(package, found, &indent, text);
    }
}

fn other_blockers(package: &Package) -> impl Iterator<Item = &Blocker> {
    let status = package.status.as_ref();
    status.into_iter().flat_map(|status| &status.blocked_by).filter(|blocker| blocker.kind != "Package")
}

/// Nobody else holds it up: what its open components and their objects say.
fn root(package: &Package, found: &Found, indent: &str, text: &mut String) {
    let components = package.status.as_ref().map(|status| status.components.as_slice()).unwrap_or_default();
    let open = components.iter().filter(|component| match component.state {
        ComponentState::Waiting | ComponentState::Verified | ComponentState::Restored | ComponentState::Removed => {
            false
        }
        ComponentState::Queued
        | ComponentState::Progressing
        | ComponentState::Verifying
        | ComponentState::Failed
        | ComponentState::Suspended
        | ComponentState::Restoring
        | ComponentState::Removing => true,
    });
    for component in open {
        let _ = writeln!(text, "{indent}  component {} is {:?}", component.name, component.state);
        for object in children_of(package, &component.name, found) {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or("object");
            let name = object.get("metadata").and_then(|m| m.get("name")).and_then(Value::as_str).unwrap_or_default();
            for line in children::say(object) {
                let _ = writeln!(text, "{indent}    {kind}/{name}: {line}");
            }
        }
    }
    if let Some(reason) = ready(package).and_then(|ready| Reason::parse(&ready.reason)) {
        let _ = writeln!(text, "{indent}  To do: {}", remedy(reason));
    }
}

fn children_of<'a>(
    package: &Package,
    component: &str,
    found: &'a Found,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    let (namespace, name) = (package.metadata.namespace.clone(), package.metadata.name.clone());
    found.children.iter().filter(move |child| {
        let metadata = child.get("metadata");
        let text = |path: &[&str]| {
            path.iter().try_fold(metadata?, |value, key| value.get(*key)).and_then(Value::as_str).map(str::to_owned)
        };
        text(&["namespace"]) == namespace
            && text(&["labels", LABEL_PACKAGE]) == name
            && text(&["labels", LABEL_COMPONENT]).as_deref() == Some(component)
    })
}
