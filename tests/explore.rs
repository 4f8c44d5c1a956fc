//! Every interleaving of small worlds, with a count of their states on the last
//! line. A program of its own, so that what it prints is seen: `-- --larger`
//! explores larger ones, which takes minutes, `-- --survey FIRST COUNT` plays
//! random histories, `-- --tell SEED` tells one of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

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

use windlass::api::Engine;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--survey", first, count] => return survey::survey(first.parse().unwrap(), count.parse().unwrap()),
        ["--tell", seed] => return survey::tell(seed.parse().unwrap()),
        _ => {}
    }
    let filtered =
        arguments.iter().any(|argument| !argument.starts_with('-') && !"explore".contains(argument.as_str()));
    if filtered || arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let larger = arguments.iter().any(|argument| argument == "--larger");
    let of = move |engine| if larger { worlds::large(engine) } else { worlds::small(engine) };
    // One thread for each engine; a panic in one is a panic here.
    let flux = std::thread::spawn(move || worlds::all(of(Engine::Flux)));
    let states = worlds::all(of(Engine::Argo)) + flux.join().expect("the worlds of Flux keep the order");
    println!("explored {states} states: the order was kept in every one, and all come to an end");
}
