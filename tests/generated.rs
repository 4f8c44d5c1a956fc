//! What is generated and committed is what the binary writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use rstest::rstest;

#[rstest]
#[case::crds("manifests/crds/windlass.dev.yaml", &["crds"])]
#[case::schema("manifests/schema/package.schema.json", &["crds", "--json-schema"])]
fn committed_files_are_current(#[case] file: &str, #[case] arguments: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let committed = fs::read_to_string(&path).unwrap();
    let output = Command::cargo_bin("windlass").unwrap().args(arguments).output().unwrap();
    let current = String::from_utf8(output.stdout).unwrap();
    assert!(current == committed, "{file} is out of date: run `make generate`");
}
