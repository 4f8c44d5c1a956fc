//! What holds whatever happens: random packages, histories and faults, played on
//! the simulated cluster and judged by the cluster's own log.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "properties/history.rs"]
mod history;
#[path = "properties/judge.rs"]
mod judge;
#[path = "properties/log.rs"]
mod log;
#[path = "properties/mutants.rs"]
mod mutants;
#[path = "properties/random.rs"]
mod random;
#[path = "properties/seeds.rs"]
mod seeds;
