//! `docs/errors.md` explains every code, and its examples set off what they
//! stand for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeMap;

use windlass::api::Engine;
use windlass::package::check::{Options, check};
use windlass::package::load::{Input, NamespaceRule, load};
use windlass::package::names::Namespace;
use windlass::package::violation::Code;

const DOCUMENT: &str = include_str!("../docs/errors.md");

/// Sections by code.
fn sections() -> BTreeMap<&'static str, &'static str> {
    let sections = DOCUMENT.split("\n## ").skip(1);
    sections.map(|section| (section.split_once(' ').unwrap().0, section)).collect()
}

fn fence<'a>(section: &'a str, language: &str) -> Option<&'a str> {
    let (_, rest) = section.split_once(&format!("```{language}\n"))?;
    Some(rest.split_once("\n```").unwrap().0)
}

fn found(example: &str) -> Vec<Code> {
    let engine = match example.lines().next() {
        Some("# engine: argo") => Some(Engine::Argo),
        Some("# engine: flux") => Some(Engine::Flux),
        _ => None,
    };
    let text = if example.starts_with("apiVersion") {
        example.to_owned()
    } else {
        let lines: String = example.lines().map(|line| format!("  {line}\n")).collect();
        format!(
            "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: app}}\nspec:\n  version: 1.0.0\n{lines}"
        )
    };
    let rule = NamespaceRule::Default(Namespace::parse("default").unwrap());
    let loaded = load(&[Input::Text { bytes: text.into_bytes(), shown: "example".into() }], &rule).unwrap();
    let more = check(&loaded, &Options { engine, ..Options::default() }).unwrap();
    loaded.diagnostics.into_iter().chain(more).map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn every_code_is_explained_and_nothing_else() {
    let codes: Vec<String> = Code::ALL.iter().map(Code::to_string).collect();
    assert_eq!(sections().keys().copied().collect::<Vec<_>>(), codes);
}

#[test]
fn every_explanation_has_a_remedy_and_an_example() {
    for (code, section) in sections() {
        assert!(section.contains("\nRemedy: "), "{code} has no remedy");
        assert!(fence(section, "yaml").or_else(|| fence(section, "text")).is_some(), "{code} has no example");
    }
}

#[test]
fn every_example_sets_off_its_code() {
    let mut shown = 0;
    for (code, section) in sections() {
        if let Some(example) = fence(section, "yaml") {
            let found = found(example);
            assert!(found.iter().any(|found| found.to_string() == code), "{code}: {found:?}");
            shown += 1;
        }
    }
    assert!(shown >= 40, "only {shown} examples were tried");
}

#[test]
fn examples_set_off_little_else() {
    for (code, section) in sections() {
        let Some(example) = fence(section, "yaml") else { continue };
        // A template is no YAML for more than one reason, and an unknown field
        // may leave its component without what it needs.
        let others: Vec<Code> = found(example).into_iter().filter(|found| found.to_string() != code).collect();
        assert!(others.is_empty(), "{code} also sets off {others:?}");
    }
}
