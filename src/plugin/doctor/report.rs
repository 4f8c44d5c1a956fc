//! Writes an examination, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Examination;
use crate::package::diagnostic::Severity;

/// For people: what is wrong, where, and what to do.
pub fn write_text(examination: &Examination) -> String {
    let mut out = String::new();
    for finding in &examination.findings {
        let (severity, code) = (finding.cause.severity().as_str(), finding.cause.as_str());
        let _ = writeln!(out, "{severity}[{code}]: {}", finding.message);
        let _ = writeln!(out, "  at {}", finding.place);
        let _ = writeln!(out, "  {}\n", finding.help);
    }
    for unknown in &examination.unknown {
        let _ = writeln!(out, "not looked at: {unknown}");
    }
    if let Some(name) = &examination.name {
        let _ = writeln!(out, "Applications name this plugin `{name}`.");
    }
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| examination.count(severity));
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let _ = match (errors, warnings) {
        (0, 0) if examination.unknown.is_empty() => {
            writeln!(out, "All right: nothing is wrong with this installation.")
        }
        (0, 0) => writeln!(out, "Nothing wrong was found in what could be looked at."),
        (0, _) => writeln!(out, "It works; {warnings} warning{}.", plural(warnings)),
        _ => writeln!(out, "{errors} error{}, {warnings} warning{}", plural(errors), plural(warnings)),
    };
    out
}

/// For programs. `argocd-plugin/README.md` lists the codes.
pub fn write_json(examination: &Examination) -> Value {
    let findings = examination.findings.iter().map(|finding| {
        json!({
            "code": finding.cause.as_str(),
            "severity": finding.cause.severity().as_str(),
            "place": finding.place,
            "message": finding.message,
            "help": finding.help,
        })
    });
    json!({
        "plugin": examination.name,
        "findings": findings.collect::<Value>(),
        "notLookedAt": examination.unknown,
        "summary": {
            "errors": examination.count(Severity::Error),
            "warnings": examination.count(Severity::Warning),
        },
    })
}
