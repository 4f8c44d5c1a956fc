//! Helmfiles as they lie in files and directories.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::Streams;
use crate::import::Lookup;
use crate::package::source::Source;
use crate::package::yaml::MAX_FILE;

/// What helmfile looks for in a directory, the first that is there.
const NAMES: [&str; 3] = ["helmfile.yaml", "helmfile.yaml.gotmpl", "helmfile.d"];

/// Reads the helmfiles that the paths name. `-` is standard input.
///
/// # Errors
/// When something is not there or cannot be read.
pub fn read(paths: &[PathBuf], streams: &mut Streams<'_>) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let text = limited(&mut *streams.stdin).context("cannot read standard input")?;
            sources.push(Source::new("<stdin>", text));
            continue;
        }
        for file in files(path)? {
            let shown = file.display().to_string();
            let text = text(&file).with_context(|| format!("cannot read {shown}"))?;
            sources.push(Source::new(shown, text));
        }
    }
    Ok(sources)
}

/// The file itself, or those of a directory in the order helmfile takes them.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(known) = NAMES.iter().map(|name| path.join(name)).find(|path| path.exists()) {
        return files(&known);
    }
    let failed = || format!("cannot read {}", path.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(path).with_context(failed)? {
        let file = entry.with_context(failed)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_helmfile = [".yaml", ".yml", ".yaml.gotmpl"].iter().any(|ending| name.ends_with(ending));
        if is_helmfile && !name.starts_with('.') && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

fn text(path: &Path) -> anyhow::Result<String> {
    limited(fs::File::open(path)?)
}

fn limited(reader: impl std::io::Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(bytes.len() <= MAX_FILE, "it is larger than {} MiB", MAX_FILE >> 20);
    String::from_utf8(bytes).context("it is no UTF-8 text")
}

/// Text of a values file, by its path from where the command runs.
pub fn values_file(path: &str) -> Lookup {
    match Path::new(path).is_file().then(|| text(Path::new(path))) {
        Some(Ok(text)) => Lookup::Found(text),
        Some(Err(error)) => Lookup::Problem(format!("{path} cannot be read: {error:#}")),
        None => Lookup::Problem(format!("there is no file {path}")),
    }
}
