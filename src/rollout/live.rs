//! Objects as they were last seen in the cluster.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use crate::api::Claim;
use crate::api::wellknown::{
    ANNOTATION_ADOPT, ANNOTATION_DIGEST, ANNOTATION_WAVE, FIELD_MANAGER, LABEL_COMPONENT, LABEL_MANAGED_BY,
    LABEL_PACKAGE,
};
use crate::engine::ObjectKey;
use crate::fields::field;

/// An object as it was last seen. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Live {
    /// The whole object, without `managedFields`.
    pub object: Arc<Map<String, Value>>,
    facts: Arc<Facts>,
}

/// What is asked of an object again and again, read from it once.
#[derive(Debug)]
struct Facts {
    key: ObjectKey,
    package: Option<String>,
    component: Option<String>,
    digest: Option<String>,
    adopt: Option<String>,
    claim: OnceLock<Option<Claim>>,
}

impl Facts {
    fn of(object: &Map<String, Value>) -> Self {
        let metadata = field(object, "metadata").and_then(Value::as_object);
        let entries = |name: &str| field(metadata?, name)?.as_object();
        let (labels, annotations) = (entries("labels"), entries("annotations"));
        let text = |map: Option<&Map<String, Value>>, key: &str| field(map?, key)?.as_str().map(str::to_owned);
        let is_ours = labels.and_then(|labels| field(labels, LABEL_MANAGED_BY)?.as_str()) == Some(FIELD_MANAGER);
        Self {
            key: key_of(object),
            package: text(labels, LABEL_PACKAGE).filter(|_| is_ours),
            component: text(labels, LABEL_COMPONENT),
            digest: text(annotations, ANNOTATION_DIGEST),
            adopt: text(annotations, ANNOTATION_ADOPT),
            claim: OnceLock::new(),
        }
    }
}

impl PartialEq for Live {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object) || self.object == other.object
    }
}

impl Live {
    /// Wraps an object.
    pub fn new(object: impl Into<Arc<Map<String, Value>>>) -> Self {
        let object = object.into();
        Self { facts: Arc::new(Facts::of(&object)), object }
    }

    /// `apiVersion`, kind, namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.facts.key
    }

    /// The same, borrowed.
    pub(crate) fn place(&self) -> Place<'_> {
        Place::from(self.key())
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.key().name
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
        self.facts.component.as_deref()
    }

    /// Name of the Package it belongs to. What is rendered for Git names one as
    /// well, but is not ours.
    pub fn package(&self) -> Option<&str> {
        self.facts.package.as_deref()
    }

    /// The digest it says it was rendered from. No proof by itself: it survives edits.
    pub fn digest(&self) -> Option<&str> {
        self.facts.digest.as_deref()
    }

    /// The component of a Package that it is given to, as `<namespace>/<name>/<component>`.
    pub fn adopt(&self) -> Option<&str> {
        self.facts.adopt.as_deref()
    }

    /// The release that it stands for, as `read` tells from the object when it is
    /// first asked for.
    pub(crate) fn claim(&self, read: impl FnOnce(&Self) -> Option<Claim>) -> Option<&Claim> {
        self.facts.claim.get_or_init(|| read(self)).as_ref()
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
