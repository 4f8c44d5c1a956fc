//! Replays what the real controllers did (`tests/data/recordings`) and checks
//! that every single status they wrote is read rightly.
//!
//! The expected sequences were written from the recordings, status by status:
//! they say what a person who knows the engine would conclude at each step.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod recordings {
    pub mod argo;
    pub mod flux;
    pub mod replay;
}
