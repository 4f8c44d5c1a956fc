//! What accounts may do: asked from the API server.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use kube::client::Client;
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;

use super::cluster::{RequestError, bounded};
use crate::rollout::Right;

/// Which of the rights the accounts of a namespace have. What cannot be asked,
/// because the kind is gone or Windlass may not ask, is left out: nobody knows.
///
/// # Errors
/// When the API server does not answer.
pub async fn ask(
    client: Client,
    namespace: &str,
    rights: BTreeSet<Right>,
) -> Result<BTreeMap<Right, bool>, RequestError> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let mut answers = BTreeMap::new();
    for right in rights {
        let Some(resource) = resource_of(&client, &right).await? else { continue };
        let review = review(namespace, &right, resource);
        match bounded(reviews.create(&PostParams::default(), &review)).await {
            Ok(answer) => {
                answers.extend(answer.status.map(|status| (right, status.allowed)));
            }
            Err(error) if error.is_forbidden() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(answers)
}

/// Group and plural name of a kind, as the API server serves it.
async fn resource_of(client: &Client, right: &Right) -> Result<Option<(String, String)>, RequestError> {
    if (right.api_version.as_str(), right.kind.as_str()) == ("v1", "Secret") {
        return Ok(Some((String::new(), "secrets".to_owned())));
    }
    let (group, version) = right.api_version.rsplit_once('/').unwrap_or(("", &right.api_version));
    match bounded(pinned_kind(client, &GroupVersionKind::gvk(group, version, &right.kind))).await {
        Ok((resource, _)) => Ok(Some((resource.group, resource.plural))),
        Err(error) if error.is_not_found() => Ok(None),
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
