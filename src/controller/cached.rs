//! Objects of any kind, as small as they can be kept.

use kube::api::{ApiResource, ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::borrow::Cow;

use super::shallow::Shallow;
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
    is_cut: bool,
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
        Self { meta, key, package, version, is_cut: false, text }
    }

    /// Whether something was left out because it is nested too deeply.
    pub fn is_cut(&self) -> bool {
        self.is_cut
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

    /// One of its labels.
    pub fn label(&self, name: &str) -> Option<String> {
        let object = self.object();
        object.get("metadata")?.get("labels")?.get(name)?.as_str().map(str::to_owned)
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
        let Shallow { object, is_cut } = Shallow::deserialize(deserializer)?;
        Ok(Self { is_cut, ..Self::new(object) })
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

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};

    use super::*;

    fn release(name: &str, levels: usize) -> String {
        let values = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        format!(
            r#"{{"apiVersion":"helm.toolkit.fluxcd.io/v2","kind":"HelmRelease","metadata":{{"name":"{name}","namespace":"ns","resourceVersion":"7"}},"spec":{{"releaseName":"{name}","values":{values}}}}}"#
        )
    }

    #[test]
    fn one_object_that_is_too_deep_keeps_no_list_from_being_read() {
        let items = [release("a", 1), release("deep", 5_000), release("b", 64)].join(",");
        let text = format!(
            r#"{{"kind":"HelmReleaseList","apiVersion":"helm.toolkit.fluxcd.io/v2","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#
        );
        let list: ObjectList<Cached> = serde_json::from_str(&text).unwrap();
        let read: Vec<(&str, bool)> = list.items.iter().map(|item| (item.key().name.as_str(), item.is_cut())).collect();
        assert_eq!(read, [("a", false), ("deep", true), ("b", false)]);
        let deep = list.items[1].object();
        assert_eq!((&deep["spec"]["releaseName"], list.items[1].version()), (&"deep".into(), 7));
    }

    #[test]
    fn one_object_that_is_too_deep_interrupts_no_watch() {
        let text = format!(r#"{{"type":"ADDED","object":{}}}"#, release("deep", 5_000));
        let event: WatchEvent<Cached> = serde_json::from_str(&text).unwrap();
        assert!(matches!(event, WatchEvent::Added(object) if object.is_cut() && object.key().name == "deep"));
    }
}
