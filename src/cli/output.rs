//! Output: manifests to standard output, files written whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::Streams;
use crate::package::yaml;

/// Writes a stream of documents to standard output.
///
/// # Errors
/// When it cannot be written.
pub fn to_stdout(objects: &[Value], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let text = yaml::write::write(objects)?;
    streams.stdout.write_all(text.as_bytes())?;
    streams.stdout.flush()?;
    Ok(())
}

/// Writes `<kind>_<name>.yaml` for every object, all of them or none.
///
/// # Errors
/// When two objects want one file, or something cannot be written.
pub fn to_directory(objects: &[Value], directory: &Path) -> anyhow::Result<usize> {
    let mut files = BTreeMap::new();
    for object in objects {
        let name = file_name(object);
        if directory.join(&name).is_dir() {
            anyhow::bail!("cannot write {}: there is a directory of that name", directory.join(&name).display());
        }
        if files.insert(name.clone(), yaml::write::write(std::slice::from_ref(object))?).is_some() {
            anyhow::bail!("two objects would be {name}: render their namespaces into directories of their own");
        }
    }
    let files: Vec<OutputFile> = files.into_iter().map(|(name, content)| OutputFile { name, content }).collect();
    write(directory, &files)?;
    Ok(files.len())
}

/// Names of objects are checked to be DNS names, kinds are our own.
fn file_name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}_{}.yaml", text("/kind").to_lowercase(), text("/metadata/name"))
}

/// A file to write.
pub struct OutputFile {
    /// Name without directories.
    pub name: String,
    /// Content.
    pub content: String,
}

/// Writes files into a directory, which is made if need be. All contents are on
/// disk under other names before the first file appears, so that a full disk or
/// a missing right leaves nothing half written.
pub fn write(directory: &Path, files: &[OutputFile]) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("cannot make directory {}", directory.display()))?;
    let mut staged = Staged(Vec::new());
    for file in files {
        let from = directory.join(format!(".{}.{}", file.name, std::process::id()));
        staged.0.push((from.clone(), directory.join(&file.name)));
        stage(&from, &file.content).with_context(|| format!("cannot write {}", from.display()))?;
    }
    for (from, to) in &staged.0 {
        fs::rename(from, to).with_context(|| format!("cannot write {}", to.display()))?;
    }
    staged.0.clear();
    Ok(())
}

fn stage(path: &Path, content: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

/// Files under their interim names; those left when writing fails are removed.
struct Staged(Vec<(PathBuf, PathBuf)>);

impl Drop for Staged {
    fn drop(&mut self) {
        for (from, _) in &self.0 {
            let _ = fs::remove_file(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> OutputFile {
        OutputFile { name: name.into(), content: format!("{name}\n") }
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_appear_under_their_names_only() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("new");
        write(&directory, &[file("a.yaml"), file("b.yaml")]).unwrap();
        assert_eq!(names(&directory), ["a.yaml", "b.yaml"]);
        assert_eq!(fs::read_to_string(directory.join("b.yaml")).unwrap(), "b.yaml\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_no_other() {
        let root = tempfile::tempdir().unwrap();
        let error = write(root.path(), &[file("a.yaml"), file("no/such.yaml")]).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        assert_eq!(names(root.path()), Vec::<String>::new());
    }
}
