//! Git repositories, read from their object database: nothing is checked out,
//! nothing is fetched. Bare and shallow ones are as good.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType};
use thiserror::Error;

use crate::package::tree::{EntryKind, Listing, Tree};

/// Most links that one path may lead through, as on Linux.
const MOST_LINKS: usize = 40;
const FILE_MODE_LINK: i32 = 0o120_000;

/// Why a repository or a revision cannot be read.
#[derive(Debug, Error)]
pub enum GitError {
    /// There is no repository.
    #[error("there is no Git repository at {0}, nor above it")]
    NoRepository(PathBuf),
    /// Nothing has that name.
    #[error("`{name}` is neither a directory nor a revision of the Git repository at {repository}{hint}")]
    NoRevision {
        /// What was asked for.
        name: String,
        /// Where.
        repository: PathBuf,
        /// What may help.
        hint: &'static str,
    },
    /// A name stands for several things.
    #[error("`{0}` stands for more than one object: give more of its digits")]
    Ambiguous(String),
    /// It stands for something that has no files.
    #[error("`{name}` is no commit{hint}")]
    NoCommit {
        /// What was asked for.
        name: String,
        /// What may help.
        hint: String,
    },
    /// It names the index.
    #[error(
        "`{0}` stands for something that is staged, not for a commit: commit it, or give the directory that is checked \
         out"
    )]
    Staged(String),
    /// Two commits without a common one.
    #[error("`{0}` and `{1}` have no commit in common: fetch more of the history, or name the commit to start from")]
    NothingInCommon(String, String),
    /// It is somebody else's, who could make its reader do things.
    #[error(
        "the Git repository at {} belongs to another user, so it is not read; if you trust it: \
         git config --global --add safe.directory {}", .0.display(), .0.display()
    )]
    NotOwned(PathBuf),
    /// Something else.
    #[error("cannot read the Git repository: {0}")]
    Read(String),
}

/// A repository.
pub struct Repository(git2::Repository);

impl Repository {
    /// The repository that a directory is in, or is.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(directory: &Path) -> Result<Self, GitError> {
        git2::Repository::discover(directory).map(Self).map_err(|error| not_opened(directory, &error))
    }

    /// A commit: a branch, a tag, an id, or whatever else `git rev-parse` takes.
    ///
    /// # Errors
    /// When there is no such commit.
    pub fn revision(&self, name: &str) -> Result<Revision<'_>, GitError> {
        let commit = self.commit(name)?;
        let tree = commit.tree().map_err(|error| GitError::Read(failed(&error).to_string()))?;
        let directories = RefCell::new(HashMap::from([(String::new(), Some(tree))]));
        Ok(Revision { repository: &self.0, directories, commit: commit.id().to_string() })
    }

    /// The last commit that two have in common.
    ///
    /// # Errors
    /// When one of them is none, or they have none in common.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<String, GitError> {
        let base = self.0.merge_base(self.commit(one)?.id(), self.commit(other)?.id());
        base.map(|id| id.to_string()).map_err(|_| GitError::NothingInCommon(one.to_owned(), other.to_owned()))
    }

    fn commit(&self, name: &str) -> Result<git2::Commit<'_>, GitError> {
        if name.starts_with(':') && !name.starts_with(":/") {
            return Err(GitError::Staged(name.to_owned()));
        }
        let found = self.0.revparse_single(name).map_err(|error| self.unknown(name, &error))?;
        found.peel_to_commit().map_err(|error| match error.code() {
            ErrorCode::NotFound => GitError::Read(failed(&error).to_string()),
            _ => not_a_commit(name),
        })
    }

    /// The whole name of a revision, which cannot stand for a directory as well; `None`: there
    /// is no such revision.
    pub fn full_name(&self, name: &str) -> Option<String> {
        let commit = self.commit(name).ok()?;
        let reference = self.0.resolve_reference_from_short_name(name).ok();
        let full = reference.as_ref().and_then(|reference| reference.name()).filter(|full| *full != name);
        Some(full.map_or_else(|| commit.id().to_string(), str::to_owned))
    }

    fn unknown(&self, name: &str, error: &git2::Error) -> GitError {
        match error.code() {
            ErrorCode::NotFound | ErrorCode::InvalidSpec => GitError::NoRevision {
                name: name.to_owned(),
                repository: self.0.workdir().unwrap_or_else(|| self.0.path()).to_owned(),
                hint: match (self.0.is_shallow(), self.0.is_empty()) {
                    (true, _) => "; the repository is shallow: fetch more of its history",
                    (false, Ok(true)) => "; nothing has been committed there yet",
                    (false, Ok(false) | Err(_)) => "",
                },
            },
            ErrorCode::Ambiguous => GitError::Ambiguous(name.to_owned()),
            _ => GitError::Read(error.message().to_owned()),
        }
    }

    /// The directory that is checked out, if any is.
    pub fn top(&self) -> Option<&Path> {
        self.0.workdir()
    }

    /// Whether files differ from the commit that is checked out.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn is_dirty(&self) -> Result<bool, GitError> {
        if self.0.is_bare() {
            return Ok(false);
        }
        let mut options = git2::StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        let statuses =
            self.0.statuses(Some(&mut options)).map_err(|error| GitError::Read(error.message().to_owned()))?;
        Ok(!statuses.is_empty())
    }

    /// Id of the commit that is checked out, if there is one.
    pub fn head(&self) -> Option<String> {
        Some(self.0.head().ok()?.peel_to_commit().ok()?.id().to_string())
    }
}

/// What is said of a name that is a revision and `what`, a file or directory, as well: whoever
/// took one of the two would read something else than was meant.
pub fn is_both(name: &str, what: &str, full: &str) -> String {
    format!(
        "`{name}` is a {what} and a revision of the Git repository: write `./{name}` for the {what}, or `{full}` for the \
         revision"
    )
}

/// `main:packages` is a directory of a commit.
fn not_a_commit(name: &str) -> GitError {
    let parts = name.split_once(':').filter(|(commit, path)| !commit.is_empty() && !path.is_empty());
    let hint = parts.map(|(commit, path)| format!(": give `{commit}`, and `{path}` as PATH")).unwrap_or_default();
    GitError::NoCommit { name: name.to_owned(), hint }
}

fn not_opened(directory: &Path, error: &git2::Error) -> GitError {
    match error.code() {
        ErrorCode::NotFound => GitError::NoRepository(directory.to_owned()),
        ErrorCode::Owner => GitError::NotOwned(top_of(directory)),
        _ => GitError::Read(format!(
            "{}; compare two directories instead (`git worktree add` makes one of a revision)",
            error.message()
        )),
    }
}

/// The directory of the repository that one is in: what Git calls safe or not.
fn top_of(directory: &Path) -> PathBuf {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let is_top = |path: &&Path| path.join(".git").exists();
    directory.ancestors().find(is_top).unwrap_or(&directory).to_owned()
}

/// The files of a commit.
pub struct Revision<'r> {
    repository: &'r git2::Repository,
    /// Directories that were read, by path; `None`: there is none.
    directories: RefCell<HashMap<String, Option<git2::Tree<'r>>>>,
    commit: String,
}

impl<'r> Revision<'r> {
    /// Id of the commit.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    fn entry(&self, path: &str) -> io::Result<Option<git2::TreeEntry<'static>>> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = self.directory(directory)?;
        Ok(directory.and_then(|directory| directory.get_name(name).map(|entry| entry.to_owned())))
    }

    fn directory(&self, path: &str) -> io::Result<Option<git2::Tree<'r>>> {
        if let Some(known) = self.directories.borrow().get(path) {
            return Ok(known.clone());
        }
        let entry = self.entry(path)?.filter(|entry| entry.kind() == Some(ObjectType::Tree));
        let found = entry.map(|entry| self.repository.find_tree(entry.id())).transpose();
        let found = found.map_err(|error| failed(&error))?;
        self.directories.borrow_mut().insert(path.to_owned(), found.clone());
        Ok(found)
    }

    /// Text of a link.
    fn link(&self, entry: &git2::TreeEntry<'_>) -> io::Result<Option<String>> {
        let blob = self.repository.find_blob(entry.id()).map_err(|error| failed(&error))?;
        Ok(std::str::from_utf8(blob.content()).ok().map(str::to_owned))
    }

    /// Where a path leads with all links followed; `None` if out of the tree or nowhere.
    fn follow(&self, path: &str) -> io::Result<Option<String>> {
        let mut open: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = open.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    if done.pop().is_none() {
                        return Ok(None);
                    }
                    continue;
                }
                _ => done.push(part),
            }
            let Some(entry) = self.entry(&done.join("/"))? else { return Ok(None) };
            if entry.filemode() != FILE_MODE_LINK {
                continue;
            }
            links += 1;
            let Some(target) = self.link(&entry)?.filter(|target| links <= MOST_LINKS && !target.starts_with('/'))
            else {
                return Ok(None);
            };
            done.pop();
            open.extend(target.split('/').rev().map(str::to_owned));
        }
        Ok(Some(done.join("/")))
    }
}

/// What Git says, and where something is lacking, why and what to do.
fn failed(error: &git2::Error) -> io::Error {
    io::Error::other(match error.code() {
        ErrorCode::NotFound => format!(
            "{}; is this a partial clone? All of it comes with: git fetch --refetch --no-filter",
            error.message()
        ),
        _ => error.message().to_owned(),
    })
}

fn kind_of(entry: &git2::TreeEntry<'_>) -> EntryKind {
    match (entry.filemode(), entry.kind()) {
        (FILE_MODE_LINK, _) => EntryKind::Symlink,
        (_, Some(ObjectType::Tree)) => EntryKind::Directory,
        (_, Some(ObjectType::Blob)) => EntryKind::File,
        (_, Some(ObjectType::Commit)) => EntryKind::Submodule,
        (_, _) => EntryKind::Other,
    }
}

impl Tree for Revision<'_> {
    fn entries(&self, path: &str) -> io::Result<Vec<(String, EntryKind)>> {
        self.list(path)?.complete()
    }

    fn list(&self, path: &str) -> io::Result<Listing> {
        let directory = self.directory(path)?.ok_or(io::ErrorKind::NotFound)?;
        let mut listing = Listing::default();
        for entry in &directory {
            let kind = kind_of(&entry);
            match entry.name() {
                Some(name) => listing.entries.push((name.to_owned(), kind)),
                None => listing.unnamed.push((String::from_utf8_lossy(entry.name_bytes()).into_owned(), kind)),
            }
        }
        listing.entries.sort();
        listing.unnamed.sort();
        Ok(listing)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let entry = self.entry(path)?.ok_or(io::ErrorKind::NotFound)?;
        let database = self.repository.odb().map_err(|error| failed(&error))?;
        let (size, _) = database.read_header(entry.id()).map_err(|error| failed(&error))?;
        if size as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let blob = self.repository.find_blob(entry.id()).map_err(|error| failed(&error))?;
        Ok(blob.content().to_vec())
    }

    fn kind(&self, path: &str) -> io::Result<Option<EntryKind>> {
        if path.is_empty() {
            return Ok(Some(EntryKind::Directory));
        }
        for (end, _) in path.match_indices('/') {
            let walked = path.get(..end).unwrap_or_default();
            match self.entry(walked)?.as_ref().map(kind_of) {
                Some(EntryKind::Directory) => {}
                Some(EntryKind::Symlink) => return Ok(Some(EntryKind::Symlink)),
                Some(EntryKind::File | EntryKind::Submodule | EntryKind::Other) | None => return Ok(None),
            }
        }
        Ok(self.entry(path)?.as_ref().map(kind_of))
    }

    fn link_target(&self, path: &str) -> io::Result<Option<String>> {
        self.follow(path)
    }
}

#[cfg(test)]
mod tests {
    use git2::ErrorClass;

    use super::*;

    #[test]
    fn a_repository_of_another_user_is_named_with_what_makes_it_read() {
        let top = tempfile::tempdir().unwrap();
        let inside = top.path().join("packages/a");
        std::fs::create_dir_all(&inside).unwrap();
        git2::Repository::init(top.path()).unwrap();
        let error =
            git2::Error::new(ErrorCode::Owner, ErrorClass::Config, "repository path is not owned by current user");
        let top = top.path().canonicalize().unwrap().display().to_string();
        assert_eq!(
            not_opened(&inside, &error).to_string(),
            format!(
                "the Git repository at {top} belongs to another user, so it is not read; if you trust it: git config \
                 --global --add safe.directory {top}"
            )
        );
    }
}
