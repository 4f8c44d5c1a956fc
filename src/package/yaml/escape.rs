//! Escapes in double quotes that some readers take and Go refuses.

use std::ops::Range;

/// The first escape of a double-quoted scalar, as it is written with its quotes,
/// that sigs.k8s.io/yaml 1.6.0 does not read: `\/`, and halves of a character,
/// which JSON writes as two escapes. With what to write instead.
pub fn refused_by_go(written: &str) -> Option<(Range<usize>, &'static str)> {
    let mut from = 0;
    while let Some(start) = written.get(from..)?.find('\\').map(|at| from + at) {
        let rest = written.get(start + 1..)?;
        if rest.starts_with('/') {
            return Some((start..start + 2, "write `/` alone"));
        }
        if rest.strip_prefix('u').is_some_and(begins_with_surrogate) {
            return Some((start..start + 6, "write the character itself, or `\\U` with eight digits"));
        }
        from = start + 1 + rest.chars().next().map_or(0, char::len_utf8);
    }
    None
}

fn begins_with_surrogate(digits: &str) -> bool {
    let number = digits.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| (0xD800..=0xDFFF).contains(&number))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::slash(r#""a\/b""#, Some(r"\/"))]
    #[case::pair(r#""é\ud83d\ude00""#, Some(r"\ud83d"))]
    #[case::upper_case(r#""\uDBFF""#, Some(r"\uDBFF"))]
    #[case::escaped_backslash(r#""\\/ \\ud83d""#, None)]
    #[case::other_escapes(r#""\x41\u00e9\U0001F600\n\"\\\t""#, None)]
    #[case::escaped_line("\"a\\\n  b\"", None)]
    #[case::text_behind(r#""\é\/""#, Some(r"\/"))]
    fn escapes_that_go_refuses(#[case] written: &str, #[case] expected: Option<&str>) {
        assert_eq!(refused_by_go(written).map(|(range, _)| &written[range]), expected);
    }
}
