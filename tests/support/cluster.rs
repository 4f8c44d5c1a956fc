//! Objects of any kind in the bench's cluster.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, ValidationDirective};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::wait;

/// Field manager of what tests apply.
pub const MANAGER: &str = "windlass-bench";

/// An administrator's view of the cluster.
#[derive(Clone)]
pub struct Cluster {
    pub client: Client,
}

impl Cluster {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// A new namespace; its name begins with `prefix` and is used by nobody else.
    pub async fn namespace(&self, prefix: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.named_namespace(&name).await;
        name
    }

    pub async fn named_namespace(&self, name: &str) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        api.create(&Default::default(), &serde_json::from_value(namespace).expect("a namespace"))
            .await
            .unwrap_or_else(|error| panic!("namespace {name}: {error}"));
    }

    /// Typed objects of one namespace.
    pub fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Objects of a kind that is known by name only; the namespace is ignored for
    /// cluster-scoped kinds.
    pub async fn dynamic(&self, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (resource, scope) = self.discover(api_version, kind).await;
        match scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    pub async fn discover(&self, api_version: &str, kind: &str) -> (ApiResource, Scope) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = oneshot::pinned_kind(&self.client, &kind)
            .await
            .unwrap_or_else(|error| panic!("{api_version} {}: {error}", kind.kind));
        (resource, capabilities.scope)
    }

    /// Server-side applies one object; `namespace` is for those that name none.
    pub async fn apply(&self, namespace: &str, object: Value) -> DynamicObject {
        self.try_apply(namespace, object.clone()).await.unwrap_or_else(|error| panic!("apply of {object:#}: {error}"))
    }

    pub async fn try_apply(&self, namespace: &str, object: Value) -> kube::Result<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let api_version = text("/apiVersion").expect("an apiVersion");
        let kind = text("/kind").expect("a kind");
        let name = text("/metadata/name").expect("a name").to_owned();
        let namespace = text("/metadata/namespace").unwrap_or(namespace);
        let api = self.dynamic(api_version, kind, namespace).await;
        let parameters = PatchParams::apply(MANAGER).force();
        api.patch(&name, &parameters, &Patch::Apply(&object)).await
    }

    /// Asks what an apply would do: defaults, schema and rules of the API server, and no field
    /// that it does not know.
    pub async fn dry_run(&self, namespace: &str, object: &Value) -> kube::Result<DynamicObject> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let api = self.dynamic(text("/apiVersion"), text("/kind"), namespace).await;
        let parameters = PatchParams {
            dry_run: true,
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::apply(MANAGER).force()
        };
        api.patch(text("/metadata/name"), &parameters, &Patch::Apply(object)).await
    }

    /// Server-side applies every object of a YAML stream.
    pub async fn apply_yaml(&self, namespace: &str, text: &str) {
        for object in documents(text) {
            self.apply(namespace, object).await;
        }
    }

    /// Sets an annotation.
    pub async fn annotate(&self, api: &Api<DynamicObject>, name: &str, key: &str, value: &str) {
        self.merge(api, name, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    /// A merge patch.
    pub async fn merge(&self, api: &Api<DynamicObject>, name: &str, patch: Value) {
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.unwrap_or_else(|error| panic!("{name} with {patch}: {error}"));
    }

    /// A merge patch of the status.
    pub async fn merge_status(&self, api: &Api<DynamicObject>, name: &str, patch: Value) {
        let patched = api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.unwrap_or_else(|error| panic!("status of {name} with {patch}: {error}"));
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn delete(&self, api: &Api<DynamicObject>, name: &str, deadline: Duration) {
        api.delete(name, &DeleteParams::default()).await.unwrap_or_else(|error| panic!("delete of {name}: {error}"));
        wait::until(api, name, deadline, "gone", |object| match object {
            None => Ok(()),
            Some(object) => Err(format!("still there, finalizers {:?}", object.finalizers())),
        })
        .await;
    }

    /// Applies all CRDs of a directory, and waits until they are served.
    pub async fn apply_crds(&self, directory: &Path) {
        let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let crds = entries.flatten().map(|entry| async move {
            let text = std::fs::read_to_string(entry.path()).expect("a CRD file");
            let name = self.apply_crd_text(text).await;
            self.crd_is_served(&name).await;
        });
        futures_util::future::join_all(crds).await;
    }

    /// Sends the text as it is: some are a megabyte, which takes seconds to parse here.
    async fn apply_crd_text(&self, text: String) -> String {
        let (_, metadata) = text.split_once("\nmetadata:\n").expect("metadata");
        let name = metadata.lines().find_map(|line| line.strip_prefix("  name: "));
        let name = name.expect("a name").to_owned();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = axum::http::Request::patch(format!("{path}/{name}?fieldManager={MANAGER}&force=true"))
            .header("Content-Type", "application/apply-patch+yaml")
            .body(text.into_bytes())
            .expect("a request");
        self.client.request_text(request).await.unwrap_or_else(|error| panic!("CRD {name}: {error}"));
        name
    }

    /// Waits until the API server has the CRD and, which is a little later, tells of it in
    /// discovery and lists its objects.
    pub async fn crd_is_served(&self, name: &str) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let deadline = Duration::from_secs(30);
        let kinds = wait::until(&api, name, deadline, "established", |crd| {
            let crd = crd.ok_or("no such CRD")?;
            wait::holds(&serde_json::to_value(crd).expect("JSON"), "Established")?;
            let (group, kind) = (&crd.spec.group, &crd.spec.names.kind);
            let served = crd.spec.versions.iter().filter(|version| version.served);
            let kinds = served.map(|version| GroupVersionKind::gvk(group, &version.name, kind));
            Ok(kinds.collect::<Vec<_>>())
        })
        .await;
        for kind in kinds {
            let what = format!("a list of {}", kind.kind);
            wait::until_true(deadline, &what, async || {
                let found = oneshot::pinned_kind(&self.client, &kind).await;
                let (resource, _) = found.map_err(|error| error.to_string())?;
                let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
                api.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
            })
            .await;
        }
    }
}

/// The documents of a YAML stream, empty ones left out.
pub fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// An object as JSON.
pub fn to_json(object: &DynamicObject) -> Value {
    serde_json::to_value(object).expect("JSON")
}
