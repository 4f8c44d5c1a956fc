//! What is drawn, in milliseconds and without any place.

use crate::api::RolloutPhase;
use crate::rehearse::process::PackageId;

/// What a bar stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Wait,
    Run,
    Hook,
    Move,
    Gate,
    Rollback,
    Removal,
    Stands,
}

impl Kind {
    pub(super) const ALL: [Self; 8] =
        [Self::Wait, Self::Run, Self::Hook, Self::Move, Self::Gate, Self::Rollback, Self::Removal, Self::Stands];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Run => "run",
            Self::Hook => "hook",
            Self::Move => "move",
            Self::Gate => "gate",
            Self::Rollback => "rollback",
            Self::Removal => "removal",
            Self::Stands => "stands",
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Wait => "waits",
            Self::Run => "the package's rollout",
            Self::Hook => "hook",
            Self::Move => "installs or upgrades",
            Self::Gate => "is looked at until it is verified",
            Self::Rollback => "goes back",
            Self::Removal => "is uninstalled",
            Self::Stands => "stands, having failed",
        }
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    Good,
    Bad,
    Attempt,
    Other,
}

impl Sign {
    pub(super) const ALL: [Self; 4] = [Self::Good, Self::Bad, Self::Attempt, Self::Other];

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Attempt => "attempt",
            Self::Other => "other",
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Good => "succeeded",
            Self::Bad => "failed",
            Self::Attempt => "an attempt failed, the engine tries again",
            Self::Other => "goes on after all, or is handed over",
        }
    }
}

#[derive(Debug)]
pub(super) struct Bar {
    pub(super) kind: Kind,
    pub(super) from: u64,
    pub(super) to: u64,
    /// What a reader who points at it is told.
    pub(super) told: String,
    /// What is written in it, if there is room.
    pub(super) says: String,
}

#[derive(Debug)]
pub(super) struct Mark {
    pub(super) sign: Sign,
    pub(super) at: u64,
    pub(super) told: String,
}

/// What is written beside bars, the longest form first.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) texts: Vec<String>,
}

/// A start that waited for others.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) at: u64,
    pub(super) after: Vec<String>,
}

/// A phase of a DaemonSet's rollout.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) at: u64,
    pub(super) phase: RolloutPhase,
    pub(super) budget: String,
    pub(super) updated: u64,
    pub(super) desired: u64,
    /// Whether the former template comes back.
    pub(super) back: bool,
    pub(super) told: String,
}

#[derive(Debug)]
pub(super) struct Rollout {
    pub(super) daemon_set: String,
    pub(super) steps: Vec<Step>,
    pub(super) ends: u64,
}

/// The row of a hook or component, or a Package's own.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) bars: Vec<Bar>,
    pub(super) marks: Vec<Mark>,
    pub(super) labels: Vec<Label>,
    pub(super) starts: Vec<Start>,
    pub(super) rollouts: Vec<Rollout>,
    /// What is said where nothing happens.
    pub(super) rest: String,
    /// What it is doing, in more and in fewer words, and since when.
    pub(super) doing: Vec<String>,
    pub(super) since: u64,
}

impl Lane {
    pub(super) fn is_idle(&self) -> bool {
        self.bars.is_empty() && self.marks.is_empty()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.marks.iter().any(|mark| matches!(mark.sign, Sign::Bad | Sign::Attempt))
    }
}

/// How a Package ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ready,
    Gone,
    Waits(String),
    Failed(String),
}

/// A Package with its hooks and components.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) id: PackageId,
    pub(super) name: String,
    /// From which version to which.
    pub(super) change: String,
    pub(super) began: Option<u64>,
    /// When something of it happened last.
    pub(super) last: u64,
    pub(super) own: Lane,
    pub(super) lanes: Vec<Lane>,
    pub(super) verdict: Verdict,
}

impl Track {
    pub(super) fn is_idle(&self) -> bool {
        self.own.is_idle() && self.lanes.iter().all(Lane::is_idle)
    }

    /// Whether there is more to see than that it came to where it was to come.
    pub(super) fn is_eventful(&self) -> bool {
        self.lanes.iter().chain([&self.own]).any(|lane| lane.has_failed() || !lane.rollouts.is_empty())
    }

    pub(super) fn all_lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane> {
        [&mut self.own].into_iter().chain(&mut self.lanes)
    }

    pub(super) fn all_lanes(&self) -> impl Iterator<Item = &Lane> {
        [&self.own].into_iter().chain(&self.lanes)
    }
}

#[derive(Debug)]
pub(super) struct Picture {
    pub(super) tracks: Vec<Track>,
    /// When the controller was killed.
    pub(super) restarts: Vec<u64>,
    /// Everything that happened, in milliseconds, and the end.
    pub(super) times: Vec<u64>,
}
