//! What happens while nothing happens.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::Program;
use crate::support::recorder::{Entry, Recorder};
use crate::support::wait::until;
use crate::support::windlass::{metrics, writes};

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const WATCHED: [(&str, &str); 6] = [
    PACKAGE,
    ("windlass.dev/v1alpha1", "PackageRevision"),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
    ("source.toolkit.fluxcd.io/v1", "HelmChart"),
    ("argoproj.io/v1alpha1", "Application"),
    ("coordination.k8s.io/v1", "Lease"),
];
const SOON: Duration = Duration::from_secs(120);
/// Without a write of Windlass for so long an upgrade has come to its end.
const QUIET: Duration = Duration::from_secs(15);
/// Longer than the intervals at which the engines look again.
const IDLE: Duration = Duration::from_secs(660);

pub async fn ten_minutes_without_events_write_nothing_but_the_lease(bench: &Bench) {
    tokio::join!(bench.flux(), bench.argocd(), bench.own_crds(), bench.charts());
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("idle").await;
    let recorder = Recorder::start(cluster, &namespace, &WATCHED).await;
    let selector = format!("--watch-label-selector=windlass.dev/package in ({namespace}-flux,{namespace}-argo)");
    let _helm_controller = bench.helm_controller(&[&selector]).await;
    let kubeconfig = &bench.control_plane().await.kubeconfig;
    let program = || {
        Program::new("controller-idle", PathBuf::from(env!("CARGO_BIN_EXE_windlass")))
            .env_path("KUBECONFIG", kubeconfig)
    };
    let lease = format!("--lease-namespace={namespace}");
    let (port, _controller) = bench.controller_on_port(program, &namespace, &[&lease]).await;
    let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &namespace).await;
    for version in ["1.0.0", "1.1.0"] {
        for engine in ["flux", "argo"] {
            let name = format!("{namespace}-{engine}");
            cluster.apply(&namespace, package(bench, &name, engine, version).await).await;
        }
        for engine in ["flux", "argo"] {
            let name = format!("{namespace}-{engine}");
            until(&packages, &name, SOON, version, |package| {
                let status = to_json(package.ok_or("not there")?)["status"].clone();
                let runs = status["version"] == version && status["conditions"][0]["reason"] == "Ready";
                if runs { Ok(()) } else { Err(status["summary"].to_string()) }
            })
            .await;
        }
    }
    let before = at_rest(&recorder, port).await;
    tokio::time::sleep(IDLE).await;
    let log = recorder.complete().await.split_off(before.0);
    let leases = log.iter().filter(|entry| entry.kind == "Lease").count();
    let (looks, others): (Vec<_>, Vec<_>) =
        log.iter().filter(|entry| entry.kind != "Lease").partition(is_a_look_of_argo_cd);
    let (own, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|entry| last_writer(entry) == "windlass");
    let own: Vec<String> = own.iter().map(|entry| format!("{} {}", entry.kind, entry.name)).collect();
    eprintln!(
        "soak: idle for {IDLE:?}: {} writes of Windlass, {leases} of its Lease, {} looks of Argo CD, {} writes of others",
        written(port).await - before.1,
        looks.len(),
        others.len(),
    );
    assert_eq!(written(port).await, before.1);
    assert!(own.is_empty(), "{own:?}");
}

/// What has been written once nothing was for a while.
async fn at_rest(recorder: &Recorder, port: u16) -> (usize, u64) {
    let mut before = (recorder.complete().await.len(), written(port).await);
    loop {
        tokio::time::sleep(QUIET).await;
        let now = (recorder.complete().await.len(), written(port).await);
        if now.1 == before.1 {
            return now;
        }
        before = now;
    }
}

/// Argo CD compares now and then, and says so in the status.
fn is_a_look_of_argo_cd(entry: &&Entry) -> bool {
    entry.kind == "Application" && last_writer(entry) != "windlass"
}

fn last_writer(entry: &Entry) -> String {
    let managers = entry.object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let last = managers.iter().max_by_key(|manager| manager["time"].as_str().unwrap_or_default().to_owned());
    last.and_then(|last| last["manager"].as_str()).unwrap_or_default().to_owned()
}

async fn written(port: u16) -> u64 {
    writes(&metrics(port).await)
}

async fn package(bench: &Bench, name: &str, engine: &str, version: &str) -> Value {
    let repository = &bench.charts().await.url;
    let chart = |name: &str| json!({"repository": repository, "name": name, "version": version});
    let release = |component: &str| format!("{engine}-{component}");
    json!({
        "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": name},
        "spec": {
            "version": version, "engine": engine,
            "components": [
                {"name": "conf", "chart": chart("conf"), "install": {"releaseName": release("conf")}},
                {"name": "web", "chart": chart("app"), "install": {
                    "releaseName": release("web"), "dependsOn": ["conf"],
                    "readyWhen": [{
                        "apiVersion": "apps/v1", "kind": "Deployment", "name": release("web"), "condition": "Available", "settle": "1s",
                    }],
                }},
                {"name": "migrate", "chart": chart("migrate"), "install": {"releaseName": release("migrate"), "phase": "PreUpgrade"}},
            ],
        },
    })
}
