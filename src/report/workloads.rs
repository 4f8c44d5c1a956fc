//! What runs for a release and is not ready, down to the container that is why.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::canary::health::{Health, health, place};
use crate::canary::objects::Pod;
use crate::engine::observe::conditions::{self, Condition};
use crate::rollout::not_rolled_out;

/// So many pods of a workload are told of.
const MOST_PODS: usize = 3;

/// A workload, the object of the release it belongs to, and its pods.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// `kind/name` of the HelmRelease or Application.
    pub child: String,
    /// The Deployment, StatefulSet, DaemonSet or Job.
    pub object: Map<String, Value>,
    /// Pods that its selector finds.
    pub pods: Vec<Map<String, Value>>,
    /// Volume claims that those of them which have not started name.
    pub claims: Vec<Map<String, Value>>,
}

/// Names of the volume claims that a pod waits for: none once it has started.
pub fn claims_awaited(pod: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let phase = pod.get("status").and_then(|status| status.get("phase")).and_then(Value::as_str);
    let volumes = pod.get("spec").and_then(|spec| spec.get("volumes")).and_then(Value::as_array);
    let volumes = volumes.filter(|_| phase == Some("Pending")).into_iter().flatten();
    volumes.filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str())
}

/// Lines about a workload that is not ready; none about one that is.
pub fn say(workload: &Workload) -> Vec<String> {
    let object = Value::Object(workload.object.clone());
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let missing = if text("/kind") == "Job" { job_missing(&object) } else { not_rolled_out(text("/kind"), &object) };
    let Some(missing) = missing else { return Vec::new() };
    let mut lines =
        vec![format!("{}/{}/{}: {missing}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))];
    let pods: Vec<String> = workload.pods.iter().filter_map(pod_missing).collect();
    if pods.is_empty() {
        lines.extend(not_created(&object).map(|why| format!("  {why}")));
    }
    lines.extend(pods.iter().take(MOST_PODS).map(|line| format!("  {line}")));
    if text("/kind") == "Job" {
        lines.extend(workload.pods.iter().filter_map(logs).take(1).map(|line| format!("  {line}")));
    }
    if let Some(more) = pods.len().checked_sub(MOST_PODS).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more pods"));
    }
    lines.extend(workload.claims.iter().filter_map(claim_missing).take(MOST_PODS).map(|line| format!("  {line}")));
    lines
}

/// The condition of a type, if it is True: its reason and message.
fn holds(object: &Value, name: &str) -> Option<String> {
    let found = conditions::find(object.as_object()?, name).filter(Condition::is_true)?;
    Some(format!("{}: {}", found.reason, found.message))
}

fn job_missing(job: &Value) -> Option<String> {
    let count = |pointer: &str, default| job.pointer(pointer).and_then(Value::as_i64).unwrap_or(default);
    if let Some(failed) = holds(job, "Failed") {
        return Some(format!("failed ({failed})"));
    }
    let (done, wanted) = (count("/status/succeeded", 0), count("/spec/completions", 1));
    (done < wanted).then(|| format!("{done} of {wanted} pods have completed, {} failed", count("/status/failed", 0)))
}

/// Why there are no pods at all, such as a quota.
fn not_created(object: &Value) -> Option<String> {
    holds(object, "ReplicaFailure").map(|why| format!("its pods cannot be made: {why}"))
}

/// A volume claim that has no volume.
fn claim_missing(claim: &Map<String, Value>) -> Option<String> {
    let claim = Value::Object(claim.clone());
    let text = |pointer: &str| claim.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let phase = text("/status/phase");
    if phase == "Bound" {
        return None;
    }
    let size = text("/spec/resources/requests/storage");
    let class = match claim.pointer("/spec/storageClassName").and_then(Value::as_str) {
        Some("") | None => "names no StorageClass, and no volume is bound to it".to_owned(),
        Some(class) => format!("StorageClass {class} has given it no volume"),
    };
    let place = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
    Some(format!("PersistentVolumeClaim/{place} is {phase}: it asks for {size}, {class}"))
}

/// Where the logs of a pod that has failed are.
fn logs(object: &Map<String, Value>) -> Option<String> {
    let metadata = object.get("metadata")?;
    let (namespace, name) = (metadata.get("namespace")?.as_str()?, metadata.get("name")?.as_str()?);
    (Pod::read(object).phase == "Failed").then(|| format!("its logs: kubectl -n {namespace} logs {name}"))
}

/// How the container ended that a pod has failed by.
fn ended(pod: &Pod) -> Option<String> {
    let failed = pod.containers.iter().filter(|_| pod.phase == "Failed");
    let (name, exit) =
        failed.filter_map(|of| Some((&of.name, of.terminated.as_ref()?))).find(|(_, end)| end.code != 0)?;
    let reason = if exit.reason.is_empty() { String::new() } else { format!(" ({})", exit.reason) };
    Some(format!("{}: container {name} ended with exit code {}{reason}", place(pod), exit.code))
}

fn pod_missing(object: &Map<String, Value>) -> Option<String> {
    let pod = Pod::read(object);
    if pod.deleting || pod.ready || pod.phase == "Succeeded" {
        return None;
    }
    let (Health::NotReady(message) | Health::Broken(_, message)) = health(&pod, None, 0, &BTreeMap::new()) else {
        return None;
    };
    match failing_probe(object).filter(|_| message.ends_with(": not ready")) {
        Some(probe) => Some(format!("{}{probe}", message.trim_end_matches("not ready"))),
        None => Some(evicted(object).or_else(|| ended(&pod)).unwrap_or(message)),
    }
}

/// What a pod that failed as a whole says of it.
fn evicted(object: &Map<String, Value>) -> Option<String> {
    let status = object.get("status")?;
    let reason = status.get("reason")?.as_str()?;
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    let name = object.get("metadata")?.get("name")?.as_str()?;
    Some(format!("pod {name}: {reason}: {message}"))
}

/// The first container that runs and is not ready, and the probe that it has not passed.
fn failing_probe(object: &Map<String, Value>) -> Option<String> {
    let statuses = object.get("status")?.get("containerStatuses")?.as_array()?;
    let not_ready = |status: &&Value| {
        status.pointer("/state/running").is_some() && status.get("ready").and_then(Value::as_bool) == Some(false)
    };
    let status = statuses.iter().find(not_ready)?;
    let name = status.get("name")?.as_str()?;
    let containers = object.get("spec")?.get("containers")?.as_array()?;
    let container = containers.iter().find(|container| container.get("name").and_then(Value::as_str) == Some(name))?;
    let started = status.get("started").and_then(Value::as_bool) == Some(true);
    let (kind, probe) = match container.get("startupProbe").filter(|_| !started) {
        Some(probe) => ("startup", probe),
        None => ("readiness", container.get("readinessProbe")?),
    };
    Some(format!("container {name} runs, its {kind} probe ({}) does not succeed", asks(probe)))
}

fn asks(probe: &Value) -> String {
    let port = |of: &Value| of.get("port").map(|port| port.to_string().replace('"', "")).unwrap_or_default();
    if let Some(http) = probe.get("httpGet") {
        let path = http.get("path").and_then(Value::as_str).unwrap_or("/");
        return format!("GET {path}, port {}", port(http));
    }
    if let Some(socket) = probe.get("tcpSocket") {
        return format!("TCP, port {}", port(socket));
    }
    if let Some(grpc) = probe.get("grpc") {
        return format!("gRPC, port {}", port(grpc));
    }
    let command = probe.pointer("/exec/command").and_then(Value::as_array).into_iter().flatten();
    command.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn deployment(available: u32) -> Map<String, Value> {
        let deployment = json!({
            "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "generation": 1}, "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available},
        });
        deployment.as_object().cloned().unwrap()
    }

    fn pod(name: &str, status: Value) -> Map<String, Value> {
        let probe = json!({"httpGet": {"path": "/healthz", "port": "http"}});
        let pod = json!({
            "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"nodeName": "n1", "containers": [{"name": "web", "readinessProbe": probe}]}, "status": status,
        });
        pod.as_object().cloned().unwrap()
    }

    fn lines(status: Value) -> Vec<String> {
        say(&Workload { object: deployment(0), pods: vec![pod("web-1", status)], ..Workload::default() })
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({
            "phase": "Pending",
            "containerStatuses": [{"name": "web", "ready": false, "state": {"waiting": {"reason": reason, "message": message}}}],
        })
    }

    #[rstest]
    #[case::image(
        waiting("ImagePullBackOff", "Back-off pulling image \"web:9\""),
        "pod web-1 on node n1: container web: ImagePullBackOff (Back-off pulling image \"web:9\")"
    )]
    #[case::configuration(
        waiting("CreateContainerConfigError", "secret \"web\" not found"),
        "pod web-1 on node n1: container web: CreateContainerConfigError (secret \"web\" not found)"
    )]
    #[case::crash(
        json!({"phase": "Running", "containerStatuses": [{
            "name": "web", "ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
        }]}),
        "pod web-1 on node n1: container web: CrashLoopBackOff, 4 restarts, last exit code 1 (Error)"
    )]
    #[case::unschedulable(
        json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient cpu.",
        }]}),
        "pod web-1 on node n1: not scheduled: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."
    )]
    #[case::probe(
        json!({"phase": "Running", "containerStatuses": [{"name": "web", "ready": false, "started": true, "state": {"running": {}}}]}),
        "pod web-1 on node n1: container web runs, its readiness probe (GET /healthz, port http) does not succeed"
    )]
    #[case::evicted(
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}),
        "pod web-1: Evicted: The node was low on memory."
    )]
    fn the_container_that_holds_a_workload_up_is_named(#[case] status: Value, #[case] told: &str) {
        assert_eq!(
            lines(status),
            ["Deployment/shop/web: 0 of 1 replicas are available".to_owned(), format!("  {told}")]
        );
    }

    #[test]
    fn what_is_ready_or_goes_is_not_mentioned() {
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(lines(ready.clone()).len(), 1);
        let done = Workload { object: deployment(1), pods: vec![pod("web-1", ready)], ..Workload::default() };
        assert_eq!(say(&done), Vec::<String>::new());
    }

    #[test]
    fn of_many_pods_a_few_are_told() {
        let pods = (0..5).map(|n| pod(&format!("web-{n}"), waiting("ErrImagePull", ""))).collect();
        let lines = say(&Workload { object: deployment(0), pods, ..Workload::default() });
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (5, Some("  and 2 more pods")));
    }

    #[test]
    fn pods_that_cannot_be_made_are_told_by_the_workload() {
        let mut object = deployment(0);
        object["status"]["conditions"] = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}]);
        let lines = say(&Workload { object, ..Workload::default() });
        assert_eq!(lines[1], "  its pods cannot be made: FailedCreate: exceeded quota");
    }

    #[test]
    fn a_volume_claim_that_a_pod_waits_for_is_named() {
        let mut waits = pod("db-0", json!({"phase": "Pending"}));
        waits["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data-db-0"}}]);
        assert_eq!(claims_awaited(&waits).collect::<Vec<_>>(), ["data-db-0"]);
        let claim = |phase: &str, class: Value| {
            let claim = json!({
                "metadata": {"name": "data-db-0", "namespace": "shop"}, "status": {"phase": phase},
                "spec": {"storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}},
            });
            let claims = vec![claim.as_object().cloned().unwrap()];
            say(&Workload { object: deployment(0), pods: vec![waits.clone()], claims, ..Workload::default() })
        };
        assert_eq!(
            claim("Pending", Value::Null)[2],
            "  PersistentVolumeClaim/shop/data-db-0 is Pending: it asks for 1Gi, names no StorageClass, and no volume is \
             bound to it"
        );
        assert_eq!(
            claim("Lost", "fast".into())[2],
            "  PersistentVolumeClaim/shop/data-db-0 is Lost: it asks for 1Gi, StorageClass fast has given it no volume"
        );
        assert_eq!(claim("Bound", Value::Null).len(), 2);
        waits["status"] = json!({"phase": "Running"});
        assert_eq!(claims_awaited(&waits).count(), 0);
    }

    #[test]
    fn the_pod_that_a_job_failed_by_says_how_it_ended_and_where_its_logs_are() {
        let status = json!({"phase": "Failed", "containerStatuses": [{
            "name": "migrate", "ready": false, "state": {"terminated": {"exitCode": 3, "reason": "Error"}},
        }]});
        let failed = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}]});
        let job = json!({"kind": "Job", "metadata": {"name": "m", "namespace": "shop"}, "spec": {}, "status": failed});
        let object = job.as_object().cloned().unwrap();
        let lines = say(&Workload { object, pods: vec![pod("m-x", status)], ..Workload::default() });
        assert_eq!(
            lines,
            [
                "Job/shop/m: failed (BackoffLimitExceeded: limit)",
                "  pod m-x on node n1: container migrate ended with exit code 3 (Error)",
                "  its logs: kubectl -n shop logs m-x",
            ]
        );
    }

    #[test]
    fn a_job_that_failed_says_why() {
        let job = |status: Value| {
            let job =
                json!({"kind": "Job", "metadata": {"name": "m", "namespace": "shop"}, "spec": {}, "status": status});
            say(&Workload { object: job.as_object().cloned().unwrap(), ..Workload::default() })
        };
        let failed = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}]});
        assert_eq!(job(failed), ["Job/shop/m: failed (BackoffLimitExceeded: limit)"]);
        assert_eq!(job(json!({"active": 1})), ["Job/shop/m: 0 of 1 pods have completed, 0 failed"]);
        assert_eq!(job(json!({"succeeded": 1})), Vec::<String>::new());
    }
}
