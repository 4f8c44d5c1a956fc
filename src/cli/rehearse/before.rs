//! What runs before: files, or what a Git revision has at the same places.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::{Streams, paths};
use crate::git::{GitError, Repository, Revision, is_both};
use crate::package::definition::RelativePath;
use crate::package::load::{Input, Loaded, NamespaceRule, Search};
use crate::package::tree::{EntryKind, Tree as _};

/// Reads what `--from` names; else says why that makes no sense.
///
/// # Errors
/// When it cannot be read.
pub fn read(
    from: &Path,
    wanted: &[PathBuf],
    rule: &NamespaceRule,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Result<Loaded, String>> {
    let Some(name) = from.to_str().filter(|name| *name != "-") else {
        return paths::read(&[from.to_owned()], rule, streams).map(Ok);
    };
    let repository = Repository::open(&around(wanted));
    if from.exists() {
        let full = repository.ok().and_then(|repository| repository.full_name(name));
        return match full {
            Some(full) => Ok(Err(is_both(name, if from.is_dir() { "directory" } else { "file" }, &full))),
            None => paths::read(&[from.to_owned()], rule, streams).map(Ok),
        };
    }
    let repository = match repository {
        // There may be such a revision: nobody has looked.
        Err(error @ GitError::NotOwned(_)) => return Err(error.into()),
        opened => opened.with_context(|| format!("`{name}` is no file or directory, and no revision either"))?,
    };
    let (revision, shown, places) = match repository.revision(name) {
        Ok(revision) => (revision, name, places(&repository, wanted, name)?),
        Err(error) => {
            let Some((commit, path)) = name.split_once(':').filter(|(commit, _)| !commit.is_empty()) else {
                return Err(error.into());
            };
            let path = RelativePath::parse(path).with_context(|| format!("`{path}` leads out of the repository"))?;
            (repository.revision(commit)?, commit, vec![path.as_str().to_owned()])
        }
    };
    let inputs = inputs(&revision, shown, &places)?;
    anyhow::ensure!(
        !inputs.is_empty(),
        "`{}` is not in {shown}: say REV:PATH where the Packages were at another place",
        places.join("`, `")
    );
    paths::read_inputs(&inputs, rule).map(Ok)
}

/// The directory whose repository is meant: that of the first PATH.
fn around(wanted: &[PathBuf]) -> PathBuf {
    let first = wanted.iter().find(|path| path.as_os_str() != "-").and_then(|path| path.canonicalize().ok());
    let directory = first.map(|path| if path.is_dir() { Some(path) } else { path.parent().map(Path::to_owned) });
    directory.flatten().unwrap_or_else(|| PathBuf::from("."))
}

/// The PATHs as paths of the repository.
fn places(repository: &Repository, wanted: &[PathBuf], name: &str) -> anyhow::Result<Vec<String>> {
    let say = format!("say {name}:PATH");
    let top = repository.top().with_context(|| format!("the repository has no files checked out: {say}"))?;
    let top = top.canonicalize().with_context(|| format!("cannot read {}", top.display()))?;
    let place = |path: &PathBuf| -> anyhow::Result<String> {
        let shown = path.display();
        anyhow::ensure!(path.as_os_str() != "-", "where is in {name} what stands on standard input here? {say}");
        let real = path.canonicalize().with_context(|| format!("cannot read {shown}"))?;
        let below = real.strip_prefix(&top).ok().and_then(Path::to_str);
        let below =
            below.with_context(|| format!("{shown} is not in the Git repository at {}: {say}", top.display()))?;
        Ok(below.replace(std::path::MAIN_SEPARATOR, "/"))
    };
    wanted.iter().map(place).collect()
}

/// What a revision has at these places.
fn inputs<'r>(revision: &'r Revision<'_>, name: &str, places: &[String]) -> anyhow::Result<Vec<Input<'r>>> {
    let mut inputs = Vec::new();
    for path in places {
        let (tree, path, shown) = (revision, path.clone(), format!("{name}:{path}"));
        match tree.kind(&path).with_context(|| format!("cannot read {shown}"))? {
            None => {}
            Some(EntryKind::Directory) => {
                inputs.push(Input::Directory { tree, path, shown, search: Search::Below });
            }
            Some(EntryKind::File) => inputs.push(Input::File { tree, path, shown }),
            Some(EntryKind::Symlink | EntryKind::Submodule | EntryKind::Other) => {
                anyhow::bail!("{shown} is neither a file nor a directory: say REV:PATH for another place")
            }
        }
    }
    Ok(inputs)
}
