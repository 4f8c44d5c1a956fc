//! Plain scalars: which type they are.

use serde_json::Number;

use super::node::Content;

/// Why a number cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

/// The value of a plain scalar without a tag, as sigs.k8s.io/yaml (which reads
/// YAML 1.1) resolves it.
pub fn resolve(text: &str) -> Result<Content, NotFinite> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Content::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Content::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Content::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => return Err(NotFinite),
        _ => {}
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    let number = if numeric { number(text) } else { None };
    Ok(number.map_or_else(|| Content::Text(text.to_owned()), Content::Number))
}

fn number(text: &str) -> Option<Number> {
    let dotted = text.starts_with('.');
    if dotted && !underscores_join_digits(text) {
        return None;
    }
    let digits = if text.contains('_') { text.replace('_', "") } else { text.to_owned() };
    if !dotted && let Some(integer) = integer(&digits) {
        return Some(integer);
    }
    if !is_float(&digits) {
        return None;
    }
    digits.parse::<f64>().ok().filter(|float| float.is_finite()).and_then(Number::from_f64)
}

/// Behind a leading point Go drops `_` only between digits, elsewhere anywhere.
fn underscores_join_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
    let mut underscores = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    underscores.all(|(index, _)| digit(index.checked_sub(1)) && digit(Some(index + 1)))
}

/// Integers with Go's prefixes: `0x`, `0o`, `0b`, and a bare `0` for octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match lower.as_deref() {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        Some(octal) if octal.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        let value = 0i64.checked_sub_unsigned(magnitude)?;
        Some(value.into())
    } else if text.starts_with('+') {
        // Go reads a sign as "signed": it has no unsigned form with one.
        i64::try_from(magnitude).ok().map(Number::from)
    } else {
        Some(i64::try_from(magnitude).map_or_else(|_| magnitude.into(), Number::from))
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(a, b)| (a, Some(b)));
    let mantissa_fits = all_digits(whole)
        && fraction.is_none_or(all_digits)
        && !(whole.is_empty() && fraction.is_none_or(str::is_empty));
    mantissa_fits && exponent.is_none_or(|digits| !digits.is_empty() && all_digits(digits))
}

/// Up to here every integer is a float as well.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A truth or a number as all readers of YAML take it for the same: whole numbers
/// without a point, as JSON has them, others with a point and a sign of the exponent.
pub fn plainly(content: &Content) -> Option<String> {
    match content {
        Content::Bool(truth) => Some(truth.to_string()),
        Content::Number(number) => Some(plain_number(number)),
        Content::Null | Content::Text(_) | Content::Sequence(_) | Content::Mapping(_) => None,
    }
}

fn plain_number(number: &Number) -> String {
    let whole = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT);
    if let Some(whole) = whole {
        return format!("{whole:.0}");
    }
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

/// How readers disagree about a plain scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// A word that YAML 1.1 takes for a boolean and YAML 1.2 for text.
    Boolean,
    /// Digits with `_`, a leading zero, a colon, or an exponent without a point: a number, another number or
    /// text, depending on the reader.
    Number,
    /// A number that loses digits when it is read: `1.10` becomes 1.1, `3.0` 3.
    LosesDigits,
}

/// Whether YAML readers disagree about a plain scalar.
pub fn ambiguity(text: &str) -> Option<Ambiguity> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off"
        | "OFF" => return Some(Ambiguity::Boolean),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let sexagesimal = unsigned.split(':').count() > 1
        && unsigned.split(':').all(|part| digits(part) && part.len() <= 2)
        && unsigned.split(':').skip(1).all(|part| part.parse::<u8>().is_ok_and(|part| part < 60));
    let prefixed = ["0b", "0o", "0B", "0O", "0X"].iter().any(|prefix| unsigned.starts_with(prefix));
    let leading_zero = unsigned.len() > 1 && unsigned.starts_with('0') && digits(unsigned);
    let underscores = unsigned.contains('_');
    // YAML 1.1 wants a point and a sign: a short hash such as `1234e5` is text to some.
    let exponent = unsigned.split_once(['e', 'E']).is_some_and(|(digits_before, _)| digits(digits_before));
    if sexagesimal || ((prefixed || leading_zero || underscores || exponent) && number(text).is_some()) {
        return Some(Ambiguity::Number);
    }
    let loses = unsigned
        .split_once('.')
        .is_some_and(|(whole, fraction)| digits(whole) && digits(fraction) && fraction.ends_with('0'));
    loses.then_some(Ambiguity::LosesDigits)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::package::source::Span;
    use crate::package::yaml::Node;

    fn value(text: &str) -> Value {
        let content = resolve(text).unwrap();
        Node { content, span: Span::default(), plain: true }.to_value()
    }

    /// What `sigs.k8s.io/yaml` 1.6.0 makes of `a: <text>`.
    #[rstest]
    #[case("y", json!(true))]
    #[case("yEs", json!("yEs"))]
    #[case("NO", json!(false))]
    #[case("oFF", json!("oFF"))]
    #[case("Null", json!(null))]
    #[case("nUll", json!("nUll"))]
    #[case("TRUE", json!(true))]
    #[case("tRUE", json!("tRUE"))]
    #[case("08", json!(8.0))]
    #[case("012", json!(10))]
    #[case("0o14", json!(12))]
    #[case("0b11", json!(3))]
    #[case("-0x1f", json!(-31))]
    #[case("+1", json!(1))]
    #[case("1_0.5", json!(10.5))]
    #[case(".5", json!(0.5))]
    #[case("5.", json!(5.0))]
    #[case("1e3", json!(1000.0))]
    #[case("1e400", json!("1e400"))]
    #[case("_1", json!("_1"))]
    #[case("1__0", json!(10))]
    #[case("0_8", json!(8.0))]
    #[case("+.5", json!(0.5))]
    #[case("0o8", json!("0o8"))]
    #[case("0x", json!("0x"))]
    #[case("1e", json!("1e"))]
    #[case("0.1.2", json!("0.1.2"))]
    #[case("1.10", json!(1.1))]
    #[case("1:30", json!("1:30"))]
    #[case("2001-12-14", json!("2001-12-14"))]
    #[case("=", json!("="))]
    #[case("9223372036854775808", json!(9_223_372_036_854_775_808_u64))]
    #[case("18446744073709551616", json!(18_446_744_073_709_551_616.0))]
    #[case("-9223372036854775808", json!(i64::MIN))]
    #[case("-9223372036854775809", json!(-9_223_372_036_854_775_809.0))]
    #[case(".", json!("."))]
    #[case("-", json!("-"))]
    #[case("._5", json!("._5"))]
    #[case(".1_0", json!(0.1))]
    #[case("1_e3", json!(1000.0))]
    #[case("0x_1", json!(1))]
    #[case("0B11", json!(3))]
    #[case("+9223372036854775808", json!(9_223_372_036_854_775_808.0))]
    #[case("0x1p3", json!("0x1p3"))]
    #[case("-0", json!(0))]
    #[case("1_", json!(1))]
    fn plain_scalars_are_what_go_reads(#[case] text: &str, #[case] expected: Value) {
        assert_eq!(value(text), expected);
    }

    #[rstest]
    #[case(".inf")]
    #[case("-.INF")]
    #[case(".nan")]
    fn numbers_that_json_does_not_have_are_refused(#[case] text: &str) {
        assert_eq!(resolve(text), Err(NotFinite));
    }

    #[rstest]
    #[case("on", Some(Ambiguity::Boolean))]
    #[case("N", Some(Ambiguity::Boolean))]
    #[case("true", None)]
    #[case("1_000", Some(Ambiguity::Number))]
    #[case("012", Some(Ambiguity::Number))]
    #[case("0o14", Some(Ambiguity::Number))]
    #[case("0x1F", None)]
    #[case("12:30", Some(Ambiguity::Number))]
    #[case("12:30:59", Some(Ambiguity::Number))]
    #[case("12:77", None)]
    #[case("localhost:80", None)]
    #[case("1.10", Some(Ambiguity::LosesDigits))]
    #[case("1.0", Some(Ambiguity::LosesDigits))]
    #[case("1e3", Some(Ambiguity::Number))]
    #[case("1234E5", Some(Ambiguity::Number))]
    #[case("1.5e3", None)]
    #[case("1.5e+3", None)]
    #[case("12e", None)]
    #[case("0x1e3", None)]
    #[case("1.5", None)]
    #[case("1.10.0", None)]
    #[case("0", None)]
    #[case("10", None)]
    fn readers_disagree_about_some(#[case] text: &str, #[case] expected: Option<Ambiguity>) {
        assert_eq!(ambiguity(text), expected);
    }
}
