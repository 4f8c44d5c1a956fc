//! Flux HelmReleases with their sources.
//!
//! HelmReleases that `dependsOn` connects, directly or through others, become
//! one Package: these are the ones whose order matters, and a Package moves its
//! components one after the other and rolls them back together. A Package per
//! namespace would make unrelated releases wait for each other.

mod chart;
mod group;
mod release;
mod wire;

use std::collections::BTreeMap;
use std::fmt;

use self::chart::Sources;
use self::release::Release;
use self::wire::{Object, ReleaseSpec};
use super::wire::{Ignored, read};
use super::{DEFAULT_NAMESPACE, Document, Imported, Options, Severity};
use crate::package::names::hex;

const HELM_GROUP: &str = "helm.toolkit.fluxcd.io";
const SOURCE_GROUP: &str = "source.toolkit.fluxcd.io";

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    namespace: String,
    name: String,
}

impl Key {
    fn of(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// Turns HelmReleases into Packages of the version in `options`.
///
/// Without a namespace in `options` every Package is in the namespace of its
/// HelmReleases, where their Secrets and sources are, and edges into other
/// namespaces are lost, which is an error note. With one, all HelmReleases are
/// gathered there and all edges kept.
pub fn import(documents: &[Document], options: &Options<'_>) -> Imported {
    let mut imported = Imported::default();
    let fallback = options.namespace.as_ref().map_or(DEFAULT_NAMESPACE, |namespace| namespace.as_str());
    let mut sources = Sources::new();
    let mut releases = BTreeMap::new();
    let mut keys = Vec::new();
    for document in documents {
        let namespace = document.text("/metadata/namespace");
        let key = Key::of(if namespace.is_empty() { fallback } else { namespace }, document.text("/metadata/name"));
        match (document.group(), document.kind()) {
            (HELM_GROUP, "HelmRelease") => {
                if let Some(release) = read_release(&mut imported, document, &key) {
                    if releases.insert(key.clone(), release).is_some() {
                        imported
                            .error(&document.origin, format!("HelmRelease {key} occurs twice: the last one counts"));
                    } else {
                        keys.push(key);
                    }
                }
            }
            (SOURCE_GROUP, kind) => {
                sources.insert((kind, key), document);
            }
            (_, "") => imported.warn(&document.origin, "not read, since it is no Kubernetes object"),
            (_, kind) => {
                imported.warn(&document.origin, format!("not read: {kind} {}", document.text("/metadata/name")))
            }
        }
    }
    if keys.is_empty() {
        imported.error(HELM_GROUP, "there is no HelmRelease in the input");
    }
    let Some(version) = options.version.as_ref().map(|version| version.as_written()) else {
        imported.error(HELM_GROUP, "HelmReleases do not say the version of the whole: give --version");
        return imported;
    };
    let context = release::Context { options, sources: &sources, releases: &releases, version };
    for group in group::groups(&keys, &releases, options.namespace.as_ref()) {
        context.package(&mut imported, &group);
    }
    imported
}

fn read_release(imported: &mut Imported, document: &Document, key: &Key) -> Option<Release> {
    match read::<Object<ReleaseSpec>>(&document.value) {
        Ok((object, ignored)) => {
            let has_namespace = object.metadata.namespace.is_some_and(|namespace| !namespace.is_empty());
            if !has_namespace {
                imported.warn(
                    &document.origin,
                    format!("HelmRelease {}: namespace {} is assumed", key.name, key.namespace),
                );
            }
            Some(Release { name: object.metadata.name, spec: object.spec, ignored })
        }
        Err(error) => {
            imported
                .error(document.place(&error), format!("left out, since HelmRelease {key} cannot be read: {error}"));
            None
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
    let top = path.strip_prefix("spec.").unwrap_or(path).split(['.', '[']).next().unwrap_or_default();
    match (top, field) {
        ("postRenderers" | "commonMetadata" | "postRenderStrategy", _) => {
            (Severity::Error, "it changes what is installed, and Packages have no such field: put it into the chart")
        }
        ("kubeConfig", _) => (Severity::Error, "Windlass installs into the cluster it runs in"),
        (_, "readyExpr") => (Severity::Warning, "a dependency has moved and is ready before its dependents move"),
        (_, "literal") => (Severity::Error, "values are not read literally from a ConfigMap or Secret"),
        (_, "certSecretRef" | "insecure" | "passCredentials" | "provider" | "proxySecretRef" | "layerSelector") => {
            (Severity::Error, "the source of the Package's charts is made without it")
        }
        (_, "valuesFile") => (Severity::Error, "write valuesFiles, or copy the file to values"),
        (_, "verify") => (Severity::Error, "signatures are not checked; chart.digest pins what is installed"),
        ("install" | "rollback" | "test" | "uninstall" | "upgrade", _) => {
            (Severity::Warning, "how a release is installed, retried and rolled back is decided by Windlass")
        }
        ("interval" | "maxHistory" | "driftDetection" | "waitStrategy" | "persistentClient" | "chart", _) => {
            (Severity::Warning, "it is the same for all children of Packages")
        }
        ("metadata", _) => (Severity::Warning, "it belongs to the object"),
        ("status", _) => (Severity::Warning, "it is no wish"),
        _ => (Severity::Warning, "Packages have no such field"),
    }
}

/// The name of the Helm release that helm-controller gives a HelmRelease
/// without `releaseName`: longer ones are cut at 40 characters and get 12 hex
/// digits of a hash.
fn release_name(name: &str, target_namespace: Option<&str>) -> String {
    let full = target_namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}-{name}"));
    match full.get(..40) {
        Some(short) if full.len() > 53 => format!("{short}-{}", hex(&full, 12)),
        _ => full,
    }
}
