//! How a DaemonSet is rolled out: what KubeVirt's own tests ask for, what they
//! leave out, and properties on a simulated DaemonSet controller.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "canary/scene.rs"]
mod scene;

#[path = "canary/conformance.rs"]
mod conformance;
#[path = "canary/failures.rs"]
mod failures;
#[path = "canary/nodes.rs"]
mod nodes;
#[path = "canary/strict.rs"]
mod strict;
#[path = "canary/writes.rs"]
mod writes;
