//! Release objects that are not watched because they are not ours. They are listed
//! when somebody wants something new: once for all who ask at about the same time, and
//! kept only as far as they tell which release they hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ApiResource, ListParams};
use kube::client::Client;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::cached::Cached;
use super::cluster::{RequestError, bounded, typed_api};
use super::kinds::Kind;
use crate::engine::ObjectKey;
use crate::rollout::live::Live;

/// Objects that are read at a time; little of them is kept.
const PAGE: u32 = 100;
/// How long a list serves others: as long as one commit of many Packages is taken up.
const FRESH: Duration = Duration::from_secs(2);

/// The last list of each kind.
#[derive(Default)]
pub struct Foreign {
    releases: Mutex<Option<Listed>>,
    applications: Mutex<Option<Listed>>,
}

struct Listed {
    at: Instant,
    objects: Arc<Vec<Cached>>,
}

impl Foreign {
    /// All objects of a kind of release, as far as they say what they hold. Whoever
    /// asks while somebody lists waits for that list.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn all(&self, client: Client, namespace: &str, kind: Kind) -> Result<Arc<Vec<Cached>>, RequestError> {
        let slot = if kind == Kind::Application { &self.applications } else { &self.releases };
        let mut slot = slot.lock().await;
        if let Some(listed) = slot.as_ref().filter(|listed| listed.at.elapsed() < FRESH) {
            return Ok(listed.objects.clone());
        }
        let at = Instant::now();
        let objects = Arc::new(list(client, namespace, &kind.resource()).await?);
        *slot = Some(Listed { at, objects: objects.clone() });
        tracing::debug!(kind = kind.as_str(), objects = objects.len(), "looked for releases of others");
        Ok(objects)
    }
}

async fn list(client: Client, namespace: &str, resource: &ApiResource) -> Result<Vec<Cached>, RequestError> {
    let objects = typed_api::<Cached>(client, namespace, resource);
    let mut page = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let list = bounded(objects.list(&page)).await?;
        found.extend(list.items.iter().map(|object| identity(object.object(), resource)));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// The whole of one object; `None` if it is gone by now.
///
/// # Errors
/// When it cannot be read.
pub async fn whole(client: Client, key: &ObjectKey, resource: &ApiResource) -> Result<Option<Live>, RequestError> {
    match bounded(typed_api::<Cached>(client, &key.namespace, resource).get(&key.name)).await {
        Ok(object) => Ok(Some(object.live())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// What tells an object, its release, and whether that runs.
fn identity(mut object: Map<String, Value>, resource: &ApiResource) -> Cached {
    object.insert("apiVersion".into(), resource.api_version.clone().into());
    object.insert("kind".into(), resource.kind.clone().into());
    let kept: BTreeMap<&str, &[&str]> = BTreeMap::from([
        (
            "spec",
            ["kubeConfig", "targetNamespace", "storageNamespace", "releaseName", "destination", "source"].as_slice(),
        ),
        ("status", &["history"]),
    ]);
    for (field, kept) in kept {
        if let Some(Value::Object(fields)) = object.get_mut(field) {
            fields.retain(|name, _| kept.contains(&name.as_str()));
        }
    }
    if let Some(Value::Object(helm)) = object.get_mut("spec").and_then(|spec| spec.pointer_mut("/source/helm")) {
        helm.retain(|name, _| name == "releaseName");
    }
    Cached::new(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_kept_of_a_release_tells_what_it_holds() {
        let object = json!({
            "metadata": {"name": "a", "namespace": "ns", "annotations": {"windlass.dev/adopt": "x"}},
            "spec": {"releaseName": "web", "targetNamespace": "t", "values": {"large": "x".repeat(1000)}},
            "status": {"history": [{"name": "web"}], "inventory": {"entries": []}},
        });
        let kept = identity(object.as_object().unwrap().clone(), &Kind::HelmRelease.resource()).live();
        assert_eq!(kept.key().kind, "HelmRelease");
        assert_eq!(kept.object["spec"], json!({"releaseName": "web", "targetNamespace": "t"}));
        assert_eq!(kept.object["status"], json!({"history": [{"name": "web"}]}));
        assert_eq!(kept.annotation("windlass.dev/adopt"), Some("x"));
    }
}
