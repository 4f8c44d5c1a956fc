//! Where Packages stand.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::table::table;
use super::{SEE_CONTROLLER, age, full_name, hook_state, is_current, is_looked_at, ready, unseen};
use crate::api::{
    ComponentState, ComponentStatus, Package, PackageRevision, PackageStatus, Reason, RecordedComponent, RolloutStatus,
};

/// Which columns a list has beside the usual ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns {
    /// The namespace.
    pub namespace: bool,
    /// Wanted version, revision and engine.
    pub wide: bool,
}

/// One line for each Package, as `kubectl get wpkg` shows it, with the progress
/// of its components.
pub fn list(packages: &[Package], columns: Columns, now: Timestamp) -> String {
    let headings =
        ["NAMESPACE", "NAME", "VERSION", "READY", "COMPONENTS", "STATUS", "AGE", "WANTED", "REVISION", "ENGINE"];
    let shown = usize::from(!columns.namespace)..headings.len() - if columns.wide { 0 } else { 3 };
    let row = |package: &Package| -> Vec<String> {
        row(package, now).get(shown.clone()).map(<[String]>::to_vec).unwrap_or_default()
    };
    let rows: Vec<Vec<String>> = packages.iter().map(row).collect();
    table(headings.get(shown.clone()).unwrap_or_default(), &rows)
}

fn row(package: &Package, now: Timestamp) -> Vec<String> {
    let status = package.status.clone().unwrap_or_default();
    let summary = match status.summary.clone() {
        Some(summary) if is_current(package) => summary,
        Some(_) | None => unseen(package).to_owned(),
    };
    vec![
        package.metadata.namespace.clone().unwrap_or_default(),
        package.metadata.name.clone().unwrap_or_default(),
        status.version.clone().unwrap_or_else(|| "-".to_owned()),
        ready(package).map_or_else(|| "-".to_owned(), |ready| ready.status.clone()),
        progress(package, &status),
        summary,
        age::since(package.metadata.creation_timestamp.as_ref(), now),
        package.spec.version.clone(),
        status.revision.map_or_else(|| "-".to_owned(), |revision| revision.to_string()),
        status.engine.map_or_else(|| "-".to_owned(), |engine| engine.as_str().to_owned()),
    ]
}

/// `3/5`: verified, of all; `3/5 of 2.0.0` while another version runs.
fn progress(package: &Package, status: &PackageStatus) -> String {
    match (status.components.len(), towards(package, status)) {
        (0, _) => "-".to_owned(),
        (all, None) => format!("{}/{all}", done(status)),
        (all, Some(target)) => format!("{}/{all} of {target}", done(status)),
    }
}

fn done(status: &PackageStatus) -> usize {
    let is_done = |component: &&ComponentStatus| {
        matches!(component.state, ComponentState::Verified | ComponentState::Restored | ComponentState::Removed)
    };
    status.components.iter().filter(is_done).count()
}

/// What the components are on the way to, while something else runs: another version, or
/// another revision of the same.
fn towards(package: &Package, status: &PackageStatus) -> Option<String> {
    let (runs, attempted) = (status.revision?, status.attempted.as_ref()?);
    let goes_back = matches!(
        ready(package).and_then(|ready| Reason::parse(&ready.reason)),
        Some(
            Reason::RollingBack
                | Reason::RollbackFailed
                | Reason::UpgradeRolledBack
                | Reason::RolledBack
                | Reason::Deleting
        )
    );
    if goes_back || attempted.revision == runs {
        return None;
    }
    let is_other = status.version.as_ref() != Some(&attempted.version);
    Some(if is_other { attempted.version.clone() } else { format!("revision {}", attempted.revision) })
}

/// Everything the status of one Package says, with the hooks of the revision that it is on the
/// way to.
pub fn detail(package: &Package, under_way: Option<&PackageRevision>, now: Timestamp) -> String {
    let status = package.status.clone().unwrap_or_default();
    let mut text = format!("Package:   {}\n", full_name(package));
    for (name, value) in headers(package, &status) {
        let _ = writeln!(text, "{:<10} {value}", format!("{name}:"));
    }
    if !is_looked_at(package) {
        let age = age::since(package.metadata.creation_timestamp.as_ref(), now);
        let _ = writeln!(text, "\nThe controller has not looked at it yet, {age} after it was made.\n{SEE_CONTROLLER}");
    } else if !is_current(package) {
        text.push_str(
            "\nThe controller has not looked at the present spec yet; what follows is about the one before.\n",
        );
    }
    if let Some(ready) = ready(package) {
        let since = age::since(Some(&ready.last_transition_time), now);
        let _ = writeln!(text, "\nReady is {} ({}) for {since}:\n  {}", ready.status, ready.reason, ready.message);
    }
    let hooks = under_way.map(|revision| hook_rows(revision, now)).unwrap_or_default();
    if !hooks.is_empty() {
        text.push('\n');
        text.push_str(&table(&["HOOK", "STATE", "FROM", "TO", "SINCE"], &hooks));
    }
    if !status.components.is_empty() {
        let told = ready(package).map(|ready| ready.message.as_str()).unwrap_or_default();
        let rows: Vec<Vec<String>> =
            status.components.iter().map(|component| component_row(component, told, now)).collect();
        text.push('\n');
        text.push_str(&on_the_way(package, &status));
        text.push_str(&table(&["COMPONENT", "STATE", "CHART", "SINCE", "MESSAGE"], &rows));
    }
    if !status.rollouts.is_empty() {
        let rows: Vec<Vec<String>> = status.rollouts.iter().map(rollout_row).collect();
        text.push('\n');
        text.push_str(&table(&["DAEMONSET", "PHASE", "BUDGET", "UPDATED", "READY", "NODE", "MESSAGE"], &rows));
    }
    if !status.blocked_by.is_empty() {
        text.push_str("\nBlocked by:\n");
        for blocker in &status.blocked_by {
            let place = if blocker.namespace.is_empty() { String::new() } else { format!("{}/", blocker.namespace) };
            let _ = writeln!(text, "  {} {place}{} ({})", blocker.kind, blocker.name, blocker.reason);
        }
    }
    text
}

fn headers(package: &Package, status: &PackageStatus) -> Vec<(&'static str, String)> {
    let wanted = package.spec.version.clone();
    let runs = match (&status.version, status.revision) {
        (Some(version), Some(revision)) => format!("{version} (revision {revision})"),
        (Some(version), None) => version.clone(),
        (None, _) => "nothing yet".to_owned(),
    };
    let mut headers = vec![("Wanted", wanted), ("Runs", runs)];
    if let Some(attempted) = status.attempted.as_ref().filter(|attempted| Some(attempted.revision) != status.revision) {
        headers.push(("Attempted", format!("{} (revision {})", attempted.version, attempted.revision)));
    }
    headers.extend(status.engine.map(|engine| ("Engine", engine.as_str().to_owned())));
    headers
}

/// Which version the table of components speaks of, and what runs where one waits.
fn on_the_way(package: &Package, status: &PackageStatus) -> String {
    let (Some(target), Some(version)) = (towards(package, status), &status.version) else { return String::new() };
    let (done, all) = (done(status), status.components.len());
    format!("{done} of {all} components run {target}; what waits for its turn runs what {version} has installed:\n")
}

/// The hooks of a revision that have begun, or are to run before its first component.
fn hook_rows(revision: &PackageRevision, now: Timestamp) -> Vec<Vec<String>> {
    let (spec, status) = (&revision.spec, revision.status.clone().unwrap_or_default());
    let has_moved = status.components.iter().any(|component| component.moved);
    let runs_hooks = !spec.from_version.is_empty() && spec.from_version != spec.version && !has_moved;
    let row = |hook: &RecordedComponent| {
        let record = status.hooks.iter().find(|record| record.name == hook.name);
        let (state, since) = match record {
            Some(record) => (hook_state(record.outcome), record.finished_at.as_ref().or(record.started_at.as_ref())),
            None if runs_hooks => ("Waiting", None),
            None => return None,
        };
        let since = since.map_or_else(|| "-".to_owned(), |since| age::since(Some(since), now));
        Some(vec![hook.name.clone(), state.to_owned(), spec.from_version.clone(), spec.version.clone(), since])
    };
    spec.components.iter().filter(|component| component.hook).filter_map(row).collect()
}

/// `told` is the message of the condition, which says of one component what its row would.
fn component_row(component: &ComponentStatus, told: &str, now: Timestamp) -> Vec<String> {
    let message = component.message.clone().unwrap_or_default();
    let is_told = !message.is_empty() && told.contains(&message);
    vec![
        component.name.clone(),
        format!("{:?}", component.state),
        component.version.clone().unwrap_or_else(|| "-".to_owned()),
        age::since(component.since.as_ref(), now),
        if is_told { "see above".to_owned() } else { message },
    ]
}

fn rollout_row(rollout: &RolloutStatus) -> Vec<String> {
    vec![
        rollout.daemon_set.clone(),
        format!("{:?}", rollout.phase).to_lowercase(),
        rollout.budget.clone().unwrap_or_else(|| "-".to_owned()),
        format!("{}/{}", rollout.updated, rollout.desired),
        format!("{}/{}", rollout.ready, rollout.desired),
        rollout.node.clone().unwrap_or_else(|| "-".to_owned()),
        rollout.message.clone().unwrap_or_default(),
    ]
}
