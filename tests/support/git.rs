//! Git repositories made by tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::http::write_below;

/// A repository with a work tree, served as `<http>/git/<name>/.git` and readable as
/// `file://<path>`. Its branch is `main`.
pub struct Repository {
    pub path: PathBuf,
    pub name: String,
    git: PathBuf,
}

impl Repository {
    /// An empty one in the directory that the bench serves.
    pub fn create(git: &Path, repositories: &Path, name: &str) -> Self {
        let repository = Self { path: repositories.join(name), name: name.to_owned(), git: git.to_owned() };
        std::fs::create_dir_all(&repository.path).expect("a directory");
        repository.run(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// Writes files, adds everything and commits. Gives the commit.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (name, content) in files {
            write_below(&self.path, name, content);
        }
        self.run(&["add", "--all"]);
        self.run(&["commit", "--quiet", "--allow-empty", "--message=Change"]);
        self.head()
    }

    /// Removes files and commits. Gives the commit.
    pub fn remove(&self, files: &[&str]) -> String {
        for name in files {
            std::fs::remove_file(self.path.join(name)).expect("the file");
        }
        self.commit(&[])
    }

    /// Undoes the last commit by another one. Gives that.
    pub fn revert(&self) -> String {
        self.run(&["revert", "--no-edit", "HEAD"]);
        self.head()
    }

    pub fn head(&self) -> String {
        self.run(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// For Argo CD.
    pub fn file_url(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// For Flux; `server` is the URL of the bench's HTTP server.
    pub fn http_url(&self, server: &str) -> String {
        format!("{server}/git/{}/.git", self.name)
    }

    /// Lets anybody push to its branch over HTTP; the work tree follows.
    pub fn accept_pushes(&self) {
        self.commit(&[]);
        self.run(&["config", "http.receivepack", "true"]);
        self.run(&["config", "receive.denyCurrentBranch", "updateInstead"]);
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.git)
            .args(arguments)
            .current_dir(&self.path)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_AUTHOR_NAME", "Bench")
            .env("GIT_AUTHOR_EMAIL", "bench@windlass.dev")
            .env("GIT_COMMITTER_NAME", "Bench")
            .env("GIT_COMMITTER_EMAIL", "bench@windlass.dev")
            .output()
            .expect("git");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }
}
