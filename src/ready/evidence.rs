//! `readyWhen`: what an object must show before a component counts as ready,
//! and whether what it shows is not left over from before the move.
//!
//! An entry goes through three steps, each a pure function: [`Entry::observe`]
//! reads one object, [`remember`] and [`follow`] keep the record of what was
//! there before and what was seen since, [`judge()`] compares the two.

mod entry;
mod judge;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::BeforeRead;

pub use entry::{Entry, EntryError, Target, Versions};
pub use judge::{Freshness, Moment, Verdict, judge};

/// What looking for an object gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// The object.
    Found(Value),
    /// There is none.
    Absent,
    /// The cluster does not know the kind (yet).
    KindUnknown,
    /// The account in use may not read it.
    Denied,
    /// Windlass may not act as the account in use.
    NotImpersonated,
    /// It has not been read yet: no evidence for or against anything.
    Pending,
}

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// It does.
    Yes,
    /// It does not: the object says so, lacks what is asked for, or is not there.
    No,
    /// Nobody can tell: the object could not be read, or the expression not be
    /// evaluated. Says nothing about the object, and is never remembered.
    Unknown,
}

impl Holding {
    /// From an answer that somebody gave.
    pub fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// What one entry shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Whether the entry holds.
    pub holds: Holding,
    /// Whether its `failed` expression holds.
    pub failed: Holding,
    /// uid of the object.
    pub uid: Option<String>,
    /// Status of the condition, for an entry that names one.
    pub status: Option<String>,
    /// `lastTransitionTime` of the condition. Another machine's clock: compared
    /// as text, never as a time.
    pub last_transition_time: Option<String>,
    /// The account in use may not read the object.
    pub denied: bool,
    /// What was expected and what was found, naming the object.
    pub message: String,
}

/// The record of an observation made before a write. `None` where nobody could
/// tell whether the entry held: then only time proves anything later.
pub fn remember(entry: u32, observation: &Observation) -> Option<BeforeRead> {
    let value = match observation.holds {
        Holding::Yes => true,
        Holding::No => false,
        Holding::Unknown => return None,
    };
    Some(BeforeRead {
        entry,
        uid: observation.uid.clone(),
        status: observation.status.clone(),
        last_transition_time: observation.last_transition_time.clone(),
        value,
        // What nobody knows may have failed already, and then it fails no fix.
        failed: observation.failed != Holding::No,
        lapsed: false,
        recovered: false,
    })
}

/// Keeps in the record what was seen since: that the entry did not hold for
/// once, and that it was not failed for once.
pub fn follow(before: &mut BeforeRead, observation: &Observation) {
    before.lapsed |= observation.holds == Holding::No;
    before.recovered |= observation.failed == Holding::No;
}

/// The later of two times, where either may be unknown.
fn later(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    Some(left?.max(right?))
}
