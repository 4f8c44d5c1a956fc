//! Doing what was decided: every write with its preconditions, none blindly.

mod fences;
mod records;
mod releases;
mod rollouts;

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, PatchParams, Preconditions};
use kube::client::Client;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use super::cached::Cached;
use super::cluster::{RequestError, api, bounded, typed_api};
use super::kinds::Kind;
use crate::api::wellknown::{FIELD_MANAGER, FINALIZER, FINALIZER_REVISION};
use crate::engine::ObjectKey;
use crate::package::names::PackageName;
use crate::rollout::Action;

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
mod tests;
