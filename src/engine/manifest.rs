//! A Kubernetes object on its way to an API server.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::RenderError;
use crate::package::names::ObjectName;

/// A Kubernetes object as it is applied, keys in a fixed order.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Map<String, Value>);

/// What tells one object of a cluster from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(formatter, "{}/{}", self.kind, self.name)
        } else {
            write!(formatter, "{}/{}/{}", self.kind, self.namespace, self.name)
        }
    }
}

impl Manifest {
    /// Takes an object from a record as it stands.
    pub fn from_record(object: Map<String, Value>) -> Self {
        Self(object)
    }

    pub(super) fn of(kind: &'static str, object: &impl Serialize) -> Result<Self, RenderError> {
        let refused = |problem: String| RenderError::Serialize { kind, problem };
        match serde_json::to_value(object) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(other) => Err(refused(format!("it became {other}"))),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// The object.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The object.
    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }

    pub(super) fn map_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// The same release, installed by Flux as this account. Argo CD has none.
    #[must_use]
    pub fn acting_as(mut self, account: &ObjectName) -> Self {
        if self.kind() == "HelmRelease"
            && let Some(Value::Object(spec)) = self.0.get_mut("spec")
        {
            spec.insert("serviceAccountName".into(), account.as_str().into());
        }
        self
    }

    /// The same release's object at another name, and with Helm's records in
    /// another namespace, where it says where they are.
    #[must_use]
    pub fn placed(mut self, name: &str, storage_namespace: &str) -> Self {
        if let Some(Value::Object(metadata)) = self.0.get_mut("metadata") {
            metadata.insert("name".into(), name.into());
        }
        if let Some(stated) = self.0.get_mut("spec").and_then(|spec| spec.get_mut("storageNamespace")) {
            *stated = storage_namespace.into();
        }
        self
    }

    /// The same HelmRelease with its chart from another source.
    #[must_use]
    pub fn with_chart_ref(mut self, chart_ref: Option<Value>) -> Self {
        if let (Some(chart_ref), Some(Value::Object(spec))) = (chart_ref, self.0.get_mut("spec")) {
            spec.insert("chartRef".into(), chart_ref);
        }
        self
    }

    /// `kind` of the object.
    pub fn kind(&self) -> &str {
        self.text(&["kind"])
    }

    /// `metadata.name` of the object.
    pub fn name(&self) -> &str {
        self.text(&["metadata", "name"])
    }

    /// What tells the object from every other.
    pub fn key(&self) -> ObjectKey {
        let text = |path: &[&str]| self.text(path).to_owned();
        ObjectKey {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
        }
    }

    /// The value at a path of keys.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        Self::get_in(&self.0, path)
    }

    /// The same of an object that is none of ours.
    pub(super) fn get_in<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
        let (last, parents) = path.split_last()?;
        let mut map = object;
        for key in parents {
            map = map.get(*key)?.as_object()?;
        }
        map.get(*last)
    }

    fn text(&self, path: &[&str]) -> &str {
        self.get(path).and_then(Value::as_str).unwrap_or_default()
    }
}

impl From<Manifest> for Value {
    fn from(manifest: Manifest) -> Self {
        Self::Object(manifest.0)
    }
}
