//! Windlass upgrades software made of several Helm releases, in order, on
//! clusters run by Flux or Argo CD.
//!
//! The library is a pure core with effects at its edge:
//!
//! * [`api`]: the Kubernetes types a user or another program sees;
//! * [`package`]: reading, checking, ordering and fingerprinting packages;
//! * [`engine`]: components as the objects that Flux or Argo CD apply;
//! * [`translate`]: sets of packages as streams of objects;
//! * [`plugin`]: what Argo CD asks of a config management plugin;
//! * [`ready`]: whether a release, and what it is for, is ready;
//! * [`cli`]: the command line.
//!
//! Pure modules take files through [`package::tree::Tree`] and time as a
//! parameter; none of them performs I/O.

#![deny(missing_docs)]

pub mod api;
pub mod cli;
pub mod engine;
pub mod package;
pub mod plugin;
pub mod ready;
pub mod translate;
