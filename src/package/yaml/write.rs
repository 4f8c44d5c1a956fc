//! Values as YAML that every reader reads back the same.
//!
//! Maps, lists and bare words, which are nearly everything, are laid out here;
//! how any other text or number has to be written is for serde-saphyr to say.

use std::fmt::Write as _;

use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use serde_saphyr::{DoubleQuoted, SerializerOptions};
use thiserror::Error;

/// Why values could not be written as YAML.
#[derive(Debug, Error)]
#[error("cannot be written as YAML: {0}")]
pub struct WriteError(String);

/// Writes each value as one document, `---` before each.
///
/// Keys keep their order, text of several lines becomes a literal block, and
/// strings that a YAML 1.1 reader (sigs.k8s.io/yaml: kubectl, Flux, Argo CD)
/// would take for another type are quoted. The same values give the same bytes.
///
/// # Errors
/// When the serializer refuses a value; none is known.
pub fn write(values: &[Value]) -> Result<String, WriteError> {
    let mut writer = Writer { out: String::new(), style: style() };
    for value in values {
        writer.out.push_str("---\n");
        writer.node(value, 0)?;
    }
    Ok(writer.out)
}

/// How serde-saphyr writes. Folding long lines gains nothing and is where
/// readers differ most.
pub(super) fn style() -> SerializerOptions {
    serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX }
}

/// Spaces by which what is inside a map stands further right.
const STEP: usize = 2;

struct Writer {
    out: String,
    style: SerializerOptions,
}

/// How a value stands in its map or list.
enum Layout<'a> {
    Map(&'a Map<String, Value>),
    List(&'a [Value]),
    /// On the line of its key or dash; also what is empty.
    Inline,
}

impl<'a> Layout<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Object(entries) if !entries.is_empty() => Self::Map(entries),
            Value::Array(items) if !items.is_empty() => Self::List(items),
            _ => Self::Inline,
        }
    }
}

/// A column is the number of spaces before a map or list. Everything is written
/// from where the last line ends and ends its own line.
impl Writer {
    fn node(&mut self, value: &Value, column: usize) -> Result<(), WriteError> {
        match Layout::of(value) {
            Layout::Map(entries) => self.map(entries, column),
            Layout::List(items) => self.list(items, column),
            Layout::Inline => self.inline(value, column),
        }
    }

    fn map(&mut self, entries: &Map<String, Value>, column: usize) -> Result<(), WriteError> {
        for (index, (key, value)) in entries.iter().enumerate() {
            if index > 0 {
                self.indent(column);
            }
            self.key(key, column)?;
            match Layout::of(value) {
                Layout::Map(inner) => {
                    self.out.push('\n');
                    self.indent(column + STEP);
                    self.map(inner, column + STEP)?;
                }
                Layout::List(items) => {
                    self.out.push('\n');
                    self.indent(column);
                    self.list(items, column)?;
                }
                Layout::Inline => {
                    self.out.push(' ');
                    self.inline(value, column)?;
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, items: &[Value], column: usize) -> Result<(), WriteError> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.indent(column);
            }
            self.out.push_str("- ");
            match Layout::of(item) {
                Layout::Map(entries) => self.map(entries, column + STEP)?,
                Layout::List(inner) => self.list(inner, column + STEP)?,
                Layout::Inline => self.inline(item, column)?,
            }
        }
        Ok(())
    }

    /// A key and its colon.
    fn key(&mut self, key: &str, column: usize) -> Result<(), WriteError> {
        if is_word(key) {
            self.out.push_str(key);
            self.out.push(':');
            return Ok(());
        }
        self.by_library(&json!({ key: null }), column)?;
        let key = self.out.strip_suffix(" null").map_or(self.out.len(), str::len);
        self.out.truncate(key);
        Ok(())
    }

    fn inline(&mut self, value: &Value, column: usize) -> Result<(), WriteError> {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) if !number.is_f64() => {
                // Writing to a String cannot fail.
                let _ = write!(self.out, "{number}");
            }
            Value::String(text) if is_word(text) || is_reference(text) || is_quantity(text) => self.out.push_str(text),
            Value::Number(_) | Value::String(_) => self.by_library(value, column)?,
            Value::Array(_) => self.out.push_str("[]"),
            Value::Object(_) => self.out.push_str("{}"),
        }
        self.out.push('\n');
        Ok(())
    }

    /// What serde-saphyr makes of a value, moved right by `column`, without the
    /// line break at its end.
    fn by_library(&mut self, value: &Value, column: usize) -> Result<(), WriteError> {
        let mut text = String::new();
        serde_saphyr::to_fmt_writer_with_options(&mut text, &Styled(value), self.style.clone())
            .map_err(|error| WriteError(error.to_string()))?;
        for (index, line) in text.strip_suffix('\n').unwrap_or(&text).split('\n').enumerate() {
            if index > 0 {
                self.out.push('\n');
            }
            if index > 0 && !line.is_empty() {
                self.indent(column);
            }
            self.out.push_str(line);
        }
        Ok(())
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }
}

/// Words that some reader takes for something else than text.
const SPECIAL_WORDS: [&str; 11] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];
/// Longer keys need another form.
const LONGEST_WORD: usize = 128;

/// Text that is itself to every reader, as a key and as a value: a letter or a
/// slash, then letters, digits, `-`, `_`, `.` and `/`.
fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.bytes().all(is_plain)
        && text.len() <= LONGEST_WORD
        && !SPECIAL_WORDS.iter().any(|special| special.eq_ignore_ascii_case(text))
}

/// The same only as a value, where colons inside mean nothing: `https://…`,
/// `registry/image:1.2`, `v1:…`.
fn is_reference(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| is_plain(byte) || byte == b':')
        && text.contains(':')
        && !text.ends_with(':')
}

/// A number with its unit: there is a letter that no number has, be it
/// hexadecimal, octal or with an exponent.
fn is_quantity(text: &str) -> bool {
    let of_units = |byte: u8| matches!(byte.to_ascii_lowercase(), b'g'..=b'n' | b'q'..=b'w' | b'y' | b'z');
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().any(of_units)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/')
}

/// A value with the styles that its readers need.
pub(super) struct Styled<'a>(pub &'a Value);

impl Serialize for Styled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if starts_with_a_tab(text) => DoubleQuoted(text).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

/// Go's reader takes a tab before the first word of a literal block for
/// indentation and gives up.
fn starts_with_a_tab(text: &str) -> bool {
    let indentation = text.len() - text.trim_start().len();
    text.contains('\n') && text.get(..indentation).is_some_and(|indentation| indentation.contains('\t'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_that_look_like_other_types_are_quoted() {
        let value = json!({"on": "on", "y": "y", "1": "1_000", "a": ["012", "1.10", "~", "null", "2020-01-01", "0x1F", "12:30", "", "=", "<<"]});
        insta::assert_snapshot!(write(&[value]).unwrap());
    }

    #[test]
    fn other_types_stay_what_they_are() {
        let value = json!({"empty": {}, "list": [], "null": null, "int": i64::MAX, "neg": i64::MIN, "float": 1.5, "whole": 1.0, "exp": 1e300, "small": 1e-7, "bool": true});
        insta::assert_snapshot!(write(&[value]).unwrap());
    }

    #[test]
    fn text_keeps_its_lines() {
        let value = json!({"text": "a\n  b\n\nc\n", "tail": "a\n\n", "no_tail": "a\nb", "lead": "  a\nb", "space": "a \nb", "tab": "\ta\nb", "return": "a\r\nb", "long": "x ".repeat(100), "emoji": "\u{1f600}\u{85}\u{2028}", "nul": "\u{0}\u{7f}"});
        insta::assert_snapshot!(write(&[json!([value]), json!("a")]).unwrap());
    }
}
