//! Other formats turned into Packages, with a note on everything that could
//! not be carried over. Pure: parsed documents in, Packages and notes out.

pub mod argo;
pub mod cozystack;
pub mod flux;
mod group;
pub mod helmfile;
pub mod kubepkg;
mod note;
mod package_source;
mod place;
mod set;
mod sound;
mod values;
mod wire;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::{Component, Install, Package, PackageSpec};
use crate::package::definition;
use crate::package::names::{Namespace, PackageName};
use crate::package::pointer::is_within;
use crate::package::version::Version;
use crate::package::violation::{Code, Violation};
use crate::package::{structure, yaml};

pub use place::Written;

pub use note::{Note, NoteGroup, Severity, grouped};

/// Namespace of imported Packages where neither the caller nor the input names one.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Longest name of a component.
const MAX_COMPONENT_NAME: usize = 53;

/// One parsed document of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it was read, for messages.
    pub origin: String,
    /// Its content.
    pub value: Value,
    /// Where it is in its file, if that is known.
    pub written: Option<Written>,
}

impl Document {
    fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// API group of the document; empty for the core group.
    fn group(&self) -> &str {
        self.text("/apiVersion").split_once('/').map_or("", |(group, _)| group)
    }
}

/// What looking for something among the files of the source gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// There is no directory to look into.
    NotLooked,
    /// It.
    Found(String),
    /// It should be there, but is not; says why.
    Problem(String),
}

/// How an import is done.
pub struct Options<'a> {
    /// Version of Packages whose input has none; stands in for chart versions too.
    pub version: Option<Version>,
    /// Namespace of all Packages.
    pub namespace: Option<Namespace>,
    /// Chosen variant by name of the package.
    pub variants: BTreeMap<String, String>,
    /// Version in the Chart.yaml of a directory of the source.
    pub chart_version: &'a dyn Fn(&str) -> Lookup,
    /// Text of a file of the source.
    pub file: &'a dyn Fn(&str) -> Lookup,
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    /// The Packages, in the order of the input.
    pub packages: Vec<Package>,
    /// What their reader must know.
    pub notes: Vec<Note>,
}

impl Imported {
    fn warn(&mut self, subject: impl Into<String>, message: impl Into<String>) {
        self.note(Severity::Warning, subject, message);
    }

    fn error(&mut self, subject: impl Into<String>, message: impl Into<String>) {
        self.note(Severity::Error, subject, message);
    }

    fn note(&mut self, severity: Severity, subject: impl Into<String>, message: impl Into<String>) {
        self.notes.push(Note { severity, subject: subject.into(), message: message.into() });
    }

    /// Keeps a Package and says which rules of the format it breaks.
    fn push(&mut self, name: &str, namespace: &str, spec: PackageSpec) {
        let same = |known: &Package| {
            (known.metadata.name.as_deref(), known.metadata.namespace.as_deref()) == (Some(name), Some(namespace))
        };
        if self.packages.iter().any(same) {
            return self.error(name, "left out, since there is another package of this name");
        }
        // Names become names of files.
        let names = PackageName::parse(name).map(|_| ()).and(Namespace::parse(namespace).map(|_| ()));
        if let Err(error) = names {
            return self.error(name, format!("left out: {error}"));
        }
        let mut violations = definition::parse(name, namespace, &spec).err().unwrap_or_default();
        let mut package = Package::new(name, spec);
        package.metadata.namespace = Some(namespace.to_owned());
        let said = |shape: &Violation| violations.iter().any(|known| is_about_the_same(&known.pointer, &shape.pointer));
        let shape: Vec<Violation> = shape(&package).into_iter().filter(|shape| !said(shape)).collect();
        violations.extend(shape);
        let known = self.notes.len();
        for violation in violations {
            self.violation(name, &package.spec, &violation, known);
        }
        self.packages.push(package);
    }

    /// Says which rule a Package breaks, by its fields, unless one of the first
    /// `known` notes has said more of the field already.
    fn violation(&mut self, package: &str, spec: &PackageSpec, violation: &Violation, known: usize) {
        let field = violation.pointer.strip_prefix("/spec/").unwrap_or(&violation.pointer);
        let inside = field.strip_prefix("components/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
        let component =
            inside.and_then(|(index, field)| Some((spec.components.get(index.parse::<usize>().ok()?)?, field)));
        let (subject, field) = match component {
            // Why it has no chart has been said.
            Some((component, "")) if component.chart.is_none() && component.path.is_none() => return,
            Some((component, field)) => (format!("{package}/{}", component.name), field),
            None => (package.to_owned(), field),
        };
        let place = if field.is_empty() { String::new() } else { format!("{}: ", field.replace('/', ".")) };
        let says = |note: &Note| note.subject == subject && !place.is_empty() && note.message.starts_with(&place);
        if self.notes.iter().take(known).any(says) {
            return;
        }
        self.error(subject, format!("{place}{} ({})", violation.message, violation.code));
    }

    /// Fills `chartVersion` of a component with a path: from its Chart.yaml,
    /// else from the version of the whole, which is a guess and said so.
    fn chart_version(&mut self, subject: &str, component: &mut Component, version: &str, options: &Options<'_>) {
        let Some(path) = &component.path else { return };
        let (found, problem) = match (options.chart_version)(path) {
            Lookup::Found(found) => (Some(found), None),
            Lookup::NotLooked => (None, None),
            Lookup::Problem(problem) => (None, Some(problem)),
        };
        if let Some(problem) = problem {
            self.error(subject, format!("{problem}: chartVersion is {version} for want of a better one"));
        } else if found.is_none() {
            self.warn(
                subject,
                format!(
                    "chartVersion is a guess, {version}: give --chart-root to have it read from Chart.yaml; on Flux \
                     the component waits until its chart has this version"
                ),
            );
        }
        component.chart_version = Some(found.unwrap_or_else(|| version.to_owned()));
    }

    /// Says that a source of another kind or namespace must be replaced by a
    /// GitRepository beside the Packages.
    fn source(&mut self, package: &str, source: &ForeignSource<'_>, namespace: &str) {
        let ForeignSource { kind, name, namespace: at } = source;
        if *kind != "GitRepository" {
            self.warn(
                package,
                format!(
                    "charts come from {kind} {name}; Windlass reads charts at a path from a GitRepository: create \
                     GitRepository {namespace}/{name} with the same content"
                ),
            );
        } else if at.is_some_and(|at| at != namespace) {
            let at = at.unwrap_or_default();
            self.warn(
                package,
                format!(
                    "charts come from GitRepository {at}/{name}; a Package uses sources of its own namespace: create \
                     GitRepository {namespace}/{name}"
                ),
            );
        }
    }
}

/// What an API server would say about the fields of a Package.
fn shape(package: &Package) -> Vec<Violation> {
    let written = serde_json::to_value(package).map_err(|error| error.to_string());
    let written = written.and_then(|value| yaml::write::write(&[value]).map_err(|error| error.to_string()));
    match written {
        Ok(text) => {
            let roots = yaml::parse(&text).documents;
            let findings = roots.iter().flat_map(|root| structure::check(root).findings);
            findings.map(|finding| finding.violation).collect()
        }
        Err(error) => vec![Violation::new(Code::WrongType, "", error)],
    }
}

/// Whether one of two places is in the other.
fn is_about_the_same(one: &str, other: &str) -> bool {
    is_within(one, other) || is_within(other, one)
}

/// A Flux source as another format names it.
struct ForeignSource<'a> {
    kind: &'a str,
    name: &'a str,
    namespace: Option<&'a str>,
}

/// A spec that says nothing but what every Package says.
fn bare(version: impl Into<String>, components: Vec<Component>) -> PackageSpec {
    PackageSpec {
        version: version.into(),
        engine: None,
        suspend: None,
        service_account_name: None,
        source_ref: None,
        requires: vec![],
        upgrade: None,
        rollback: None,
        deletion_policy: None,
        revision_history_limit: None,
        components,
    }
}

/// `install` where it says anything.
fn stated(install: Install) -> Option<Install> {
    (install != Install::default()).then_some(install)
}

/// A path as seen from a directory of the source, both tidied; `None` if it leads
/// out of the source.
fn resolved(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// A name of another format as that of a component.
fn component_name(name: &str) -> String {
    let label = name.replace('.', "-");
    label.get(..MAX_COMPONENT_NAME).unwrap_or(&label).trim_end_matches('-').to_owned()
}

/// Joins a directory of the source and a path below it.
fn join_path(prefix: &str, path: &str) -> String {
    let parts = prefix.split('/').chain(path.split('/'));
    parts.filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}
