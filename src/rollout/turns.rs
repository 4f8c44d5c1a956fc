//! Who moves, who is only verified again, and who counts as verified already.

use std::collections::{BTreeMap, BTreeSet};

use super::history::History;
use super::snapshot::RevisionView;
use crate::api::{ComponentState, RecordedComponent, RollbackRecord};

/// What a component's turn consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its wanted spec is written, then it is verified.
    Move,
    /// Nothing is written, but something upstream moved (or its `readyWhen` or
    /// canary changed): what it showed before proves nothing any more.
    VerifyAgain,
    /// Neither it nor anything upstream has moved since it was verified: its
    /// record stands, and its present state is only a warning.
    Counted,
}

/// The turns of the latest revision, in apply order. Linear in components and
/// edges.
///
/// `runs_wanted` says whether the live child of a component was rendered from
/// the wanted digest.
pub(crate) fn turns(
    latest: &RevisionView,
    history: &History<'_>,
    runs_wanted: impl Fn(&RecordedComponent) -> bool,
) -> Vec<Turn> {
    let verifications = Verifications::new(latest, history);
    let moved: BTreeSet<&str> =
        latest.status.components.iter().filter(|record| record.moved).map(|record| record.name.as_str()).collect();
    let mut last_write: BTreeMap<&str, u64> = BTreeMap::new();
    let components = latest.spec.components.iter().filter(|component| !component.hook);
    components
        .map(|component| {
            let name = component.name.as_str();
            let moves = !runs_wanted(component) || moved.contains(name);
            let own = if moves { latest.number() } else { verifications.last_write(name) };
            let upstream = component.depends_on.iter().filter_map(|up| last_write.get(up.as_str())).max();
            let written = own.max(upstream.copied().unwrap_or(0));
            last_write.insert(name, written);
            if moves {
                Turn::Move
            } else if verifications.of(component, written).is_some() {
                Turn::Counted
            } else {
                Turn::VerifyAgain
            }
        })
        .collect()
}

/// When components were last written and verified, by number of the revision;
/// only what happened since *T* was verified counts.
struct Verifications<'a> {
    last_write: BTreeMap<&'a str, u64>,
    verified: BTreeMap<&'a str, Vec<Verification<'a>>>,
}

/// A component as a revision verified it.
struct Verification<'a> {
    number: u64,
    component: &'a RecordedComponent,
    /// Whether everything above it was in the same order then.
    in_order: bool,
}

impl<'a> Verifications<'a> {
    fn new(latest: &'a RevisionView, history: &History<'a>) -> Self {
        let mut last_write = BTreeMap::new();
        let mut verified: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        if let Some(revision) = history.verified() {
            let ordered = same_order(latest, revision);
            for component in &revision.spec.components {
                let in_order = ordered.contains(component.name.as_str());
                let verification = Verification { number: revision.number(), component, in_order };
                verified.entry(&component.name).or_default().push(verification);
            }
            // It was verified before somebody asked for a way back that has not ended.
            let taken_back = taken_back(revision).map(|name| (name, revision.number() + 1));
            last_write.extend(taken_back);
        }
        for revision in history.since_verified().iter().filter(|revision| revision.number() < latest.number()) {
            let components: BTreeMap<&str, &RecordedComponent> =
                revision.spec.components.iter().map(|component| (component.name.as_str(), component)).collect();
            let ordered = same_order(latest, revision);
            for record in &revision.status.components {
                if record.moved {
                    last_write.insert(record.name.as_str(), revision.number());
                }
                if let (Some(_), Some(component)) = (&record.verified_at, components.get(record.name.as_str())) {
                    let in_order = ordered.contains(record.name.as_str());
                    let verification = Verification { number: revision.number(), component, in_order };
                    verified.entry(&record.name).or_default().push(verification);
                }
            }
        }
        Self { last_write, verified }
    }

    fn last_write(&self, name: &str) -> u64 {
        self.last_write.get(name).copied().unwrap_or(0)
    }

    /// Number of the newest revision that verified the component as it is
    /// wanted now, after the last write at or above it. In one revision what
    /// is upstream is written first, as long as all edges above are the same.
    fn of(&self, component: &RecordedComponent, written: u64) -> Option<u64> {
        let candidates = self.verified.get(component.name.as_str())?;
        let alike = |recorded: &RecordedComponent| {
            recorded.digest == component.digest
                && recorded.ready_when == component.ready_when
                && recorded.canary == component.canary
        };
        let proves = |found: &&Verification<'_>| {
            alike(found.component) && (found.number > written || (found.number == written && found.in_order))
        };
        candidates.iter().rev().find(proves).map(|found| found.number)
    }
}

/// Components of the latest revision that had the same edges in an earlier one, with
/// everything above them. In apply order, so what is above comes first.
fn same_order<'a>(latest: &'a RevisionView, earlier: &RevisionView) -> BTreeSet<&'a str> {
    let recorded: BTreeMap<&str, &RecordedComponent> =
        earlier.spec.components.iter().map(|component| (component.name.as_str(), component)).collect();
    let mut same = BTreeSet::new();
    for component in &latest.spec.components {
        let alike = recorded.get(component.name.as_str()).is_some_and(|found| found.depends_on == component.depends_on);
        if alike && component.depends_on.iter().all(|up| same.contains(up.as_str())) {
            same.insert(component.name.as_str());
        }
    }
    same
}

/// What a rollback that has not ended has written.
fn taken_back(revision: &RevisionView) -> impl Iterator<Item = &str> {
    let has_not_ended = |rollback: &RollbackRecord| rollback.finished_at.is_none();
    let under_way = revision.status.rollback.as_ref().is_some_and(has_not_ended);
    let records = revision.status.components.iter().filter(move |record| under_way && is_taken_back(record.state));
    records.map(|record| record.name.as_str())
}

fn is_taken_back(state: ComponentState) -> bool {
    match state {
        ComponentState::Restoring
        | ComponentState::Restored
        | ComponentState::Removing
        | ComponentState::Removed
        | ComponentState::Suspended
        | ComponentState::Failed => true,
        ComponentState::Waiting
        | ComponentState::Queued
        | ComponentState::Progressing
        | ComponentState::Verifying
        | ComponentState::Verified => false,
    }
}
