//! Writes elements, with every text escaped.

use std::fmt::Write as _;

pub(super) struct Sheet {
    text: String,
}

impl Sheet {
    pub(super) fn new() -> Self {
        Self { text: String::new() }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// What needs no escaping.
    pub(super) fn raw(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, class: &str, about: &[(&str, &str)]) {
        let _ = write!(self.text, "<g class=\"{class}\"");
        for (name, value) in about {
            let _ = write!(self.text, " data-{name}=\"{}\"", escaped(value));
        }
        self.text.push_str(">\n");
    }

    pub(super) fn close(&mut self) {
        self.text.push_str("</g>\n");
    }

    pub(super) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
    }

    /// A box; who points at it is told something.
    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [u64; 4], told: &str) {
        let round = if class == "hook" { " rx=\"6\"" } else { "" };
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{round}"
        );
        self.end("rect", told);
    }

    /// A line in steps of a path.
    pub(super) fn path(&mut self, class: &str, steps: &str, told: &str) {
        let _ = write!(self.text, "<path class=\"{class}\" d=\"{steps}\"");
        self.end("path", told);
    }

    fn end(&mut self, tag: &str, told: &str) {
        if told.is_empty() {
            self.text.push_str("/>\n");
        } else {
            let _ = writeln!(self.text, "><title>{}</title></{tag}>", escaped(told));
        }
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (u64, u64), text: &str) {
        let _ = writeln!(self.text, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
    }

    /// A text of which only a part is shown.
    pub(super) fn part(&mut self, class: &str, (x, y): (u64, u64), shown: &str, whole: &str) {
        if shown == whole {
            return self.text(class, (x, y), shown);
        }
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"><title>{}</title>{}</text>",
            escaped(whole),
            escaped(shown)
        );
    }
}

/// Text as XML has it; characters that XML knows no way to write are replaced.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(escaped("</text><script>\"&'\u{7}\n"), "&lt;/text&gt;&lt;script&gt;&quot;&amp;'\u{fffd}&#10;");
    }
}
