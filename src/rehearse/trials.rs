//! A scene played again and again: with everything failing that can fail, one at
//! a time, and with the controller killed after each of its steps. What comes to
//! the same is told once.

mod cases;
mod json;
mod outcome;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;

use super::play::{End, Prepared, prepare};
use super::report::{self, Report};
use super::scene::{FailAt, Failure, Place, Scene};

pub use json::write_json;
pub use outcome::{ComponentAtEnd, Outcome, Standing};
pub use text::write_text;

/// Most failures that are tried.
const MOST_FAILURES: usize = 400;
/// Most steps after which the controller is killed; of more some are left out.
const MOST_RESTARTS: u64 = 400;

/// After so many failures a step back is tried.
const MOST_WAYS_BACK: usize = 3;

/// What was found.
#[derive(Debug)]
pub struct Exploration {
    /// The scene played with nothing going wrong.
    pub plain: Report,
    /// How that ended.
    pub outcome: Outcome,
    /// What failures lead to, each outcome once.
    pub failures: Vec<Group>,
    /// What restarts of the controller lead to.
    pub restarts: Restarts,
    /// What is said of the exploration itself.
    pub remarks: Vec<String>,
}

impl Exploration {
    /// Whether all goes well as long as nothing fails.
    pub fn is_sound(&self) -> bool {
        self.plain.end == End::Ready && self.restarts.others.is_empty()
    }
}

/// Failures that lead to the same.
#[derive(Debug)]
pub struct Group {
    /// Failures that happen together, and whatever else leads to the same.
    pub cases: Vec<Vec<Failure>>,
    /// What they lead to.
    pub outcome: Outcome,
}

/// What restarts of the controller lead to.
#[derive(Debug, Default)]
pub struct Restarts {
    /// Steps that the controller takes.
    pub steps: u64,
    /// After how many of them it was killed, each time anew.
    pub tried: u64,
    /// Where it does not end as without: after which steps, and how.
    pub others: Vec<(Vec<u64>, Outcome)>,
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being tried: `restart` or `failure`.
    pub what: &'static str,
    /// How many of them have been.
    pub done: u64,
    /// How many there are, as far as is known by now.
    pub of: u64,
}

/// Tries everything that can go wrong with a scene, and tells how far it is after each trial.
pub fn explore(scene: &Scene, tell: &mut dyn FnMut(Progress)) -> Exploration {
    let prepared = match prepare(scene) {
        Ok(prepared) => prepared,
        Err(played) => {
            let plain = report::report(scene, &played);
            let outcome = Outcome::of(scene, &played, &plain);
            let (failures, restarts, remarks) = (Vec::new(), Restarts::default(), plain.remarks.clone());
            return Exploration { plain, outcome, failures, restarts, remarks };
        }
    };
    let played = prepared.play(scene);
    let plain = report::report(scene, &played);
    let outcome = Outcome::of(scene, &played, &plain);
    let mut remarks = plain.remarks.clone();
    let restarts = restarts(&prepared, scene, &outcome, played.steps, tell);
    if restarts.tried < restarts.steps {
        remarks.push(format!("of its {} steps the controller was killed after {}", restarts.steps, restarts.tried));
    }
    let failures = failures(&prepared, scene, &plain, &mut remarks, tell);
    Exploration { plain, outcome, failures, restarts, remarks }
}

fn restarts(
    prepared: &Prepared,
    scene: &Scene,
    plain: &Outcome,
    steps: u64,
    tell: &mut dyn FnMut(Progress),
) -> Restarts {
    let every = steps.div_ceil(MOST_RESTARTS).max(1);
    let mut restarts = Restarts { steps, ..Restarts::default() };
    prepared.play_with_restarts(scene, every, |step, played| {
        restarts.tried += 1;
        tell(Progress { what: "restart", done: restarts.tried, of: (steps / every).max(restarts.tried) });
        let outcome = Outcome::of(scene, played, &report::report(scene, played));
        if outcome.is_like(plain) {
            return;
        }
        match restarts.others.iter_mut().find(|(_, other)| other.is_like(&outcome)) {
            Some((after, _)) => after.push(step),
            None => restarts.others.push((vec![step], outcome)),
        }
    });
    restarts
}

/// Failures that are being tried.
struct Trials<'a> {
    prepared: &'a Prepared,
    scene: &'a Scene,
    groups: Vec<Group>,
    left: usize,
    /// How many cases there are, each step back aside.
    cases: usize,
    tell: &'a mut dyn FnMut(Progress),
}

/// Failures after which all went back.
struct WentBack {
    failures: Vec<Failure>,
    /// What went back.
    places: Vec<Place>,
    /// Which group they are of.
    group: usize,
}

fn failures(
    prepared: &Prepared,
    scene: &Scene,
    plain: &Report,
    remarks: &mut Vec<String>,
    tell: &mut dyn FnMut(Progress),
) -> Vec<Group> {
    let cases = cases::of(scene, plain);
    let mut trials = Trials { prepared, scene, groups: Vec::new(), left: MOST_FAILURES, cases: cases.len(), tell };
    let mut went_back: Vec<WentBack> = Vec::new();
    for failure in &cases {
        let Some((group, places)) = trials.try_out(vec![failure.clone()], None) else {
            remarks.push(format!("of {} failures {MOST_FAILURES} were tried", cases.len()));
            break;
        };
        if !places.is_empty() {
            went_back.push(WentBack { failures: vec![failure.clone()], places, group });
        }
    }
    trials.fail_on_the_way_back(went_back);
    trials.groups
}

impl Trials<'_> {
    /// Plays some failures; gives the group that they come to, and what went
    /// back. What comes to the same as a group that is named is not told.
    fn try_out(&mut self, failures: Vec<Failure>, same_as: Option<usize>) -> Option<(usize, Vec<Place>)> {
        self.left = self.left.checked_sub(1)?;
        let done = MOST_FAILURES - self.left;
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let progress = Progress { what: "failure", done: number(done), of: number(self.cases.max(done)) };
        (self.tell)(progress);
        let scene = Scene { failures: failures.clone(), ..self.scene.clone() };
        let played = self.prepared.play(&scene);
        let report = report::report(&scene, &played);
        let outcome = Outcome::of(&scene, &played, &report);
        let places = cases::went_back(&report);
        let known = self.groups.iter().position(|group| group.outcome.is_like(&outcome));
        match known.and_then(|at| Some((at, self.groups.get_mut(at)?))) {
            Some((at, _)) if Some(at) == same_as => Some((at, places)),
            Some((at, group)) => {
                group.outcome.add_time(&outcome);
                group.cases.push(failures);
                Some((at, places))
            }
            None => {
                self.groups.push(Group { cases: vec![failures], outcome });
                Some((self.groups.len() - 1, places))
            }
        }
    }

    /// Lets each step back fail, after the failure that comes last: by then most
    /// has moved. Where that makes no difference, after one before.
    fn fail_on_the_way_back(&mut self, went_back: Vec<WentBack>) {
        let places: BTreeSet<&Place> = went_back.iter().flat_map(|all| &all.places).collect();
        for place in places {
            let with = went_back.iter().rev().filter(|all| all.places.contains(place));
            for all in with.take(MOST_WAYS_BACK) {
                let mut failures = all.failures.clone();
                failures.push(Failure { place: place.clone(), at: FailAt::Rollback });
                match self.try_out(failures, Some(all.group)) {
                    Some((group, _)) if group == all.group => {}
                    Some(_) | None => break,
                }
            }
        }
    }
}
