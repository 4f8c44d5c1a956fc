//! What the parser complains of, in words for people who write expressions.

/// A message of the parser about what stands at the start of `rest`.
pub(super) fn plain(message: &str, rest: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    if message.starts_with("token recognition error") {
        return unread(rest);
    }
    if let Some((missing, at)) = message.strip_prefix("missing ").and_then(|said| said.split_once(" at ")) {
        let missing = quoted(missing);
        return match quoted(at) {
            "<EOF>" => format!("`{missing}` is missing at the end"),
            at => format!("`{missing}` is missing before `{at}`"),
        };
    }
    let unwanted = ["mismatched input ", "extraneous input ", "no viable alternative at input "];
    if let Some(found) = unwanted.iter().find_map(|start| message.strip_prefix(start)) {
        let found = found.split_once(" expecting ").map_or(found, |(found, _)| found);
        return match quoted(found) {
            "<EOF>" => ENDS_EARLY.to_owned(),
            _ if rest.trim().is_empty() => ENDS_EARLY.to_owned(),
            found => format!("`{found}` cannot stand here"),
        };
    }
    if let Some(word) = message.strip_prefix("reserved identifier: ") {
        return format!("`{word}` is a word that CEL reserves");
    }
    match message {
        "invalid int literal" | "invalid uint literal" => "this number does not fit 64 bits".to_owned(),
        "invalid double literal" => "this is no number".to_owned(),
        "argument must be a simple name" => "this must be a name, as in `exists(c, c.type == 'Ready')`".to_owned(),
        "invalid argument to has() macro" => "has(…) takes a field, as in `has(object.status.phase)`".to_owned(),
        message if message.starts_with("unsupported syntax") => {
            "names in backquotes are not read: write `object.metadata[\"some-name\"]`".to_owned()
        }
        message if message.contains("_?_:_") => "`?` needs a second value behind `:`".to_owned(),
        message if message.contains("Context") || message.contains("expecting") => "this is not CEL".to_owned(),
        message => message.to_owned(),
    }
}

const ENDS_EARLY: &str = "the expression ends too early";

/// What no token begins with.
fn unread(rest: &str) -> String {
    match rest.chars().next() {
        None => ENDS_EARLY.to_owned(),
        Some(quote @ ('\'' | '"')) if is_closed(rest, quote) => {
            "this text has a `\\` with something behind it that CEL does not know".to_owned()
        }
        Some('\'' | '"') => "this text has no end".to_owned(),
        Some(other) => format!("`{other}` cannot stand here"),
    }
}

/// Whether the text that begins with a quote has its other one.
pub(super) fn is_closed(rest: &str, quote: char) -> bool {
    let mut escaped = false;
    rest.chars().skip(1).any(|character| {
        let closes = character == quote && !escaped;
        escaped = character == '\\' && !escaped;
        closes
    })
}

fn quoted(text: &str) -> &str {
    text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text)
}
