//! From files to Packages and other manifests, with every place known.

mod document;
mod files;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;

use serde_json::Value;
use thiserror::Error;

use super::definition::Definition;
use super::diagnostic::{Diagnostic, Severity};
use super::names::Namespace;
use super::source::{Source, Span};
use super::tree::Tree;
use super::violation::{Code, Violation};
use super::yaml::Node;
use crate::api;

/// Something to read.
pub enum Input<'a> {
    /// A file, read whatever its name.
    File {
        /// Where it is.
        tree: &'a dyn Tree,
        /// Its path in the tree.
        path: String,
        /// Its name in messages.
        shown: String,
    },
    /// A directory: every `*.yaml` and `*.yml` below it, except below names that
    /// begin with a dot and in Helm charts (directories with a `Chart.yaml`).
    Directory {
        /// Where it is.
        tree: &'a dyn Tree,
        /// Its path in the tree; empty for the root.
        path: String,
        /// Its name in messages; empty to name files by their path alone.
        shown: String,
        /// How far it is searched.
        search: Search,
    },
    /// Text that is there already, such as standard input.
    Text {
        /// The bytes.
        bytes: Vec<u8>,
        /// Its name in messages.
        shown: String,
    },
}

impl Input<'_> {
    /// What tells a file that is named itself from all others.
    fn file(&self) -> Result<Option<String>, LoadError> {
        let Self::File { tree, path, shown } = self else { return Ok(None) };
        identity(*tree, path, shown).map(Some)
    }
}

fn identity(tree: &dyn Tree, path: &str, shown: &str) -> Result<String, LoadError> {
    tree.identity(path).map_err(|source| LoadError { path: shown.to_owned(), source })
}

/// Files that are read once, although several inputs lead to them.
#[derive(Default)]
struct Once {
    /// Nothing leads there twice.
    is_needless: bool,
    /// Files that are named themselves: in a directory they are left out.
    named: BTreeSet<String>,
    read: BTreeSet<String>,
}

impl Once {
    fn of(inputs: &[Input<'_>]) -> Result<Self, LoadError> {
        if inputs.len() < 2 {
            return Ok(Self { is_needless: true, ..Self::default() });
        }
        let named: Result<Vec<_>, _> = inputs.iter().map(Input::file).collect();
        Ok(Self { named: named?.into_iter().flatten().collect(), ..Self::default() })
    }

    /// Whether a file that is named itself has not been read yet.
    fn takes_named(&mut self, tree: &dyn Tree, path: &str, shown: &str) -> Result<bool, LoadError> {
        Ok(self.is_needless || self.read.insert(identity(tree, path, shown)?))
    }

    /// The same of one in a directory.
    fn takes(&mut self, tree: &dyn Tree, path: &str, shown: &str) -> Result<bool, LoadError> {
        if self.is_needless {
            return Ok(true);
        }
        let identity = identity(tree, path, shown)?;
        Ok(!self.named.contains(&identity) && self.read.insert(identity))
    }
}

/// How far a directory is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Its own files.
    Here,
    /// Those of the directories below it as well.
    Below,
    /// The same of a repository in which other things may lie: files that can
    /// have nothing to do with a Package are left alone, whatever is in them.
    Repository,
}

/// Which namespace a Package is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceRule {
    /// The one it names, else this one.
    Default(Namespace),
    /// This one, whatever it names.
    Forced(Namespace),
}

/// A Package document.
#[derive(Clone, Debug)]
pub struct LoadedPackage {
    /// Index of its file in [`Loaded::sources`].
    pub source: usize,
    /// The document with places.
    pub root: Node,
    /// `metadata.name`; empty if there is none.
    pub name: String,
    /// The namespace it is in, by [`NamespaceRule`].
    pub namespace: String,
    /// The typed object, as far as its shape fits: absent if hopeless.
    pub package: Option<api::Package>,
    /// What it says, if nothing is wrong with the Package taken by itself.
    pub definition: Option<Definition>,
}

/// A manifest of another kind.
#[derive(Clone, Debug)]
pub struct OtherManifest {
    /// Index of its file in [`Loaded::sources`].
    pub source: usize,
    /// Where it begins.
    pub span: Span,
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its `kind`.
    pub kind: String,
    /// Its `metadata.name`; empty if there is none.
    pub name: String,
    /// The document as it stands, keys in the order of the file.
    pub value: Value,
}

/// Group of kustomize's own files: they look like manifests, but no cluster knows their kinds.
pub const KUSTOMIZE_GROUP: &str = "kustomize.config.k8s.io";

impl OtherManifest {
    /// The group of its `apiVersion`; empty for the core's.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Whether a file of kustomize does more than list files that lie beside it.
fn asks_for_more(kustomization: &Value) -> bool {
    let lists = ["apiVersion", "kind", "metadata", "resources"];
    let mut keys = kustomization.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let resources = kustomization.get("resources").and_then(Value::as_array).into_iter().flatten();
    let leads_out = |resource: &str| resource.starts_with("..") || resource.contains("//") || resource.contains(':');
    keys.any(|key| !lists.contains(&key)) || resources.filter_map(Value::as_str).any(leads_out)
}

/// What was read, in the order of the inputs, of the names in a directory and
/// of the documents in a file.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The files.
    pub sources: Vec<Source>,
    /// The Packages, including those with errors.
    pub packages: Vec<LoadedPackage>,
    /// Manifests of other kinds.
    pub others: Vec<OtherManifest>,
    /// What is wrong with files, documents and Packages taken by themselves.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file or directory that could not be read.
#[derive(Debug, Error)]
#[error("cannot read {path}")]
pub struct LoadError {
    /// Its name in messages.
    pub path: String,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Reads all inputs; a file that several lead to once.
///
/// What is wrong with their content is in [`Loaded::diagnostics`].
///
/// # Errors
/// When something cannot be read at all.
pub fn load(inputs: &[Input<'_>], namespace: &NamespaceRule) -> Result<Loaded, LoadError> {
    let mut loaded = Loaded::default();
    let mut once = Once::of(inputs)?;
    for input in inputs {
        files::read_input(input, namespace, &mut once, &mut loaded)?;
    }
    Ok(loaded)
}

impl Loaded {
    /// Whether anything found is an error, so that nothing should be made of it.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Makes an error of each document that is no Kubernetes object and of each file
    /// that cannot be read, wherever they were found: whoever applies the rest and prunes
    /// would delete the object that was meant to be there.
    pub fn refuse_stray_documents(&mut self) {
        let codes = [Code::NotAnObject, Code::NotText, Code::TooLarge, Code::PathEscapes];
        let of_files = |found: &&mut Diagnostic| found.package.is_none() && codes.contains(&found.code);
        for diagnostic in self.diagnostics.iter_mut().filter(of_files) {
            diagnostic.severity = Severity::Error;
        }
    }

    /// Files of kustomize that ask for more than files of this directory, by their paths: nobody
    /// runs it on the way.
    pub fn kustomizations(&self) -> impl Iterator<Item = &str> {
        let asks = |other: &&OtherManifest| {
            other.kind == "Kustomization" && other.group() == KUSTOMIZE_GROUP && asks_for_more(&other.value)
        };
        self.others.iter().filter(asks).filter_map(|other| self.sources.get(other.source)).map(Source::path)
    }

    /// What is said of files and directories that were passed over although Packages could
    /// be in them.
    pub fn passed_over(&self) -> impl Iterator<Item = &str> {
        let codes = [Code::NotText, Code::TooLarge, Code::PathEscapes];
        let of_files = move |found: &&Diagnostic| {
            found.package.is_none() && found.severity == Severity::Warning && codes.contains(&found.code)
        };
        self.diagnostics.iter().filter(of_files).map(|found| found.message.as_str())
    }
}

impl LoadedPackage {
    /// A finding about this Package. The component is the one the violation's
    /// pointer leads into.
    pub fn diagnostic(&self, severity: Severity, violation: Violation) -> Diagnostic {
        let span = self.root.locate(&violation.pointer);
        self.diagnostic_at(severity, violation, span)
    }

    /// The same, for a place found otherwise.
    pub fn diagnostic_at(&self, severity: Severity, violation: Violation, span: Span) -> Diagnostic {
        let index = violation.pointer.strip_prefix("/spec/components/").and_then(|rest| rest.split('/').next());
        let component = index.and_then(|index| self.root.find(&format!("/spec/components/{index}/name")));
        Diagnostic {
            code: violation.code,
            severity,
            source: self.source,
            span,
            package: Some(self.name.clone()).filter(|name| !name.is_empty()),
            component: component.and_then(Node::as_text).map(str::to_owned),
            message: violation.message,
            help: violation.help,
            fix: None,
        }
    }
}

/// A finding about a file or a document that belongs to no Package.
fn finding(source: usize, span: Span, code: Code, message: impl Into<String>, help: &str) -> Diagnostic {
    Diagnostic {
        code,
        severity: Severity::Error,
        source,
        span,
        package: None,
        component: None,
        message: message.into(),
        help: help.into(),
        fix: None,
    }
}
