//! What happened, in order, as a person wants to read it: made from the log of
//! the simulated cluster and from the events of decisions, and from nothing else.

mod reader;

use crate::api::{Reason, RolloutPhase};

use super::play::Played;
use super::process::PackageId;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Milliseconds since the commit.
    pub at: u64,
    /// The Package it is about; `None`: the controller.
    pub package: Option<PackageId>,
    /// The component it is about.
    pub component: Option<String>,
    /// What happened.
    pub what: What,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A Package was committed.
    Committed {
        /// Version that was in Git before.
        from: Option<String>,
        /// Version that is in Git now.
        to: String,
    },
    /// A Package was taken out of Git.
    Withdrawn,
    /// A Package waits for something outside of it, or was refused.
    Waits {
        /// Why.
        reason: String,
        /// For what.
        message: String,
    },
    /// A revision begins.
    Begins {
        /// Its number.
        revision: u64,
        /// Version that ran before.
        from: Option<String>,
        /// Wanted version.
        to: String,
        /// Hooks and components that it has manifests for which none ran before.
        moves: Vec<String>,
        /// Milliseconds since the commit that were spent waiting.
        waited: u64,
    },
    /// Its charts have been fetched, after so many milliseconds.
    Fetched {
        /// Milliseconds since the revision began.
        took: u64,
    },
    /// A hook runs.
    HookRuns,
    /// A hook has succeeded.
    HookSucceeded {
        /// Milliseconds since it was started.
        took: u64,
    },
    /// A hook has failed.
    HookFailed {
        /// Milliseconds since it was started.
        took: u64,
    },
    /// A component's new spec was written.
    Moves {
        /// Chart version that was written before; `None`: an installation.
        from: Option<String>,
        /// Chart version that is wanted.
        to: String,
        /// Components that were verified first.
        after: Vec<String>,
    },
    /// A component that does not move is verified again.
    VerifiedAgain {
        /// Components that it depends on.
        after: Vec<String>,
    },
    /// An attempt of the engine failed, and is not the last.
    AttemptFailed {
        /// How many have failed.
        attempts: u32,
        /// What was found.
        message: String,
    },
    /// A release is ready, and that is not all that is asked for.
    ReleaseReady {
        /// What is waited for.
        message: String,
    },
    /// The rollout of a DaemonSet is in another phase, or has another budget.
    RollsOut {
        /// `<namespace>/<name>` of the DaemonSet.
        daemon_set: String,
        /// Phase.
        phase: RolloutPhase,
        /// Pods that may be unavailable.
        budget: String,
        /// Nodes that run the new template.
        updated: i64,
        /// Nodes that should run it.
        desired: i64,
        /// What it waits for.
        message: String,
    },
    /// A component is verified.
    Verified {
        /// Milliseconds since its turn began.
        took: u64,
    },
    /// A component's former spec was written back.
    GoesBack {
        /// Chart version that was written before.
        from: Option<String>,
        /// Chart version that is restored.
        to: String,
    },
    /// A component's former release is ready again.
    IsBack {
        /// Milliseconds since it was written.
        took: u64,
    },
    /// A component is uninstalled.
    Uninstalls,
    /// A component is gone.
    Uninstalled {
        /// Milliseconds since it was asked to go.
        took: u64,
    },
    /// A component's release is handed over to another one.
    HandsOver,
    /// What had failed goes on after all.
    GoesOn,
    /// The Package tells of a transition.
    Told {
        /// Whether something went wrong.
        warning: bool,
        /// Why.
        reason: Reason,
        /// What happened.
        message: String,
    },
    /// A Package is gone.
    Gone,
    /// The controller was killed and started again.
    Restarted,
}

impl What {
    /// Its stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Committed { .. } => "committed",
            Self::Withdrawn => "withdrawn",
            Self::Waits { .. } => "waits",
            Self::Begins { .. } => "begins",
            Self::Fetched { .. } => "fetched",
            Self::HookRuns => "hookRuns",
            Self::HookSucceeded { .. } => "hookSucceeded",
            Self::HookFailed { .. } => "hookFailed",
            Self::Moves { .. } => "moves",
            Self::VerifiedAgain { .. } => "verifiedAgain",
            Self::AttemptFailed { .. } => "attemptFailed",
            Self::ReleaseReady { .. } => "releaseReady",
            Self::RollsOut { .. } => "rollsOut",
            Self::Verified { .. } => "verified",
            Self::GoesBack { .. } => "goesBack",
            Self::IsBack { .. } => "isBack",
            Self::Uninstalls => "uninstalls",
            Self::Uninstalled { .. } => "uninstalled",
            Self::HandsOver => "handsOver",
            Self::GoesOn => "goesOn",
            Self::Told { .. } => "told",
            Self::Gone => "gone",
            Self::Restarted => "restarted",
        }
    }
}

/// What happened since the commit; before it, if that was never made.
pub fn of(played: &Played) -> Vec<Moment> {
    reader::read(played)
}
