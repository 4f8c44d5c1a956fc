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
        name(package, "labels", entry, findings);
        value(package, entry, findings);
    }
    for entry in entries("annotations") {
        name(package, "annotations", entry, findings);
        ours(package, entry, findings);
    }
}

fn name(package: &LoadedPackage, field: &str, entry: &Entry, findings: &mut Findings<'_>) {
    if !is_qualified_name(&entry.key, field == "annotations") {
        let message = format!("`{}` is no name of a label or annotation", short(&entry.key));
        let help = "write letters, digits, `-`, `_` and `.`, at most 63, with a letter or digit at both ends; \
                    before it there may be a domain and `/`";
        let violation = Violation::new(Code::InvalidName, format!("/metadata/{field}"), message).help(help);
        findings.found.push(package.diagnostic_at(Severity::Error, violation, entry.key_span));
    }
}

fn value(package: &LoadedPackage, entry: &Entry, findings: &mut Findings<'_>) {
    let Some(text) = entry.value.as_text().filter(|text| !text.is_empty() && !is_name(text)) else { return };
    let message = format!("`{}` is no value of a label", short(text));
    let help = "write letters, digits, `-`, `_` and `.`, at most 63, with a letter or digit at both ends; \
                other text goes into an annotation";
    let violation = Violation::new(Code::InvalidValue, pointer("labels", &entry.key), message).help(help);
    findings.error(package, violation);
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
    findings.warning(package, Violation::new(code, pointer("annotations", key), message).help(help));
}

/// `<number>@<token>`.
fn asks_for_a_revision(text: &str) -> bool {
    text.split_once('@').is_some_and(|(number, token)| number.parse::<u32>().is_ok() && !token.is_empty())
}

fn pointer(field: &str, key: &str) -> String {
    format!("/metadata/{field}/{}", escape(key))
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
