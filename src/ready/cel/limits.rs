//! The scan before the parser.

use super::{CompileError, MAX_BYTES, MAX_LEVELS};

/// Refuses what the parser must not see.
pub(super) fn check(text: &str) -> Result<(), CompileError> {
    let refuse = |message: String, offset| Err(CompileError { message, offset });
    if text.len() > MAX_BYTES {
        return refuse(format!("the expression has {} bytes, the most is {MAX_BYTES}", text.len()), MAX_BYTES);
    }
    if text.trim().is_empty() {
        return refuse("the expression is empty".to_owned(), 0);
    }
    let mut levels = 0_usize;
    let mut scan = Scan { bytes: text.as_bytes(), at: 0 };
    while let Some((offset, token)) = scan.next() {
        let deepest = match token {
            Token::Open => {
                levels += 1;
                levels
            }
            Token::Close => {
                levels = levels.saturating_sub(1);
                levels
            }
            Token::Prefix(run) => levels + run,
        };
        if deepest > MAX_LEVELS {
            return refuse(format!("the expression is nested deeper than {MAX_LEVELS} levels"), offset);
        }
    }
    Ok(())
}

enum Token {
    Open,
    Close,
    /// So many `!` or `-` in a row, each of which nests.
    Prefix(usize),
}

/// Finds what nests, outside of texts and comments.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<(usize, Token)> {
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
                b'!' | b'-' => Token::Prefix(self.run(b"!-")),
                _ => continue,
            };
            return Some((offset, token));
        }
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
