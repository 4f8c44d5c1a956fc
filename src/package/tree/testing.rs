//! A tree in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::{EntryKind, Tree};

/// Files by path, and links with their target (`None`: out of the tree).
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, Option<String>>,
}

impl Files {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        Self { files: files.collect(), links: BTreeMap::new() }
    }

    pub(crate) fn link(mut self, path: &str, target: Option<&str>) -> Self {
        self.links.insert(path.to_owned(), target.map(str::to_owned));
        self
    }

    fn below<'a>(&'a self, path: &str) -> impl Iterator<Item = (String, EntryKind)> + 'a {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        let files = self.files.keys().map(|path| (path, EntryKind::File));
        let all = files.chain(self.links.keys().map(|path| (path, EntryKind::Symlink)));
        all.filter_map(move |(path, kind)| {
            let rest = path.strip_prefix(&prefix)?;
            Some(
                rest.split_once('/')
                    .map_or((rest.to_owned(), kind), |(name, _)| (name.to_owned(), EntryKind::Directory)),
            )
        })
    }
}

impl Tree for Files {
    fn entries(&self, path: &str) -> io::Result<Vec<(String, EntryKind)>> {
        let entries: BTreeSet<_> = self.below(path).collect();
        if entries.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(entries.into_iter().collect()) }
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let bytes = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() as u64 > limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.clone()) }
    }

    fn kind(&self, path: &str) -> io::Result<Option<EntryKind>> {
        let through = |link: &String| path == link.as_str() || path.starts_with(&format!("{link}/"));
        Ok(if self.links.keys().any(through) {
            Some(EntryKind::Symlink)
        } else if self.files.contains_key(path) {
            Some(EntryKind::File)
        } else {
            self.below(path).next().map(|_| EntryKind::Directory)
        })
    }

    fn link_target(&self, path: &str) -> io::Result<Option<String>> {
        Ok(self.links.get(path).cloned().flatten())
    }
}
