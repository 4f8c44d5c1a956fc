//! Our own binary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::http;
use super::tools::repository;

/// What a run of it printed.
#[derive(Debug)]
pub struct Run {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

/// Runs it.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_windlass")).args(arguments).env("NO_COLOR", "1").output().expect("windlass");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { success: status.success(), stdout: text(&stdout), stderr: text(&stderr) }
}

/// Standard output of `windlass render` on files and directories.
pub fn render(paths: &[&Path], arguments: &[&str]) -> String {
    let words = ["render"].into_iter().chain(arguments.iter().copied()).map(PathBuf::from);
    let run = run(words.chain(paths.iter().map(|path| path.to_path_buf())));
    assert!(run.success, "windlass render {arguments:?} {paths:?}:\n{}", run.stderr);
    run.stdout
}

/// Names of components, each with what it depends on: the one before.
pub fn chain<'a>(names: &'a [&'a str]) -> impl Iterator<Item = (&'a str, Vec<&'a str>)> {
    names.iter().enumerate().map(|(position, name)| (*name, names[..position].last().copied().into_iter().collect()))
}

/// The optimised binary that needs no library of the system; made by `make static`.
pub fn static_binary() -> PathBuf {
    let told = Command::new("make").args(["--silent", "static-path"]).current_dir(repository()).output();
    let binary = repository().join(String::from_utf8_lossy(&told.expect("make").stdout).trim());
    assert!(binary.is_file(), "{} is missing: make static", binary.display());
    binary
}

/// The samples of a controller's metrics, by name and labels.
pub async fn metrics(port: u16) -> BTreeMap<String, f64> {
    let text = http::get(port, "/metrics").await.expect("metrics");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.filter_map(|line| line.rsplit_once(' '));
    samples.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// Sum of the samples whose names begin so.
pub fn sum(samples: &BTreeMap<String, f64>, prefix: &str) -> f64 {
    samples.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, value)| value).sum()
}

/// The controller's own count of its writes.
pub fn writes(samples: &BTreeMap<String, f64>) -> u64 {
    sum(samples, "windlass_api_writes_total") as u64
}

/// A Package as the text of a file.
pub fn package(name: &str, spec: Value) -> String {
    let package =
        json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "Package", "metadata": {"name": name}, "spec": spec});
    format!("{package:#}\n")
}

/// Both states of every example.
pub fn examples() -> Vec<PathBuf> {
    let directories = |path: PathBuf| {
        let entries = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        found.sort();
        found
    };
    let examples = directories(repository().join("examples"));
    let states: Vec<_> = examples.into_iter().flat_map(directories).collect();
    assert!(states.len() >= 8, "there are four examples in two states: {states:?}");
    states
}
