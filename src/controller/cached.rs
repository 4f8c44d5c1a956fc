//! Objects of any kind, as small as they can be kept.

use kube::api::{ApiResource, ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

use crate::api::wellknown::LABEL_PACKAGE;
use crate::engine::ObjectKey;
use crate::rollout::live::{Live, key_of};

/// An object as text, without `managedFields`: a tenth of what it takes as a
/// tree. It is read again when a decision is made about it.
#[derive(Clone, Debug)]
pub struct Cached {
    meta: ObjectMeta,
    key: ObjectKey,
    package: Option<Box<str>>,
    version: u64,
    text: Box<str>,
}

impl Cached {
    /// Takes an object.
    pub fn new(mut object: Map<String, Value>) -> Self {
        let key = key_of(&object);
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let mut meta = ObjectMeta::default();
        let mut package = None;
        if let Some(metadata) = metadata {
            metadata.remove("managedFields");
            let text = |name: &str| metadata.get(name).and_then(Value::as_str).map(str::to_owned);
            meta.name = text("name");
            meta.namespace = text("namespace");
            meta.uid = text("uid");
            meta.resource_version = text("resourceVersion");
            let label = metadata.get("labels").and_then(|labels| labels.get(LABEL_PACKAGE)).and_then(Value::as_str);
            package = label.map(Box::from);
        }
        let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or(0);
        let text = serde_json::to_string(&object).unwrap_or_default().into_boxed_str();
        Self { meta, key, package, version, text }
    }

    /// What tells it from every other.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// uid.
    pub fn uid(&self) -> Option<&str> {
        self.meta.uid.as_deref()
    }

    /// Package that its label names.
    pub fn package(&self) -> Option<&str> {
        self.package.as_deref()
    }

    /// Its resource version as a number; 0 if it is none. API servers number
    /// the changes of one kind in rising order (Kubernetes 1.35 guarantees it,
    /// every etcd-backed server did before).
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The object.
    pub fn live(&self) -> Live {
        Live::new(self.object())
    }

    /// The object.
    pub fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The object as one of our types.
    ///
    /// # Errors
    /// When the object does not have the type's shape.
    pub fn typed<T: serde::de::DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Cached {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(Map::deserialize(deserializer)?))
    }
}

impl kube::Resource for Cached {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
