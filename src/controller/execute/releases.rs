//! Writes of releases and of what belongs to them.

use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

use super::{Executor, WriteError, Written, apply, cached, failed, ours, unreadable};
use crate::api::wellknown::{FIELD_MANAGER, LABEL_MANAGED_BY};
use crate::controller::cached::Cached;
use crate::controller::cluster::bounded;
use crate::controller::kinds::Kind;
use crate::engine::ObjectKey;
use crate::package::names::{PackageName, hex};
use crate::rollout::Precondition;

impl Executor {
    pub(super) async fn apply(
        &self,
        object: &Map<String, Value>,
        precondition: &Precondition,
    ) -> Result<Written, WriteError> {
        let key = crate::rollout::live::key_of(object);
        if key.kind == "Namespace" {
            return self.apply_namespace(object, &key).await;
        }
        let Some(api) = self.api_of(&key) else { return Ok(Written::Other) };
        let mut object = object.clone();
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        match precondition {
            Precondition::Absent => metadata["resourceVersion"] = "0".into(),
            Precondition::Unchanged { uid, resource_version } => {
                metadata["uid"] = uid.as_str().into();
                metadata["resourceVersion"] = resource_version.as_str().into();
            }
            Precondition::Any => {}
        }
        let answer = bounded(api.patch(&key.name, &apply(), &Patch::Apply(&object))).await;
        let refused = answer.as_ref().is_err_and(|error| error.is_conflict() || error.is_invalid());
        if refused && *precondition == Precondition::Absent && self.is_taken(&api, &key).await {
            return Err(WriteError::Taken { object: key.to_string() });
        }
        self.object(&key.name, answer)
    }

    /// Whether somebody else's object stands where one of ours is to be made. It may
    /// have come after the revision began, and only ours are watched.
    async fn is_taken(&self, api: &Api<Cached>, key: &ObjectKey) -> bool {
        let found = bounded(api.get(&key.name)).await;
        found.is_ok_and(|found| {
            let is_ours = found.label(LABEL_MANAGED_BY).as_deref() == Some(FIELD_MANAGER);
            !is_ours || found.package() != Some(self.package.as_str())
        })
    }

    /// Namespaces are applied as the Package's account, with a field manager of
    /// the Package's own, so that the labels of several add up.
    async fn apply_namespace(&self, object: &Map<String, Value>, key: &ObjectKey) -> Result<Written, WriteError> {
        let namespaces: Api<Namespace> = Api::all(self.account.clone());
        let manager = field_manager(&self.namespace, &self.package);
        let parameters = PatchParams::apply(&manager).force();
        let patch = Patch::Apply(object);
        bounded(namespaces.patch(&key.name, &parameters, &patch))
            .await
            .map(|_| Written::Other)
            .map_err(|error| failed(&format!("Namespace/{}", key.name), error))
    }

    pub(super) async fn patch(
        &self,
        key: &ObjectKey,
        uid: &str,
        resource_version: Option<&str>,
        patch: &Value,
    ) -> Result<Written, WriteError> {
        let Some(api) = self.api_of(key) else { return Ok(Written::Other) };
        let mut patch = patch.clone();
        let mut metadata = patch.get("metadata").cloned().unwrap_or_else(|| json!({}));
        metadata["uid"] = uid.into();
        if let Some(version) = resource_version {
            metadata["resourceVersion"] = version.into();
        }
        patch["metadata"] = metadata;
        self.object(&key.name, bounded(api.patch(&key.name, &ours(), &Patch::Merge(&patch))).await)
    }

    /// The object is replaced as it was decided upon: a patch would drop values
    /// that are null, and an apply leave in place what a patch has written.
    pub(super) async fn operate(
        &self,
        key: &ObjectKey,
        uid: &str,
        resource_version: &str,
        wanted: Option<&Map<String, Value>>,
        operation: Option<&Value>,
    ) -> Result<Written, WriteError> {
        let Some(api) = self.whole(key) else { return Ok(Written::Other) };
        let mut live = bounded(api.get(&key.name)).await.map_err(|error| failed(&key.name, error))?;
        let found = (live.metadata.uid.as_deref(), live.metadata.resource_version.as_deref());
        if found != (Some(uid), Some(resource_version)) {
            return Err(WriteError::Changed { object: key.to_string() });
        }
        operated(&mut live, wanted, operation);
        if key.kind == Kind::HelmRelease.as_str() {
            return self.replace_spec(&api, key, &live).await;
        }
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.object(&key.name, bounded(api.replace(&key.name, &parameters, &live)).await.map(cached))
    }

    /// The same by the right to patch alone, which is all that is needed for HelmReleases.
    async fn replace_spec(
        &self,
        api: &Api<DynamicObject>,
        key: &ObjectKey,
        wanted: &DynamicObject,
    ) -> Result<Written, WriteError> {
        let metadata = &wanted.metadata;
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": metadata.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
            {"op": "add", "path": "/metadata/labels", "value": metadata.labels},
            {"op": "add", "path": "/metadata/annotations", "value": metadata.annotations},
            {"op": "add", "path": "/spec", "value": wanted.data["spec"]},
        ]);
        let patch = serde_json::from_value(patch).map_err(|error| failed(&key.name, unreadable(error)))?;
        self.object(&key.name, bounded(api.patch(&key.name, &ours(), &Patch::<()>::Json(patch))).await.map(cached))
    }

    pub(super) async fn mark_volume_claim(&self, key: &ObjectKey, patch: &Value) -> Result<Written, WriteError> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.account.clone(), &key.namespace);
        let claim = bounded(claims.patch(&key.name, &ours(), &Patch::Merge(patch))).await;
        let claim = claim.map_err(|error| failed(&key.to_string(), error))?;
        Ok(Written::Object(Box::new(cached(claim))))
    }
}

/// An Application with what is wanted of it.
pub(super) fn operated(live: &mut DynamicObject, wanted: Option<&Map<String, Value>>, operation: Option<&Value>) {
    if let Some(operation) = operation {
        live.data["operation"] = operation.clone();
        if let Some(status) = live.data.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("operationState");
        }
    }
    let Some(wanted) = wanted else { return };
    live.data["spec"] = wanted.get("spec").cloned().unwrap_or_default();
    let stated = |field: &str| {
        let fields = wanted.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
        let fields = fields.cloned().unwrap_or_default();
        fields.into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())))
    };
    let wanted_finalizers = wanted.get("metadata").and_then(|metadata| metadata.get("finalizers"));
    let finalizers = live.metadata.finalizers.get_or_insert_default();
    for finalizer in wanted_finalizers.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !finalizers.iter().any(|known| known == finalizer) {
            finalizers.push(finalizer.to_owned());
        }
    }
    live.metadata.labels.get_or_insert_default().extend(stated("labels"));
    live.metadata.annotations.get_or_insert_default().extend(stated("annotations"));
}

/// The field manager of one Package, so that the labels of several add up. The API
/// server takes 128 characters.
pub(super) fn field_manager(namespace: &str, package: &PackageName) -> String {
    const MOST: usize = 128;
    let plain = format!("{FIELD_MANAGER}-{namespace}-{package}");
    if plain.len() <= MOST { plain } else { format!("{FIELD_MANAGER}-{}", hex(&plain, 32)) }
}
