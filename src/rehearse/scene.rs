//! What is played: Packages as they are before and after a commit, and what is
//! to go wrong.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::api::Engine;
use crate::canary::Settings;
use crate::package::definition::{ChartSource, Component, Definition, Requirement, did_you_mean};
use crate::package::load::LoadedPackage;
use crate::package::version::Version;
use crate::translate::{Compilation, Compiled, Refusal, compile};

/// Repository that charts at a path come from, where nobody knows it.
pub(crate) const REPOSITORY: &str = "https://git.example.org/rehearsal.git";
/// Minor versions of Kubernetes, of which the newest that suits everybody is taken.
const KUBERNETES: std::ops::RangeInclusive<u32> = 20..=60;
/// What the cluster runs where no Package asks for anything.
const USUAL_KUBERNETES: u32 = 36;

/// Packages before and after a commit, and what is to go wrong with it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What runs before; empty: nothing.
    pub before: Vec<Compiled>,
    /// What is committed.
    pub after: Vec<Compiled>,
    /// What is to fail.
    pub failures: Vec<Failure>,
    /// What is to take its time.
    pub delays: Vec<(Place, Duration)>,
    /// The controller is killed after so many of its steps.
    pub restart_at: Option<u64>,
    /// Nodes of the cluster, where a canary is played.
    pub nodes: usize,
}

/// Nodes of the cluster, where nobody says how many.
const NODES: usize = 10;

impl Default for Scene {
    fn default() -> Self {
        let (before, after, failures, delays) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { before, after, failures, delays, restart_at: None, nodes: NODES }
    }
}

/// A component of a Package that is committed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Namespace of the Package.
    pub namespace: String,
    /// Name of the Package.
    pub package: String,
    /// Name of the component.
    pub component: String,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.package, self.component)
    }
}

/// Where on its way a component fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailAt {
    /// Its chart cannot be fetched.
    Chart,
    /// The engine cannot install or upgrade its release.
    Release,
    /// Its workload never becomes ready; the Job of a hook fails.
    Workload,
    /// Its `readyWhen` never holds; where `failed` is given, that comes to hold.
    Ready,
    /// The engine cannot bring back the release that ran before.
    Rollback,
    /// New pods of its DaemonSets crash at once.
    Canary,
    /// New pods of its DaemonSets become ready, and crash twenty seconds later.
    Late,
}

impl FailAt {
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Chart, Self::Release, Self::Workload, Self::Ready, Self::Rollback, Self::Canary, Self::Late];

    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chart => "chart",
            Self::Release => "release",
            Self::Workload => "workload",
            Self::Ready => "ready",
            Self::Rollback => "rollback",
            Self::Canary => "canary",
            Self::Late => "late",
        }
    }
}

/// Something that is to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What fails.
    pub place: Place,
    /// Where on its way.
    pub at: FailAt,
}

/// Reads Packages for a cluster in which `default` applies those that name no
/// engine. Charts at a path get the source that Argo CD's plugin would give them.
///
/// # Errors
/// Everything that stands in the way of a Package.
pub fn read(packages: Vec<LoadedPackage>, default: Engine, commit: u32) -> Result<Vec<Compiled>, Vec<Refusal>> {
    let (mut read, mut refusals) = (Vec::new(), Vec::new());
    let commit = commit_id(commit);
    for package in packages {
        let engine = package.definition.as_ref().and_then(|definition| definition.engine).unwrap_or(default);
        let origin = match engine {
            Engine::Flux => None,
            Engine::Argo => Some((REPOSITORY, commit.as_str())),
        };
        let compilation = Compilation { engine: Some(engine), origin, origin_stated_in: "", charts: None };
        match compile(package, &compilation) {
            Ok(compiled) => read.push(compiled),
            Err(mut found) => refusals.append(&mut found),
        }
    }
    if refusals.is_empty() { Ok(read) } else { Err(refusals) }
}

/// Id of a commit of the repository that charts at a path come from.
pub(super) fn commit_id(number: u32) -> String {
    format!("{number:040x}")
}

impl Scene {
    /// Engines that the Packages name.
    pub fn engines(&self) -> BTreeSet<Engine> {
        self.definitions().filter_map(|definition| definition.engine).collect()
    }

    /// The newest version of Kubernetes that all requirements admit; else the
    /// usual one, and the requirement is shown to be unmet.
    pub fn kubernetes(&self) -> Option<Version> {
        let ranges: Vec<_> = self
            .definitions()
            .flat_map(|definition| &definition.requires)
            .filter_map(|requirement| match requirement {
                Requirement::Kubernetes { range } => Some(range),
                Requirement::Package { .. } => None,
            })
            .collect();
        let version = |minor: u32| Version::parse(&format!("1.{minor}.0")).ok();
        let nearest = (0..=USUAL_KUBERNETES).rev().filter(|minor| KUBERNETES.contains(minor));
        let later = KUBERNETES.filter(|minor| *minor > USUAL_KUBERNETES);
        let mut versions = nearest.chain(later).filter_map(version);
        versions.find(|version| ranges.iter().all(|range| range.admits(version))).or_else(|| version(USUAL_KUBERNETES))
    }

    /// Whether a component has a canary: then there are nodes.
    pub fn has_canary(&self) -> bool {
        self.canaries().next().is_some()
    }

    /// How components with a canary are rolled out.
    pub(super) fn canaries(&self) -> impl Iterator<Item = Settings> {
        let components = self.definitions().flat_map(|definition| &definition.components);
        components.filter_map(|component| component.canary.as_ref().map(Settings::from))
    }

    fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.before.iter().chain(&self.after).map(|package| &package.definition)
    }

    /// Finds a component that is committed, by `component`, `package/component` or
    /// `namespace/package/component`.
    ///
    /// # Errors
    /// A message when there is none, or more than one.
    pub fn find(&self, name: &str) -> Result<Place, String> {
        let mut parts = name.rsplitn(3, '/');
        let (component, package, namespace) = (parts.next().unwrap_or(name), parts.next(), parts.next());
        let all: Vec<(&Definition, &Component)> = self
            .after
            .iter()
            .flat_map(|after| after.definition.components.iter().map(move |component| (&after.definition, component)))
            .collect();
        let named = all.iter().filter(|(definition, found)| {
            found.name.as_str() == component
                && package.is_none_or(|package| definition.name.as_str() == package)
                && namespace.is_none_or(|namespace| definition.namespace.as_str() == namespace)
        });
        let mut places = named.map(|(definition, found)| place(definition, found));
        match (places.next(), places.next()) {
            (Some(only), None) => Ok(only),
            (Some(first), Some(second)) => {
                let said = |place: &Place| match first.package == second.package {
                    true => format!("{}/{place}", place.namespace),
                    false => place.to_string(),
                };
                Err(format!("`{name}` is ambiguous: say {} or {}", said(&first), said(&second)))
            }
            (None, _) => {
                let names = all.iter().map(|(_, component)| component.name.as_str());
                let hint = match did_you_mean(component, names).as_str() {
                    "" => String::new(),
                    hint => format!(": {hint}"),
                };
                Err(format!("there is no component `{name}`{hint}"))
            }
        }
    }

    /// The Package of a place.
    pub(super) fn definition(&self, place: &Place) -> Option<&Definition> {
        self.after.iter().map(|after| &after.definition).find(|definition| {
            definition.namespace.as_str() == place.namespace && definition.name.as_str() == place.package
        })
    }

    /// The component of a place.
    pub(super) fn component(&self, place: &Place) -> Option<&Component> {
        self.definition(place)?.components.iter().find(|component| component.name.as_str() == place.component)
    }

    /// Says where a failure cannot happen at all.
    ///
    /// # Errors
    /// A message that says why not.
    pub fn allow(&self, failure: &Failure) -> Result<(), String> {
        let Some(component) = self.component(&failure.place) else { return Ok(()) };
        let place = &failure.place;
        match failure.at {
            FailAt::Ready if component.ready_when.is_empty() => {
                Err(format!("{place} has no readyWhen that could fail"))
            }
            FailAt::Rollback if component.hook => Err(format!("{place} is a hook: it is not rolled back")),
            FailAt::Rollback if self.before.is_empty() => {
                Err(format!("{place} has nothing to go back to: say with --from what runs before"))
            }
            FailAt::Canary | FailAt::Late if component.canary.is_none() => {
                Err(format!("{place} has no canary that could fail"))
            }
            FailAt::Chart
            | FailAt::Release
            | FailAt::Workload
            | FailAt::Ready
            | FailAt::Rollback
            | FailAt::Canary
            | FailAt::Late => Ok(()),
        }
    }
}

/// Names a component.
pub(super) fn place(definition: &Definition, component: &Component) -> Place {
    Place {
        namespace: definition.namespace.to_string(),
        package: definition.name.to_string(),
        component: component.name.to_string(),
    }
}

/// Version of a component's chart as it is written; empty if nobody says.
pub(crate) fn chart_version(component: &Component) -> &str {
    match &component.chart {
        ChartSource::Repository(chart) => chart.version.as_written(),
        ChartSource::Path(chart) => chart.chart_version.as_ref().map(Version::as_written).unwrap_or_default(),
    }
}
