//! Metadata of the objects that are rendered.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Owner, RenderContext, release_object_name};
use crate::api::Engine;
use crate::api::wellknown::{
    ANNOTATION_DIGEST, ANNOTATION_WAVE, ARGO_TRACKING_ID, FIELD_MANAGER, FLUX_DISABLED, FLUX_SUBSTITUTE,
    LABEL_COMPONENT, LABEL_MANAGED_BY, LABEL_PACKAGE,
};
use crate::package::definition::Component;

/// One object; the order of its keys is that of every Kubernetes document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object<S> {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub metadata: ObjectMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<S>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ObjectMeta {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<&'static str>,
}

/// Metadata of the HelmRelease or Application of a component.
pub(super) fn release(component: &Component, context: &RenderContext<'_>) -> ObjectMeta {
    let mut labels = managed_by(context.owner);
    labels.insert(LABEL_PACKAGE, context.package.name.to_string());
    labels.insert(LABEL_COMPONENT, component.name.to_string());
    let name = release_object_name(component, context);
    let mut annotations = context.annotations.clone();
    if let Some(application) = annotations.get_mut(ARGO_TRACKING_ID) {
        let kind = match context.engine() {
            Engine::Flux => "helm.toolkit.fluxcd.io/HelmRelease",
            Engine::Argo => "argoproj.io/Application",
        };
        // Argo CD takes an id that names another object for one that was copied.
        *application = format!("{application}:{kind}:{}/{name}", context.package.namespace);
    }
    annotations.insert(ANNOTATION_DIGEST, context.digest.to_string());
    annotations.insert(ANNOTATION_WAVE, context.wave.to_string());
    ObjectMeta {
        name,
        namespace: Some(context.package.namespace.to_string()),
        labels,
        annotations,
        finalizers: Vec::new(),
    }
}

/// Metadata of a source that all packages of a namespace share: nothing in it
/// tells which of them wrote it, so that they never write it in turns.
pub(super) fn shared_source(name: String, context: &RenderContext<'_>) -> ObjectMeta {
    let mut metadata = ObjectMeta {
        name,
        namespace: Some(context.package.namespace.to_string()),
        labels: managed_by(context.owner),
        ..ObjectMeta::default()
    };
    disable_substitution(&mut metadata);
    metadata
}

fn managed_by(owner: Owner) -> BTreeMap<&'static str, String> {
    match owner {
        Owner::Controller => BTreeMap::from([(LABEL_MANAGED_BY, FIELD_MANAGER.to_owned())]),
        Owner::Git => BTreeMap::new(),
    }
}

/// Keeps Flux from reading `${…}` in an object as a variable of its own.
pub(super) fn disable_substitution(metadata: &mut ObjectMeta) {
    metadata.annotations.insert(FLUX_SUBSTITUTE, FLUX_DISABLED.to_owned());
}
