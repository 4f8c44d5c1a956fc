//! What Argo CD tells a plugin, parsed once.

use std::collections::BTreeSet;

use serde::Deserialize;
use thiserror::Error;

use super::parameters::NAMES;
use crate::api::Engine;
use crate::package::definition::{RelativePath, did_you_mean};
use crate::package::names::{NameError, Namespace};
use crate::package::version::Version;

/// What `generate` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Packages, for the controller.
    Package,
    /// Objects that need no controller.
    Native,
}

/// The parameters of an Application's `plugin` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// What is printed. Default: Packages.
    pub output: Output,
    /// Engine of the Packages. Default: Argo CD.
    pub engine: Engine,
    /// Directory of the Packages, relative to the Application's. Default: that one.
    pub path: RelativePath,
    /// Whether directories below it are read as well. Default: yes.
    pub recurse: bool,
    /// Whether native Applications get waves. Default: yes.
    pub waves: bool,
}

/// The build environment of one generation (Argo CD's build-environment page).
#[derive(Clone, Debug)]
pub struct Environment {
    /// `ARGOCD_APP_NAMESPACE`: namespace of the Application's destination.
    pub namespace: Namespace,
    /// `ARGOCD_APP_PROJECT_NAME`, `default` if it is absent.
    pub project: String,
    /// `ARGOCD_APP_SOURCE_REPO_URL` and `ARGOCD_APP_REVISION`, if both are there.
    pub origin: Option<(String, String)>,
    /// `ARGOCD_APP_SOURCE_PATH`, the root if it is absent.
    pub source_path: RelativePath,
    /// `KUBE_VERSION` without what a distribution appends to it, or why there is none.
    pub kubernetes: Result<Version, String>,
    /// `ARGOCD_APP_PARAMETERS`.
    pub parameters: Parameters,
}

/// Why the environment makes no sense.
#[derive(Debug, Error)]
pub enum EnvironmentError {
    /// Nobody has said where the Packages go.
    #[error("ARGOCD_APP_NAMESPACE is empty: write spec.destination.namespace in the Application")]
    NoNamespace,
    /// The namespace is none.
    #[error("ARGOCD_APP_NAMESPACE: {0}")]
    Namespace(#[from] NameError),
    /// `ARGOCD_APP_SOURCE_PATH` leads out of the source.
    #[error("ARGOCD_APP_SOURCE_PATH: `{0}` leads out of the source")]
    SourcePath(String),
    /// `ARGOCD_APP_PARAMETERS` is not what Argo CD writes.
    #[error("ARGOCD_APP_PARAMETERS is no list of parameters: {0}")]
    NotParameters(String),
    /// A parameter that does not exist.
    #[error("there is no parameter `{name}`, only {}{help}", NAMES.join(", "))]
    UnknownParameter {
        /// Its name.
        name: String,
        /// The name that was probably meant.
        help: String,
    },
    /// A parameter is there more than once.
    #[error("parameter `{0}` is there twice: remove one")]
    Twice(String),
    /// A parameter has a value that means nothing.
    #[error("parameter `{name}` is {found}: write {expected}")]
    Value {
        /// Its name.
        name: String,
        /// What it is.
        found: String,
        /// What it can be.
        expected: String,
    },
}

impl Environment {
    /// Reads the variables through `get`.
    ///
    /// # Errors
    /// See [`EnvironmentError`]. Nothing that is stated is ever ignored.
    pub fn parse(get: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let stated = |name: &str| get(name).filter(|value| !value.is_empty());
        let namespace = stated("ARGOCD_APP_NAMESPACE").ok_or(EnvironmentError::NoNamespace)?;
        let source_path = stated("ARGOCD_APP_SOURCE_PATH").unwrap_or_default();
        let parameters = stated("ARGOCD_APP_PARAMETERS").unwrap_or_default();
        Ok(Self {
            namespace: Namespace::parse(&namespace)?,
            project: stated("ARGOCD_APP_PROJECT_NAME").unwrap_or_else(|| "default".to_owned()),
            origin: stated("ARGOCD_APP_SOURCE_REPO_URL").zip(stated("ARGOCD_APP_REVISION")),
            source_path: RelativePath::parse(&source_path).ok_or(EnvironmentError::SourcePath(source_path))?,
            kubernetes: kubernetes(stated("KUBE_VERSION")),
            parameters: Parameters::parse(&parameters)?,
        })
    }
}

/// An unreadable version fails only what asks for one.
fn kubernetes(stated: Option<String>) -> Result<Version, String> {
    let stated = stated.ok_or_else(|| "KUBE_VERSION is not set".to_owned())?;
    kubernetes_version(&stated).ok_or_else(|| format!("KUBE_VERSION is `{stated}`, which is no version"))
}

/// The three numbers at the front of `v1.33.4-gke.100` or `1.33+`. Ranges admit
/// no pre-releases, and what distributions append looks like one.
fn kubernetes_version(text: &str) -> Option<Version> {
    let numbers = text.strip_prefix('v').unwrap_or(text);
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
    let numbers = numbers.get(..end)?;
    let missing = 2usize.checked_sub(numbers.matches('.').count())?;
    Version::parse(&format!("{numbers}{}", ".0".repeat(missing))).ok()
}

#[derive(Deserialize)]
struct Stated {
    name: String,
    string: Option<String>,
    array: Option<serde_json::Value>,
    map: Option<serde_json::Value>,
}

impl Parameters {
    fn parse(text: &str) -> Result<Self, EnvironmentError> {
        let mut parameters = Self {
            output: Output::Package,
            engine: Engine::Argo,
            path: RelativePath::default(),
            recurse: true,
            waves: true,
        };
        if text.is_empty() {
            return Ok(parameters);
        }
        let stated: Option<Vec<Stated>> =
            serde_json::from_str(text).map_err(|error| EnvironmentError::NotParameters(error.to_string()))?;
        let mut names = BTreeSet::new();
        for one in stated.unwrap_or_default() {
            if !names.insert(one.name.clone()) {
                return Err(EnvironmentError::Twice(one.name));
            }
            parameters.set(one)?;
        }
        Ok(parameters)
    }

    fn set(&mut self, stated: Stated) -> Result<(), EnvironmentError> {
        let Stated { name, string, array, map } = stated;
        if !NAMES.contains(&name.as_str()) {
            let similar = did_you_mean(&name, NAMES.iter().copied());
            let help = if similar.is_empty() { similar } else { format!(": {similar}") };
            return Err(EnvironmentError::UnknownParameter { name, help });
        }
        let found = match (&string, &array, &map) {
            (Some(text), ..) if text.is_empty() => "empty".to_owned(),
            (Some(text), ..) => format!("`{text}`"),
            (None, Some(_), _) => "a list".to_owned(),
            (None, None, Some(_)) => "a map".to_owned(),
            (None, None, None) => return Ok(()),
        };
        let is_text = string.is_some();
        let under = if string.is_none() { ", under `string`" } else { "" };
        let text = string.unwrap_or_default();
        let expected = match name.as_str() {
            "output" => one_of(&text, [("package", Output::Package), ("native", Output::Native)], &mut self.output)
                .then_some("package or native"),
            "engine" => one_of(&text, [("argo", Engine::Argo), ("flux", Engine::Flux)], &mut self.engine)
                .then_some("argo or flux"),
            "recurse" => {
                one_of(&text, [("true", true), ("false", false)], &mut self.recurse).then_some("true or false")
            }
            "waves" => one_of(&text, [("on", true), ("off", false)], &mut self.waves).then_some("on or off"),
            _ => match RelativePath::parse(&text).filter(|_| is_text) {
                Some(path) => {
                    self.path = path;
                    None
                }
                None => Some("a path below the Application's, without `..`"),
            },
        };
        match expected {
            Some(expected) => Err(EnvironmentError::Value { name, found, expected: format!("{expected}{under}") }),
            None => Ok(()),
        }
    }
}

/// Sets `target` to what `text` stands for; true if it stands for nothing.
fn one_of<T: Copy>(text: &str, choices: [(&str, T); 2], target: &mut T) -> bool {
    match choices.into_iter().find(|(name, _)| *name == text) {
        Some((_, value)) => {
            *target = value;
            false
        }
        None => true,
    }
}
