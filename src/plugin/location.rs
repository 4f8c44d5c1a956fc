//! Where in the repository the plugin has been started.

use crate::package::definition::RelativePath;

/// The part of a repository that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// How many directories above the current one the files begin.
    pub up: usize,
    /// Directory of the repository that the files begin with; empty for its root.
    pub begins_at: String,
}

impl Location {
    /// The path from where the files begin to a path of the repository, or
    /// `None` if it is not among the files.
    pub fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.begins_at.is_empty() {
            return Some(path);
        }
        let rest = path.strip_prefix(&self.begins_at)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}

/// Finds out where the files begin, from the current directory and the
/// Application's path in the repository.
///
/// Argo CD sends either the whole repository or, with `manifest-generate-paths`,
/// only the directory that all of those have in common. It is unpacked into a
/// directory with a name of its own, so the current directory ends with as much
/// of the Application's path as is below where the files begin.
pub fn locate(current_directory: &[&str], source_path: &RelativePath) -> Location {
    let parts: Vec<&str> = source_path.as_str().split('/').filter(|part| !part.is_empty()).collect();
    let up = (0..=parts.len()).rev().find(|&up| {
        let tail = parts.get(parts.len() - up..).unwrap_or_default();
        current_directory.ends_with(tail)
    });
    let up = up.unwrap_or(0);
    let begins_at = parts.get(..parts.len() - up).unwrap_or_default().join("/");
    Location { up, begins_at }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::whole_repository(&["tmp", "0a1b", "clusters", "prod"], "clusters/prod", 2, "")]
    #[case::at_the_root(&["tmp", "0a1b"], "", 0, "")]
    #[case::narrowed(&["tmp", "0a1b", "prod"], "clusters/prod", 1, "clusters")]
    #[case::only_the_application(&["tmp", "0a1b"], "clusters/prod", 0, "clusters/prod")]
    #[case::repeated_names(&["tmp", "0a1b", "a"], "a/a", 1, "a")]
    #[case::never_above_the_copy(&["prod"], "clusters/prod", 1, "clusters")]
    fn the_files_begin_where_the_paths_agree(
        #[case] current: &[&str],
        #[case] source: &str,
        #[case] up: usize,
        #[case] begins_at: &str,
    ) {
        let location = locate(current, &RelativePath::parse(source).unwrap());
        assert_eq!(location, Location { up, begins_at: begins_at.to_owned() });
    }

    #[rstest]
    #[case::whole("", "charts/a", Some("charts/a"))]
    #[case::inside("clusters", "clusters/charts/a", Some("charts/a"))]
    #[case::itself("clusters", "clusters", Some(""))]
    #[case::outside("clusters", "charts/a", None)]
    #[case::beside("clusters", "clusters2/a", None)]
    fn what_was_not_sent_is_not_there(#[case] begins_at: &str, #[case] path: &str, #[case] below: Option<&str>) {
        assert_eq!(Location { up: 0, begins_at: begins_at.to_owned() }.below(path), below);
    }
}
