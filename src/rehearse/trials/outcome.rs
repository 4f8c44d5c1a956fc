//! How a play ended, as far as it tells one from another.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{ComponentState, Reason};
use crate::package::definition::{Component, Definition};
use crate::rehearse::play::{End, Played};
use crate::rehearse::process::PackageId;
use crate::rehearse::report::Report;
use crate::rehearse::scene::{Scene, chart_version};
use crate::rehearse::timeline::What;
use crate::sim::Runs;

/// How a play ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether everything is as it is wanted.
    pub end: End,
    /// The Packages, by namespace and name.
    pub packages: Vec<Standing>,
    /// Milliseconds from the commit to the last thing that happened: the least and
    /// the most of all that led to the same.
    pub took: (u64, u64),
    /// Messages of the condition Ready of those that are not, at the first time.
    pub messages: BTreeMap<PackageId, String>,
}

/// Where a Package stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which.
    pub id: PackageId,
    /// Version that is wanted.
    pub wanted: String,
    /// Version that last succeeded.
    pub version: Option<String>,
    /// Whether it is Ready, with nothing left to do.
    pub is_ready: bool,
    /// Reason of its condition Ready.
    pub reason: String,
    /// Whether a component of it was installed, upgraded, removed or handed over.
    pub moved: bool,
    /// Its hooks, and how often each of them ran.
    pub hooks: BTreeMap<String, usize>,
    /// Its components, and those that it had before and that still run.
    pub components: Vec<ComponentAtEnd>,
}

/// What a component runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentAtEnd {
    /// Its name.
    pub name: String,
    /// What it runs.
    pub runs: Runs,
    /// Whether its Package says that it failed, and it runs what it failed with.
    pub failed: bool,
}

impl Outcome {
    /// How a play ended.
    pub fn of(scene: &Scene, played: &Played, report: &Report) -> Self {
        let packages = report.packages.iter().map(|package| {
            let id = PackageId::new(&package.namespace, &package.name);
            let moments = report.moments.iter().filter(|moment| moment.package.as_ref() == Some(&id));
            let (mut moved, mut hooks) = (false, BTreeMap::new());
            for moment in moments {
                match (&moment.what, &moment.component) {
                    (What::Moves { .. } | What::Uninstalls | What::HandsOver, _) => moved = true,
                    (What::HookRuns, Some(hook)) => *hooks.entry(hook.clone()).or_insert(0) += 1,
                    _ => {}
                }
            }
            let failed = |name: &str| {
                let mut states = package.status.components.iter();
                states.any(|component| component.name == name && component.state == ComponentState::Failed)
            };
            let components = components(scene, &id).into_iter().filter_map(|component| {
                let runs = played.rehearsal.world.runs(component.namespace.as_str(), component.release_name.as_str());
                let name = component.name.to_string();
                let is_wanted = runs.versions.iter().any(|running| running.version == chart_version(component));
                let failed = is_wanted && failed(&name);
                (!runs.versions.is_empty()).then_some(ComponentAtEnd { failed, name, runs })
            });
            Standing {
                wanted: package.wanted.clone(),
                version: package.status.version.clone(),
                is_ready: package.is_ready(),
                reason: package.reason().to_owned(),
                moved,
                hooks,
                components: components.collect(),
                id,
            }
        });
        let stopped = report.packages.iter().filter(|package| !package.is_ready());
        let messages =
            stopped.map(|package| (PackageId::new(&package.namespace, &package.name), package.message().to_owned()));
        let messages = messages.collect();
        Self { end: report.end, packages: packages.collect(), took: (report.took, report.took), messages }
    }

    /// Whether two plays came to the same, whatever time they took.
    pub fn is_like(&self, other: &Self) -> bool {
        self.end == other.end && self.packages == other.packages
    }

    /// Takes the time of another one that came to the same.
    pub fn add_time(&mut self, other: &Self) {
        self.took = (self.took.0.min(other.took.0), self.took.1.max(other.took.1));
    }

    /// Where a Package stands, if it is there.
    pub fn standing(&self, id: &PackageId) -> Option<&Standing> {
        self.packages.iter().find(|package| package.id == *id)
    }
}

impl Standing {
    /// Whether it waits for something, rather than having failed.
    pub fn waits(&self) -> bool {
        let waits = [Reason::RequirementsNotMet, Reason::SourceNotFound, Reason::Preparing, Reason::Progressing];
        waits.iter().any(|reason| reason.as_str() == self.reason)
    }
}

/// Components of a Package that are no hooks, those that are wanted first.
fn components<'a>(scene: &'a Scene, id: &PackageId) -> Vec<&'a Component> {
    let of = |definition: &&'a Definition| {
        definition.namespace.as_str() == id.namespace && definition.name.as_str() == id.name
    };
    let definitions = scene.after.iter().chain(&scene.before).map(|package| &package.definition).filter(of);
    let mut seen = BTreeSet::new();
    let components = definitions.flat_map(|definition| &definition.components).filter(|component| !component.hook);
    components.filter(|component| seen.insert((&component.namespace, &component.release_name))).collect()
}
