//! What the spec asks for, in the form of a revision.

use super::adopt;
use super::live::Live;
use super::release;
use super::snapshot::{RevisionView, Snapshot};
use crate::api::{self, Claim, Engine, RecordedComponent, RevisionRollback};
use crate::engine::{ObjectKey, chart_digest, chart_name, chart_version, claim};
use crate::package::definition::{Component, Definition};
use crate::package::digest::{ComponentDigest, DigestError, digest};
use crate::package::names::child_name;
use crate::package::order::order;
use crate::package::range::Range;

/// What the spec asks for; as a revision, but for its number and manifests.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub engine: Engine,
    version: String,
    pub rollback: RevisionRollback,
    /// Hooks, then components in apply order; without manifests.
    pub components: Vec<RecordedComponent>,
    /// For each of them its position in the definition.
    pub positions: Vec<usize>,
    keys: Vec<ObjectKey>,
}

/// A component whose release gets another identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub component: String,
    pub what: &'static str,
}

impl Wanted {
    /// Reads a definition for an engine.
    pub fn of(snapshot: &Snapshot, definition: &Definition, engine: Engine) -> Result<Self, DigestError> {
        // A definition has no cycle: parsing has refused it.
        let order = order(&definition.components).unwrap_or_default();
        let positions: Vec<usize> = order.hooks.into_iter().chain(order.components).collect();
        let mut components = Vec::with_capacity(positions.len());
        let mut keys = Vec::with_capacity(positions.len());
        for (wave, &position) in positions.iter().enumerate() {
            let Some(component) = definition.components.get(position) else { continue };
            let wave = u32::try_from(wave).unwrap_or(u32::MAX);
            let key = child_key(snapshot, definition, component, engine);
            let mut outline = outline(component, wave, &digest(component, engine)?);
            outline.release = stored_elsewhere(snapshot, &key, outline.release);
            components.push(outline);
            keys.push(key);
        }
        let to = definition.rollback.to.as_ref().map(Range::as_written).unwrap_or_default().to_owned();
        let rollback = RevisionRollback { safe: definition.rollback.safe, to };
        Ok(Self { engine, version: definition.version.to_string(), rollback, components, positions, keys })
    }

    /// Asks for nothing; to render single objects with.
    pub fn empty(engine: Engine) -> Self {
        Self {
            engine,
            version: String::new(),
            rollback: RevisionRollback::default(),
            components: Vec::new(),
            positions: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Wanted version, without a leading v.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether a revision of this would differ from `latest`: in a digest, the
    /// order, `readyWhen`, canary, rollback or version.
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
    }

    /// Components, hooks left out, with the place of their release's object.
    pub fn releases(&self) -> impl Iterator<Item = (&RecordedComponent, &ObjectKey)> {
        self.components.iter().zip(&self.keys).filter(|(component, _)| !component.hook)
    }

    /// The same by name.
    pub fn children(&self) -> impl Iterator<Item = (&str, &ObjectKey)> {
        self.releases().map(|(component, key)| (component.name.as_str(), key))
    }

    /// Where the release's object of a component stands, hooks left out.
    pub fn place(&self, component: &str) -> Option<&ObjectKey> {
        self.children().find(|(name, _)| *name == component).map(|(_, key)| key)
    }

    /// Identities of the releases, hooks left out.
    pub fn claims(&self) -> impl Iterator<Item = Claim> {
        self.components.iter().filter(|component| !component.hook).map(|component| component.release.clone())
    }

    /// Whether a live object at the place of a component is this Package's, or
    /// given to the component.
    pub fn owns(&self, snapshot: &Snapshot, component: &str, child: &Live) -> bool {
        child.package() == Some(snapshot.package.name.as_str()) || adopt::is_given(snapshot, component, child)
    }

    /// Components that run under another identity than they are wanted.
    pub fn replacements(&self, revisions: &[RevisionView]) -> Vec<Replacement> {
        let latest = revisions.last();
        let pairs = self.components.iter().filter(|component| !component.hook).filter_map(|component| {
            let recorded = latest?.component(&component.name).filter(|recorded| !recorded.hook)?;
            Some((component, recorded))
        });
        pairs
            .filter_map(|(wanted, recorded)| {
                let what = difference(wanted, recorded)?;
                Some(Replacement { component: wanted.name.clone(), what })
            })
            .collect()
    }
}

/// In what the identity of a release differs from what is recorded.
fn difference(wanted: &RecordedComponent, recorded: &RecordedComponent) -> Option<&'static str> {
    if wanted.release.name != recorded.release.name {
        Some("release name")
    } else if wanted.release != recorded.release {
        Some("namespace")
    } else if base_name(&wanted.chart_name) != base_name(&recorded.chart_name) {
        Some("chart name")
    } else {
        None
    }
}

/// A chart directory is named like its chart; the way there may change.
fn base_name(chart: &str) -> &str {
    chart.rsplit('/').next().unwrap_or(chart)
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

/// Helm's records of a release that was taken over stay where they are.
fn stored_elsewhere(snapshot: &Snapshot, key: &ObjectKey, release: Claim) -> Claim {
    let taken_over = snapshot.children.iter().find(|child| child.key() == key && adopt::is_taken_over(child));
    let found = taken_over.and_then(release::claim);
    found.filter(|found| (&found.namespace, &found.name) == (&release.namespace, &release.name)).unwrap_or(release)
}

/// Where the component's release object stands: at the name of the child that
/// already stands for it (an adopted one may have any), else at its own.
fn child_key(snapshot: &Snapshot, definition: &Definition, component: &Component, engine: Engine) -> ObjectKey {
    let package = snapshot.package.name.as_str();
    let stands_for_it = |child: &&Live| {
        let ours = child.package() == Some(package) && child.component() == Some(component.name.as_str());
        (ours || adopt::is_given(snapshot, component.name.as_str(), child))
            && release::engine_of(&child.key().kind) == Some(engine)
    };
    let own = child_name(&definition.name, &component.name);
    let standing = snapshot.children.iter().filter(stands_for_it);
    let mut name = own.clone();
    for child in standing {
        if child.name() == own {
            return release::key(engine, &snapshot.package.namespace, own);
        }
        name = child.name().to_owned();
    }
    release::key(engine, &snapshot.package.namespace, name)
}
