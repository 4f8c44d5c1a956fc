//! Lines between documents. Kubernetes tools part a file at its lines before
//! they read YAML: what does not stand there as they expect it is refused, or
//! left out in silence.

use super::Problem;
use crate::package::source::Span;
use crate::package::violation::Code;

/// What is wrong with the lines that begin or end a document, or stand before
/// one.
pub fn problems(text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut has_content = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = |line: &str| Span { start, end: start + line.trim_end().len() };
        let content = line.strip_prefix('\u{feff}').filter(|_| start == 0).unwrap_or(line);
        if let Some(rest) = content.strip_prefix("---") {
            has_content = false;
            if !stands_alone(rest) {
                problems.push(problem(span(line), "Kubernetes tools refuse what stands behind `---`", BELOW));
            }
        } else if let Some(rest) = content.strip_prefix("...").filter(|rest| stands_alone(rest)) {
            if !has_content {
                let message = "Kubernetes tools refuse `...` behind a document without content";
                problems.push(problem(span(line.strip_suffix(rest).unwrap_or(line)), message, "remove the line"));
            }
        } else if content.starts_with('%') && !has_content {
            let message = "Kubernetes tools refuse directives";
            problems.push(problem(span(line), message, "remove the line: Package files are plain YAML"));
        } else {
            has_content |= !matches!(content.trim_start().chars().next(), None | Some('#'));
        }
        start += line.len();
    }
    problems
}

const BELOW: &str = "write it on the next line; nothing but a comment follows `---`";

/// A document that begins at an offset without `---` before it, behind another
/// one.
pub fn unmarked(start: usize) -> Problem {
    let message = "Kubernetes tools leave out what stands behind `...` without a word";
    problem(Span { start, end: start }, message, "begin each document with `---`")
}

/// Whether a `---` that begins at an offset also begins a line for readers that
/// know `\n` alone.
pub fn begins_line(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    before.trim_start_matches('\u{feff}').is_empty() || before.ends_with('\n')
}

/// A `---` behind a carriage return alone.
pub fn behind_carriage_return(span: Span) -> Problem {
    let message = "Kubernetes tools do not see this `---`: a carriage return ends no line for them";
    problem(span, message, "end lines with a line feed")
}

fn stands_alone(rest: &str) -> bool {
    let comment = rest.trim_start();
    comment.is_empty() || (comment.len() < rest.len() && comment.starts_with('#') && !rest.starts_with('\r'))
}

fn problem(span: Span, message: &str, help: &str) -> Problem {
    Problem { code: Code::Syntax, span, message: message.into(), help: help.into() }
}
