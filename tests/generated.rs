//! What is generated and committed is what the binary writes, and what is copied
//! is what it was copied from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use rstest::rstest;

#[rstest]
#[case::crds("manifests/crds/windlass.dev.yaml", &["crds"])]
#[case::schema("manifests/schema/package.schema.json", &["crds", "--json-schema"])]
#[case::reference("docs/package.md", &["crds", "--markdown"])]
#[case::picture("docs/pictures/upgrade.svg", &["rehearse", "examples/database/v2", "--from", "examples/database/v1", "--format", "svg"])]
#[case::picture_of_a_rollback(
    "docs/pictures/rollback.svg",
    &["rehearse", "examples/node-agent/v2", "--from", "examples/node-agent/v1", "--fail", "agent@late", "--format", "svg"]
)]
fn committed_files_are_current(#[case] file: &str, #[case] arguments: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let committed = fs::read_to_string(&path).unwrap();
    let output = Command::cargo_bin("windlass").unwrap().current_dir(common::root()).args(arguments).output().unwrap();
    let current = String::from_utf8(output.stdout).unwrap();
    assert!(current == committed, "{file} is out of date: run `make generate`");
}

#[test]
fn the_chart_has_a_copy_of_the_manifests() {
    let files = common::root().join("charts/windlass/files");
    let (manifests, copies) = (common::chart_files(&common::root().join("manifests")), common::chart_files(&files));
    assert_eq!(manifests.keys().collect::<Vec<_>>(), copies.keys().collect::<Vec<_>>(), "run `make generate`");
    for (name, text) in &manifests {
        assert!(copies[name] == *text, "charts/windlass/files/{name} is out of date: run `make generate`");
    }
    let parts = fs::read_dir(files).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(parts.collect::<BTreeSet<_>>(), common::CHART_PARTS.into_iter().map(Into::into).collect());
}
