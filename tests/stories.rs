//! Upgrades told as stories: the decisions of Windlass played on a simulated
//! cluster, and what the cluster's own log says about it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "stories/play.rs"]
mod play;

#[path = "stories/accounts.rs"]
mod accounts;
#[path = "stories/adoption.rs"]
mod adoption;
#[path = "stories/afterwards.rs"]
mod afterwards;
#[path = "stories/attempts.rs"]
mod attempts;
#[path = "stories/canaries.rs"]
mod canaries;
#[path = "stories/canaries_beside.rs"]
mod canaries_beside;
#[path = "stories/canaries_left.rs"]
mod canaries_left;
#[path = "stories/failure.rs"]
mod failure;
#[path = "stories/held.rs"]
mod held;
#[path = "stories/hooks.rs"]
mod hooks;
#[path = "stories/hostile.rs"]
mod hostile;
#[path = "stories/order.rs"]
mod order;
#[path = "stories/ownership.rs"]
mod ownership;
#[path = "stories/packages.rs"]
mod packages;
#[path = "stories/pauses.rs"]
mod pauses;
#[path = "stories/replacement.rs"]
mod replacement;
#[path = "stories/told.rs"]
mod told;
#[path = "stories/uninstall.rs"]
mod uninstall;
