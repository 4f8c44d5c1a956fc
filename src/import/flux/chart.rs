//! Where the chart of a HelmRelease comes from.

use std::collections::BTreeMap;

use super::wire::{ChartSpec, HelmRepositorySpec, Named, Object, OciRepositorySpec, Reference, ReleaseSpec};
use super::{Key, report_ignored};
use crate::api::{Chart, Component, LocalReference};
use crate::import::wire::read;
use crate::import::{Document, ForeignSource, Imported};
use crate::package::definition::RelativePath;

/// The sources of the input by kind, namespace and name.
pub(super) type Sources<'a> = BTreeMap<(&'a str, Key), &'a Document>;

/// Finds the chart of one release.
pub(super) struct ChartFinder<'a, 'd> {
    pub imported: &'a mut Imported,
    pub sources: &'a Sources<'d>,
    /// The component, for notes.
    pub subject: &'a str,
    /// Namespace of the HelmRelease.
    pub at: &'a str,
    /// Namespace of the Package.
    pub namespace: &'a str,
}

impl ChartFinder<'_, '_> {
    /// Fills `chart`, or `path` and `valuesFiles`. Returns the name of the
    /// GitRepository that a path is in.
    pub fn find(&mut self, spec: &ReleaseSpec, component: &mut Component) -> Option<String> {
        match (&spec.chart, &spec.chart_ref) {
            (Some(template), None) => self.template(&template.spec, self.at, component),
            (None, Some(reference)) => self.reference(reference, component),
            (Some(_), Some(_)) | (None, None) => {
                self.imported.error(self.subject, "names not exactly one of chart and chartRef");
                None
            }
        }
    }

    fn reference(&mut self, reference: &Reference, component: &mut Component) -> Option<String> {
        let key = Key::of(reference.namespace.as_deref().unwrap_or(self.at), &reference.name);
        match reference.kind.as_str() {
            "OCIRepository" => {
                component.chart =
                    self.read::<OciRepositorySpec>("OCIRepository", &key).map(|spec| self.oci(spec, &key));
                None
            }
            "HelmChart" => {
                let spec = self.read::<ChartSpec>("HelmChart", &key)?;
                self.template(&spec, &key.namespace, component)
            }
            other => {
                self.imported.error(self.subject, format!("charts of kind {other} are not carried over"));
                None
            }
        }
    }

    fn template(&mut self, spec: &ChartSpec, at: &str, component: &mut Component) -> Option<String> {
        let source = &spec.source_ref;
        let key = Key::of(source.namespace.as_deref().unwrap_or(at), &source.name);
        if source.kind == "HelmRepository" {
            component.chart = self.helm_repository(spec, &key);
            return None;
        }
        let foreign = ForeignSource { kind: &source.kind, name: &source.name, namespace: Some(&key.namespace) };
        self.imported.source(self.subject, &foreign, self.namespace);
        component.values_files =
            spec.values_files.iter().filter_map(|file| self.values_file(&spec.chart, file)).collect();
        component.path =
            Some(RelativePath::parse(&spec.chart).map_or_else(|| spec.chart.clone(), |path| path.as_str().to_owned()));
        Some(source.name.clone())
    }

    /// Flux counts values files from the root of the source, a Package from the chart.
    fn values_file(&mut self, chart: &str, file: &str) -> Option<String> {
        let (chart, path) = (RelativePath::parse(chart)?, RelativePath::parse(file)?);
        let below = path.as_str().strip_prefix(chart.as_str()).and_then(|rest| rest.strip_prefix('/'));
        if below.is_none() {
            let message = "is not in the chart's directory, so it is not carried over: move it there";
            self.imported.error(self.subject, format!("valuesFiles: {file} {message}"));
        }
        below.map(str::to_owned)
    }

    fn helm_repository(&mut self, spec: &ChartSpec, key: &Key) -> Option<Chart> {
        let repository = self.read::<HelmRepositorySpec>("HelmRepository", key)?;
        for file in &spec.values_files {
            let message = "is not carried over, since only charts at a path have values files: copy it to values";
            self.imported.error(self.subject, format!("valuesFiles: {file} {message}"));
        }
        let version = spec.version.clone().unwrap_or_else(|| "*".to_owned());
        Some(Chart {
            repository: repository.url,
            name: spec.chart.clone(),
            version,
            digest: None,
            secret_ref: self.secret(repository.secret_ref, key),
        })
    }

    fn oci(&mut self, spec: OciRepositorySpec, key: &Key) -> Chart {
        let reference = spec.reference.unwrap_or_default();
        let version = reference.tag.or(reference.semver).unwrap_or_else(|| "latest".to_owned());
        let (repository, name) = match spec.url.trim_end_matches('/').rsplit_once('/') {
            Some((repository, name)) if !repository.ends_with('/') => (repository, name),
            _ => (spec.url.as_str(), ""),
        };
        if reference.digest.is_some() {
            self.imported.warn(self.subject, "chart.digest is refused on engine argo");
        }
        Chart {
            repository: repository.to_owned(),
            name: name.to_owned(),
            version,
            digest: reference.digest,
            secret_ref: self.secret(spec.secret_ref, key),
        }
    }

    fn secret(&mut self, secret: Option<Named>, key: &Key) -> Option<LocalReference> {
        let Named { name } = secret?;
        if key.namespace != self.namespace {
            let (from, to) = (&key.namespace, self.namespace);
            self.imported.error(
                self.subject,
                format!("Secret {from}/{name} of the chart repository must be in namespace {to} too: copy it"),
            );
        }
        Some(LocalReference { name })
    }

    fn read<S: serde::de::DeserializeOwned>(&mut self, kind: &str, key: &Key) -> Option<S> {
        let Some(document) = self.sources.get(&(kind, key.clone())) else {
            self.imported.error(self.subject, format!("has no chart, since {kind} {key} is not in the input"));
            return None;
        };
        match read::<Object<S>>(&document.value) {
            Ok((object, ignored)) => {
                report_ignored(self.imported, &format!("{kind} {key}"), &ignored);
                Some(object.spec)
            }
            Err(error) => {
                let place = document.place(&error);
                let message = format!("has no chart, since {kind} {key} cannot be read: {error}, at {place}");
                self.imported.error(self.subject, message);
                None
            }
        }
    }
}
