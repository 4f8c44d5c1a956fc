//! Text without quotes between `[ ]` and `{ }`, where YAML 1.1, which Go reads,
//! and YAML 1.2 part.

use crate::package::source::Span;

/// What readers disagree about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disputed {
    /// The text, with the `:` behind it if that is what it is about.
    pub span: Span,
    /// What to do.
    pub help: &'static str,
}

/// Whether readers disagree about a plain scalar between brackets. To Go a `?`
/// ends it wherever it stands, a `:` in front is a key without text, and one
/// before a bracket or comma belongs to the text.
pub fn disputed(text: &str, span: Span) -> Option<Disputed> {
    let written = text.get(span.start..span.end)?;
    if written.is_empty() {
        return None;
    }
    if let [b':', b',' | b'[' | b']' | b'{' | b'}', ..] = text.as_bytes().get(span.end..)? {
        let help = "put it in quotes if it is text; if it is a key, write a space behind the `:`";
        return Some(Disputed { span: Span { start: span.start, end: span.end + 1 }, help });
    }
    let disputed = written.starts_with(':') || written.contains('?');
    disputed.then_some(Disputed { span, help: "put it in quotes" })
}

/// Whether a key and the `:` behind it are on more than one line, which Go does
/// not read.
pub fn is_long_key(text: &str, span: Span) -> bool {
    let behind = text.get(span.end..).unwrap_or_default();
    let colon = behind.trim_start().starts_with(':');
    let gap = if colon { behind.len() - behind.trim_start().len() } else { 0 };
    text.get(span.start..span.end + gap).is_some_and(|key| key.contains('\n'))
}

/// Whether readers agree on the name of an anchor: Go ends it at the first
/// character that is no letter, digit, `_` or `-`.
pub fn is_anchor_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
