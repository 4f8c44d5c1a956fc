//! What is read of a helmfile (Helmfile 1.x).

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::import::wire::nullable;

/// A helmfile, or one of the documents that `helmfile build` prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct State {
    /// Stands only in what `helmfile build` prints.
    pub filepath: Option<String>,
    #[serde(rename = "renderedvalues")]
    pub _rendered_values: Option<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub repositories: Vec<Repository>,
    /// Read one by one, so that one that cannot be read is named.
    #[serde(default, deserialize_with = "nullable")]
    pub releases: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub namespace: String,
    #[serde(default, deserialize_with = "nullable")]
    pub kube_context: String,
    #[serde(default, deserialize_with = "nullable")]
    pub helm_defaults: Defaults,
    #[serde(default, deserialize_with = "nullable")]
    pub environments: Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub helmfiles: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub bases: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub values: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub templates: Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub hooks: Vec<Hook>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Defaults {
    pub timeout: Option<u64>,
    #[serde(default, deserialize_with = "nullable")]
    pub kube_context: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Repository {
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub url: String,
    #[serde(default, deserialize_with = "nullable")]
    pub oci: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Release {
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub namespace: String,
    #[serde(default, deserialize_with = "nullable")]
    pub kube_context: String,
    #[serde(default, deserialize_with = "nullable", alias = "directory")]
    pub chart: String,
    #[serde(default, deserialize_with = "nullable")]
    pub version: String,
    #[serde(default, deserialize_with = "nullable")]
    pub needs: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub values: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub secrets: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub set: Vec<Setting>,
    #[serde(default, deserialize_with = "nullable")]
    pub set_string: Vec<Setting>,
    pub installed: Option<bool>,
    #[serde(default, deserialize_with = "nullable")]
    pub condition: String,
    pub timeout: Option<u64>,
    pub missing_file_handler: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub hooks: Vec<Hook>,
    #[serde(rename = "wait")]
    pub wait: Option<bool>,
    pub create_namespace: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Setting {
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    pub value: Option<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub values: Vec<Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub file: String,
}

/// What is said of a hook is all of it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Hook {
    #[serde(default, deserialize_with = "nullable")]
    pub events: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub command: String,
    #[serde(flatten)]
    pub _rest: Map<String, Value>,
}
