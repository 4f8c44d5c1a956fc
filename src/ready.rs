//! Readiness: what an engine's objects say about a release, and what an
//! object says about itself.
//!
//! * [`cel`]: expressions under limits.

pub mod cel;
