//! PATH arguments: files, directories and `-`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::directory::Directory;
use crate::package::load::Input;
use crate::package::yaml::MAX_FILE;

/// What the PATH arguments of a command stand for.
pub struct Inputs {
    opened: Vec<Opened>,
}

enum Opened {
    File { tree: Directory, name: String, shown: String },
    Directory { tree: Directory, shown: String },
    Stdin { bytes: Vec<u8> },
}

impl Inputs {
    /// Looks at every path; `-` is read at once.
    pub fn open(paths: &[PathBuf], stdin: &mut dyn Read) -> anyhow::Result<Self> {
        let opened = paths.iter().map(|path| open(path, stdin)).collect::<anyhow::Result<_>>()?;
        Ok(Self { opened })
    }

    /// The same for loading.
    pub fn as_inputs(&self) -> Vec<Input<'_>> {
        self.opened.iter().map(Opened::as_input).collect()
    }
}

impl Opened {
    fn as_input(&self) -> Input<'_> {
        match self {
            Self::File { tree, name, shown } => Input::File { tree, path: name.clone(), shown: shown.clone() },
            Self::Directory { tree, shown } => {
                Input::Directory { tree, path: String::new(), shown: shown.clone(), recursive: true }
            }
            Self::Stdin { bytes } => Input::Text { bytes: bytes.clone(), shown: "-".to_owned() },
        }
    }
}

fn open(path: &Path, stdin: &mut dyn Read) -> anyhow::Result<Opened> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        stdin.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
        return Ok(Opened::Stdin { bytes });
    }
    let shown = path.display().to_string();
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if metadata.is_dir() {
        let shown = if shown == "." { String::new() } else { shown };
        return Ok(Opened::Directory { tree: Directory::new(path), shown });
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename));
    let name = name.with_context(|| format!("cannot read {shown}"))?.to_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(Opened::File { tree: Directory::new(parent), name, shown })
}
