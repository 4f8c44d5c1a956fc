//! Where in a file a document has a value that cannot be read.

use std::sync::Arc;

use serde_path_to_error::{Path, Segment};

use super::Document;
use super::wire::Unreadable;
use crate::package::pointer::escape;
use crate::package::source::Source;
use crate::package::yaml;

/// Where a document is in the text that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text of the file.
    pub text: Arc<str>,
    /// Where its YAML document begins, in bytes.
    pub start: usize,
    /// JSON pointer of it in the YAML document; empty but for items of a List.
    pub pointer: String,
}

impl Document {
    /// `file:line:column` of what cannot be read; the file alone where that is not known.
    pub(super) fn place(&self, error: &Unreadable) -> String {
        self.place_below("", error)
    }

    /// The same of what was read from a part of the document.
    pub(super) fn place_below(&self, part: &str, error: &Unreadable) -> String {
        let position = self.written.as_ref().and_then(|written| {
            // Only of what goes wrong, so that nothing is kept of what goes well.
            let parsed = yaml::parse(&written.text);
            let root = parsed.documents.iter().find(|root| root.locate("").start == written.start)?;
            let pointer = format!("{}{part}{}", written.pointer, pointer(&error.path));
            Some(Source::new("", written.text.as_ref()).position(root.locate(&pointer).start))
        });
        match position {
            Some(position) => format!("{}:{}:{}", self.origin, position.line, position.column),
            None => self.origin.clone(),
        }
    }
}

fn pointer(path: &Path) -> String {
    let parts = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } => Some(format!("/{}", escape(key))),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    parts.collect()
}
