//! Finding and reading files.

use std::io;

use super::document::read_text;
use super::{Input, LoadError, Loaded, NamespaceRule, Once, Search, finding};
use crate::package::source::{Source, Span};
use crate::package::tree::{EntryKind, Tree};
use crate::package::violation::Code;
use crate::package::yaml::MAX_FILE;

/// Deepest directory that is searched.
const MAX_DIRECTORY_DEPTH: usize = 64;

/// Reads an input, but for what was read before; of a directory what is not named
/// itself.
pub fn read_input(
    input: &Input<'_>,
    namespace: &NamespaceRule,
    once: &mut Once,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    match input {
        Input::Text { bytes, shown } => {
            add_bytes(bytes, shown, true, namespace, loaded);
            Ok(())
        }
        Input::File { tree, path, shown } if once.takes_named(*tree, path, shown)? => {
            add_read(tree.read(path, MAX_FILE as u64), shown, true, namespace, loaded)
        }
        Input::File { .. } => Ok(()),
        Input::Directory { tree, path, shown, search } => {
            let mut walk = Walk { tree: *tree, root: path, shown, search: *search, namespace, once };
            walk.directory(path, 0, loaded)
        }
    }
}

struct Walk<'a> {
    tree: &'a dyn Tree,
    root: &'a str,
    shown: &'a str,
    search: Search,
    namespace: &'a NamespaceRule,
    once: &'a mut Once,
}

impl Walk<'_> {
    fn directory(&mut self, path: &str, depth: usize, loaded: &mut Loaded) -> Result<(), LoadError> {
        let entries = self.tree.entries(path);
        let entries = entries.map_err(|source| LoadError { path: self.shown(path), source })?;
        let is_chart = |(name, kind): &(String, EntryKind)| name == "Chart.yaml" && *kind == EntryKind::File;
        if depth > 0 && entries.iter().any(is_chart) {
            return Ok(());
        }
        for (name, kind) in entries.iter().filter(|(name, _)| !name.starts_with('.')) {
            let inner = join(path, name);
            match kind {
                EntryKind::File if is_yaml(name) => {
                    let shown = self.shown(&inner);
                    if self.once.takes(self.tree, &inner, &shown)? {
                        self.file(&inner, &shown, loaded)?;
                    }
                }
                EntryKind::Directory if self.search == Search::Here => {}
                EntryKind::Directory if depth >= MAX_DIRECTORY_DEPTH => {
                    let error = io::Error::other(format!("directories nested deeper than {MAX_DIRECTORY_DEPTH}"));
                    return Err(LoadError { path: self.shown(&inner), source: error });
                }
                EntryKind::Directory => self.directory(&inner, depth + 1, loaded)?,
                EntryKind::Symlink => self.link(&inner, loaded)?,
                EntryKind::File | EntryKind::Submodule | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    fn file(&self, path: &str, shown: &str, loaded: &mut Loaded) -> Result<(), LoadError> {
        let read = self.tree.read(path, MAX_FILE as u64);
        match self.search {
            Search::Repository if read.as_ref().is_ok_and(|bytes| !may_have_a_package(bytes)) => Ok(()),
            Search::Here | Search::Below | Search::Repository => add_read(read, shown, false, self.namespace, loaded),
        }
    }

    /// A link to something below the directory is read in its own place; any
    /// other is refused, so that what is read never depends on what lies around.
    fn link(&self, path: &str, loaded: &mut Loaded) -> Result<(), LoadError> {
        let shown = self.shown(path);
        let target = self.tree.link_target(path).map_err(|source| LoadError { path: shown.clone(), source })?;
        let help = "replace it by the file it stands for, or remove it";
        match target.as_deref().map(|target| (target, self.below(target))) {
            Some((target, Some(below))) if !self.reads(path, target, below)? => {
                let message = format!("the symbolic link `{shown}` stands for `{below}`, which is not read there");
                report(loaded, &shown, Code::PathEscapes, message, help);
            }
            Some((_, Some(_))) => {}
            Some((_, None)) | None => {
                let message = format!("the symbolic link `{shown}` leads out of the directory, or nowhere");
                report(loaded, &shown, Code::PathEscapes, message, help);
            }
        }
        Ok(())
    }

    /// A path of the tree as one below the directory, if it is.
    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.root.is_empty() { Some(path) } else { path.strip_prefix(self.root)?.strip_prefix('/') }
    }

    /// Whether what a link stands for is read in its own place, or would not be
    /// read here either.
    fn reads(&self, link: &str, target: &str, below: &str) -> Result<bool, LoadError> {
        let kind = |path: &str| self.tree.kind(path).map_err(|source| LoadError { path: self.shown(path), source });
        let is_chart = |directory: &str| kind(&join(directory, "Chart.yaml")).map(|kind| kind == Some(EntryKind::File));
        let is_directory = kind(target)? == Some(EntryKind::Directory);
        let searched = if is_directory { self.search != Search::Here && !is_chart(target)? } else { is_yaml(link) };
        if !searched {
            return Ok(true);
        }
        let hidden = below.split('/').any(|part| part.starts_with('.'));
        let deeper = below.contains('/') && self.search == Search::Here;
        if hidden || deeper || !(is_directory || is_yaml(below)) {
            return Ok(false);
        }
        for (at, _) in below.match_indices('/') {
            if is_chart(&join(self.root, below.get(..at).unwrap_or_default()))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn shown(&self, path: &str) -> String {
        let below = path.strip_prefix(self.root).unwrap_or(path).trim_start_matches('/');
        match (self.shown, below) {
            (shown, "") => shown.to_owned(),
            ("", below) => below.to_owned(),
            // A Git revision: `main:packages/a.yaml`.
            (shown, below) if shown.ends_with(':') => format!("{shown}{below}"),
            (shown, below) => format!("{}/{below}", shown.trim_end_matches('/')),
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

fn is_yaml(name: &str) -> bool {
    [".yaml", ".yml"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

fn add_read(
    read: io::Result<Vec<u8>>,
    shown: &str,
    named: bool,
    namespace: &NamespaceRule,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    match read {
        Ok(bytes) => add_bytes(&bytes, shown, named, namespace, loaded),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => too_large(shown, loaded),
        Err(source) => return Err(LoadError { path: shown.to_owned(), source }),
    }
    Ok(())
}

/// Whether a file that lies in a directory can be about a Package: what others
/// keep beside them need not be YAML that we can read.
fn may_have_a_package(bytes: &[u8]) -> bool {
    let names = |text: &str| ["ackage", "windlass"].iter().any(|part| text.contains(part));
    std::str::from_utf8(bytes).map_or(true, names)
}

fn too_large(shown: &str, loaded: &mut Loaded) {
    let message = format!("the file is larger than {} MiB", MAX_FILE >> 20);
    report(loaded, shown, Code::TooLarge, message, "no Kubernetes object is nearly that large: split the file");
}

fn add_bytes(bytes: &[u8], shown: &str, named: bool, namespace: &NamespaceRule, loaded: &mut Loaded) {
    if bytes.len() > MAX_FILE {
        return too_large(shown, loaded);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            loaded.sources.push(Source::new(shown, text));
            read_text(loaded.sources.len() - 1, named, namespace, loaded);
        }
        Ok(text) => {
            let message = format!("the file is binary: there is a NUL in line {}", line_of(text.find('\0'), bytes));
            report(loaded, shown, Code::NotText, message, NO_TEXT);
        }
        Err(error) => {
            let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            let line = line_of(Some(error.valid_up_to()), bytes);
            let message = format!("the file is no UTF-8 text, from line {line} on (byte {})", error.valid_up_to());
            let help = if utf16 { "it looks like UTF-16: save it as UTF-8" } else { NO_TEXT };
            report(loaded, shown, Code::NotText, message, help);
        }
    }
}

/// What to do with a file that is no text.
const NO_TEXT: &str = "save it as UTF-8 text, or move it elsewhere if it is no manifest";

fn line_of(offset: Option<usize>, bytes: &[u8]) -> usize {
    let before = offset.and_then(|offset| bytes.get(..offset)).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn report(loaded: &mut Loaded, shown: &str, code: Code, message: String, help: &str) {
    loaded.sources.push(Source::new(shown, ""));
    let source = loaded.sources.len() - 1;
    loaded.diagnostics.push(finding(source, Span::default(), code, message, help));
}
