//! What of two states has to be played: what changes, and what that waits for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Id, charts, groups, id};
use crate::package::definition::{RelativePath, Requirement};
use crate::rehearse::scene::Scene;
use crate::translate::Compiled;

/// The Packages that are played.
pub struct Scope {
    /// Those that the commit changes, by namespace and name.
    pub changed: Vec<Id>,
    /// What is said of it.
    pub notes: Vec<String>,
    /// What is played of the two states: Packages that have nothing to do with
    /// each other apart, so that a large commit takes no longer than its parts.
    pub scenes: Vec<Scene>,
}

impl Scope {
    /// `edited` has the paths of charts whose files change: with them changes a
    /// Package that says the same.
    pub fn of(from: &[Compiled], to: &[Compiled], edited: &BTreeSet<RelativePath>) -> Self {
        let before: BTreeMap<Id, &Compiled> = from.iter().map(|package| (id(package), package)).collect();
        let after: BTreeMap<Id, &Compiled> = to.iter().map(|package| (id(package), package)).collect();
        let ids: BTreeSet<&Id> = before.keys().chain(after.keys()).collect();
        let differs = |id: &&&Id| match (before.get(**id), after.get(**id)) {
            (Some(before), Some(after)) => charts::is_edited(after, edited) || !is_same(before, after),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        let changed: Vec<Id> = ids.iter().filter(differs).map(|id| (**id).clone()).collect();
        let played = played(&changed, &before, &after);
        let kept = |packages: &[Compiled]| -> Vec<Compiled> {
            packages.iter().filter(|package| played.contains(&id(package))).cloned().collect()
        };
        let mut unknown = BTreeSet::new();
        let known: Vec<&Compiled> = from.iter().chain(to).collect();
        let after: Vec<Compiled> =
            kept(to).into_iter().map(|package| without_unknown(package, &known, &mut unknown)).collect();
        let notes = unknown.into_iter().map(|name| format!("{name}: it is taken to be there"));
        let before = kept(from).into_iter().map(|package| running(package, from)).collect();
        let notes = notes.collect();
        let scenes = groups::apart(before, after).into_iter();
        let scenes = scenes.map(|(before, after)| Scene { before, after, ..Scene::default() });
        let mut scope = Self { changed, notes, scenes: Vec::new() };
        scope.scenes = scenes.filter(|scene| scope.changed_in(scene).next().is_some()).collect();
        scope
    }

    /// Those of a scene that the commit changes.
    pub fn changed_in<'a>(&'a self, scene: &'a Scene) -> impl Iterator<Item = &'a Id> {
        let played: BTreeSet<Id> = scene.before.iter().chain(&scene.after).map(id).collect();
        self.changed.iter().filter(move |changed| played.contains(*changed))
    }
}

/// Whether two states of a Package ask for the same. The commit that charts at
/// a path come from says nothing by itself.
fn is_same(before: &Compiled, after: &Compiled) -> bool {
    without_commit(&before.object) == without_commit(&after.object)
}

fn without_commit(object: &Map<String, Value>) -> Value {
    let mut object = Value::Object(object.clone());
    let components = object.pointer_mut("/spec/components").and_then(Value::as_array_mut);
    for component in components.into_iter().flatten() {
        if let Some(source) = component.get_mut("source").and_then(Value::as_object_mut) {
            source.remove("revision");
        }
    }
    object
}

/// What changes, all that it requires, directly or not, and all that requires it.
fn played(changed: &[Id], before: &BTreeMap<Id, &Compiled>, after: &BTreeMap<Id, &Compiled>) -> BTreeSet<Id> {
    let mut played: BTreeSet<Id> = changed.iter().cloned().collect();
    let all = || before.iter().chain(after.iter());
    let requirers = all().filter(|(_, package)| required(package).any(|required| played.contains(&required)));
    let requirers: Vec<Id> = requirers.map(|(id, _)| id.clone()).collect();
    played.extend(requirers);
    let mut open: Vec<Id> = played.iter().cloned().collect();
    while let Some(next) = open.pop() {
        let sides = [before.get(&next), after.get(&next)];
        for required in sides.into_iter().flatten().flat_map(|package| required(package)) {
            if played.insert(required.clone()) {
                open.push(required);
            }
        }
    }
    played
}

/// Packages that one requires.
pub fn required(package: &Compiled) -> impl Iterator<Item = Id> + '_ {
    let namespace = package.definition.namespace.to_string();
    package.definition.requires.iter().filter_map(move |requirement| match requirement {
        Requirement::Package { name, .. } => Some((namespace.clone(), name.to_string())),
        Requirement::Kubernetes { .. } => None,
    })
}

/// A Package that runs, whatever it waited for in its time. What it requires stays,
/// in any version: it may not go before the Package does.
fn running(mut package: Compiled, all: &[Compiled]) -> Compiled {
    let required = required(&package).filter(|wanted| all.iter().any(|other| id(other) == *wanted));
    let required: BTreeSet<String> = required.map(|(_, name)| name).collect();
    if let Some(spec) = package.object.get_mut("spec").and_then(Value::as_object_mut) {
        let requires: Vec<Value> = required.iter().map(|name| json!({"package": name})).collect();
        spec.shift_remove("requires");
        spec.shift_remove("suspend");
        if !requires.is_empty() {
            spec.insert("requires".to_owned(), requires.into());
        }
    }
    package.definition.requires.retain_mut(|requirement| match requirement {
        Requirement::Package { name, range, .. } if required.contains(name.as_str()) => {
            *range = None;
            true
        }
        Requirement::Package { .. } | Requirement::Kubernetes { .. } => false,
    });
    package.definition.suspend = false;
    package
}

/// Takes out what only the cluster can know.
fn without_unknown(mut package: Compiled, known: &[&Compiled], unknown: &mut BTreeSet<String>) -> Compiled {
    let namespace = package.definition.namespace.clone();
    let is_known = |name: &str| {
        known.iter().any(|other| other.definition.namespace == namespace && other.definition.name.as_str() == name)
    };
    package.definition.requires.retain(|requirement| match requirement {
        Requirement::Package { name, optional, .. } if !is_known(name.as_str()) => {
            if !optional {
                unknown.insert(format!("package {name} is required and is not among these files"));
            }
            false
        }
        Requirement::Package { .. } => true,
        Requirement::Kubernetes { range } => {
            unknown.insert(format!("Kubernetes {range} is required"));
            false
        }
    });
    if let Some(requires) =
        package.object.get_mut("spec").and_then(|spec| spec.get_mut("requires")).and_then(Value::as_array_mut)
    {
        requires.retain(|requirement| requirement.get("package").and_then(Value::as_str).is_some_and(is_known));
    }
    package
}
