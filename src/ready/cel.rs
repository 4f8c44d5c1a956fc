//! CEL expressions under limits: a Package is written by a tenant, and its
//! expressions run inside a controller that serves them all.
//!
//! What bounds an expression:
//!
//! * its text ([`MAX_BYTES`]) and nesting ([`MAX_LEVELS`]), found by a byte scan
//!   before the parser sees it, because the parser recurses and an overflown
//!   stack aborts the process;
//! * parsing and evaluation run on a thread with a large stack, where a panic
//!   becomes an error;
//! * evaluation burns [fuel](FUEL) per iteration and per byte it makes, which
//!   bounds time and memory the same way on every machine;
//! * a wall clock ([`WALL_CLOCK`]) ends what a single built-in function may
//!   still take. It is the one place of the pure modules with a timeout: it can
//!   only turn an answer into "no answer", never into another answer.

mod example;
mod flaws;
mod fuel;
mod library;
mod limits;
mod mismatches;
mod scan;
mod syntax;
mod values;
mod words;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use thiserror::Error;

pub use flaws::Flaw;
pub use syntax::Access;
pub use values::Variables;

/// Longest expression, in bytes.
pub const MAX_BYTES: usize = 4096;
/// Deepest nesting of an expression.
pub const MAX_LEVELS: usize = 32;
/// Deepest tree that is evaluated: chains of operators and selections nest too,
/// though not in the source. Unoptimised, a node takes 45 KiB of the worker's
/// stack.
const MAX_DEPTH: usize = 512;
/// What one evaluation may spend: 1 for an iteration, 16 for a value, 1 for a
/// byte of text.
pub const FUEL: u64 = 4 << 20;
/// Longest time one parse or evaluation may take.
pub const WALL_CLOCK: Duration = Duration::from_secs(2);

/// A parsed expression. Cheap to clone; evaluation never changes it.
#[derive(Clone)]
pub struct Expression {
    inner: Arc<Parsed>,
}

struct Parsed {
    text: String,
    roots: BTreeSet<String>,
    tree: ::cel::IdedExpr,
    metered: ::cel::IdedExpr,
    offsets: syntax::Offsets,
    parts: OnceLock<Vec<Expression>>,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CompileError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes from the start of the text.
    pub offset: usize,
}

impl CompileError {
    /// What to do about it in `text`, as far as the commonest slips can be told.
    pub fn help(&self, text: &str) -> String {
        syntax::help(self, text)
    }
}

/// What an expression came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is true.
    True,
    /// It is false.
    False,
    /// It is a value that is neither true nor false.
    NotBoolean {
        /// CEL type of the value.
        kind: String,
    },
    /// It asked for something the object does not have (yet).
    Missing {
        /// Path of what is absent, from the object: `status.phase`.
        path: String,
    },
    /// It cannot be evaluated on this object.
    Error {
        /// What went wrong.
        message: String,
    },
    /// It took more than it may.
    LimitExceeded,
}

impl Outcome {
    /// Whether the expression is true.
    pub fn is_true(&self) -> bool {
        *self == Self::True
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => formatter.write_str("is true"),
            Self::False => formatter.write_str("is false"),
            Self::NotBoolean { kind } => write!(formatter, "is of type {kind}, not bool"),
            Self::Missing { path } => write!(formatter, "{path} is not there yet"),
            Self::Error { message } => formatter.write_str(message),
            Self::LimitExceeded => formatter.write_str("took more time or memory than an expression may"),
        }
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// When the text is too long, nested too deeply, or not CEL.
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        limits::check(text)?;
        let source = text.to_owned();
        let parsed = worker::run(move || parse(source)).unwrap_or_else(|failure| {
            let message = match failure {
                worker::Failure::Panicked => "the expression cannot be parsed".to_owned(),
                worker::Failure::TimedOut => "the expression takes too long to parse".to_owned(),
            };
            Err(CompileError { message, offset: 0 })
        })?;
        Ok(Self { inner: Arc::new(parsed) })
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// The variables the expression reads: neither those it binds itself in
    /// `all`, `exists`, `map` and the like, nor names of types and functions.
    pub fn roots(&self) -> &BTreeSet<String> {
        &self.inner.roots
    }

    /// Where a variable is first read, in bytes from the start of the text.
    pub fn place_of_root(&self, name: &str) -> usize {
        syntax::place_of_root(&self.inner.tree, name, &self.inner.offsets)
    }

    /// Fields at or below `prefix` (such as `["object", "status"]`) that are read
    /// without a guard (`has`, `.?`): as long as one is absent the expression
    /// has no value.
    pub fn unguarded(&self, prefix: &[&str]) -> Vec<Access> {
        syntax::unguarded(&self.inner.tree, prefix, &self.inner.offsets)
    }

    /// The first operand that makes the expression an error on every object: one
    /// whose value is neither true nor false, where one of them is needed.
    pub fn never_boolean(&self) -> Option<Flaw> {
        flaws::never_boolean(&self.inner.tree, &self.inner.offsets)
    }

    /// Optional values (`object.?status`) that are compared with others: never equal.
    pub fn optional_comparisons(&self) -> Vec<Flaw> {
        flaws::optional_comparisons(&self.inner.tree, &self.inner.offsets)
    }

    /// Operands that do not go together on any object: text and a number, say.
    pub fn mismatches(&self) -> Vec<Flaw> {
        mismatches::mismatches(&self.inner.tree, &self.inner.offsets)
    }

    /// Where a version is ordered (`<`, `>=`), which text is letter by letter.
    pub fn ordered_as_text(&self) -> Vec<Flaw> {
        mismatches::ordered_as_text(&self.inner.tree, &self.inner.offsets)
    }

    /// Patterns of `matches` that are written out and no regular expressions, or too large.
    pub fn bad_patterns(&self) -> Vec<Flaw> {
        flaws::bad_patterns(&self.inner.tree, &self.inner.offsets)
    }

    /// The operands of `&&` at its top, to say which of them is false; empty for
    /// any other expression.
    pub fn parts(&self) -> &[Self] {
        self.inner.parts.get_or_init(|| {
            // What the whole text has passed, its parts pass as well.
            scan::conjuncts(self.text()).into_iter().filter_map(|part| Self::compile(part).ok()).collect()
        })
    }

    /// Evaluates the expression. Blocks the thread for the evaluation, which
    /// ends within [`WALL_CLOCK`].
    pub fn evaluate(&self, variables: &Variables<'_>) -> Outcome {
        let values = variables.values(self.roots());
        let parsed = Arc::clone(&self.inner);
        let ran = worker::run(move || fuel::spend(FUEL, || library::resolve(&parsed.metered, values)));
        let result = match ran {
            Ok(Some(result)) => result,
            Ok(None) | Err(worker::Failure::TimedOut) => return Outcome::LimitExceeded,
            Err(worker::Failure::Panicked) => {
                return Outcome::Error { message: "the expression cannot be evaluated".to_owned() };
            }
        };
        match result {
            Ok(library::Answer::Bool(true)) => Outcome::True,
            Ok(library::Answer::Bool(false)) => Outcome::False,
            Ok(library::Answer::Other { kind }) => Outcome::NotBoolean { kind },
            Err(error) => syntax::explain(&self.inner.tree, &error, variables),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Expression").field(&self.inner.text).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.inner.text == other.inner.text
    }
}

impl Eq for Expression {}

/// Runs on the worker: the parser and every walk over the tree recurse.
fn parse(text: String) -> Result<Parsed, CompileError> {
    let environment = library::environment().map_err(|message| CompileError { message, offset: 0 })?;
    let (tree, info) =
        environment.parser().parse_with_source_info(&text).map_err(|errors| syntax::compile_error(&text, &errors))?;
    let offsets = syntax::Offsets::of(&tree, &info, &text);
    syntax::check_functions(&tree, &offsets)?;
    let roots = syntax::roots(&tree);
    let metered = fuel::meter(tree.clone());
    if syntax::depth(&metered) > MAX_DEPTH {
        return Err(CompileError { message: syntax::TOO_LONG.to_owned(), offset: 0 });
    }
    Ok(Parsed { roots, metered, tree, offsets, text, parts: OnceLock::new() })
}
