//! Findings for people: the line, a caret, what to do.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Report, Severity, one_line};
use crate::package::source::Source;

/// How text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Without colours.
    #[default]
    Plain,
    /// With colours for a terminal.
    Colored,
}

/// Each finding with its line and a caret, then one line that sums up. Nothing
/// for a report without findings.
pub fn write_text(report: &Report, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colored => Renderer::styled(),
    };
    let mut out = String::new();
    for diagnostic in &report.diagnostics {
        out.push_str(&one(report, diagnostic, &renderer));
        out.push_str("\n\n");
    }
    if !report.diagnostics.is_empty() {
        out.push_str(&summary(report));
        out.push('\n');
    }
    out
}

fn one(report: &Report, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let (message, help, code) =
        (one_line(&diagnostic.message), one_line(&diagnostic.help), diagnostic.code.to_string());
    let mut group = level
        .primary_title(message.as_str())
        .id(code.as_str())
        .elements(std::iter::empty::<Snippet<'_, annotate_snippets::Annotation<'_>>>());
    let source = report.sources.get(diagnostic.source);
    // Of a directory, and of an empty file, there is no line to show.
    let excerpt = source.filter(|source| !source.text().is_empty()).map(|source| Excerpt::new(source, diagnostic));
    match (&excerpt, source) {
        (Some(excerpt), _) => {
            let mark = AnnotationKind::Primary.span(excerpt.mark.clone());
            let snippet = Snippet::source(excerpt.text.as_str()).line_start(excerpt.line).annotation(mark);
            group = match excerpt.column {
                None => group.element(snippet.path(excerpt.path)),
                Some(column) => {
                    let origin = Origin::path(excerpt.path).line(excerpt.line).char_column(column);
                    group.element(origin).element(snippet)
                }
            };
        }
        (None, Some(source)) => group = group.element(Origin::path(source.path())),
        (None, None) => {}
    }
    if !help.is_empty() {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// The one line of the source that is shown.
struct Excerpt<'a> {
    path: &'a str,
    line: usize,
    /// The column, where it cannot be counted in what is shown.
    column: Option<usize>,
    text: String,
    mark: std::ops::Range<usize>,
}

impl<'a> Excerpt<'a> {
    fn new(source: &'a Source, diagnostic: &Diagnostic) -> Self {
        /// Bytes of context before and behind the mark on a very long line.
        const CONTEXT: usize = 160;
        let (start, line) = source.line_at(diagnostic.span.start);
        let from = diagnostic.span.start.saturating_sub(start).min(line.len());
        let to = diagnostic.span.end.saturating_sub(start).clamp(from, line.len()).min(from + CONTEXT);
        let cut = floor(line, from.saturating_sub(CONTEXT));
        let (from, to, end) = (floor(line, from), floor(line, to), floor(line, to + CONTEXT));
        let text = line.get(cut..end).unwrap_or_default().to_owned();
        let mark = from - cut..to.max(from) - cut;
        let position = source.position(diagnostic.span.start);
        let column = Some(position.column).filter(|_| cut > 0);
        Self { path: source.path(), line: position.line, column, text, mark }
    }
}

fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

fn summary(report: &Report) -> String {
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    match (report.errors(), report.warnings()) {
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    }
}
