//! A simulated cluster with virtual time: an API server, the engines, Helm,
//! workloads and operators, as far as an upgrade of several releases sees them.
//!
//! It is written against what the real controllers were seen to do and shares no
//! code with what decides: what both believe wrongly would never show.
//!
//! * [`store`]: objects with generations, resource versions, field managers and
//!   finalizers, and the log of every change;
//! * [`chart`]: what charts hold, and how their releases behave;
//! * [`nodes`]: nodes, for the pods of DaemonSets; [`guard`]: the admission policies;
//! * [`world`]: time, and everything that happens by itself in it.

pub mod chart;
pub mod guard;
pub mod nodes;
pub mod store;
pub mod world;

mod argo;
mod conditions;
mod daemon_set;
pub mod fingerprint;
mod flux;
mod helm;
mod json;
mod kubelet;
mod operator;
mod running;
mod shared;
mod strategy;
mod workload;

pub use running::{Running, Runs};
pub use shared::Shared;
pub use store::{Change, Key, Object, Refusal, Store, Verb};
pub use world::{Task, World};
