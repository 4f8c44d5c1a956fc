//! What pods do is chosen by their template.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::recorder::{Recorder, first};
use crate::support::wait::{self, condition};

const SOON: Duration = Duration::from_secs(30);

fn behaviour(name: &str) -> Value {
    json!({"bench.windlass.dev/behaviour": name})
}

fn deployment(annotations: &Value, labels: &Value) -> Value {
    let mut all = json!({"app": "it"});
    for (key, value) in labels.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it"},
        "spec": {
            "selector": {"matchLabels": {"app": "it"}},
            "template": {
                "metadata": {"labels": all, "annotations": annotations},
                "spec": {
                    "initContainers": [{"name": "init", "image": "example.org/init:1"}],
                    "containers": [{"name": "it", "image": "example.org/it:1"}],
                },
            },
        },
    })
}

/// A Deployment of one pod in a namespace of its own.
async fn deploy(bench: &Bench, annotations: Value) -> String {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("pods").await;
    cluster.apply(&namespace, deployment(&annotations, &json!({}))).await;
    namespace
}

/// Waits for a pod of the namespace that `check` accepts.
async fn pod<T>(bench: &Bench, namespace: &str, what: &str, check: impl Fn(&Value) -> Result<T, String>) -> T {
    let api: Api<Pod> = bench.cluster().await.api(namespace);
    wait::until_all(&api, ListParams::default(), SOON, what, |pods| {
        let pod = pods.first().ok_or("no pod")?;
        check(&serde_json::to_value(pod).expect("JSON"))
    })
    .await
}

/// The first container's state as (ready, restarts, waiting reason).
fn container<'a>(pod: &'a Value, list: &str) -> (bool, i64, &'a str) {
    let status = &pod["status"][list][0];
    (
        status["ready"].as_bool().unwrap_or_default(),
        status["restartCount"].as_i64().unwrap_or_default(),
        status["state"]["waiting"]["reason"].as_str().unwrap_or_default(),
    )
}

async fn available(bench: &Bench, namespace: &str) {
    let api: Api<Deployment> = bench.cluster().await.api(namespace);
    wait::until(&api, "it", SOON, "available", |deployment| {
        let deployment = deployment.ok_or("no such Deployment")?;
        wait::holds(&serde_json::to_value(deployment).expect("JSON"), "Available")
    })
    .await;
}

pub async fn deployment_becomes_ready(bench: &Bench) {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("pods").await;
    // By label, as charts without pod annotations need it.
    let labels = behaviour("ready");
    cluster.apply(&namespace, deployment(&json!({}), &labels)).await;
    available(bench, &namespace).await;
}

pub async fn readiness_comes_after_the_asked_time(bench: &Bench) {
    let annotations = json!({"bench.windlass.dev/ready-after": "3s"});
    let namespace = deploy(bench, annotations).await;
    available(bench, &namespace).await;
    pod(bench, &namespace, "ready no sooner than 3 s after its start", |pod| {
        let time = |text: &Value| -> Timestamp { text.as_str().expect("a time").parse().expect("a time") };
        let conditions = pod["status"]["conditions"].as_array().ok_or("no conditions")?;
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
        let ready = time(&ready.ok_or("no Ready")?["lastTransitionTime"]);
        let took = ready.duration_since(time(&pod["status"]["startTime"]));
        // Times are in whole seconds.
        assert!(took >= SignedDuration::from_secs(2), "ready after {took}");
        Ok(())
    })
    .await;
}

pub async fn pod_that_never_becomes_ready_runs(bench: &Bench) {
    let namespace = deploy(bench, behaviour("never-ready")).await;
    pod(bench, &namespace, "running and not ready", |pod| {
        let running = &pod["status"]["containerStatuses"][0]["state"]["running"];
        match (condition(pod, "Ready"), container(pod, "containerStatuses")) {
            (Some(("False", _, _)), (false, 0, "")) if running.is_object() => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    })
    .await;
}

pub async fn crashing_pod_counts_its_restarts(bench: &Bench) {
    let annotations = json!({
        "bench.windlass.dev/behaviour": "crash",
        "bench.windlass.dev/crash-after": "200ms",
        "bench.windlass.dev/restart-after": "200ms",
    });
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("pods").await;
    let recorder = Recorder::start(cluster, &namespace, &[("v1", "Pod")]).await;
    cluster.apply(&namespace, deployment(&annotations, &json!({}))).await;
    pod(bench, &namespace, "crashed twice", |pod| match container(pod, "containerStatuses") {
        (false, 2.., "CrashLoopBackOff") => {
            let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
            assert_eq!(last["exitCode"], 1, "{pod:#}");
            Ok(())
        }
        seen => Err(format!("{seen:?}")),
    })
    .await;
    let log = recorder.complete().await;
    first(&log, "the pod ready before it crashed", |entry| {
        container(&entry.object, "containerStatuses") == (true, 0, "")
    });
    first(&log, "the pod restarted", |entry| container(&entry.object, "containerStatuses") == (true, 1, ""));
}

pub async fn image_pull_error_is_told(bench: &Bench) {
    let namespace = deploy(bench, behaviour("image-pull-error")).await;
    pod(bench, &namespace, "ImagePullBackOff", |pod| match container(pod, "containerStatuses") {
        (false, 0, "ImagePullBackOff") if pod["status"]["phase"] == "Pending" => Ok(()),
        seen => Err(format!("{seen:?}")),
    })
    .await;
}

pub async fn failing_init_container_holds_the_pod(bench: &Bench) {
    let annotations = json!({
        "bench.windlass.dev/behaviour": "init-crash",
        "bench.windlass.dev/restart-after": "200ms",
    });
    let namespace = deploy(bench, annotations).await;
    pod(bench, &namespace, "its init container failed twice", |pod| {
        let init = container(pod, "initContainerStatuses");
        let main = container(pod, "containerStatuses");
        match (condition(pod, "Initialized"), init, main) {
            (Some(("False", _, _)), (false, 2.., "CrashLoopBackOff"), (false, 0, "PodInitializing")) => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    })
    .await;
}

async fn job_ends_as(bench: &Bench, behaviour_name: &str, expected: &str) {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("pods").await;
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "it"},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"annotations": behaviour(behaviour_name)},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "it", "image": "example.org/it:1"}],
            },
        }},
    });
    cluster.apply(&namespace, job).await;
    let api: Api<Job> = cluster.api(&namespace);
    wait::until(&api, "it", SOON, expected, |job| {
        wait::holds(&serde_json::to_value(job.ok_or("no such Job")?).expect("JSON"), expected)
    })
    .await;
}

pub async fn job_completes(bench: &Bench) {
    job_ends_as(bench, "ready", "Complete").await;
}

pub async fn failing_job_fails(bench: &Bench) {
    job_ends_as(bench, "fail", "Failed").await;
}

pub async fn dead_node_takes_its_pods_down_and_back(bench: &Bench) {
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("nodes").await;
    let nodes = bench.nodes().await;
    let names = nodes.add_pool(&namespace, 2).await;
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "it"},
        "spec": {
            "selector": {"matchLabels": {"app": "it"}},
            "template": {
                "metadata": {"labels": {"app": "it"}},
                "spec": {
                    "nodeSelector": {"bench.windlass.dev/pool": namespace},
                    "tolerations": [{"key": "bench.windlass.dev/pool", "operator": "Exists"}],
                    "containers": [{"name": "it", "image": "example.org/it:1"}],
                },
            },
        },
    });
    cluster.apply(&namespace, daemon_set).await;
    ready_agents(bench, &namespace, 2).await;
    nodes.kill(&names[0]).await;
    ready_agents(bench, &namespace, 1).await;
    nodes.revive(&names[0]).await;
    ready_agents(bench, &namespace, 2).await;
}

async fn ready_agents(bench: &Bench, namespace: &str, expected: usize) {
    let api: Api<Pod> = bench.cluster().await.api(namespace);
    let what = format!("{expected} of 2 pods ready");
    wait::until_all(&api, ListParams::default(), SOON, &what, |pods| {
        let ready = |pod: &&&Pod| {
            let pod = serde_json::to_value(pod).expect("JSON");
            matches!(condition(&pod, "Ready"), Some(("True", _, _)))
        };
        let seen = (pods.len(), pods.iter().filter(ready).count());
        if seen == (2, expected) {
            return Ok(());
        }
        Err(format!("{} pods, {} ready", seen.0, seen.1))
    })
    .await;
}
