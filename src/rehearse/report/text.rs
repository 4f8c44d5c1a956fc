//! For people: the timeline, then the table of `kubectl get`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::{PackageAtEnd, Report};
use crate::api::{Engine, RolloutPhase};
use crate::package::diagnostic;
use crate::rehearse::play::End;
use crate::rehearse::process::PackageId;
use crate::rehearse::timeline::{Moment, What};

/// So many changes of a commit are named one by one.
const COMMITTED: usize = 6;
const PLAIN: Style = Style::new();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WAITS: Style = AnsiColor::Yellow.on_default();
const MOVES: Style = AnsiColor::Cyan.on_default();

/// Writes a report.
pub fn write_text(report: &Report, style: diagnostic::Style) -> String {
    let paint = |kind: Style| if style == diagnostic::Style::Colored { kind } else { PLAIN };
    let mut out = header(report);
    if !report.moments.is_empty() {
        out.push('\n');
        timeline(&mut out, report, &paint);
    }
    out.push('\n');
    table(&mut out, report, &paint);
    for package in report.packages.iter().filter(|package| !package.is_ready()) {
        out.push('\n');
        explain(&mut out, report, package, &paint);
    }
    if !report.remarks.is_empty() {
        out.push('\n');
        for remark in &report.remarks {
            let kind = paint(WAITS);
            let _ = writeln!(out, "{kind}note{kind:#}: {remark}");
        }
    }
    out.push('\n');
    out.push_str(&summary(report));
    out
}

pub(in crate::rehearse) fn header(report: &Report) -> String {
    let engines: Vec<&str> = report
        .engines
        .iter()
        .map(|engine| match engine {
            Engine::Flux => "Flux",
            Engine::Argo => "Argo CD",
        })
        .collect();
    let kubernetes = report.kubernetes.as_ref().map(|version| format!(", Kubernetes {version}")).unwrap_or_default();
    let before = match report.before.as_slice() {
        [] => "nothing is installed".to_owned(),
        [(name, version)] => format!("{name} {version} runs"),
        packages => format!("{} packages run", packages.len()),
    };
    let not_begun = if report.end == End::NotBegun { " (not reached, see below)" } else { "" };
    format!("A simulated cluster with {}{kubernetes}; before the commit {before}{not_begun}.\n", engines.join(" and "))
}

fn timeline(out: &mut String, report: &Report, paint: &impl Fn(Style) -> Style) {
    let shared = shared_names(report);
    let subject = |moment: &Moment| match (&moment.package, &moment.component) {
        (None, _) => "controller".to_owned(),
        (Some(package), None) => name(&shared, package),
        (Some(package), Some(component)) => format!("{}/{component}", name(&shared, package)),
    };
    let clock = clock(report.took).len().max(4);
    let shown = report.moments.iter().filter(|moment| !is_passed_over(&moment.what));
    let mut lines: Vec<(u64, String, Line)> = commit(&report.moments, &shared).into_iter().collect();
    lines.extend(shown.map(|moment| (moment.at, subject(moment), line(&moment.what))));
    let subjects = lines.iter().map(|(_, subject, _)| subject.chars().count()).max().unwrap_or(0);
    let verbs = lines.iter().map(|(_, _, line)| line.verb.chars().count()).max().unwrap_or(0);
    for (at, subject, Line { kind, verb, detail }) in &lines {
        let (dim, kind) = (paint(DIM), paint(*kind));
        let time = self::clock(*at);
        let _ = write!(out, "{dim}{time:>clock$}{dim:#}  {subject:<subjects$}  {kind}{verb}{kind:#}");
        if !detail.is_empty() {
            let _ = write!(out, "{:width$}  {detail}", "", width = verbs - verb.chars().count());
        }
        out.push('\n');
    }
}

/// Names that Packages of several namespaces have.
pub(super) fn shared_names(report: &Report) -> BTreeSet<&str> {
    let told = report.moments.iter().filter_map(|moment| moment.package.as_ref());
    let told = told.map(|id| (id.name.as_str(), id.namespace.as_str()));
    let at_the_end = report.packages.iter().map(|package| (package.name.as_str(), package.namespace.as_str()));
    let mut namespaces: BTreeMap<&str, &str> = BTreeMap::new();
    told.chain(at_the_end)
        .filter(|(name, namespace)| namespaces.entry(name).or_insert(namespace) != namespace)
        .map(|(name, _)| name)
        .collect()
}

/// A Package's name, with its namespace where another one has the same name.
pub(super) fn name(shared: &BTreeSet<&str>, id: &PackageId) -> String {
    if shared.contains(id.name.as_str()) { id.to_string() } else { id.name.clone() }
}

/// The commit in one line, whatever is in it.
pub(super) fn commit(moments: &[Moment], shared: &BTreeSet<&str>) -> Option<(u64, String, Line)> {
    let name = |moment: &Moment| moment.package.as_ref().map(|id| name(shared, id)).unwrap_or_default();
    let changes: Vec<String> = moments
        .iter()
        .filter_map(|moment| match &moment.what {
            What::Committed { from: Some(from), to } if from != to => Some(format!("{} {from} → {to}", name(moment))),
            What::Committed { to, .. } => Some(format!("{} {to}", name(moment))),
            What::Withdrawn => Some(format!("without {}", name(moment))),
            _ => None,
        })
        .collect();
    let detail = if changes.len() <= COMMITTED { changes.join(", ") } else { format!("{} packages", changes.len()) };
    let line = Line { kind: PLAIN, verb: "commit".into(), detail };
    (!changes.is_empty()).then(|| (0, "git".to_owned(), line))
}

/// What a reader does not miss: the commit has a line of its own, and charts that
/// are there at once are no news.
fn is_passed_over(what: &What) -> bool {
    match what {
        What::Committed { .. } | What::Withdrawn => true,
        What::Fetched { took } => *took < 1000,
        _ => false,
    }
}

pub(super) struct Line {
    kind: Style,
    pub(super) verb: String,
    pub(super) detail: String,
}

pub(super) fn line(what: &What) -> Line {
    let line = |kind: Style, verb: &str, detail: String| Line { kind, verb: verb.to_owned(), detail };
    match what {
        What::Committed { to, .. } => line(PLAIN, "committed", to.clone()),
        What::Withdrawn => line(PLAIN, "withdrawn", String::new()),
        What::Waits { reason, message } => line(WAITS, "waits", format!("{reason}: {message}")),
        What::Begins { revision, moves, waited, .. } => {
            let moves = if moves.is_empty() { "nothing moves".to_owned() } else { moves.join(", ") };
            let waited = if *waited < 1000 { String::new() } else { format!(", having waited {}", short(*waited)) };
            line(PLAIN, "begins", format!("revision {revision}: {moves}{waited}"))
        }
        What::Fetched { took } => line(DIM, "charts fetched", short(*took)),
        What::HookRuns => line(MOVES, "hook runs", String::new()),
        What::HookSucceeded { took } => line(GOOD, "hook succeeded", short(*took)),
        What::HookFailed { took } => line(BAD, "hook failed", format!("after {}", short(*took))),
        What::Moves { from, to, after } => {
            let after = if after.is_empty() { String::new() } else { format!(", after {}", after.join(", ")) };
            match from {
                None => line(MOVES, "installs", format!("{to}{after}")),
                Some(from) if from == to => line(MOVES, "changes", format!("values of {to}{after}")),
                Some(from) => line(MOVES, "upgrades", format!("{from} → {to}{after}")),
            }
        }
        What::VerifiedAgain { after } => {
            let after = if after.is_empty() { String::new() } else { format!(", after {}", after.join(", ")) };
            line(MOVES, "is looked at again", format!("it does not move{after}"))
        }
        What::AttemptFailed { attempts, message } => {
            line(WAITS, "attempt failed", format!("number {attempts}: {message}"))
        }
        What::ReleaseReady { message } => line(WAITS, "release ready", format!("waits for {message}")),
        What::RollsOut { phase, budget, updated, desired, message, .. } => {
            let kind = match phase {
                RolloutPhase::Successful => GOOD,
                RolloutPhase::Failed => BAD,
                RolloutPhase::Started | RolloutPhase::Canary | RolloutPhase::Increasing | RolloutPhase::Waiting => {
                    MOVES
                }
            };
            let message = if message.is_empty() { String::new() } else { format!(": {message}") };
            line(kind, phase.as_str(), format!("{updated} of {desired} nodes, budget {budget}{message}"))
        }
        What::Verified { took } => line(GOOD, "verified", short(*took)),
        What::GoesBack { from, to } => {
            let from = from.as_ref().filter(|from| *from != to).map(|from| format!("{from} → ")).unwrap_or_default();
            line(MOVES, "goes back", format!("{from}{to}"))
        }
        What::IsBack { took } => line(GOOD, "is back", short(*took)),
        What::Uninstalls => line(MOVES, "is uninstalled", String::new()),
        What::Uninstalled { took } => line(DIM, "is gone", short(*took)),
        What::HandsOver => line(DIM, "handed over", "its release goes on under another name".into()),
        What::GoesOn => line(GOOD, "goes on", "what had failed became ready after all".into()),
        What::Told { warning, reason, message } => {
            line(if *warning { BAD } else { GOOD }, reason.as_str(), message.clone())
        }
        What::Gone => line(GOOD, "is gone", String::new()),
        What::Restarted => line(WAITS, "killed", "and started again".into()),
    }
}

fn table(out: &mut String, report: &Report, paint: &impl Fn(Style) -> Style) {
    let namespaces: BTreeSet<&str> = report.packages.iter().map(|package| package.namespace.as_str()).collect();
    let mut rows = vec![["NAMESPACE", "NAME", "VERSION", "READY", "STATUS", "AGE"].map(str::to_owned)];
    rows.extend(report.packages.iter().map(|package| {
        let ready = package.ready().map(|ready| ready.status.clone()).unwrap_or_default();
        [
            package.namespace.clone(),
            package.name.clone(),
            package.status.version.clone().unwrap_or_default(),
            ready,
            package.status.summary.clone().unwrap_or_default(),
            age(package.age),
        ]
    }));
    if report.packages.is_empty() {
        out.push_str("No Packages are left.\n");
        return;
    }
    let first = usize::from(namespaces.len() < 2);
    let widths: Vec<usize> =
        (0..6).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    for (position, row) in rows.iter().enumerate() {
        let ready = position.checked_sub(1).and_then(|at| report.packages.get(at)).is_none_or(PackageAtEnd::is_ready);
        for column in first..6 {
            let kind = paint(if column == 3 && position > 0 { if ready { GOOD } else { BAD } } else { PLAIN });
            let gap = if column == 5 { 0 } else { widths[column] + 3 - row[column].chars().count() };
            let _ = write!(out, "{kind}{}{kind:#}{:gap$}", row[column], "");
        }
        out.push('\n');
    }
}

/// The whole message of a Package that is not Ready, and what it waits for.
fn explain(out: &mut String, report: &Report, package: &PackageAtEnd, paint: &impl Fn(Style) -> Style) {
    let bad = paint(BAD);
    let reason = package.ready().map(|ready| ready.reason.as_str()).unwrap_or_default();
    let wanted = &package.wanted;
    let _ = writeln!(out, "{bad}{} {wanted} is not Ready{bad:#}: {reason}", package.name);
    for line in package.ready().map(|ready| ready.message.as_str()).unwrap_or_default().lines() {
        let _ = writeln!(out, "  {line}");
    }
    for blocker in &package.status.blocked_by {
        let of = report.packages.iter().find(|other| {
            blocker.kind == "Package" && other.name == blocker.name && other.namespace == blocker.namespace
        });
        let state = match of {
            Some(other) => other.ready().map(|ready| ready.reason.clone()).unwrap_or_default(),
            None if blocker.kind == "Package" => "not among the given Packages".to_owned(),
            None => blocker.reason.clone(),
        };
        let _ = writeln!(out, "  waits for {} {} ({state})", blocker.kind, blocker.name);
    }
}

pub(super) fn summary(report: &Report) -> String {
    let ready = report.packages.iter().filter(|package| package.is_ready()).count();
    let all = report.packages.len();
    let steps = format!("the controller took {} steps", report.steps);
    let after = short(report.took);
    match report.end {
        End::Ready if all == 1 => format!("Ready after {after}; {steps}.\n"),
        End::Ready => format!("All {all} packages are Ready after {after}; {steps}.\n"),
        End::Stopped if all == 1 => format!("Not Ready; nothing moved any more after {after}; {steps}.\n"),
        End::Stopped => {
            format!("{ready} of {all} packages are Ready; nothing moved any more after {after}; {steps}.\n")
        }
        End::NotBegun => {
            format!(
                "What is to run before could not be installed, {ready} of {all} packages are Ready: nothing was committed.\n"
            )
        }
        End::Unfinished => {
            format!(
                "It had not come to an end after {after}, and is played no further; {steps}. A shorter --slow or \
                 upgrade.timeout ends sooner.\n"
            )
        }
    }
}

/// Time since the commit: `0:07`, `1:02:03`.
pub(super) fn clock(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// A duration: `0.2s`, `45s`, `3m12s`.
pub(in crate::rehearse) fn short(millis: u64) -> String {
    match millis / 1000 {
        0..10 => format!("{}.{}s", millis / 1000, millis / 100 % 10),
        seconds => crate::package::duration::GoDuration::from_secs(seconds).to_string(),
    }
}

/// An age as kubectl shows it.
fn age(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if seconds.is_multiple_of(60) => format!("{minutes}m"),
        120..600 => format!("{minutes}m{}s", seconds % 60),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 if minutes.is_multiple_of(60) => format!("{hours}h"),
        10_800..28_800 => format!("{hours}h{}m", minutes % 60),
        28_800..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}
