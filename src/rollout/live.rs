//! Objects as they were last seen in the cluster.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::api::wellknown::{
    ANNOTATION_DIGEST, ANNOTATION_WAVE, FIELD_MANAGER, LABEL_COMPONENT, LABEL_MANAGED_BY, LABEL_PACKAGE,
};
use crate::engine::ObjectKey;
use crate::fields::field;

/// An object as it was last seen. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The whole object, without `managedFields`.
    pub object: Arc<Map<String, Value>>,
    key: Arc<ObjectKey>,
}

impl Live {
    /// Wraps an object.
    pub fn new(object: impl Into<Arc<Map<String, Value>>>) -> Self {
        let object = object.into();
        Self { key: Arc::new(key_of(&object)), object }
    }

    /// `apiVersion`, kind, namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The same, borrowed.
    pub(crate) fn place(&self) -> Place<'_> {
        Place::from(self.key())
    }

    /// Name.
    pub fn name(&self) -> &str {
        text(self.metadata(), "name")
    }

    /// uid.
    pub fn uid(&self) -> &str {
        text(self.metadata(), "uid")
    }

    /// Resource version.
    pub fn resource_version(&self) -> &str {
        text(self.metadata(), "resourceVersion")
    }

    /// Whether its deletion has begun.
    pub fn is_deleting(&self) -> bool {
        self.metadata().is_some_and(|metadata| metadata.contains_key("deletionTimestamp"))
    }

    /// Value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        field(field(self.metadata()?, "annotations")?.as_object()?, key)?.as_str()
    }

    /// Value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        field(field(self.metadata()?, "labels")?.as_object()?, key)?.as_str()
    }

    /// Name of the component it says it stands for.
    pub fn component(&self) -> Option<&str> {
        self.label(LABEL_COMPONENT)
    }

    /// Name of the Package it belongs to. What is rendered for Git names one as
    /// well, but is not ours.
    pub fn package(&self) -> Option<&str> {
        self.label(LABEL_PACKAGE).filter(|_| self.label(LABEL_MANAGED_BY) == Some(FIELD_MANAGER))
    }

    /// The digest it says it was rendered from. No proof by itself: it survives edits.
    pub fn digest(&self) -> Option<&str> {
        self.annotation(ANNOTATION_DIGEST)
    }

    /// Position in the apply order, kept for uninstall; objects without one come first.
    pub fn wave(&self) -> u32 {
        self.annotation(ANNOTATION_WAVE).and_then(|wave| wave.parse().ok()).unwrap_or(0)
    }

    fn metadata(&self) -> Option<&Map<String, Value>> {
        field(&self.object, "metadata")?.as_object()
    }
}

/// `apiVersion`, kind, namespace and name of any object.
pub fn key_of(object: &Map<String, Value>) -> ObjectKey {
    let place = Place::of(object);
    ObjectKey {
        api_version: place.api_version.to_owned(),
        kind: place.kind.to_owned(),
        namespace: place.namespace.to_owned(),
        name: place.name.to_owned(),
    }
}

/// Where an object stands, borrowed from it: to look things up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place<'a> {
    name: &'a str,
    namespace: &'a str,
    kind: &'a str,
    api_version: &'a str,
}

impl<'a> Place<'a> {
    /// Where any object stands.
    pub fn of(object: &'a Map<String, Value>) -> Self {
        let metadata = field(object, "metadata").and_then(Value::as_object);
        Self {
            name: text(metadata, "name"),
            namespace: text(metadata, "namespace"),
            kind: text(Some(object), "kind"),
            api_version: text(Some(object), "apiVersion"),
        }
    }

    /// Its kind.
    pub fn kind(self) -> &'a str {
        self.kind
    }
}

impl<'a> From<&'a ObjectKey> for Place<'a> {
    fn from(key: &'a ObjectKey) -> Self {
        Self { name: &key.name, namespace: &key.namespace, kind: &key.kind, api_version: &key.api_version }
    }
}

fn text<'a>(map: Option<&'a Map<String, Value>>, key: &str) -> &'a str {
    map.and_then(|map| field(map, key)).and_then(Value::as_str).unwrap_or("")
}
