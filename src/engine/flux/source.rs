//! Sources of charts (`source.toolkit.fluxcd.io/v1`), shared by all packages of
//! a namespace and named by what they point at.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ChartRef, Commit, GitOrigin, INTERVAL, PathPin};
use crate::api::SourceRef;
use crate::engine::manifest::Manifest;
use crate::engine::metadata::{self, Object};
use crate::engine::{RenderContext, RenderError};
use crate::package::content::OWN_VALUES;
use crate::package::definition::{Component, Definition, PathChart, RepositoryChart};
use crate::package::names::source_name;

const API_VERSION: &str = "source.toolkit.fluxcd.io/v1";
/// A commit does not change: the clone is only looked at again for repair.
const PINNED_INTERVAL: &str = "1h";
/// Media type of the layer of an OCI artifact that holds a Helm chart.
const HELM_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The sources of one chart, and what a HelmRelease refers to.
pub(super) struct Sources {
    pub objects: Vec<Manifest>,
    pub chart_ref: ChartRef,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HelmRepositorySpec<'a> {
    interval: &'static str,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_ref: Option<Reference<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HelmChartSpec<'a> {
    interval: &'static str,
    chart: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    source_ref: KindReference<'a>,
    reconcile_strategy: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values_files: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OciRepositorySpec<'a> {
    interval: &'static str,
    url: String,
    r#ref: OciReference<'a>,
    layer_selector: LayerSelector,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_ref: Option<Reference<'a>>,
}

#[derive(Serialize)]
struct OciReference<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LayerSelector {
    media_type: &'static str,
    operation: &'static str,
}

#[derive(Serialize)]
struct GitRepositorySpec<'a> {
    interval: &'static str,
    url: &'a str,
    r#ref: GitReference<'a>,
    #[serde(flatten)]
    carried: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct GitReference<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    commit: &'a str,
}

#[derive(Serialize)]
struct Reference<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct KindReference<'a> {
    kind: &'static str,
    name: &'a str,
}

pub(super) fn repository(chart: &RepositoryChart, context: &RenderContext<'_>) -> Result<Sources, RenderError> {
    if chart.is_oci() { oci(chart, context) } else { http(chart, context) }
}

fn http(chart: &RepositoryChart, context: &RenderContext<'_>) -> Result<Sources, RenderError> {
    let secret = chart.secret.as_ref().map(|secret| secret.as_str());
    let repository = identity(json!(["HelmRepository", chart.repository, secret]));
    let version = chart.version.as_written();
    let name = identity(json!(["HelmChart", repository, chart.name, version, chart.digest]));
    let spec = HelmRepositorySpec {
        interval: INTERVAL,
        url: &chart.repository,
        secret_ref: secret.map(|name| Reference { name }),
    };
    let helm_chart = HelmChartSpec {
        interval: INTERVAL,
        chart: &chart.name,
        version: Some(version),
        source_ref: KindReference { kind: "HelmRepository", name: &repository },
        reconcile_strategy: "ChartVersion",
        values_files: Vec::new(),
    };
    let objects = vec![
        object("HelmRepository", repository.clone(), context, &spec)?,
        object("HelmChart", name.clone(), context, &helm_chart)?,
    ];
    Ok(Sources { objects, chart_ref: ChartRef { kind: "HelmChart", name } })
}

/// With a digest the artifact is pinned by it, else by its tag, in which a
/// version's `+` is written `_` (OCI tags know no plus; Helm's own rule).
fn oci(chart: &RepositoryChart, context: &RenderContext<'_>) -> Result<Sources, RenderError> {
    let secret = chart.secret.as_ref().map(|secret| secret.as_str());
    let url = format!("{}/{}", chart.repository.trim_end_matches('/'), chart.name);
    let digest = chart.digest.as_deref();
    let tag = digest.is_none().then(|| chart.version.as_written().replace('+', "_"));
    let name = identity(json!(["OCIRepository", url, secret, chart.version.as_written(), digest]));
    let spec = OciRepositorySpec {
        interval: INTERVAL,
        url,
        r#ref: OciReference { digest, tag },
        layer_selector: LayerSelector { media_type: HELM_LAYER, operation: "copy" },
        secret_ref: secret.map(|name| Reference { name }),
    };
    let objects = vec![object("OCIRepository", name.clone(), context, &spec)?];
    Ok(Sources { objects, chart_ref: ChartRef { kind: "OCIRepository", name } })
}

/// The source that charts at a `path` come from.
pub(super) fn of_paths<'a>(component: &Component, package: &'a Definition) -> Result<&'a SourceRef, RenderError> {
    package.source.as_ref().ok_or_else(|| RenderError::NoSourceRef { component: component.name.to_string() })
}

pub(super) fn path(
    component: &Component,
    chart: &PathChart,
    context: &RenderContext<'_>,
    pin: PathPin<'_>,
) -> Result<Sources, RenderError> {
    let source = of_paths(component, context.package)?;
    let mut objects = Vec::new();
    let (repository, name) = match pin {
        PathPin::Follow => (source.name.clone(), follower_name(&source.name, chart)),
        PathPin::Commit { origin, commit } => {
            let repository = pinned_repository(origin, commit, context)?;
            let repository_name = repository.name().to_owned();
            objects.push(repository);
            let name = chart_at(&repository_name, chart);
            (repository_name, name)
        }
    };
    let directory = format!("./{}", chart.path.as_str());
    let helm_chart = HelmChartSpec {
        interval: INTERVAL,
        chart: &directory,
        version: None,
        source_ref: KindReference { kind: "GitRepository", name: &repository },
        reconcile_strategy: "ChartVersion",
        values_files: values_files(chart),
    };
    objects.push(object("HelmChart", name.clone(), context, &helm_chart)?);
    Ok(Sources { objects, chart_ref: ChartRef { kind: "HelmChart", name } })
}

/// Name of the HelmChart that follows a chart directory of a GitRepository.
pub fn follower_name(repository: &str, chart: &PathChart) -> String {
    chart_at(repository, chart)
}

fn chart_at(repository: &str, chart: &PathChart) -> String {
    identity(json!(["HelmChart", repository, chart.path.as_str(), values_files(chart)]))
}

fn pinned_repository(
    origin: &GitOrigin,
    commit: &Commit,
    context: &RenderContext<'_>,
) -> Result<Manifest, RenderError> {
    let name = identity(json!(["GitRepository", origin.url, origin.branch, commit.as_str(), origin.carried]));
    let spec = GitRepositorySpec {
        interval: PINNED_INTERVAL,
        url: &origin.url,
        r#ref: GitReference { branch: origin.branch.as_deref(), commit: commit.as_str() },
        carried: &origin.carried,
    };
    object("GitRepository", name, context, &spec)
}

/// Paths from the root of the source, as Flux wants them. Where files are
/// stated, Flux leaves the chart's own values.yaml out unless it is one of them;
/// Helm and Argo CD never do, so it is put first.
fn values_files(chart: &PathChart) -> Vec<String> {
    let stated: Vec<&str> = chart.values_files.iter().map(|file| file.as_str()).collect();
    let own = (!stated.is_empty() && !stated.contains(&OWN_VALUES)).then_some(OWN_VALUES);
    let directory = if chart.path.as_str().is_empty() { ".".to_owned() } else { format!("./{}", chart.path.as_str()) };
    own.into_iter().chain(stated).map(|file| format!("{directory}/{file}")).collect()
}

fn identity(parts: Value) -> String {
    source_name(&parts.to_string())
}

fn object(
    kind: &'static str,
    name: String,
    context: &RenderContext<'_>,
    spec: &impl Serialize,
) -> Result<Manifest, RenderError> {
    let metadata = metadata::shared_source(name, context);
    Manifest::of(kind, &Object { api_version: API_VERSION, kind, metadata, spec: Some(spec) })
}
