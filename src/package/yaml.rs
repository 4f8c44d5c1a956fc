//! YAML as Kubernetes tools read and write it.

pub mod write;
