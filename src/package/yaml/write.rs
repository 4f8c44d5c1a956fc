//! Values as YAML that every reader reads back the same.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use serde_saphyr::DoubleQuoted;
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
    // Folding long lines gains nothing and is where readers differ most.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut out = String::new();
    for value in values {
        out.push_str("---\n");
        serde_saphyr::to_fmt_writer_with_options(&mut out, &Written(value), options.clone())
            .map_err(|error| WriteError(error.to_string()))?;
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    Ok(out)
}

/// A value with the styles that its readers need.
struct Written<'a>(&'a Value);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) if starts_with_a_tab(text) => DoubleQuoted(text).serialize(serializer),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.0.serialize(serializer),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Written)),
            Value::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, &Written(value))?;
                }
                map.end()
            }
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
