//! Templates read without Helm: what a file surely renders, with marks where
//! that is not known.

mod document;
mod expression;
mod functions;
mod render;
mod tokens;
mod tree;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Release;

use render::Render;

pub use document::{Document, documents, has_mark, text};
pub use tree::Node;

/// What templates are evaluated from.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The release.
    pub release: &'a Release<'a>,
    /// Chart.yaml.
    pub chart: &'a Map<String, Value>,
    /// All values; `None` if they are not known.
    pub values: Option<&'a Map<String, Value>>,
}

/// The templates of a chart.
pub struct Templates<'t> {
    files: BTreeMap<&'t str, Vec<Node<'t>>>,
    defines: BTreeMap<&'t str, Vec<Node<'t>>>,
}

/// What a template renders.
pub struct Reading {
    /// Its documents.
    pub documents: Vec<Document>,
    /// Whether there is nothing else.
    pub is_whole: bool,
}

impl<'t> Templates<'t> {
    /// Takes templates apart, by file; those that cannot be are left out.
    pub fn of(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Self {
        let mut templates = Self { files: BTreeMap::new(), defines: BTreeMap::new() };
        for (file, text) in texts {
            if has_mark(text) {
                continue;
            }
            if let Some(tree) = tree::parse(text) {
                templates.defines.extend(tree.defines);
                templates.files.insert(file, tree.nodes);
            }
        }
        templates
    }

    /// Reads a file; `None` if it could not be taken apart.
    pub fn read(&self, file: &str, facts: &Facts<'_>) -> Option<Reading> {
        let nodes = self.files.get(file)?;
        // Files whose names begin so only define what others include.
        if file.rsplit('/').next().is_some_and(|name| name.starts_with('_')) {
            return Some(Reading { documents: Vec::new(), is_whole: true });
        }
        let text = Render::new(&self.defines, facts).text(nodes);
        let documents = documents(&text);
        let is_whole = documents.iter().all(|document| document.root.is_some() && document.gaps.is_empty());
        Some(Reading { documents, is_whole })
    }
}
