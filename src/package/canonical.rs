//! Canonical JSON (RFC 8785): one text for one value.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Number, Value};
use thiserror::Error;

use super::pointer::escape;

/// An integer that does not survive a Kubernetes API server unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the integer {number} at `{pointer}` is beyond 64 bits signed")]
pub struct IntegerTooLarge {
    /// The number as written.
    pub number: String,
    /// JSON pointer of the place.
    pub pointer: String,
}

impl IntegerTooLarge {
    /// The same, seen from the map or list that holds the value at `key`.
    fn within(mut self, key: &str) -> Self {
        self.pointer = format!("/{}{}", escape(key), self.pointer);
        self
    }
}

/// The canonical text of a value: keys sorted by UTF-16 code units, no white
/// space, numbers as ECMAScript writes them.
///
/// Integers that fit 64 bits signed are written exactly, also beyond 2^53 where
/// RFC 8785 would round, so that two different values never share a text.
///
/// # Errors
/// [`IntegerTooLarge`] for an integer beyond 64 bits signed: API servers turn
/// it into another number.
pub fn canonical_json(value: &Value) -> Result<String, IntegerTooLarge> {
    let mut out = String::new();
    write_value(value, &mut out)?;
    Ok(out)
}

fn write_value(value: &Value, out: &mut String) -> Result<(), IntegerTooLarge> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out)?,
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out).map_err(|error| error.within(&index.to_string()))?;
            }
            out.push(']');
        }
        Value::Object(map) => write_object(map, out)?,
    }
    Ok(())
}

fn write_object(map: &Map<String, Value>, out: &mut String) -> Result<(), IntegerTooLarge> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|(a, _), (b, _)| utf16_order(a, b));
    out.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write_value(value, out).map_err(|error| error.within(key))?;
    }
    out.push('}');
    Ok(())
}

/// Order by UTF-16 code units, which for ASCII is that of bytes.
fn utf16_order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn write_number(number: &Number, out: &mut String) -> Result<(), IntegerTooLarge> {
    if let Some(integer) = number.as_i64() {
        let _ = write!(out, "{integer}");
    } else if let (false, Some(float)) = (number.is_u64(), number.as_f64()) {
        out.push_str(ryu_js::Buffer::new().format(float));
    } else {
        return Err(IntegerTooLarge { number: number.to_string(), pointer: String::new() });
    }
    Ok(())
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_escaped) {
        out.push_str(&rest[..at]);
        write_escape(rest.as_bytes()[at], out);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// All that is escaped is ASCII, so that a byte of it is a whole character.
fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn write_escape(byte: u8, out: &mut String) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        0x0c => out.push_str("\\f"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        control => {
            let _ = write!(out, "\\u{control:04x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::keys_are_sorted(json!({"b": 1, "a": 2}), r#"{"a":2,"b":1}"#)]
    #[case::keys_sort_by_utf16(json!({"\u{fb33}": 1, "\u{1f600}": 2}), "{\"\u{1f600}\":2,\"\u{fb33}\":1}")]
    #[case::whole_floats_are_integers(json!(1.0), "1")]
    #[case::floats(json!([1e30, 4.50, 2e-3, 1e-27, 0.1]), "[1e+30,4.5,0.002,1e-27,0.1]")]
    #[case::large_integers_are_exact(json!(9_007_199_254_740_993_i64), "9007199254740993")]
    #[case::negative_zero(json!(-0.0), "0")]
    #[case::nulls_are_kept(json!({"a": null}), r#"{"a":null}"#)]
    #[case::escapes(json!("\u{0}\u{1f}\"\\\n\u{7f}é"), "\"\\u0000\\u001f\\\"\\\\\\n\u{7f}é\"")]
    fn values_have_one_text(#[case] value: Value, #[case] text: &str) {
        assert_eq!(canonical_json(&value).unwrap(), text);
    }

    #[test]
    fn integers_that_an_api_server_would_change_are_refused() {
        let error = canonical_json(&json!({"a/b": [u64::MAX]})).unwrap_err();
        assert_eq!(error.pointer, "/a~1b/0");
        assert_eq!(error.number, "18446744073709551615");
    }
}
