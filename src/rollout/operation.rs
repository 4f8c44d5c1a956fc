//! Argo CD: the operations that Windlass asks for.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::decision::Action;
use super::live::Live;
use super::release::{Look, form_beside};
use super::work::Work;
use crate::api::wellknown::ARGO_REFRESH;
use crate::api::{ComponentRecord, Engine, RecordedComponent};
use crate::engine::Manifest;
use crate::engine::observe::{self, Need, OPERATION_TOKEN, Proof};
use crate::ready::release::Wanted;

/// Pause before a failed operation is asked for again. Argo CD itself does not
/// try again after its `retry.limit` (seen on 3.5.7).
const RETRY: Duration = Duration::from_secs(30);
/// The same once a first install has failed as a whole.
const RETRY_INSTALL: Duration = Duration::from_secs(300);

/// What an Application says of a component's release. Asks Argo CD for what the
/// proof still needs, an operation excepted: what follows from this look is
/// decided first.
pub(crate) fn observe(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    wanted: &Wanted<'_>,
    health_counts: bool,
    record: &mut ComponentRecord,
) -> Look {
    let live = work.child(component);
    let taken_over = component.adopted && !record.moved;
    let proof = Proof { taken_over, once: component.hook, whatever_health: !health_counts, ..Proof::of(record) };
    let found = observe::argo(live.map(|live| live.object.as_ref()), wanted, &proof);
    found.proof.record(record);
    match (live, found.need) {
        (Some(live), Some(Need::Refresh)) => work.actions.push(refresh(live)),
        (Some(live), Some(Need::Termination)) => work.actions.push(termination(live)),
        (_, Some(Need::Operation) | None) | (None, Some(_)) => {}
    }
    let lacks_operation = live.is_some() && found.need == Some(Need::Operation);
    Look { release: found.release, lacks_operation }
}

/// A component that this revision does not write stands on the operation of the
/// revision that wrote it: another one would run the chart's own hooks again.
/// Only the comparison must be one of now.
pub(crate) fn inherit(work: &Work<'_>, record: &mut ComponentRecord) {
    if work.latest.spec.engine != Engine::Argo || record.token.is_some() {
        return;
    }
    let revisions = work.snapshot.revisions.iter().rev().filter(|revision| revision.number() < work.latest.number());
    let earlier =
        revisions.filter_map(|revision| revision.record(&record.name)).find(|earlier| earlier.token.is_some());
    if let Some(earlier) = earlier {
        Proof { refresh_seen: false, attempts: record.attempts, ..Proof::of(earlier) }.record(record);
    }
}

/// After a failure nothing more is asked for. But what was seen is remembered, and
/// a comparison changes nothing: an operation that ends well after all is noticed.
pub(crate) fn only_look(work: &mut Work<'_>, seen: Option<ComponentRecord>, asked: Vec<Action>) {
    let Some(seen) = seen.filter(|seen| seen.token_succeeded) else { return };
    let mut record = work.take_record(&seen.name);
    Proof { attempts: record.attempts, ..Proof::of(&seen) }.record(&mut record);
    work.put_record(record);
    work.actions.extend(asked.into_iter().filter(is_refresh));
}

fn refresh(live: &Live) -> Action {
    let patch = json!({"metadata": {"annotations": {ARGO_REFRESH: "normal"}}});
    // It may have changed meanwhile: the comparison is then one of what it is by now.
    Action::Patch { object: live.key().clone(), uid: live.uid().to_owned(), resource_version: None, patch }
}

fn is_refresh(action: &Action) -> bool {
    matches!(action, Action::Patch { patch, .. } if patch.pointer("/metadata/annotations").is_some())
}

/// The end of an operation that would hold up what comes next.
pub(crate) fn end(child: &Live) -> Option<Action> {
    observe::has_running_operation(&child.object).then(|| termination(child))
}

fn termination(live: &Live) -> Action {
    let patch = json!({"status": {"operationState": {"phase": "Terminating"}}});
    let resource_version = Some(live.resource_version().to_owned());
    Action::Patch { object: live.key().clone(), uid: live.uid().to_owned(), resource_version, patch }
}

/// Asks for the operation that a look found lacking; after a failure only once the
/// pause is over.
pub(crate) fn ask(work: &mut Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord) {
    let Some(live) = work.child(component) else { return };
    let Some(wanted) = form_beside(component, Some(live)) else { return };
    if record.token_failed {
        let pause = if work.has_failed_first_install() { RETRY_INSTALL } else { RETRY };
        let elapsed = record.token.as_deref().and_then(|token| age(work, token)).unwrap_or(pause);
        if let Some(left) = pause.checked_sub(elapsed).filter(|left| !left.is_zero()) {
            work.look_again(left);
            return;
        }
    }
    let token = new_token(work, record);
    let operation = operation(&wanted, &token, component.hook);
    work.actions.push(Action::Operate {
        object: live.key().clone(),
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
        spec: None,
        operation: Some(operation),
    });
    Proof::of(record).asked(token).record(record);
}

/// Writes the spec of an Application that exists, together with an operation of
/// ours and without the state of the last one: nothing of that can leak into
/// the new one. While another operation is pending only the spec is written; it
/// is terminated first.
pub(crate) fn write(work: &mut Work<'_>, live: &Live, manifest: Manifest, record: &mut ComponentRecord) {
    let spec = manifest.into_map();
    let busy = live.object.contains_key("operation") || has_no_status(live);
    if busy {
        work.actions.push(written(live, spec, None));
        // What was seen of the spec before says nothing of this one.
        Proof { attempts: record.attempts, ..Proof::default() }.record(record);
        return;
    }
    let token = new_token(work, record);
    let operation = operation(&spec, &token, false);
    work.actions.push(written(live, spec, Some(operation)));
    Proof::default().asked(token).record(record);
}

/// The write of a whole Application, with an operation or without.
pub(crate) fn written(live: &Live, wanted: Map<String, Value>, operation: Option<Value>) -> Action {
    Action::Operate {
        object: live.key().clone(),
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
        spec: Some(wanted),
        operation,
    }
}

/// Argo CD 3.6 fails on an operation that is written before it has looked at
/// the Application once.
fn has_no_status(live: &Live) -> bool {
    live.object.get("status").and_then(|status| status.get("reconciledAt")).is_none()
}

/// A token that was never used before: revision, attempts so far, and when.
pub(crate) fn new_token(work: &Work<'_>, record: &ComponentRecord) -> String {
    format!("{}/{}/{}@{}", work.latest.name, record.name, record.attempts, work.now.time.as_millisecond())
}

fn age(work: &Work<'_>, token: &str) -> Option<Duration> {
    let asked: i64 = token.rsplit_once('@')?.1.parse().ok()?;
    u64::try_from(work.now.time.as_millisecond() - asked).ok().map(Duration::from_millis)
}

/// Explicit source and revision (else a retry would take a source that was
/// written meanwhile, at the revision of the one before), the spec's sync options
/// and prune (Argo CD does not merge them in), and our token. Each of Argo CD's own
/// retries makes the objects of a hook again, so a hook has none.
fn operation(application: &Map<String, Value>, token: &str, is_hook: bool) -> Value {
    let at = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(application.get(*first)?, |value, key| value.get(*key))
    };
    let mut sync = Map::new();
    if let Some(source) = at(&["spec", "source"]) {
        sync.insert("source".into(), source.clone());
    }
    if let Some(revision) = at(&["spec", "source", "targetRevision"]) {
        sync.insert("revision".into(), revision.clone());
    }
    if at(&["spec", "syncPolicy", "automated", "prune"]).and_then(Value::as_bool) == Some(true) {
        sync.insert("prune".into(), true.into());
    }
    if let Some(options) = at(&["spec", "syncPolicy", "syncOptions"]) {
        sync.insert("syncOptions".into(), options.clone());
    }
    let mut operation = json!({
        "initiatedBy": {"username": "windlass", "automated": true},
        "info": [{"name": OPERATION_TOKEN, "value": token}],
        "sync": sync,
    });
    if !is_hook {
        operation["retry"] = json!({"limit": 2, "backoff": {"duration": "2s", "factor": 2, "maxDuration": "10s"}});
    }
    operation
}
