//! The expression by which a HelmRelease waits for another one without a
//! controller: it proves that the other runs *this* spec, not the one before.

use std::fmt::Write as _;

use crate::api::wellknown::ANNOTATION_UPSTREAM;
use crate::package::digest::ComponentDigest;
use crate::package::version::Version;

/// What a dependency must have become.
#[derive(Clone, Copy, Debug)]
pub struct DependencyState<'a> {
    /// Its digest.
    pub digest: &'a ComponentDigest,
    /// Fingerprint of everything above it; `None` if nothing is.
    pub upstream: Option<&'a str>,
    /// What its Helm history must show.
    pub chart: ChartEvidence<'a>,
}

/// The chart version that a release's history must show.
#[derive(Clone, Copy, Debug)]
pub enum ChartEvidence<'a> {
    /// This one, with or without a leading `v`: source-controller takes `1.2.3`
    /// for a chart that calls itself `v1.2.3`, and the history has the chart's word.
    Exact(&'a str),
    /// This one, also with the digest of the artifact that helm-controller puts
    /// in the place of the build metadata of charts of an OCIRepository.
    Oci(&'a Version),
    /// None: nobody has said which version it is.
    Unknown,
}

/// The CEL expression over `dep`. True for a release that runs the wanted
/// state; false, never an error, while it runs an older one, is at work,
/// suspended or has no status yet.
///
/// The spec of a dependency whose own digest stays the same still changes when
/// something above it moves (its own expressions name the new digests), so the
/// fingerprint of what is above it belongs to the wanted state as well: without
/// it a release could go ahead of one that is two edges up.
pub fn ready_expr(wanted: &DependencyState<'_>) -> String {
    let mut expr =
        format!("dep.metadata.?annotations[?'windlass.dev/digest'].orValue('') == {}", literal(wanted.digest.as_str()));
    if let Some(upstream) = wanted.upstream {
        let _ = write!(
            expr,
            " && dep.metadata.?annotations[?'{ANNOTATION_UPSTREAM}'].orValue('') == {}",
            literal(upstream)
        );
    }
    expr.push_str(
        " && !dep.spec.?suspend.orValue(false) \
         && dep.?status.?observedGeneration.orValue(-1) == dep.metadata.generation \
         && dep.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True') \
         && !dep.?status.?conditions.orValue([]).exists(c, c.type in ['Reconciling', 'Stalled'] && c.status == 'True') \
         && dep.?status.?history[?0].?status.orValue('') == 'deployed'",
    );
    const CHART_VERSION: &str = "dep.?status.?history[?0].?chartVersion.orValue('')";
    match wanted.chart {
        ChartEvidence::Exact(version) => {
            let _ = write!(expr, " && {CHART_VERSION} in {}", spellings(version));
        }
        ChartEvidence::Oci(version) => {
            let semver = version.semver();
            let base = semver::Version { build: semver::BuildMetadata::EMPTY, ..semver.clone() };
            let (exact, prefix) = (spellings(version.as_written()), literal(&format!("{base}+")));
            let _ = write!(expr, " && ({CHART_VERSION} in {exact} || {CHART_VERSION}.startsWith({prefix}))");
        }
        ChartEvidence::Unknown => {}
    }
    expr
}

/// A CEL list of a version without and with a leading `v`.
fn spellings(version: &str) -> String {
    let bare = version.strip_prefix('v').unwrap_or(version);
    format!("[{}, {}]", literal(bare), literal(&format!("v{bare}")))
}

/// A CEL string literal that holds exactly `text`.
fn literal(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}
