//! Small worlds: what is installed, what is committed then, and how it goes.

use windlass::api::Engine;
use windlass::rehearse::Fault;
use windlass::sim::chart::{Care, Outcome};
use windlass::sim::world::Part;

use crate::explorer::World;
use crate::history::{Commit, Component, History, Troubles};

const WORKS: Outcome = Outcome::Succeeds;
const FAILS: Outcome = Outcome::Fails;
const HANGS: Outcome = Outcome::Hangs;

fn component(depends_on: &[usize], is_resource: bool) -> Component {
    Component { depends_on: depends_on.to_vec(), is_resource, stays_true: true, by_condition: false, takes: 100 }
}

fn commit(moves: &[bool], safe: bool, outcomes: &[Outcome]) -> Commit {
    Commit { moves: moves.to_vec(), safe, outcomes: outcomes.to_vec(), ..Commit::of(moves.len()) }
}

/// A chain of components that all work, then the commits given.
fn chain(engine: Engine, length: usize, commits: Vec<Commit>) -> History {
    let components = (0..length).map(|at| component(&(at.saturating_sub(1)..at).collect::<Vec<_>>(), false)).collect();
    let commits = [vec![upgrade(length)], commits].concat();
    History { engine, components, commits, troubles: Troubles::default(), retry: None, deleted: false, adopts: false }
}

/// An operator, what it looks after, and what depends on that.
fn operated(engine: Engine, commits: Vec<Commit>) -> History {
    let mut history = chain(engine, 3, commits);
    history.components[1].is_resource = true;
    history
}

fn upgrade(count: usize) -> Commit {
    commit(&vec![true; count], true, &vec![WORKS; count])
}

/// The last one comes to something else.
fn last(count: usize, safe: bool, outcome: Outcome) -> Commit {
    let mut outcomes = vec![WORKS; count];
    outcomes[count - 1] = outcome;
    commit(&vec![true; count], safe, &outcomes)
}

fn with_hook(mut commit: Commit, outcome: Outcome) -> Commit {
    commit.hook = Some(outcome);
    commit
}

fn none(_: Fault) -> bool {
    false
}

fn all(_: Fault) -> bool {
    true
}

/// Faults of the controller and of what it is shown.
fn of_controller(fault: Fault) -> bool {
    !matches!(fault, Fault::Restarts(_) | Fault::Away(_))
}

fn engine_restarts(fault: Fault) -> bool {
    fault == Fault::Restarts(Part::HelmController)
}

/// Those after which little is different.
fn mild(fault: Fault) -> bool {
    of_controller(fault) && fault != Fault::NotTold
}

/// What goes wrong in a world so that it can be gone through with every commit: on
/// Argo CD, where more goes on at a time, less than on Flux.
type Trouble = (u8, fn(Fault) -> bool);

/// Up to three components.
pub fn small(engine: Engine) -> Vec<World> {
    let on = |flux: Trouble, argo: Trouble| if engine == Engine::Flux { flux } else { argo };
    let (nothing, kill): (Trouble, Trouble) = ((0, none), (1, none));
    let operator = commit(&[true, false, true], true, &[WORKS; 3]);
    let mut resource_fails = commit(&[true, false, true], false, &[WORKS; 3]);
    resource_fails.care[1] = Care::Fails;
    let hooked = |outcome, count| with_hook(upgrade(count), outcome);
    let longest = if engine == Engine::Flux { 3 } else { 2 };
    let worlds = [
        ("three are upgraded", chain(engine, 3, vec![upgrade(3)]), on((1, of_controller), kill)),
        (
            "two are upgraded, and something goes wrong",
            chain(engine, 2, vec![upgrade(2)]),
            on((0, engine_restarts), (0, mild)),
        ),
        ("an operator is upgraded", operated(engine, vec![operator]), on(kill, nothing)),
        ("a hook runs, then two move", chain(engine, 2, vec![hooked(WORKS, 2)]), on((1, of_controller), kill)),
        ("a hook fails, then a fix", chain(engine, 1, vec![hooked(HANGS, 1), hooked(WORKS, 1)]), on(kill, nothing)),
        ("the last fails and all go back", chain(engine, longest, vec![last(longest, true, FAILS)]), on(kill, nothing)),
        ("the last never gets ready and all go back", chain(engine, 2, vec![last(2, true, HANGS)]), on(kill, nothing)),
        ("a resource fails and stays", operated(engine, vec![resource_fails]), on(kill, nothing)),
    ];
    worlds.into_iter().map(|(name, history, (kills, faults))| World { name, history, kills, faults }).collect()
}

/// The same with everything that may go wrong, a fix at any time, and four components.
pub fn large(engine: Engine) -> Vec<World> {
    let mut worlds = small(engine);
    for world in &mut worlds {
        (world.kills, world.faults) = (1, all);
    }
    let fixed = |count| chain(engine, count, vec![last(count, false, FAILS), upgrade(count)]);
    for (name, count) in
        [("it fails and stays, a fix at any time", 1), ("the second fails and stays, a fix at any time", 2)]
    {
        worlds.push(World { name, history: fixed(count), kills: 1, faults: none });
    }
    let four = |name, commit| World { name, history: chain(engine, 4, vec![commit]), kills: 1, faults: of_controller };
    worlds.push(four("four are upgraded", upgrade(4)));
    worlds.push(four("the fourth never gets ready and all go back", last(4, true, HANGS)));
    worlds
}
