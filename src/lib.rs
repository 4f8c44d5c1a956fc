//! Windlass upgrades software made of several Helm releases, in order, on
//! clusters run by Flux or Argo CD.
//!
//! The library is a pure core with effects at its edge:
//!
//! * [`api`]: the Kubernetes types a user or another program sees;
//! * [`package`]: reading, checking, ordering and fingerprinting packages;
//! * [`chart`]: what the files of a chart say, without Helm;
//! * [`engine`]: components as the objects that Flux or Argo CD apply;
//! * [`ready`]: whether a release, and what it is for, is ready;
//! * [`canary`]: how a DaemonSet is rolled out, one pod first;
//! * [`rollout`]: the decisions, from one look at the cluster to the next step;
//! * [`controller`]: watches, writes and the leader's lease around them;
//! * [`import`]: other formats turned into packages;
//! * [`translate`]: sets of packages as streams of objects;
//! * [`plugin`]: what Argo CD asks of a config management plugin;
//! * [`sim`]: a cluster with virtual time, and [`rehearse`]: the decisions played on it;
//! * [`report`]: what the objects of a cluster say, as text for people;
//! * [`cli`]: the command line.
//!
//! Pure modules take files through [`package::tree::Tree`] and time as a
//! parameter; none of them performs I/O.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)
)]

pub mod api;
pub mod canary;
pub mod chart;
pub mod cli;
mod clock;
pub mod controller;
pub mod engine;
mod fields;
pub mod git;
pub mod import;
pub mod package;
pub mod plan;
pub mod plugin;
pub mod ready;
pub mod rehearse;
pub mod report;
pub mod rollout;
pub mod sim;
pub mod translate;
