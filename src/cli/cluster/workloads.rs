//! The workloads of releases, and their pods, as far as they may be read.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use serde_json::{Map, Value};

use super::Cluster;
use crate::api::wellknown::{FLUX_RELEASE_NAME, FLUX_RELEASE_NAMESPACE};
use crate::controller::cluster::{RequestError, bounded};
use crate::controller::kinds::resource;
use crate::report::why::{self, Found};
use crate::report::workloads::{Workload, claims_awaited};

/// Group and kinds that run pods, with their plurals.
const WORKLOADS: [(&str, &str, &str); 4] = [
    ("apps", "Deployment", "deployments"),
    ("apps", "StatefulSet", "statefulsets"),
    ("apps", "DaemonSet", "daemonsets"),
    ("batch", "Job", "jobs"),
];
const CLAIMS: &str = "persistentvolumeclaims";
/// So many pods of a workload are read.
const MOST_PODS: u32 = 100;

/// Adds what runs for the hooks and components that are not done.
pub async fn add(cluster: &Cluster, found: &mut Found) -> anyhow::Result<()> {
    for child in &open_children(found) {
        for (group, kind, plural) in WORKLOADS {
            let resource = resource(group, "v1", kind, plural);
            let (namespace, objects) = of_child(cluster, child, &resource).await;
            let objects = match objects {
                Ok(objects) => objects,
                Err(error) => {
                    unread(found, error, plural, &namespace)?;
                    continue;
                }
            };
            for object in objects {
                let pods = pods(cluster, &namespace, &object).await;
                let pods = or_unread(found, pods, "pods", &namespace)?;
                let claims = claims(cluster, &namespace, &pods).await;
                let claims = or_unread(found, claims, CLAIMS, &namespace)?;
                found.workloads.push(Workload { child: why::child_name(child), object, pods, claims });
            }
        }
    }
    Ok(())
}

/// The HelmReleases and Applications of what is not done.
fn open_children(found: &Found) -> Vec<Map<String, Value>> {
    let roots = found.packages.values().filter(|package| why::blockers(package).is_empty());
    let children = roots.flat_map(|package| {
        let hooks = why::open_hooks(package, found).map(|hook| &hook.name);
        let names = hooks.chain(why::open(package).map(|component| &component.name));
        names.flat_map(|name| why::children_of(package, name, found))
    });
    children.cloned().collect()
}

fn or_unread(
    found: &mut Found,
    read: Result<Vec<Map<String, Value>>, RequestError>,
    plural: &str,
    namespace: &str,
) -> anyhow::Result<Vec<Map<String, Value>>> {
    read.or_else(|error| unread(found, error, plural, namespace).map(|()| Vec::new()))
}

/// What may not be read is left out, and said once.
fn unread(found: &mut Found, error: RequestError, plural: &str, namespace: &str) -> anyhow::Result<()> {
    if !error.is_forbidden() {
        return Err(error.into());
    }
    let told = format!("you may not list {plural} in {namespace}");
    if !found.unread.contains(&told) {
        found.unread.push(told);
    }
    Ok(())
}

/// Flux labels what a release installs; Argo CD lists it.
async fn of_child(
    cluster: &Cluster,
    child: &Map<String, Value>,
    resource: &ApiResource,
) -> (String, Result<Vec<Map<String, Value>>, RequestError>) {
    let child = Value::Object(child.clone());
    let text = |pointer: &str| child.pointer(pointer).and_then(Value::as_str);
    let own = text("/metadata/namespace").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    if text("/kind") == Some("HelmRelease") {
        let namespace = text("/spec/targetNamespace").unwrap_or(own).to_owned();
        let selector = format!("{FLUX_RELEASE_NAME}={name},{FLUX_RELEASE_NAMESPACE}={own}");
        let listed = list(cluster, &namespace, resource, &ListParams::default().labels(&selector)).await;
        return (namespace, listed);
    }
    let namespace = text("/spec/destination/namespace").unwrap_or(own).to_owned();
    let entries = child.pointer("/status/resources").and_then(Value::as_array).cloned().unwrap_or_default();
    let field = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_kind = |entry: &&Value| field(entry, "kind") == resource.kind && field(entry, "group") == resource.group;
    let mut objects = Vec::new();
    for entry in entries.iter().filter(of_kind) {
        let place = Api::<DynamicObject>::namespaced_with(cluster.client.clone(), &field(entry, "namespace"), resource);
        match bounded(place.get(&field(entry, "name"))).await {
            Ok(object) => objects.extend(as_map(object, resource)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return (namespace, Err(error)),
        }
    }
    (namespace, Ok(objects))
}

/// The pods that a workload selects.
async fn pods(
    cluster: &Cluster,
    namespace: &str,
    workload: &Map<String, Value>,
) -> Result<Vec<Map<String, Value>>, RequestError> {
    let namespace = workload
        .get("metadata")
        .and_then(|metadata| metadata.get("namespace"))
        .and_then(Value::as_str)
        .unwrap_or(namespace);
    let labels = workload.get("spec").and_then(|spec| spec.pointer("/selector/matchLabels")).and_then(Value::as_object);
    let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { return Ok(Vec::new()) };
    let selector: Vec<String> =
        labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let parameters = ListParams::default().labels(&selector.join(",")).limit(MOST_PODS);
    list(cluster, namespace, &resource("", "v1", "Pod", "pods"), &parameters).await
}

/// The volume claims that pods which have not started wait for.
async fn claims(
    cluster: &Cluster,
    namespace: &str,
    pods: &[Map<String, Value>],
) -> Result<Vec<Map<String, Value>>, RequestError> {
    let wanted: Vec<&str> = pods.iter().flat_map(claims_awaited).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let resource = resource("", "v1", "PersistentVolumeClaim", CLAIMS);
    let mut claims = list(cluster, namespace, &resource, &ListParams::default()).await?;
    claims.retain(|claim| {
        let name = claim.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
        name.is_some_and(|name| wanted.contains(&name))
    });
    Ok(claims)
}

async fn list(
    cluster: &Cluster,
    namespace: &str,
    resource: &ApiResource,
    parameters: &ListParams,
) -> Result<Vec<Map<String, Value>>, RequestError> {
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, resource);
    let listed = bounded(api.list(parameters)).await?;
    Ok(listed.items.into_iter().filter_map(|object| as_map(object, resource)).collect())
}

/// Items of lists do not say what they are.
fn as_map(object: DynamicObject, resource: &ApiResource) -> Option<Map<String, Value>> {
    let mut object = serde_json::to_value(object).ok()?.as_object().cloned()?;
    object.insert("kind".into(), resource.kind.clone().into());
    Some(object)
}
