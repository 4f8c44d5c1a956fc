//! What the spec asks for, in the form of a revision.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::adopt;
use super::compile;
use super::live::{Live, Place};
use super::release;
use super::replace::written_from;
use super::snapshot::{RevisionView, Snapshot};
use crate::api::{self, Claim, Engine, RecordedComponent, RevisionRollback};
use crate::engine::{ObjectKey, chart_digest, chart_name, chart_version, claim};
use crate::package::definition::{ChartSource, Component, Definition};
use crate::package::digest::{ComponentDigest, DigestError};
use crate::package::names::child_name;
use crate::package::range::Range;
use crate::ready::evidence::Lookup;
use crate::ready::release::text;

/// What the spec asks for; as a revision, but for its number and manifests.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub engine: Engine,
    version: String,
    pub rollback: RevisionRollback,
    /// Hooks, then components in apply order; without manifests.
    pub components: Arc<[RecordedComponent]>,
    /// For each of them its position in the definition.
    positions: Vec<usize>,
    keys: Vec<ObjectKey>,
    origins: Vec<Option<Origin>>,
}

/// Where Flux gets a chart, as far as the component's digest does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Address of the Git repository; `None`: the digest names the repository.
    url: Option<String>,
    /// Secret that opens it.
    secret: Option<String>,
}

impl Origin {
    /// As it is wanted; `None` where that does not matter, or is not known yet.
    fn wanted(snapshot: &Snapshot, definition: &Definition, component: &Component, engine: Engine) -> Option<Self> {
        match (engine, &component.chart) {
            (Engine::Argo, _) => None,
            (Engine::Flux, ChartSource::Repository(chart)) => {
                Some(Self { url: None, secret: chart.secret.as_ref().map(|secret| secret.as_str().to_owned()) })
            }
            (Engine::Flux, ChartSource::Path(_)) => {
                let source = definition.source.as_ref()?;
                match snapshot.objects.get(&compile::git_repository_key(snapshot, &source.name))? {
                    Lookup::Found(repository) => Self::of_spec(repository.get("spec")?.as_object()?, true),
                    Lookup::Absent
                    | Lookup::KindUnknown
                    | Lookup::Denied
                    | Lookup::NotImpersonated
                    | Lookup::Pending => None,
                }
            }
        }
    }

    /// As a revision has it; `None` where it has none.
    fn recorded(component: &RecordedComponent) -> Option<Self> {
        let mut manifests = component.manifests.iter();
        manifests.find_map(|manifest| match Place::of(manifest).kind() {
            "HelmRepository" | "OCIRepository" => Self::of_spec(manifest.get("spec")?.as_object()?, false),
            "GitRepository" => Self::of_spec(manifest.get("spec")?.as_object()?, true),
            _ => None,
        })
    }

    fn of_spec(spec: &Map<String, Value>, with_url: bool) -> Option<Self> {
        let url = text(spec, &["url"]).filter(|_| with_url).map(str::to_owned);
        Some(Self { url, secret: text(spec, &["secretRef", "name"]).map(str::to_owned) })
    }
}

/// What the identity of a release consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    ReleaseName,
    Namespace,
    /// Of a chart at a path: the last part of that.
    ChartName,
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ReleaseName => "release name",
            Self::Namespace => "namespace",
            Self::ChartName => "chart name",
        })
    }
}

/// A component whose release gets another identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub component: String,
    pub what: Identity,
}

impl Wanted {
    /// Reads a definition for an engine.
    pub fn of(snapshot: &Snapshot, definition: &Definition, engine: Engine) -> Result<Self, DigestError> {
        let positions: Vec<usize> = positions(definition).collect();
        let outlines =
            definition.outlines.get(engine, || outlines(definition, engine)).as_ref().map_err(Clone::clone)?;
        let standing = Standing::of(snapshot, engine);
        let defined = positions.iter().filter_map(|&position| definition.components.get(position));
        let keys: Vec<ObjectKey> =
            defined.clone().map(|component| standing.key(snapshot, definition, component, engine)).collect();
        let origins = defined.map(|component| Origin::wanted(snapshot, definition, component, engine)).collect();
        let components = standing.stored_elsewhere(outlines, &keys);
        let to = definition.rollback.to.as_ref().map(Range::as_written).unwrap_or_default().to_owned();
        let rollback = RevisionRollback { safe: definition.rollback.safe, to };
        Ok(Self { engine, version: definition.version.to_string(), rollback, components, positions, keys, origins })
    }

    /// Wanted version, without a leading v.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether a revision of this would differ from `latest`: in a digest, the
    /// order, `readyWhen`, canary, rollback or version, or in where Flux gets a chart.
    pub fn differs_from(&self, latest: &RevisionView) -> bool {
        let spec = &latest.spec;
        let alike = |(wanted, recorded): (&RecordedComponent, &RecordedComponent)| {
            wanted.name == recorded.name
                && wanted.digest == recorded.digest
                && wanted.hook == recorded.hook
                && wanted.depends_on == recorded.depends_on
                && wanted.ready_when == recorded.ready_when
                && wanted.canary == recorded.canary
        };
        self.version != spec.version
            || self.rollback != spec.rollback
            || self.components.len() != spec.components.len()
            || !self.components.iter().zip(&spec.components).all(alike)
            || spec
                .components
                .iter()
                .zip(&self.origins)
                .any(|(recorded, wanted)| is_elsewhere(recorded, wanted.as_ref()))
    }

    /// Whether Flux gets the chart of a recorded component from somewhere else now.
    pub fn has_other_origin(&self, recorded: &RecordedComponent) -> bool {
        let at = self.components.iter().position(|component| component.name == recorded.name);
        at.and_then(|at| self.origins.get(at)).is_some_and(|wanted| is_elsewhere(recorded, wanted.as_ref()))
    }

    /// All of them, with the place of their release's object and their position in
    /// the definition.
    pub fn all(&self) -> impl Iterator<Item = (&RecordedComponent, &ObjectKey, usize)> {
        let pairs = self.components.iter().zip(&self.keys).zip(&self.positions);
        pairs.map(|((component, key), position)| (component, key, *position))
    }

    /// Components, hooks left out, with the place of their release's object.
    pub fn releases(&self) -> impl Iterator<Item = (&RecordedComponent, &ObjectKey)> {
        self.components.iter().zip(&self.keys).filter(|(component, _)| !component.hook)
    }

    /// The same by name.
    pub fn children(&self) -> impl Iterator<Item = (&str, &ObjectKey)> {
        self.releases().map(|(component, key)| (component.name.as_str(), key))
    }

    /// Identities of the releases, hooks left out.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.components.iter().filter(|component| !component.hook).map(|component| &component.release)
    }

    /// Hooks; without manifests.
    pub fn hooks(&self) -> impl Iterator<Item = &RecordedComponent> {
        self.components.iter().filter(|component| component.hook)
    }

    /// Whether a live object at the place of a component is this Package's, or
    /// given to the component.
    pub fn owns(&self, snapshot: &Snapshot, component: &str, child: &Live) -> bool {
        child.package() == Some(snapshot.package.name.as_str()) || adopt::is_given(snapshot, component, child)
    }

    /// Components whose releases are, or were last asked to be, of another identity
    /// than they are wanted.
    pub fn replacements(&self, snapshot: &Snapshot) -> Vec<Replacement> {
        let asked = snapshot.revisions.last().into_iter().flat_map(|latest| &latest.spec.components);
        let asked = Recorded::of(asked.filter(|component| !component.hook));
        let runs = Recorded::of(snapshot.own_children().filter_map(|child| written_from(&snapshot.revisions, child)));
        let components = self.components.iter().filter(|component| !component.hook);
        let replacement = |wanted: &RecordedComponent| {
            let what = difference(wanted, runs.get(wanted).or_else(|| asked.get(wanted))?)?;
            Some(Replacement { component: wanted.name.clone(), what })
        };
        components.filter_map(replacement).collect()
    }
}

/// Components that are recorded, by what they have in common with a wanted one.
struct Recorded<'a> {
    by_name: BTreeMap<&'a str, &'a RecordedComponent>,
    by_release: BTreeMap<&'a Claim, &'a RecordedComponent>,
}

impl<'a> Recorded<'a> {
    fn of(components: impl Iterator<Item = &'a RecordedComponent>) -> Self {
        let by_name: BTreeMap<_, _> = components.map(|component| (component.name.as_str(), component)).collect();
        let by_release = by_name.values().map(|component| (&component.release, *component)).collect();
        Self { by_name, by_release }
    }

    /// One that was renamed goes on with its release.
    fn get(&self, wanted: &RecordedComponent) -> Option<&'a RecordedComponent> {
        self.by_name.get(wanted.name.as_str()).or_else(|| self.by_release.get(&wanted.release)).copied()
    }
}

fn is_elsewhere(recorded: &RecordedComponent, wanted: Option<&Origin>) -> bool {
    wanted.is_some_and(|wanted| Origin::recorded(recorded).is_some_and(|recorded| recorded != *wanted))
}

/// In what the identity of a release differs from what is recorded.
pub(crate) fn difference(wanted: &RecordedComponent, recorded: &RecordedComponent) -> Option<Identity> {
    if wanted.release.name != recorded.release.name {
        Some(Identity::ReleaseName)
    } else if wanted.release != recorded.release {
        Some(Identity::Namespace)
    } else if base_name(&wanted.chart_name) != base_name(&recorded.chart_name) {
        Some(Identity::ChartName)
    } else {
        None
    }
}

/// A chart directory is named like its chart, as `helm lint` has it: what its Chart.yaml says
/// is not known before the engine has fetched it. The way there may change.
fn base_name(chart: &str) -> &str {
    chart.rsplit('/').next().unwrap_or(chart)
}

/// Hooks, then components in apply order, by their positions in the definition.
fn positions(definition: &Definition) -> impl Iterator<Item = usize> {
    let order = definition.order();
    order.hooks.iter().chain(&order.components).copied()
}

/// What the spec alone says of each component; see [`Definition::outlines`].
fn outlines(definition: &Definition, engine: Engine) -> Result<Arc<[RecordedComponent]>, DigestError> {
    let digests = definition.digests(engine)?;
    let defined = |position: usize| definition.components.get(position).zip(digests.get(position));
    let outlines = positions(definition).filter_map(defined).zip(0..);
    Ok(outlines.map(|((component, digest), wave)| outline(component, wave, digest)).collect())
}

fn outline(component: &Component, wave: u32, digest: &ComponentDigest) -> RecordedComponent {
    RecordedComponent {
        name: component.name.to_string(),
        wave,
        digest: digest.to_string(),
        release: claim(component),
        chart_name: chart_name(component).to_owned(),
        chart_version: chart_version(component).unwrap_or_default().to_owned(),
        chart_digest: chart_digest(component).unwrap_or_default().to_owned(),
        depends_on: component.depends_on.iter().map(ToString::to_string).collect(),
        manifests: Vec::new(),
        ready_when: component.ready_when.iter().map(api::ReadyWhen::from).collect(),
        canary: component.canary.clone(),
        hook: component.hook,
        delete_data: component.delete_data,
        replaces: false,
        adopted: false,
    }
}

/// The live objects that stand for components.
struct Standing<'a> {
    by_component: BTreeMap<&'a str, Vec<&'a Live>>,
    taken_over: Vec<&'a Live>,
}

impl<'a> Standing<'a> {
    /// Ours, and those that are given to us.
    fn of(snapshot: &'a Snapshot, engine: Engine) -> Self {
        let package = snapshot.package.name.as_str();
        let mut by_component: BTreeMap<&str, Vec<&Live>> = BTreeMap::new();
        let of_engine = |child: &&Live| release::engine_of(&child.key().kind) == Some(engine);
        for child in snapshot.children.iter().filter(of_engine) {
            let ours = child.component().filter(|_| child.package() == Some(package));
            let given = adopt::heir(snapshot, child).filter(|heir| ours != Some(heir));
            for component in ours.into_iter().chain(given) {
                by_component.entry(component).or_default().push(child);
            }
        }
        let taken_over = snapshot.children.iter().filter(|child| adopt::is_taken_over(child)).collect();
        Self { by_component, taken_over }
    }

    /// Where the component's release object stands: at the name of the child that
    /// already stands for it (an adopted one may have any), else at its own.
    fn key(&self, snapshot: &Snapshot, definition: &Definition, component: &Component, engine: Engine) -> ObjectKey {
        let own = child_name(&definition.name, &component.name);
        let standing = self.by_component.get(component.name.as_str()).map_or(&[][..], Vec::as_slice);
        let is_at_its_own = standing.iter().any(|child| child.name() == own);
        let elsewhere = standing.last().filter(|_| !is_at_its_own).map(|child| child.name().to_owned());
        release::key(engine, &snapshot.package.namespace, elsewhere.unwrap_or(own))
    }

    /// Helm's records of a release that was taken over stay where they are.
    fn stored_elsewhere(&self, outlines: &Arc<[RecordedComponent]>, keys: &[ObjectKey]) -> Arc<[RecordedComponent]> {
        if self.taken_over.is_empty() {
            return Arc::clone(outlines);
        }
        let held = |(outline, key): (&RecordedComponent, &ObjectKey)| {
            let found = self.taken_over.iter().find(|child| child.key() == key).and_then(|child| release::claim(child));
            let same =
                |found: &&Claim| (&found.namespace, &found.name) == (&outline.release.namespace, &outline.release.name);
            RecordedComponent { release: found.filter(same).unwrap_or(&outline.release).clone(), ..outline.clone() }
        };
        outlines.iter().zip(keys).map(held).collect()
    }
}
