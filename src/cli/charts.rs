//! `--charts`: directories with charts of repositories.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use super::directory::Directory;
use crate::chart::Library;

/// A directory that was named.
///
/// # Errors
/// When it is none.
pub fn open(directory: &Path) -> anyhow::Result<Directory> {
    let shown = directory.display();
    let is_directory = std::fs::metadata(directory).with_context(|| format!("cannot read {shown}"))?.is_dir();
    anyhow::ensure!(
        is_directory,
        "{shown} is no directory: charts are read unpacked, as `helm pull --untar` leaves them"
    );
    Ok(Directory::new(directory))
}

/// What is said of charts that were asked for and are not there.
pub fn absent(libraries: &[Library<'_>]) -> Option<String> {
    let absent: BTreeSet<String> = libraries.iter().flat_map(Library::absent).collect();
    let absent: Vec<String> = absent.into_iter().collect();
    (!absent.is_empty()).then(|| format!("not in --charts, and so not looked into: {}", absent.join(", ")))
}
