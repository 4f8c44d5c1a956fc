//! The states of a release.

use serde_json::{Map, Value};

use crate::api::wellknown::{LABEL_COMPONENT, LABEL_PACKAGE};
use crate::api::{Claim, RecordedComponent};
use crate::fields::at;

/// What one look at an engine's object says about a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Where it stands.
    pub state: ReleaseState,
    /// Attempts at the wanted spec that have failed.
    pub attempts: u32,
    /// What goes wrong while it stands there.
    pub trouble: Option<Trouble>,
    /// Whether the engine merely looks again at what it has called ready, and has
    /// found nothing against it yet.
    pub is_looked_at_again: bool,
    /// Whether the engine is in the middle of an action of bounded length, at whose end it
    /// will say what it lacks.
    pub verdict_is_due: bool,
    /// What was found, naming the object; one line, no durations.
    pub message: String,
}

/// Where a release stands with respect to exactly one wanted spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseState {
    /// There is no object of that name.
    Absent,
    /// There is one, and it is not ours.
    Foreign(Foreign),
    /// It is being deleted.
    Deleting,
    /// It is ours, and its spec is not the wanted one: not written yet, or edited.
    Outdated,
    /// Somebody holds the engine back. The wanted spec is written.
    Suspended,
    /// The wanted spec is written; the engine has not begun with it.
    Queued,
    /// The engine is at work.
    Progressing,
    /// An attempt has failed.
    Failed(Failure),
    /// The release runs the wanted spec and is ready.
    Ready,
}

/// Whose an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Package and component that its labels name, if it is another's of ours.
    pub owner: Option<(String, String)>,
    /// Value of its `windlass.dev/adopt` annotation.
    pub adopt: Option<String>,
}

/// What goes wrong without being the end of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The engine lacks the chart, or cannot render it. On Flux that is so for a
    /// moment at the start of many moves.
    NoSource,
    /// Argo CD only: it has done its part, and an object says that it failed.
    /// A hook has failed with that; anything else when it is so at the timeout.
    Degraded,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt: the engine's own (Flux), or one that has to be asked
    /// for (Argo CD).
    Attempt,
    /// Nothing: the engine has given up until the spec changes.
    GivenUp,
}

/// What a release is looked at for.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The release's object as Windlass writes it.
    pub manifest: &'a Map<String, Value>,
    /// Identity of the release.
    pub claim: &'a Claim,
    /// Version of the chart; empty if unknown.
    pub chart_version: &'a str,
    /// Digest that the chart's artifact is pinned to.
    pub chart_digest: Option<&'a str>,
    /// Owned fields that are not compared, as paths from the object's root.
    pub left_out: &'a [&'a [&'a str]],
}

impl<'a> Wanted<'a> {
    /// What a recorded component wants. `None` for one without manifests.
    pub fn of(component: &'a RecordedComponent) -> Option<Self> {
        Some(Self {
            manifest: component.manifests.last()?,
            claim: &component.release,
            chart_version: &component.chart_version,
            chart_digest: component.manifests.iter().find_map(pinned_digest),
            left_out: &[],
        })
    }

    /// The same release written as another manifest: with settings overlaid, or
    /// as a rollback writes it.
    #[must_use]
    pub fn written_as(mut self, manifest: &'a Map<String, Value>) -> Self {
        self.manifest = manifest;
        self
    }

    /// Leaves owned fields out of the comparison.
    #[must_use]
    pub fn without(mut self, left_out: &'a [&'a [&'a str]]) -> Self {
        self.left_out = left_out;
        self
    }

    /// Package and component, as the manifest's labels name them.
    pub(crate) fn owner(&self) -> (&'a str, &'a str) {
        let label = |key| text(self.manifest, &["metadata", "labels", key]).unwrap_or("");
        (label(LABEL_PACKAGE), label(LABEL_COMPONENT))
    }
}

fn pinned_digest(manifest: &Map<String, Value>) -> Option<&str> {
    match text(manifest, &["kind"])? {
        "OCIRepository" => text(manifest, &["spec", "ref", "digest"]),
        _ => None,
    }
}

/// The text at a path of keys.
pub(crate) fn text<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a str> {
    at(object, path)?.as_str()
}
