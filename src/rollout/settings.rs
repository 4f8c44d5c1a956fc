//! Settings that move nothing: timeout, retries, drift settings, account and
//! health checks. They are kept up to date in place, outside of any turn.

use serde_json::json;

use super::canaries;
use super::clock::Clock as _;
use super::decision::Action;
use super::release;
use super::snapshot::Snapshot;
use super::work::Work;
use crate::api::wellknown::ARGO_TRACKING_ID;
use crate::api::{ComponentState, Engine, Reason, RevisionPhase};
use crate::engine::{Manifest, in_place, surplus};
use crate::package::definition::Definition;
use crate::package::names::hex;
use crate::ready::owned;
use crate::rollout::compile;
use crate::rollout::hooks;

/// Digits of the fingerprint.
const DIGITS: usize = 16;

/// Brings the children's settings up to date. The fingerprint is recorded only
/// once all of them are, so that nothing is forgotten by a restart. Such an edit
/// of a failed revision counts as a retry.
pub(crate) fn update(work: &mut Work<'_>, definition: &Definition) {
    let wanted = fingerprint(work.snapshot, definition);
    let recorded = work.status.settings.clone();
    if recorded.as_deref() == Some(&wanted) {
        return;
    }
    if recorded.is_some() && work.status.phase == RevisionPhase::Failed {
        try_again(work);
    }
    if !overlay(work, definition) {
        work.status.settings = Some(wanted);
    }
}

fn fingerprint(snapshot: &Snapshot, definition: &Definition) -> String {
    let components: Vec<_> = definition
        .components
        .iter()
        .map(|component| (component.name.as_str(), &component.ignore, &component.health_check_exprs, &component.canary))
        .collect();
    let mut settings = json!({
        "timeout": definition.upgrade.timeout.to_string(),
        "retries": definition.upgrade.retries,
        "account": snapshot.account(),
        "components": components,
        "tracking": snapshot.package.annotations.get(ARGO_TRACKING_ID),
    });
    let on_argo = snapshot.revisions.last().is_some_and(|latest| latest.spec.engine == Engine::Argo);
    if on_argo {
        settings["project"] = snapshot.cluster.argo_project.as_str().into();
    }
    hex(&settings.to_string(), DIGITS)
}

fn try_again(work: &mut Work<'_>) {
    hooks::repeat_failures(work);
    canaries::retry(work);
    let failed = work.status.components.iter().filter(|record| record.state == ComponentState::Failed);
    for name in failed.map(|record| record.name.clone()).collect::<Vec<_>>() {
        let mut record = work.take_record(&name);
        record.reset();
        record.attempts = 0;
        if let Some(component) = work.latest.component(&name) {
            release::begin_turn(work, component, &mut record, true);
        }
        record.state = ComponentState::Queued;
        work.put_record(record);
    }
    work.enter(RevisionPhase::Applying);
    work.status.reason = None;
    work.event(false, Reason::Progressing, "settings were edited: another attempt");
}

/// Applies what differs; true if anything did.
fn overlay(work: &mut Work<'_>, definition: &Definition) -> bool {
    let mut written = false;
    let latest = work.latest;
    for component in latest.spec.components.iter().filter(|component| !component.hook && !component.adopted) {
        let Some(child) = work.child(component).filter(|child| release::is_as_written(component, child)) else {
            continue;
        };
        let (Some(stored), Some(fresh)) = (
            release::form_beside(component, Some(child)).map(|form| Manifest::from_record(form.into_owned())),
            compile::release_object(work.snapshot, definition, latest, component),
        ) else {
            continue;
        };
        let wanted = in_place(&stored, &fresh);
        if owned::difference(wanted.as_map(), &child.object, release::CRD_POLICY).is_some() {
            work.apply_settings(child, wanted);
            written = true;
        } else if let Some(patch) = surplus(&wanted, &child.object) {
            let resource_version = Some(child.resource_version().to_owned());
            let (object, uid) = (child.key().clone(), child.uid().to_owned());
            work.actions.push(Action::Patch { object, uid, resource_version, patch });
            written = true;
        }
    }
    written
}
