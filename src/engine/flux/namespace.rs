//! Namespaces for privileged pods.

use std::collections::BTreeMap;

use crate::api::wellknown::POD_SECURITY_ENFORCE;
use crate::engine::RenderError;
use crate::engine::manifest::Manifest;
use crate::engine::metadata::{Object, ObjectMeta};
use crate::package::names::Namespace;

/// A namespace whose pods may be privileged. It carries no mark of ours: more
/// than one package may want it, and none of them owns it.
pub(super) fn privileged(namespace: &Namespace) -> Result<Manifest, RenderError> {
    let metadata = ObjectMeta {
        name: namespace.to_string(),
        labels: BTreeMap::from([(POD_SECURITY_ENFORCE, "privileged".to_owned())]),
        ..ObjectMeta::default()
    };
    let object: Object<()> = Object { api_version: "v1", kind: "Namespace", metadata, spec: None };
    Manifest::of("Namespace", &object)
}
