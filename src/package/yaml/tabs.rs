//! Tabs where Go's reader takes none and YAML 1.2 does: wherever a key could
//! begin, and in the indentation behind text without quotes.

use crate::package::source::Span;

/// A scalar as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Where.
    pub span: Span,
    /// How.
    pub style: Style,
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In quotes.
    Quoted,
    /// Behind `|` or `>`.
    Block,
}

/// The first tab of a text that Go refuses, given its scalars in their order.
pub fn refused_by_go(text: &str, tokens: &[Token]) -> Option<Span> {
    let mut scan =
        Scan { bytes: text.as_bytes(), at: 0, line: 0, may_begin: true, has_key: None, flow: 0, indents: Vec::new() };
    let found = tokens.iter().filter(|token| token.span.start < token.span.end).find_map(|token| {
        let found = scan.gap(token.span.start, token.style == Style::Block);
        found.or_else(|| scan.scalar(text, *token))
    });
    let at = found.or_else(|| scan.gap(text.len(), false))?;
    Some(Span { start: at, end: at + 1 })
}

/// A reading of what stands between scalars, as libyaml reads it.
struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Where the line begins.
    line: usize,
    /// Whether a key could begin here: no tab may stand before it.
    may_begin: bool,
    /// Column of what a `:` on this line would make a key.
    has_key: Option<usize>,
    /// Open brackets.
    flow: usize,
    /// Columns of the lists and maps around this place, brackets aside.
    indents: Vec<usize>,
}

impl Scan<'_> {
    /// Reads up to a place; `header`: a block scalar is there, whose blank lines
    /// are its own.
    fn gap(&mut self, end: usize, header: bool) -> Option<usize> {
        while self.at < end {
            let rest = self.bytes.get(self.at..end)?;
            match rest.first()? {
                b'\t' if self.flow == 0 && self.may_begin => return Some(self.at),
                b' ' | b'\t' => self.at += 1,
                b'\n' | b'\r' => self.next_line(),
                b'#' => self.at += rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len()),
                b'|' | b'>' if header => {
                    let found = before_block(rest_of(self.bytes, self.at));
                    let at = self.at;
                    self.at = end;
                    return found.map(|found| at + found);
                }
                b'-' | b'.' if self.is_marker() => {
                    self.indents.clear();
                    self.at += 3;
                    self.may_begin = false;
                }
                byte => self.indicator(*byte),
            }
        }
        None
    }

    fn next_line(&mut self) {
        self.at += 1;
        self.line = self.at;
        if self.flow == 0 {
            self.may_begin = true;
            self.has_key = None;
        }
    }

    fn column(&self) -> usize {
        let before = self.bytes.get(self.line..self.at).unwrap_or_default();
        // Bytes that go on a character are none.
        before.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
    }

    fn is_marker(&self) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends = rest.get(3).is_none_or(u8::is_ascii_whitespace);
        self.at == self.line && ends && (rest.starts_with(b"---") || rest.starts_with(b"..."))
    }

    fn indicator(&mut self, byte: u8) {
        let column = self.column();
        let stands_alone = self.bytes.get(self.at + 1).is_none_or(u8::is_ascii_whitespace);
        match byte {
            b'[' | b'{' => {
                self.enter(column);
                self.has_key.get_or_insert(column);
                self.flow += 1;
                self.may_begin = true;
            }
            b']' | b'}' => {
                self.flow = self.flow.saturating_sub(1);
                self.may_begin = false;
            }
            b',' => self.may_begin = true,
            b'-' | b'?' if stands_alone && self.flow == 0 => {
                self.enter(column);
                self.indent(column);
                self.may_begin = true;
                self.has_key = None;
            }
            b':' if self.flow == 0 => {
                let key = self.has_key.take();
                self.enter(key.unwrap_or(column));
                self.indent(key.unwrap_or(column));
                self.may_begin = key.is_none();
            }
            b':' => self.may_begin = false,
            _ => return self.word(column),
        }
        self.at += 1;
    }

    /// An anchor, an alias, a tag, or the beginning of a block scalar.
    fn word(&mut self, column: usize) {
        self.enter(column);
        if self.flow == 0 {
            self.has_key.get_or_insert(column);
        }
        self.may_begin = false;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends = |byte: &u8| byte.is_ascii_whitespace() || self.flow > 0 && b",[]{}".contains(byte);
        self.at += rest.iter().position(ends).unwrap_or(rest.len()).max(1);
    }

    /// Something begins at a column: what is further to the right has ended.
    fn enter(&mut self, column: usize) {
        while self.flow == 0 && self.indents.last().is_some_and(|last| *last > column) {
            self.indents.pop();
        }
    }

    fn indent(&mut self, column: usize) {
        if self.indents.last().is_none_or(|last| *last < column) {
            self.indents.push(column);
        }
    }

    fn scalar(&mut self, text: &str, token: Token) -> Option<usize> {
        let column = self.column();
        self.enter(column);
        if self.flow == 0 {
            self.has_key.get_or_insert(column);
        }
        let found = if token.style == Style::Plain { self.in_plain(token.span) } else { None };
        let written = text.get(token.span.start..token.span.end).unwrap_or_default();
        if let Some(last) = written.rfind('\n') {
            self.line = token.span.start + last + 1;
        }
        self.at = token.span.end;
        self.may_begin = token.style == Style::Block;
        if token.style == Style::Plain && found.is_none() {
            self.behind_plain(token.span.end);
        }
        found
    }

    /// A tab within the lines of text without quotes, or of those behind it, where Go
    /// looks for more of it: all of them are indented by spaces.
    fn in_plain(&self, span: Span) -> Option<usize> {
        let least = self.indents.last().map_or(0, |indent| indent + 1);
        // Where the blanks of a line begin, once the first has ended.
        let mut blank = None;
        for (at, byte) in rest_of(self.bytes, span.start).iter().enumerate() {
            let at = span.start + at;
            match (byte, blank) {
                (b'\t', Some(line)) if at - line < least => return Some(at),
                (b' ' | b'\t', _) => {}
                (b'\n' | b'\r', _) => blank = Some(at + 1),
                _ if at >= span.end => break,
                _ => blank = None,
            }
        }
        None
    }

    /// Goes to what follows text without quotes.
    fn behind_plain(&mut self, end: usize) {
        let blanks =
            rest_of(self.bytes, end).iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        let last = rest_of(self.bytes, end).iter().take(blanks).rposition(|byte| matches!(byte, b'\n' | b'\r'));
        if let Some(last) = last {
            self.at = end + blanks;
            self.line = end + last + 1;
            self.may_begin |= self.flow == 0;
            if self.flow == 0 {
                self.has_key = None;
            }
        }
    }
}

fn rest_of(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

/// Where a tab stands behind the first line of a block scalar and before its
/// text: Go counts the indentation there, unless it is stated.
fn before_block(header: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let end = header.iter().position(is_end)?;
    let stated = header.iter().take(3).take_while(|byte| !byte.is_ascii_whitespace()).any(u8::is_ascii_digit);
    let blanks = rest_of(header, end).iter().take_while(|byte| byte.is_ascii_whitespace());
    let tab = blanks.into_iter().position(|byte| *byte == b'\t').filter(|_| !stated)?;
    Some(end + tab)
}
