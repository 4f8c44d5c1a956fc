//! Edges that are missing: a component uses what another one brings, and nothing
//! says which comes first.

mod part;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Findings;
use super::names::owned;
use crate::chart::Library;
use crate::package::definition::{Definition, Requirement};
use crate::package::diagnostic::{Diagnostic, Fix, Severity};
use crate::package::edit::add_dependencies;
use crate::package::violation::{Code, Violation};

use part::{Part, Thing, Uses};

/// Most entries of `dependsOn`.
const MOST_DEPENDENCIES: usize = 16;
/// So many uses are named one by one.
const NAMED: usize = 3;

pub fn check(library: &Library<'_>, findings: &mut Findings<'_>) {
    let set = Set::of(library, findings);
    let missing = set.missing();
    let edges = set.edges_with(&missing);
    let fixes = set.fixes(&missing, &edges, findings);
    for ((at, owners), uses) in &missing {
        let found = set.within(*at, owners, uses, &edges, &fixes);
        findings.found.extend(found);
    }
    let between: Vec<_> = set.missing_requirements().into_iter().collect();
    findings.found.extend(between.iter().filter_map(|((at, package), uses)| set.between(*at, package, uses)));
}

/// Uses of what components bring, by positions of who uses it and who brings it.
type Missing = BTreeMap<(usize, Vec<usize>), Uses>;
/// For each component those that it depends on.
type Edges = Vec<BTreeSet<usize>>;
/// The Packages by namespace and name.
type Packages<'a> = BTreeMap<(&'a str, &'a str), &'a Definition>;

struct Set<'a> {
    parts: Vec<Part<'a>>,
    packages: Packages<'a>,
    declared: Edges,
    brought: BTreeMap<Thing, Vec<usize>>,
}

impl<'a> Set<'a> {
    /// Every component; hooks run when all is there, and nothing waits for them.
    fn of(library: &Library<'_>, findings: &Findings<'a>) -> Self {
        let definitions = findings.loaded.packages.iter().filter_map(|package| package.definition.as_ref());
        let packages =
            definitions.map(|definition| ((definition.namespace.as_str(), definition.name.as_str()), definition));
        let packages: Packages<'a> = packages.collect();
        let parts = owned(findings).into_iter().filter(|own| !own.component.hook);
        let parts: Vec<Part<'a>> = parts.map(|own| Part { own, look: library.look(own.component) }).collect();
        let positions: BTreeMap<_, usize> =
            parts.iter().enumerate().map(|(at, part)| ((part.package(), part.name()), at)).collect();
        let above = |part: &Part<'a>| -> BTreeSet<usize> {
            let names = part.own.component.depends_on.iter();
            names.filter_map(|name| positions.get(&(part.package(), name.as_str())).copied()).collect()
        };
        let declared = parts.iter().map(above).collect();
        let mut brought: BTreeMap<Thing, Vec<usize>> = BTreeMap::new();
        for (at, part) in parts.iter().enumerate() {
            part.brings().into_iter().for_each(|thing| brought.entry(thing).or_default().push(at));
        }
        Self { packages, declared, brought, parts }
    }

    /// What a component uses that others bring, none of which comes first.
    fn unordered(&self, at: usize) -> Vec<(&[usize], Thing, String)> {
        let Some(part) = self.parts.get(at) else { return Vec::new() };
        let required = self.required(part.package());
        let comes_first = |owner: &usize| {
            let other = self.parts.get(*owner).map(Part::package).unwrap_or_default();
            *owner == at
                || (other == part.package() && path(&self.declared, at, *owner).is_some())
                || required.contains(&other)
        };
        let uses = part.uses().into_iter();
        uses.filter_map(|(thing, place)| {
            let owners = self.brought.get(&thing)?;
            (!owners.iter().any(comes_first)).then_some((owners.as_slice(), thing, place))
        })
        .collect()
    }

    /// Within Packages.
    fn missing(&self) -> Missing {
        let mut missing = Missing::new();
        for (at, part) in self.parts.iter().enumerate() {
            for (owners, thing, place) in self.unordered(at) {
                let own = |owner: &&usize| self.parts.get(**owner).map(Part::package) == Some(part.package());
                let owners: Vec<usize> = owners.iter().filter(own).copied().collect();
                if !owners.is_empty() {
                    missing.entry((at, owners)).or_default().insert(thing, place);
                }
            }
        }
        missing
    }

    /// Between Packages of a namespace, by the component and the other Package.
    fn missing_requirements(&self) -> BTreeMap<(usize, &'a str), Uses> {
        let mut missing: BTreeMap<(usize, &'a str), Uses> = BTreeMap::new();
        for (at, part) in self.parts.iter().enumerate() {
            for (owners, thing, place) in self.unordered(at) {
                let packages: BTreeSet<_> =
                    owners.iter().filter_map(|owner| self.parts.get(*owner)).map(Part::package).collect();
                // Where several bring it, or one elsewhere, it is not known which is meant.
                let mut packages = packages.into_iter();
                if let (Some((namespace, name)), None) = (packages.next(), packages.next())
                    && namespace == part.package().0
                    && name != part.package().1
                {
                    missing.entry((at, name)).or_default().insert(thing, place);
                }
            }
        }
        missing
    }

    /// Packages that a Package requires, directly or not.
    fn required(&self, package: (&'a str, &'a str)) -> BTreeSet<(&'a str, &'a str)> {
        let mut required = BTreeSet::new();
        let mut open = vec![package];
        while let Some(next) = open.pop() {
            let Some(definition) = self.packages.get(&next) else { continue };
            for requirement in &definition.requires {
                if let Requirement::Package { name, .. } = requirement
                    && required.insert((definition.namespace.as_str(), name.as_str()))
                {
                    open.push((definition.namespace.as_str(), name.as_str()));
                }
            }
        }
        required
    }

    /// What is declared, and all that is missing where it is certain what.
    fn edges_with(&self, missing: &Missing) -> Edges {
        let mut edges = self.declared.clone();
        for (part, owners) in missing.keys() {
            if let (Some(above), [owner]) = (edges.get_mut(*part), owners.as_slice()) {
                above.insert(*owner);
            }
        }
        edges
    }

    /// What adds all that is missing to a component, but for what would close a
    /// circle.
    fn fixes(&self, missing: &Missing, edges: &Edges, findings: &Findings<'_>) -> BTreeMap<usize, Fix> {
        let mut wanted: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (at, owners) in missing.keys() {
            if let [owner] = owners.as_slice()
                && path(edges, *owner, *at).is_none()
            {
                wanted.entry(*at).or_default().extend(self.parts.get(*owner).map(Part::name));
            }
        }
        let fix = |(at, names): (usize, Vec<&str>)| {
            let own = &self.parts.get(at)?.own;
            let source = findings.loaded.sources.get(own.package.source)?;
            let fits = own.component.depends_on.len() + names.len() <= MOST_DEPENDENCIES;
            let fix = fits.then(|| add_dependencies(source, &own.package.root, own.position, &names))??;
            Some((at, fix))
        };
        wanted.into_iter().filter_map(fix).collect()
    }

    fn within(
        &self,
        at: usize,
        owners: &[usize],
        uses: &Uses,
        edges: &Edges,
        fixes: &BTreeMap<usize, Fix>,
    ) -> Option<Diagnostic> {
        let part = self.parts.get(at)?;
        let names = |owners: &[usize]| -> Vec<&str> {
            owners.iter().filter_map(|owner| self.parts.get(*owner)).map(Part::name).collect()
        };
        let circle = match owners {
            [owner] => path(edges, *owner, at),
            _ => None,
        };
        let (name, told) = (part.name(), told(uses));
        let one = names(owners).iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
        let brings = if owners.len() == 1 { "brings" } else { "bring" };
        let message = format!("component `{name}` uses {told}, which {one} {brings}, and does not depend on it");
        let (help, fix) = match (owners, circle) {
            ([_], None) => {
                let fix = fixes.get(&at).cloned();
                let by = if fix.is_some() { "; `validate --fix` does" } else { "" };
                (format!("add {one} to install.dependsOn{by}"), fix)
            }
            ([_], Some(circle)) => {
                let circle = std::iter::once(name).chain(names(&circle)).collect::<Vec<_>>().join(" -> ");
                let help = format!(
                    "depending on it would close a circle, {circle}: move what is shared into a component of its own"
                );
                (help, None)
            }
            (_, _) => (format!("add to install.dependsOn the one of {one} that is meant"), None),
        };
        let pointer = format!("/spec/components/{}/install/dependsOn", part.own.position);
        let violation = Violation::new(Code::MissingEdge, pointer, message).help(help);
        Some(Diagnostic { fix, ..part.own.package.diagnostic(Severity::Warning, violation) })
    }

    fn between(&self, at: usize, other: &str, uses: &Uses) -> Option<Diagnostic> {
        let part = self.parts.get(at)?;
        let (namespace, own) = part.package();
        let (name, told) = (part.name(), told(uses));
        let message =
            format!("component `{name}` uses {told}, which Package `{other}` brings, and this one does not require it");
        let help = match self.required((namespace, other)).contains(&(namespace, own)) {
            false => format!("add `- package: {other}` to requires"),
            true => format!(
                "`{other}` requires `{own}`, so requiring it would close a circle: move what is shared into a Package of its own"
            ),
        };
        let pointer = format!("/spec/components/{}/name", part.own.position);
        let violation = Violation::new(Code::MissingEdge, pointer, message).help(help);
        Some(part.own.package.diagnostic(Severity::Warning, violation))
    }
}

/// Uses in words.
fn told(uses: &Uses) -> String {
    let mut told: Vec<String> = uses.iter().take(NAMED).map(|(thing, place)| format!("{thing} ({place})")).collect();
    if uses.len() > NAMED {
        told.push(format!("{} more", uses.len() - NAMED));
    }
    match told.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => told.concat(),
    }
}

/// The shortest way along edges, both ends included.
fn path(edges: &Edges, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = VecDeque::from([from]);
    while let Some(next) = open.pop_front() {
        if next == to {
            let mut way = vec![next];
            way.extend(std::iter::successors(Some(next), |at| before.get(at).copied()).skip(1));
            way.reverse();
            return Some(way);
        }
        for above in edges.get(next).into_iter().flatten() {
            if *above != from && !before.contains_key(above) {
                before.insert(*above, next);
                open.push_back(*above);
            }
        }
    }
    None
}
