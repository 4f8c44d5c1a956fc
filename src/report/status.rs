//! Where Packages stand.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::table::table;
use super::{SEE_CONTROLLER, age, full_name, is_current, is_looked_at, ready, unseen};
use crate::api::{ComponentState, ComponentStatus, Package, PackageStatus, RolloutStatus};

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
        progress(&status.components),
        summary,
        age::since(package.metadata.creation_timestamp.as_ref(), now),
        package.spec.version.clone(),
        status.revision.map_or_else(|| "-".to_owned(), |revision| revision.to_string()),
        status.engine.map_or_else(|| "-".to_owned(), |engine| engine.as_str().to_owned()),
    ]
}

/// `3/5`: verified, of all.
fn progress(components: &[ComponentStatus]) -> String {
    let done = |component: &&ComponentStatus| {
        matches!(component.state, ComponentState::Verified | ComponentState::Restored | ComponentState::Removed)
    };
    match components.len() {
        0 => "-".to_owned(),
        all => format!("{}/{all}", components.iter().filter(done).count()),
    }
}

/// Everything the status of one Package says.
pub fn detail(package: &Package, now: Timestamp) -> String {
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
    if !status.components.is_empty() {
        let rows: Vec<Vec<String>> = status.components.iter().map(|component| component_row(component, now)).collect();
        text.push('\n');
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

fn component_row(component: &ComponentStatus, now: Timestamp) -> Vec<String> {
    vec![
        component.name.clone(),
        format!("{:?}", component.state),
        component.version.clone().unwrap_or_else(|| "-".to_owned()),
        age::since(component.since.as_ref(), now),
        component.message.clone().unwrap_or_default(),
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
