//! What can fail in a scene.

use std::collections::BTreeSet;

use crate::rehearse::report::Report;
use crate::rehearse::scene::{FailAt, Failure, Place, Scene};
use crate::rehearse::timeline::{Moment, What};

/// What a turn goes through.
const STEPS: [FailAt; 6] =
    [FailAt::Chart, FailAt::Release, FailAt::Workload, FailAt::Ready, FailAt::Canary, FailAt::Late];

/// What can fail of all that was done where nothing did, in the order of the
/// turns and of what a turn goes through.
pub fn of(scene: &Scene, plain: &Report) -> Vec<Failure> {
    let mut seen = BTreeSet::new();
    let mut failures = Vec::new();
    for moment in &plain.moments {
        let moves = match moment.what {
            What::Moves { .. } | What::HookRuns => true,
            What::VerifiedAgain { .. } => false,
            _ => continue,
        };
        let Some(place) = place(moment).filter(|place| seen.insert(place.clone())) else { continue };
        let steps = STEPS.into_iter().filter(|at| moves || *at == FailAt::Ready);
        let possible = steps.map(|at| Failure { place: place.clone(), at });
        failures.extend(possible.filter(|failure| is_possible(scene, failure)));
    }
    failures
}

fn place(moment: &Moment) -> Option<Place> {
    let (package, component) = (moment.package.as_ref()?, moment.component.as_ref()?);
    Some(Place { namespace: package.namespace.clone(), package: package.name.clone(), component: component.clone() })
}

fn is_possible(scene: &Scene, failure: &Failure) -> bool {
    let Some(component) = scene.component(&failure.place) else { return false };
    // Whether a hook went well is said by its release alone.
    let counts = !(component.hook && failure.at == FailAt::Ready);
    counts && scene.allow(failure).is_ok()
}

/// Components that went back.
pub fn went_back(report: &Report) -> Vec<Place> {
    let back = report.moments.iter().filter(|moment| matches!(moment.what, What::GoesBack { .. }));
    let places: BTreeSet<Place> = back.filter_map(place).collect();
    places.into_iter().collect()
}
