//! The documentation is true: its commands run and print what it shows, its
//! Packages are valid.
//!
//! Fences marked `console` hold lines `$ command`, each followed by its output
//! (standard output and error together) if it is shown. A line `…` stands for
//! any lines. Commands run one after the other in a copy of the tree.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Directories of the tree that no document needs.
const NOT_COPIED: [&str; 4] = [".git", "target", "fuzz", "node_modules"];
/// Shows bad Packages; `tests/errors.rs` checks that they are.
const BAD_ON_PURPOSE: &str = "docs/errors.md";
/// A line that stands for any lines.
const ANY_LINES: &str = "…";

struct Fence {
    place: String,
    language: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn markdown_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() && !NOT_COPIED.contains(&name.as_str()) {
            markdown_files(&entry.path(), found);
        } else if name.ends_with(".md") {
            found.push(entry.path());
        }
    }
}

fn fences() -> Vec<Fence> {
    let mut files = Vec::new();
    markdown_files(root(), &mut files);
    let mut fences = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let mut open: Option<Fence> = None;
        for (index, line) in text.lines().enumerate() {
            match (line.trim_start().strip_prefix("```"), open.as_mut()) {
                (Some(_), Some(_)) => fences.extend(open.take()),
                (Some(language), None) => {
                    let shown = file.strip_prefix(root()).unwrap().display();
                    let place = format!("{shown}:{}", index + 1);
                    open = Some(Fence { place, language: language.trim().to_owned(), text: String::new() });
                }
                (None, Some(fence)) => {
                    fence.text.push_str(line);
                    fence.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a fence is not closed", file.display());
    }
    fences
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, name) = (entry.file_type().unwrap(), entry.file_name());
        if kind.is_dir() && !NOT_COPIED.iter().any(|skipped| *skipped == name) {
            copy_tree(&entry.path(), &to.join(name));
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// Commands of a fence with the output shown for each.
fn commands(fence: &Fence) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in fence.text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((command, shown))) if command.ends_with('\\') && shown.is_empty() => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some((_, shown))) => shown.push(line.to_owned()),
            (None, None) => panic!("{}: a console fence starts with `$ `", fence.place),
        }
    }
    commands
}

/// Whether `printed` is what is shown, where `…` stands for any lines.
fn matches(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == ANY_LINES => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed.first() == Some(&line.as_str()) && matches(rest, &printed[1..]),
    }
}

fn shell(directory: &Path, command: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let path = std::env::join_paths(
        std::iter::once(binary.parent().unwrap().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(directory)
        .env("PATH", path.unwrap())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn commands_print_what_is_shown() {
    let tree = tempfile::tempdir().unwrap();
    copy_tree(root(), tree.path());
    let mut wrong = Vec::new();
    let mut run = 0;
    for fence in fences().iter().filter(|fence| fence.language == "console") {
        for (command, shown) in commands(fence) {
            run += 1;
            let output = shell(tree.path(), &command);
            let printed = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<&str> = printed.lines().collect();
            if !output.status.success() || (!shown.is_empty() && !matches(&shown, &lines)) {
                wrong.push(format!("{}: `{command}` ({}) printed\n{printed}", fence.place, output.status));
            }
        }
    }
    assert!(run > 0, "there is no console fence");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fences_say_what_they_are() {
    let known = ["console", "text", "yaml", "mermaid"];
    let other: Vec<_> = fences().into_iter().filter(|fence| !known.contains(&fence.language.as_str())).collect();
    let places: Vec<_> = other.iter().map(|fence| format!("{} `{}`", fence.place, fence.language)).collect();
    assert!(places.is_empty(), "fences are marked console, text, yaml or mermaid: {places:?}");
}

/// `[text](target)` of a line, without those that lead out of the tree.
fn links(line: &str) -> Vec<String> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let targets = targets.map(|(target, _)| target.to_owned());
    targets.filter(|target| !target.contains("://")).collect()
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// Whether a link of a document leads to a file, and to a heading of it.
fn is_alive(document: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_owned() } else { document.parent().unwrap().join(path) };
    let has_heading =
        || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).iter().any(|known| known == anchor));
    target.exists() && (anchor.is_empty() || has_heading())
}

#[test]
fn links_lead_somewhere() {
    let mut files = Vec::new();
    markdown_files(root(), &mut files);
    let mut dead = Vec::new();
    for file in files {
        for target in fs::read_to_string(&file).unwrap().lines().flat_map(links) {
            if !is_alive(&file, &target) {
                dead.push(format!("{}: {target}", file.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn packages_in_documents_are_valid() {
    let mut checked = 0;
    for fence in fences().iter().filter(|fence| fence.language == "yaml") {
        let is_package = fence.text.lines().any(|line| line.trim() == "kind: Package");
        if !is_package || fence.place.starts_with(BAD_ON_PURPOSE) {
            continue;
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["validate", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(fence.text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{said}", fence.place);
        checked += 1;
    }
    assert!(checked > 0, "there is no Package in any document");
}

#[test]
fn the_comparison_of_outputs_can_fail() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(matches(&shown("a\n…\nd"), &["a", "b", "c", "d"]));
    assert!(matches(&shown("a\n…"), &["a"]));
    assert!(!matches(&shown("a\n…\nd"), &["a", "b", "c"]));
    assert!(!matches(&shown("a"), &["a", "b"]));
    assert!(!matches(&shown("a\nb"), &["a"]));
}
