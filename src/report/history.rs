//! The revisions of a Package.

use jiff::Timestamp;

use super::age;
use super::table::table;
use crate::api::{HookOutcome, Package, PackageRevision, PackageRevisionStatus};

/// One line for each revision, the newest last; `*` marks the one that runs.
/// `wide` adds the engine and the commit.
pub fn write(package: &Package, revisions: &[PackageRevision], wide: bool, now: Timestamp) -> String {
    let runs = package.status.as_ref().and_then(|status| status.revision);
    let mut revisions: Vec<&PackageRevision> = revisions.iter().collect();
    revisions.sort_by_key(|revision| revision.spec.number);
    let headings =
        ["REVISION", "VERSION", "FROM", "PHASE", "ROLLBACK", "MOVED", "HOOKS", "AGE", "REASON", "ENGINE", "COMMIT"];
    let shown = if wide { headings.len() } else { headings.len() - 2 };
    let row = |revision: &&PackageRevision| row(revision, runs, now).into_iter().take(shown).collect();
    let rows: Vec<Vec<String>> = revisions.iter().map(row).collect();
    table(headings.get(..shown).unwrap_or_default(), &rows)
}

fn row(revision: &PackageRevision, runs: Option<u64>, now: Timestamp) -> Vec<String> {
    let (spec, status) = (&revision.spec, revision.status.clone().unwrap_or_default());
    let mark = if Some(spec.number) == runs { " *" } else { "" };
    let safe = match (spec.rollback.safe, spec.rollback.to.as_str()) {
        (false, _) => "unsafe".to_owned(),
        (true, "") => "safe".to_owned(),
        (true, range) => format!("safe to {range}"),
    };
    vec![
        format!("{}{mark}", spec.number),
        spec.version.clone(),
        if spec.from_version.is_empty() { "-".to_owned() } else { spec.from_version.clone() },
        phase(&status),
        safe,
        moved(&status),
        hooks(&status),
        age::since(revision.metadata.creation_timestamp.as_ref(), now),
        status.reason.map_or_else(|| "-".to_owned(), |reason| reason.to_string()),
        spec.engine.as_str().to_owned(),
        if spec.commit.is_empty() { "-".to_owned() } else { spec.commit.clone() },
    ]
}

fn phase(status: &PackageRevisionStatus) -> String {
    match &status.rollback {
        Some(rollback) => format!("{:?} (to {})", status.phase, rollback.to),
        None => format!("{:?}", status.phase),
    }
}

fn moved(status: &PackageRevisionStatus) -> String {
    let names: Vec<&str> = status.components.iter().filter(|c| c.moved).map(|c| c.name.as_str()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

fn hooks(status: &PackageRevisionStatus) -> String {
    let outcome = |outcome: HookOutcome| match outcome {
        HookOutcome::Running => "running",
        HookOutcome::Succeeded => "succeeded",
        HookOutcome::Failed => "failed",
        HookOutcome::ToRepeat => "failed, to run again",
    };
    let hooks: Vec<String> =
        status.hooks.iter().map(|hook| format!("{}:{}", hook.name, outcome(hook.outcome))).collect();
    if hooks.is_empty() { "-".to_owned() } else { hooks.join(",") }
}
