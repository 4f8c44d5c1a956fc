//! For a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::{change, failures, found, heading, is_told, sign, summary, title};
use crate::package::diagnostic;
use crate::plan::{PackagePlan, Plan, RequirementState};

const PLAIN: Style = Style::new();
const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const WARNS: Style = AnsiColor::Yellow.on_default();

/// Writes a plan.
pub fn write_text(plan: &Plan, style: diagnostic::Style) -> String {
    let paint = |kind: Style| if style == diagnostic::Style::Colored { kind } else { PLAIN };
    let mut out = String::new();
    for (position, package) in plan.packages.iter().enumerate() {
        write_package(&mut out, position + 1, package, &paint);
        out.push('\n');
    }
    for note in &plan.notes {
        let kind = paint(WARNS);
        let _ = writeln!(out, "{kind}note{kind:#}: {note}");
    }
    if !plan.notes.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", summary(plan));
    out
}

fn write_package(out: &mut String, number: usize, package: &PackagePlan, paint: &impl Fn(Style) -> Style) {
    let (bold, dim, bad, warns) = (paint(BOLD), paint(DIM), paint(BAD), paint(WARNS));
    let _ = writeln!(out, "{number}. {bold}{}/{}{bold:#}: {}", package.namespace, package.name, heading(package));
    for error in &package.errors {
        let _ = writeln!(out, "   {bad}error{bad:#}: {error}");
    }
    if let Some(refused) = &package.refused {
        let _ = writeln!(out, "   {bad}{}{bad:#}: {}", refused.reason, refused.message);
    }
    for warning in &package.warnings {
        let _ = writeln!(out, "   {warns}warning{warns:#}: {warning}");
    }
    for finding in &package.findings {
        let _ = writeln!(out, "   {warns}warning[{}]{warns:#}: {}", finding.code, found(finding));
    }
    for requirement in &package.requirements {
        let range = requirement.range.as_ref().map(|range| format!(" {range}")).unwrap_or_default();
        let kind = if requirement.state == RequirementState::NotMet { bad } else { dim };
        let (what, sign) = (&requirement.what, sign(requirement.state));
        let _ = writeln!(out, "   requires {what}{range}: {kind}{sign}{kind:#}, {}", requirement.message);
    }
    for field in package.changes.iter().filter(|field| !is_told(field)) {
        let _ = writeln!(out, "   {dim}{}{dim:#}", change(field));
    }
    for (position, step) in package.steps.iter().enumerate() {
        let _ = writeln!(out, "   {number}.{} {}", position + 1, title(step));
        for gate in &step.gate {
            let _ = writeln!(out, "       {dim}when{dim:#} {gate}");
        }
        if let Some(rollout) = &step.rollout {
            let _ = writeln!(out, "       {dim}rolled out{dim:#} {rollout}");
        }
        for field in &step.changes {
            let _ = writeln!(out, "       {}", change(field));
        }
        for warning in &step.warnings {
            let _ = writeln!(out, "       {warns}warning{warns:#}: {warning}");
        }
    }
    for (what, becomes) in failures(package) {
        let _ = writeln!(out, "   if {what} fails: {becomes}");
    }
}
