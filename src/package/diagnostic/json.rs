//! Findings as JSON, for programs.

use serde_json::{Value, json};

use super::{Diagnostic, Report};

/// `{"diagnostics":[…],"summary":{errors,warnings}}`. Lines and columns count
/// from 1, columns in characters; `endLine` and `endColumn` are behind the last
/// character. `package` and `component` are null where they do not apply.
pub fn write_json(report: &Report) -> Value {
    let diagnostics: Vec<Value> = report.diagnostics.iter().map(|diagnostic| one(report, diagnostic)).collect();
    json!({
        "diagnostics": diagnostics,
        "summary": {"errors": report.errors(), "warnings": report.warnings()},
    })
}

fn one(report: &Report, diagnostic: &Diagnostic) -> Value {
    let (path, start, end) = report.places(diagnostic);
    json!({
        "code": diagnostic.code.to_string(),
        "severity": diagnostic.severity.as_str(),
        "path": path,
        "line": start.line,
        "column": start.column,
        "endLine": end.line,
        "endColumn": end.column,
        "package": diagnostic.package,
        "component": diagnostic.component,
        "message": diagnostic.message,
        "help": diagnostic.help,
    })
}
