//! Manifests to standard output, or to one file each.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::Streams;
use crate::package::yaml::write::write;

/// The first names of a list, and how many more there are.
pub fn first_of(names: &[impl AsRef<str>], most: usize) -> String {
    let shown = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Writes a stream of documents to standard output.
///
/// # Errors
/// When it cannot be written.
pub fn to_stdout(objects: &[Value], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let text = write(objects)?;
    streams.stdout.write_all(text.as_bytes())?;
    Ok(())
}

/// Writes `<kind>_<name>.yaml` for every object, as [`write_files`] does, and
/// gives the names.
///
/// # Errors
/// When two objects want one file, or something cannot be written.
pub fn to_directory(objects: &[Value], directory: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut files = BTreeMap::new();
    for object in objects {
        let name = file_name(object);
        if files.insert(name.clone(), write(std::slice::from_ref(object))?).is_some() {
            anyhow::bail!("two objects would be {name}: render their namespaces into directories of their own");
        }
    }
    write_files(&files, directory)?;
    Ok(files.into_keys().collect())
}

/// Names of the manifests in a directory that are none of `written`, sorted:
/// whoever applies the directory applies them as well.
///
/// # Errors
/// When the directory cannot be read.
pub fn other_manifests(directory: &Path, written: &BTreeSet<String>) -> anyhow::Result<Vec<String>> {
    let failed = || format!("cannot read {}", directory.display());
    let mut others = Vec::new();
    for entry in fs::read_dir(directory).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_manifest = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_manifest && !name.starts_with('.') && !written.contains(&name) {
            others.push(name);
        }
    }
    others.sort_unstable();
    Ok(others)
}

/// Writes texts by name of file. All files are complete under other names
/// before the first one gets its own, so what fails beforehand leaves the
/// directory as it was.
///
/// # Errors
/// When something cannot be written.
pub fn write_files(files: &BTreeMap<String, String>, directory: &Path) -> anyhow::Result<()> {
    if let Some(path) = files.keys().map(|name| directory.join(name)).find(|path| path.is_dir()) {
        anyhow::bail!("cannot write {}: there is a directory of that name", path.display());
    }
    if directory.is_file() {
        anyhow::bail!("cannot write into {}: it is a file, and a directory is wanted", directory.display());
    }
    if directory.is_symlink() && !directory.exists() {
        anyhow::bail!("cannot write into {}: it is a symbolic link that leads nowhere", directory.display());
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut temporary = Temporary::default();
    for (name, text) in files {
        let path = directory.join(format!(".{name}.{}.tmp", std::process::id()));
        temporary.write(path, text)?;
    }
    for (path, name) in temporary.0.iter().zip(files.keys()) {
        let target = directory.join(name);
        fs::rename(path, &target).with_context(|| format!("cannot write {}", target.display()))?;
    }
    Ok(())
}

/// Files under names of their own; what is left of them goes at the end.
#[derive(Default)]
struct Temporary(Vec<PathBuf>);

impl Temporary {
    fn write(&mut self, path: PathBuf, text: &str) -> anyhow::Result<()> {
        let failed = || format!("cannot write {}", path.display());
        let mut file = fs::File::create_new(&path).with_context(failed)?;
        self.0.push(path.clone());
        file.write_all(text.as_bytes()).with_context(failed)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        for path in &self.0 {
            // Those that have their own name by now are gone under this one.
            let _ = fs::remove_file(path);
        }
    }
}

/// Names of objects are checked to be DNS names, kinds are our own.
fn file_name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}_{}.yaml", text("/kind").to_lowercase(), text("/metadata/name"))
}
