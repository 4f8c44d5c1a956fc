//! What a play came to: the timeline, and the Packages at its end.

mod json;
mod svg;
mod text;

use super::play::{End, Played, status};
use super::renames;
use super::scene::{FailAt, Failure, Scene};
use super::timeline::{self, Moment, What};
use crate::api::{Engine, PackageStatus, Reason};
use crate::package::version::Version;
use crate::sim::store::is_deleting;

pub use json::write_json;
pub use svg::write_svg;
pub use text::write_text;
pub(super) use text::{header, short};

/// Everything there is to say of a play.
#[derive(Debug)]
pub struct Report {
    /// How it ended.
    pub end: End,
    /// Engines of the cluster.
    pub engines: Vec<Engine>,
    /// Version of Kubernetes that was assumed.
    pub kubernetes: Option<Version>,
    /// Packages before the commit, and the versions they ran.
    pub before: Vec<(String, String)>,
    /// What happened.
    pub moments: Vec<Moment>,
    /// The Packages at the end.
    pub packages: Vec<PackageAtEnd>,
    /// What is said of the play itself: parts that were not played, and
    /// mishaps that had no occasion.
    pub remarks: Vec<String>,
    /// Milliseconds from the commit to the last thing that happened.
    pub took: u64,
    /// Steps of the controller since the commit.
    pub steps: u64,
}

/// A Package as it is at the end.
#[derive(Debug)]
pub struct PackageAtEnd {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Version that is wanted.
    pub wanted: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its status.
    pub status: PackageStatus,
    /// Milliseconds since it was created.
    pub age: u64,
}

impl PackageAtEnd {
    /// A field of its condition Ready.
    fn ready(&self) -> Option<&crate::api::Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == "Ready")
    }

    /// Reason of its condition Ready; empty if there is none.
    pub fn reason(&self) -> &str {
        self.ready().map_or("", |ready| ready.reason.as_str())
    }

    /// Message of its condition Ready; empty if there is none.
    pub fn message(&self) -> &str {
        self.ready().map_or("", |ready| ready.message.as_str())
    }

    /// Whether it is Ready, with nothing left to do.
    pub fn is_ready(&self) -> bool {
        let reconciling = self.status.conditions.iter().any(|condition| condition.type_ == "Reconciling");
        !self.deleting && !reconciling && self.ready().is_some_and(|ready| ready.status == "True")
    }
}

/// Puts together what is said of a play.
pub fn report(scene: &Scene, played: &Played) -> Report {
    let moments = timeline::of(played);
    let before = scene.before.iter().map(|package| &package.definition);
    let settings = &played.rehearsal.settings;
    let remarks = remarks(scene, played, &moments);
    Report {
        end: played.end,
        engines: settings.engines.iter().copied().collect(),
        kubernetes: settings.kubernetes.clone(),
        before: before.map(|definition| (definition.name.to_string(), definition.version.to_string())).collect(),
        packages: packages(played),
        remarks,
        took: moments.last().map_or(0, |last| last.at),
        moments,
        steps: played.steps,
    }
}

fn packages(played: &Played) -> Vec<PackageAtEnd> {
    let world = &played.rehearsal.world;
    let end = world.timestamp();
    world
        .store
        .list("Package")
        .map(|(key, object)| {
            let text = |path: &[&str]| super::packages::text(object, path).to_owned();
            let created: Option<jiff::Timestamp> = text(&["metadata", "creationTimestamp"]).parse().ok();
            let age = created.map_or(0, |created| end.duration_since(created).as_millis());
            PackageAtEnd {
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                wanted: text(&["spec", "version"]),
                deleting: is_deleting(object),
                status: status(object).unwrap_or_default(),
                age: u64::try_from(age).unwrap_or(0),
            }
        })
        .collect()
}

fn remarks(scene: &Scene, played: &Played, moments: &[Moment]) -> Vec<String> {
    let not_played = played.not_played.iter().map(|not_played| format!("{}: {}", not_played.place, not_played.message));
    let idle = scene.failures.iter().filter_map(|failure| no_failure(failure, moments));
    let restart = scene.restart_at.filter(|step| *step > played.steps && played.end != End::NotBegun);
    let restart =
        restart.map(|step| format!("the controller took {} steps and was not killed after {step}", played.steps));
    not_played.chain(renames::remarks(scene)).chain(idle).chain(restart).collect()
}

/// What is said of a failure that did not come to pass.
fn no_failure(failure: &Failure, moments: &[Moment]) -> Option<String> {
    let place = &failure.place;
    let of_package = |moment: &&Moment| {
        let package = moment.package.as_ref();
        package.is_some_and(|package| package.namespace == place.namespace && package.name == place.package)
    };
    let happened = |is: fn(&What) -> bool| {
        let mut own = moments.iter().filter(of_package);
        own.any(|moment| moment.component.as_deref() == Some(&place.component) && is(&moment.what))
    };
    let moved = || happened(|what| matches!(what, What::Moves { .. } | What::HookRuns));
    let lacks_source =
        |what: &What| matches!(what, What::Waits { reason, .. } if reason == Reason::SourceNotFound.as_str());
    let had_occasion = match failure.at {
        FailAt::Chart => moved() || moments.iter().filter(of_package).any(|moment| lacks_source(&moment.what)),
        FailAt::Release | FailAt::Workload | FailAt::Canary | FailAt::Late => moved(),
        FailAt::Ready => moved() || happened(|what| matches!(what, What::VerifiedAgain { .. })),
        FailAt::Rollback => happened(|what| matches!(what, What::GoesBack { .. })),
    };
    let went_well = match failure.at {
        FailAt::Rollback => happened(|what| matches!(what, What::IsBack { .. })),
        FailAt::Chart | FailAt::Release | FailAt::Workload | FailAt::Canary | FailAt::Late | FailAt::Ready => {
            happened(|what| matches!(what, What::Verified { .. } | What::HookSucceeded { .. }))
        }
    };
    if !had_occasion {
        return Some(format!("{place}: it did not come to what was to fail"));
    }
    went_well.then(|| format!("{place}: what was to fail went well: nothing new was done that could fail there"))
}
