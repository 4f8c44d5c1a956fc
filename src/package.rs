//! Packages before they reach a cluster: read, checked, ordered, fingerprinted.
//!
//! The way of a file: [`tree`] gives bytes, loading gives a typed
//! [`crate::api::Package`] with places, [`definition`] parses it into
//! [`definition::Definition`], which [`order`] and [`digest`] work on.

pub mod canonical;
pub mod check;
pub mod content;
pub mod definition;
mod derived;
pub mod diagnostic;
pub mod digest;
pub mod duration;
pub mod edit;
pub mod graph;
pub mod load;
pub mod names;
pub mod order;
pub mod pointer;
pub mod range;
pub mod source;
pub mod structure;
pub mod tree;
pub mod version;
pub mod violation;
pub mod yaml;
