//! What decides and what plays the cluster share no code.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_simulator_uses_nothing_of_what_it_tests() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![source.join("sim.rs")];
    sources(&source.join("sim"), &mut files);
    assert!(files.len() > 10);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in line.match_indices("crate::") {
                assert!(line[at..].starts_with("crate::sim"), "{}: {line}", file.display());
            }
            for forbidden in ["std::fs", "tokio", "std::time::Instant", "SystemTime", "kube::", "git2"] {
                assert!(!line.contains(forbidden), "{}: {line}", file.display());
            }
        }
    }
}
