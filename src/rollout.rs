//! The decisions of Windlass: from one look at the cluster to the next step.

mod clock;
mod decision;
pub mod history;
pub mod live;
mod snapshot;

pub use decision::{Action, Decision, Event, Precondition, Record};
