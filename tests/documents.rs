//! The documentation of the controller says what the code does: every field,
//! reason, flag and metric is in it, and nothing that is not there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;

#[path = "documents/markdown.rs"]
mod markdown;

#[path = "documents/messages.rs"]
mod messages;
#[path = "documents/operating.rs"]
mod operating;
#[path = "documents/quickstarts.rs"]
mod quickstarts;
#[path = "documents/reference.rs"]
mod reference;
#[path = "documents/security.rs"]
mod security;
#[path = "documents/site.rs"]
mod site;
#[path = "documents/troubleshooting.rs"]
mod troubleshooting;
