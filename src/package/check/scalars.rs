//! Scalars that readers disagree about, and integers no API server keeps.

use std::collections::BTreeSet;

use super::Findings;
use crate::package::diagnostic::{Diagnostic, Fix, MOST_FINDINGS, Severity};
use crate::package::load::LoadedPackage;
use crate::package::pointer::Pointer;
use crate::package::source::{Source, Span};
use crate::package::violation::{Code, Violation};
use crate::package::yaml::{Ambiguity, Content, Node, ambiguity, plainly};

/// The first integer that does not fit into 64 bits signed.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

pub fn check(package: &LoadedPackage, findings: &mut Findings<'_>) {
    let Some(source) = findings.loaded.sources.get(package.source) else { return };
    let errors = findings.loaded.diagnostics.iter().filter(|other| other.source == package.source);
    let said = errors.filter(|other| other.severity == Severity::Error).map(|other| other.span).collect();
    let mut walk = Walk { package, source, pointer: Pointer::default(), said, found: Vec::new() };
    walk.node(&package.root);
    findings.found.append(&mut walk.found);
}

struct Walk<'a> {
    package: &'a LoadedPackage,
    source: &'a Source,
    pointer: Pointer,
    /// Places of which nothing more is to be said: something worse has been, or
    /// an alias leads there a second time.
    said: BTreeSet<Span>,
    found: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node) {
        if self.found.len() > MOST_FINDINGS {
            return;
        }
        match &node.content {
            Content::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.pointer.push_index(index);
                    self.node(item);
                    self.pointer.pop();
                }
            }
            Content::Mapping(entries) => {
                for entry in entries {
                    self.pointer.push(&entry.key);
                    if entry.key_plain && !self.said.contains(&entry.key_span) {
                        self.key(entry.key_span, &entry.key);
                    }
                    self.node(&entry.value);
                    self.pointer.pop();
                }
            }
            Content::Null if node.plain && node.span.start == node.span.end => self.absent(node),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_)
                if node.plain && !self.said.contains(&node.span) =>
            {
                self.scalar(node);
            }
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
        }
    }

    fn key(&mut self, span: Span, key: &str) {
        let written = self.source.slice(span);
        if matches!(ambiguity(written), Some(Ambiguity::Boolean | Ambiguity::Number)) {
            let message = format!("the key `{written}` is read as `{key}` by some tools and as `{written}` by others");
            self.warn(Code::AmbiguousScalar, span, message, &format!("write \"{written}\", with quotes"), None);
        } else if key != written && written.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            // Keys are text, which is made of the number: beyond 64 bits not of all its digits.
            let message = format!("the key `{written}` is a number, of which the key `{key}` is made");
            self.warn(Code::AmbiguousScalar, span, message, &format!("write \"{written}\", with quotes"), None);
        }
    }

    /// A value that is left out between brackets: kustomize, and with it Flux, writes
    /// empty text in its place.
    fn absent(&mut self, node: &Node) {
        let rest = self.source.text().get(node.span.start..).unwrap_or_default();
        let (behind, has_colon) = rest.strip_prefix(':').map_or((rest, false), |behind| (behind, true));
        let is_template = self.source.line_at(node.span.start).1.contains("{{");
        if is_template || !behind.trim_start().starts_with([',', ']', '}']) {
            return;
        }
        let at = node.span.start + usize::from(has_colon);
        let message = "a value that is left out between brackets is null to some tools and empty text to others";
        let help = "write `null`, or `\"\"` if empty text is meant";
        let violation = Violation::new(Code::AmbiguousScalar, self.pointer.as_str(), message).help(help);
        let diagnostic = self.package.diagnostic_at(Severity::Warning, violation, node.span);
        let place = Span { start: at, end: at };
        let fix = has_colon.then(|| Fix { span: place, text: " null".to_owned() });
        self.found.push(Diagnostic { fix, ..diagnostic });
    }

    fn scalar(&mut self, node: &Node) {
        let written = self.source.slice(node.span);
        if let Content::Number(number) = &node.content
            && number.as_i64().is_none()
            && number.as_f64().is_some_and(|number| number.abs() >= BEYOND)
            && written.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'_'))
            && !written.contains(['e', 'E'])
        {
            let message = format!("the integer {written} is beyond 64 bits signed");
            let help = "an API server would store another number: put it in quotes";
            let violation = Violation::new(Code::IntegerTooLarge, self.pointer.as_str(), message).help(help);
            self.said.insert(node.span);
            self.found.push(self.package.diagnostic_at(Severity::Error, violation, node.span));
            return;
        }
        let Some(ambiguity) = ambiguity(written) else { return };
        let read = plainly(&node.content).unwrap_or_else(|| node.to_value().to_string());
        let (message, help, fix) = match (ambiguity, &node.content) {
            (Ambiguity::LosesDigits, _) => (
                format!("{written} is a number and is read as {read}"),
                format!("write \"{written}\", with quotes, if it is a version or other text"),
                None,
            ),
            (Ambiguity::Boolean | Ambiguity::Number, Content::Text(_)) => (
                format!("{written} is text to some tools and a number to others"),
                format!("write \"{written}\", with quotes"),
                Some(format!("\"{written}\"")),
            ),
            (Ambiguity::Boolean | Ambiguity::Number, _) => (
                format!("{written} is read as {read} by Kubernetes tools and as something else by others"),
                format!("write {read}, or \"{written}\" with quotes if text is meant"),
                Some(read),
            ),
        };
        self.warn(Code::AmbiguousScalar, node.span, message, &help, fix);
    }

    fn warn(&mut self, code: Code, span: Span, message: String, help: &str, fix: Option<String>) {
        let violation = Violation::new(code, self.pointer.as_str(), message).help(help);
        let diagnostic = self.package.diagnostic_at(Severity::Warning, violation, span);
        self.said.insert(span);
        // What Kubernetes reads stays the same, unless it would refuse it.
        let fix = fix.map(|text| Fix { span, text });
        self.found.push(Diagnostic { fix, ..diagnostic });
    }
}
