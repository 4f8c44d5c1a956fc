//! `Package.status`: a view of the revisions and children.

use super::canaries;
use super::clock::Now;
use super::headline::Headline;
use super::snapshot::Snapshot;
use super::work::Work;
use crate::api::{
    Attempted, Blocker, ComponentRecord, ComponentState, ComponentStatus, PackageStatus, RevisionPhase, RolloutRecord,
    RolloutStatus,
};

/// The status of a Package that has a revision.
pub(crate) fn of(work: &Work<'_>, headline: &Headline, open: Option<(&str, &str)>) -> PackageStatus {
    let verified = verified_after(work);
    let mut status = without_revision(work.snapshot, headline, work.now, work.blocked_by.clone());
    status.version = verified.map(|revision| revision.spec.version.clone());
    status.revision = verified.map(super::snapshot::RevisionView::number);
    status.attempted = Some(Attempted { version: work.latest.spec.version.clone(), revision: work.latest.number() });
    status.engine = Some(work.latest.spec.engine);
    status.components = components(work, open);
    let guarded =
        |record: &RolloutRecord| RolloutStatus { guard: canaries::guard_now(work, record), ..record.status() };
    status.rollouts = work.status.rollouts.iter().chain(&work.overtaken).map(guarded).collect();
    status.last_handled_retry = work.status.last_handled_retry.clone();
    status.last_handled_rollback = work.status.last_handled_rollback.clone();
    status
}

/// The status of a Package without a revision.
pub(crate) fn without_revision(
    snapshot: &Snapshot,
    headline: &Headline,
    now: Now,
    blocked_by: Vec<Blocker>,
) -> PackageStatus {
    PackageStatus {
        observed_generation: Some(snapshot.package.generation),
        conditions: headline.conditions(&snapshot.package, now),
        summary: Some(headline.summary()),
        blocked_by,
        ..PackageStatus::default()
    }
}

/// *T* as it will be once the record is written.
fn verified_after<'a>(work: &Work<'a>) -> Option<&'a super::snapshot::RevisionView> {
    match work.status.phase {
        RevisionPhase::Succeeded => Some(work.latest),
        RevisionPhase::RolledBack => work.status.rollback.as_ref().and_then(|rollback| work.history.get(rollback.to)),
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => work.history.verified(),
    }
}

fn components(work: &Work<'_>, open: Option<(&str, &str)>) -> Vec<ComponentStatus> {
    let shown = match (work.status.phase, &work.status.rollback) {
        (RevisionPhase::RolledBack, Some(rollback)) => work.history.get(rollback.to).unwrap_or(work.latest),
        _ => work.latest,
    };
    let back = work.status.rollback.as_ref().and_then(|rollback| work.history.get(rollback.to));
    let before = &work.snapshot.package.status.components;
    let before: std::collections::BTreeMap<&str, &ComponentStatus> =
        before.iter().map(|component| (component.name.as_str(), component)).collect();
    let default = ComponentRecord::default();
    let components = shown.spec.components.iter().filter(|component| !component.hook);
    components
        .map(|component| {
            let record = work.record(&component.name).unwrap_or(&default);
            let state = shown_state(work, record);
            let same = before.get(component.name.as_str()).filter(|known| known.state == state);
            let restored = back.filter(|_| record.state == ComponentState::Restored);
            let runs = restored.and_then(|target| target.component(&component.name)).unwrap_or(component);
            ComponentStatus {
                name: component.name.clone(),
                state,
                version: Some(runs.chart_version.clone()).filter(|version| !version.is_empty()),
                since: same.map_or_else(|| Some(work.now.as_time()), |known| known.since.clone()),
                message: message(work, open, &component.name),
            }
        })
        .collect()
}

fn message(work: &Work<'_>, open: Option<(&str, &str)>, component: &str) -> Option<String> {
    let awaited = open.filter(|(name, _)| *name == component).map(|(_, message)| message.to_owned());
    awaited.or_else(|| work.remarks.get(component).cloned())
}

/// In a revision that has ended well everything in it is verified, also what
/// had no turn.
fn shown_state(work: &Work<'_>, record: &ComponentRecord) -> ComponentState {
    match work.status.phase {
        RevisionPhase::Succeeded | RevisionPhase::RolledBack => ComponentState::Verified,
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => record.state,
    }
}
