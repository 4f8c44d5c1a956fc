//! For a pull request: a table of the Packages, and what happens to each folded
//! away below it.

use std::fmt::Write as _;

use super::{change, failure, failures, found, heading, is_open, is_told, sign, summary, title};
use crate::plan::{PackagePlan, Plan};

/// Writes a plan.
pub fn write_markdown(plan: &Plan) -> String {
    let mut out = "### Windlass plan\n\n".to_owned();
    let _ = writeln!(out, "{}", escape(&summary(plan)));
    if !plan.packages.is_empty() {
        out.push_str("\n| | package | what | if it fails |\n|---|---|---|---|\n");
    }
    for (position, package) in plan.packages.iter().enumerate() {
        let _ = writeln!(
            out,
            "| {} | {}{} | {} | {} |",
            position + 1,
            code(&format!("{}/{}", package.namespace, package.name)),
            mark(package),
            cell(&heading(package)),
            cell(&at_a_glance(package)),
        );
    }
    for (position, package) in plan.packages.iter().enumerate() {
        out.push('\n');
        write_package(&mut out, position + 1, package);
    }
    if !plan.notes.is_empty() {
        out.push('\n');
    }
    for note in &plan.notes {
        let _ = writeln!(out, "> {}", escape(note));
    }
    out
}

/// What a failure does, in a word of the table.
fn at_a_glance(package: &PackagePlan) -> String {
    if is_open(package) {
        return "not known before it is mended".to_owned();
    }
    let on_failure = &package.on_failure;
    let component = failure(on_failure.action);
    match &on_failure.hook {
        None => component.to_owned(),
        Some(hook) if !on_failure.components => hook.clone(),
        Some(hook) => format!("of a hook: {hook}; of a component: {component}"),
    }
}

fn mark(package: &PackagePlan) -> &'static str {
    if !package.errors.is_empty() || package.refused.is_some() {
        " ❌"
    } else if !package.warnings.is_empty()
        || !package.findings.is_empty()
        || package.steps.iter().any(|step| !step.warnings.is_empty())
    {
        " ⚠️"
    } else {
        ""
    }
}

fn write_package(out: &mut String, number: usize, package: &PackagePlan) {
    let open = if package.errors.is_empty() && package.refused.is_none() { "" } else { " open" };
    let title_of = format!("{}/{}: {}", package.namespace, package.name, heading(package));
    let _ = writeln!(out, "<details{open}><summary>{number}. {}</summary>\n", html(&title_of));
    for error in &package.errors {
        let _ = writeln!(out, "- ❌ {}", escape(error));
    }
    if let Some(refused) = &package.refused {
        let _ = writeln!(out, "- ❌ **{}**: {}", refused.reason, escape(&refused.message));
    }
    for warning in &package.warnings {
        let _ = writeln!(out, "- ⚠️ {}", escape(warning));
    }
    for finding in &package.findings {
        let _ = writeln!(out, "- ⚠️ {}: {}", finding.code, escape_but_code(&found(finding)));
    }
    for requirement in &package.requirements {
        let range = requirement.range.as_ref().map(|range| format!(" {}", code(range))).unwrap_or_default();
        let (what, sign) = (escape(&requirement.what), sign(requirement.state));
        let _ = writeln!(out, "- requires {what}{range}: **{sign}**, {}", escape(&requirement.message));
    }
    for field in package.changes.iter().filter(|field| !is_told(field)) {
        let _ = writeln!(out, "- {}", code(&change(field)));
    }
    for (what, becomes) in failures(package) {
        let _ = writeln!(out, "- if {what} fails: {}", escape(&becomes));
    }
    out.push('\n');
    for (position, step) in package.steps.iter().enumerate() {
        let _ = writeln!(out, "{}. **{}**", position + 1, escape(&title(step)));
        for gate in &step.gate {
            let _ = writeln!(out, "   - when {}", escape_but_code(gate));
        }
        if let Some(rollout) = &step.rollout {
            let _ = writeln!(out, "   - rolled out {}", escape_but_code(rollout));
        }
        for field in &step.changes {
            let _ = writeln!(out, "   - {}", code(&change(field)));
        }
        for warning in &step.warnings {
            let _ = writeln!(out, "   - ⚠️ {}", escape_but_code(warning));
        }
    }
    out.push_str("\n</details>\n");
}

/// Text in which nothing means anything to Markdown or HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A name after it would be told of it.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}

/// The same, where pairs of backquotes stand for code.
fn escape_but_code(text: &str) -> String {
    let mut parts = text.split('`');
    let mut out = parts.next().map(escape).unwrap_or_default();
    while let Some(inner) = parts.next() {
        out.push_str(&code(inner));
        out.push_str(&parts.next().map(escape).unwrap_or_default());
    }
    out
}

fn cell(text: &str) -> String {
    escape(text)
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('@', "&#64;")
}

/// A code span, with more backquotes around it than there are in it.
fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}
