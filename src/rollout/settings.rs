//! Settings that move nothing: timeout, retries, drift settings, account and
//! health checks. They are kept up to date in place, outside of any turn.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::canaries;
use super::clock::Clock as _;
use super::decision::Action;
use super::live::Live;
use super::release;
use super::snapshot::Snapshot;
use super::work::Work;
use crate::api::wellknown::ARGO_TRACKING_ID;
use crate::api::{ComponentState, Engine, HookOutcome, HookRecord, Reason, RevisionPhase};
use crate::engine::{Manifest, in_place, surplus};
use crate::package::definition::Definition;
use crate::package::names::{ObjectName, hex};
use crate::ready::owned;
use crate::rollout::compile;
use crate::rollout::hooks;

/// Digits of the fingerprint.
const DIGITS: usize = 16;

/// Brings the children's settings up to date. The fingerprint is recorded only
/// once all of them are, so that nothing is forgotten by a restart. Such an edit
/// of a failed revision counts as a retry; what others change, a flag, the owner of the
/// Package or a newer Windlass, does not.
pub(crate) fn update(work: &mut Work<'_>, definition: &Definition) {
    let wanted = fingerprint(work.snapshot, definition);
    let recorded = work.status.settings.clone();
    if recorded.as_deref() == Some(&wanted) {
        return;
    }
    let package = &work.snapshot.package;
    let is_edited = package.status.observed_generation != Some(package.generation);
    if recorded.is_some() && is_edited && work.status.phase == RevisionPhase::Failed {
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
        "account": snapshot.account().map(|name| name.as_str()),
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
    work.event(false, Reason::Progressing, "settings were edited: another attempt");
}

/// Applies what differs; true if anything did.
fn overlay(work: &mut Work<'_>, definition: &Definition) -> bool {
    let mut written = false;
    let mut seen = BTreeSet::new();
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
        seen.insert(child.key().clone());
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
    let others: Vec<&Live> = work.inventory().filter(|child| !seen.contains(child.key())).collect();
    let patches: Vec<Action> = others.into_iter().filter_map(|child| as_whom(work, child)).collect();
    written |= !patches.is_empty();
    work.actions.extend(patches);
    written
}

/// A child that is not as the latest revision has it still acts as the spec says
/// now: one that is to go, that was taken over, or that an earlier revision has put
/// there. What it acted as before may be gone.
fn as_whom(work: &Work<'_>, child: &Live) -> Option<Action> {
    let running =
        |record: &HookRecord| child.component() == Some(record.name.as_str()) && record.outcome == HookOutcome::Running;
    if child.is_deleting() || work.status.hooks.iter().any(running) {
        return None;
    }
    // Taken over, it keeps its project until it moves.
    let is_kept = || child.component().and_then(|name| work.newest(name)).is_some_and(|known| known.adopted);
    let (field, wanted) = match release::engine_of(&child.key().kind)? {
        Engine::Argo if is_kept() => return None,
        Engine::Flux => ("serviceAccountName", work.snapshot.account().map(ObjectName::as_str)),
        Engine::Argo => ("project", Some(work.snapshot.cluster.argo_project.as_str())),
    };
    let found = child.object.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_str);
    (found != wanted).then(|| Action::Patch {
        object: child.key().clone(),
        uid: child.uid().to_owned(),
        resource_version: Some(child.resource_version().to_owned()),
        patch: json!({"spec": {field: wanted}}),
    })
}
