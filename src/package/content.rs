//! What a chart directory holds: its version, and a digest of its content.

use std::io;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::names::encode_hex;
use super::tree::{EntryKind, Tree};
use super::version::Version;
use super::yaml;

/// Most files of a chart directory.
pub const MAX_FILES: usize = 10_000;
/// Most bytes of a chart directory.
pub const MAX_BYTES: u64 = 64 << 20;
/// Most bytes of a Chart.yaml.
const MAX_CHART_YAML: u64 = 1 << 20;
/// The values file that a chart has by itself.
pub const OWN_VALUES: &str = "values.yaml";
/// Left out: whether it is there depends on how the files came here.
const GIT: &str = ".git";

/// What a chart directory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartContent {
    /// `sha256:` and the hex digest of every file below the directory: their
    /// paths relative to it, in byte order, and their bytes. Neither modes nor
    /// times count, nor empty directories, nor anything named `.git`.
    pub digest: String,
    /// Version in its Chart.yaml.
    pub version: Version,
    /// Name in its Chart.yaml; empty if there is none.
    pub name: String,
    /// Paths of its files relative to it, in byte order.
    pub files: Vec<String>,
}

/// What to do about a submodule.
const WITH_SUBMODULES: &str =
    "compare two directories in which it is checked out (`git worktree add`, `git submodule update --init`)";

/// Why a directory could not be read as a chart.
#[derive(Debug, Error)]
pub enum ContentError {
    /// Nothing there.
    #[error("there is no directory `{0}`")]
    Missing(String),
    /// Not among the files that a plugin was given.
    #[error(
        "`{0}` is not among the files that Argo CD sent: name it in the Application's annotation \
         argocd.argoproj.io/manifest-generate-paths"
    )]
    NotSent(String),
    /// A file or something else.
    #[error("`{0}` is no directory")]
    NotADirectory(String),
    /// A link, which may lead out of the source.
    #[error("`{0}` is a symbolic link: put the files themselves there")]
    Symlink(String),
    /// In another repository.
    #[error("`{0}` is a Git submodule, whose files are not in this repository: {WITH_SUBMODULES}")]
    Submodule(String),
    /// Nothing there, and the directory above it is empty.
    #[error(
        "there is no directory `{missing}`, and `{empty}` is empty: if that is a Git submodule, run \
         `git submodule update --init`"
    )]
    Empty {
        /// What is not there.
        missing: String,
        /// What is empty.
        empty: String,
    },
    /// A device or the like.
    #[error("`{0}` is neither a file nor a directory")]
    Other(String),
    /// More than [`MAX_FILES`] files.
    #[error("`{0}` holds more than {MAX_FILES} files")]
    TooManyFiles(String),
    /// More than [`MAX_BYTES`] bytes.
    #[error("`{0}` holds more than 64 MiB")]
    TooLarge(String),
    /// Chart.yaml is absent or states no exact version.
    #[error("`{path}` is no chart: {problem}")]
    NoChart {
        /// The directory.
        path: String,
        /// What is wrong with its Chart.yaml.
        problem: String,
    },
    /// Something could not be read.
    #[error("`{path}` cannot be read")]
    Read {
        /// The file or directory.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// Reads a chart directory of a tree; the root is the empty path.
///
/// # Errors
/// See [`ContentError`]. Links are refused wherever they lead.
pub fn chart_content(tree: &dyn Tree, directory: &str) -> Result<ChartContent, ContentError> {
    let files = chart_files(tree, directory)?;
    let (version, name) = stated(tree, directory, &files)?;
    Ok(ChartContent { digest: digest(tree, directory, &files)?, version, name, files })
}

/// The version of a chart directory. Refuses what [`chart_content`] refuses but
/// for its size in bytes.
///
/// # Errors
/// See [`ContentError`].
pub fn chart_version(tree: &dyn Tree, directory: &str) -> Result<Version, ContentError> {
    let files = chart_files(tree, directory)?;
    stated(tree, directory, &files).map(|(version, _)| version)
}

pub(crate) fn chart_files(tree: &dyn Tree, directory: &str) -> Result<Vec<String>, ContentError> {
    let kind = tree.kind(directory).map_err(|source| ContentError::Read { path: directory.to_owned(), source })?;
    match kind {
        Some(EntryKind::Directory) => {}
        None => return Err(missing(tree, directory)),
        Some(EntryKind::Symlink) => return Err(ContentError::Symlink(directory.to_owned())),
        Some(EntryKind::Submodule) => return Err(ContentError::Submodule(directory.to_owned())),
        Some(EntryKind::File | EntryKind::Other) => return Err(ContentError::NotADirectory(directory.to_owned())),
    }
    files(tree, directory)
}

/// Why there is no directory: what is above it may tell.
pub(crate) fn missing(tree: &dyn Tree, directory: &str) -> ContentError {
    let above = directory.match_indices('/').rev().filter_map(|(end, _)| directory.get(..end));
    for above in std::iter::once(directory).chain(above) {
        let is_empty = || tree.entries(above).is_ok_and(|entries| entries.is_empty());
        match tree.kind(above) {
            Ok(Some(EntryKind::Submodule)) => return ContentError::Submodule(above.to_owned()),
            Ok(Some(EntryKind::Directory)) if is_empty() => {
                return ContentError::Empty { missing: directory.to_owned(), empty: above.to_owned() };
            }
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => break,
        }
    }
    ContentError::Missing(directory.to_owned())
}

/// Paths of all files below a directory, relative to it, in byte order.
fn files(tree: &dyn Tree, directory: &str) -> Result<Vec<String>, ContentError> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(relative) = open.pop() {
        let path = join(directory, &relative);
        let entries = tree.entries(&path).map_err(|source| ContentError::Read { path: path.clone(), source })?;
        for (name, kind) in entries.into_iter().filter(|(name, _)| name != GIT) {
            let entry = join(&relative, &name);
            match kind {
                EntryKind::File => found.push(entry),
                EntryKind::Directory => open.push(entry),
                EntryKind::Symlink => return Err(ContentError::Symlink(join(directory, &entry))),
                EntryKind::Submodule => return Err(ContentError::Submodule(join(directory, &entry))),
                EntryKind::Other => return Err(ContentError::Other(join(directory, &entry))),
            }
            if found.len() > MAX_FILES || open.len() > MAX_FILES {
                return Err(ContentError::TooManyFiles(directory.to_owned()));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn digest(tree: &dyn Tree, directory: &str, files: &[String]) -> Result<String, ContentError> {
    let mut hash = Sha256::new();
    hash.update(b"windlass chart content v1\n");
    let mut left = MAX_BYTES;
    for file in files {
        let bytes = read(tree, directory, &join(directory, file), left)?;
        let length = bytes.len() as u64;
        left = left.saturating_sub(length);
        // Lengths first: no two lists of files give one stream of bytes.
        hash.update((file.len() as u64).to_be_bytes());
        hash.update(file.as_bytes());
        hash.update(length.to_be_bytes());
        hash.update(&bytes);
    }
    Ok(format!("sha256:{}", encode_hex(&hash.finalize())))
}

/// Version and name in its Chart.yaml.
fn stated(tree: &dyn Tree, directory: &str, files: &[String]) -> Result<(Version, String), ContentError> {
    let no_chart = |problem: String| ContentError::NoChart { path: directory.to_owned(), problem };
    if !files.iter().any(|file| file == "Chart.yaml") {
        return Err(no_chart("it has no Chart.yaml".to_owned()));
    }
    let bytes = read(tree, directory, &join(directory, "Chart.yaml"), MAX_CHART_YAML)?;
    let text = String::from_utf8(bytes).map_err(|_| no_chart("its Chart.yaml is no text".to_owned()))?;
    let documents = yaml::parse(&text);
    if let Some(problem) = documents.problems.first() {
        return Err(no_chart(format!("its Chart.yaml is no YAML: {}", problem.message)));
    }
    let root = documents.documents.first();
    let field = |name: &str| root.and_then(|root| root.get(name)).and_then(|value| value.as_text());
    let version = field("version").ok_or_else(|| no_chart("its Chart.yaml states no version".to_owned()))?;
    let version = Version::parse(version)
        .map_err(|error| no_chart(format!("its Chart.yaml states no exact version: {error}")))?;
    Ok((version, field("name").unwrap_or_default().to_owned()))
}

fn read(tree: &dyn Tree, directory: &str, path: &str, limit: u64) -> Result<Vec<u8>, ContentError> {
    tree.read(path, limit).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => ContentError::TooLarge(directory.to_owned()),
        _ => ContentError::Read { path: path.to_owned(), source },
    })
}

fn join(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", name) => name.to_owned(),
        (directory, "") => directory.to_owned(),
        (directory, name) => format!("{directory}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::package::tree::testing::Files;

    const CHART: &str = "name: a\nversion: 1.2.3\n";

    /// Files, and links where there is no content.
    fn tree(files: &[(&str, Option<&'static str>)]) -> Files {
        let chart = [("charts/a/Chart.yaml", CHART)];
        let texts = files.iter().filter_map(|(path, content)| content.map(|content| (*path, content)));
        let links = files.iter().filter(|(_, content)| content.is_none());
        links.fold(Files::new(chart.into_iter().chain(texts)), |tree, (path, _)| tree.link(path, None))
    }

    fn digest_of(files: &[(&str, Option<&'static str>)]) -> String {
        chart_content(&tree(files), "charts/a").unwrap().digest
    }

    #[test]
    fn the_version_is_that_of_chart_yaml() {
        assert_eq!(chart_content(&tree(&[]), "charts/a").unwrap().version.as_written(), "1.2.3");
    }

    #[test]
    fn the_digest_never_changes_for_the_same_files() {
        let files = [("charts/a/templates/a.yaml", Some("x")), ("charts/a/values.yaml", Some("y"))];
        assert_eq!(digest_of(&files), "sha256:242a0cabc21f0e389ff2f401f58c95a13853dbc3b9f8c3ec35d4df68fe6fa84a");
    }

    #[rstest]
    #[case::content(&[("charts/a/b", Some("2")), ("charts/a/c", Some("1"))])]
    #[case::name(&[("charts/a/b", Some("1")), ("charts/a/d", Some("1"))])]
    #[case::place(&[("charts/a/b", Some("1")), ("charts/a/c/c", Some("1"))])]
    #[case::more(&[("charts/a/b", Some("1")), ("charts/a/c", Some("1")), ("charts/a/e", Some(""))])]
    #[case::moved_bytes(&[("charts/a/b", Some("")), ("charts/a/c", Some("11"))])]
    fn every_file_counts(#[case] files: &[(&str, Option<&'static str>)]) {
        assert_ne!(digest_of(files), digest_of(&[("charts/a/b", Some("1")), ("charts/a/c", Some("1"))]));
    }

    #[test]
    fn what_is_beside_the_chart_does_not_count_nor_does_git() {
        let others = [("charts/ab", Some("1")), ("charts/b/x", Some("1")), ("charts/a/.git/HEAD", Some("1"))];
        assert_eq!(digest_of(&others), digest_of(&[]));
    }

    #[rstest]
    #[case::link_inside(&[("charts/a/templates/b", None)], "charts/a", "`charts/a/templates/b` is a symbolic link: put the files themselves there")]
    #[case::missing(&[], "charts/b", "there is no directory `charts/b`")]
    #[case::file(&[], "charts/a/Chart.yaml", "`charts/a/Chart.yaml` is no directory")]
    #[case::link(&[("charts/l", None)], "charts/l", "`charts/l` is a symbolic link: put the files themselves there")]
    #[case::no_chart(&[("charts/c/values.yaml", Some(""))], "charts/c", "`charts/c` is no chart: it has no Chart.yaml")]
    #[case::no_version(&[("charts/c/Chart.yaml", Some("name: c"))], "charts/c", "`charts/c` is no chart: its Chart.yaml states no version")]
    #[case::binary(&[("charts/c/Chart.yaml", Some("a: \u{0}"))], "charts/c", "`charts/c` is no chart: its Chart.yaml is no YAML")]
    fn what_is_no_chart_is_refused(
        #[case] files: &[(&str, Option<&'static str>)],
        #[case] directory: &str,
        #[case] message: &str,
    ) {
        let error = chart_content(&tree(files), directory).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
