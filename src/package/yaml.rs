//! YAML as Kubernetes tools read and write it.
//!
//! Reading follows sigs.k8s.io/yaml, which kubectl, Flux and Argo CD use: plain
//! `on`, `yes`, `n` and the like are booleans, `012` is ten, `1_000` a thousand,
//! keys become text, `<<` merges. Every node keeps its place.

mod build;
mod escape;
mod flow;
mod markers;
mod merge;
mod node;
mod scalar;
mod tabs;
#[cfg(test)]
mod tests;
pub mod write;

use super::source::Span;
use super::violation::Code;

pub use build::parse;
pub use node::{Content, Entry, Node};
pub use scalar::{Ambiguity, ambiguity, plainly};

/// Largest file that is read, in bytes. A Kubernetes object has less than 2 MiB.
pub const MAX_FILE: usize = 8 << 20;
/// Longest text of one scalar, in bytes: etcd would take no object with it.
pub const MAX_SCALAR: usize = 1 << 20;
/// Deepest nesting of lists and maps, aliases included.
pub const MAX_DEPTH: usize = 64;
/// Most documents of one file.
pub const MAX_DOCUMENTS: usize = 1024;
/// Most nodes of one file, counted with every use of an alias.
pub const MAX_NODES: usize = 500_000;
/// Most bytes of text that aliases may add to one file.
pub const MAX_ALIAS_TEXT: usize = 16 << 20;

/// What is wrong at one place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which rule.
    pub code: Code,
    /// Where.
    pub span: Span,
    /// What; one line.
    pub message: String,
    /// What to do; empty if the message says it.
    pub help: String,
}

/// A text read as YAML: the documents that could be built, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// The roots of the documents that could be understood.
    pub documents: Vec<Node>,
    /// What is wrong, in the order of the text.
    pub problems: Vec<Problem>,
}
