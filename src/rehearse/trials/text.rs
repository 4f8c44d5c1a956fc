//! For people: each outcome once, with all that leads to it.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::{ComponentAtEnd, Exploration, Group, Outcome, Standing};
use crate::api::Reason;
use crate::package::diagnostic;
use crate::rehearse::play::End;
use crate::rehearse::process::PackageId;
use crate::rehearse::report::{header, short};
use crate::rehearse::scene::{FailAt, Failure};
use crate::rehearse::timeline::{Moment, What};
use crate::report::remedy::remedy;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WAITS: Style = AnsiColor::Yellow.on_default();

/// Writes what was found.
pub fn write_text(found: &Exploration, style: diagnostic::Style) -> String {
    let paint = |kind: Style| if style == diagnostic::Style::Colored { kind } else { PLAIN };
    let writer = Writer { found, paint: &paint };
    let mut out = header(&found.plain);
    out.push('\n');
    writer.plain(&mut out);
    for group in &found.failures {
        out.push('\n');
        writer.group(&mut out, group);
    }
    if found.plain.end != End::NotBegun {
        out.push('\n');
        writer.restarts(&mut out);
    }
    writer.remedies(&mut out);
    if !found.remarks.is_empty() {
        out.push('\n');
    }
    let kind = paint(WAITS);
    for remark in &found.remarks {
        let _ = writeln!(out, "{kind}note{kind:#}: {remark}");
    }
    out
}

struct Writer<'a> {
    found: &'a Exploration,
    paint: &'a dyn Fn(Style) -> Style,
}

impl Writer<'_> {
    fn plain(&self, out: &mut String) {
        self.heading(out, "If nothing fails", &self.found.outcome);
        self.outcome(out, &self.found.outcome, None);
    }

    fn group(&self, out: &mut String, group: &Group) {
        self.heading(out, &format!("If {}", self.cases(&group.cases)), &group.outcome);
        self.outcome(out, &group.outcome, Some(&self.found.outcome));
    }

    fn heading(&self, out: &mut String, what: &str, outcome: &Outcome) {
        let (bold, dim) = ((self.paint)(BOLD), (self.paint)(DIM));
        let after = match outcome.took {
            (0..100, 0..100) => "at once".to_owned(),
            (0..100, most) => format!("after up to {}", short(most)),
            (least, most) if short(least) == short(most) => format!("after {}", short(most)),
            (least, most) => format!("after {} to {}", short(least), short(most)),
        };
        let _ = writeln!(out, "{bold}{what}{bold:#}{dim}, {after}{dim:#}");
    }

    /// What is another than it would be otherwise; everything, where there is
    /// nothing to compare with.
    fn outcome(&self, out: &mut String, outcome: &Outcome, otherwise: Option<&Outcome>) {
        let is_news =
            |package: &&Standing| otherwise.is_none_or(|otherwise| otherwise.standing(&package.id) != Some(*package));
        let mut told: Vec<&Standing> = outcome.packages.iter().filter(is_news).collect();
        // Those that only wait for others come behind them.
        told.sort_by_key(|package| package.reason == Reason::RequirementsNotMet.as_str());
        for package in &told {
            self.standing(out, package, outcome);
        }
        let dim = (self.paint)(DIM);
        if told.is_empty() {
            let _ = writeln!(out, "  {dim}the end is the same{dim:#}");
        }
    }

    fn standing(&self, out: &mut String, package: &Standing, outcome: &Outcome) {
        let (kind, verb) = match package {
            package if package.is_ready => (GOOD, "is"),
            package if package.waits() => (WAITS, "waits at"),
            _ => (BAD, "stands at"),
        };
        let (kind, dim) = ((self.paint)(kind), (self.paint)(DIM));
        let with = match package.components.as_slice() {
            [] => String::new(),
            components => format!(" with {}", list(components.iter().map(component), " and ")),
        };
        let again = package.hooks.iter().filter(|(_, runs)| **runs > 1);
        let again: String = again.map(|(hook, runs)| format!("; hook `{hook}` ran {runs} times")).collect();
        let moved = if package.is_ready || package.moved { "" } else { "; nothing has moved" };
        let name = self.name(&package.id.namespace, &package.id.name);
        let reason = &package.reason;
        let _ = writeln!(out, "  {name} {verb} {kind}{reason}{kind:#}{with}{moved}{again}");
        let goes_on = [Reason::Preparing, Reason::Progressing].iter().any(|goes_on| goes_on.as_str() == reason);
        if let Some(message) = outcome.messages.get(&package.id).filter(|_| goes_on) {
            let _ = writeln!(out, "    {dim}{message}{dim:#}");
        }
    }

    /// What to do about each reason, once.
    fn remedies(&self, out: &mut String) {
        let others = self.found.restarts.others.iter().map(|(_, outcome)| outcome);
        let groups = self.found.failures.iter().map(|group| &group.outcome);
        let outcomes = std::iter::once(&self.found.outcome).chain(groups).chain(others);
        let mut told: Vec<Reason> = Vec::new();
        for package in outcomes.flat_map(|outcome| &outcome.packages).filter(|package| !package.is_ready) {
            if let Some(reason) = Reason::parse(&package.reason).filter(|reason| !told.contains(reason)) {
                told.push(reason);
            }
        }
        let width = told.iter().map(|reason| reason.as_str().len()).max().unwrap_or(0);
        for (position, reason) in told.iter().enumerate() {
            let line = if position == 0 { "\n" } else { "" };
            let bold = (self.paint)(BOLD);
            let _ = writeln!(out, "{line}{bold}{:width$}{bold:#}  {}", reason.as_str(), remedy(*reason));
        }
    }

    fn restarts(&self, out: &mut String) {
        let bold = (self.paint)(BOLD);
        let restarts = &self.found.restarts;
        if restarts.others.is_empty() {
            let (steps, good) = (restarts.tried, (self.paint)(GOOD));
            let which = if restarts.tried < restarts.steps { "steps that were tried" } else { "steps" };
            let _ = writeln!(out, "{bold}If the controller is killed and started again{bold:#}");
            let _ = writeln!(out, "  {good}the end is the same{good:#} after any of its {steps} {which}");
            return;
        }
        for (after, outcome) in &restarts.others {
            let after = list(after.iter().map(u64::to_string), " or ");
            self.heading(out, &format!("If the controller is killed after step {after}"), outcome);
            self.outcome(out, outcome, Some(&self.found.outcome));
        }
    }

    /// Everything that leads to the same, in words.
    fn cases(&self, cases: &[Vec<Failure>]) -> String {
        let mut told: Vec<(Told, Vec<String>)> = Vec::new();
        for case in cases {
            let Some((last, before)) = case.split_last() else { continue };
            let before = before.iter().map(|failure| self.told(failure).with(&[self.place(failure)])).collect();
            let how = Told { before, ..self.told(last) };
            let name = self.place(last);
            match told.iter_mut().find(|(known, _)| *known == how) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => told.push((how, vec![name])),
            }
        }
        list(told.iter().map(|(how, names)| how.with(names)), ", or ")
    }

    fn told(&self, failure: &Failure) -> Told {
        let moments = self.found.plain.moments.iter().filter(|moment| is_about(moment, failure));
        let is_hook = moments.clone().any(|moment| matches!(moment.what, What::HookRuns));
        let is_new = moments.clone().any(|moment| matches!(moment.what, What::Moves { from: None, .. }));
        let (what, fails) = match failure.at {
            FailAt::Chart => ("the chart of", "cannot be fetched"),
            FailAt::Release | FailAt::Workload if is_hook => ("hook", "fails"),
            FailAt::Release if is_new => ("", "cannot be installed"),
            FailAt::Release => ("", "cannot be upgraded"),
            FailAt::Workload => ("", "never becomes ready"),
            FailAt::Ready => ("the readyWhen of", "never holds"),
            FailAt::Rollback => ("", "cannot be brought back"),
            FailAt::Canary => ("new pods of", "crash at once"),
            FailAt::Late => ("new pods of", "crash after a while"),
        };
        Told { before: Vec::new(), what, fails }
    }

    fn place(&self, failure: &Failure) -> String {
        let place = &failure.place;
        match self.found.outcome.packages.len() {
            0 | 1 => format!("`{}`", place.component),
            _ => format!("`{}/{}`", self.name(&place.namespace, &place.package), place.component),
        }
    }

    fn name(&self, namespace: &str, name: &str) -> String {
        let is_shared = self.found.outcome.packages.iter().filter(|package| package.id.name == name).count() > 1;
        if is_shared { format!("{namespace}/{name}") } else { name.to_owned() }
    }
}

fn is_about(moment: &Moment, failure: &Failure) -> bool {
    let place = &failure.place;
    let is_of = |id: &PackageId| id.namespace == place.namespace && id.name == place.package;
    moment.package.as_ref().is_some_and(is_of) && moment.component.as_deref() == Some(&place.component)
}

/// How something fails, and after what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    before: Vec<String>,
    what: &'static str,
    fails: &'static str,
}

impl Told {
    fn with(&self, names: &[String]) -> String {
        let names = list(names.iter().cloned(), " or ");
        let own = format!("{} {names} {}", self.what, self.fails);
        let own = own.trim_start();
        match self.before.as_slice() {
            [] => own.to_owned(),
            before => format!("{}, and then {own}", before.join(", and ")),
        }
    }
}

/// `a, b and c`.
fn list(items: impl Iterator<Item = String>, last: &str) -> String {
    let items: Vec<String> = items.collect();
    match items.split_last() {
        Some((end, [])) => end.clone(),
        Some((end, others)) => format!("{}{last}{end}", others.join(", ")),
        None => String::new(),
    }
}

/// `operator 1.9.0`, and what is to be said of it.
fn component(component: &ComponentAtEnd) -> String {
    let versions = component.runs.versions.iter().map(|running| match running.nodes {
        Some(nodes) => format!("{} on {nodes} {}", running.version, if nodes == 1 { "node" } else { "nodes" }),
        None => running.version.clone(),
    });
    let note = match component {
        component if !component.runs.is_ready => " (not ready)",
        component if component.failed => " (failed)",
        _ => "",
    };
    format!("{} {}{note}", component.name, list(versions, " and "))
}
