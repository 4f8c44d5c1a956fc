//! `needs` of releases, and which releases belong together by them.

use super::Release;

/// A release as `needs` name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub context: String,
    pub namespace: String,
    pub name: String,
}

impl Id {
    /// `[[CONTEXT/]NAMESPACE/]NAME`; what is not written is that of the release that needs it. A
    /// context may have slashes of its own.
    pub fn parse(text: &str, of: &Id) -> Self {
        let (rest, name) = text.rsplit_once('/').map_or((None, text), |(rest, name)| (Some(rest), name));
        let (context, namespace) = match rest.map(|rest| rest.rsplit_once('/').unwrap_or(("", rest))) {
            None => (of.context.as_str(), of.namespace.as_str()),
            Some(("", namespace)) => (of.context.as_str(), namespace),
            Some((context, namespace)) => (context, namespace),
        };
        Self { context: context.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// What one of the `needs` of a release is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// A release, by its position.
    Release(usize),
    /// One that is left out, since it is not installed.
    LeftOut,
    /// None of the helmfile.
    Unknown,
}

/// Looks a need up among the releases of one helmfile.
pub(super) fn find(releases: &[Release], of: &Release, text: &str) -> Need {
    let id = Id::parse(text, &of.id);
    let known = releases.iter().enumerate().find(|(_, other)| other.helmfile == of.helmfile && other.id == id);
    match known {
        Some((_, release)) if !release.is_installed => Need::LeftOut,
        Some((position, _)) => Need::Release(position),
        None => Need::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn id(context: &str, namespace: &str, name: &str) -> Id {
        Id { context: context.into(), namespace: namespace.into(), name: name.into() }
    }

    #[rstest]
    #[case::name("db", id("east", "apps", "db"))]
    #[case::namespace("data/db", id("east", "data", "db"))]
    #[case::context("west/data/db", id("west", "data", "db"))]
    #[case::context_with_slashes("arn:aws:eks/cluster/west/data/db", id("arn:aws:eks/cluster/west", "data", "db"))]
    fn what_a_need_leaves_out_is_that_of_its_release(#[case] text: &str, #[case] wanted: Id) {
        assert_eq!(Id::parse(text, &id("east", "apps", "web")), wanted);
    }
}
