//! The simulated engines against recordings of the real ones: the same steps,
//! and the same shape of status, write for write.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "simulator/argo.rs"]
mod argo;
#[path = "simulator/daemon_set.rs"]
mod daemon_set;
#[path = "simulator/flux.rs"]
mod flux;
#[path = "simulator/purity.rs"]
mod purity;
#[allow(dead_code)]
#[path = "support/recordings.rs"]
mod recordings;
