//! Whether what an entry shows is enough.

use jiff::{SignedDuration, Timestamp};

use super::{Entry, Holding, Observation, later};
use crate::api::BeforeRead;

/// When a judgement is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Now.
    pub now: Timestamp,
    /// What evidence is asked for.
    pub freshness: Freshness,
}

/// What evidence is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// None: what is true now counts (at the end of a rollback).
    Any,
    /// Evidence from after the write.
    Fresh {
        /// When the component's release was first seen ready; `None`: not yet.
        release_ready_at: Option<Timestamp>,
        /// When its turn began; `None`: not yet.
        turn_began: Option<Timestamp>,
        /// Whether the move changes the version of the package.
        version_changed: bool,
    },
}

/// What one entry comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds, with the evidence asked for.
    Ready,
    /// It does not hold, or not for long enough.
    Waiting {
        /// What is awaited.
        message: String,
        /// When time alone may make it [`Verdict::Ready`] or [`Verdict::Failed`].
        until: Option<Timestamp>,
    },
    /// The account in use may not read the object.
    Denied {
        /// Which object; nothing about it.
        message: String,
    },
    /// Its `failed` expression holds, with the evidence asked for.
    Failed {
        /// What was found.
        message: String,
    },
}

/// Whether evidence is fresh.
enum Fresh {
    Yes,
    At(Timestamp),
    No,
}

/// Judges an entry by what it shows now and what it showed before.
///
/// Without a record there is nothing to compare with, and only time proves
/// anything.
pub fn judge(entry: &Entry, observation: &Observation, before: Option<&BeforeRead>, moment: Moment) -> Verdict {
    let message = observation.message.clone();
    if observation.denied {
        return Verdict::Denied { message };
    }
    let mut until = None;
    if observation.failed == Holding::Yes {
        match fresh_failure(entry, observation, before, moment) {
            Fresh::Yes => return Verdict::Failed { message },
            Fresh::At(time) => until = Some(time),
            Fresh::No => {}
        }
        return Verdict::Waiting { message, until };
    }
    match observation.holds {
        Holding::No | Holding::Unknown => Verdict::Waiting { message, until },
        Holding::Yes => match fresh_success(entry, observation, before, moment) {
            Fresh::Yes => Verdict::Ready,
            Fresh::At(time) => {
                let settle = entry.settle();
                let message = format!("{message} as before; that counts once it has held for {settle}");
                Verdict::Waiting { message, until: Some(time) }
            }
            Fresh::No => Verdict::Waiting { message: format!("{message} as before the change"), until },
        },
    }
}

fn fresh_success(entry: &Entry, now: &Observation, before: Option<&BeforeRead>, moment: Moment) -> Fresh {
    let different = before.is_some_and(|before| {
        before.lapsed
            || !before.value
            || before.uid != now.uid
            || before.status != now.status
            || before.last_transition_time != now.last_transition_time
    });
    fresh(entry, different, entry.names_version(), moment)
}

fn fresh_failure(entry: &Entry, now: &Observation, before: Option<&BeforeRead>, moment: Moment) -> Fresh {
    let different = before.is_some_and(|before| before.recovered || !before.failed || before.uid != now.uid);
    fresh(entry, different, entry.failed_names_version(), moment)
}

/// Fresh is what is different from the record, or was seen otherwise since; what
/// names a version that changed; and what has held for `settle` since the later
/// of "the release became ready" and "its turn began". What was seen not holding
/// is different, so what gets as far as the last has held all that time.
fn fresh(entry: &Entry, different: bool, names_version: bool, moment: Moment) -> Fresh {
    let Freshness::Fresh { release_ready_at, turn_began, version_changed } = moment.freshness else {
        return Fresh::Yes;
    };
    if different || (names_version && version_changed) {
        return Fresh::Yes;
    }
    let settled = later(release_ready_at, turn_began)
        .and_then(|since| since.checked_add(SignedDuration::try_from(entry.settle().get()).ok()?).ok());
    match settled {
        Some(time) if time <= moment.now => Fresh::Yes,
        Some(time) => Fresh::At(time),
        None => Fresh::No,
    }
}
