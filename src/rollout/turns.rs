//! Who moves, who is only verified again, and who counts as verified already.

use std::collections::{BTreeMap, BTreeSet};

use super::history::History;
use super::snapshot::RevisionView;
use crate::api::RecordedComponent;

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
    verified: BTreeMap<&'a str, Vec<(u64, &'a RecordedComponent)>>,
}

impl<'a> Verifications<'a> {
    fn new(latest: &'a RevisionView, history: &History<'a>) -> Self {
        let mut last_write = BTreeMap::new();
        let mut verified: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        if let Some(revision) = history.verified() {
            for component in &revision.spec.components {
                verified.entry(&component.name).or_default().push((revision.number(), component));
            }
        }
        for revision in history.since_verified().iter().filter(|revision| revision.number() < latest.number()) {
            let components: BTreeMap<&str, &RecordedComponent> =
                revision.spec.components.iter().map(|component| (component.name.as_str(), component)).collect();
            for record in &revision.status.components {
                if record.moved {
                    last_write.insert(record.name.as_str(), revision.number());
                }
                if let (Some(_), Some(component)) = (&record.verified_at, components.get(record.name.as_str())) {
                    verified.entry(&record.name).or_default().push((revision.number(), component));
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
    /// is upstream is written first, as long as the edges are the same.
    fn of(&self, component: &RecordedComponent, written: u64) -> Option<u64> {
        let candidates = self.verified.get(component.name.as_str())?;
        let alike = |recorded: &RecordedComponent| {
            recorded.digest == component.digest
                && recorded.ready_when == component.ready_when
                && recorded.canary == component.canary
        };
        let proves = |number: u64, recorded: &RecordedComponent| {
            number > written || (number == written && recorded.depends_on == component.depends_on)
        };
        candidates
            .iter()
            .rev()
            .find(|(number, recorded)| alike(recorded) && proves(*number, recorded))
            .map(|(number, _)| *number)
    }
}
