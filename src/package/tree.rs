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

/// What is in a directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Names and kinds, sorted by name.
    pub entries: Vec<(String, EntryKind)>,
    /// The same of those whose names are no text, as far as they can be shown.
    pub unnamed: Vec<(String, EntryKind)>,
}

impl Listing {
    /// All of them.
    ///
    /// # Errors
    /// When a name is no text: left out in silence it would be missing from a digest.
    pub fn complete(self) -> io::Result<Vec<(String, EntryKind)>> {
        match self.unnamed.first() {
            Some((name, _)) => Err(io::Error::other(format!("the name of {name} is no text in UTF-8: rename it"))),
            None => Ok(self.entries),
        }
    }
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

    /// The same for whoever can pass over names that are no text.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self, path: &str) -> io::Result<Listing> {
        Ok(Listing { entries: self.entries(path)?, unnamed: Vec::new() })
    }

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

    /// Whether the symbolic link at `path`, which leads out of the tree, stands for a
    /// directory; no where that cannot be told.
    fn leads_to_directory(&self, path: &str) -> bool {
        let _ = path;
        false
    }
}
