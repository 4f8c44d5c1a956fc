//! Applications (`argoproj.io/v1alpha1`, Argo CD 3.x).
//!
//! Argo CD rewrites a spec that states zero values (`helm: {}`, `prune: false`,
//! an empty list), and whoever applied it then sees a difference for ever: a
//! field is written only with a value that means something.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::hook;
use super::manifest::Manifest;
use super::metadata::{self, Object};
use super::{CanaryGuard, RenderContext, RenderError, Rendered};
use crate::api::wellknown::{ARGO_COMPARE_OPTIONS, ARGO_FINALIZER, ARGO_IN_CLUSTER, POD_SECURITY_ENFORCE};
use crate::api::{ComponentSource, UpgradeCrds};
use crate::package::definition::{ChartSource, Component, PathChart, RepositoryChart};

/// What is applied on the server is compared there as well: what the API server fills in
/// is no difference.
pub(super) const SERVER_SIDE_DIFF: &str = "ServerSideDiff=true";

/// A list of options, such as that of `compare-options`, with one more.
fn with_option(options: &str, option: &str) -> String {
    if options.is_empty() { option.to_owned() } else { format!("{options},{option}") }
}

/// The compare options of an Application that is taken over: its own, and of ours those
/// that only its parent reads. How it is compared is changed by its first move. `None`:
/// none of them.
pub fn compare_options_beside(ours: &str, own: Option<&str>) -> Option<String> {
    let own = own.unwrap_or_default().split(',').map(str::trim).filter(|option| !option.is_empty());
    let more = ours.split(',').filter(|option| *option != SERVER_SIDE_DIFF);
    let mut options: Vec<&str> = own.collect();
    for option in more {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    (!options.is_empty()).then(|| options.join(","))
}

/// What only Argo CD needs; both come from configuration, never from a Package.
#[derive(Clone, Debug)]
pub struct ArgoTarget<'a> {
    /// Project of the Applications.
    pub project: &'a str,
    /// Cluster that the releases go to.
    pub destination: &'a Destination,
}

/// A cluster as Argo CD names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// URL of its API server.
    Server(String),
    /// Name it is registered under.
    Name(String),
}

impl Destination {
    /// The cluster that Argo CD itself runs in.
    pub fn in_cluster() -> Self {
        Self::Server(ARGO_IN_CLUSTER.to_owned())
    }
}

pub(super) fn render(
    component: &Component,
    context: &RenderContext<'_>,
    target: &ArgoTarget<'_>,
) -> Result<Rendered, RenderError> {
    let helm = Helm {
        release_name: component.release_name.as_str(),
        value_files: value_files(component),
        values_object: match &context.hook {
            Some(run) => hook::values(&component.values, run),
            None => component.values.clone(),
        },
        skip_crds: component.upgrade_crds == UpgradeCrds::Skip,
    };
    let spec = ApplicationSpec {
        project: target.project,
        source: match &component.chart {
            ChartSource::Repository(chart) => repository_source(chart, helm),
            ChartSource::Path(chart) => path_source(component, chart, helm)?,
        },
        destination: destination(component, target.destination),
        sync_policy: sync_policy(component, context.guard),
        ignore_differences: ignore_differences(component),
    };
    let mut metadata = metadata::release(component, context);
    metadata.finalizers.push(ARGO_FINALIZER);
    let options = metadata.annotations.entry(ARGO_COMPARE_OPTIONS).or_default();
    *options = with_option(options, SERVER_SIDE_DIFF);
    let kind = "Application";
    let object = Object { api_version: "argoproj.io/v1alpha1", kind, metadata, spec: Some(spec) };
    Ok(Rendered { before: Vec::new(), release: Manifest::of(kind, &object)? })
}

pub(super) fn possible(component: &Component) -> Result<(), RenderError> {
    let digest = match &component.chart {
        ChartSource::Repository(chart) => chart.digest.is_some(),
        ChartSource::Path(chart) => {
            stated_source(component, chart)?;
            false
        }
    };
    let refused = [
        ("valuesFrom", !component.values_from.is_empty()),
        ("chart.digest", digest),
        ("upgradeCRDs Create", component.upgrade_crds == UpgradeCrds::Create),
    ];
    match refused.into_iter().find(|(_, stated)| *stated) {
        Some((what, _)) => Err(RenderError::NotOnArgo { component: component.name.to_string(), what }),
        None => Ok(()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationSpec<'a> {
    project: &'a str,
    source: Source<'a>,
    destination: DestinationSpec<'a>,
    sync_policy: SyncPolicy,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignore_differences: Vec<IgnoreDifference<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
    #[serde(rename = "repoURL")]
    repo_url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    target_revision: &'a str,
    helm: Helm<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Helm<'a> {
    release_name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    value_files: Vec<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    values_object: Map<String, Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skip_crds: bool,
}

#[derive(Serialize)]
struct DestinationSpec<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    namespace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    automated: Option<Automated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    managed_namespace_metadata: Option<NamespaceMetadata>,
    sync_options: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Automated {
    prune: bool,
    self_heal: bool,
}

#[derive(Serialize)]
struct NamespaceMetadata {
    labels: BTreeMap<&'static str, &'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IgnoreDifference<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    json_pointers: Vec<&'a str>,
}

/// Argo CD takes a repository without a scheme for an OCI registry.
fn repository_source<'a>(chart: &'a RepositoryChart, helm: Helm<'a>) -> Source<'a> {
    let repo_url = chart.repository.strip_prefix("oci://").unwrap_or(&chart.repository);
    Source {
        repo_url: if chart.is_oci() { repo_url.trim_end_matches('/') } else { repo_url },
        chart: Some(&chart.name),
        path: None,
        target_revision: chart.version.as_written(),
        helm,
    }
}

fn stated_source<'a>(component: &Component, chart: &'a PathChart) -> Result<&'a ComponentSource, RenderError> {
    chart.source.as_ref().ok_or_else(|| RenderError::NoSource { component: component.name.to_string() })
}

fn path_source<'a>(component: &Component, chart: &'a PathChart, helm: Helm<'a>) -> Result<Source<'a>, RenderError> {
    let source = stated_source(component, chart)?;
    let path = chart.path.as_str();
    Ok(Source {
        repo_url: &source.repo_url,
        chart: None,
        path: Some(if path.is_empty() { "." } else { path }),
        target_revision: &source.revision,
        helm,
    })
}

/// Argo CD replaces `$NAME` in the names of values files by variables of its
/// own; `$$` stands for a dollar sign.
fn value_files(component: &Component) -> Vec<String> {
    match &component.chart {
        ChartSource::Repository(_) => Vec::new(),
        ChartSource::Path(chart) => chart.values_files.iter().map(|file| file.as_str().replace('$', "$$")).collect(),
    }
}

fn destination<'a>(component: &'a Component, destination: &'a Destination) -> DestinationSpec<'a> {
    let (server, name) = match destination {
        Destination::Server(server) => (Some(server.as_str()), None),
        Destination::Name(name) => (None, Some(name.as_str())),
    };
    DestinationSpec { server, name, namespace: component.namespace.as_str() }
}

/// A hook is not synchronised by Argo CD on its own: self-heal would run a
/// finished migration again.
fn sync_policy(component: &Component, guard: CanaryGuard) -> SyncPolicy {
    let mut sync_options = vec!["CreateNamespace=true", "ServerSideApply=true"];
    let live_budget_is_kept = component.canary.is_some() && guard == CanaryGuard::Rendered;
    if !component.ignore.is_empty() || live_budget_is_kept {
        sync_options.push("RespectIgnoreDifferences=true");
    }
    let privileged = || NamespaceMetadata { labels: BTreeMap::from([(POD_SECURITY_ENFORCE, "privileged")]) };
    SyncPolicy {
        automated: (!component.hook).then_some(Automated { prune: true, self_heal: true }),
        managed_namespace_metadata: component.privileged.then(privileged),
        sync_options,
    }
}

fn ignore_differences(component: &Component) -> Vec<IgnoreDifference<'_>> {
    let stated = component.ignore.iter().map(|ignore| IgnoreDifference {
        group: ignore.group.as_deref().filter(|group| !group.is_empty()),
        kind: &ignore.kind,
        name: ignore.name.as_deref(),
        namespace: ignore.namespace.as_deref(),
        json_pointers: ignore.json_pointers.iter().map(String::as_str).collect(),
    });
    let names: Vec<Option<&str>> = match &component.canary {
        None => Vec::new(),
        Some(canary) if canary.daemon_sets.is_empty() => vec![None],
        Some(canary) => canary.daemon_sets.iter().map(|name| Some(name.as_str())).collect(),
    };
    let canary = names.into_iter().map(|name| IgnoreDifference {
        group: Some("apps"),
        kind: "DaemonSet",
        name,
        namespace: None,
        json_pointers: vec!["/spec/updateStrategy"],
    });
    stated.chain(canary).collect()
}
