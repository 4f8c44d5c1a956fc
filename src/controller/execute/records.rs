//! Writes of the Package and its revisions.

use kube::Resource as _;
use kube::api::{DynamicObject, Patch, PostParams};
use serde_json::json;

use super::{Executor, WriteError, Written, apply, cached, failed, ours, unreadable};
use crate::api::wellknown::{API_VERSION, FIELD_MANAGER, FINALIZER_REVISION, LABEL_MANAGED_BY, LABEL_PACKAGE};
use crate::api::{PackageRevisionSpec, PackageStatus};
use crate::controller::cached::Cached;
use crate::controller::cluster::{api, bounded};
use crate::controller::kinds::Kind;
use crate::engine::ObjectKey;
use crate::package::names::revision_name;
use crate::rollout::Record;

impl Executor {
    /// Writes the status of a revision, if it is still as it was decided upon.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn record(&self, record: &Record) -> Result<Written, WriteError> {
        let body = json!({
            "apiVersion": API_VERSION, "kind": "PackageRevision",
            "metadata": {"name": record.revision, "resourceVersion": record.resource_version},
            "status": record.status,
        });
        let api = self.api(Kind::PackageRevision);
        let (parameters, patch) = (apply(), Patch::Apply(&body));
        self.object(&record.revision, bounded(api.patch_status(&record.revision, &parameters, &patch)).await)
    }

    /// Writes the status of the Package.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn status(&self, status: &PackageStatus) -> Result<Written, WriteError> {
        let name = self.package.as_str();
        let metadata = json!({"name": name});
        let body = json!({"apiVersion": API_VERSION, "kind": "Package", "metadata": metadata, "status": status});
        let api = self.api(Kind::Package);
        self.object(name, bounded(api.patch_status(name, &apply(), &Patch::Apply(&body))).await)
    }

    /// A finalizer is added or removed only against the list that was read.
    pub(super) async fn finalizers(
        &self,
        kind: Kind,
        name: &str,
        finalizer: &str,
        wanted: bool,
    ) -> Result<Written, WriteError> {
        let api = self.api(kind);
        let live = match bounded(api.get(name)).await {
            Err(error) if error.is_not_found() => return Ok(Written::Other),
            live => live.map_err(|error| failed(name, error))?,
        };
        let mut finalizers = finalizers_of(&live);
        let present = finalizers.iter().any(|known| known == finalizer);
        if present == wanted {
            return self.object(name, Ok(live));
        }
        if wanted {
            finalizers.push(finalizer.to_owned());
        } else {
            finalizers.retain(|known| known != finalizer);
        }
        let metadata = json!({"resourceVersion": live.meta().resource_version, "finalizers": finalizers});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        self.object(name, bounded(api.patch(name, &ours(), &patch)).await)
    }

    pub(super) async fn create_revision(&self, spec: &PackageRevisionSpec) -> Result<Written, WriteError> {
        let name = revision_name(&self.package, spec.number);
        let object = json!({
            "apiVersion": API_VERSION, "kind": "PackageRevision",
            "metadata": {
                "name": name, "namespace": self.namespace,
                "labels": {LABEL_PACKAGE: self.package.as_str(), LABEL_MANAGED_BY: FIELD_MANAGER},
                "finalizers": [FINALIZER_REVISION],
            },
            "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object).map_err(|error| failed(&name, unreadable(error)))?;
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let revisions = api(self.own.clone(), &self.namespace, &Kind::PackageRevision.resource());
        self.object(&name, bounded(revisions.create(&parameters, &object)).await.map(cached))
    }

    pub(super) async fn delete_revision(&self, name: &str, uid: &str) -> Result<Written, WriteError> {
        self.finalizers(Kind::PackageRevision, name, FINALIZER_REVISION, false).await?;
        let key = ObjectKey {
            api_version: API_VERSION.to_owned(),
            kind: Kind::PackageRevision.as_str().to_owned(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        };
        self.delete(&key, uid).await
    }
}

fn finalizers_of(live: &Cached) -> Vec<String> {
    let finalizers =
        live.object().get_mut("metadata").and_then(|metadata| metadata.get_mut("finalizers")?.take().into());
    finalizers.and_then(|finalizers| serde_json::from_value(finalizers).ok()).unwrap_or_default()
}
