//! Merge keys (`<<`) and duplicate keys.

use std::collections::{HashMap, HashSet};

use super::Problem;
use super::node::{Content, Entry, Node};
use crate::package::source::Span;
use crate::package::violation::{Code, short};

/// Applies merge keys and finds keys that occur twice.
///
/// Keys of the map itself win over merged ones, earlier sources over later
/// ones. Where a merge follows a key that it sets again, readers disagree
/// (sigs.k8s.io/yaml lets the merge win), so that is a problem.
pub fn finish_mapping(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Problem>) {
    let (entries, mut problems) = without_duplicates(entries);
    if !entries.iter().any(is_merge) {
        return (entries, problems);
    }
    let mut merged = Merged::default();
    for entry in entries {
        if is_merge(&entry) {
            merge(entry, &mut merged, &mut problems);
        } else {
            merged.set(entry);
        }
    }
    (merged.entries, problems)
}

/// The entries so far, by key, and which of them the map states itself.
#[derive(Default)]
struct Merged {
    entries: Vec<Entry>,
    own: Vec<bool>,
    positions: HashMap<String, usize>,
}

impl Merged {
    fn position(&self, key: &str) -> Option<usize> {
        self.positions.get(key).copied()
    }

    fn push(&mut self, entry: Entry, own: bool) {
        self.positions.insert(entry.key.clone(), self.entries.len());
        self.entries.push(entry);
        self.own.push(own);
    }

    /// An entry of the map itself: in the place of a merged one of its key.
    fn set(&mut self, entry: Entry) {
        let Some(at) = self.position(&entry.key) else { return self.push(entry, true) };
        if let (Some(slot), Some(own)) = (self.entries.get_mut(at), self.own.get_mut(at)) {
            (*slot, *own) = (entry, true);
        }
    }
}

fn is_merge(entry: &Entry) -> bool {
    entry.key_plain && entry.key == "<<"
}

fn merge(entry: Entry, merged: &mut Merged, problems: &mut Vec<Problem>) {
    let span = entry.key_span;
    let sources = match entry.value.content {
        Content::Mapping(entries) => vec![entries],
        Content::Sequence(items) => items.into_iter().filter_map(|item| source(item, span, problems)).collect(),
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {
            problems.push(not_a_map(span));
            Vec::new()
        }
    };
    let first_of_this_merge = merged.entries.len();
    for incoming in sources.into_iter().flatten() {
        match merged.position(&incoming.key) {
            None => merged.push(incoming, false),
            Some(at) if at < first_of_this_merge && merged.own.get(at) == Some(&true) => problems.push(Problem {
                code: Code::DuplicateKey,
                span,
                message: format!("the merge comes after the key `{}` that it also sets", incoming.key),
                help: "write `<<` first: readers disagree on which one wins".into(),
            }),
            Some(_) => {}
        }
    }
}

fn source(node: Node, span: Span, problems: &mut Vec<Problem>) -> Option<Vec<Entry>> {
    if let Content::Mapping(entries) = node.content {
        return Some(entries);
    }
    problems.push(not_a_map(span));
    None
}

fn not_a_map(span: Span) -> Problem {
    Problem {
        code: Code::Syntax,
        span,
        message: "`<<` merges a map or a list of maps".into(),
        help: "give it an alias of a map, such as `<<: *defaults`".into(),
    }
}

/// Leaves the first of each key, so that a place names one value.
fn without_duplicates(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Problem>) {
    let positions = duplicates(&entries);
    if positions.is_empty() {
        return (entries, Vec::new());
    }
    let mut problems = Vec::with_capacity(positions.len());
    let mut kept = Vec::with_capacity(entries.len() - positions.len());
    let mut positions = positions.into_iter().peekable();
    for (index, entry) in entries.into_iter().enumerate() {
        if positions.next_if_eq(&index).is_none() {
            kept.push(entry);
            continue;
        }
        problems.push(Problem {
            code: Code::DuplicateKey,
            span: entry.key_span,
            message: format!("the key `{}` is there twice", short(&entry.key)),
            help: "remove one: readers would silently take the last".into(),
        });
    }
    (kept, problems)
}

/// Positions of the keys that were there before, in order.
fn duplicates(entries: &[Entry]) -> Vec<usize> {
    /// Up to here comparing all pairs is faster than hashing.
    const FEW: usize = 16;
    let numbered = entries.iter().enumerate();
    if entries.len() <= FEW {
        let earlier = |index: usize, entry: &Entry| entries.iter().take(index).any(|other| other.key == entry.key);
        return numbered.filter(|(index, entry)| earlier(*index, entry)).map(|(index, _)| index).collect();
    }
    let mut seen = HashSet::with_capacity(entries.len());
    numbered.filter(|(_, entry)| !seen.insert(entry.key.as_str())).map(|(index, _)| index).collect()
}
