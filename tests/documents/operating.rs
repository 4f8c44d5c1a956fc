//! `docs/operating.md`: flags, and what commands print.

use std::collections::BTreeMap;

use crate::common::printed;
use crate::markdown::{fences, quoted, rows, section};

const DOCUMENT: &str = include_str!("../../docs/operating.md");
const SHOWN: &str = include_str!("../../src/report/tests.rs");

/// Flags of the controller with environment variable and default, as it says.
fn flags() -> BTreeMap<String, (String, String)> {
    let help = printed(["controller", "--help"]);
    let blocks = help.split("\n      --").skip(1).map(|block| block.split_whitespace().collect::<Vec<_>>().join(" "));
    let between = |text: &str, start: &str, end: char| {
        let (_, rest) = text.split_once(start).unwrap_or_default();
        rest.split(end).next().unwrap_or_default().trim().to_owned()
    };
    let flags = blocks.filter(|block| block.contains("[env: ")).map(|block| {
        let name = block.split(' ').next().unwrap_or_default().to_owned();
        (format!("--{name}"), (between(&block, "[env: ", '='), between(&block, "[default: ", ']')))
    });
    flags.collect()
}

#[test]
fn every_flag_is_explained_with_its_variable_and_default() {
    let flags = flags();
    assert!(flags.len() >= 10, "{flags:?}");
    let table = rows(section(DOCUMENT, 2, "Flags"));
    let told: Vec<&str> = table.iter().flat_map(|row| quoted(row[0])).collect();
    for row in &table {
        let name = quoted(row[0])[0];
        let (variable, default) = flags.get(name).unwrap_or_else(|| panic!("there is no flag {name}"));
        assert_eq!(quoted(row[1]), [variable], "{name}");
        if !default.is_empty() {
            assert_eq!(row[2].trim_matches('`'), default, "{name}");
        }
    }
    assert_eq!(told.len(), flags.len(), "explained are {told:?}");
}

/// Texts without indentation, as far as all lines of the block share it.
fn unindented(text: &str) -> String {
    text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_commands_print_is_what_they_are_tested_to_print() {
    let tested = unindented(SHOWN);
    let mut shown = 0;
    for fence in fences(DOCUMENT, "text").into_iter().filter(|fence| fence.starts_with("$ windlass ")) {
        let (command, output) = fence.split_once('\n').unwrap();
        assert!(tested.contains(output), "no test of src/report/tests.rs shows the output of `{command}`");
        shown += 1;
    }
    assert!(shown >= 5, "only {shown} outputs are shown");
}
