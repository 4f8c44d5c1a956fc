//! Finding and reading files.

use std::io;

use super::document::read_text;
use super::{Input, LoadError, Loaded, NamespaceRule, Once, Search, finding};
use crate::package::diagnostic::{Diagnostic, Severity};
use crate::package::source::{Source, Span};
use crate::package::tree::{EntryKind, Listing, Tree};
use crate::package::violation::Code;
use crate::package::yaml::MAX_FILE;

/// Deepest directory that is searched.
const MAX_DIRECTORY_DEPTH: usize = 64;
/// Largest file that is looked at for the name of our objects.
const MOST_LOOKED_AT: u64 = 64 << 20;

/// How a file was found, and what it is about: told before it is read as YAML.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It was named itself.
    Named,
    /// In a directory, and it may have Packages.
    WithPackages,
    /// In a directory, and no Package is in it.
    WithOthers,
    /// In a directory, and too large to be looked at.
    Unknown,
}

impl Found {
    /// How bad it is if it cannot be read.
    fn severity(self) -> Severity {
        match self {
            Self::Named | Self::WithPackages => Severity::Error,
            Self::WithOthers | Self::Unknown => Severity::Warning,
        }
    }
}

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
            add_bytes(bytes, shown, Found::Named, namespace, loaded);
            Ok(())
        }
        Input::File { tree, path, shown } if once.takes_named(*tree, path, shown)? => {
            add_read(tree.read(path, MAX_FILE as u64), shown, Found::Named, namespace, loaded)
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
        let listing = self.tree.list(path);
        let Listing { entries, unnamed } = listing.map_err(|source| LoadError { path: self.shown(path), source })?;
        let is_chart = |(name, kind): &(String, EntryKind)| name == "Chart.yaml" && *kind == EntryKind::File;
        if depth > 0 && entries.iter().any(is_chart) {
            return Ok(());
        }
        for (name, kind) in unnamed.iter().filter(|(name, _)| !name.starts_with('.')) {
            self.unnamed(&join(path, name), *kind, loaded);
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
                EntryKind::Submodule if self.search != Search::Here => {
                    let message = format!("`{inner}` is a Git submodule: Packages in it are not looked at");
                    let (shown, help) = (self.shown(&inner), "plan it in its own repository");
                    report(loaded, &shown, Severity::Warning, Code::PathEscapes, message, help);
                }
                EntryKind::File | EntryKind::Submodule | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    /// What could be or hold a Package is not left out in silence.
    fn unnamed(&self, path: &str, kind: EntryKind, loaded: &mut Loaded) {
        let could_be_read = match kind {
            EntryKind::File | EntryKind::Symlink => is_yaml(path),
            EntryKind::Directory => self.search != Search::Here,
            EntryKind::Submodule | EntryKind::Other => false,
        };
        if could_be_read {
            let shown = self.shown(path);
            let message = format!("the name of `{shown}` is no text in UTF-8, so that it cannot be read");
            report(loaded, &shown, Severity::Error, Code::NotText, message, "rename it");
        }
    }

    fn file(&self, path: &str, shown: &str, loaded: &mut Loaded) -> Result<(), LoadError> {
        let mut read = self.tree.read(path, MAX_FILE as u64);
        if is_too_large(&read) {
            read = self.tree.read(path, MOST_LOOKED_AT);
        }
        let found = match &read {
            Ok(bytes) if may_have_a_package(bytes) => Found::WithPackages,
            Ok(_) => Found::WithOthers,
            Err(_) => Found::Unknown,
        };
        match (self.search, found) {
            (Search::Repository, Found::WithOthers) => Ok(()),
            (_, found) => add_read(read, shown, found, self.namespace, loaded),
        }
    }

    /// A link to something below the directory is read in its own place; any
    /// other is refused, so that what is read never depends on what lies around.
    fn link(&self, path: &str, loaded: &mut Loaded) -> Result<(), LoadError> {
        let shown = self.shown(path);
        let target = self.tree.link_target(path).map_err(|source| LoadError { path: shown.clone(), source })?;
        let help = "replace it by the file it stands for, or remove it";
        let is_directory = |target: Option<&str>| match target {
            Some(target) => self.tree.kind(target).map(|kind| kind == Some(EntryKind::Directory)),
            None => Ok(self.tree.leads_to_directory(path)),
        };
        match target.as_deref().map(|target| (target, self.below(target))) {
            Some((target, Some(below))) if !self.reads(path, target, below)? => {
                let message = format!("the symbolic link `{shown}` stands for `{below}`, which is not read there");
                report(loaded, &shown, Severity::Error, Code::PathEscapes, message, help);
            }
            Some((_, Some(_))) => {}
            Some((_, None)) | None if is_yaml(path) => {
                let message = format!("the symbolic link `{shown}` leads out of the directory, or nowhere");
                report(loaded, &shown, Severity::Error, Code::PathEscapes, message, help);
            }
            Some((_, None)) | None => {
                let target = target.as_deref();
                let is_directory = is_directory(target).map_err(|source| LoadError { path: shown.clone(), source })?;
                let is_searched = is_directory && self.search != Search::Here;
                if is_searched && !target.map_or(Ok(false), |target| self.is_chart(target))? {
                    let message =
                        format!("the symbolic link `{path}` is not followed: Packages in it are not looked at");
                    let help = "name the directory that it stands for as well";
                    report(loaded, &shown, Severity::Warning, Code::PathEscapes, message, help);
                }
            }
        }
        Ok(())
    }

    fn is_chart(&self, directory: &str) -> Result<bool, LoadError> {
        let kind = self.tree.kind(&join(directory, "Chart.yaml"));
        let kind = kind.map_err(|source| LoadError { path: self.shown(directory), source })?;
        Ok(kind == Some(EntryKind::File))
    }

    /// A path of the tree as one below the directory, if it is.
    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.root.is_empty() { Some(path) } else { path.strip_prefix(self.root)?.strip_prefix('/') }
    }

    /// Whether what a link stands for is read in its own place, or would not be
    /// read here either.
    fn reads(&self, link: &str, target: &str, below: &str) -> Result<bool, LoadError> {
        let kind = |path: &str| self.tree.kind(path).map_err(|source| LoadError { path: self.shown(path), source });
        let is_directory = kind(target)? == Some(EntryKind::Directory);
        let searched =
            if is_directory { self.search != Search::Here && !self.is_chart(target)? } else { is_yaml(link) };
        if !searched {
            return Ok(true);
        }
        let hidden = below.split('/').any(|part| part.starts_with('.'));
        let deeper = below.contains('/') && self.search == Search::Here;
        if hidden || deeper || !(is_directory || is_yaml(below)) {
            return Ok(false);
        }
        for (at, _) in below.match_indices('/') {
            if self.is_chart(&join(self.root, below.get(..at).unwrap_or_default()))? {
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

fn is_too_large(read: &io::Result<Vec<u8>>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::FileTooLarge)
}

fn add_read(
    read: io::Result<Vec<u8>>,
    shown: &str,
    found: Found,
    namespace: &NamespaceRule,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    if is_too_large(&read) {
        too_large(shown, found, loaded);
        return Ok(());
    }
    let bytes = read.map_err(|source| LoadError { path: shown.to_owned(), source })?;
    add_bytes(&bytes, shown, found, namespace, loaded);
    Ok(())
}

/// Whether a file that lies in a directory can be about a Package: what others
/// keep beside them need not be YAML that we can read. UTF-16 has a NUL in every
/// other byte.
fn may_have_a_package(bytes: &[u8]) -> bool {
    let names = |text: &str| ["ackage", "windlass"].iter().any(|part| text.contains(part));
    match std::str::from_utf8(bytes) {
        Ok(text) => names(text),
        Err(_) => {
            let bytes: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
            names(&String::from_utf8_lossy(&bytes))
        }
    }
}

fn too_large(shown: &str, found: Found, loaded: &mut Loaded) {
    let message = format!("the file is larger than {} MiB", MAX_FILE >> 20);
    let help = "no Kubernetes object is nearly that large: split the file";
    report(loaded, shown, found.severity(), Code::TooLarge, message, help);
}

fn add_bytes(bytes: &[u8], shown: &str, found: Found, namespace: &NamespaceRule, loaded: &mut Loaded) {
    if bytes.len() > MAX_FILE {
        return too_large(shown, found, loaded);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            loaded.sources.push(Source::new(shown, text));
            read_text(loaded.sources.len() - 1, found == Found::Named, namespace, loaded);
        }
        Ok(text) => {
            let message = format!("the file is binary: there is a NUL in line {}", line_of(text.find('\0'), bytes));
            report(loaded, shown, found.severity(), Code::NotText, message, NO_TEXT);
        }
        Err(error) => {
            let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
            let line = line_of(Some(error.valid_up_to()), bytes);
            let message = format!("the file is no UTF-8 text, from line {line} on (byte {})", error.valid_up_to());
            let help = if utf16 { "it looks like UTF-16: save it as UTF-8" } else { NO_TEXT };
            report(loaded, shown, found.severity(), Code::NotText, message, help);
        }
    }
}

/// What to do with a file that is no text.
const NO_TEXT: &str = "save it as UTF-8 text, or move it elsewhere if it is no manifest";

fn line_of(offset: Option<usize>, bytes: &[u8]) -> usize {
    let before = offset.and_then(|offset| bytes.get(..offset)).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn report(loaded: &mut Loaded, shown: &str, severity: Severity, code: Code, message: String, help: &str) {
    loaded.sources.push(Source::new(shown, ""));
    let source = loaded.sources.len() - 1;
    loaded.diagnostics.push(Diagnostic { severity, ..finding(source, Span::default(), code, message, help) });
}
