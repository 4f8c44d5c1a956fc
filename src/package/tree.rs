//! Files, wherever they come from.

#[cfg(test)]
pub(crate) mod testing;

use std::io;

/// Kind of an entry of a [`Tree`]. Links are never followed by Windlass itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link; [`Tree::kind`] has not looked at its target.
    Symlink,
    /// A Git submodule: its files are in another repository.
    Submodule,
    /// A socket, device or the like.
    Other,
}

/// A directory tree to read from: a directory of this machine, standard input,
/// or a Git revision. Paths are relative to its root, separated by `/`,
/// without `.` and `..`; the root itself is the empty path.
pub trait Tree {
    /// Names and kinds of the entries of a directory, sorted by name.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn entries(&self, path: &str) -> io::Result<Vec<(String, EntryKind)>>;

    /// Content of a file of at most `limit` bytes.
    ///
    /// # Errors
    /// [`io::ErrorKind::FileTooLarge`] above the limit; else what reading gave.
    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>>;

    /// Kind of an entry, or `None` if there is none. A path that leads through
    /// a symbolic link is reported as [`EntryKind::Symlink`].
    ///
    /// # Errors
    /// When it cannot be found out.
    fn kind(&self, path: &str) -> io::Result<Option<EntryKind>>;

    /// What tells a file from all others, whatever path and tree it is reached by.
    ///
    /// # Errors
    /// When it cannot be found out.
    fn identity(&self, path: &str) -> io::Result<String> {
        Ok(path.to_owned())
    }

    /// Where the symbolic link at `path` leads, as a path in this tree; `None`
    /// if it leads out of the tree, or nowhere. Trees that cannot tell say `None`.
    ///
    /// # Errors
    /// When it cannot be found out.
    fn link_target(&self, path: &str) -> io::Result<Option<String>> {
        let _ = path;
        Ok(None)
    }
}
