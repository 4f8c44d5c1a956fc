//! Labels and annotations: those that an API server refuses, and those of ours
//! that nothing reads.

use super::Findings;
use crate::api::wellknown::{
    ANNOTATION_COMPILED_BY, ANNOTATION_FORCE_DELETE, ANNOTATION_RETRY, ANNOTATION_ROLLBACK_TO, GROUP,
};
use crate::package::definition::did_you_mean;
use crate::package::diagnostic::Severity;
use crate::package::load::LoadedPackage;
use crate::package::pointer::escape;
use crate::package::violation::{Code, Violation, short};
use crate::package::yaml::{Entry, Node};

/// What is read from a Package's annotations.
const OURS: [&str; 4] = [ANNOTATION_RETRY, ANNOTATION_ROLLBACK_TO, ANNOTATION_FORCE_DELETE, ANNOTATION_COMPILED_BY];
/// Longest name and value, and longest prefix of a name, in a label.
const MAX_NAME: usize = 63;
const MAX_PREFIX: usize = 253;

pub fn check(package: &LoadedPackage, findings: &mut Findings<'_>) {
    let entries = |field: &str| {
        let node = package.root.get("metadata").and_then(|metadata| metadata.get(field));
        node.and_then(Node::entries).unwrap_or_default()
    };
    for entry in entries("labels") {
        name(package, "/metadata/labels", entry, false, findings);
        value(package, "/metadata/labels", entry, findings);
    }
    for entry in entries("annotations") {
        name(package, "/metadata/annotations", entry, true, findings);
        ours(package, entry, findings);
    }
    let components = package.root.find("/spec/components").and_then(Node::items).unwrap_or_default();
    for (index, component) in components.iter().enumerate() {
        let Some(canary) = component.get("canary") else { continue };
        of_canary(package, &format!("/spec/components/{index}/canary"), canary, findings);
    }
}

/// Labels of nodes and annotations of pods that nothing can carry.
fn of_canary(package: &LoadedPackage, at: &str, canary: &Node, findings: &mut Findings<'_>) {
    let selector = format!("{at}/nodeSelector");
    for entry in canary.get("nodeSelector").and_then(Node::entries).unwrap_or_default() {
        name(package, &selector, entry, false, findings);
        value(package, &selector, entry, findings);
    }
    let annotations = canary.get("matchAnnotations").and_then(Node::items).unwrap_or_default();
    for (index, annotation) in annotations.iter().enumerate() {
        if let Some(text) = annotation.as_text().filter(|text| !is_qualified_name(text, true)) {
            let violation = no_name(&format!("{at}/matchAnnotations/{index}"), text);
            findings.found.push(package.diagnostic_at(Severity::Error, violation, annotation.span));
        }
    }
}

fn no_name(pointer: &str, name: &str) -> Violation {
    let message = format!("`{}` is no name of a label or annotation", short(name));
    let help = "write letters, digits, `-`, `_` and `.`, at most 63, with a letter or digit at both ends; \
                before it there may be a domain and `/`";
    Violation::new(Code::InvalidName, pointer, message).help(help)
}

fn name(package: &LoadedPackage, at: &str, entry: &Entry, capitals: bool, findings: &mut Findings<'_>) {
    if !is_qualified_name(&entry.key, capitals) {
        findings.found.push(package.diagnostic_at(Severity::Error, no_name(at, &entry.key), entry.key_span));
    }
}

fn value(package: &LoadedPackage, at: &str, entry: &Entry, findings: &mut Findings<'_>) {
    let Some(text) = entry.value.as_text().filter(|text| !text.is_empty() && !is_name(text)) else { return };
    let message = format!("`{}` is no value of a label", short(text));
    let help = "write letters, digits, `-`, `_` and `.`, at most 63, with a letter or digit at both ends; \
                other text goes into an annotation";
    let pointer = format!("{at}/{}", escape(&entry.key));
    findings.error(package, Violation::new(Code::InvalidValue, pointer, message).help(help));
}

fn ours(package: &LoadedPackage, entry: &Entry, findings: &mut Findings<'_>) {
    let key = entry.key.as_str();
    if key.split_once('/').is_none_or(|(prefix, _)| prefix != GROUP) {
        return;
    }
    let text = entry.value.as_text().unwrap_or_default();
    let (code, message, help) = match key {
        ANNOTATION_ROLLBACK_TO if !asks_for_a_revision(text) => {
            let help = "write the number of a revision, `@`, and any text that was not there before: \"3@monday\"";
            (Code::InvalidValue, format!("`{}` names no revision", short(text)), help.to_owned())
        }
        ANNOTATION_FORCE_DELETE if !matches!(text, "true" | "false") => {
            let help = "write \"true\", in quotes, or remove it";
            (Code::InvalidValue, format!("`{}` has no effect: only `true` has", short(text)), help.to_owned())
        }
        known if OURS.contains(&known) => return,
        _ => {
            let similar = did_you_mean(key, OURS.into_iter());
            let known = || format!("known here: {}", OURS.join(", "));
            let help = if similar.is_empty() { known() } else { similar };
            (Code::UnknownField, format!("nothing reads the annotation `{}`", short(key)), help)
        }
    };
    findings
        .warning(package, Violation::new(code, format!("/metadata/annotations/{}", escape(key)), message).help(help));
}

/// `<number>@<token>`.
fn asks_for_a_revision(text: &str) -> bool {
    text.split_once('@').is_some_and(|(number, token)| number.parse::<u32>().is_ok() && !token.is_empty())
}

/// Names of labels and annotations as an API server has them. In annotations
/// the domain may have capitals.
fn is_qualified_name(text: &str, capitals: bool) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => prefix.len() <= MAX_PREFIX && is_domain(prefix, capitals) && is_name(name),
        None => is_name(text),
    }
}

fn is_name(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MAX_NAME
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_domain(text: &str, capitals: bool) -> bool {
    let alphanumeric =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || (capitals && byte.is_ascii_uppercase());
    text.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
    })
}
