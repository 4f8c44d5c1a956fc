//! Versions of packages and charts.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use thiserror::Error;

/// Longest version that is accepted, in characters.
pub const MAX_VERSION: usize = 64;

/// An exact semantic version. A leading `v` is accepted and kept in
/// [`Version::as_written`], but does not distinguish versions.
#[derive(Clone, Debug)]
pub struct Version {
    written: String,
    parsed: semver::Version,
}

/// Why a text is no exact version.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VersionError {
    /// Longer than [`MAX_VERSION`].
    #[error("a version has at most {MAX_VERSION} characters, this one has {0}")]
    TooLong(usize),
    /// No semantic version.
    #[error("`{0}` is no exact version: write all three numbers, such as `1.4.0`")]
    Malformed(String),
}

impl Version {
    /// Parses `1.2.3`, `v1.2.3`, `1.2.3-rc.1`, `1.2.3+build`.
    ///
    /// # Errors
    /// When the text is a range, is incomplete or too long.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let length = text.chars().count();
        if length > MAX_VERSION {
            return Err(VersionError::TooLong(length));
        }
        let bare = text.strip_prefix('v').unwrap_or(text);
        let parsed = semver::Version::parse(bare).map_err(|_| VersionError::Malformed(text.to_owned()))?;
        Ok(Self { written: text.to_owned(), parsed })
    }

    /// The text as its author wrote it.
    pub fn as_written(&self) -> &str {
        &self.written
    }

    /// The parsed version.
    pub fn semver(&self) -> &semver::Version {
        &self.parsed
    }

    /// Compares the way semantic versioning orders releases: build metadata
    /// does not count.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        self.parsed.cmp_precedence(&other.parsed)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.parsed == other.parsed
    }
}

impl Eq for Version {}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parsed.hash(state);
    }
}

impl fmt::Display for Version {
    /// Without a leading `v`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parsed.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::leading_v("v1.9.0", "1.9.0")]
    #[case::pre_release("1.9.0-rc.1", "1.9.0-rc.1")]
    #[case::build("1.9.0+b7", "1.9.0+b7")]
    fn a_leading_v_does_not_count(#[case] text: &str, #[case] shown: &str) {
        let version = Version::parse(text).unwrap();
        assert_eq!(version.to_string(), shown);
        assert_eq!(version.as_written(), text);
        assert_eq!(version, Version::parse(shown).unwrap());
    }

    #[rstest]
    #[case::range("^1.9")]
    #[case::partial("1.9")]
    #[case::wildcard("1.9.x")]
    #[case::empty("")]
    #[case::leading_zero("1.09.0")]
    #[case::capital("V1.9.0")]
    fn only_exact_versions_are_accepted(#[case] text: &str) {
        assert!(matches!(Version::parse(text), Err(VersionError::Malformed(_))));
    }

    #[test]
    fn versions_have_a_longest_form() {
        assert_eq!(Version::parse(&format!("1.0.0-{}", "a".repeat(60))), Err(VersionError::TooLong(66)));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let [nine, ten] = ["1.9.0", "1.10.0"].map(|text| Version::parse(text).unwrap());
        assert_eq!(nine.cmp_precedence(&ten), Ordering::Less);
    }
}
