//! What the revisions tell: which one was last verified, what was touched
//! since, and which evidence still stands.

use std::fmt;

use super::snapshot::RevisionView;
use crate::api::{ComponentRecord, HookOutcome, HookRecord, PackageRevisionStatus, RecordedComponent, RevisionPhase};
use crate::package::range::Range;
use crate::package::version::Version;

/// The revisions of a Package, numbers rising.
#[derive(Clone, Copy, Debug)]
pub struct History<'a> {
    revisions: &'a [RevisionView],
}

/// Why the version before may not run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// Number of the revision that does not allow it.
    pub number: u64,
    /// Its version.
    pub version: String,
    /// What it says.
    pub cause: UnsafeCause,
}

/// What forbids the way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsafeCause {
    /// `rollback.safe` is not true.
    NotSafe,
    /// `rollback.to` does not admit the version.
    Range(String),
    /// A component was replaced: its release was uninstalled.
    Replaced(String),
}

impl fmt::Display for Unsafe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "revision {} ({}) {}", self.number, self.version, self.cause)
    }
}

impl fmt::Display for UnsafeCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSafe => formatter.write_str("does not say rollback.safe: true"),
            Self::Range(range) => write!(formatter, "may only be rolled back to {range}"),
            Self::Replaced(component) => write!(formatter, "replaced the release of component `{component}`"),
        }
    }
}

impl<'a> History<'a> {
    /// Looks at `revisions`, numbers rising.
    pub fn new(revisions: &'a [RevisionView]) -> Self {
        Self { revisions }
    }

    /// The revision with the highest number.
    pub fn latest(&self) -> Option<&'a RevisionView> {
        self.revisions.last()
    }

    /// The revision of a number.
    pub fn get(&self, number: u64) -> Option<&'a RevisionView> {
        self.revisions.iter().find(|revision| revision.number() == number)
    }

    /// *T*: the revision last verified as a whole, by a rollout or by a
    /// rollback to it. Absent until a first install succeeded.
    pub fn verified(&self) -> Option<&'a RevisionView> {
        let latest = self.latest()?;
        self.get(verified_number(latest)?)
    }

    /// Revisions that started after *T* was last verified, numbers rising. One that
    /// is tried again after its rollback has started anew.
    pub fn since_verified(&self) -> &'a [RevisionView] {
        let was_rolled_back = |status: &PackageRevisionStatus| {
            status.rollback.as_ref().is_some_and(|rollback| rollback.finished_at.is_some())
        };
        let start = self.revisions.iter().enumerate().rev().find_map(|(position, RevisionView { status, .. })| {
            if status.succeeded || status.phase == RevisionPhase::RolledBack {
                Some(position + 1)
            } else {
                was_rolled_back(status).then_some(position)
            }
        });
        self.revisions.get(start.unwrap_or(0)..).unwrap_or_default()
    }

    /// Whether the package may return to `target`, given what the revisions
    /// after it have done: every one of them that started a hook or moved
    /// anything must say `safe: true` and admit the target's version.
    ///
    /// # Errors
    /// The newest revision that does not allow it.
    pub fn may_return_to<'r>(
        target: &RevisionView,
        since: impl DoubleEndedIterator<Item = &'r RevisionView>,
    ) -> Result<(), Unsafe> {
        let mut touching = since.rev().filter(|revision| revision.touched_anything());
        touching.find_map(|revision| objection(revision, &target.spec.version)).map_or(Ok(()), Err)
    }

    /// Revisions with a number below `number`.
    pub fn until(&self, number: u64) -> &'a [RevisionView] {
        let end = self.revisions.partition_point(|revision| revision.number() < number);
        self.revisions.get(..end).unwrap_or_default()
    }

    /// Revisions with a number above `number`.
    pub fn after(&self, number: u64) -> &'a [RevisionView] {
        let start = self.revisions.partition_point(|revision| revision.number() <= number);
        self.revisions.get(start..).unwrap_or_default()
    }

    /// The outcome of a hook for one move: the same *T*, target version and
    /// digest. A rollback, or a new succeeded revision, has voided older ones.
    pub fn hook_outcome(&self, hook: &RecordedComponent, to: &str) -> Option<(&'a RevisionView, &'a HookRecord)> {
        self.since_verified().iter().rev().filter(|revision| revision.spec.version == to).find_map(|revision| {
            let recorded = revision.spec.components.iter().find(|component| component.name == hook.name)?;
            let outcome = revision.status.hooks.iter().find(|record| record.name == hook.name)?;
            (recorded.digest == hook.digest).then_some((revision, outcome))
        })
    }

    /// `migratedTo`: the target of the last hook that succeeded since *T*.
    pub fn migrated_to(&self) -> Option<&'a str> {
        let hooks = self.since_verified().iter().flat_map(|revision| &revision.status.hooks);
        let mut latest_first = hooks.rev();
        latest_first.find(|hook| hook.outcome == HookOutcome::Succeeded).map(|hook| hook.to.as_str())
    }
}

/// A range says which other versions may run again; that a version follows itself
/// needs no saying.
fn objection(revision: &RevisionView, target: &str) -> Option<Unsafe> {
    let rollback = &revision.spec.rollback;
    let admits = || {
        let versions = (Range::parse(&rollback.to), Version::parse(target));
        revision.spec.version == target || matches!(versions, (Ok(range), Ok(target)) if range.admits(&target))
    };
    let cause = if !rollback.safe {
        UnsafeCause::NotSafe
    } else if !rollback.to.is_empty() && !admits() {
        UnsafeCause::Range(rollback.to.clone())
    } else {
        let replaced = revision.spec.components.iter().find(|component| component.replaces)?;
        UnsafeCause::Replaced(replaced.name.clone())
    };
    Some(Unsafe { number: revision.number(), version: revision.spec.version.clone(), cause })
}

/// Number of *T* as the latest revision tells it.
fn verified_number(latest: &RevisionView) -> Option<u64> {
    match latest.status.phase {
        RevisionPhase::Succeeded => Some(latest.number()),
        RevisionPhase::RolledBack => latest.status.rollback.as_ref().map(|rollback| rollback.to),
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => {
            if latest.status.succeeded {
                Some(latest.number())
            } else {
                latest.spec.base
            }
        }
    }
}

impl RevisionView {
    /// The component of a name.
    pub fn component(&self, name: &str) -> Option<&RecordedComponent> {
        self.spec.components.iter().find(|component| component.name == name)
    }

    /// What happened to the component of a name.
    pub fn record(&self, name: &str) -> Option<&ComponentRecord> {
        self.status.components.iter().find(|record| record.name == name)
    }
}
