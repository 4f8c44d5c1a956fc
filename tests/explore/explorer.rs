//! Goes through every state of a world: whatever is due soon may happen next, and
//! at any point, within a budget, something goes wrong, the controller is killed, or
//! another commit arrives. Worlds that differ only in time are one.
//!
//! Four things keep the number of states small, and none hides a behaviour:
//!
//! * A step that nothing comes of is left for later as long as anything else may
//!   happen: the state after it can do nothing that the state before it cannot, since
//!   whoever has looked looks again when something changes.
//! * A state in which less may still go wrong is not gone through again where more
//!   may. What leaves most to go wrong therefore goes first.
//! * What the controller writes for itself alone is written at once: see
//!   [`Rehearsal::choices`]. That it may be killed, or refused, is tried all the same.
//! * Of time only this counts: what is due within [`SOON`], in any order, and what is
//!   not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use windlass::rehearse::{Choice, Fault, Moment, Rehearsal};

use crate::history::{Event, History};
use crate::judge::{ENDS, Watch, ready};

/// Milliseconds within which what is due may come in any order.
const SOON: u64 = 200;
/// More states than any world has.
const MOST: usize = 2_000_000;
/// More steps than any way to an end has.
const LONGEST: u32 = 20_000;

/// A world, and what may go wrong in it.
pub struct World {
    pub name: &'static str,
    pub history: History,
    /// How often the controller may be killed.
    pub kills: u8,
    /// Faults of which one may happen.
    pub faults: fn(Fault) -> bool,
}

/// What was found.
#[derive(Default)]
pub struct Explored {
    pub states: usize,
    pub ends: usize,
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    kills: u8,
    faults: u8,
}

impl Budget {
    fn covers(self, other: Self) -> bool {
        self.kills >= other.kills && self.faults >= other.faults
    }

    fn size(self) -> usize {
        usize::from(self.kills + self.faults)
    }
}

#[derive(Clone)]
struct State {
    rehearsal: Rehearsal,
    watch: Watch,
    budget: Budget,
    /// The commit that has not been made yet.
    next: usize,
    depth: u32,
}

enum Step {
    Choice(Choice),
    Fault(Fault),
    Kill,
    Commit,
}

/// States that are to be gone through, and those that were.
#[derive(Default)]
struct Front {
    open: Vec<Vec<(u64, State)>>,
    seen: HashMap<u64, Vec<Budget>>,
}

impl Front {
    fn is_known(&self, mark: u64, budget: Budget) -> bool {
        self.seen.get(&mark).is_some_and(|seen| seen.iter().any(|known| known.covers(budget)))
    }

    fn put(&mut self, mark: u64, state: State) {
        if self.is_known(mark, state.budget) {
            return;
        }
        let size = state.budget.size();
        if self.open.len() <= size {
            self.open.resize_with(size + 1, Vec::new);
        }
        self.open[size].push((mark, state));
    }

    /// The next state, of those in which most may still go wrong.
    fn take(&mut self) -> Option<State> {
        loop {
            let (mark, state) = self.open.iter_mut().rev().find_map(Vec::pop)?;
            if !self.is_known(mark, state.budget) {
                self.seen.entry(mark).or_default().push(state.budget);
                return Some(state);
            }
        }
    }
}

/// Goes through all states of a world.
pub fn explore(world: &World) -> Explored {
    let (mut front, mut explored) = (Front::default(), Explored::default());
    let start = start(world);
    front.put(mark(&start, &start.rehearsal.moment(SOON)), start);
    while let Some(state) = front.take() {
        explored.states += 1;
        assert!(explored.states < MOST, "{}: more than {MOST} states", world.name);
        let here = state.rehearsal.moment(SOON);
        let (choices, others) = steps(world, &state);
        if choices.is_empty() && others.is_empty() {
            end(world, &state);
            explored.ends += 1;
        }
        for (there, next) in of_choices(world, &state, &here, choices) {
            front.put(mark(&next, &there), next);
        }
        for step in others {
            let (there, next) = after(world, &state, step);
            front.put(mark(&next, &there), next);
        }
    }
    explored
}

fn start(world: &World) -> State {
    let history = &world.history;
    let budget = Budget { kills: world.kills, faults: 1 };
    let mut start = State { rehearsal: history.start(), watch: Watch::default(), budget, next: 1, depth: 0 };
    make(history, &mut start.rehearsal, 0);
    start.rehearsal.run_for(200_000);
    make(history, &mut start.rehearsal, 1);
    start.next = 2;
    start
}

fn make(history: &History, rehearsal: &mut Rehearsal, number: usize) {
    history.happen(rehearsal, Event::Commit(number));
    rehearsal.run_for(0);
}

fn mark(state: &State, moment: &Moment) -> u64 {
    let mut hasher = DefaultHasher::new();
    (moment, state.next).hash(&mut hasher);
    state.watch.hash_into(&mut hasher);
    hasher.finish()
}

/// Successors of what is due. What nothing comes of is left for later.
fn of_choices(world: &World, state: &State, here: &Moment, choices: Vec<Choice>) -> Vec<(Moment, State)> {
    let all: Vec<_> = choices.into_iter().map(|choice| after(world, state, Step::Choice(choice))).collect();
    let (mut idle, busy): (Vec<_>, Vec<_>) = all.into_iter().partition(|(there, _)| here.is_left_alone_by(there));
    if busy.is_empty() { idle.drain(..).take(1).collect() } else { busy }
}

/// What can happen, and what can go wrong besides; nothing once the package rests
/// and only clocks go on.
fn steps(world: &World, state: &State) -> (Vec<Choice>, Vec<Step>) {
    let mut choices = state.rehearsal.choices(SOON);
    let busy = choices.iter().any(|choice| *choice != Choice::Later);
    let rests = ready(&state.rehearsal).is_some_and(|(reason, _)| ENDS.contains(&reason.as_str()));
    if rests && !busy {
        choices.clear();
    }
    let mut others = Vec::new();
    if state.budget.kills > 0 && state.rehearsal.is_writing() {
        others.push(Step::Kill);
    }
    if state.next < world.history.commits.len() && (busy || rests) {
        others.push(Step::Commit);
    }
    if state.budget.faults > 0 && (busy || !rests) {
        let faults = state.rehearsal.possible_faults(SOON).into_iter();
        others.extend(faults.filter(|fault| (world.faults)(*fault)).map(Step::Fault));
    }
    (choices, others)
}

fn after(world: &World, state: &State, step: Step) -> (Moment, State) {
    let mut next = state.clone();
    next.depth += 1;
    assert!(next.depth < LONGEST, "{} does not end: {:?}", world.name, ready(&next.rehearsal));
    match step {
        Step::Choice(Choice::Later) => later(&mut next),
        Step::Choice(choice) => next.rehearsal.choose(choice),
        Step::Fault(fault) => {
            next.budget.faults -= 1;
            next.rehearsal.suffer(fault);
        }
        Step::Kill => {
            next.budget.kills -= 1;
            next.rehearsal.restart(0);
        }
        Step::Commit => {
            make(&world.history, &mut next.rehearsal, next.next);
            next.next += 1;
        }
    }
    // Notes are for people, and only grow.
    next.rehearsal.notes.clear();
    let judged = next.watch.follow(&world.history, &next.rehearsal);
    judged.unwrap_or_else(|error| panic!("{}: {error}\n{}", world.name, tell(&next.rehearsal)));
    (next.rehearsal.moment(SOON), next)
}

/// Time passes until something is different from before.
fn later(state: &mut State) {
    let before = state.rehearsal.moment(SOON);
    let end = state.rehearsal.now() + 3_600_000;
    while state.rehearsal.now() < end && state.rehearsal.moment(SOON) == before {
        state.rehearsal.choose(Choice::Later);
    }
}

fn end(world: &World, state: &State) {
    let (reason, message) = ready(&state.rehearsal).expect("it has a status");
    let ended = ENDS.contains(&reason.as_str());
    assert!(ended, "{} ends at {reason}: {message}\n{}", world.name, tell(&state.rehearsal));
}

fn tell(rehearsal: &Rehearsal) -> String {
    let log = rehearsal.world.store.log().iter();
    let lines: Vec<String> = log.map(|c| format!("{:>9} {:<18} {:?} {}", c.at, c.actor, c.verb, c.key)).collect();
    lines.join("\n")
}
