//! Argo CD Applications.
//!
//! The Applications of one app-of-apps become one Package, and their sync waves its
//! dependency graph: waves order exactly the Applications of one parent. Those whose
//! parent is not known belong together because they were given together.

mod application;
mod chart;
mod family;
mod policy;
mod values;
mod waves;
mod wire;

use std::fmt;

use serde_json::{Map, Value};

use self::family::families;
use self::wire::{Object, Spec};
use super::wire::{Ignored, Unreadable, read};
use super::{Document, Imported, Options, Severity};

const GROUP: &str = "argoproj.io";
/// Namespace of Applications that name none: where Argo CD itself is.
const ARGO_NAMESPACE: &str = "argocd";

/// Namespace and name of an Application; no namespace if it names none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: String,
    name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        write!(formatter, "{}{separator}{}", self.namespace, self.name)
    }
}

/// An Application that was read.
#[derive(Debug)]
struct Application {
    key: Key,
    /// The file it was read from.
    origin: String,
    annotations: Map<String, Value>,
    finalizers: Vec<String>,
    spec: Spec,
    /// What Argo CD says that its source stands for at present.
    runs: Option<String>,
    ignored: Vec<Ignored>,
}

impl Application {
    fn read(document: &Document) -> Result<Self, Unreadable> {
        let (object, ignored) = read::<Object>(&document.value)?;
        let runs = document.text("/status/sync/revision");
        Ok(Self {
            key: Key { namespace: object.metadata.namespace.unwrap_or_default(), name: object.metadata.name },
            origin: document.origin.clone(),
            annotations: object.metadata.annotations,
            finalizers: object.metadata.finalizers,
            spec: object.spec,
            runs: Some(runs).filter(|runs| !runs.is_empty()).map(str::to_owned),
            ignored,
        })
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name)?.as_str()
    }
}

/// Turns Applications into Packages of the version in `options`, one for each
/// app-of-apps.
pub fn import(documents: &[Document], options: &Options<'_>) -> Imported {
    let mut imported = Imported::default();
    let mut applications: Vec<Application> = Vec::new();
    for document in documents {
        match (document.group(), document.kind()) {
            (GROUP, "Application") => add(&mut imported, &mut applications, document),
            (GROUP, "ApplicationSet") => {
                let message = format!(
                    "ApplicationSet {} is not carried over, since only Argo CD knows what it makes: give its \
                     Applications, as `argocd appset generate FILE -o yaml` or `kubectl get applications -o yaml` \
                     prints them",
                    document.text("/metadata/name")
                );
                imported.error(&document.origin, message);
            }
            (_, "") => imported.warn(&document.origin, "not read, since it is no Kubernetes object"),
            (_, kind) => {
                imported.warn(&document.origin, format!("not read: {kind} {}", document.text("/metadata/name")));
            }
        }
    }
    if applications.is_empty() {
        let message = "there is no Application in the input: where the app-of-apps is a chart, render it first, \
                       `helm template DIR | windlass import argo -`";
        imported.error(GROUP, message);
    }
    let Some(version) = options.version.as_ref().map(|version| version.as_written()) else {
        imported.error(GROUP, "Applications do not say the version of the whole: give --version");
        return imported;
    };
    for family in families(&applications) {
        application::Context { options, applications: &applications, version }.package(&mut imported, &family);
    }
    imported
}

fn add(imported: &mut Imported, applications: &mut Vec<Application>, document: &Document) {
    match Application::read(document) {
        Ok(application) => match applications.iter_mut().find(|known| known.key == application.key) {
            Some(known) => {
                let message = format!("Application {} occurs twice: the last one counts", application.key);
                imported.error(&document.origin, message);
                *known = application;
            }
            None => applications.push(application),
        },
        Err(error) => {
            let name = document.text("/metadata/name");
            let message = format!("left out, since Application {name} cannot be read: {error}");
            imported.error(document.place(&error), message);
        }
    }
}

fn report_ignored(imported: &mut Imported, subject: &str, ignored: &[Ignored]) {
    for Ignored { path, field, .. } in ignored {
        let (severity, reason) = why_ignored(path, field);
        imported.note(severity, subject, format!("{path} is not carried over: {reason}"));
    }
}

fn why_ignored(path: &str, field: &str) -> (Severity, &'static str) {
    let inside = |part: &str| path.split(['.', '[']).any(|known| known == part);
    match field {
        "kubeVersion" | "apiVersions" => (Severity::Error, "charts are rendered for the cluster that they go to"),
        "passCredentials" => (Severity::Error, "the source of the Package's charts is made without it"),
        "ignoreMissingValueFiles" => (Severity::Warning, "a values file that is not there is an error"),
        "skipTests" | "skipSchemaValidation" | "version" => (Severity::Warning, "charts are rendered as Helm does"),
        "sourceHydrator" => (Severity::Error, "a Package has no branch of rendered manifests"),
        "retry" => (Severity::Warning, "Windlass decides when a release is tried again"),
        "revisionHistoryLimit" => (Severity::Warning, "a Package keeps revisions: revisionHistoryLimit"),
        "allowEmpty" => (Severity::Warning, "it is the same for all children of Packages"),
        "operation" => (Severity::Warning, "it is no wish"),
        _ if inside("operation") || inside("status") => (Severity::Warning, "it is no wish"),
        _ if path.starts_with("metadata.") => (Severity::Warning, "it belongs to the object"),
        _ => (Severity::Warning, "Packages have no such field"),
    }
}
