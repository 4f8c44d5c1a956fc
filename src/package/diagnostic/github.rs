//! Findings as workflow commands, which GitHub shows beside the line.

use std::fmt::Write as _;

use super::{Report, one_line};

/// One `::error …` or `::warning …` command per finding.
///
/// Escaped as the runner's toolkit does: `%` and line breaks in texts, `:` and
/// `,` in properties as well, so that no text can begin a command of its own.
pub fn write_github(report: &Report) -> String {
    let mut out = String::new();
    for diagnostic in &report.diagnostics {
        let (path, start, end) = report.places(diagnostic);
        let help = if diagnostic.help.is_empty() { String::new() } else { format!("\n{}", one_line(&diagnostic.help)) };
        let message = format!("{}{help}", one_line(&diagnostic.message));
        // GitHub takes columns only for findings within one line, ends included.
        let columns = if start.line == end.line {
            format!(",col={},endColumn={}", start.column, end.column.max(start.column))
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "::{} file={},line={},endLine={}{columns},title={}::{}",
            diagnostic.severity.as_str(),
            property(path),
            start.line,
            end.line,
            property(&diagnostic.code.to_string()),
            data(&message),
        );
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
