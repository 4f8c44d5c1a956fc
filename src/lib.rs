//! Windlass upgrades software made of several Helm releases, in order, on
//! clusters run by Flux or Argo CD.
//!
//! The library is a pure core with effects at its edge:
//!
//! * [`api`]: the Kubernetes types a user or another program sees;
//! * [`package`]: reading, checking, ordering and fingerprinting packages;
//! * [`cli`]: the command line.
//!
//! Pure modules take files through [`package::tree::Tree`] and time as a
//! parameter; none of them performs I/O.

#![deny(missing_docs)]

pub mod api;
pub mod cli;
pub mod package;
