//! Names: parsed once at the border, and the names of what Windlass makes.

use std::fmt;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Longest name of a child object. Names above it are shortened by [`child_name`].
pub const MAX_CHILD_NAME: usize = 63;
/// How much of a shortened child name stays readable.
const SHORTENED_PREFIX: usize = 54;

/// Why a text is not the name it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing there.
    #[error("{kind} is empty")]
    Empty {
        /// What the name is for.
        kind: &'static str,
    },
    /// Too long.
    #[error("{kind} `{text}` has {length} characters, at most {max} are allowed")]
    TooLong {
        /// What the name is for.
        kind: &'static str,
        /// The text.
        text: String,
        /// Its length.
        length: usize,
        /// The limit.
        max: usize,
    },
    /// A character, or a place for it, that is not allowed.
    #[error(
        "{kind} `{text}` must be lower-case letters, digits and `-`{dots}, starting and ending with a letter or digit"
    )]
    Malformed {
        /// What the name is for.
        kind: &'static str,
        /// The text.
        text: String,
        /// How dots are mentioned, if they are allowed.
        dots: &'static str,
    },
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// RFC 1123 label: no dots.
    Label,
    /// RFC 1123 subdomain: labels joined by dots.
    Subdomain,
}

fn parse(kind: &'static str, shape: Shape, max: usize, text: &str) -> Result<String, NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { kind });
    }
    let length = text.chars().count();
    if length > max {
        return Err(NameError::TooLong { kind, text: shorten_for_message(text), length, max });
    }
    let well_formed = match shape {
        Shape::Label => is_label(text),
        Shape::Subdomain => text.split('.').all(is_label),
    };
    if well_formed {
        Ok(text.to_owned())
    } else {
        let dots = if shape == Shape::Subdomain { " and `.`" } else { "" };
        Err(NameError::Malformed { kind, text: shorten_for_message(text), dots })
    }
}

fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn shorten_for_message(text: &str) -> String {
    const LIMIT: usize = 80;
    let mut short: String = text.chars().take(LIMIT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $shape:ident, $max:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Parses the name.
            ///
            /// # Errors
            /// Says what is wrong with the text.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                parse($kind, Shape::$shape, $max, text).map(Self)
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name!(
    /// Name of a Package: an RFC 1123 subdomain of at most 63 characters, so
    /// that it fits into a label's value.
    PackageName, "the name of a Package", Subdomain, 63
);
name!(
    /// Name of a namespace: an RFC 1123 label.
    Namespace, "a namespace", Label, 63
);
name!(
    /// Name of a component: an RFC 1123 label of at most 53 characters, Helm's
    /// limit for release names, which it becomes by default.
    ComponentName, "the name of a component", Label, 53
);
name!(
    /// Name of a Helm release: an RFC 1123 subdomain of at most 53 characters
    /// (Helm keeps the rest of 63 for its own suffixes).
    ReleaseName, "a release name", Subdomain, 53
);
name!(
    /// Name of some other Kubernetes object: an RFC 1123 subdomain.
    ObjectName, "the name of an object", Subdomain, 253
);

/// Name of the object that stands for a component: `<package>-<component>`,
/// shortened above 63 characters.
pub fn child_name(package: &PackageName, component: &ComponentName) -> String {
    fit(format!("{package}-{component}"), &format!("{package}/{component}"))
}

/// Name of the object that runs a hook in revision `number`:
/// `<package>-<component>-<number>`, shortened above 63 characters.
pub fn hook_child_name(package: &PackageName, component: &ComponentName, number: u64) -> String {
    fit(format!("{package}-{component}-{number}"), &format!("{package}/{component}/{number}"))
}

/// Name of a source shared by all children that point at the same thing:
/// `windlass-` and 12 hex digits of the SHA-256 of `identity`.
pub fn source_name(identity: &str) -> String {
    format!("windlass-{}", hex(identity, 12))
}

/// Name of revision `number` of a Package: `<package>-<number>`.
pub fn revision_name(package: &PackageName, number: u64) -> String {
    format!("{package}-{number}")
}

fn fit(name: String, identity: &str) -> String {
    if name.len() <= MAX_CHILD_NAME {
        return name;
    }
    let prefix = name.get(..SHORTENED_PREFIX).unwrap_or(&name).trim_end_matches(['-', '.']);
    format!("{prefix}-{}", hex(identity, 8))
}

/// The first `digits` hex digits of the SHA-256 of `text`.
pub(crate) fn hex(text: &str, digits: usize) -> String {
    let mut out = encode_hex(&Sha256::digest(text.as_bytes()));
    out.truncate(digits);
    out
}

/// Bytes as lower-case hex digits.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn child(package: &str, component: &str) -> String {
        child_name(&PackageName::parse(package).unwrap(), &ComponentName::parse(component).unwrap())
    }

    #[rstest]
    #[case::label("kubevirt", true)]
    #[case::dotted("cozystack.kubevirt", true)]
    #[case::digit_first("3scale", true)]
    #[case::empty("", false)]
    #[case::upper("KubeVirt", false)]
    #[case::edge("-kubevirt", false)]
    #[case::empty_label("a..b", false)]
    #[case::path("../../x", false)]
    #[case::substitution("${x}", false)]
    fn package_names(#[case] text: &str, #[case] valid: bool) {
        assert_eq!(PackageName::parse(text).is_ok(), valid);
    }

    #[test]
    fn component_names_leave_room_for_helm() {
        assert!(ComponentName::parse(&"a".repeat(53)).is_ok());
        assert!(matches!(ComponentName::parse(&"a".repeat(54)), Err(NameError::TooLong { length: 54, .. })));
    }

    #[test]
    fn short_child_names_are_kept() {
        assert_eq!(child("kubevirt", "operator"), "kubevirt-operator");
    }

    #[test]
    fn long_child_names_keep_54_characters_and_8_hex_digits() {
        let name = child(&"p".repeat(63), &"c".repeat(53));
        assert_eq!(name.len(), 63);
        assert_eq!(&name[..55], &format!("{}-", "p".repeat(54)));
    }

    #[test]
    fn a_shortened_name_never_has_two_separators_in_a_row() {
        let name = child(&format!("{}.{}", "p".repeat(53), "q".repeat(5)), &"c".repeat(20));
        assert_eq!(name, format!("{}-{}", "p".repeat(53), &name[54..]));
    }

    #[test]
    fn names_that_differ_only_at_the_end_stay_different() {
        let package = "p".repeat(60);
        assert_ne!(child(&package, "aaaaaa"), child(&package, "aaaaab"));
    }

    #[test]
    fn hook_children_carry_the_number() {
        let name = hook_child_name(&PackageName::parse("db").unwrap(), &ComponentName::parse("migrate").unwrap(), 7);
        assert_eq!(name, "db-migrate-7");
    }
}
