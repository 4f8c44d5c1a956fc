//! Writes of a canary: of its DaemonSet, and the pods that go.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, Preconditions};

use super::{Executor, WriteError, Written, cached, failed, ours, unreadable};
use crate::canary::action::{Beside, Proof, Warrant};
use crate::canary::objects::DaemonSet;
use crate::canary::strategy::Strategy;
use crate::canary::{self, Steering};
use crate::controller::cluster::{api, bounded};
use crate::controller::kinds::daemon_set_resource;
use crate::controller::selections::selector_text;

/// Pods that are read at a time.
const POD_PAGE: u32 = 200;

impl Executor {
    /// As ourselves: the guard's policy lets nobody else through.
    pub(super) async fn roll_out(&self, action: &canary::Action) -> Result<Written, WriteError> {
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
