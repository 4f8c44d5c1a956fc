//! Requests to return to an earlier revision, `<number>@<token>`: what the controller
//! decides about one, and what the command line can say beforehand.

use std::fmt;

use super::history::{History, Unsafe};
use super::snapshot::RevisionView;
use crate::api::RevisionPhase;

/// With this at the start of its token a request overrides the rollback rule.
pub const FORCE: &str = "force";

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no revision of that number.
    Unknown {
        /// What was asked for.
        number: String,
    },
    /// It never ran as a whole.
    NeverSucceeded {
        /// Its number.
        number: u64,
    },
    /// A revision since then does not allow it.
    Unsafe {
        /// What was asked for.
        number: u64,
        /// Which one, and why.
        objection: Unsafe,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { number } => write!(formatter, "there is no revision {number} to return to"),
            Self::NeverSucceeded { number } => {
                write!(formatter, "revision {number} has never succeeded, so there is nothing to return to")
            }
            Self::Unsafe { number, objection } => {
                write!(formatter, "returning to revision {number} is refused: {objection}")
            }
        }
    }
}

/// The revision that a request leads to, if it is followed, see [`target`].
///
/// # Errors
/// When it is refused.
pub fn permitted<'a>(history: History<'a>, request: &str) -> Result<&'a RevisionView, Refusal> {
    let (number, token) = request.split_once('@').unwrap_or((request, ""));
    let unknown = || Refusal::Unknown { number: number.to_owned() };
    target(history, number.parse().map_err(|_| unknown())?, token.starts_with(FORCE))
}

/// The revision of a number, if the package may return to it: one that has succeeded, with
/// none after it that started a hook or moved anything and forbids it, unless `force`
/// overrides that.
///
/// # Errors
/// When it may not.
pub fn target(history: History<'_>, number: u64, force: bool) -> Result<&RevisionView, Refusal> {
    let target = history.get(number).ok_or_else(|| Refusal::Unknown { number: number.to_string() })?;
    if !target.status.succeeded {
        return Err(Refusal::NeverSucceeded { number });
    }
    if force {
        return Ok(target);
    }
    let since = history.after(target.number()).iter();
    match History::may_return_to(target, since) {
        Ok(()) => Ok(target),
        Err(objection) => Err(Refusal::Unsafe { number: target.number(), objection }),
    }
}

/// The revision that somebody means who names none: the newest that succeeded before
/// what is being, or was last, attempted; after a rollback before what runs again.
pub fn before(history: History<'_>) -> Option<&RevisionView> {
    let latest = history.latest()?;
    let from = match (latest.status.phase, history.verified()) {
        (RevisionPhase::RolledBack, Some(verified)) => verified.number(),
        _ => latest.number(),
    };
    history.until(from).iter().rev().find(|revision| revision.status.succeeded)
}

/// Number of the revision that runs as a whole; `None` while another is on its way, or
/// has failed.
pub fn running(history: History<'_>) -> Option<u64> {
    let latest = history.latest()?;
    match latest.status.phase {
        RevisionPhase::Succeeded | RevisionPhase::RolledBack => history.verified().map(RevisionView::number),
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => None,
    }
}
