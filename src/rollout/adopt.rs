//! Taking over a release that runs already: its object, of any name, carries
//! `windlass.dev/adopt` with the component it is given to.
//!
//! Taking over changes nothing that runs. The object keeps everything about how
//! its release is rendered, installed and upgraded until the component's first
//! move, which brings ours.

use serde_json::{Map, Value, json};

use super::decision::Action;
use super::live::Live;
use super::release;
use super::snapshot::Snapshot;
use super::wanted::Wanted;
use crate::api::wellknown::{
    ARGO_COMPARE_OPTIONS, ARGO_SYNC_OPTIONS, ARGO_TRACKING_ID, FLUX_DISABLED, FLUX_OWNER_NAME, FLUX_OWNER_NAMESPACE,
    FLUX_PRUNE,
};
use crate::api::{Engine, RecordedComponent};
use crate::engine::observe::bare_version;
use crate::engine::{Manifest, ObjectKey, compare_options_beside};
use crate::ready::evidence::Lookup;
use crate::ready::owned;
use crate::ready::release::text;

/// What a HelmRelease gets from us when it is taken over; all else stays.
const FLUX_OURS: [&str; 9] = [
    "chartRef",
    "releaseName",
    "targetNamespace",
    "storageNamespace",
    "serviceAccountName",
    "interval",
    "timeout",
    "values",
    "valuesFrom",
];
/// What it loses: the chart comes from our source, the order from us.
const FLUX_DROPPED: [&str; 2] = ["chart", "dependsOn"];
/// What an Application gets from us when it is taken over.
const ARGO_OURS: [&str; 1] = ["source"];
/// Keeps Argo CD from removing an object that left its source.
const KEPT_BY_ARGO: &str = "Prune=false,Delete=false";

/// The value of the annotation that gives an object to a component.
pub(crate) fn given_to(snapshot: &Snapshot, component: &str) -> String {
    format!("{}/{}/{component}", snapshot.package.namespace, snapshot.package.name)
}

/// The component of this Package that a live object is given to.
pub(crate) fn heir<'a>(snapshot: &Snapshot, live: &'a Live) -> Option<&'a str> {
    let given = live.adopt()?.strip_prefix(snapshot.package.namespace.as_str())?;
    given.strip_prefix('/')?.strip_prefix(snapshot.package.name.as_str())?.strip_prefix('/')
}

/// Whether a live object is given to a component.
pub(crate) fn is_given(snapshot: &Snapshot, component: &str, live: &Live) -> bool {
    heir(snapshot, live) == Some(component)
}

/// Whether a live object was, or is to be, taken over: what others have written
/// into it goes when we write it.
pub(crate) fn is_taken_over(live: &Live) -> bool {
    live.adopt().is_some()
}

/// Whether an object that stands at a place of ours is somebody else's. It may have
/// come after the revision began.
pub(crate) fn is_foreign(snapshot: &Snapshot, live: &Live) -> bool {
    let own = live.package() == Some(snapshot.package.name.as_str());
    release::is_release_kind(&live.key().kind) && !own && heir(snapshot, live).is_none()
}

/// Objects that are given to wanted components and not taken over yet.
pub(crate) fn given<'a>(
    snapshot: &'a Snapshot,
    wanted: &'a Wanted,
) -> impl Iterator<Item = (&'a RecordedComponent, &'a Live)> {
    let foreign = |child: &&Live| child.package() != Some(snapshot.package.name.as_str());
    let given = snapshot.children.iter().filter(|child| is_taken_over(child)).filter(foreign).collect::<Vec<_>>();
    wanted.releases().filter_map(move |(component, key)| {
        let live = given.iter().find(|live| live.key() == key)?;
        is_given(snapshot, &component.name, live).then_some((component, *live))
    })
}

/// Keeps whoever applied a given object from pruning it once it has left Git.
pub(crate) fn protect(snapshot: &Snapshot, wanted: &Wanted) -> Vec<Action> {
    given(snapshot, wanted).filter_map(|(_, live)| protection(live)).collect()
}

fn protection(live: &Live) -> Option<Action> {
    let mut annotations = Map::new();
    if live.label(FLUX_OWNER_NAME).is_some() && live.annotation(FLUX_PRUNE) != Some(FLUX_DISABLED) {
        annotations.insert(FLUX_PRUNE.into(), FLUX_DISABLED.into());
    }
    let options = live.annotation(ARGO_SYNC_OPTIONS).unwrap_or_default();
    if live.annotation(ARGO_TRACKING_ID).is_some() && !options.contains(KEPT_BY_ARGO) {
        let separator = if options.is_empty() { "" } else { "," };
        annotations.insert(ARGO_SYNC_OPTIONS.into(), format!("{options}{separator}{KEPT_BY_ARGO}").into());
    }
    if annotations.is_empty() {
        return None;
    }
    let patch = json!({"metadata": {"annotations": annotations}});
    Some(release::patch_unchanged(live, patch))
}

/// Where to see whether somebody still applies a given object.
pub(crate) fn owners(snapshot: &Snapshot, wanted: &Wanted) -> Vec<ObjectKey> {
    given(snapshot, wanted).flat_map(|(_, live)| [kustomization(live), parent(live)]).flatten().collect()
}

fn kustomization(live: &Live) -> Option<ObjectKey> {
    Some(ObjectKey {
        api_version: "kustomize.toolkit.fluxcd.io/v1".into(),
        kind: "Kustomization".into(),
        namespace: live.label(FLUX_OWNER_NAMESPACE)?.to_owned(),
        name: live.label(FLUX_OWNER_NAME)?.to_owned(),
    })
}

/// The Application that an Application is part of, in the same namespace.
fn parent(live: &Live) -> Option<ObjectKey> {
    let (name, _) = live.annotation(ARGO_TRACKING_ID)?.split_once(':')?;
    Some(release::key(Engine::Argo, &live.key().namespace, name.to_owned()))
}

/// Why a given object is not taken over: what runs would not stay as it is, or
/// somebody else still writes it.
pub(crate) fn objection(
    snapshot: &Snapshot,
    component: &RecordedComponent,
    rendered: &Manifest,
    live: &Live,
) -> Option<String> {
    let what = another_given(snapshot, component, live)
        .or_else(|| other_release(component, live))
        .or_else(|| other_chart(component, live))
        .or_else(|| other_values(rendered, live))
        .or_else(|| still_applied(snapshot, live))?;
    Some(format!("{} is not taken over by `{}`: {what}", live.key(), component.name))
}

fn another_given(snapshot: &Snapshot, component: &RecordedComponent, live: &Live) -> Option<String> {
    let another = |child: &&Live| child.key() != live.key() && is_given(snapshot, &component.name, child);
    snapshot.children.iter().find(another).map(|child| format!("{} is given to it as well", child.key()))
}

fn other_release(component: &RecordedComponent, live: &Live) -> Option<String> {
    if live.object.get("spec").is_some_and(|spec| spec.get("kubeConfig").is_some()) {
        return Some("it installs into another cluster".to_owned());
    }
    let runs = release::claim(live)?;
    let wanted = &component.release;
    (runs.name != wanted.name || runs.namespace != wanted.namespace).then(|| {
        format!(
            "it holds release {}/{}, the component is {}/{}: set install.releaseName and install.namespace",
            runs.namespace, runs.name, wanted.namespace, wanted.name
        )
    })
}

/// Name and version of the chart that runs: what Helm has recorded, else what
/// the object asks for.
fn other_chart(component: &RecordedComponent, live: &Live) -> Option<String> {
    let recorded = live.object.get("status").and_then(|status| status.pointer("/history/0"));
    let recorded = |field: &str| recorded.and_then(|newest| newest.get(field)).and_then(Value::as_str);
    let stated = |path: &[&str]| text(&live.object, path);
    let name = recorded("chartName")
        .or_else(|| stated(&["spec", "chart", "spec", "chart"]))
        .or_else(|| stated(&["spec", "source", "chart"]))
        .or_else(|| stated(&["spec", "source", "path"]));
    let version = recorded("chartVersion")
        .or_else(|| stated(&["spec", "chart", "spec", "version"]))
        .or_else(|| stated(&["spec", "source", "chart"]).and_then(|_| stated(&["spec", "source", "targetRevision"])));
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let other_name = name.filter(|name| last(name) != last(&component.chart_name));
    if let Some(name) = other_name {
        return Some(format!("its chart is {name}, the component's {}", component.chart_name));
    }
    let other_version = |version: &&str| {
        !component.chart_version.is_empty() && bare_version(version) != bare_version(&component.chart_version)
    };
    version.filter(other_version).map(|version| {
        let wanted = &component.chart_version;
        format!("chart version {version} runs, the component has {wanted}: take over what runs, then change it")
    })
}

fn other_values(rendered: &Manifest, live: &Live) -> Option<String> {
    const PATHS: [&[&str]; 2] = [&["spec", "values"], &["spec", "source", "helm", "valuesObject"]];
    const OTHER_WAYS: [&[&str]; 4] = [
        &["spec", "source", "helm", "values"],
        &["spec", "source", "helm", "parameters"],
        &["spec", "source", "helm", "fileParameters"],
        &["spec", "sources"],
    ];
    let there = |path: &[&str]| at(&live.object, path).filter(|value| !is_empty(value));
    if let Some(path) = OTHER_WAYS.into_iter().find(|path| there(path).is_some()) {
        return Some(format!("{} has no counterpart in a Package", path.join(".")));
    }
    if references(there(&["spec", "valuesFrom"])) != references(at(rendered.as_map(), &["spec", "valuesFrom"])) {
        return Some("spec.valuesFrom differs from the component's: take over what runs, then change it".to_owned());
    }
    let nothing = Value::Object(Map::new());
    PATHS.into_iter().find_map(|path| {
        let runs = at(&live.object, path).unwrap_or(&nothing);
        let wanted = at(rendered.as_map(), path).unwrap_or(&nothing);
        let differs = || (!owned::is_exactly(Some(wanted), Some(runs))).then(String::new);
        let place = first_difference(runs, wanted).or_else(|| first_difference(wanted, runs)).or_else(differs)?;
        let place = format!("{}.{place}", path.join("."));
        let place = place.trim_end_matches('.');
        Some(format!("{place} differs from the component's values: take over what runs, then change it"))
    })
}

/// References to values with what Flux takes where nothing is said.
fn references(list: Option<&Value>) -> Vec<Value> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.cloned()
        .map(|mut reference| {
            if let Some(fields) = reference.as_object_mut() {
                fields.entry("valuesKey").or_insert_with(|| "values.yaml".into());
                fields.entry("optional").or_insert(Value::Bool(false));
                fields.sort_keys();
            }
            reference
        })
        .collect()
}

fn first_difference(wanted: &Value, found: &Value) -> Option<String> {
    let wrap = |value: &Value| Map::from_iter([("spec".to_owned(), value.clone())]);
    let difference = owned::difference(&wrap(wanted), &wrap(found), &[])?;
    Some(difference.path.trim_start_matches("spec").trim_start_matches('.').to_owned())
}

/// Whether the Kustomization or Application that applied the object has it among
/// its own still. Where that cannot be read it is not held against anybody.
fn still_applied(snapshot: &Snapshot, live: &Live) -> Option<String> {
    let found = |key: &ObjectKey| match snapshot.objects.get(key)? {
        Lookup::Found(object) => Some(object.clone()),
        Lookup::Pending => Some(Value::Null),
        Lookup::Absent | Lookup::KindUnknown | Lookup::Denied | Lookup::NotImpersonated => None,
    };
    let key = live.key();
    let group = key.api_version.split_once('/').map_or("", |(group, _)| group);
    let listed_by_flux = |owner: &Value| {
        let id = format!("{}_{}_{group}_{}", key.namespace, key.name, key.kind);
        let entries = owner.pointer("/status/inventory/entries").and_then(Value::as_array);
        entries.into_iter().flatten().any(|entry| entry.get("id").and_then(Value::as_str) == Some(id.as_str()))
    };
    let listed_by_argo = |owner: &Value| {
        let resources = owner.pointer("/status/resources").and_then(Value::as_array);
        let field = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        // One that has left the source is still listed, to be pruned.
        let is_it = |entry: &Value| {
            field(entry, "kind") == key.kind
                && field(entry, "name") == key.name
                && field(entry, "namespace") == key.namespace
                && entry.get("requiresPruning").and_then(Value::as_bool) != Some(true)
        };
        resources.into_iter().flatten().any(is_it)
    };
    let waits = |owner: Option<ObjectKey>, listed: &dyn Fn(&Value) -> bool| {
        let owner = owner?;
        let object = found(&owner)?;
        (object.is_null() || listed(&object)).then(|| format!("{owner} still applies it: remove it there"))
    };
    waits(kustomization(live), &listed_by_flux).or_else(|| waits(parent(live), &listed_by_argo))
}

/// The object of a component that takes a live one over: what it is now, with
/// what identifies it as ours.
pub(crate) fn adopted_form(rendered: Manifest, live: &Live) -> Manifest {
    let mut object = rendered.into_map();
    let ours = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut spec = live.object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let taken: &[&str] = match release::engine_of(&live.key().kind) {
        Some(Engine::Flux) => &FLUX_OURS,
        Some(Engine::Argo) => &ARGO_OURS,
        None => &[],
    };
    FLUX_DROPPED.into_iter().chain(["suspend"]).for_each(|key| drop(spec.remove(key)));
    for key in taken {
        if let Some(value) = ours.get(*key) {
            spec.insert((*key).to_owned(), value.clone());
        }
    }
    object.insert("spec".into(), spec.into());
    if let Some(annotations) = annotations_of(&mut object) {
        let ours = annotations.remove(ARGO_COMPARE_OPTIONS);
        let ours = ours.as_ref().and_then(Value::as_str).unwrap_or_default();
        if let Some(options) = compare_options_beside(ours, live.annotation(ARGO_COMPARE_OPTIONS)) {
            annotations.insert(ARGO_COMPARE_OPTIONS.into(), options.into());
        }
    }
    Manifest::from_record(object)
}

fn annotations_of(object: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}

/// Whether a live object is written as a whole. An Application that is ours
/// already moves with an operation.
pub(crate) fn needs_rewrite(live: &Live) -> bool {
    live.package().is_none() || release::engine_of(&live.key().kind) == Some(Engine::Flux)
}

/// One write that makes a live object exactly the wanted one, where others have
/// written into it as well. Somebody's suspension is left alone. A merge patch would
/// drop the nulls of its values.
pub(crate) fn rewrite(live: &Live, wanted: &Map<String, Value>) -> Action {
    let mut wanted = wanted.clone();
    let suspended = live.object.get("spec").and_then(|spec| spec.get("suspend")).cloned();
    if let (Some(suspended), Some(spec)) = (suspended, wanted.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.entry("suspend").or_insert(suspended);
    }
    Action::Operate {
        object: live.key().clone(),
        uid: live.uid().to_owned(),
        resource_version: live.resource_version().to_owned(),
        spec: Some(wanted),
        operation: None,
    }
}

fn at<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(object.get(*first)?, |value, key| value.get(key))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
