//! Namespaces for privileged pods.

use std::collections::BTreeMap;

use crate::api::wellknown::{ARGO_SYNC_OPTIONS, FLUX_DISABLED, FLUX_PRUNE, POD_SECURITY_ENFORCE};
use crate::engine::manifest::Manifest;
use crate::engine::metadata::{Object, ObjectMeta};
use crate::engine::{Owner, RenderError};
use crate::package::names::Namespace;

/// A namespace whose pods may be privileged. It carries no mark of ours: more
/// than one package may want it, and none of them owns it. What applies it from
/// Git must not delete it, and all that is in it, with the component.
pub(super) fn privileged(namespace: &Namespace, owner: Owner) -> Result<Manifest, RenderError> {
    let annotations = match owner {
        Owner::Controller => BTreeMap::new(),
        Owner::Git => BTreeMap::from([
            (FLUX_PRUNE, FLUX_DISABLED.to_owned()),
            (ARGO_SYNC_OPTIONS, "Prune=false,Delete=false".to_owned()),
        ]),
    };
    let metadata = ObjectMeta {
        name: namespace.to_string(),
        labels: BTreeMap::from([(POD_SECURITY_ENFORCE, "privileged".to_owned())]),
        annotations,
        ..ObjectMeta::default()
    };
    let object: Object<()> = Object { api_version: "v1", kind: "Namespace", metadata, spec: None };
    Manifest::of("Namespace", &object)
}
