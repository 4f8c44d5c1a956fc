//! CustomResourceDefinitions.

use serde_json::Value;

use super::template::{Document, has_mark};

const KIND: &str = "CustomResourceDefinition";
/// The only group and version that API servers still take.
const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A CustomResourceDefinition, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Crd {
    /// Its name, `<plural>.<group>`.
    pub name: String,
    /// Group of the kind.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// Its versions.
    pub versions: Vec<CrdVersion>,
    /// Versions that it says itself objects are stored in.
    pub stored: Vec<String>,
    /// Whether all of its spec is known.
    pub is_whole: bool,
    /// Whether it comes from a template, rather than from `crds`.
    pub is_templated: bool,
    /// Whether it is marked to be kept when it goes from its release.
    pub is_kept: bool,
    /// File of the chart.
    pub file: String,
}

/// A version of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CrdVersion {
    /// Its name.
    pub name: String,
    /// Whether it is served, if that is known.
    pub served: Option<bool>,
    /// Whether objects are stored in it, if that is known.
    pub storage: Option<bool>,
    /// `openAPIV3Schema`.
    pub schema: Value,
}

/// Whether a text may hold a definition.
pub fn is_named_in(text: &str) -> bool {
    text.contains(KIND)
}

impl Crd {
    /// Reads a document, if it is a definition whose name is known.
    pub fn read(document: &Document, file: &str) -> Option<Self> {
        if document.text(&["kind"]) != Some(KIND) || document.text(&["apiVersion"]) != Some(API_VERSION) {
            return None;
        }
        let text = |path: &[&str]| document.text(path).map(str::to_owned);
        let spec = document.at(&["spec"]).filter(|_| !document.has_gap_below("spec"));
        let list = |path: &[&str]| document.at(path).and_then(Value::as_array).cloned().unwrap_or_default();
        let annotation = |name: &str| document.text(&["metadata", "annotations", name]).unwrap_or_default();
        let is_kept = annotation("helm.sh/resource-policy") == "keep"
            || annotation("argocd.argoproj.io/sync-options").contains("Prune=false");
        Some(Self {
            name: text(&["metadata", "name"])?,
            group: text(&["spec", "group"])?,
            kind: text(&["spec", "names", "kind"])?,
            versions: list(&["spec", "versions"]).iter().filter_map(CrdVersion::read).collect(),
            stored: list(&["status", "storedVersions"]).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            is_whole: spec.is_some_and(|spec| !has_mark(&spec.to_string())),
            is_templated: true,
            is_kept,
            file: file.to_owned(),
        })
    }

    /// A version of it.
    pub fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.name == name)
    }
}

impl CrdVersion {
    fn read(version: &Value) -> Option<Self> {
        let flag = |name: &str| version.get(name).and_then(Value::as_bool);
        Some(Self {
            name: super::template::text(version.get("name")?)?.to_owned(),
            served: flag("served"),
            storage: flag("storage"),
            schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default(),
        })
    }
}
