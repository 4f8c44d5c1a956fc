//! Argo CD's config management plugin, as far as it needs no I/O.
//!
//! Argo CD runs `generate` in a copy of the repository and takes what it prints
//! for the wanted state: an empty answer with exit code 0 would delete
//! everything. So there is either a whole answer or an error.

pub mod doctor;
mod environment;
mod generate;
mod location;
mod nulls;
mod parameters;

pub use environment::{Environment, EnvironmentError, Output, Parameters};
pub use generate::{Answer, Failure, generate};
pub use location::{Location, locate};
pub use parameters::announcement;
