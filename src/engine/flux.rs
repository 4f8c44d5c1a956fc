//! HelmReleases (`helm.toolkit.fluxcd.io/v2`, Flux 2.7 and later).

mod namespace;
mod origin;
mod post_renderer;
mod ready_expr;
mod source;

use serde::Serialize;
use serde_json::{Map, Value};

use super::hook;
use super::manifest::Manifest;
use super::metadata::{self, Object};
use super::{RenderContext, RenderError, Rendered};
use crate::api::{Canary, HealthCheckExpr, UpgradeCrds, ValuesFromKind};
use crate::package::definition::{ChartSource, Component, Definition, ValuesFrom};

pub use origin::{Commit, GitOrigin};
pub use post_renderer::pinned;
pub use ready_expr::{ChartEvidence, DependencyState, ready_expr};
pub use source::follower_name;

/// How often Flux compares a release, or a source, with what is wanted.
const INTERVAL: &str = "10m";
/// How long Flux waits before it tries a failed action again.
const RETRY_INTERVAL: &str = "30s";
/// How many Helm revisions are kept.
const MAX_HISTORY: u32 = 5;

/// What only Flux needs.
#[derive(Clone, Debug)]
pub struct FluxTarget<'a> {
    /// What charts at a `path` are taken from.
    pub path_pin: PathPin<'a>,
    /// Releases that must be ready first; only where no controller orders them.
    pub depends_on: &'a [Dependency],
}

/// What charts at a `path` are taken from.
#[derive(Clone, Copy, Debug)]
pub enum PathPin<'a> {
    /// The Package's `sourceRef` as it is: it moves with its branch.
    Follow,
    /// One commit of it.
    Commit {
        /// Where the `sourceRef` clones from.
        origin: &'a GitOrigin,
        /// The commit.
        commit: &'a Commit,
    },
}

/// An entry of `dependsOn`, in the namespace of the release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Name of the HelmRelease.
    pub name: String,
    /// CEL expression over `dep` that must be true, see [`ready_expr()`].
    pub ready_expr: String,
}

pub(super) fn possible(component: &Component, package: &Definition) -> Result<(), RenderError> {
    match &component.chart {
        ChartSource::Repository(_) => Ok(()),
        ChartSource::Path(_) => source::of_paths(component, package).map(|_| ()),
    }
}

pub(super) fn preparation(component: &Component, context: &RenderContext<'_>) -> Result<Vec<Manifest>, RenderError> {
    let sources = match &component.chart {
        ChartSource::Repository(chart) => source::repository(chart, context)?,
        ChartSource::Path(chart) => source::path(component, chart, context, PathPin::Follow)?,
    };
    Ok(sources.objects)
}

pub(super) fn render(
    component: &Component,
    context: &RenderContext<'_>,
    target: &FluxTarget<'_>,
) -> Result<Rendered, RenderError> {
    let sources = match &component.chart {
        ChartSource::Repository(chart) => source::repository(chart, context)?,
        ChartSource::Path(chart) => source::path(component, chart, context, target.path_pin)?,
    };
    let values = match &context.hook {
        Some(run) => hook::values(&component.values, run),
        None => component.values.clone(),
    };
    let mut metadata = metadata::release(component, context);
    metadata::disable_substitution(&mut metadata);
    let spec = Some(spec(component, context, target, sources.chart_ref, values));
    let release = Object { api_version: "helm.toolkit.fluxcd.io/v2", kind: "HelmRelease", metadata, spec };
    let mut before = Vec::new();
    if component.privileged {
        before.push(namespace::privileged(&component.namespace, context.owner)?);
    }
    before.extend(sources.objects);
    Ok(Rendered { before, release: Manifest::of("HelmRelease", &release)? })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HelmReleaseSpec<'a> {
    interval: &'static str,
    timeout: String,
    chart_ref: ChartRef,
    release_name: &'a str,
    target_namespace: &'a str,
    storage_namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_name: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    depends_on: &'a [Dependency],
    max_history: u32,
    install: Install,
    upgrade: Upgrade,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift_detection: Option<DriftDetection<'a>>,
    /// What reads the expressions; Flux 2.7 knows neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_strategy: Option<Named>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    health_check_exprs: &'a [HealthCheckExpr],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    post_renderers: Vec<post_renderer::PostRenderer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values_from: Vec<ValuesReference<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    values: Map<String, Value>,
}

#[derive(Serialize)]
struct ChartRef {
    kind: &'static str,
    name: String,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Install {
    crds: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    create_namespace: bool,
    strategy: Strategy,
    #[serde(skip_serializing_if = "Option::is_none")]
    remediation: Option<Remediation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Upgrade {
    crds: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disable_wait: bool,
    strategy: Strategy,
    #[serde(skip_serializing_if = "Option::is_none")]
    remediation: Option<Remediation>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Strategy {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_interval: Option<&'static str>,
}

#[derive(Clone, Copy, Serialize)]
struct Remediation {
    retries: i32,
}

#[derive(Serialize)]
struct DriftDetection<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignore: Vec<Ignore<'a>>,
}

#[derive(Serialize)]
struct Ignore<'a> {
    paths: Vec<&'a str>,
    target: IgnoreTarget<'a>,
}

/// Flux reads these as regular expressions, anchored at both ends; an empty
/// group matches every group.
#[derive(Serialize)]
struct IgnoreTarget<'a> {
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ValuesReference<'a> {
    kind: ValuesFromKind,
    name: &'a str,
    values_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_path: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
}

fn spec<'a>(
    component: &'a Component,
    context: &RenderContext<'a>,
    target: &FluxTarget<'a>,
    chart_ref: ChartRef,
    values: Map<String, Value>,
) -> HelmReleaseSpec<'a> {
    let package = context.package;
    let (strategy, remediation) = on_failure(component.hook);
    HelmReleaseSpec {
        interval: INTERVAL,
        timeout: package.upgrade.timeout.to_string(),
        chart_ref,
        release_name: component.release_name.as_str(),
        target_namespace: component.namespace.as_str(),
        storage_namespace: component.namespace.as_str(),
        service_account_name: context.account.map(|name| name.as_str()),
        depends_on: target.depends_on,
        max_history: MAX_HISTORY,
        install: Install {
            crds: crds(UpgradeCrds::CreateReplace),
            // A privileged namespace is there already, and the Package's account
            // need not be allowed to create namespaces.
            create_namespace: component.namespace != package.namespace && !component.privileged,
            strategy,
            remediation,
        },
        upgrade: Upgrade {
            crds: crds(component.upgrade_crds),
            // The canary decides when a DaemonSet is done; helm-controller would
            // hold a worker for as long as that takes, and fail on one lost node.
            disable_wait: component.canary.is_some(),
            strategy,
            remediation,
        },
        drift_detection: (!component.hook).then(|| drift_detection(component)),
        wait_strategy: (!component.health_check_exprs.is_empty()).then_some(Named { name: "poller" }),
        health_check_exprs: &component.health_check_exprs,
        post_renderers: post_renderer::post_renderers(component, context.guard),
        values_from: component.values_from.iter().map(values_reference).collect(),
        values,
    }
}

/// A component is tried again by Flux, forwards only; a hook never is: its
/// second run would start from what the first has left.
fn on_failure(hook: bool) -> (Strategy, Option<Remediation>) {
    if hook {
        (Strategy { name: "RemediateOnFailure", retry_interval: None }, Some(Remediation { retries: 0 }))
    } else {
        (Strategy { name: "RetryOnFailure", retry_interval: Some(RETRY_INTERVAL) }, None)
    }
}

const fn crds(policy: UpgradeCrds) -> &'static str {
    match policy {
        UpgradeCrds::Skip => "Skip",
        UpgradeCrds::Create => "Create",
        UpgradeCrds::CreateReplace => "CreateReplace",
    }
}

fn drift_detection(component: &Component) -> DriftDetection<'_> {
    let stated = component.ignore.iter().map(|ignore| Ignore {
        paths: ignore.json_pointers.iter().map(String::as_str).collect(),
        target: IgnoreTarget {
            group: anchored(ignore.group.as_deref().unwrap_or_default()),
            kind: &ignore.kind,
            name: ignore.name.as_deref().map(anchored),
            namespace: ignore.namespace.as_deref(),
        },
    });
    let canary = component.canary.iter().flat_map(names).map(|name| Ignore {
        paths: vec!["/spec/updateStrategy"],
        target: IgnoreTarget { group: "apps".into(), kind: "DaemonSet", name, namespace: None },
    });
    DriftDetection { mode: "enabled", ignore: stated.chain(canary).collect() }
}

/// Patterns of the names of a component's canaried DaemonSets, one entry each;
/// a single entry without a name for all of them.
fn names(canary: &Canary) -> Vec<Option<String>> {
    match canary.daemon_sets.as_slice() {
        [] => vec![None],
        stated => stated.iter().map(|name| Some(anchored(name))).collect(),
    }
}

/// A literal as the regular expression that matches only it. Names of
/// Kubernetes objects and groups hold no other special character than the dot.
pub(super) fn anchored(literal: &str) -> String {
    literal.replace('.', "\\.")
}

fn values_reference(from: &ValuesFrom) -> ValuesReference<'_> {
    ValuesReference {
        kind: from.kind,
        name: from.name.as_str(),
        values_key: &from.values_key,
        target_path: from.target_path.as_deref(),
        optional: from.optional,
    }
}
