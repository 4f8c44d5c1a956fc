//! The objects that releases are: where they stand, whose they are, how they
//! are let go, kept and read. What differs between the engines stands here.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::decision::{Action, Precondition};
use super::live::{Live, Place, key_of};
use super::operation;
use super::prepare;
use super::snapshot::Snapshot;
use super::turn::Gate;
use super::work::Work;
use crate::api::wellknown::{
    ANNOTATION_DIGEST, ANNOTATION_HOOK, ANNOTATION_WAVE, ARGO_FINALIZER, ARGO_IN_CLUSTER, ARGO_TRACKING_ID,
    FLUX_RECONCILE,
};
use crate::api::{Claim, ComponentRecord, Engine, RecordedComponent};
use crate::engine::{Manifest, ObjectKey, observe, pinned, pinned_names};
use crate::ready::owned;
use crate::ready::release::{Release, ReleaseState, Wanted, text};

/// Owned fields whose change moves nothing, and the CRD policy, which a
/// rollback leaves at Skip: they are kept up to date, but never make a release
/// another one.
const LEFT_OUT: &[&[&str]] = &[
    &["metadata", "annotations", ANNOTATION_WAVE],
    &["metadata", "annotations", ARGO_TRACKING_ID],
    &["spec", "interval"],
    &["spec", "timeout"],
    &["spec", "serviceAccountName"],
    &["spec", "driftDetection"],
    &["spec", "healthCheckExprs"],
    &["spec", "waitStrategy"],
    &["spec", "install", "strategy"],
    &["spec", "upgrade", "strategy"],
    &["spec", "upgrade", "crds"],
    &["spec", "project"],
    &["spec", "ignoreDifferences"],
    &["spec", "syncPolicy", "syncOptions"],
];

/// Asks helm-controller for an upgrade whatever runs.
const FLUX_FORCE: &str = "reconcile.fluxcd.io/forceAt";
/// Asks helm-controller to forget the failures that it has counted.
const FLUX_RESET: &str = "reconcile.fluxcd.io/resetAt";

/// The CRD policy alone, see [`LEFT_OUT`].
pub(crate) const CRD_POLICY: &[&[&str]] = &[&["spec", "upgrade", "crds"]];

/// The engine that a kind of release object belongs to.
pub(crate) fn engine_of(kind: &str) -> Option<Engine> {
    match kind {
        "HelmRelease" => Some(Engine::Flux),
        "Application" => Some(Engine::Argo),
        _ => None,
    }
}

/// Whether a kind is that of a release's object.
pub(crate) fn is_release_kind(kind: &str) -> bool {
    engine_of(kind).is_some()
}

/// Whether a kind is a Flux source of ours.
pub(crate) fn is_source_kind(kind: &str) -> bool {
    matches!(kind, "HelmRepository" | "HelmChart" | "OCIRepository" | "GitRepository")
}

/// Where the release object of a name stands.
pub(crate) fn key(engine: Engine, namespace: &str, name: String) -> ObjectKey {
    let (api_version, kind) = match engine {
        Engine::Flux => ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
        Engine::Argo => ("argoproj.io/v1alpha1", "Application"),
    };
    ObjectKey { api_version: api_version.into(), kind: kind.into(), namespace: namespace.to_owned(), name }
}

/// Where the release object of a recorded component stands.
pub(crate) fn object_key(component: &RecordedComponent) -> Option<ObjectKey> {
    component.manifests.last().map(key_of)
}

/// The same, borrowed.
pub(crate) fn place(component: &RecordedComponent) -> Option<Place<'_>> {
    component.manifests.last().map(Place::of)
}

/// The live object at the place of a component's release object, where there is
/// no index of them.
pub(crate) fn child<'a>(snapshot: &'a Snapshot, component: &RecordedComponent) -> Option<&'a Live> {
    let place = place(component)?;
    snapshot.children.iter().find(|child| child.place() == place)
}

/// What one look at a release gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Where it stands.
    pub release: Release,
    /// Argo CD only: it goes no further without an operation that has to be asked for.
    pub lacks_operation: bool,
}

impl From<Release> for Look {
    fn from(release: Release) -> Self {
        Self { release, lacks_operation: false }
    }
}

/// What the engine says of a component's release.
pub(crate) fn observe(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    record: &mut ComponentRecord,
    gate: Gate,
) -> Look {
    let Some(wanted) = Wanted::of(component) else { return absent(component).into() };
    let live = work.child(component);
    let Some(form) = form_beside(component, live) else { return absent(component).into() };
    let wanted = wanted.without(LEFT_OUT).written_as(&form);
    match work.latest.spec.engine {
        Engine::Flux => flux(live, &wanted, record).into(),
        Engine::Argo => {
            let health_counts = gate == Gate::Verified || is_waited_for_on_the_way_back(component, live);
            operation::observe(work, component, &wanted, health_counts, record)
        }
    }
}

fn absent(component: &RecordedComponent) -> Release {
    let message = format!("component {} has no manifests", component.name);
    Release {
        state: ReleaseState::Absent,
        attempts: 0,
        trouble: None,
        is_looked_at_again: false,
        verdict_is_due: false,
        message,
    }
}

/// A component's release as it is wanted beside the live one: if that states a
/// budget of 1, because no policy of the guard acted when it was written, it goes on
/// doing so until the component's next move.
pub(crate) fn form_beside<'c>(
    component: &'c RecordedComponent,
    live: Option<&Live>,
) -> Option<Cow<'c, Map<String, Value>>> {
    let stored = component.manifests.last()?;
    let Some(canary) = &component.canary else { return Some(Cow::Borrowed(stored)) };
    let is_pinned = |release: &Map<String, Value>| !pinned_names(release).is_empty();
    let states_it = match is_pinned(stored) {
        true => !component.adopted,
        false => live.is_some_and(|live| is_pinned(&live.object)),
    };
    Some(match states_it {
        true => Cow::Owned(pinned(&Manifest::from_record(stored.clone()), canary).into_map()),
        false => Cow::Borrowed(stored),
    })
}

/// Failures from before the turn, or before a retry, are not counted. Until
/// helm-controller has handled a request for another attempt nothing it says of
/// the last one counts; one that somebody's own request has replaced is over.
fn flux(live: Option<&Live>, wanted: &Wanted<'_>, record: &mut ComponentRecord) -> Release {
    let release = observe::flux(live.map(|live| live.object.as_ref()), wanted);
    let asked = record.token.as_deref();
    let requested = live.and_then(|live| live.annotation(FLUX_RECONCILE));
    let handled = live.and_then(|live| live.object.get("status")?.get("lastHandledReconcileAt")?.as_str());
    let is_pending = asked.is_some() && asked == requested && asked != handled;
    if matches!(release.state, ReleaseState::Failed(_)) && is_pending {
        let message = format!("{}; another attempt was asked for", release.message);
        return Release { state: ReleaseState::Queued, attempts: 0, message, ..release };
    }
    // A lower count is a new one.
    if release.attempts < record.failures_before {
        record.failures_before = 0;
    }
    Release { attempts: release.attempts - record.failures_before, ..release }
}

/// A turn begins, or is given its time anew: what has failed before does not count.
/// helm-controller is asked for another attempt now, unless one comes anyway with
/// what is about to be written.
pub(crate) fn begin_turn(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    record: &mut ComponentRecord,
    is_to_be_written: bool,
) {
    let live = work.child(component);
    let (Engine::Flux, Some(live), Some(wanted)) = (work.latest.spec.engine, live, Wanted::of(component)) else {
        return;
    };
    let release = observe::flux(Some(&live.object), &wanted.without(LEFT_OUT));
    record.failures_before = release.attempts;
    if matches!(release.state, ReleaseState::Failed(_)) && !is_to_be_written {
        let token = operation::new_token(work, record);
        work.actions.push(request(live, &token, &[FLUX_RESET]));
        record.token = Some(token);
    }
}

/// Asks helm-controller to look at a release, with what else it is to do then: that
/// counts only if it is asked for at the same time.
fn request(child: &Live, token: &str, also: &[&str]) -> Action {
    let asked = also.iter().chain(&[FLUX_RECONCILE]);
    let annotations: Map<String, Value> = asked.map(|key| ((*key).to_owned(), Value::from(token))).collect();
    patch(child, json!({"metadata": {"annotations": annotations}}))
}

/// Whether a live child is ours and as the component's manifests say.
pub(crate) fn is_as_written(component: &RecordedComponent, child: &Live) -> bool {
    let Some(wanted) = form_beside(component, Some(child)) else { return false };
    child.digest() == Some(component.digest.as_str())
        && owned::difference(&wanted, &child.object, LEFT_OUT).is_none()
        && observe::has_exact_source(&wanted, &child.object)
}

/// The release that a live child stands for.
pub(crate) fn claim(child: &Live) -> Option<&Claim> {
    child.claim(read_claim)
}

fn read_claim(child: &Live) -> Option<Claim> {
    let spec = child.object.get("spec")?;
    let own = child.key();
    let text = |path: &[&str]| path.iter().try_fold(spec, |value, key| value.get(*key)).and_then(Value::as_str);
    match engine_of(&own.kind)? {
        Engine::Flux => {
            let namespace = text(&["targetNamespace"]).unwrap_or(&own.namespace).to_owned();
            let storage_namespace = text(&["storageNamespace"]).unwrap_or(&own.namespace).to_owned();
            let name = match (text(&["releaseName"]), text(&["targetNamespace"])) {
                (Some(name), _) => name.to_owned(),
                (None, Some(target)) => format!("{target}-{}", own.name),
                (None, None) => own.name.clone(),
            };
            Some(Claim { storage_namespace, namespace, name })
        }
        Engine::Argo => {
            let namespace = text(&["destination", "namespace"])?.to_owned();
            let name = text(&["source", "helm", "releaseName"]).unwrap_or(&own.name).to_owned();
            Some(Claim { storage_namespace: namespace.clone(), namespace, name })
        }
    }
}

/// Whether an object of somebody else installs a release into this cluster,
/// wherever Helm's records of it are.
pub(crate) fn holds(live: &Live, release: &Claim) -> bool {
    let here = match engine_of(&live.key().kind) {
        Some(Engine::Flux) => live.object.get("spec").is_some_and(|spec| spec.get("kubeConfig").is_none()),
        Some(Engine::Argo) => {
            let destination = live.object.get("spec").and_then(|spec| spec.get("destination"));
            let is =
                |key: &str, value: &str| destination.and_then(|d| d.get(key)).and_then(Value::as_str) == Some(value);
            is("server", ARGO_IN_CLUSTER) || is("name", "in-cluster")
        }
        None => false,
    };
    here && claim(live).is_some_and(|held| (&held.namespace, &held.name) == (&release.namespace, &release.name))
}

/// Whether the engine says that it has deployed a release: an object alone, made by
/// whoever may make one, installs nothing.
pub(crate) fn is_deployed(live: &Live, release: &Claim) -> bool {
    let history = live.object.get("status").and_then(|status| status.get("history")).and_then(Value::as_array);
    let mut entries = history.into_iter().flatten();
    match engine_of(&live.key().kind) {
        Some(Engine::Flux) => entries.any(|entry| {
            let is = |key: &str, text: &str| entry.get(key).and_then(Value::as_str) == Some(text);
            is("name", &release.name)
                && is("namespace", &release.namespace)
                && (is("status", "deployed") || is("status", "superseded"))
        }),
        Some(Engine::Argo) => {
            let ended = text(&live.object, &["status", "operationState", "phase"]) == Some("Succeeded");
            ended || entries.next().is_some()
        }
        None => false,
    }
}

/// Whether a step of a rollback waits until the engine calls the release ready. It
/// does not where `readyWhen` says at the end what has to hold, and where nothing
/// that runs is in the release: a resource that an operator reports on cannot be
/// ready at the earlier version before that operator is back.
pub(crate) fn is_waited_for_on_the_way_back(component: &RecordedComponent, child: Option<&Live>) -> bool {
    let runs = |key: &ObjectKey| {
        let kind = (key.api_version.as_str(), key.kind.as_str());
        matches!(kind, ("apps/v1", _) | ("batch/v1", "Job") | ("v1", "Pod"))
    };
    component.ready_when.is_empty() && child.and_then(known_objects_of).is_none_or(|objects| objects.iter().any(runs))
}

/// Whether a child is the run of a hook.
pub(crate) fn is_hook(child: &Live) -> bool {
    child.annotation(ANNOTATION_HOOK).is_some()
}

/// Whether somebody holds the engine back from a child.
pub(crate) fn is_suspended(child: &Live) -> bool {
    child.object.get("spec").and_then(|spec| spec.get("suspend")).and_then(Value::as_bool).unwrap_or(false)
}

/// Whether deleting the child leaves its release alone.
pub(crate) fn is_let_go(child: &Live) -> bool {
    match engine_of(&child.key().kind) {
        Some(Engine::Flux) => is_suspended(child),
        Some(Engine::Argo) => !finalizers(child).iter().any(|finalizer| finalizer.starts_with(ARGO_FINALIZER)),
        None => true,
    }
}

/// Takes away what somebody added to that from which a HelmRelease is rendered: an
/// apply would leave it there. What another digest has left is replaced by an apply.
pub(crate) fn without_more(child: &Live, wanted: &Map<String, Value>) -> Option<Action> {
    let digest = wanted.get("metadata")?.get("annotations")?.get(ANNOTATION_DIGEST)?.as_str()?;
    if engine_of(&child.key().kind) != Some(Engine::Flux) || child.digest() != Some(digest) {
        return None;
    }
    Some(Action::Patch {
        object: child.key().clone(),
        uid: child.uid().to_owned(),
        resource_version: Some(child.resource_version().to_owned()),
        patch: observe::more_values(wanted, &child.object)?,
    })
}

/// What makes the deletion of a child leave its release alone: suspension
/// (measured on helm-controller 1.6.3), or no cascade on Argo CD.
pub(crate) fn let_go(child: &Live) -> Option<Action> {
    if is_let_go(child) {
        return None;
    }
    match engine_of(&child.key().kind)? {
        Engine::Flux => Some(patch(child, json!({"spec": {"suspend": true}}))),
        Engine::Argo => {
            let kept: Vec<&str> =
                finalizers(child).into_iter().filter(|finalizer| !finalizer.starts_with(ARGO_FINALIZER)).collect();
            Some(patch_unchanged(child, json!({"metadata": {"finalizers": kept}})))
        }
    }
}

/// Makes the deletion of an Application take its release along again, after somebody
/// took the finalizer off or a hand-over was called off.
pub(crate) fn cascading(child: &Live) -> Option<Action> {
    if engine_of(&child.key().kind) != Some(Engine::Argo) || !is_let_go(child) {
        return None;
    }
    let finalizers: Vec<&str> = finalizers(child).into_iter().chain([ARGO_FINALIZER]).collect();
    Some(patch(child, json!({"metadata": {"finalizers": finalizers}})))
}

/// Lifts somebody's suspension.
pub(crate) fn lift(child: &Live) -> Action {
    patch(child, json!({"spec": {"suspend": false}}))
}

/// A manifest that lifts somebody's suspension when it is applied.
pub(crate) fn lifted(manifest: Manifest) -> Manifest {
    let mut object = manifest.into_map();
    if object.get("kind").and_then(Value::as_str) == Some("HelmRelease")
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.insert("suspend".into(), false.into());
    }
    Manifest::from_record(object)
}

/// Gives an object the CRD policy that the live one has.
pub(crate) fn keep_crd_policy(object: &mut Map<String, Value>, live: &Live) {
    let policy = live.object.get("spec").and_then(|spec| spec.get("upgrade")?.get("crds")).cloned();
    let upgrade = object.get_mut("spec").and_then(|spec| spec.get_mut("upgrade")).and_then(Value::as_object_mut);
    if let (Some(policy), Some(upgrade)) = (policy, upgrade) {
        upgrade.insert("crds".into(), policy);
    }
}

fn patch(child: &Live, patch: Value) -> Action {
    Action::Patch { object: child.key().clone(), uid: child.uid().to_owned(), resource_version: None, patch }
}

/// The same of what is written as a whole: what somebody has added meanwhile stays.
pub(crate) fn patch_unchanged(child: &Live, patch: Value) -> Action {
    let resource_version = Some(child.resource_version().to_owned());
    Action::Patch { object: child.key().clone(), uid: child.uid().to_owned(), resource_version, patch }
}

fn finalizers(child: &Live) -> Vec<&str> {
    let finalizers = child.object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
    finalizers.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The account that the engine acts as for a child, if it is the Package's.
pub(crate) fn service_account(child: &Live) -> Option<ObjectKey> {
    let name = child.object.get("spec")?.get("serviceAccountName")?.as_str()?;
    let namespace = child.key().namespace.clone();
    Some(ObjectKey { api_version: "v1".into(), kind: "ServiceAccount".into(), namespace, name: name.to_owned() })
}

/// What a HelmRelease says of where its chart comes from.
pub(crate) fn chart_ref(child: &Live) -> Option<&Value> {
    child.object.get("spec")?.get("chartRef")
}

/// The Flux source that a release's chart comes from.
pub(crate) fn chart_source(child: &Live) -> Option<ObjectKey> {
    let reference = chart_ref(child)?;
    let text = |field: &str| reference.get(field).and_then(Value::as_str).map(str::to_owned);
    let namespace = text("namespace").unwrap_or_else(|| child.key().namespace.clone());
    Some(source_key(text("kind")?, namespace, text("name")?))
}

/// The source that a source takes its artifact from.
pub(crate) fn source_behind(source: &Live) -> Option<ObjectKey> {
    let reference = source.object.get("spec")?.get("sourceRef")?;
    let text = |field: &str| reference.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(source_key(text("kind")?, source.key().namespace.clone(), text("name")?))
}

fn source_key(kind: String, namespace: String, name: String) -> ObjectKey {
    ObjectKey { api_version: "source.toolkit.fluxcd.io/v1".into(), kind, namespace, name }
}

/// Objects a release has, without those that an uninstall keeps.
/// `status.inventory` of a HelmRelease (`<ns>_<name>_<group>_<kind>`, since
/// helm-controller 1.5.0), `status.resources` of an Application.
pub(crate) fn objects_of(child: &Live) -> Vec<ObjectKey> {
    all_objects_of(child).into_iter().filter(|key| !is_data(key)).collect()
}

/// Objects a release has that an uninstall keeps.
pub(crate) fn data_of(child: &Live) -> Vec<ObjectKey> {
    all_objects_of(child).into_iter().filter(is_data).collect()
}

fn is_data(key: &ObjectKey) -> bool {
    matches!(key.kind.as_str(), "CustomResourceDefinition" | "PersistentVolumeClaim" | "Namespace")
}

fn all_objects_of(child: &Live) -> Vec<ObjectKey> {
    known_objects_of(child).unwrap_or_default()
}

/// The same, where it is told from an engine that does not say.
pub(crate) fn known_objects_of(child: &Live) -> Option<Vec<ObjectKey>> {
    let status = child.object.get("status")?;
    match engine_of(&child.key().kind)? {
        Engine::Flux => {
            let inventory = status.get("inventory")?.get("entries")?.as_array()?;
            Some(inventory.iter().filter_map(inventory_entry).collect())
        }
        Engine::Argo => Some(status.get("resources")?.as_array()?.iter().filter_map(resource).collect()),
    }
}

fn inventory_entry(entry: &Value) -> Option<ObjectKey> {
    let id = entry.get("id")?.as_str()?;
    let version = entry.get("v")?.as_str()?;
    let mut from_the_end = id.rsplitn(3, '_');
    let (kind, group, rest) = (from_the_end.next()?, from_the_end.next()?, from_the_end.next()?);
    let (namespace, name) = rest.split_once('_')?;
    Some(object(group, version, kind, namespace, name))
}

/// The object of an entry of an Application's `status.resources`.
pub(crate) fn resource(entry: &Value) -> Option<ObjectKey> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let (kind, name, version) = (text("kind")?, text("name")?, text("version")?);
    Some(object(text("group").unwrap_or(""), version, kind, text("namespace").unwrap_or(""), name))
}

fn object(group: &str, version: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ObjectKey { api_version, kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

/// What a deletion under way waits for, as far as the engine says.
pub(crate) fn deletion_message(child: &Live) -> String {
    let conditions = child.object.get("status").and_then(|status| status.get("conditions")).and_then(Value::as_array);
    let failed = conditions.into_iter().flatten().find(|condition| {
        condition.get("reason").and_then(Value::as_str) == Some("UninstallFailed")
            || condition.get("type").and_then(Value::as_str) == Some("DeletionError")
    });
    let why = failed.and_then(|condition| condition.get("message")).and_then(Value::as_str);
    match why {
        Some(why) => format!("{}: uninstalling fails: {why}", child.name()),
        None => format!("{}: its release is being uninstalled", child.name()),
    }
}

/// What was written is kept as written: children that were removed or edited by
/// somebody else are applied again, outside of any turn.
pub(crate) fn keep_as_written(work: &mut Work<'_>, components: &[RecordedComponent]) {
    for component in components.iter().filter(|component| !component.hook) {
        let child = work.child(component);
        let foreign = child.is_some_and(|child| child.package() != Some(work.snapshot.package.name.as_str()));
        let going = child.is_some_and(Live::is_deleting);
        if !foreign && !going && !child.is_some_and(|child| is_as_written(component, child)) {
            let mut record = work.take_record(&component.name);
            let before = record.clone();
            work.apply(component, &mut record);
            if record != before {
                work.put_record(record);
            }
        }
        keep_sources(work, component);
    }
}

/// A release lives on its sources: one that somebody deleted is written again.
pub(crate) fn keep_sources(work: &mut Work<'_>, component: &RecordedComponent) {
    for manifest in prepare::sources_of(component) {
        if work.source(Place::of(manifest)).is_some() {
            continue;
        }
        let action = Action::Apply { object: manifest.clone(), precondition: Precondition::Any };
        if !work.actions.contains(&action) {
            work.actions.push(action);
        }
    }
}

/// Asks for another attempt of whatever failed. On Flux the counters are reset
/// and the action forced (helm-controller: `resetAt` and `forceAt` count when
/// they equal `requestedAt`); on Argo CD a new operation is asked for. A
/// component that did not move is only given its time again.
pub(crate) fn ask_again(work: &mut Work<'_>, token: &str) {
    let latest = work.latest;
    for component in latest.spec.components.iter().filter(|component| !component.hook) {
        let unverified = |record: &&ComponentRecord| record.verified_at.is_none();
        let Some(mut record) = work.record(&component.name).filter(unverified).cloned() else { continue };
        super::clock::Clock::reset(&mut record);
        (record.attempts, record.release_ready_at) = (0, None);
        record.last_failure.clear();
        record.state = crate::api::ComponentState::Queued;
        if record.moved {
            ask_engine_again(work, component, &mut record, token);
        }
        work.put_record(record);
    }
}

fn ask_engine_again(work: &mut Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord, token: &str) {
    match (work.latest.spec.engine, work.child(component)) {
        (Engine::Flux, Some(child)) => {
            begin_turn(work, component, record, true);
            record.token = Some(token.to_owned());
            work.actions.push(request(child, token, &[FLUX_FORCE, FLUX_RESET]));
        }
        (Engine::Argo, child) => {
            work.actions.extend(child.and_then(operation::end));
            (record.token, record.token_succeeded) = (None, false);
        }
        (Engine::Flux, None) => {}
    }
}
