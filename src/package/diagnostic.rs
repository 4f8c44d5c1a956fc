//! Findings with a place in a file, and the forms they are written in.

mod github;
mod json;
#[cfg(test)]
mod tests;
mod text;

use super::source::{Position, Source, Span};
use super::violation::Code;

pub use github::write_github;
pub use json::write_json;
pub use text::{Style, write_text};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The Package cannot be used.
    Error,
    /// The Package works, but probably not as meant.
    Warning,
}

impl Severity {
    /// The word used in every form of output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Most findings of one Package that are shown, of its own and of what it comes
/// to with others: more than anyone mends in one go.
pub const MOST_FINDINGS: usize = 200;

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which rule.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// Which of the report's sources.
    pub source: usize,
    /// Where in it.
    pub span: Span,
    /// Name of the Package, if it is about one.
    pub package: Option<String>,
    /// Name of the component, if it is about one.
    pub component: Option<String>,
    /// What is wrong; one line.
    pub message: String,
    /// What to do; empty if the message says it.
    pub help: String,
    /// What mends it, where that is certain.
    pub fix: Option<Fix>,
}

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fix {
    /// What is replaced; empty where text is only put in.
    pub span: Span,
    /// By what.
    pub text: String,
}

impl Diagnostic {
    /// What a reader sees of it, in the order of reports.
    fn shown(&self) -> impl Ord + '_ {
        (self.source, self.span, self.severity, self.code, &self.message, &self.help)
    }
}

/// Findings and the files they are about.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The files.
    pub sources: Vec<Source>,
    /// The findings, in the order of the files and of the places in them.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// Findings in the order they are shown, each once: what aliases bring to
    /// several components is one place in the file.
    pub fn new(sources: Vec<Source>, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by(|a, b| a.shown().cmp(&b.shown()));
        diagnostics.dedup_by(|a, b| a.shown() == b.shown());
        Self { sources, diagnostics }
    }

    /// Number of errors.
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    /// Number of warnings.
    pub fn warnings(&self) -> usize {
        self.diagnostics.len() - self.errors()
    }

    /// Where a finding begins and where it ends.
    fn places(&self, diagnostic: &Diagnostic) -> (&str, Position, Position) {
        let start = Position { line: 1, column: 1 };
        self.sources.get(diagnostic.source).map_or(("", start, start), |source| {
            (source.path(), source.position(diagnostic.span.start), source.position(diagnostic.span.end))
        })
    }
}

/// Text without characters that would break a line or drive a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
