//! Values as YAML that every reader reads back the same.

use serde_json::Value;
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
        serde_saphyr::to_fmt_writer_with_options(&mut out, value, options.clone())
            .map_err(|error| WriteError(error.to_string()))?;
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    Ok(out)
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
