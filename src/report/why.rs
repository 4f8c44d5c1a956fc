//! Why a Package is not ready: along `blockedBy` to the root.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::remedy::remedy;
use super::workloads::{self, Workload};
use super::{SEE_CONTROLLER, age, children, full_name, hook_state, is_current, is_looked_at, ready, unseen};
use crate::api::wellknown::{LABEL_COMPONENT, LABEL_PACKAGE};
use crate::api::{Blocker, ComponentState, ComponentStatus, HookOutcome, HookRecord, Package, PackageRevision, Reason};

/// Namespace and name.
pub type Key = (String, String);

/// What was fetched: all that a Package's blockers lead to.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Packages.
    pub packages: BTreeMap<Key, Package>,
    /// The revision that each of them is on the way to, which tells of hooks.
    pub revisions: BTreeMap<Key, PackageRevision>,
    /// HelmReleases and Applications with our labels.
    pub children: Vec<Map<String, Value>>,
    /// What runs for them.
    pub workloads: Vec<Workload>,
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
pub fn write(start: &Key, found: &Found, now: Timestamp) -> String {
    let mut teller = Teller { found, now, told: BTreeSet::new(), text: String::new() };
    teller.tell(start, 0);
    teller.text
}

/// The components of a Package that are not done, none of which waits for its turn.
pub fn open(package: &Package) -> impl Iterator<Item = &ComponentStatus> {
    let components = package.status.as_ref().map(|status| status.components.as_slice()).unwrap_or_default();
    components.iter().filter(|component| match component.state {
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
    })
}

/// The hooks that the revision a Package is on the way to has started, and that have not
/// succeeded.
pub fn open_hooks<'a>(package: &Package, found: &'a Found) -> impl Iterator<Item = &'a HookRecord> {
    let key =
        (package.metadata.namespace.clone().unwrap_or_default(), package.metadata.name.clone().unwrap_or_default());
    let status = found.revisions.get(&key).and_then(|revision| revision.status.as_ref());
    let hooks = status.into_iter().flat_map(|status| &status.hooks);
    hooks.filter(|hook| hook.outcome != HookOutcome::Succeeded)
}

struct Teller<'a> {
    found: &'a Found,
    now: Timestamp,
    told: BTreeSet<Key>,
    text: String,
}

impl Teller<'_> {
    fn line(&mut self, depth: usize, line: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(depth));
    }

    fn tell(&mut self, key: &Key, depth: usize) {
        let found = self.found;
        let Some(package) = found.packages.get(key) else {
            return self.line(depth, format!("{}/{}: there is no such Package", key.0, key.1));
        };
        if !self.told.insert(key.clone()) {
            return self.line(depth, format!("{}: see above", full_name(package)));
        }
        let Some(ready) = ready(package).filter(|_| is_current(package)) else {
            return self.unseen(package, depth);
        };
        let is_ready = if ready.status == "True" { "is ready" } else { "is not ready" };
        let since = age::since(Some(&ready.last_transition_time), self.now);
        self.line(depth, format!("{} {is_ready} for {since}: {}", full_name(package), ready.reason));
        self.line(depth + 1, &ready.message);
        let packages = blockers(package);
        for other in other_blockers(package) {
            self.line(depth + 1, format!("blocked by {} {} ({})", other.kind, other.name, other.reason));
        }
        for blocker in &packages {
            self.tell(blocker, depth + 1);
        }
        if packages.is_empty() {
            self.root(package, depth + 1);
        }
    }

    fn unseen(&mut self, package: &Package, depth: usize) {
        let age = age::since(package.metadata.creation_timestamp.as_ref(), self.now);
        let since = if is_looked_at(package) { String::new() } else { format!(", {age} after it was made") };
        self.line(depth, format!("{}: {}{since}", full_name(package), unseen(package)));
        self.line(depth + 1, format!("To do: {SEE_CONTROLLER}"));
    }

    /// Nobody else holds it up: what its open components and their objects say, down to
    /// the pods.
    fn root(&mut self, package: &Package, depth: usize) {
        let mut differs = false;
        for hook in open_hooks(package, self.found) {
            let since = age::since(hook.finished_at.as_ref().or(hook.started_at.as_ref()), self.now);
            self.line(depth, format!("hook {} is {} for {since}", hook.name, hook_state(hook.outcome)));
            differs |= self.children(package, &hook.name, depth + 1);
        }
        for component in open(package) {
            let since = age::since(component.since.as_ref(), self.now);
            self.line(depth, format!("component {} is {:?} for {since}", component.name, component.state));
            differs |= self.children(package, &component.name, depth + 1);
        }
        let Some(reason) = ready(package).and_then(|ready| Reason::parse(&ready.reason)) else { return };
        let todo = if differs && reason == Reason::Progressing { OUT_OF_SYNC } else { remedy(reason) };
        self.line(depth, format!("To do: {todo}"));
    }

    /// What the objects of a component or hook say, down to the pods. Whether Argo CD finds
    /// a difference that stays.
    fn children(&mut self, package: &Package, component: &str, depth: usize) -> bool {
        let mut differs = false;
        for object in children_of(package, component, self.found) {
            differs |= children::stays_out_of_sync(object);
            let child = child_name(object);
            for line in children::say(object) {
                self.line(depth, format!("{child}: {line}"));
            }
            for workload in self.found.workloads.iter().filter(|workload| workload.child == child) {
                for line in workloads::say(workload) {
                    self.line(depth + 1, line);
                }
            }
        }
        differs
    }
}

/// What to do where Argo CD has applied everything, and still finds a difference.
const OUT_OF_SYNC: &str = "Argo CD has applied these objects, and they differ still: it may not go on by itself. See what \
                           differs (`argocd app diff`); state it in the chart as the API server has it, or leave it to \
                           others with install.ignore.";

/// `kind/name` of a HelmRelease or Application.
pub fn child_name(object: &Map<String, Value>) -> String {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("object");
    let name = object.get("metadata").and_then(|m| m.get("name")).and_then(Value::as_str).unwrap_or_default();
    format!("{kind}/{name}")
}

fn other_blockers(package: &Package) -> impl Iterator<Item = &Blocker> {
    let status = package.status.as_ref();
    status.into_iter().flat_map(|status| &status.blocked_by).filter(|blocker| blocker.kind != "Package")
}

/// HelmReleases and Applications of a component.
pub fn children_of<'a>(
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
