//! The one line that tells where a Package stands, and the conditions it gives.

use super::clock::Now;
use super::snapshot::PackageView;
use crate::api::{Condition, ConditionStatus, Reason};

/// Longest summary in the table of `kubectl get`, in characters.
const SUMMARY: usize = 120;

/// Whether somebody, or something else, must do something before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Motion {
    /// Nothing is under way.
    Still,
    /// It goes on by itself.
    Reconciling,
    /// A changed spec or a retry must mend it.
    Stalled,
}

/// Where a Package stands. The only source of its `Ready` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    pub ready: ConditionStatus,
    pub reason: Reason,
    pub message: String,
    pub motion: Motion,
}

impl Headline {
    /// The headline of a reason. What a reason means for `Ready`, and whether
    /// it goes on by itself, stands only here.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        use ConditionStatus::{False, True, Unknown};
        use Motion::{Reconciling, Stalled, Still};
        let (ready, motion) = match reason {
            Reason::Ready | Reason::RolledBack => (True, Still),
            Reason::Progressing | Reason::Preparing | Reason::RollingBack | Reason::Deleting => (Unknown, Reconciling),
            Reason::Suspended => (Unknown, Still),
            Reason::RequirementsNotMet
            | Reason::Conflict
            | Reason::SourceNotFound
            | Reason::InstallFailed
            | Reason::EngineMissing
            | Reason::AccessDenied => (False, Reconciling),
            Reason::InvalidSpec
            | Reason::UpgradePathNotAllowed
            | Reason::DowngradeRefused
            | Reason::RollbackRefused
            | Reason::HookFailed
            | Reason::UpgradeFailed
            | Reason::UpgradeRolledBack
            | Reason::RollbackFailed
            | Reason::EngineAmbiguous
            | Reason::GuardMismatch => (False, Stalled),
        };
        Self { ready, reason, message: message.into(), motion }
    }

    /// The same with something still under way.
    pub fn reconciling(mut self) -> Self {
        self.motion = Motion::Reconciling;
        self
    }

    /// The same, but ready: the reason is only a remark.
    pub fn but_ready(mut self) -> Self {
        (self.ready, self.motion) = (ConditionStatus::True, Motion::Still);
        self
    }

    /// Reason and short message.
    pub fn summary(&self) -> String {
        if self.reason == Reason::Ready {
            return self.reason.to_string();
        }
        let line = self.message.lines().next().unwrap_or_default();
        let text = format!("{}: {line}", self.reason);
        if text.chars().count() <= SUMMARY {
            return text;
        }
        let mut short: String = text.chars().take(SUMMARY - 1).collect();
        short.push('…');
        short
    }

    /// `Ready`, and `Reconciling` or `Stalled` only while true. Transition
    /// times move only when a status does.
    pub fn conditions(&self, package: &PackageView, now: Now) -> Vec<Condition> {
        let condition = |type_: &str, status: ConditionStatus| {
            let before = package.status.conditions.iter().find(|condition| condition.type_ == type_);
            let unchanged = before.filter(|condition| condition.status == status.as_str());
            Condition {
                type_: type_.to_owned(),
                status: status.as_str().to_owned(),
                reason: self.reason.to_string(),
                message: self.message.clone(),
                observed_generation: Some(package.generation),
                last_transition_time: unchanged.map_or_else(|| now.as_time(), |c| c.last_transition_time.clone()),
            }
        };
        let mut conditions = vec![condition("Ready", self.ready)];
        match self.motion {
            Motion::Still => {}
            Motion::Reconciling => conditions.push(condition("Reconciling", ConditionStatus::True)),
            Motion::Stalled => conditions.push(condition("Stalled", ConditionStatus::True)),
        }
        conditions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_documentation_is_the_code() {
        let text = include_str!("../../docs/reference.md");
        let row = |reason: &Reason| {
            let headline = Headline::new(*reason, "");
            let beside = match headline.motion {
                Motion::Still => "",
                Motion::Reconciling => "Reconciling ",
                Motion::Stalled => "Stalled ",
            };
            format!("| `{reason}` | {} | {beside}|\n", headline.ready.as_str())
        };
        let table: String = Reason::ALL.iter().map(row).collect();
        assert!(text.contains(&table), "docs/reference.md wants:\n{table}");
    }
}
