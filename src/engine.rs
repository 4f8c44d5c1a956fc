//! From a component to the objects that an engine applies: pure, and the same
//! bytes for the same input.
//!
//! [`render`] gives everything one component consists of, [`preparation`] only
//! the sources that must be ready before anything of a revision moves. On Flux a
//! chart at a `path` is rendered in two steps: before the commit is known there
//! is only the follower that [`preparation`] gives; once its artifact has named
//! the commit, [`render`] with [`PathPin::Commit`] gives the pinned sources and
//! the release on them.

mod argo;
mod flux;
mod hook;
mod manifest;
mod metadata;
pub mod observe;
mod overlay;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::api::{Claim, Engine};
use crate::package::definition::{ChartSource, Component, Definition};
use crate::package::digest::ComponentDigest;
use crate::package::names::{ObjectName, child_name, hook_child_name};

pub use argo::{ArgoTarget, Destination, compare_options_beside};
pub use flux::{
    ChartEvidence, Commit, Dependency, DependencyState, FluxTarget, GitOrigin, PathPin, follower_name, pinned,
    ready_expr,
};
pub use hook::HookRun;
pub use manifest::{Manifest, ObjectKey};
pub use overlay::{
    acting_as, in_place, in_place_back, keeps_the_first_step_small, pinned_names, rollback_form, surplus,
};

/// What a component is rendered for.
#[derive(Clone, Debug)]
pub struct RenderContext<'a> {
    /// The Package.
    pub package: &'a Definition,
    /// The account that the engine acts as.
    pub account: Option<&'a ObjectName>,
    /// Position of the component in the apply order, from 0.
    pub wave: u32,
    /// Digest of the component for the engine of `target`.
    pub digest: &'a ComponentDigest,
    /// The run of a hook; needed for a component that is one, and only there.
    pub hook: Option<HookRun<'a>>,
    /// Who applies the objects.
    pub owner: Owner,
    /// What keeps a DaemonSet's first step small.
    pub guard: CanaryGuard,
    /// Further annotations of the release's object. Of Argo CD's tracking id only
    /// the application is given; what it tracks is added.
    pub annotations: BTreeMap<&'static str, String>,
    /// Engine and what only it needs.
    pub target: Target<'a>,
}

impl RenderContext<'_> {
    /// The engine of the target.
    pub fn engine(&self) -> Engine {
        match self.target {
            Target::Flux(_) => Engine::Flux,
            Target::Argo(_) => Engine::Argo,
        }
    }
}

/// Engine and what only it needs.
#[derive(Clone, Debug)]
pub enum Target<'a> {
    /// Flux.
    Flux(FluxTarget<'a>),
    /// Argo CD.
    Argo(ArgoTarget<'a>),
}

/// Who applies the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The Windlass controller: the objects carry its managed-by label.
    Controller,
    /// Somebody else, from Git: without that label, so that a controller which
    /// is installed later sees foreign objects and never takes them for its own.
    Git,
}

/// What keeps the first step of a DaemonSet's rollout small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanaryGuard {
    /// A MutatingAdmissionPolicy in the API server (Kubernetes 1.36): nothing
    /// needs to be rendered but the drift ignores.
    Admission,
    /// The rendered objects: a post-renderer on Flux, keeping the live value on Argo CD.
    Rendered,
}

/// The objects of one component in the order in which they are applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// What the release needs: a namespace, its chart's sources.
    pub before: Vec<Manifest>,
    /// The HelmRelease or Application.
    pub release: Manifest,
}

impl Rendered {
    /// All objects in order, the release last.
    pub fn into_objects(self) -> Vec<Manifest> {
        let mut objects = self.before;
        objects.push(self.release);
        objects
    }
}

/// Why a component cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RenderError {
    /// A `path` component on Flux without a `sourceRef`.
    #[error("component `{component}` has a path, but the Package has no sourceRef")]
    NoSourceRef {
        /// The component.
        component: String,
    },
    /// A `path` component on Argo CD whose repository and commit nobody stated.
    #[error("component `{component}` has a path, but nobody has said of which repository and commit")]
    NoSource {
        /// The component.
        component: String,
    },
    /// Something that the engine cannot do.
    #[error("component `{component}`: {what} cannot be had on Argo CD")]
    NotOnArgo {
        /// The component.
        component: String,
        /// The field.
        what: &'static str,
    },
    /// A hook without the upgrade it runs for, or the other way round.
    #[error("component `{component}` is rendered as what it is not: a hook needs its run, nothing else has one")]
    HookMismatch {
        /// The component.
        component: String,
    },
    /// The serializer refused an object; no case is known.
    #[error("{kind} cannot be written: {problem}")]
    Serialize {
        /// Kind of the object.
        kind: &'static str,
        /// What the serializer said.
        problem: String,
    },
}

/// Whether an engine can do what a component asks for.
///
/// # Errors
/// Says what it cannot, see [`RenderError`].
pub fn possible(component: &Component, package: &Definition, engine: Engine) -> Result<(), RenderError> {
    match engine {
        Engine::Flux => flux::possible(component, package),
        Engine::Argo => argo::possible(component),
    }
}

/// All objects of a component, the release itself last.
///
/// # Errors
/// See [`RenderError`].
pub fn render(component: &Component, context: &RenderContext<'_>) -> Result<Rendered, RenderError> {
    if component.hook != context.hook.is_some() {
        return Err(RenderError::HookMismatch { component: component.name.to_string() });
    }
    possible(component, context.package, context.engine())?;
    match &context.target {
        Target::Flux(target) => flux::render(component, context, target),
        Target::Argo(target) => argo::render(component, context, target),
    }
}

/// The sources of a component that must be ready, with the right version and
/// digest, before anything moves. Nothing on Argo CD, which fetches by itself.
///
/// # Errors
/// See [`RenderError`].
pub fn preparation(component: &Component, context: &RenderContext<'_>) -> Result<Vec<Manifest>, RenderError> {
    match &context.target {
        Target::Flux(_) => flux::preparation(component, context),
        Target::Argo(_) => Ok(Vec::new()),
    }
}

/// Name of the HelmRelease or Application of a component.
pub fn release_object_name(component: &Component, context: &RenderContext<'_>) -> String {
    match &context.hook {
        Some(run) => hook_child_name(&context.package.name, &component.name, run.number),
        None => child_name(&context.package.name, &component.name),
    }
}

/// The release that a component claims. Helm's records are in the namespace of
/// the release (Argo CD keeps none).
pub fn claim(component: &Component) -> Claim {
    let namespace = component.namespace.to_string();
    Claim { storage_namespace: namespace.clone(), namespace, name: component.release_name.to_string() }
}

/// Name of the chart, which cannot change without a replacement: its name in
/// the repository, or its directory.
pub fn chart_name(component: &Component) -> &str {
    match &component.chart {
        ChartSource::Repository(chart) => &chart.name,
        ChartSource::Path(chart) => chart.path.as_str(),
    }
}

/// Digest that the author wants the chart to have.
pub fn chart_digest(component: &Component) -> Option<&str> {
    match &component.chart {
        ChartSource::Repository(chart) => chart.digest.as_deref(),
        ChartSource::Path(_) => None,
    }
}

/// Version of the chart as its author wrote it, if it is known.
pub fn chart_version(component: &Component) -> Option<&str> {
    match &component.chart {
        ChartSource::Repository(chart) => Some(chart.version.as_written()),
        ChartSource::Path(chart) => chart
            .chart_version
            .as_ref()
            .map(|version| version.as_written())
            .or_else(|| chart.source.as_ref().and_then(|source| source.chart_version.as_deref())),
    }
}
