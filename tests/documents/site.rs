//! The pages of `docs/`: all are in the table of contents, and in the navigation
//! of the site in the same order.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::common::{read_yaml, root};

const CONTENTS: &str = include_str!("../../docs/README.md");
const SITE: &str = include_str!("../../mkdocs.yml");

/// A heading of the contents, with titles and files of its pages.
type Part = (String, Vec<(String, String)>);

fn contents() -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in CONTENTS.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            parts.push((heading.to_owned(), Vec::new()));
        } else if let Some((title, rest)) = line.strip_prefix("- [").and_then(|line| line.split_once("](")) {
            let (file, about) = rest.split_once(')').unwrap();
            assert!(about.is_empty() || about.starts_with(": "), "`{line}` says what the page is");
            parts.last_mut().unwrap().1.push((title.to_owned(), file.to_owned()));
        }
    }
    parts
}

fn pages(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.strip_prefix(root().join("docs")).unwrap();
            found.insert(name.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let listed: Vec<String> = contents().into_iter().flat_map(|(_, pages)| pages).map(|(_, file)| file).collect();
    let mut found = BTreeSet::new();
    pages(&root().join("docs"), &mut found);
    found.remove("README.md");
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), found);
    assert_eq!(listed.len(), found.len(), "a page is listed twice");
}

#[test]
fn the_navigation_of_the_site_is_the_table_of_contents() {
    let navigation = read_yaml(SITE).remove(0)["nav"].as_array().unwrap().clone();
    let only = |value: &Value| {
        let (key, value) = value.as_object().unwrap().iter().next().unwrap();
        (key.clone(), value.clone())
    };
    let (first, rest) = navigation.split_first().unwrap();
    assert_eq!(only(first).1, "README.md");
    let parts = rest.iter().map(only).map(|(heading, pages)| {
        let pages = pages.as_array().unwrap().iter().map(only);
        (heading, pages.map(|(title, file)| (title, file.as_str().unwrap().to_owned())).collect())
    });
    assert_eq!(parts.collect::<Vec<Part>>(), contents());
}

#[test]
fn pages_have_one_title() {
    for (_, pages) in contents() {
        for (_, file) in pages {
            let text = std::fs::read_to_string(root().join("docs").join(&file)).unwrap();
            let mut in_fence = false;
            let titles = text.lines().filter(|line| {
                in_fence ^= line.trim_start().starts_with("```");
                !in_fence && line.starts_with("# ")
            });
            assert_eq!(titles.count(), 1, "{file}");
        }
    }
}
