//! What is read of an Application (Argo CD 3.5, `argoproj.io/v1alpha1`).

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::import::wire::nullable;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Object {
    #[serde(rename = "apiVersion")]
    pub _api_version: String,
    #[serde(rename = "kind")]
    pub _kind: String,
    pub metadata: Metadata,
    pub spec: Spec,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Metadata {
    pub name: String,
    pub namespace: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub annotations: Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    #[serde(default, deserialize_with = "nullable")]
    pub project: String,
    pub source: Option<Source>,
    #[serde(default, deserialize_with = "nullable")]
    pub sources: Vec<Source>,
    #[serde(default, deserialize_with = "nullable")]
    pub destination: Destination,
    #[serde(default, deserialize_with = "nullable")]
    pub sync_policy: SyncPolicy,
    #[serde(default, deserialize_with = "nullable")]
    pub ignore_differences: Vec<IgnoreDifference>,
}

impl Spec {
    /// The sources that count: Argo CD looks at `source` only where there are no `sources`.
    pub fn all_sources(&self) -> Vec<&Source> {
        if self.sources.is_empty() { self.source.iter().collect() } else { self.sources.iter().collect() }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    #[serde(rename = "repoURL", default, deserialize_with = "nullable")]
    pub repo_url: String,
    pub chart: Option<String>,
    pub path: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub target_revision: String,
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    #[serde(rename = "name")]
    pub _name: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub helm: Helm,
    pub kustomize: Option<Value>,
    pub directory: Option<Value>,
    pub plugin: Option<Value>,
}

impl Source {
    pub fn chart(&self) -> Option<&str> {
        self.chart.as_deref().filter(|chart| !chart.is_empty())
    }

    pub fn path(&self) -> Option<&str> {
        self.path.as_deref().filter(|path| !path.is_empty())
    }

    /// The name under which values files name this source.
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref().filter(|reference| !reference.is_empty())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Helm {
    pub release_name: Option<String>,
    pub namespace: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub value_files: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub values: String,
    #[serde(default, deserialize_with = "nullable")]
    pub values_object: Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub parameters: Vec<Parameter>,
    #[serde(default, deserialize_with = "nullable")]
    pub file_parameters: Vec<FileParameter>,
    pub skip_crds: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Parameter {
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub value: String,
    #[serde(default, deserialize_with = "nullable")]
    pub force_string: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FileParameter {
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub path: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Destination {
    #[serde(default, deserialize_with = "nullable")]
    pub server: String,
    #[serde(default, deserialize_with = "nullable")]
    pub name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub namespace: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SyncPolicy {
    pub automated: Option<Automated>,
    #[serde(default, deserialize_with = "nullable")]
    pub sync_options: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub managed_namespace_metadata: NamespaceMetadata,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Automated {
    #[serde(default, deserialize_with = "nullable")]
    pub prune: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub self_heal: bool,
    pub enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct NamespaceMetadata {
    #[serde(default, deserialize_with = "nullable")]
    pub labels: Map<String, Value>,
    #[serde(default, deserialize_with = "nullable")]
    pub annotations: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IgnoreDifference {
    pub group: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub kind: String,
    pub name: Option<String>,
    pub namespace: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub json_pointers: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub jq_path_expressions: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub managed_fields_managers: Vec<String>,
}
