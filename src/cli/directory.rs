//! Directories of this machine as [`Tree`]s.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::package::tree::{EntryKind, Listing, Tree};

/// A directory of this machine.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn kind_at(&self, path: &str) -> io::Result<Option<EntryKind>> {
        match fs::symlink_metadata(self.root.join(path)) {
            Ok(metadata) => Ok(Some(kind_of(metadata.file_type()))),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn kind_of(file_type: fs::FileType) -> EntryKind {
    if file_type.is_symlink() {
        EntryKind::Symlink
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}

impl Tree for Directory {
    fn entries(&self, path: &str) -> io::Result<Vec<(String, EntryKind)>> {
        self.list(path)?.complete()
    }

    fn list(&self, path: &str) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for entry in fs::read_dir(self.root.join(path))? {
            let entry = entry?;
            let kind = kind_of(entry.file_type()?);
            match entry.file_name().into_string() {
                Ok(name) => listing.entries.push((name, kind)),
                Err(name) => listing.unnamed.push((name.to_string_lossy().into_owned(), kind)),
            }
        }
        listing.entries.sort();
        listing.unnamed.sort();
        Ok(listing)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let file = fs::File::open(self.root.join(path))?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
    }

    fn kind(&self, path: &str) -> io::Result<Option<EntryKind>> {
        let mut walked = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(part);
            match self.kind_at(&walked)? {
                Some(EntryKind::Directory) => {}
                Some(EntryKind::Symlink) => return Ok(Some(EntryKind::Symlink)),
                found if walked.len() == path.len() => return Ok(found),
                _ => return Ok(None),
            }
        }
        self.kind_at(path)
    }

    fn identity(&self, path: &str) -> io::Result<String> {
        Ok(self.root.join(path).canonicalize()?.to_string_lossy().into_owned())
    }

    fn link_target(&self, path: &str) -> io::Result<Option<String>> {
        let root = self.root.canonicalize()?;
        // A link that cannot be followed, such as a loop, leads nowhere.
        let Ok(target) = self.root.join(path).canonicalize() else { return Ok(None) };
        let below = target.strip_prefix(&root).ok().and_then(Path::to_str);
        Ok(below.map(|below| below.replace(std::path::MAIN_SEPARATOR, "/")))
    }

    fn leads_to_directory(&self, path: &str) -> bool {
        self.root.join(path).is_dir()
    }
}
