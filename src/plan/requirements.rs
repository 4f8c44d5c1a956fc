//! How the requirements of a Package stand, before and after the commit.

use super::{Requirement, RequirementState, Sides, State};
use crate::package::definition::{self, Definition};
use crate::package::names::PackageName;
use crate::package::range::Range;
use crate::package::version::Version;

pub fn of(sides: &Sides<'_>) -> Vec<Requirement> {
    let Some(to) = sides.to else { return Vec::new() };
    let requires = to.definition.requires.iter();
    requires.filter_map(|requirement| one(sides, requirement)).collect()
}

fn one(sides: &Sides<'_>, requirement: &definition::Requirement) -> Option<Requirement> {
    match requirement {
        definition::Requirement::Kubernetes { range } => Some(Requirement {
            what: "kubernetes".to_owned(),
            range: Some(range.to_string()),
            state: RequirementState::Unknown,
            message: "the cluster decides".to_owned(),
        }),
        definition::Requirement::Package { name, range, optional } => package(sides, name, range.as_ref(), *optional),
    }
}

fn package(sides: &Sides<'_>, name: &PackageName, range: Option<&Range>, optional: bool) -> Option<Requirement> {
    let before = version(sides, sides.states.0, name);
    let after = version(sides, sides.states.1, name);
    let admits = |version: &Version| range.is_none_or(|range| range.admits(version));
    let (state, message) = match (before, after) {
        (_, None) if optional => return None,
        (_, None) => (RequirementState::Unknown, "it is not among these files: it must be in the cluster".to_owned()),
        (Some(before), Some(after)) if before == after && admits(after) => {
            (RequirementState::Met, format!("{after} runs"))
        }
        (Some(before), Some(after)) if range.is_some() && admits(before) && admits(after) => {
            (RequirementState::Met, format!("{before} runs; until {after} does, if {name} begins first"))
        }
        (_, Some(after)) if admits(after) => {
            (RequirementState::MetAfter, format!("until this commit has brought it to {after}"))
        }
        (_, Some(after)) => (RequirementState::NotMet, format!("{after} is wanted of it")),
    };
    Some(Requirement { what: format!("package {name}"), range: range.map(ToString::to_string), state, message })
}

fn version<'a>(sides: &Sides<'_>, state: State<'a>, name: &PackageName) -> Option<&'a Version> {
    let found = state
        .packages
        .iter()
        .find(|package| package.definition.namespace.as_str() == sides.id.0 && package.definition.name == *name);
    found.map(|package| &package.definition.version)
}

/// Ranges that order nothing, and ranges of several packages that leave no
/// version of one that they require.
pub fn warnings(sides: &Sides<'_>) -> Vec<String> {
    let Some(to) = sides.to else { return Vec::new() };
    let mut warnings = Vec::new();
    for requirement in &to.definition.requires {
        if let definition::Requirement::Package { name, range: Some(range), .. } = requirement {
            warnings.extend(orders_nothing(sides, name, range));
        }
    }
    warnings.extend(excluded(sides, &to.definition));
    warnings
}

fn orders_nothing(sides: &Sides<'_>, name: &PackageName, range: &Range) -> Option<String> {
    let (before, after) = (version(sides, sides.states.0, name)?, version(sides, sides.states.1, name)?);
    (before != after && range.admits(before) && range.admits(after)).then(|| {
        format!(
            "package {name} goes from {before} to {after}, and `{range}` admits both: it orders nothing unless {name} has begun first"
        )
    })
}

/// Packages whose ranges do not admit what is wanted of this one.
fn excluded(sides: &Sides<'_>, own: &Definition) -> Vec<String> {
    let requirers = sides.states.1.packages.iter().filter(|other| other.definition.namespace == own.namespace);
    requirers
        .flat_map(|other| other.definition.requires.iter().map(move |requirement| (&other.definition, requirement)))
        .filter_map(|(other, requirement)| match requirement {
            definition::Requirement::Package { name, range: Some(range), .. }
                if *name == own.name && !range.admits(&own.version) =>
            {
                Some(format!("package {} requires {} of it, which {} is not", other.name, range, own.version))
            }
            definition::Requirement::Package { .. } | definition::Requirement::Kubernetes { .. } => None,
        })
        .collect()
}
