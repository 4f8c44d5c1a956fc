//! Shared by integration tests.

#![allow(dead_code, reason = "not every test uses everything")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

pub mod read_back;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Root of the crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A line that is seen although the test runner captures what `eprintln` writes.
#[allow(clippy::explicit_write, reason = "eprintln is captured")]
pub fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap();
}

/// Real package graphs, which are not part of the tree: `WINDLASS_CORPUS`, else
/// beside the crate. `None`, said aloud, where there are none.
pub fn corpus(test: &str) -> Option<PathBuf> {
    let given = std::env::var_os("WINDLASS_CORPUS").map(PathBuf::from);
    let directory = given.clone().unwrap_or_else(|| root().join("../shared/corpus"));
    if directory.join("cozystack").is_dir() {
        return Some(directory);
    }
    assert!(given.is_none(), "WINDLASS_CORPUS is {}, which holds no corpus", directory.display());
    say(&format!("SKIPPED {test}: no corpus in {}; set WINDLASS_CORPUS", directory.display()));
    None
}

/// Parts of the manifests that the Helm chart has a copy of.
pub const CHART_PARTS: [&str; 5] = ["canary", "controller", "crds", "monitoring", "tenant"];

/// The YAML files of these parts by `<part>/<name>`, without kustomizations.
pub fn chart_files(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in CHART_PARTS {
        for entry in fs::read_dir(directory.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.ends_with(".yaml") && name != "kustomization.yaml" {
                found.insert(format!("{part}/{name}"), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// Whether `program` runs here; if not, says aloud what is skipped.
pub fn available(test: &str, program: &str, arguments: &[&str]) -> bool {
    let works = Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    if !works {
        say(&format!("SKIPPED {test}: `{program} {}` does not run here", arguments.join(" ")));
    }
    works
}

/// Runs the binary.
pub fn windlass<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass")).args(arguments).env("NO_COLOR", "1").output().unwrap()
}

/// Standard output of a run that must succeed.
pub fn printed<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = windlass(arguments);
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The documents of a YAML text, read by a library alone and not by Windlass.
pub fn read_yaml(text: &str) -> Vec<Value> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_documents: 100_000, max_nodes: 10_000_000, max_events: 20_000_000 },
    };
    serde_saphyr::from_multiple_with_options(text, options).unwrap()
}

/// The documents of a YAML text as PyYAML, a YAML 1.1 reader, reads them.
pub fn read_yaml_1_1(text: &str) -> Vec<Value> {
    const PROGRAM: &str = "import json, sys, yaml\n\
        print(json.dumps([d for d in yaml.load_all(sys.stdin, yaml.CSafeLoader) if d is not None]))";
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = text.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "python3 could not read the text");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The text at a JSON pointer, empty if there is none.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
