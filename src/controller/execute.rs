//! Doing what was decided: every write with its preconditions, none blindly.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::client::Client;
use kube::{Api, Resource as _};
use serde::Serialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::cached::Cached;
use super::cluster::{RequestError, api, bounded, typed_api};
use super::kinds::{Kind, daemon_set_resource};
use super::selections::selector_text;
use crate::api::wellknown::{
    API_VERSION, FIELD_MANAGER, FINALIZER, FINALIZER_REVISION, LABEL_MANAGED_BY, LABEL_PACKAGE,
};
use crate::api::{PackageRevisionSpec, PackageStatus};
use crate::canary::action::{Beside, Proof, Warrant};
use crate::canary::objects::DaemonSet;
use crate::canary::strategy::Strategy;
use crate::canary::{self, Steering};
use crate::engine::ObjectKey;
use crate::package::names::{PackageName, hex, revision_name};
use crate::rollout::{Action, Precondition, Record};

/// Pods that are read at a time.
const POD_PAGE: u32 = 200;

/// What a write left behind.
#[derive(Debug)]
pub enum Written {
    /// The object as it is now.
    Object(Box<Cached>),
    /// The object is gone, or going.
    Gone(ObjectKey),
    /// A pod in this namespace with this uid is gone, or going.
    GonePod(String, String),
    /// Nothing that is watched.
    Other,
}

/// Why a write was not made.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The cluster has changed since it was looked at: look again.
    #[error("{object}: changed meanwhile")]
    Changed {
        /// Which object.
        object: String,
    },
    /// The account in use lacks a right, or admission said no.
    #[error("{object} may not be written: {problem}")]
    Denied {
        /// Which object.
        object: String,
        /// What the API server said.
        problem: String,
    },
    /// The API server does not take the object as it is.
    #[error("{object} is not taken by the API server: {problem}")]
    Invalid {
        /// Which object.
        object: String,
        /// What the API server said.
        problem: String,
    },
    /// Somebody else's object stands at the place of a child.
    #[error("{object} exists and is not this package's: remove it, or annotate it for adoption")]
    Taken {
        /// Which object.
        object: String,
    },
    /// Admission has changed what we wrote: the canary's guard takes us for
    /// somebody else.
    #[error(
        "{object}: a budget of {wanted} was written and {found} came back: the canary's guard takes this process for somebody else, install manifests/canary with its account"
    )]
    Mismatch {
        /// Which object.
        object: String,
        /// What came back.
        found: String,
        /// What was written.
        wanted: String,
    },
    /// Anything else.
    #[error("{object}: {source}")]
    Failed {
        /// Which object.
        object: String,
        /// What the API server said.
        source: RequestError,
    },
}

/// One Package's hand on the cluster.
pub struct Executor {
    /// As ourselves.
    pub own: Client,
    /// As the Package's account, for what belongs to its releases.
    pub account: Client,
    /// The Package.
    pub namespace: String,
    /// The Package.
    pub package: PackageName,
    /// Whether releases must name the account they are installed as.
    pub require_account: bool,
}

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

    /// Does one thing.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn act(&self, action: &Action) -> Result<Written, WriteError> {
        self.stays_at_home(action)?;
        self.names_an_account(action)?;
        match action {
            Action::HoldPackage => self.finalizers(Kind::Package, self.package.as_str(), FINALIZER, true).await,
            Action::ReleasePackage => self.finalizers(Kind::Package, self.package.as_str(), FINALIZER, false).await,
            Action::CreateRevision(spec) => self.create_revision(spec).await,
            Action::HoldRevision { name, .. } => {
                self.finalizers(Kind::PackageRevision, name, FINALIZER_REVISION, true).await
            }
            Action::ReleaseRevision { name, .. } => {
                self.finalizers(Kind::PackageRevision, name, FINALIZER_REVISION, false).await
            }
            Action::DeleteRevision { name, uid } => self.delete_revision(name, uid).await,
            Action::Apply { object, precondition } => self.apply(object, precondition).await,
            Action::Patch { object, uid, resource_version, patch } => {
                self.patch(object, uid, resource_version.as_deref(), patch).await
            }
            Action::Operate { object, uid, resource_version, spec, operation } => {
                self.operate(object, uid, resource_version, spec.as_ref(), operation.as_ref()).await
            }
            Action::MarkVolumeClaim { object, uid, resource_version, annotations } => {
                let metadata = json!({"uid": uid, "resourceVersion": resource_version, "annotations": annotations});
                self.mark_volume_claim(object, &json!({"metadata": metadata})).await
            }
            Action::Rollout(action) => self.roll_out(action).await,
            Action::Delete { object, uid } => self.delete(object, uid).await,
        }
    }

    /// Records may be written by whoever may write in the namespace: nothing in
    /// them leads out of it.
    fn stays_at_home(&self, action: &Action) -> Result<(), WriteError> {
        let key = match action {
            Action::Apply { object, .. } => crate::rollout::live::key_of(object),
            Action::Patch { object, .. } | Action::Operate { object, .. } | Action::Delete { object, .. } => {
                object.clone()
            }
            Action::HoldPackage
            | Action::ReleasePackage
            | Action::CreateRevision(_)
            | Action::HoldRevision { .. }
            | Action::ReleaseRevision { .. }
            | Action::DeleteRevision { .. }
            | Action::Rollout(_)
            | Action::MarkVolumeClaim { .. } => return Ok(()),
        };
        // A Namespace is applied as the Package's account.
        if key.namespace == self.namespace || key.kind == "Namespace" {
            return Ok(());
        }
        let problem = format!("it is outside of the Package's namespace {}", self.namespace);
        Err(WriteError::Denied { object: key.to_string(), problem })
    }

    /// Where accounts are required nothing is written that would be installed as the
    /// engine itself, whatever an old record says.
    fn names_an_account(&self, action: &Action) -> Result<(), WriteError> {
        let (key, spec) = match action {
            Action::Apply { object, .. } => (crate::rollout::live::key_of(object), object.get("spec")),
            // Only what gives a release its chart can install anything.
            Action::Patch { object, patch, .. } => {
                (object.clone(), patch.get("spec").filter(|spec| spec.get("chartRef").is_some()))
            }
            Action::Operate { .. }
            | Action::Delete { .. }
            | Action::HoldPackage
            | Action::ReleasePackage
            | Action::CreateRevision(_)
            | Action::HoldRevision { .. }
            | Action::ReleaseRevision { .. }
            | Action::DeleteRevision { .. }
            | Action::Rollout(_)
            | Action::MarkVolumeClaim { .. } => return Ok(()),
        };
        let named =
            |spec: &Value| spec.get("serviceAccountName").and_then(Value::as_str).is_some_and(|n| !n.is_empty());
        if !self.require_account || key.kind != "HelmRelease" || spec.is_none_or(named) {
            return Ok(());
        }
        let problem = "it names no service account, which is required in this cluster".to_owned();
        Err(WriteError::Denied { object: key.to_string(), problem })
    }

    fn api(&self, kind: Kind) -> Api<Cached> {
        typed_api(self.own.clone(), &self.namespace, &kind.resource())
    }

    fn api_of(&self, key: &ObjectKey) -> Option<Api<Cached>> {
        Kind::of(&key.kind).map(|kind| typed_api(self.own.clone(), &key.namespace, &kind.resource()))
    }

    /// The same, for what is written back whole.
    fn whole(&self, key: &ObjectKey) -> Option<Api<DynamicObject>> {
        Kind::of(&key.kind).map(|kind| api(self.own.clone(), &key.namespace, &kind.resource()))
    }

    /// A finalizer is added or removed only against the list that was read.
    async fn finalizers(&self, kind: Kind, name: &str, finalizer: &str, wanted: bool) -> Result<Written, WriteError> {
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

    async fn create_revision(&self, spec: &PackageRevisionSpec) -> Result<Written, WriteError> {
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

    async fn delete_revision(&self, name: &str, uid: &str) -> Result<Written, WriteError> {
        self.finalizers(Kind::PackageRevision, name, FINALIZER_REVISION, false).await?;
        let key = ObjectKey {
            api_version: API_VERSION.to_owned(),
            kind: Kind::PackageRevision.as_str().to_owned(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        };
        self.delete(&key, uid).await
    }

    async fn apply(&self, object: &Map<String, Value>, precondition: &Precondition) -> Result<Written, WriteError> {
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
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(self.account.clone());
        let manager = field_manager(&self.namespace, &self.package);
        let parameters = PatchParams::apply(&manager).force();
        let patch = Patch::Apply(object);
        bounded(namespaces.patch(&key.name, &parameters, &patch))
            .await
            .map(|_| Written::Other)
            .map_err(|error| failed(&format!("Namespace/{}", key.name), error))
    }

    async fn patch(
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
    async fn operate(
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

    async fn mark_volume_claim(&self, key: &ObjectKey, patch: &Value) -> Result<Written, WriteError> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.account.clone(), &key.namespace);
        let claim = bounded(claims.patch(&key.name, &ours(), &Patch::Merge(patch))).await;
        let claim = claim.map_err(|error| failed(&key.to_string(), error))?;
        Ok(Written::Object(Box::new(cached(claim))))
    }

    /// As ourselves: the guard's policy lets nobody else through.
    async fn roll_out(&self, action: &canary::Action) -> Result<Written, WriteError> {
        let daemon_sets = |namespace: &str| api(self.own.clone(), namespace, &daemon_set_resource());
        match action {
            canary::Action::Label(label) => {
                let patch = Patch::Merge(label.merge_patch());
                let answer = bounded(daemon_sets(&label.namespace).patch(&label.name, &ours(), &patch)).await;
                self.object(&format!("DaemonSet/{}/{}", label.namespace, label.name), answer.map(cached))
            }
            canary::Action::Steer(steering) => self.steer(&daemon_sets(&steering.namespace), steering).await,
            canary::Action::DeletePod { namespace, name, uid, warrant, .. } => {
                let pods: Api<Pod> = Api::namespaced(self.own.clone(), namespace);
                let object = format!("Pod/{namespace}/{name}");
                let resource_version = match warrant {
                    Warrant::Beside(beside) => are_there(&pods, beside, &object).await.map(|()| None)?,
                    Warrant::Idle => still_idle(&pods, name, &object).await?,
                };
                let preconditions = Some(Preconditions { uid: Some(uid.clone()), resource_version });
                let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
                match bounded(pods.delete(name, &parameters)).await {
                    Err(error) if !error.is_not_found() => Err(failed(&object, error)),
                    Ok(_) | Err(_) => Ok(Written::GonePod(namespace.clone(), uid.clone())),
                }
            }
        }
    }

    /// A strategy that comes back as another one was changed by admission.
    async fn steer(&self, daemon_sets: &Api<DynamicObject>, steering: &Steering) -> Result<Written, WriteError> {
        let object = format!("DaemonSet/{}/{}", steering.namespace, steering.name);
        if let Some(proof) = &steering.proof {
            self.is_proved(&steering.namespace, proof, &object).await?;
        }
        let patch =
            serde_json::from_value(steering.json_patch()).map_err(|error| failed(&object, unreadable(error)))?;
        let written = match bounded(daemon_sets.patch(&steering.name, &ours(), &Patch::<()>::Json(patch))).await {
            Ok(written) => written,
            // A test that fails is answered with 422 (measured), and so is what somebody's
            // admission does not allow.
            Err(error) if error.code() == Some(422) => {
                let live = bounded(daemon_sets.get(&steering.name)).await.map_err(|error| failed(&object, error))?;
                return Err(match is_still_right(steering, live) {
                    true => WriteError::Denied { object, problem: error.to_string() },
                    false => WriteError::Changed { object },
                });
            }
            Err(error) => return Err(failed(&object, error)),
        };
        let found = Strategy::read(&written.data["spec"]["updateStrategy"]);
        if found.pace != steering.pace {
            return Err(WriteError::Mismatch {
                object,
                found: found.pace.to_string(),
                wanted: steering.pace.to_string(),
            });
        }
        self.object(&object, Ok(cached(written)))
    }

    /// Asks for the pods that must be well before more of them are let go.
    async fn is_proved(&self, namespace: &str, proof: &Proof, object: &str) -> Result<(), WriteError> {
        let pods: Api<Pod> = Api::namespaced(self.own.clone(), namespace);
        let mut page = ListParams::default().labels(&selector_text(&proof.selector)).limit(POD_PAGE);
        let mut found = Vec::new();
        loop {
            let list = bounded(pods.list(&page)).await.map_err(|error| failed(object, error))?;
            let values = list.items.into_iter().filter_map(|pod| serde_json::to_value(pod).ok());
            found.extend(values.filter_map(|pod| pod.as_object().map(canary::objects::Pod::read)));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        if proof.holds(&found) { Ok(()) } else { Err(WriteError::Changed { object: object.to_owned() }) }
    }

    async fn delete(&self, key: &ObjectKey, uid: &str) -> Result<Written, WriteError> {
        let Some(api) = self.whole(key) else { return Ok(Written::Other) };
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        match bounded(api.delete(&key.name, &parameters)).await {
            Ok(either) => {
                Ok(either.map_left(|object| written(key, object)).left_or_else(|_| Written::Gone(key.clone())))
            }
            Err(error) if error.is_not_found() => Ok(Written::Gone(key.clone())),
            // It is done; the answer shows an object that is nested too deeply.
            Err(error) if error.is_unreadable() => Ok(Written::Other),
            Err(error) => Err(failed(&key.to_string(), error)),
        }
    }

    fn object(&self, name: &str, answer: Result<Cached, RequestError>) -> Result<Written, WriteError> {
        answer.map(|object| Written::Object(Box::new(object))).map_err(|error| failed(name, error))
    }
}

fn finalizers_of(live: &Cached) -> Vec<String> {
    let finalizers =
        live.object().get_mut("metadata").and_then(|metadata| metadata.get_mut("finalizers")?.take().into());
    finalizers.and_then(|finalizers| serde_json::from_value(finalizers).ok()).unwrap_or_default()
}

fn is_still_right(steering: &Steering, live: DynamicObject) -> bool {
    let live = serde_json::to_value(live).unwrap_or_default();
    live.as_object().is_some_and(|live| steering.holds(&DaemonSet::read(live)))
}

/// Asks for the pods that must be there before another one goes.
async fn are_there(pods: &Api<Pod>, beside: &Beside, object: &str) -> Result<(), WriteError> {
    let own = ListParams::default().labels(&selector_text(&beside.selector));
    let found = bounded(pods.list_metadata(&own)).await.map_err(|error| failed(object, error))?;
    let staying = found.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    if beside.are_among(staying.filter_map(|pod| pod.metadata.uid.as_deref())) {
        return Ok(());
    }
    Err(WriteError::Changed { object: object.to_owned() })
}

/// Asks whether a pod that is to go because it is not ready still is not; the version
/// of it that was read, if it is there.
async fn still_idle(pods: &Api<Pod>, name: &str, object: &str) -> Result<Option<String>, WriteError> {
    let Some(found) = bounded(pods.get_opt(name)).await.map_err(|error| failed(object, error))? else {
        return Ok(None);
    };
    let resource_version = found.metadata.resource_version.clone();
    let live = serde_json::to_value(found).unwrap_or_default();
    if live.as_object().is_none_or(|live| canary::objects::Pod::read(live).ready) {
        return Err(WriteError::Changed { object: object.to_owned() });
    }
    Ok(resource_version)
}

fn written(key: &ObjectKey, object: DynamicObject) -> Written {
    // Without a finalizer the object that a deletion gives back is gone already.
    if object.metadata.deletion_timestamp.is_some() {
        Written::Object(Box::new(cached(object)))
    } else {
        Written::Gone(key.clone())
    }
}

fn cached(object: impl Serialize) -> Cached {
    let value = serde_json::to_value(object).unwrap_or_default();
    Cached::new(value.as_object().cloned().unwrap_or_default())
}

/// An Application with what is wanted of it.
fn operated(live: &mut DynamicObject, wanted: Option<&Map<String, Value>>, operation: Option<&Value>) {
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
fn field_manager(namespace: &str, package: &PackageName) -> String {
    const MOST: usize = 128;
    let plain = format!("{FIELD_MANAGER}-{namespace}-{package}");
    if plain.len() <= MOST { plain } else { format!("{FIELD_MANAGER}-{}", hex(&plain, 32)) }
}

fn apply() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

fn ours() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn unreadable(error: serde_json::Error) -> RequestError {
    RequestError::Refused(Box::new(kube::Error::SerdeError(error)))
}

fn failed(object: &str, source: RequestError) -> WriteError {
    let object = object.to_owned();
    if source.is_conflict() || source.is_not_found() {
        WriteError::Changed { object }
    } else if source.is_forbidden() {
        WriteError::Denied { object, problem: source.to_string() }
    } else if source.is_invalid() {
        WriteError::Invalid { object, problem: source.to_string() }
    } else {
        WriteError::Failed { object, source }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use kube::Config;
    use rstest::rstest;

    use super::*;

    /// An API server that refuses every write and has one object, to be read.
    fn refusing(status: u16, there: Value) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut request, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    let header = line.to_ascii_lowercase();
                    length = header.strip_prefix("content-length:").map_or(length, |n| n.trim().parse().unwrap());
                    if line.trim().is_empty() {
                        break;
                    }
                    request.push_str(&line);
                }
                stream.read_exact(&mut vec![0; length]).unwrap();
                let failure =
                    json!({"kind": "Status", "status": "Failure", "code": status, "message": "no", "reason": "no"});
                let (code, body) = if request.starts_with("GET") { (200, &there) } else { (status, &failure) };
                let body = body.to_string();
                let head = format!("HTTP/1.1 {code} it\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                stream.get_mut().write_all((head + &body).as_bytes()).unwrap();
            }
        });
        Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap()
    }

    #[rstest]
    #[case::unprocessable(422, json!({}), true)]
    #[case::conflict(409, json!({}), true)]
    #[case::another_package(409, json!({"windlass.dev/package": "other", "app.kubernetes.io/managed-by": "windlass"}), true)]
    #[case::ours(409, json!({"windlass.dev/package": "app", "app.kubernetes.io/managed-by": "windlass"}), false)]
    #[tokio::test]
    async fn somebody_elses_object_at_the_place_of_a_child_is_named(
        #[case] status: u16,
        #[case] labels: Value,
        #[case] taken: bool,
    ) {
        let release = |labels: &Value| {
            json!({
                "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
                "metadata": {"name": "app-a", "namespace": "packages", "labels": labels}, "spec": {},
            })
        };
        let client = refusing(status, release(&labels));
        let package = PackageName::parse("app").unwrap();
        let executor = Executor {
            own: client.clone(),
            account: client,
            namespace: "packages".into(),
            package,
            require_account: false,
        };
        let object = release(&json!({})).as_object().cloned().unwrap();
        let written = executor.act(&Action::Apply { object, precondition: Precondition::Absent }).await;
        assert_eq!(matches!(written, Err(WriteError::Taken { .. })), taken, "{written:?}");
    }

    #[test]
    fn a_field_manager_fits_and_is_one_packages_own() {
        let name = |letter: &str| PackageName::parse(&letter.repeat(63)).unwrap();
        let (a, b) = (field_manager(&"n".repeat(63), &name("a")), field_manager(&"n".repeat(63), &name("b")));
        assert!(a.len() <= 128 && b.len() <= 128 && a != b);
        assert_eq!(field_manager("apps", &PackageName::parse("db").unwrap()), "windlass-apps-db");
    }

    fn executor(require_account: bool) -> Executor {
        let nowhere = || Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let package = PackageName::parse("app").unwrap();
        Executor { own: nowhere(), account: nowhere(), namespace: "ns".into(), package, require_account }
    }

    #[tokio::test]
    async fn where_accounts_are_required_no_release_is_written_without_one() {
        let release = |spec: Value| {
            let object = json!({"kind": "HelmRelease", "metadata": {"namespace": "ns", "name": "a"}, "spec": spec});
            Action::Apply { object: object.as_object().unwrap().clone(), precondition: Precondition::Any }
        };
        let denied =
            |action: &Action| matches!(executor(true).names_an_account(action), Err(WriteError::Denied { .. }));
        assert!(denied(&release(json!({"chartRef": {}}))) && denied(&release(json!({"serviceAccountName": ""}))));
        assert!(!denied(&release(json!({"serviceAccountName": "deployer"}))));
        assert!(executor(false).names_an_account(&release(json!({}))).is_ok());
        let key = crate::rollout::live::key_of(json!({"kind": "HelmRelease"}).as_object().unwrap());
        let patch =
            |patch: Value| Action::Patch { object: key.clone(), uid: "u".into(), resource_version: None, patch };
        assert!(denied(&patch(json!({"spec": {"chartRef": {}, "serviceAccountName": null}}))));
        assert!(!denied(&patch(json!({"spec": {"suspend": true}}))));
    }

    #[test]
    fn an_application_gets_exactly_the_wanted_spec_and_an_operation() {
        let live = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "a", "annotations": {"theirs": "1", "ours": "1"}, "finalizers": ["theirs"]},
            "spec": {"source": {"helm": {"valuesObject": {"gone": 1}}}},
            "status": {"operationState": {"phase": "Failed"}, "reconciledAt": "then"},
        });
        let wanted = json!({
            "metadata": {"name": "a", "annotations": {"ours": "2"}, "finalizers": ["cascade"]},
            "spec": {"source": {"helm": {"valuesObject": {"unset": null}}}},
        });
        let mut object: DynamicObject = serde_json::from_value(live).unwrap();
        operated(&mut object, wanted.as_object(), Some(&json!({"sync": {}})));
        assert_eq!(object.data["spec"], wanted["spec"]);
        assert_eq!(object.data["operation"], json!({"sync": {}}));
        assert_eq!(object.data["status"], json!({"reconciledAt": "then"}));
        let annotations = object.metadata.annotations.as_ref().unwrap();
        assert_eq!((annotations["theirs"].as_str(), annotations["ours"].as_str()), ("1", "2"));
        assert_eq!(object.metadata.finalizers, Some(vec!["theirs".to_owned(), "cascade".to_owned()]));
        operated(&mut object, None, None);
        assert_eq!(object.data["operation"], json!({"sync": {}}));
    }
}
