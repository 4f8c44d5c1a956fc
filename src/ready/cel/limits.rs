//! The check before the parser.

use super::scan::{Scan, Token};
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
    let mut scan = Scan::new(text);
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
            Token::And | Token::Or | Token::Choice => levels,
        };
        if deepest > MAX_LEVELS {
            return refuse(format!("the expression is nested deeper than {MAX_LEVELS} levels"), offset);
        }
    }
    Ok(())
}
