//! The `PATH…` of a command: files, directories and standard input.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use super::Streams;
use super::directory::Directory;
use crate::package::load::{Input, LoadError, Loaded, NamespaceRule, Search, load};
use crate::package::yaml::MAX_FILE;

/// Reads what the paths name, each once. `-` is standard input.
///
/// # Errors
/// When something is not there or cannot be read.
pub fn read(paths: &[PathBuf], namespace: &NamespaceRule, streams: &mut Streams<'_>) -> anyhow::Result<Loaded> {
    let (mut found, mut named) = (Vec::new(), BTreeSet::new());
    for path in paths {
        if named.insert(shortened(path)) {
            found.push(Found::new(path, streams)?);
        }
    }
    let inputs: Vec<Input<'_>> = found.iter().map(Found::input).collect();
    read_inputs(&inputs, namespace)
}

/// One spelling of a path: without `./` and slashes that mean nothing.
fn shortened(path: &Path) -> PathBuf {
    let inside = path.strip_prefix(".").ok().filter(|path| !path.as_os_str().is_empty());
    inside.unwrap_or(path).components().collect()
}

/// Reads what is known to be there.
///
/// # Errors
/// When something cannot be read.
pub fn read_inputs(inputs: &[Input<'_>], namespace: &NamespaceRule) -> anyhow::Result<Loaded> {
    load(inputs, namespace)
        .map_err(|LoadError { path, source }| anyhow::Error::new(source).context(format!("cannot read {path}")))
}

enum Found {
    Text(Vec<u8>),
    File { tree: Directory, name: String, shown: String },
    Directory { tree: Directory, shown: String },
}

impl Found {
    fn new(path: &Path, streams: &mut Streams<'_>) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            // One byte more than is allowed, so that what is too long is seen.
            let mut limited = std::io::Read::take(&mut *streams.stdin, MAX_FILE as u64 + 1);
            std::io::Read::read_to_end(&mut limited, &mut bytes).context("cannot read standard input")?;
            return Ok(Self::Text(bytes));
        }
        // As it was given: a slash behind the name of a file is a mistake.
        let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        let path = &shortened(path);
        let shown = path.display().to_string();
        if metadata.is_dir() {
            let shown = if path.components().eq([Component::CurDir]) { String::new() } else { shown };
            return Ok(Self::Directory { tree: Directory::new(path), shown });
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("cannot read {shown}: its name is no text"))?.to_owned();
        Ok(Self::File { tree: Directory::new(parent.unwrap_or(Path::new("."))), name, shown })
    }

    fn input(&self) -> Input<'_> {
        match self {
            Self::Text(bytes) => Input::Text { bytes: bytes.clone(), shown: "<stdin>".to_owned() },
            Self::File { tree, name, shown } => Input::File { tree, path: name.clone(), shown: shown.clone() },
            Self::Directory { tree, shown } => {
                Input::Directory { tree, path: String::new(), shown: shown.clone(), search: Search::Below }
            }
        }
    }
}
