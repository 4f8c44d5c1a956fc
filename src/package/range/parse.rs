//! The grammar of one alternative of a range.

/// How a term compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// Which part of a term's version is absent or a wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// None: `1.2.3`.
    No,
    /// Everything: `*`.
    All,
    /// From the minor version on: `1`, `1.x`.
    Minor,
    /// The patch version: `1.2`, `1.2.x`.
    Patch,
}

/// One comparison.
#[derive(Clone, Debug)]
pub struct Term {
    pub operator: Operator,
    /// What it compares with; absent parts are 0.
    pub version: semver::Version,
    pub partial: Partial,
}

/// Longest spelling first.
const OPERATORS: [(&str, Operator); 12] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::Equal),
];

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

/// Reads the terms between two `||`; the first such part may begin with a
/// hyphen range at once, another one only behind white space or with a `v`.
pub fn terms(text: &str, first: bool) -> Result<Vec<Term>, String> {
    let mut rest = text.trim_start_matches(is_space);
    if rest.is_empty() {
        return Err("there is nothing in it, or nothing beside `||`: write `*` for any version".into());
    }
    let mut terms = Vec::new();
    // A hyphen range may stand where nothing, a comma or another one comes before it.
    let mut hyphen_allowed = first || text.starts_with(|c| is_space(c) || c == 'v');
    loop {
        let (bare, found, after) = term(rest)?;
        let upper = if bare { hyphen(after)? } else { None };
        let was_hyphen = upper.is_some();
        match upper {
            Some(_) if !hyphen_allowed => return Err("write a comma and a space before a range with a hyphen".into()),
            Some((to, after)) => {
                terms.push(Term { operator: Operator::GreaterEqual, ..found });
                terms.push(Term { operator: Operator::LessEqual, ..to });
                rest = after;
            }
            None => {
                terms.push(found);
                rest = after;
            }
        }
        let next = rest.trim_start_matches(is_space);
        let spaced = next.len() < rest.len();
        if next.is_empty() {
            return Ok(terms);
        }
        (rest, hyphen_allowed) = match next.strip_prefix(',') {
            Some(after) => (after.trim_start_matches(is_space), true),
            None if spaced || was_hyphen => (next, was_hyphen),
            None => return Err(format!("`{}` is not understood", shorten(next))),
        };
    }
}

/// ` - <version>`: the upper end of a hyphen range, if there is one.
fn hyphen(after: &str) -> Result<Option<(Term, &str)>, String> {
    let dash = after.trim_start_matches(is_space);
    let Some(to) = dash.strip_prefix('-').filter(|_| dash.len() < after.len()) else { return Ok(None) };
    let version = to.trim_start_matches(is_space);
    if version.len() == to.len() {
        return Ok(None);
    }
    let (bare, term, rest) = term(version)?;
    if bare { Ok(Some((term, rest))) } else { Err("a range with a hyphen has bare versions on both sides".into()) }
}

/// One comparison from the start of the text, whether it is without operator,
/// and what follows it.
fn term(text: &str) -> Result<(bool, Term, &str), String> {
    let operator =
        OPERATORS.iter().find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (*sign, *operator, rest)));
    let (sign, operator, rest) = operator.unwrap_or(("", Operator::Equal, text));
    let rest = rest.trim_start_matches(is_space);
    let (version, partial, after) = version(rest)?;
    Ok((sign.is_empty(), Term { operator, version, partial }, after))
}

fn version(text: &str) -> Result<(semver::Version, Partial, &str), String> {
    let problem = || match text {
        "" => "a version is missing at its end".to_owned(),
        text => format!("`{}` is no version", shorten(text)),
    };
    let (major, mut rest) = part(text.strip_prefix('v').unwrap_or(text)).ok_or_else(problem)?;
    let mut next = || {
        let (found, after) = part(rest.strip_prefix('.')?)?;
        rest = after;
        Some(found)
    };
    let (minor, patch) = match next() {
        Some(minor) => (Some(minor), next()),
        None => (None, None),
    };
    let (pre, rest) = identifiers(rest, '-');
    let (build, rest) = identifiers(rest, '+');
    let wild = |part: Option<&str>| part.is_none_or(|part| matches!(part, "x" | "X" | "*"));
    let number = |part: &str| part.parse::<u64>().map_err(|_| problem());
    let (partial, [major, minor, patch]) = match (major, minor, patch) {
        (major, ..) if wild(Some(major)) => (Partial::All, [0, 0, 0]),
        (major, minor, _) if wild(minor) => (Partial::Minor, [number(major)?, 0, 0]),
        (major, Some(minor), Some(patch)) if !wild(Some(patch)) => {
            (Partial::No, [number(major)?, number(minor)?, number(patch)?])
        }
        (major, minor, _) => (Partial::Patch, [number(major)?, number(minor.unwrap_or("0"))?, 0]),
    };
    let pre = semver::Prerelease::new(pre).map_err(|_| problem())?;
    if semver::BuildMetadata::new(build).is_err() {
        return Err(problem());
    }
    Ok((semver::Version { pre, ..semver::Version::new(major, minor, patch) }, partial, rest))
}

/// A number or wildcard from the start of the text.
fn part(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*'))).unwrap_or(text.len());
    text.split_at_checked(end).filter(|(part, _)| !part.is_empty())
}

/// `-alpha.1` or `+build.7` from the start of the text, without its sign.
fn identifiers(text: &str, sign: char) -> (&str, &str) {
    let Some(inner) = text.strip_prefix(sign) else { return ("", text) };
    let mut end = 0;
    for (index, piece) in inner.split('.').enumerate() {
        let length = piece.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(piece.len());
        if length == 0 {
            break;
        }
        end += length + usize::from(index > 0);
        if length < piece.len() {
            break;
        }
    }
    if end == 0 { ("", text) } else { inner.split_at_checked(end).unwrap_or(("", text)) }
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}
