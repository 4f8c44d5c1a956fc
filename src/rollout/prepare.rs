//! Before the first hook or move every chart is fetched and checked: a typo in
//! the third component must not leave a half-upgraded package.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::decision::{Action, Precondition};
use super::live::{Live, Place, key_of};
use super::work::Work;
use super::{outcome, release};
use crate::api::wellknown::FLUX_RECONCILE;
use crate::api::{Reason, RecordedComponent, RevisionPhase};
use crate::engine::observe::{self, ChartArtifact, SourceState};
use crate::ready::release::text;

/// How often a repository that lacks a chart is asked to look again.
const ASK_AGAIN: Duration = Duration::from_secs(60);

/// Whether the charts are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    /// All of them, with the right version and digest.
    Ready,
    /// The message names one that is awaited; the reason is the worst of all.
    Waiting { reason: Reason, message: String },
}

/// Applies the sources of everything that will move or run, and looks whether
/// their artifacts are what is wanted. Argo CD fetches by itself.
pub(crate) fn charts(work: &mut Work<'_>) -> Prepared {
    match work.status.phase {
        RevisionPhase::Pending | RevisionPhase::Preparing | RevisionPhase::Superseded => {}
        RevisionPhase::Applying
        | RevisionPhase::Succeeded
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RolledBack
        | RevisionPhase::RollbackFailed => return Prepared::Ready,
    }
    let latest = work.latest;
    let mut seen: BTreeSet<Place<'_>> = BTreeSet::new();
    let mut awaited = Vec::new();
    for component in latest.spec.components.iter().filter(|c| !c.manifests.is_empty()) {
        if !component.hook && work.runs_wanted(component) {
            continue;
        }
        for manifest in sources_of(component) {
            if seen.insert(Place::of(manifest)) {
                awaited.extend(source(work, component, manifest));
            }
        }
    }
    let worst = awaited.iter().position(|awaited| awaited.reason != Reason::Preparing).unwrap_or(0);
    match awaited.into_iter().nth(worst) {
        None => Prepared::Ready,
        Some(Awaited { reason, message }) => Prepared::Waiting { reason, message },
    }
}

/// The sources among the manifests of a component.
pub(crate) fn sources_of(component: &RecordedComponent) -> impl Iterator<Item = &Map<String, Value>> {
    component.manifests.iter().filter(|manifest| release::is_source_kind(Place::of(manifest).kind()))
}

/// A source that is not there as wanted.
struct Awaited {
    reason: Reason,
    message: String,
}

fn source(work: &mut Work<'_>, component: &RecordedComponent, manifest: &Map<String, Value>) -> Option<Awaited> {
    let key = key_of(manifest);
    let live = work.source(Place::from(&key));
    let is_chart = matches!(key.kind.as_str(), "HelmChart" | "OCIRepository");
    let chart = ChartArtifact { version: &component.chart_version, digest: component.chart_digest() };
    let state = observe::source(live.map(|live| live.object.as_ref()), manifest, is_chart.then_some(chart));
    let (reason, message) = match state {
        SourceState::Ready { .. } => return None,
        SourceState::Absent => {
            apply(work, manifest);
            (Reason::Preparing, format!("{key} is being created"))
        }
        SourceState::Outdated { message } => {
            if !live.is_some_and(Live::is_deleting) {
                apply(work, manifest);
            }
            (Reason::Preparing, message)
        }
        SourceState::Foreign { message } => (Reason::Conflict, message),
        SourceState::Progressing { message } => (Reason::Preparing, message),
        SourceState::Mismatch { message } => (Reason::SourceNotFound, message),
        SourceState::Unavailable { message } => {
            let is_looked_for = key.kind == "HelmChart" && ask_repository(work, manifest, live);
            // Once it was missed it stays so, however often it is looked for again.
            match is_looked_for && outcome::told(work, Reason::SourceNotFound).is_none() {
                true => (Reason::Preparing, format!("its repository is asked for the newest charts ({message})")),
                false => (Reason::SourceNotFound, message),
            }
        }
    };
    Some(Awaited { reason, message: format!("component {}: {message}", component.name) })
}

fn apply(work: &mut Work<'_>, manifest: &Map<String, Value>) {
    work.actions.push(Action::Apply { object: manifest.clone(), precondition: Precondition::Any });
}

/// A version published after the repository was last fetched is not found until
/// its interval has passed, unless it is asked to look again. Whether it is being looked
/// for still: the repository has not answered, or the chart has not been looked for in
/// what it answered.
fn ask_repository(work: &mut Work<'_>, chart: &Map<String, Value>, live: Option<&Live>) -> bool {
    let name = text(chart, &["spec", "sourceRef", "name"]);
    let is_repository = |source: &&Live| source.key().kind == "HelmRepository" && Some(source.name()) == name;
    let Some(repository) = work.snapshot.sources.iter().find(is_repository) else { return false };
    let asked = repository.annotation(FLUX_RECONCILE);
    let at = asked.and_then(|at| at.parse::<Timestamp>().ok());
    let elapsed = at.map(|at| Duration::try_from(work.now.time.duration_since(at)).unwrap_or_default());
    if let Some(left) = elapsed.and_then(|elapsed| ASK_AGAIN.checked_sub(elapsed)).filter(|left| !left.is_zero()) {
        work.look_again(left);
        let answered = text(&repository.object, &["status", "lastHandledReconcileAt"]) == asked;
        let index = text(&repository.object, &["status", "artifact", "revision"]);
        let looked_in = live.and_then(|live| text(&live.object, &["status", "observedSourceArtifactRevision"]));
        return !answered || looked_in.is_some_and(|looked_in| index.is_some_and(|index| index != looked_in));
    }
    work.look_again(ASK_AGAIN);
    let patch = json!({"metadata": {"annotations": {FLUX_RECONCILE: work.now.time.to_string()}}});
    let (object, uid) = (repository.key().clone(), repository.uid().to_owned());
    let action = Action::Patch { object, uid, resource_version: None, patch };
    if !work.actions.contains(&action) {
        work.actions.push(action);
    }
    true
}
