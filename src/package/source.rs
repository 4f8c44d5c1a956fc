//! The text of a file and the places in it.

/// Bytes of a [`Source`], from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

/// A place as editors count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file that was read: its name for messages and its text.
#[derive(Clone, Debug)]
pub struct Source {
    path: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// A text under the name that messages give it.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let bytes = text.as_bytes();
        // As YAML has it: a lone carriage return ends a line too.
        let is_break = |(at, byte): &(usize, &u8)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let breaks = bytes.iter().enumerate().filter(is_break).map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(breaks).collect();
        Self { path: path.into(), text, line_starts }
    }

    /// Name of the file, as the user gave it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span; empty if the span is not of this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Line and column of an offset; offsets behind the end are at the end.
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        // Editors show no byte order mark, and count none.
        let before = self.text.get(start..offset).unwrap_or_default().trim_start_matches(BYTE_ORDER_MARK);
        let column = before.chars().count() + 1;
        Position { line, column }
    }

    /// The line that an offset is in, without its line break and a byte order mark, and
    /// where it starts.
    pub fn line_at(&self, offset: usize) -> (usize, &str) {
        let line = self.position(offset).line;
        let start = self.line_starts.get(line - 1).copied().unwrap_or_default();
        let end = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r']);
        line.strip_prefix(BYTE_ORDER_MARK).map_or((start, line), |rest| (start + BYTE_ORDER_MARK.len_utf8(), rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_from_one() {
        let source = Source::new("a.yaml", "é: 1\nb: ü x\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(6), Position { line: 2, column: 1 });
        assert_eq!(source.position(12), Position { line: 2, column: 6 });
        assert_eq!(source.position(999), Position { line: 3, column: 1 });
        assert_eq!(source.line_at(12), (6, "b: ü x"));
    }

    #[test]
    fn a_lone_carriage_return_ends_a_line() {
        let source = Source::new("a.yaml", "a: 1\rb: 2\r\nc: 3\r");
        assert_eq!(source.position(5), Position { line: 2, column: 1 });
        assert_eq!(source.line_at(6), (5, "b: 2"));
        assert_eq!(source.line_at(11), (11, "c: 3"));
        assert_eq!(source.position(16), Position { line: 4, column: 1 });
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        let source = Source::new("a.yaml", "\u{feff}a: 1\nb: 2\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(6), Position { line: 1, column: 4 });
        assert_eq!(source.line_at(6), (3, "a: 1"));
        assert_eq!(source.position(8), Position { line: 2, column: 1 });
    }

    #[test]
    fn an_empty_text_has_a_place() {
        assert_eq!(Source::new("-", "").position(0), Position { line: 1, column: 1 });
    }
}
