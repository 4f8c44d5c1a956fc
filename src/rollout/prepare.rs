//! Before the first hook or move every chart is fetched and checked: a typo in
//! the third component must not leave a half-upgraded package.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::decision::{Action, Precondition};
use super::live::Live;
use super::release;
use super::work::Work;
use crate::api::wellknown::FLUX_RECONCILE;
use crate::api::{RecordedComponent, RevisionPhase};
use crate::engine::{Manifest, ObjectKey};

/// How often a repository that lacks a chart is asked to look again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Whether the charts are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// All of them, with the right version.
    Ready,
    /// The message names one that is awaited.
    Waiting { message: String, not_found: bool },
}

/// Applies the sources of everything that will move or run, and looks whether
/// their artifacts are what is wanted. Argo CD fetches by itself.
pub(crate) fn charts(work: &mut Work<'_>) -> Prepared {
    match work.status.phase {
        RevisionPhase::Pending | RevisionPhase::Preparing => {}
        RevisionPhase::Applying
        | RevisionPhase::Succeeded
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RolledBack
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => return Prepared::Ready,
    }
    let latest = work.latest;
    let mut seen: BTreeSet<ObjectKey> = BTreeSet::new();
    let mut waiting: Option<(String, bool)> = None;
    for component in latest.spec.components.iter().filter(|c| !c.manifests.is_empty()) {
        if !component.hook && work.runs_wanted(component) {
            continue;
        }
        for manifest in &component.manifests {
            let manifest = Manifest::from_record(manifest.clone());
            let key = manifest.key();
            if !release::is_source_kind(&key.kind) || !seen.insert(key) {
                continue;
            }
            if let Some((message, not_found)) = source(work, component, manifest) {
                let (first, before) = waiting.unwrap_or((message, false));
                waiting = Some((first, before || not_found));
            }
        }
    }
    match waiting {
        None => Prepared::Ready,
        Some((message, not_found)) => Prepared::Waiting { message, not_found },
    }
}

/// What is awaited of one source, and whether what it points at is not there.
fn source(work: &mut Work<'_>, component: &RecordedComponent, manifest: Manifest) -> Option<(String, bool)> {
    let key = manifest.key();
    let Some(live) = work.snapshot.sources.iter().find(|source| source.key() == key) else {
        work.actions.push(Action::Apply { object: manifest.into_map(), precondition: Precondition::Any });
        return Some((format!("component {}: {} is being created", component.name, key), false));
    };
    let status = live.object.get("status");
    let current = status.and_then(|s| s.get("observedGeneration")) == generation(live);
    let ready = condition(live, "Ready");
    let is = |wanted: &str| ready.is_some_and(|c| c.get("status").and_then(Value::as_str) == Some(wanted));
    let told = ready.and_then(|c| c.get("message")).and_then(Value::as_str).unwrap_or("no status yet");
    if current && is("True") {
        return wrong_version(component, &key, status);
    }
    let failed = current && is("False") || condition(live, "FetchFailed").is_some();
    if failed && key.kind == "HelmChart" {
        ask_repository(work, &manifest);
    }
    Some((format!("component {}: {key}: {told}", component.name), failed))
}

/// The artifact of a chart must show the recorded version (a leading v does not
/// count; helm-controller's source adds nothing to it).
fn wrong_version(component: &RecordedComponent, key: &ObjectKey, status: Option<&Value>) -> Option<(String, bool)> {
    if key.kind != "HelmChart" || component.chart_version.is_empty() {
        return None;
    }
    let shown = status?.get("artifact").and_then(|a| a.get("revision")).and_then(Value::as_str).unwrap_or("nothing");
    let bare = |text: &str| text.strip_prefix('v').unwrap_or(text).to_owned();
    let right = bare(shown) == bare(&component.chart_version);
    (!right).then(|| {
        let wanted = &component.chart_version;
        (format!("component {}: {key} shows chart version {shown}, {wanted} is wanted", component.name), false)
    })
}

/// A version published after the repository was last fetched is not found until
/// its interval has passed, unless it is asked to look again.
fn ask_repository(work: &mut Work<'_>, chart: &Manifest) {
    let name = chart.get(&["spec", "sourceRef", "name"]).and_then(Value::as_str);
    let is_repository = |source: &&Live| source.key().kind == "HelmRepository" && Some(source.name()) == name;
    let Some(repository) = work.snapshot.sources.iter().find(is_repository) else { return };
    let asked = repository.annotation(FLUX_RECONCILE).and_then(|at| at.parse::<Timestamp>().ok());
    let elapsed = asked.map(|at| Duration::try_from(work.now.time.duration_since(at)).unwrap_or_default());
    if let Some(left) = elapsed.and_then(|elapsed| ASK_AGAIN.checked_sub(elapsed)).filter(|left| !left.is_zero()) {
        work.look_again(left);
        return;
    }
    work.look_again(ASK_AGAIN);
    let patch = json!({"metadata": {"annotations": {FLUX_RECONCILE: work.now.time.to_string()}}});
    let (object, uid) = (repository.key(), repository.uid().to_owned());
    let action = Action::Patch { object, uid, resource_version: None, patch };
    if !work.actions.contains(&action) {
        work.actions.push(action);
    }
}

fn generation(live: &Live) -> Option<&Value> {
    live.object.get("metadata")?.get("generation")
}

/// A condition that is not False.
fn condition<'a>(live: &'a Live, type_: &str) -> Option<&'a Map<String, Value>> {
    let conditions = live.object.get("status")?.get("conditions")?.as_array()?;
    conditions
        .iter()
        .filter_map(Value::as_object)
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(type_))
}
