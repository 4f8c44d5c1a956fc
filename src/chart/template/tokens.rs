//! A template cut into text and actions.

/// White space to a template.
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// What stands as it is, trimmed as the actions beside it say.
    Text(&'t str),
    /// What is between `{{` and `}}`; empty for a comment.
    Action {
        /// The code.
        code: &'t str,
        /// Whether a line break before it was trimmed away.
        after_break: bool,
    },
}

/// Cuts a template; `None` if an action does not end.
pub fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let (mut tokens, mut rest, mut trims_next) = (Vec::new(), text, false);
    loop {
        let (before, inside) = rest.split_once("{{").map_or((rest, None), |(before, inside)| (before, Some(inside)));
        let before = if trims_next { before.trim_start_matches(SPACE) } else { before };
        let Some(inside) = inside else {
            push(&mut tokens, before);
            return Some(tokens);
        };
        let trimming = inside.strip_prefix('-').filter(|more| more.starts_with(SPACE));
        let kept = if trimming.is_some() { before.trim_end_matches(SPACE) } else { before };
        let after_break = before.get(kept.len()..).is_some_and(|gone| gone.contains('\n'));
        push(&mut tokens, kept);
        let (code, after) = action(trimming.unwrap_or(inside))?;
        let trimmed = code.strip_suffix('-').filter(|code| code.ends_with(SPACE) || code.ends_with("*/"));
        trims_next = trimmed.is_some();
        let code = trimmed.unwrap_or(code).trim_matches(SPACE);
        tokens.push(Token::Action { code: if code.starts_with("/*") { "" } else { code }, after_break });
        rest = after;
    }
}

fn push<'t>(tokens: &mut Vec<Token<'t>>, text: &'t str) {
    if !text.is_empty() {
        tokens.push(Token::Text(text));
    }
}

/// The code of an action that has just begun, and what comes after it.
fn action(inside: &str) -> Option<(&str, &str)> {
    if inside.trim_start_matches(SPACE).starts_with("/*") {
        let end = inside.find("*/")? + 2;
        let close = inside.get(end..)?.find("}}")? + end;
        return Some((inside.get(..close)?, inside.get(close + 2..)?));
    }
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in inside.char_indices() {
        match quote {
            Some('`') if letter == '`' => quote = None,
            Some('`') => {}
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '"' | '\'' | '`') => quote = Some(letter),
            None if inside.get(at..).is_some_and(|rest| rest.starts_with("}}")) => {
                return Some((inside.get(..at)?, inside.get(at + 2..)?));
            }
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(code: &str, after_break: bool) -> Token<'_> {
        Token::Action { code, after_break }
    }

    #[test]
    fn actions_trim_the_text_beside_them() {
        let found = tokens("a: 1\n{{- if .x }}\n  b\n{{ end -}}\n\n c {{-3}}").unwrap();
        let expected = [
            Token::Text("a: 1"),
            action("if .x", true),
            Token::Text("\n  b\n"),
            action("end", false),
            Token::Text("c "),
            action("-3", false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn braces_in_texts_and_comments_end_nothing() {
        let found = tokens("{{ \"}}\\\"\" }}{{ `}}` }}{{/* }} it's */}}{{- /* a */ -}} x").unwrap();
        let codes = found.iter().map(|token| match token {
            Token::Action { code, .. } => *code,
            Token::Text(text) => text,
        });
        assert_eq!(codes.collect::<Vec<_>>(), ["\"}}\\\"\"", "`}}`", "", "", "x"]);
    }

    #[test]
    fn what_does_not_end_is_not_read() {
        assert_eq!(tokens("{{ .a }"), None);
        assert_eq!(tokens("{{ \"a }}"), None);
    }
}
