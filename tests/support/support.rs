//! A real Kubernetes, Flux and Argo CD on loopback for end-to-end tests.
//!
//! `Bench` starts its parts when a test first asks for them and owns every
//! process; see `docs/development.md`.
#![allow(dead_code, reason = "tests use what they need")]

pub mod argocd;
pub mod bench;
pub mod charts;
pub mod cluster;
pub mod control_plane;
pub mod credentials;
pub mod flux;
pub mod git;
pub mod hand;
pub mod http;
pub mod kept;
pub mod nodes;
pub mod ports;
pub mod processes;
pub mod proxy;
pub mod recorder;
pub mod recordings;
pub mod supervisor;
pub mod tools;
pub mod wait;
pub mod windlass;
