//! What decides and translates performs no I/O and has no clock, and the
//! plugin reaches neither network nor other programs.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// Where effects are: everything else below `src` is pure.
const EFFECTS: [&str; 6] = ["cli", "cli.rs", "controller", "controller.rs", "git.rs", "main.rs"];
/// What pure code never names.
const IMPURE: [&str; 14] = [
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "tokio",
    "git2",
    "kube::",
];
/// Of kube only data types.
const DATA_OF_KUBE: [&str; 4] =
    ["kube::core", "kube::CustomResourceExt", "kube::KubeSchema", "kube::{CustomResource, KubeSchema}"];
/// Expressions are evaluated on a thread of their own, with a limit on its time.
const THREADS: &str = "src/ready/cel/worker.rs";
/// What the plugin's process runs besides pure code.
const PLUGIN: [&str; 7] = [
    "src/cli/plugin.rs",
    "src/cli/plugin/doctor.rs",
    "src/cli/directory.rs",
    "src/cli/output.rs",
    "src/cli/streams.rs",
    "src/cli.rs",
    "src/main.rs",
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" && name != "testing.rs" {
            found.push(path);
        }
    }
}

/// The code of a file: what is neither comment nor test.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = fs::read_to_string(path).unwrap();
    let (code, _) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((&text, ""));
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    lines.map(|(index, line)| (index + 1, line.to_owned())).collect()
}

fn named(files: &[PathBuf], words: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for file in files {
        let shown = file.strip_prefix(root).unwrap().display().to_string();
        for (number, line) in code(file) {
            let data = DATA_OF_KUBE.iter().fold(line.clone(), |line, data| line.replace(data, ""));
            let word = words.iter().find(|word| data.contains(**word));
            if word.is_some_and(|word| !(shown == THREADS && *word == "std::thread")) {
                found.push(format!("{shown}:{number}: {}", line.trim()));
            }
        }
    }
    found
}

#[test]
fn pure_modules_name_nothing_that_has_an_effect() {
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        if EFFECTS.contains(&path.file_name().unwrap().to_str().unwrap()) {
            continue;
        }
        if path.is_dir() { sources(&path, &mut files) } else { files.push(path) }
    }
    assert!(files.len() > 100, "only {} files", files.len());
    assert_eq!(named(&files, &IMPURE), Vec::<String>::new());
}

#[test]
fn the_plugin_reaches_neither_network_nor_other_programs() {
    let files: Vec<PathBuf> = PLUGIN.iter().map(|file| Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).collect();
    let words = ["std::net", "tokio", "Command::new", "kube::", "temp_dir", "tempfile"];
    assert_eq!(named(&files, &words), Vec::<String>::new());
}
