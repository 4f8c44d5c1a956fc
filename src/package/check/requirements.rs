//! Requirements between the Packages of a set.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::package::definition::{Definition, Requirement, did_you_mean};
use crate::package::load::LoadedPackage;
use crate::package::names::{Namespace, PackageName};
use crate::package::range::Range;
use crate::package::violation::{Code, Violation};

pub fn check(findings: &mut Findings<'_>) {
    let set = Set::of(findings);
    set.unmet(findings);
    set.exclusions(findings);
    set.cycles(findings);
}

type Key<'a> = (&'a Namespace, &'a PackageName);

/// The sound Packages by namespace and name.
struct Set<'a> {
    packages: BTreeMap<Key<'a>, (&'a LoadedPackage, &'a Definition)>,
    /// Names of Packages with errors: they are there, whatever they say.
    unsound: BTreeSet<(&'a str, &'a str)>,
}

/// One requirement of a Package on another.
#[derive(Clone, Copy)]
struct Edge<'a> {
    position: usize,
    name: &'a PackageName,
    range: Option<&'a Range>,
    optional: bool,
}

fn edges(definition: &Definition) -> impl Iterator<Item = Edge<'_>> {
    definition.requires.iter().enumerate().filter_map(|(position, requirement)| match requirement {
        Requirement::Package { name, range, optional } => {
            Some(Edge { position, name, range: range.as_ref(), optional: *optional })
        }
        Requirement::Kubernetes { .. } => None,
    })
}

impl<'a> Set<'a> {
    fn of(findings: &Findings<'a>) -> Self {
        let mut set = Self { packages: BTreeMap::new(), unsound: BTreeSet::new() };
        for package in &findings.loaded.packages {
            match &package.definition {
                Some(definition) => {
                    set.packages.entry((&definition.namespace, &definition.name)).or_insert((package, definition));
                }
                None => {
                    set.unsound.insert((package.namespace.as_str(), package.name.as_str()));
                }
            }
        }
        set
    }

    /// Waiting is no error in a cluster, and what is required may be elsewhere.
    fn unmet(&self, findings: &mut Findings<'_>) {
        for (package, definition) in self.packages.values() {
            for edge in edges(definition) {
                let pointer = format!("/spec/requires/{}/package", edge.position);
                match (self.packages.get(&(&definition.namespace, edge.name)), edge.range) {
                    (Some((required, found)), Some(range)) if !range.admits(&found.version) => {
                        let place = findings.place(required, "/spec/version");
                        let message = format!("Package `{}` is at {} here, not in `{range}`", edge.name, found.version);
                        let help = format!("widen the range, or change the version at {place}");
                        let pointer = format!("/spec/requires/{}/version", edge.position);
                        findings.warning(package, Violation::new(Code::UnmetRequirement, pointer, message).help(help));
                    }
                    (Some(_), _) => {}
                    (None, _)
                        if edge.optional
                            || self.unsound.contains(&(definition.namespace.as_str(), edge.name.as_str())) => {}
                    (None, _) => {
                        let help = self.help_for_absent(definition, edge.name);
                        let message = format!(
                            "no Package `{}` in namespace `{}` among these files",
                            edge.name, definition.namespace
                        );
                        findings.warning(package, Violation::new(Code::UnmetRequirement, pointer, message).help(help));
                    }
                }
            }
        }
    }

    fn help_for_absent(&self, definition: &Definition, wanted: &PackageName) -> String {
        if let Some((elsewhere, _)) = self.packages.keys().find(|(_, name)| *name == wanted) {
            return format!("there is one in namespace `{elsewhere}`: requirements are met in the same namespace only");
        }
        let others = self.packages.keys().filter(|(namespace, _)| *namespace == &definition.namespace);
        let others = others.map(|(_, name)| name.as_str()).filter(|name| *name != definition.name.as_str());
        match did_you_mean(wanted.as_str(), others).as_str() {
            "" => "the Package will wait until something installs it".to_owned(),
            similar => similar.to_owned(),
        }
    }

    /// Two ranges of one Package that no version is in: whatever runs, one of
    /// the two that require it waits.
    fn exclusions(&self, findings: &mut Findings<'_>) {
        let mut wanted: BTreeMap<Key<'_>, Vec<(&LoadedPackage, &Definition, usize, &Range)>> = BTreeMap::new();
        for (package, definition) in self.packages.values() {
            for edge in edges(definition) {
                let Some(range) = edge.range else { continue };
                let others = wanted.entry((&definition.namespace, edge.name)).or_default();
                if let Some((other, by, position, excluded)) = others.iter().find(|(.., other)| other.excludes(range)) {
                    let place = findings.place(other, &format!("/spec/requires/{position}/version"));
                    let message = format!(
                        "no version of Package `{}` is both in `{range}` and in `{excluded}`, which Package `{}` requires",
                        edge.name, by.name
                    );
                    let help = format!("make the ranges overlap; the other is at {place}");
                    let pointer = format!("/spec/requires/{}/version", edge.position);
                    findings.warning(package, Violation::new(Code::RangesExclude, pointer, message).help(help));
                }
                others.push((package, definition, edge.position, range));
            }
        }
    }

    /// Each circle once, at the Package that comes first by name.
    fn cycles(&self, findings: &mut Findings<'_>) {
        let mut done: BTreeSet<Key<'_>> = BTreeSet::new();
        for &start in self.packages.keys() {
            let mut walk = Walk { set: self, path: Vec::new(), done: &mut done };
            let Some(circle) = walk.circle(start) else { continue };
            let names: Vec<&str> = circle.iter().chain(circle.first()).map(|(key, _)| key.1.as_str()).collect();
            if let Some(((key, position), (package, _))) =
                circle.first().and_then(|first| Some((*first, self.packages.get(&first.0)?)))
            {
                let message = format!("Packages require each other in a circle: {}", names.join(" -> "));
                let help = format!(
                    "none of them could ever start: remove one of these requirements of `{}` or the others",
                    key.1
                );
                let pointer = format!("/spec/requires/{position}/package");
                findings.error(package, Violation::new(Code::PackageCycle, pointer, message).help(help));
            }
        }
    }
}

/// A walk along requirements, without recursion: sets may be long chains.
struct Walk<'s, 'a> {
    set: &'s Set<'a>,
    /// Packages on the way, with the requirements that are still to be followed
    /// and the position of the one that is being followed.
    path: Vec<(Key<'a>, Vec<Edge<'a>>, usize)>,
    done: &'s mut BTreeSet<Key<'a>>,
}

impl<'a> Walk<'_, 'a> {
    /// The first circle found from here, each Package with the position of the
    /// requirement that leads on.
    fn circle(&mut self, start: Key<'a>) -> Option<Vec<(Key<'a>, usize)>> {
        self.enter(start);
        while let Some((key, open, following)) = self.path.last_mut() {
            let key = *key;
            let Some(edge) = open.pop() else {
                self.done.insert(key);
                self.path.pop();
                continue;
            };
            *following = edge.position;
            let next = (key.0, edge.name);
            if let Some(start) = self.path.iter().position(|(on_path, ..)| *on_path == next) {
                let circle: Vec<_> =
                    self.path.iter().skip(start).map(|(key, _, following)| (*key, *following)).collect();
                self.done.extend(self.path.iter().map(|(key, ..)| *key));
                return Some(circle);
            }
            self.enter(next);
        }
        None
    }

    fn enter(&mut self, key: Key<'a>) {
        if self.done.contains(&key) {
            return;
        }
        if let Some((own, (_, definition))) = self.set.packages.get_key_value(&key) {
            let mut open: Vec<Edge<'a>> = edges(definition).collect();
            open.reverse();
            self.path.push((*own, open, 0));
        }
    }
}
