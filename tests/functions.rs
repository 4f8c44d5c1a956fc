//! Functions are short enough to be read at a glance.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// No function has more lines, its signature and last brace included.
const MOST_LINES: usize = 60;

struct Function {
    name: String,
    begins: usize,
    lines: usize,
}

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| sources(&entry.unwrap().path(), found));
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_owned());
    }
}

/// Name of the function that a line begins, if it begins one.
fn begins(line: &str) -> Option<&str> {
    const BEFORE: [&str; 6] = ["pub", "pub(crate)", "pub(super)", "const", "unsafe", "async"];
    let (before, rest) = line.split_once("fn ")?;
    let is_function = before.split_whitespace().all(|word| BEFORE.contains(&word) || word.starts_with("pub(in"));
    let name = rest.split(['(', '<']).next().filter(|_| is_function)?;
    (!name.is_empty()).then_some(name)
}

/// The functions of a formatted file: each ends with the first brace that stands
/// as far to the right as it.
fn functions(text: &str) -> Vec<Function> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = begins(line) else { continue };
        let is_end = |other: &&&str| indentation(other) == indentation(line) && other.trim_start() == "}";
        let is_whole = line.ends_with('}') || line.ends_with(';');
        let more = if is_whole { 0 } else { lines[at..].iter().take_while(|other| !is_end(other)).count() };
        found.push(Function { name: name.to_owned(), begins: at + 1, lines: more + 1 });
    }
    found
}

#[test]
fn no_function_is_long() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    assert!(files.len() > 300, "{}", files.len());
    let (mut seen, mut long) = (0, Vec::new());
    for file in files {
        let found = functions(&fs::read_to_string(&file).unwrap());
        seen += found.len();
        let name = file.strip_prefix(root).unwrap().display();
        let too_long = found.into_iter().filter(|function| function.lines > MOST_LINES);
        long.extend(too_long.map(|found| format!("{name}:{}: {} has {} lines", found.begins, found.name, found.lines)));
    }
    assert!(seen > 3000, "{seen}");
    assert!(long.is_empty(), "split what has more than {MOST_LINES} lines:\n{}", long.join("\n"));
}

#[test]
fn the_lines_of_a_function_are_counted_from_its_name_to_its_end() {
    let text = "impl A {\n    pub(crate) fn long(\n        a: u8,\n    ) {\n        if a > 1 {\n        }\n    }\n\n    \
                fn short() {}\n    fn none();\n    // fn is no word of its own here\n}\n";
    let found: Vec<_> = functions(text).into_iter().map(|found| (found.name, found.begins, found.lines)).collect();
    assert_eq!(found, [("long".into(), 2, 6), ("short".into(), 9, 1), ("none".into(), 10, 1)]);
}
