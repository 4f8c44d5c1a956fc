//! A chart's source (`source.toolkit.fluxcd.io/v1`): HelmChart or OCIRepository.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::conditions::find;
use super::{bare_version, integer, name, quote};
use crate::api::wellknown::{FIELD_MANAGER, LABEL_MANAGED_BY};
use crate::ready::owned;
use crate::ready::release::text;

/// Why a HelmChart is not ready while what it is taken from is not there yet: that one
/// says for itself what is wrong with it.
const AWAITS_SOURCE: [&str; 2] = ["NoSourceArtifact", "SourceUnavailable"];

/// Where a chart's source stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// There is no object of that name.
    Absent,
    /// There is one, and it is not ours.
    Foreign {
        /// What was found.
        message: String,
    },
    /// It is ours, and not as it was written, or it is being deleted.
    Outdated {
        /// What was found.
        message: String,
    },
    /// Flux has not answered for it yet.
    Progressing {
        /// What was found.
        message: String,
    },
    /// Flux cannot get the chart; it tries again.
    Unavailable {
        /// What Flux says.
        message: String,
    },
    /// Flux has a chart, and it is not the one that is wanted.
    Mismatch {
        /// What was found.
        message: String,
    },
    /// The chart is there.
    Ready {
        /// Revision of the artifact: a version, for OCI `<tag>@<digest>`.
        revision: String,
        /// Digest of the artifact.
        digest: String,
        /// Revision of the source that the chart was built from, for charts at a
        /// path (`main@sha1:…`).
        built_from: Option<String>,
    },
}

/// What a chart must be.
#[derive(Clone, Copy, Debug)]
pub struct ChartArtifact<'a> {
    /// Its version; empty if unknown.
    pub version: &'a str,
    /// For OCI the digest of the manifest, otherwise of the archive.
    pub digest: Option<&'a str>,
}

/// What a source says. `chart` is what must be in it, for one that holds a
/// single chart.
pub fn source(
    live: Option<&Map<String, Value>>,
    wanted: &Map<String, Value>,
    chart: Option<ChartArtifact<'_>>,
) -> SourceState {
    let Some(live) = live else {
        return SourceState::Absent;
    };
    let name = name(live);
    if text(live, &["metadata", "labels", LABEL_MANAGED_BY]) != Some(FIELD_MANAGER) {
        return SourceState::Foreign { message: format!("{name} is not managed by Windlass") };
    }
    if live.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp")).is_some() {
        return SourceState::Outdated { message: format!("{name} is being deleted") };
    }
    if let Some(difference) = owned::difference(wanted, live, &[]) {
        return SourceState::Outdated { message: format!("{name}: {difference}") };
    }
    answer(live, &name).unwrap_or_else(|| artifact(live, &name, chart))
}

/// Anything but a ready answer about the present spec.
fn answer(live: &Map<String, Value>, name: &str) -> Option<SourceState> {
    if live.get("spec").and_then(|spec| spec.get("suspend")).and_then(Value::as_bool) == Some(true) {
        return Some(SourceState::Unavailable { message: format!("{name} is suspended") });
    }
    let generation = integer(live, &["metadata", "generation"]);
    let ready = find(live, "Ready").filter(|ready| ready.observed_generation == generation);
    let told = ready.map_or_else(|| "Flux has not answered yet".to_owned(), |ready| ready.describe("Ready"));
    let message = format!("{name}: {told}");
    match ready {
        Some(ready) if ready.is_false() && AWAITS_SOURCE.contains(&ready.reason) => {
            Some(SourceState::Progressing { message })
        }
        Some(ready) if ready.is_false() => Some(SourceState::Unavailable { message }),
        Some(ready) if ready.is_true() && integer(live, &["status", "observedGeneration"]) == generation => None,
        Some(_) | None => Some(SourceState::Progressing { message }),
    }
}

fn artifact(live: &Map<String, Value>, name: &str, chart: Option<ChartArtifact<'_>>) -> SourceState {
    let field = |key| text(live, &["status", "artifact", key]);
    let (Some(revision), Some(found_digest)) = (field("revision"), field("digest")) else {
        return SourceState::Progressing { message: format!("{name} has no artifact yet") };
    };
    match chart.and_then(|chart| mismatch(revision, found_digest, chart)) {
        Some(difference) => SourceState::Mismatch { message: format!("{name}: {difference}") },
        None => SourceState::Ready {
            revision: revision.to_owned(),
            digest: found_digest.to_owned(),
            built_from: text(live, &["status", "observedSourceArtifactRevision"]).map(str::to_owned),
        },
    }
}

fn mismatch(revision: &str, digest: &str, chart: ChartArtifact<'_>) -> Option<String> {
    let (tag, manifest) = split(revision);
    let pinned = manifest.unwrap_or(digest);
    let differs =
        |what: &str, found: &str, wanted: &str| format!("the chart's {what} is {}, not {wanted}", quote(found));
    let other_version =
        |tag: &&str| !chart.version.is_empty() && bare_version(&tag.replace('_', "+")) != bare_version(chart.version);
    let version = tag.filter(other_version).map(|tag| differs("version", tag, chart.version));
    version.or_else(|| chart.digest.filter(|wanted| *wanted != pinned).map(|wanted| differs("digest", pinned, wanted)))
}

/// Tag or version, and digest, of an artifact's revision: `1.2.3`,
/// `1.2.3@sha256:…` or `sha256:…`.
fn split(revision: &str) -> (Option<&str>, Option<&str>) {
    match revision.split_once('@') {
        Some((tag, digest)) => (Some(tag), Some(digest)),
        None if revision.starts_with("sha256:") => (None, Some(revision)),
        None => (Some(revision), None),
    }
}
