//! Sets of Packages as streams of objects: what a person renders, or what a
//! plugin hands to Argo CD. Pure.
//!
//! * [`managed()`]: the children as the controller writes them;
//! * [`native()`]: objects that keep their order without a controller;
//! * [`compile()`]: Packages for the controller, with everything in them that
//!   only who reads the files can know.

mod compile;
mod managed;
mod native;
mod notes;
mod packages;
mod stream;

use std::fmt;

use thiserror::Error;

use crate::api::Engine;
use crate::engine::{CanaryGuard, Destination, Manifest};
use crate::package::definition::{Component, Definition};

pub use compile::{Charts, Compilation, Compiled, compile};
pub use managed::managed;
pub use native::native;

/// How a set of Packages is translated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Engine of the Packages that name none.
    pub engine: Option<Engine>,
    /// Argo CD: project of the Applications.
    pub project: String,
    /// Argo CD: cluster that the releases go to.
    pub destination: Destination,
    /// What keeps a DaemonSet's first step small.
    pub guard: CanaryGuard,
    /// Native: leave hooks out instead of refusing them.
    pub skip_hooks: bool,
    /// Native, Argo CD: put every Application into a wave.
    pub waves: bool,
}

impl Options {
    /// What holds where nothing else is said: project `default`, the cluster
    /// that Argo CD runs in, any Kubernetes version, hooks refused, waves on.
    pub fn for_engine(engine: Option<Engine>) -> Self {
        Self {
            engine,
            project: "default".to_owned(),
            destination: Destination::in_cluster(),
            guard: CanaryGuard::Rendered,
            skip_hooks: false,
            waves: true,
        }
    }
}

/// Objects in the order in which they are applied, and what has to be said of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// The objects, each once.
    pub objects: Vec<Manifest>,
    /// What the objects do not do although a Package asks for it.
    pub notes: Vec<Note>,
}

/// Something that is said of a Package or of one of its components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The Package, and the component if it is about one.
    pub about: Subject,
    /// What is said; one line.
    pub message: String,
}

/// A Package or one of its components.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// The Package.
    pub package: String,
    /// The component.
    pub component: Option<String>,
}

impl Subject {
    pub(crate) fn package(package: &Definition) -> Self {
        Self { package: package.name.to_string(), component: None }
    }

    pub(crate) fn component(package: &Definition, component: &Component) -> Self {
        Self { package: package.name.to_string(), component: Some(component.name.to_string()) }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.package)?;
        self.component.as_ref().map_or(Ok(()), |component| write!(formatter, "/{component}"))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.about, self.message)
    }
}

/// Why a set is not translated. Nothing of it is then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{about}: {message}")]
pub struct Refusal {
    /// The Package, and the component if it is about one.
    pub about: Subject,
    /// What is wrong and what to do; one line.
    pub message: String,
}

impl Refusal {
    fn new(about: Subject, message: impl ToString) -> Self {
        Self { about, message: message.to_string() }
    }
}

const NO_ENGINE: &str = "no engine: write spec.engine, or say --engine flux or --engine argo";

/// The engine of a Package: its own, or the one for those that name none.
fn engine_of(package: &Definition, default: Option<Engine>) -> Result<Engine, Refusal> {
    let refuse = |message: String| Refusal::new(Subject::package(package), message);
    match (package.engine, default) {
        (Some(own), Some(other)) if own != other => {
            let (own, other) = (own.as_str(), other.as_str());
            Err(refuse(format!(
                "its spec.engine is {own}, and this is for {other}: keep the Packages of either engine in a directory \
                 of their own"
            )))
        }
        (Some(engine), _) | (None, Some(engine)) => Ok(engine),
        (None, None) => Err(refuse(NO_ENGINE.to_owned())),
    }
}
