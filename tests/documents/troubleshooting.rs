//! `docs/troubleshooting.md`: a section for each reason, which agrees with
//! what `windlass why` says.

use windlass::api::Reason;
use windlass::report::remedy::remedy;

use crate::markdown::{section, sections};

const DOCUMENT: &str = include_str!("../../docs/troubleshooting.md");

fn reasons() -> Vec<(&'static str, &'static str)> {
    sections(section(DOCUMENT, 2, "Reasons"), 3)
}

#[test]
fn every_reason_has_a_section_and_nothing_else() {
    let known: Vec<String> = Reason::ALL.iter().map(Reason::to_string).collect();
    assert_eq!(reasons().iter().map(|(heading, _)| *heading).collect::<Vec<_>>(), known);
}

#[test]
fn every_section_says_what_it_means_what_to_look_at_and_what_to_do() {
    for (reason, text) in reasons() {
        for part in ["\n**Means:** ", "\n**Look at:** ", "\n**Do:** "] {
            assert!(text.contains(part), "{reason} lacks `{}`", part.trim());
        }
    }
}

#[test]
fn every_section_ends_with_the_remedy_of_windlass_why() {
    for ((name, text), reason) in reasons().into_iter().zip(Reason::ALL) {
        assert!(text.trim_end().ends_with(&format!("\n> {}", remedy(*reason))), "{name} wants\n> {}", remedy(*reason));
    }
}
