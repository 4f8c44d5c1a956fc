//! Documents among what was rendered, with the gaps in them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::package::yaml;

/// Stands for a text that is not known; on a line of its own for lines at any depth.
pub const UNKNOWN: char = '\u{f8f0}';
/// Stands for lines that are not known, if there are any, and none of which
/// stands further to the left.
pub const GAP: char = '\u{f8f1}';

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What it says; `None` if it could not be read.
    pub root: Option<Value>,
    /// Paths of maps in which something may be missing, such as `metadata.labels`;
    /// empty for the outermost one.
    pub gaps: BTreeSet<String>,
}

/// Whether something in a text is not known.
pub fn has_mark(text: &str) -> bool {
    text.contains([UNKNOWN, GAP])
}

/// Reads the documents of a text.
pub fn documents(text: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let rest = line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        match rest {
            Some(rest) => {
                documents.extend(document(&lines));
                lines.clear();
                lines.push(rest);
            }
            None => lines.push(line),
        }
    }
    documents.extend(document(&lines));
    documents
}

/// The document of some lines, if they say anything.
fn document(lines: &[&str]) -> Option<Document> {
    let (mut kept, mut gaps, mut way) = (String::new(), BTreeSet::new(), Way::default());
    for line in lines {
        let bare = line.trim();
        if !bare.is_empty() && bare.chars().all(|letter| matches!(letter, UNKNOWN | GAP)) {
            gaps.insert(if bare.contains(UNKNOWN) {
                way.section()
            } else {
                way.at(line.len() - line.trim_start().len())
            });
            continue;
        }
        way.pass(line);
        kept.push_str(line);
        kept.push('\n');
    }
    let says_something = kept.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    if !says_something {
        // Lines that are not known may be a document of their own.
        return (!gaps.is_empty()).then_some(Document { root: None, gaps });
    }
    let mut parsed = yaml::parse(&kept);
    let root = parsed.documents.pop().filter(|_| parsed.documents.is_empty() && parsed.problems.is_empty());
    Some(Document { root: root.map(yaml::Node::into_value), gaps })
}

/// The keys that a line stands below, by how far to the right they stand.
#[derive(Default)]
struct Way<'l>(Vec<(usize, &'l str)>);

impl<'l> Way<'l> {
    fn pass(&mut self, line: &'l str) {
        let bare = line.trim_start();
        let Some((key, _)) = bare.split_once(':').filter(|_| !bare.starts_with(['#', '-', '{', '}', '[', ']'])) else {
            return;
        };
        let depth = line.len() - bare.len();
        self.0.retain(|(other, _)| *other < depth);
        self.0.push((depth, key));
    }

    fn at(&self, depth: usize) -> String {
        let above = self.0.iter().filter(|(other, _)| *other < depth).map(|(_, key)| *key);
        above.collect::<Vec<_>>().join(".")
    }

    fn section(&self) -> String {
        self.at(1)
    }
}

impl Document {
    /// Whether something may be missing in a map itself.
    pub fn has_gap_in(&self, path: &str) -> bool {
        self.gaps.contains(path)
    }

    /// Whether something may be missing in a map, or anywhere in it.
    pub fn has_gap_below(&self, path: &str) -> bool {
        let is_below =
            |gap: &String| gap.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.gaps.iter().any(is_below)
    }

    /// The objects that it holds: itself, or the items of a list.
    pub fn objects(&self) -> Vec<Self> {
        let Some(root) = &self.root else { return Vec::new() };
        match (root.get("kind").and_then(Value::as_str), root.get("items").and_then(Value::as_array)) {
            (Some(kind), Some(items)) if kind.ends_with("List") => {
                let item = |item: &Value| Self { root: Some(item.clone()), gaps: self.gaps.clone() };
                items.iter().map(item).collect()
            }
            _ => vec![self.clone()],
        }
    }

    /// Text at a path, if it is known.
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        text(self.at(path)?)
    }

    /// Value at a path.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self.root.as_ref()?, |value, key| value.get(key))
    }
}

/// The text of a value, if it is one that is known.
pub fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !has_mark(text))
}
