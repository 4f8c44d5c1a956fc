//! JSON pointers (RFC 6901): names of places in a document.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The pointer to where a walk through a document stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointer(String);

impl Pointer {
    /// Steps into the value of a key.
    pub fn push(&mut self, key: &str) {
        self.0.push('/');
        self.0.push_str(&escape(key));
    }

    /// Steps into an item of a list.
    pub fn push_index(&mut self, index: usize) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "/{index}");
    }

    /// Steps back out; at the root nothing happens.
    pub fn pop(&mut self) {
        let parent = self.0.rfind('/').unwrap_or_default();
        self.0.truncate(parent);
    }

    /// The text; empty at the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key as part of a pointer.
pub fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1").into() } else { key.into() }
}

/// The key that a part of a pointer stands for.
pub fn unescape(part: &str) -> Cow<'_, str> {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~").into() } else { part.into() }
}

/// Whether a pointer is another one, or leads on from it.
pub fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("a", "a")]
    #[case::slash("a/b", "a~1b")]
    #[case::tilde("~a~", "~0a~0")]
    #[case::what_looks_escaped("~1", "~01")]
    #[case::empty("", "")]
    fn keys_are_escaped_and_read_back(#[case] key: &str, #[case] part: &str) {
        assert_eq!(escape(key), part);
        assert_eq!(unescape(part), key);
    }

    #[test]
    fn a_walk_comes_back_to_where_it_was() {
        let mut pointer = Pointer::default();
        pointer.push("a/b");
        pointer.push_index(12);
        assert_eq!(pointer.as_str(), "/a~1b/12");
        pointer.pop();
        assert_eq!(pointer.as_str(), "/a~1b");
        pointer.pop();
        pointer.pop();
        assert_eq!(pointer.as_str(), "");
    }

    #[rstest]
    #[case::itself("/a/b", "/a/b", true)]
    #[case::further("/a/b/0", "/a/b", true)]
    #[case::of_the_root("/a", "", true)]
    #[case::another_of_the_same_beginning("/a/bc", "/a/b", false)]
    #[case::before_it("/a", "/a/b", false)]
    fn a_pointer_is_within_those_that_it_leads_on_from(#[case] inner: &str, #[case] outer: &str, #[case] within: bool) {
        assert_eq!(is_within(inner, outer), within);
    }
}
