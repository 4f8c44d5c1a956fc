//! Names and releases that only one Package or component can have.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::package::definition::{Component, Definition};
use crate::package::load::LoadedPackage;
use crate::package::names::{Namespace, ReleaseName, child_name, hook_child_name};
use crate::package::violation::{Code, Violation};

pub fn check(findings: &mut Findings<'_>) {
    packages(findings);
    children(findings);
    releases(findings);
}

fn packages(findings: &mut Findings<'_>) {
    let loaded = findings.loaded;
    let mut first: BTreeMap<(&str, &str), &LoadedPackage> = BTreeMap::new();
    for package in loaded.packages.iter().filter(|package| !package.name.is_empty()) {
        let key = (package.namespace.as_str(), package.name.as_str());
        if let Some(other) = first.get(&key) {
            let place = findings.place(other, "/metadata/name");
            let message = format!(
                "Package `{}` is there twice in namespace `{}`: also at {place}",
                package.name, package.namespace
            );
            let help = "remove one, or give it another name or namespace; if they are for different clusters, name one directory";
            findings.error(package, Violation::new(Code::DuplicatePackage, "/metadata/name", message).help(help));
        } else {
            first.insert(key, package);
        }
    }
}

/// One component and the Package it is in.
#[derive(Clone, Copy)]
pub(super) struct Owned<'a> {
    pub package: &'a LoadedPackage,
    pub definition: &'a Definition,
    pub component: &'a Component,
    pub position: usize,
}

impl Owned<'_> {
    fn pointer(&self) -> String {
        format!("/spec/components/{}/name", self.position)
    }

    fn child_name(&self) -> String {
        child_name(&self.definition.name, &self.component.name)
    }
}

/// Every component of every sound Package; a Package that is there twice counts once.
pub(super) fn owned<'a>(findings: &Findings<'a>) -> Vec<Owned<'a>> {
    let mut seen = BTreeSet::new();
    let packages = findings.loaded.packages.iter().filter_map(|package| Some((package, package.definition.as_ref()?)));
    let packages = packages.filter(|(_, definition)| seen.insert((&definition.namespace, &definition.name)));
    let components = packages.flat_map(|(package, definition)| {
        let components = definition.components.iter().enumerate();
        components.map(move |(position, component)| Owned { package, definition, component, position })
    });
    components.collect()
}

/// Objects of one name would be one object. Within a Package this cannot be
/// (hooks aside, which is a rule of one Package).
fn children(findings: &mut Findings<'_>) {
    let all = owned(findings);
    let mut first: BTreeMap<(&Namespace, String), Owned<'_>> = BTreeMap::new();
    for child in all.iter().filter(|child| !child.component.hook) {
        match first.entry((&child.definition.namespace, child.child_name())) {
            Entry::Vacant(vacant) => {
                vacant.insert(*child);
            }
            Entry::Occupied(other) => clash(findings, child, other.get(), &child.child_name()),
        }
    }
    hooks(findings, &all);
    for hook in all.iter().filter(|child| child.component.hook) {
        let prefix = format!("{}-", hook.child_name());
        let from = (&hook.definition.namespace, prefix.clone());
        let same_start = first
            .range(from..)
            .take_while(|((namespace, name), _)| *namespace == &hook.definition.namespace && name.starts_with(&prefix));
        let numbered = same_start.filter(|((_, name), other)| {
            let number = name.get(prefix.len()..).unwrap_or_default();
            number.bytes().all(|byte| byte.is_ascii_digit()) && other.definition.name != hook.definition.name
        });
        for ((_, name), other) in numbered {
            clash(findings, hook, other, name);
        }
    }
}

/// Hooks of two Packages whose objects have one name in the same revision.
fn hooks(findings: &mut Findings<'_>, all: &[Owned<'_>]) {
    let mut first: BTreeMap<(&Namespace, String), Owned<'_>> = BTreeMap::new();
    for hook in all.iter().filter(|child| child.component.hook) {
        let name = hook_child_name(&hook.definition.name, &hook.component.name, 1);
        let other = *first.entry((&hook.definition.namespace, name.clone())).or_insert(*hook);
        if other.definition.name != hook.definition.name {
            let message = format!(
                "hook `{}` of Package `{}` and hook `{}` of Package `{}` are both `{name}` in the cluster in revision 1",
                hook.component.name, hook.definition.name, other.component.name, other.definition.name
            );
            let help =
                format!("rename one of them; the other is at {}", findings.place(other.package, &other.pointer()));
            let violation = Violation::new(Code::ChildNameConflict, hook.pointer(), message).help(help);
            findings.error(hook.package, violation);
        }
    }
}

fn clash(findings: &mut Findings<'_>, child: &Owned<'_>, other: &Owned<'_>, name: &str) {
    let place = findings.place(other.package, &other.pointer());
    let message = format!(
        "component `{}` of Package `{}` and component `{}` of Package `{}` are both `{name}` in the cluster",
        child.component.name, child.definition.name, other.component.name, other.definition.name
    );
    let help = format!("rename one of them; the other is at {place}");
    findings.error(child.package, Violation::new(Code::ChildNameConflict, child.pointer(), message).help(help));
}

/// Two components that are one Helm release would overwrite each other for ever.
fn releases(findings: &mut Findings<'_>) {
    let mut first: BTreeMap<(&Namespace, &ReleaseName), Owned<'_>> = BTreeMap::new();
    for claim in owned(findings) {
        let identity = (&claim.component.namespace, &claim.component.release_name);
        let other = *first.entry(identity).or_insert(claim);
        let same_package = (&other.definition.namespace, &other.definition.name)
            == (&claim.definition.namespace, &claim.definition.name);
        if !same_package {
            let place = findings.place(other.package, &other.pointer());
            let message = format!(
                "component `{}` and component `{}` of Package `{}` are both release `{}` in namespace `{}`",
                claim.component.name,
                other.component.name,
                other.definition.name,
                claim.component.release_name,
                claim.component.namespace
            );
            let help = format!("give one of them another releaseName or namespace; the other is at {place}");
            findings.error(claim.package, Violation::new(Code::ReleaseConflict, claim.pointer(), message).help(help));
        }
    }
}
