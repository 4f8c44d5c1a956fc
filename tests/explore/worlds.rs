//! Small worlds, every one of their interleavings: whatever is due soon may
//! happen next, and once, at any point, the controller is killed or another
//! commit arrives. Worlds that differ only in time are one.

use std::collections::HashSet;

use windlass::api::Engine;
use windlass::rehearse::{Choice, Rehearsal};
use windlass::sim::chart::{Care, Outcome};

use crate::history::{Commit, Component, Event, History, Troubles};
use crate::judge::{ENDS, Watch, ready};

/// Milliseconds within which what is due may come in any order.
const SOON: u64 = 200;
/// More states than any of the worlds below has.
const MOST: usize = 400_000;

#[derive(Clone)]
struct State {
    rehearsal: Rehearsal,
    watch: Watch,
    kills: u32,
    /// The commit that has not been made yet.
    next: usize,
    depth: u32,
}

fn make(history: &History, rehearsal: &mut Rehearsal, number: usize) {
    history.happen(rehearsal, Event::Commit(number));
    rehearsal.run_for(0);
}

struct Explored {
    states: usize,
    ends: usize,
}

fn explore(history: &History, kills: u32) -> Explored {
    let mut start = State { rehearsal: history.start(), watch: Watch::default(), kills, next: 1, depth: 0 };
    make(history, &mut start.rehearsal, 0);
    start.rehearsal.run_for(200_000);
    make(history, &mut start.rehearsal, 1);
    start.next = 2;
    let mut seen = HashSet::new();
    let (mut open, mut explored) = (vec![start], Explored { states: 0, ends: 0 });
    while let Some(state) = open.pop() {
        let mark = (state.rehearsal.fingerprint(SOON), state.kills, state.next);
        if !seen.insert(mark) {
            continue;
        }
        explored.states += 1;
        assert!(explored.states < MOST, "more than {MOST} states");
        let choices = choices(history, &state);
        if choices.is_empty() {
            end(&state);
            explored.ends += 1;
        }
        for choice in choices {
            let mut next = state.clone();
            next.depth += 1;
            assert!(next.depth < 20_000, "it does not end: {:?}", ready(&next.rehearsal));
            take(history, &mut next, choice);
            let judged = next.watch.follow(history, &next.rehearsal);
            judged.unwrap_or_else(|error| panic!("{error}\n{}", tell(&next.rehearsal)));
            open.push(next);
        }
    }
    explored
}

#[derive(Clone, Copy)]
enum Step {
    Choice(Choice),
    Kill,
    Commit,
}

/// What can happen; nothing once the package rests and only clocks go on.
fn choices(history: &History, state: &State) -> Vec<Step> {
    let mut steps: Vec<Step> = state.rehearsal.choices(SOON).into_iter().map(Step::Choice).collect();
    let busy = steps.iter().any(|step| !matches!(step, Step::Choice(Choice::Later)));
    let rests = ready(&state.rehearsal).is_some_and(|(reason, _)| ENDS.contains(&reason.as_str()));
    let over = state.next == history.commits.len();
    if rests && !busy {
        steps.clear();
    }
    let writing = state.rehearsal.is_writing();
    if state.kills > 0 && writing {
        steps.push(Step::Kill);
    }
    if !over && (busy || rests) {
        steps.push(Step::Commit);
    }
    steps
}

fn take(history: &History, state: &mut State, step: Step) {
    match step {
        Step::Choice(Choice::Later) => later(state),
        Step::Choice(choice) => state.rehearsal.choose(choice),
        Step::Kill => {
            state.kills -= 1;
            state.rehearsal.restart(0);
        }
        Step::Commit => {
            make(history, &mut state.rehearsal, state.next);
            state.next += 1;
        }
    }
}

/// Time passes until something is different from before.
fn later(state: &mut State) {
    let before = state.rehearsal.fingerprint(SOON);
    let end = state.rehearsal.now() + 3_600_000;
    while state.rehearsal.now() < end && state.rehearsal.fingerprint(SOON) == before {
        state.rehearsal.choose(Choice::Later);
    }
}

fn end(state: &State) {
    let (reason, message) = ready(&state.rehearsal).expect("it has a status");
    assert!(ENDS.contains(&reason.as_str()), "it ends at {reason}: {message}\n{}", tell(&state.rehearsal));
}

fn tell(rehearsal: &Rehearsal) -> String {
    let log = rehearsal.world.store.log().iter();
    let lines: Vec<String> = log.map(|c| format!("{:>9} {:<18} {:?} {}", c.at, c.actor, c.verb, c.key)).collect();
    lines.join("\n")
}

fn component(depends_on: &[usize], is_resource: bool) -> Component {
    Component { depends_on: depends_on.to_vec(), is_resource, stays_true: true, by_condition: false, takes: 100 }
}

fn commit(moves: &[bool], safe: bool, outcomes: &[Outcome]) -> Commit {
    Commit {
        after: 0,
        moves: moves.to_vec(),
        present: vec![true; moves.len()],
        safe,
        outcomes: outcomes.to_vec(),
        care: vec![Care::Reports; moves.len()],
        hook: None,
    }
}

fn history(engine: Engine, components: Vec<Component>, commits: Vec<Commit>) -> History {
    History { engine, components, commits, troubles: Troubles::default(), retry: None, deleted: false }
}

/// A chain of components that all work, then the commits given.
fn chain(engine: Engine, length: usize, commits: Vec<Commit>) -> History {
    let components = (0..length).map(|at| component(&(at.saturating_sub(1)..at).collect::<Vec<_>>(), false)).collect();
    let first = commit(&vec![true; length], true, &vec![Outcome::Succeeds; length]);
    history(engine, components, [vec![first], commits].concat())
}

const WORKS: Outcome = Outcome::Succeeds;
const FAILS: Outcome = Outcome::Fails;

/// A world, and how often the controller may be killed in it.
pub struct World {
    name: &'static str,
    history: History,
    kills: u32,
}

/// Explores worlds, says how many states each has, and gives their number.
pub fn all(worlds: Vec<World>) -> usize {
    let mut states = 0;
    for World { name, history, kills } in worlds {
        let explored = explore(&history, kills);
        assert!(explored.ends > 0, "{name} has no end");
        println!("{:>9} states, {:>4} ends  {}: {name}", explored.states, explored.ends, history.engine.as_str());
        states += explored.states;
    }
    states
}

fn upgrade(count: usize) -> Commit {
    commit(&vec![true; count], true, &vec![WORKS; count])
}

fn fails(count: usize, safe: bool) -> Commit {
    let mut outcomes = vec![WORKS; count];
    outcomes[count - 1] = FAILS;
    commit(&vec![true; count], safe, &outcomes)
}

fn world(name: &'static str, history: History, kills: u32) -> World {
    World { name, history, kills }
}

/// Small ones, up to two components.
pub fn small(engine: Engine) -> Vec<World> {
    let mut hooked = upgrade(1);
    hooked.hook = Some(WORKS);
    let mut operator = chain(engine, 2, vec![commit(&[true, false], true, &[WORKS, WORKS])]);
    operator.components[1].is_resource = true;
    let mut worlds = vec![
        world("two are upgraded, with a kill", chain(engine, 2, vec![upgrade(2)]), 1),
        world("an operator is upgraded, with a kill", operator, 1),
        world("a hook runs, with a kill", chain(engine, 1, vec![hooked]), 1),
        world("the second fails and both go back", chain(engine, 2, vec![fails(2, true)]), 0),
    ];
    if engine == Engine::Flux {
        // On Argo CD these are larger ones.
        worlds.push(world("three are upgraded", chain(engine, 3, vec![upgrade(3)]), 0));
        worlds.push(failure_and_fix(engine));
    }
    worlds
}

fn failure_and_fix(engine: Engine) -> World {
    world("it fails and stays, a fix at any time", chain(engine, 1, vec![fails(1, false), upgrade(1)]), 0)
}

/// Larger ones, up to four components.
pub fn large(engine: Engine) -> Vec<World> {
    vec![
        failure_and_fix(engine),
        world("three are upgraded, with a kill", chain(engine, 3, vec![upgrade(3)]), 1),
        world("four are upgraded", chain(engine, 4, vec![upgrade(4)]), 0),
        world("the second fails and both go back, with a kill", chain(engine, 2, vec![fails(2, true)]), 1),
        world("the second fails and stays, a fix at any time", chain(engine, 2, vec![fails(2, false), upgrade(2)]), 0),
        world("the third fails and all go back", chain(engine, 3, vec![fails(3, true)]), 0),
    ]
}
