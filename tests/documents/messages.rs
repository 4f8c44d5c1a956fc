//! Messages that documents quote are those of the code.

use std::fs;
use std::path::Path;

use crate::common::root;
use crate::markdown::{quoted, rows_below};

const DOCUMENTS: [&str; 2] = [include_str!("../../docs/troubleshooting.md"), include_str!("../../docs/migrating.md")];

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn quoted_messages_are_said_by_the_code() {
    let mut code = String::new();
    sources(&root().join("src"), &mut code);
    let mut checked = 0;
    for message in DOCUMENTS.into_iter().flat_map(|text| rows_below(text, "message")) {
        for message in quoted(message[0]) {
            // Parts between what is filled in.
            let parts = message.split('…').flat_map(|part| part.split(": ")).map(|part| part.trim_matches(':'));
            for part in parts.filter(|part| part.trim().len() > 3) {
                assert!(code.contains(part), "nothing says `{part}` of `{message}`");
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} parts were looked for");
}
