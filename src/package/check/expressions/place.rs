//! Places of a text in the way YAML writes it.

/// Where an offset of a text is in the scalar that holds it: in one line or a block of
/// them, folded or not, in quotes with escapes or without. `None` if it cannot be told.
pub fn of(written: &str, text: &str, offset: usize) -> Option<usize> {
    let quote = written.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut at = usize::from(quote.is_some());
    let mut characters = text.get(..offset)?.chars();
    loop {
        at += continued(written.get(at..)?, quote);
        let Some(wanted) = characters.next() else { return Some(at) };
        at += step(written.get(at..)?, wanted, quote)?;
    }
}

/// What a line that goes on behind a backslash takes.
fn continued(rest: &str, quote: Option<char>) -> usize {
    let next = rest.strip_prefix('\\').filter(|next| quote == Some('"') && next.starts_with(['\n', '\r']));
    next.map_or(0, |next| 1 + blanks(next))
}

fn blanks(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len()
}

/// How far one character of the text reaches.
fn step(rest: &str, wanted: char, quote: Option<char>) -> Option<usize> {
    let found = rest.chars().next()?;
    if found == '\\' && quote == Some('"') {
        let kind = rest.chars().nth(1)?;
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        return Some(1 + kind.len_utf8() + digits);
    }
    if found == '\'' && quote == Some('\'') {
        return rest.starts_with("\'\'").then_some(2);
    }
    if wanted.is_whitespace() {
        return Some(folded(rest, wanted));
    }
    (found == wanted).then_some(found.len_utf8())
}

/// What a blank or a line break of the text is written as: itself, or a line break with
/// all blanks around it. Empty lines that make a line break are gone with the first.
fn folded(rest: &str, wanted: char) -> usize {
    let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let breaks = rest.get(blank..).is_some_and(|behind| behind.starts_with(['\n', '\r']));
    match (breaks, wanted) {
        (true, _) => blanks(rest),
        (false, ' ' | '\t') if rest.starts_with(wanted) => 1,
        (false, _) => 0,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::package::yaml;

    #[rstest]
    #[case::plain("object.a && here")]
    #[case::plain_of_two_lines("object.a &&\n    here")]
    #[case::single_quotes("'object.a == ''x'' && here'")]
    #[case::double_quotes(r#""object.a == \"x\" && here""#)]
    #[case::other_escapes(r#""object.a == '\x41\u00e9\U0001F600\t\\' && here""#)]
    #[case::quotes_of_two_lines("\"object.a\n      && here\"")]
    #[case::line_that_goes_on("\"object.a\\\n      && here\"")]
    #[case::folded(">-\n    object.a == 1 &&\n    'é' != '' &&\n    here")]
    #[case::folded_with_an_empty_line(">-\n    object.a &&\n\n    here")]
    #[case::literal("|\n    object.a == 1 &&\n      object.b &&\n    here\n")]
    #[case::literal_with_an_empty_line("|\n    object.a == 1 &&\n\n    here\n")]
    #[case::characters_of_several_bytes("object.a == '漢😀' && here")]
    #[case::tab("|\n    object.a\t==\t1 && here\n")]
    fn a_word_is_found_as_it_is_written(#[case] value: &str) {
        let file = format!("a:\n  b: {value}");
        let parsed = yaml::parse(&file);
        assert_eq!(parsed.problems, []);
        let node = parsed.documents[0].find("/a/b").unwrap();
        let (text, written) = (node.as_text().unwrap(), &file[node.span.start..node.span.end]);
        let at = of(written, text, text.find("here").unwrap()).unwrap();
        assert_eq!(written.get(at..at + 4), Some("here"), "{written:?} {text:?}");
    }

    #[test]
    fn what_is_written_otherwise_has_no_place() {
        assert_eq!(of("abc", "abd", 3), None);
        assert_eq!(of("", "abd", 3), None);
    }
}
