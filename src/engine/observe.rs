//! What an engine's objects say: one function per engine, each from one
//! snapshot to a [`Release`].
//!
//! Objects are read as they are found in the cluster: every field may be absent,
//! and unknown fields are not looked at.

mod argo;
pub(crate) mod conditions;
mod flux;
mod source;

use serde_json::{Map, Value};

use crate::api::wellknown::{ANNOTATION_ADOPT, FIELD_MANAGER, LABEL_COMPONENT, LABEL_MANAGED_BY, LABEL_PACKAGE};
use crate::fields::at;
use crate::ready::owned;
use crate::ready::release::{Foreign, Release, ReleaseState, Wanted, text};

pub use argo::{ArgoRelease, Need, OPERATION_TOKEN, Proof, argo, has_running_operation, out_of_sync};
pub use flux::{flux, more_values};
pub use source::{ChartArtifact, SourceState, source};

/// Longest text of an engine that a message repeats, in characters.
const MAX_QUOTE: usize = 300;

/// Whether what a live release is rendered from is that of the wanted one and nothing
/// beside: the source of an Application, values and post-renderers of a HelmRelease. A
/// value that somebody added is installed as well. True for every other kind.
pub fn has_exact_source(wanted: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    match text(wanted, &["kind"]) {
        Some("Application") => argo::has_exact_source(wanted, live),
        Some("HelmRelease") => flux::inexact(wanted, live).is_none(),
        _ => true,
    }
}

/// What is wrong with a release outside of any turn, as its engine says now; `None`
/// also while the engine is at work.
pub fn trouble_now(live: &Map<String, Value>) -> Option<String> {
    match text(live, &["kind"]) {
        Some("Application") => argo::trouble_now(live),
        Some("HelmRelease") => flux::trouble_now(live),
        _ => None,
    }
}

/// The object of the release, if it is ours, there to stay and as wanted.
fn written<'a>(live: Option<&'a Map<String, Value>>, wanted: &Wanted<'_>) -> Result<&'a Map<String, Value>, Release> {
    let Some(live) = live else {
        return Err(release(ReleaseState::Absent, format!("{} does not exist", name(wanted.manifest))));
    };
    if let Some(foreign) = foreign(live, wanted) {
        let whose = match &foreign.owner {
            Some((package, component)) => format!("belongs to component {component} of package {package}"),
            None => "is not managed by Windlass".to_owned(),
        };
        return Err(release(ReleaseState::Foreign(foreign), format!("{} {whose}", name(live))));
    }
    if live.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp")).is_some() {
        let reason = conditions::find(live, "Ready").map(|ready| ready.describe("Ready"));
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(release(ReleaseState::Deleting, format!("{} is being deleted{reason}", name(live))));
    }
    if let Some(difference) = owned::difference(wanted.manifest, live, wanted.left_out) {
        return Err(release(ReleaseState::Outdated, format!("{}: {difference}", name(live))));
    }
    Ok(live)
}

/// All three labels must be there: objects rendered for Git carry two of them.
fn foreign(live: &Map<String, Value>, wanted: &Wanted<'_>) -> Option<Foreign> {
    let label = |key| text(live, &["metadata", "labels", key]);
    let owner = label(LABEL_PACKAGE).zip(label(LABEL_COMPONENT));
    let managed = label(LABEL_MANAGED_BY) == Some(FIELD_MANAGER);
    if managed && owner == Some(wanted.owner()) {
        return None;
    }
    let owner = owner.filter(|_| managed).map(|(package, component)| (package.to_owned(), component.to_owned()));
    let adopt = text(live, &["metadata", "annotations", ANNOTATION_ADOPT]).map(str::to_owned);
    Some(Foreign { owner, adopt })
}

fn release(state: ReleaseState, message: String) -> Release {
    Release { state, attempts: 0, trouble: None, is_looked_at_again: false, verdict_is_due: false, message }
}

/// Kind and name, as messages name an object.
fn name(object: &Map<String, Value>) -> String {
    format!("{}/{}", text(object, &["kind"]).unwrap_or("object"), text(object, &["metadata", "name"]).unwrap_or(""))
}

/// One line of bounded length: engines repeat whole error chains.
fn quote(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A version without leading `v` and without build metadata.
pub(crate) fn bare_version(version: &str) -> &str {
    let version = version.strip_prefix('v').unwrap_or(version);
    version.split_once('+').map_or(version, |(release, _)| release)
}

fn integer(object: &Map<String, Value>, path: &[&str]) -> Option<i64> {
    at(object, path)?.as_i64()
}
