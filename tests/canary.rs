//! How a DaemonSet is rolled out: what KubeVirt's own tests ask for, what they
//! leave out, and properties on a simulated DaemonSet controller.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "canary/history.rs"]
mod history;
#[path = "canary/judge.rs"]
mod judge;
#[path = "canary/rollout.rs"]
mod rollout;
#[path = "canary/scene.rs"]
mod scene;
#[path = "canary/watches.rs"]
mod watches;

#[path = "canary/conformance.rs"]
mod conformance;
#[path = "canary/failures.rs"]
mod failures;
#[path = "canary/found.rs"]
mod found;
#[path = "canary/late_crash.rs"]
mod late_crash;
#[path = "canary/misplaced.rs"]
mod misplaced;
#[path = "canary/mutants.rs"]
mod mutants;
#[path = "canary/nodes.rs"]
mod nodes;
#[path = "canary/properties.rs"]
mod properties;
#[path = "canary/strict.rs"]
mod strict;
#[path = "canary/writes.rs"]
mod writes;
