//! A scan of the bytes of an expression, without parsing it.

/// What the scan finds, outside of texts and comments.
pub(super) enum Token {
    /// An opening bracket of any kind.
    Open,
    /// A closing one.
    Close,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `?` of `a ? b : c`.
    Choice,
    /// So many `!` or `-` in a row, each of which nests.
    Prefix(usize),
}

/// Finds [`Token`]s.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    /// The next token and its offset.
    pub fn next(&mut self) -> Option<(usize, Token)> {
        loop {
            let offset = self.at;
            let byte = *self.bytes.get(offset)?;
            self.at += 1;
            let token = match byte {
                b'(' | b'[' | b'{' => Token::Open,
                b')' | b']' | b'}' => Token::Close,
                b'\'' | b'"' => {
                    self.skip_text(byte, is_raw(self.bytes, offset));
                    continue;
                }
                b'/' if self.bytes.get(self.at) == Some(&b'/') => {
                    self.skip_line();
                    continue;
                }
                b'&' if self.take(b'&') => Token::And,
                b'|' if self.take(b'|') => Token::Or,
                b'?' if offset == 0 || !matches!(self.bytes[offset - 1], b'.' | b'[') => Token::Choice,
                b'!' | b'-' => Token::Prefix(self.run(b"!-")),
                _ => continue,
            };
            return Some((offset, token));
        }
    }

    /// Takes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// Length of the run of `of`, spaces between them ignored, that began before.
    fn run(&mut self, of: &[u8]) -> usize {
        let mut length = 1;
        while let Some(byte) = self.bytes.get(self.at) {
            if of.contains(byte) {
                length += 1;
            } else if !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
        }
        length
    }

    fn skip_line(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| *byte != b'\n') {
            self.at += 1;
        }
    }

    /// Skips the text whose opening quote was just read. One that does not end
    /// runs to the end: the parser will say so.
    fn skip_text(&mut self, quote: u8, raw: bool) {
        let triple = self.bytes[self.at..].starts_with(&[quote, quote]);
        if triple {
            self.at += 2;
        }
        while let Some(byte) = self.bytes.get(self.at) {
            self.at += 1;
            if *byte == b'\\' && !raw {
                self.at += 1;
            } else if *byte == quote {
                if !triple {
                    return;
                }
                if self.bytes[self.at..].starts_with(&[quote, quote]) {
                    self.at += 2;
                    return;
                }
            }
        }
    }
}

/// Whether the quote at `offset` opens a raw text: `r'…'`, `rb"…"`, `bR'…'`.
fn is_raw(bytes: &[u8], offset: usize) -> bool {
    bytes[..offset]
        .iter()
        .rev()
        .take(2)
        .take_while(|byte| byte.is_ascii_alphabetic())
        .any(|byte| matches!(byte, b'r' | b'R'))
}

/// The operands of `&&` at the top of an expression; empty if there are none.
pub(super) fn conjuncts(text: &str) -> Vec<&str> {
    let mut scan = Scan::new(text);
    let (mut depth, mut start) = (0_usize, 0_usize);
    let mut parts = Vec::new();
    while let Some((offset, token)) = scan.next() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::And if depth == 0 => {
                parts.push(text[start..offset].trim());
                start = scan.at;
            }
            // `&&` binds closer than either.
            Token::Or | Token::Choice if depth == 0 => return Vec::new(),
            Token::And | Token::Or | Token::Choice | Token::Prefix(_) => {}
        }
    }
    if !parts.is_empty() {
        parts.push(text[start..].trim());
    }
    parts
}
