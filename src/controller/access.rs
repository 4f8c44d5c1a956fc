//! What accounts may do: asked from the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{PartialObjectMeta, PostParams};
use kube::client::Client;
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use tokio::time::Instant;

use super::cluster::{RequestError, bounded};
use super::kinds::Kind;
use crate::rollout::Right;

/// How long an answer counts: nobody tells when roles change.
const FRESH: Duration = Duration::from_secs(10);
/// Questions that are asked at the same time.
const AT_ONCE: usize = 16;

/// Group and plural name of a kind; `None` where nobody knows.
type Served = Option<(String, String)>;

/// What accounts may do, as answered lately.
#[derive(Default)]
pub struct Rights {
    answers: Recent<(String, Right), Option<bool>>,
    kinds: Recent<(String, String), Served>,
}

/// Answers, and when they were given.
struct Recent<K, V>(Mutex<BTreeMap<K, (Instant, V)>>);

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Clone> Recent<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| at.elapsed() < FRESH);
        known.get(key).map(|(_, answer)| answer.clone())
    }

    fn put(&self, key: K, answer: V) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (Instant::now(), answer));
    }
}

impl Rights {
    /// Which of the rights the accounts of a namespace have. What cannot be asked,
    /// because the kind is gone, its server does not answer or Windlass may not ask, is
    /// left out: nobody knows.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn ask(
        &self,
        client: Client,
        namespace: &str,
        rights: BTreeSet<Right>,
    ) -> Result<BTreeMap<Right, bool>, RequestError> {
        let rights: Vec<Right> = rights.into_iter().collect();
        let mut answers = BTreeMap::new();
        for some in rights.chunks(AT_ONCE) {
            let asked = join_all(some.iter().map(|right| self.has(&client, namespace, right))).await;
            for (right, answer) in some.iter().zip(asked) {
                answers.extend(answer?.map(|allowed| (right.clone(), allowed)));
            }
        }
        Ok(answers)
    }

    async fn has(&self, client: &Client, namespace: &str, right: &Right) -> Result<Option<bool>, RequestError> {
        let key = (namespace.to_owned(), right.clone());
        if let Some(known) = self.answers.get(&key) {
            return Ok(known);
        }
        let answer = match self.served(client, right).await {
            None => None,
            Some(resource) => {
                let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
                let review = review(namespace, right, resource);
                match bounded(reviews.create(&PostParams::default(), &review)).await {
                    Ok(answer) => answer.status.map(|status| status.allowed),
                    Err(error) if error.is_forbidden() => None,
                    Err(error) => return Err(error),
                }
            }
        };
        self.answers.put(key, answer);
        Ok(answer)
    }

    /// Where objects are served. An API whose server is down, often part of what is
    /// being uninstalled, must not hold an uninstall up in silence.
    async fn served(&self, client: &Client, right: &Right) -> Served {
        if (right.api_version.as_str(), right.kind.as_str()) == ("v1", "Secret") {
            return Some((String::new(), "secrets".to_owned()));
        }
        let key = (right.api_version.clone(), right.kind.clone());
        if let Some(known) = self.kinds.get(&key) {
            return known;
        }
        let (group, version) = right.api_version.rsplit_once('/').unwrap_or(("", &right.api_version));
        let served = match bounded(pinned_kind(client, &GroupVersionKind::gvk(group, version, &right.kind))).await {
            Ok((resource, _)) => Some((resource.group, resource.plural)),
            Err(error) => {
                tracing::debug!(kind = right.kind, %error, "nobody knows where it is served");
                None
            }
        };
        self.kinds.put(key, served.clone());
        served
    }
}

/// What of a Package's surroundings is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Going {
    /// The kind Package.
    pub kind: bool,
    /// The Package's namespace.
    pub namespace: bool,
}

/// Asks whether the kind Package, or a namespace, is being deleted. Where that may not
/// be read, nobody knows.
///
/// # Errors
/// When the API server does not answer.
pub async fn is_going(client: &Client, namespace: &str) -> Result<Going, RequestError> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let kind = deleting(bounded(definitions.get_metadata(&Kind::Package.definition())).await)?;
    let namespace = deleting(bounded(namespaces.get_metadata(namespace)).await)?;
    Ok(Going { kind, namespace })
}

fn deleting<K>(answer: Result<PartialObjectMeta<K>, RequestError>) -> Result<bool, RequestError> {
    match answer {
        Ok(object) => Ok(object.metadata.deletion_timestamp.is_some()),
        Err(error) if error.is_not_found() => Ok(true),
        Err(error) if error.is_forbidden() => Ok(false),
        Err(error) => Err(error),
    }
}

fn review(namespace: &str, right: &Right, (group, resource): (String, String)) -> SubjectAccessReview {
    let attributes = ResourceAttributes {
        group: Some(group),
        resource: Some(resource),
        verb: Some(right.verb.to_owned()),
        namespace: Some(right.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        ..ResourceAttributes::default()
    };
    let groups = ["system:authenticated", "system:serviceaccounts"].map(str::to_owned).into_iter();
    let groups = groups.chain([format!("system:serviceaccounts:{namespace}")]).collect();
    let spec = SubjectAccessReviewSpec {
        user: Some(format!("system:serviceaccount:{namespace}:{}", right.account)),
        groups: Some(groups),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    SubjectAccessReview { spec, ..SubjectAccessReview::default() }
}
