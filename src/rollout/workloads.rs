//! Workloads beside the DaemonSets of a component with a canary. On Flux its
//! release is not waited for (`disableWait`), so Ready says no more than that it
//! was applied: what else runs in it is looked at here.

use serde_json::Value;

use super::release;
use super::snapshot::Snapshot;
use super::turn::Standing;
use super::work::Work;
use crate::api::wellknown::LABEL_CANARY;
use crate::api::{Engine, RecordedComponent};
use crate::engine::ObjectKey;
use crate::ready::evidence::Lookup;

/// What such a component still waits for; `None`: nothing.
pub(crate) fn awaited(work: &Work<'_>, component: &RecordedComponent) -> Option<Standing> {
    if !is_looked_at(work.latest.spec.engine, component) {
        return None;
    }
    let child = work.child(component)?;
    release::objects_of(child).into_iter().filter(|key| is_workload(key, component)).find_map(|key| {
        let waiting = |message: String| Some(Standing::Waiting(format!("{}/{}: {message}", key.kind, key.name)));
        match work.snapshot.objects.get(&key).unwrap_or(&Lookup::Pending) {
            Lookup::Found(object) => not_rolled_out(&key.kind, object).and_then(waiting),
            Lookup::Absent | Lookup::KindUnknown => waiting("it does not exist".to_owned()),
            Lookup::Pending => waiting("it has not been read yet".to_owned()),
            Lookup::Denied | Lookup::NotImpersonated => {
                let message = format!(
                    "{}/{} may not be read by Windlass: apply manifests/tenant/canary.yaml to namespace {}",
                    key.kind, key.name, key.namespace
                );
                Some(Standing::Denied(message))
            }
        }
    })
}

/// Workloads of the open revision that [`awaited`] wants looked up.
pub(crate) fn needed(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    let latest = snapshot.revisions.last();
    let engine = latest.map(|latest| latest.spec.engine);
    let components = latest.into_iter().flat_map(|latest| &latest.spec.components);
    let looked_at = components.filter(move |component| engine.is_some_and(|engine| is_looked_at(engine, component)));
    looked_at.flat_map(|component| {
        let objects = release::child(snapshot, component).map(release::objects_of).unwrap_or_default();
        objects.into_iter().filter(move |key| is_workload(key, component))
    })
}

fn is_looked_at(engine: Engine, component: &RecordedComponent) -> bool {
    engine == Engine::Flux && component.canary.is_some()
}

/// DaemonSets only beside those that the canary names: these have their rollout.
fn is_workload(key: &ObjectKey, component: &RecordedComponent) -> bool {
    let named = component.canary.as_ref().map(|canary| canary.daemon_sets.as_slice()).unwrap_or_default();
    key.api_version == "apps/v1"
        && match key.kind.as_str() {
            "Deployment" | "StatefulSet" => true,
            "DaemonSet" => !named.is_empty() && !named.contains(&key.name),
            _ => false,
        }
}

/// Why a workload is not rolled out yet, by the rules of `kubectl rollout status`.
pub fn not_rolled_out(kind: &str, object: &Value) -> Option<String> {
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let status = |field: &str| count(&format!("/status/{field}")).unwrap_or(0);
    if status("observedGeneration") < count("/metadata/generation").unwrap_or(0) {
        return Some("its controller has not seen it yet".to_owned());
    }
    if kind == "DaemonSet" {
        return daemon_set_not_rolled_out(object);
    }
    let wanted = count("/spec/replicas").unwrap_or(1);
    let available = if kind == "Deployment" { "availableReplicas" } else { "readyReplicas" };
    let on_delete = object.pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete");
    let partition = count("/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0);
    let to_update = if on_delete { 0 } else { (wanted - partition).max(0) };
    if status("updatedReplicas") < to_update {
        return Some(format!("{} of {to_update} replicas are updated", status("updatedReplicas")));
    }
    if kind == "Deployment" && status("replicas") > status("updatedReplicas") {
        return Some("old replicas are still there".to_owned());
    }
    (status(available) < wanted).then(|| format!("{} of {wanted} replicas are available", status(available)))
}

fn daemon_set_not_rolled_out(object: &Value) -> Option<String> {
    let status = |field: &str| object.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or(0);
    let on_delete = object.pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete");
    let wanted = status("desiredNumberScheduled");
    let is_guarded = object.pointer("/metadata/labels").is_some_and(|labels| labels.get(LABEL_CANARY).is_some());
    if on_delete && is_guarded {
        return Some("it is under the canary's guard, which holds its new template".to_owned());
    }
    if !on_delete && status("updatedNumberScheduled") < wanted {
        return Some(format!("{} of {wanted} pods are updated", status("updatedNumberScheduled")));
    }
    (status("numberAvailable") < wanted)
        .then(|| format!("{} of {wanted} pods are available", status("numberAvailable")))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn workload(spec: Value, status: Value) -> Value {
        json!({"metadata": {"generation": 2}, "spec": spec, "status": status})
    }

    #[rstest]
    #[case::done("Deployment", json!({"replicas": 2}), json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}), None)]
    #[case::one_by_default("Deployment", json!({}), json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}), None)]
    #[case::none_wanted("Deployment", json!({"replicas": 0}), json!({"observedGeneration": 2}), None)]
    #[case::not_seen("Deployment", json!({"replicas": 2}), json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}), Some("its controller has not seen it yet"))]
    #[case::not_updated("Deployment", json!({"replicas": 2}), json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}), Some("1 of 2 replicas are updated"))]
    #[case::old("Deployment", json!({"replicas": 2}), json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 3}), Some("old replicas are still there"))]
    #[case::not_available("Deployment", json!({"replicas": 2}), json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}), Some("0 of 2 replicas are available"))]
    #[case::not_ready("StatefulSet", json!({"replicas": 3}), json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2}), Some("2 of 3 replicas are available"))]
    #[case::on_delete("StatefulSet", json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}), json!({"observedGeneration": 2, "replicas": 3, "readyReplicas": 3}), None)]
    #[case::partition("StatefulSet", json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}), json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 3}), None)]
    #[case::daemon_set("DaemonSet", json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}), None)]
    #[case::daemon_set_not_updated("DaemonSet", json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberAvailable": 3}), Some("2 of 3 pods are updated"))]
    #[case::daemon_set_not_available("DaemonSet", json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3}), Some("0 of 3 pods are available"))]
    #[case::daemon_set_on_delete("DaemonSet", json!({"updateStrategy": {"type": "OnDelete"}}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberAvailable": 3}), None)]
    fn a_workload_is_rolled_out_as_kubectl_says(
        #[case] kind: &str,
        #[case] spec: Value,
        #[case] status: Value,
        #[case] reason: Option<&str>,
    ) {
        assert_eq!(not_rolled_out(kind, &workload(spec, status)).as_deref(), reason);
    }
}
