//! `windlass man`: a page for every command, made of what the command line is made of.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use clap::CommandFactory as _;
use common::{printed, windlass as run};

/// Each command by the name of its page, with its long flags.
fn commands(command: &clap::Command, name: &str, found: &mut Vec<(String, Vec<String>)>) {
    let flags = command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned));
    found.push((name.to_owned(), flags.collect()));
    for inner in command.get_subcommands() {
        commands(inner, &format!("{name}-{}", inner.get_name()), found);
    }
}

fn all() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    commands(&windlass::cli::Arguments::command(), "windlass", &mut found);
    assert!(found.len() > 15, "{found:?}");
    found
}

#[test]
fn the_main_page_names_every_command() {
    let page = printed(["man"]);
    assert!(
        page.contains(&format!("\n.TH windlass 1  \"windlass {}\" Windlass\n", env!("CARGO_PKG_VERSION"))),
        "{page}"
    );
    for (name, _) in all().iter().filter(|(name, _)| name.matches('-').count() == 1) {
        assert!(page.contains(&format!("\n{}(1)\n", name.replace('-', "\\-"))), "{name} is not in\n{page}");
    }
}

#[test]
fn a_directory_gets_a_page_of_each_command_with_its_flags() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("man1");
    let output = run([std::ffi::OsStr::new("man"), target.as_os_str()]);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let files = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let wanted: BTreeSet<String> = all().into_iter().map(|(name, _)| format!("{name}.1")).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), wanted);
    for (name, flags) in all() {
        let page = fs::read_to_string(target.join(format!("{name}.1"))).unwrap();
        for flag in flags {
            assert!(page.contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "{name} lacks --{flag}");
        }
    }
    if common::available("a_directory_gets_a_page_of_each_command_with_its_flags", "groff", &["--version"]) {
        for (name, _) in all() {
            let page = target.join(format!("{name}.1"));
            let output =
                Command::new("groff").args(["-Kutf8", "-man", "-Tutf8", "-ww", "-z"]).arg(page).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{name}: {output:?}");
        }
    }
}

#[test]
fn pages_are_the_same_each_time() {
    assert_eq!(printed(["man"]), printed(["man"]));
    let pages = |directory: &tempfile::TempDir| {
        assert!(run([std::ffi::OsStr::new("man"), directory.path().as_os_str()]).status.success());
        fs::read_to_string(directory.path().join("windlass-controller.1")).unwrap()
    };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(pages(&one), pages(&two));
}

#[test]
fn a_file_is_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a");
    fs::write(&file, "").unwrap();
    let output = run([std::ffi::OsStr::new("man"), file.as_os_str()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write into"), "{output:?}");
}
