//! Every interleaving of small worlds, with a count of their states on the last
//! line. A program of its own, so that what it prints is seen: `-- --larger`
//! explores larger ones, which takes minutes, `-- --survey FIRST COUNT` plays
//! random histories, `-- --tell SEED` tells one of them, `-- --only TEXT` explores the
//! worlds with that in their names.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

#[path = "explore/explorer.rs"]
mod explorer;
#[allow(dead_code)]
#[path = "properties/history.rs"]
mod history;
#[allow(dead_code)]
#[path = "properties/judge.rs"]
mod judge;
#[allow(dead_code)]
#[path = "properties/log.rs"]
mod log;
#[path = "properties/seeds.rs"]
mod seeds;
#[path = "explore/survey.rs"]
mod survey;
#[path = "explore/worlds.rs"]
mod worlds;

use std::sync::Mutex;
use std::time::Instant;

use windlass::api::Engine;

use explorer::{Explored, World};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--survey", first, count] => return survey::survey(first.parse().unwrap(), count.parse().unwrap()),
        ["--tell", seed] => return survey::tell(seed.parse().unwrap()),
        _ => {}
    }
    let filtered = !arguments.iter().any(|argument| argument == "--only")
        && arguments.iter().any(|argument| !argument.starts_with('-') && !"explore".contains(argument.as_str()));
    if filtered || arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let only = arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let larger = arguments.iter().any(|argument| argument == "--larger");
    let of = |engine| if larger { worlds::large(engine) } else { worlds::small(engine) };
    let worlds: Vec<World> = [Engine::Argo, Engine::Flux].into_iter().flat_map(of).collect();
    let is_asked_for = |world: &World| only.is_none_or(|only| world.name.contains(only.as_str()));
    let worlds = worlds.into_iter().filter(is_asked_for).collect();
    let states = all(worlds);
    println!("explored {states} states: the order was kept in every one, and all come to an end");
}

/// Explores worlds, says how many states each has, and gives their number.
fn all(worlds: Vec<World>) -> usize {
    let worlds = Mutex::new(worlds.into_iter());
    let one_after_the_other = || {
        let mut states = 0;
        while let Some(world) = next(&worlds) {
            let begun = Instant::now();
            let Explored { states: own, ends } = explorer::explore(&world);
            let (engine, name, took) = (world.history.engine.as_str(), world.name, begun.elapsed().as_millis());
            assert!(ends > 0, "{engine}: {name} has no end");
            println!("{own:>9} states, {ends:>4} ends, {took:>7} ms  {engine}: {name}");
            states += own;
        }
        states
    };
    // A panic in one thread is a panic here.
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(one_after_the_other)).collect();
        threads.into_iter().map(|thread| thread.join().expect("every world keeps the order")).sum()
    })
}

fn next(worlds: &Mutex<impl Iterator<Item = World>>) -> Option<World> {
    worlds.lock().ok()?.next()
}
