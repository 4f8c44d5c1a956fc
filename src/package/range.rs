//! Version ranges as Helm and Flux users write them.
//!
//! The grammar and its answers are those of Masterminds/semver v3, which both
//! use: `^1.2`, `~1.2`, `1.x`, `*`, `>=1 <2 || >=3`, `1.2 - 1.4`, commas or
//! white space for "and". Its corners are kept as they are, also the odd ones
//! (`^*` is `0.0.0`, `<=*` is below `0.1.0`): a range must not mean one thing
//! here and another in a chart beside it. The table of tests was made with it.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use thiserror::Error;

use super::version::Version;
use parse::{Partial, Term};

/// Longest range that is accepted, in bytes.
pub const MAX_RANGE: usize = 256;

/// A set of versions.
#[derive(Clone, Debug)]
pub struct Range {
    written: String,
    /// Alternatives; each is terms that all must hold.
    groups: Vec<Group>,
}

/// Terms that all must hold.
#[derive(Clone, Debug)]
struct Group {
    terms: Vec<Term>,
    /// Whether any term names a pre-release: else none is admitted.
    pre_releases: bool,
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
        let error = |problem| RangeError { text: text.chars().take(80).collect(), problem };
        if text.len() > MAX_RANGE {
            return Err(error(format!("it has {} characters, at most {MAX_RANGE} are allowed", text.len())));
        }
        let groups = text.split("||").enumerate().map(|(index, part)| parse::terms(part, index == 0));
        let groups = groups.collect::<Result<Vec<_>, _>>().map_err(error)?;
        let groups = groups.into_iter().map(|terms| {
            let pre_releases = terms.iter().any(|term| !term.version.pre.is_empty());
            Group { terms, pre_releases }
        });
        Ok(Self { written: text.to_owned(), groups: groups.collect() })
    }

    /// Whether the range contains `version`.
    ///
    /// A pre-release is contained only if the alternative that admits it names
    /// a pre-release itself, as in `>=1.2-0`.
    pub fn admits(&self, version: &Version) -> bool {
        self.contains(version.semver())
    }

    fn contains(&self, version: &semver::Version) -> bool {
        self.groups.iter().any(|group| {
            (version.pre.is_empty() || group.pre_releases) && group.terms.iter().all(|term| term.holds(version))
        })
    }

    /// Whether certainly no version is in both ranges.
    pub fn excludes(&self, other: &Self) -> bool {
        let candidates = self.candidates().chain(other.candidates());
        !candidates.into_iter().any(|candidate| self.contains(&candidate) && other.contains(&candidate))
    }

    /// Whether certainly no version is in the range, as in `>2 <1`.
    pub fn is_empty(&self) -> bool {
        !self.candidates().any(|candidate| self.contains(&candidate))
    }

    /// Whether certainly no version below `version` is in the range.
    pub fn excludes_below(&self, version: &Version) -> bool {
        let candidates = self.candidates().filter(|c| c.cmp_precedence(version.semver()).is_lt());
        !candidates.into_iter().any(|candidate| self.contains(&candidate))
    }

    /// Versions among which there is one of the range, or of its common part
    /// with another range whose candidates are there too, unless that is empty:
    /// the least version, and those at and right behind every bound.
    fn candidates(&self) -> impl Iterator<Item = semver::Version> + '_ {
        let least = std::iter::once(semver::Version::new(0, 0, 0));
        least.chain(self.groups.iter().flat_map(|group| &group.terms).flat_map(Term::neighbours))
    }

    /// The text as its author wrote it.
    pub fn as_written(&self) -> &str {
        &self.written
    }
}

/// Ranges are equal if they were written alike.
impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Range {}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.written)
    }
}

impl Term {
    /// Whether the term holds for a version. Whether pre-releases come into
    /// question is the group's business.
    fn holds(&self, version: &semver::Version) -> bool {
        use parse::Operator as Op;
        let order = version.cmp_precedence(&self.version);
        match (self.operator, self.partial) {
            (Op::Equal, Partial::No) => order.is_eq(),
            (Op::Equal, _) | (Op::Tilde, _) => order.is_ge() && self.within_tilde(version),
            (Op::NotEqual, partial) => !self.excluded(version, partial),
            (Op::Greater, Partial::No | Partial::All) => order.is_gt(),
            (Op::Greater, Partial::Minor) => version.major > self.version.major,
            (Op::Greater, Partial::Patch) => self.minor_of(version) > self.minor_of(&self.version),
            (Op::Less, _) => order.is_lt(),
            (Op::GreaterEqual, _) => order.is_ge(),
            (Op::LessEqual, Partial::No) => order.is_le(),
            (Op::LessEqual, Partial::Minor) => version.major <= self.version.major,
            (Op::LessEqual, Partial::Patch | Partial::All) => self.minor_of(version) <= self.minor_of(&self.version),
            (Op::Caret, _) => order.is_ge() && self.within_caret(version),
        }
    }

    fn minor_of(&self, version: &semver::Version) -> (u64, u64) {
        (version.major, version.minor)
    }

    fn within_tilde(&self, version: &semver::Version) -> bool {
        let own = &self.version;
        match self.partial {
            // `~0.0.0` and `*` admit everything from there on.
            Partial::No | Partial::All if (own.major, own.minor, own.patch) == (0, 0, 0) => true,
            Partial::Minor => version.major == own.major,
            Partial::No | Partial::All | Partial::Patch => self.minor_of(version) == self.minor_of(own),
        }
    }

    fn within_caret(&self, version: &semver::Version) -> bool {
        let own = &self.version;
        if own.major > 0 || self.partial == Partial::Minor {
            version.major == own.major
        } else if own.minor > 0 || self.partial == Partial::Patch {
            self.minor_of(version) == self.minor_of(own)
        } else {
            (version.major, version.minor, version.patch) == (0, 0, own.patch)
        }
    }

    /// What `!=` leaves out.
    fn excluded(&self, version: &semver::Version, partial: Partial) -> bool {
        let own = &self.version;
        match partial {
            Partial::No | Partial::All => version.cmp_precedence(own).is_eq(),
            Partial::Minor => version.major == own.major,
            Partial::Patch => self.minor_of(version) == self.minor_of(own) && version.pre == own.pre,
        }
    }

    /// The versions at the bounds of the term and right behind them.
    fn neighbours(&self) -> Vec<semver::Version> {
        let own = &self.version;
        let release = |major, minor, patch| semver::Version::new(major, minor, patch);
        let bounds = [
            release(own.major, own.minor, own.patch),
            release(own.major, own.minor, own.patch.saturating_add(1)),
            release(own.major, own.minor.saturating_add(1), 0),
            release(own.major.saturating_add(1), 0, 0),
        ];
        let mut found = vec![own.clone(), next_pre_release(own)];
        for bound in bounds {
            found.extend([
                bound.clone(),
                next_pre_release(&bound),
                release(bound.major, bound.minor, bound.patch.saturating_add(1)),
            ]);
        }
        found
    }
}

/// The least version above a pre-release, or the least pre-release of a release.
fn next_pre_release(version: &semver::Version) -> semver::Version {
    let text = if version.pre.is_empty() { "0".to_owned() } else { format!("{}.0", version.pre) };
    let pre = semver::Prerelease::new(&text).unwrap_or_default();
    semver::Version { pre, build: semver::BuildMetadata::EMPTY, ..version.clone() }
}
