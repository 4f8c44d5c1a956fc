//! How long the next one waits once the one before is verified: from the write that makes it
//! so to the write of the next one's spec, as the API server's watch tells of both.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::recorder::{Entry, Recorder, describe};
use crate::support::wait::until;
use crate::support::windlass::chain;

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const HELM_RELEASE: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");
const CHAIN: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
/// Changes of values after the installation.
const CHANGES: usize = 10;
const MOVED_WITHIN: Duration = Duration::from_secs(120);
const MEDIAN: Duration = Duration::from_millis(200);
const NEARLY_ALL: Duration = Duration::from_secs(1);

pub async fn the_next_one_follows_at_once_on_flux(bench: &Bench) {
    bench.flux().await;
    let namespace = bench.cluster().await.namespace("gaps-flux").await;
    let selector = format!("--watch-label-selector=windlass.dev/package={namespace}");
    let _helm_controller = bench.helm_controller(&[&selector]).await;
    measure(bench, &namespace, "flux", HELM_RELEASE, is_ready_on_flux).await;
}

pub async fn the_next_one_follows_at_once_on_argo_cd(bench: &Bench) {
    bench.argocd().await;
    let namespace = bench.cluster().await.namespace("gaps-argo").await;
    measure(bench, &namespace, "argo", APPLICATION, is_ready_on_argo).await;
}

async fn measure(
    bench: &Bench,
    namespace: &str,
    engine: &str,
    kind: (&str, &str),
    is_ready: impl Fn(&[&Value]) -> bool + Copy,
) {
    bench.own_crds().await;
    let cluster = bench.cluster().await;
    let recorder = Recorder::start(cluster, namespace, &[kind]).await;
    let _controller = bench.controller(namespace).await;
    let mut taken = Vec::new();
    let mut gaps = Vec::new();
    for change in 0..=CHANGES {
        let position = recorder.complete().await.len();
        wants(bench, namespace, engine, &change.to_string()).await;
        let log = recorder.complete().await.split_off(position);
        let of_it =
            |name: &str| log.iter().filter(|entry| entry.name == format!("{namespace}-{name}")).collect::<Vec<_>>();
        gaps.extend(CHAIN.windows(2).map(|pair| gap(&of_it(pair[0]), &of_it(pair[1]), is_ready, &log)));
        let (first, last) = (log.first().expect("a write"), log.last().expect("a write"));
        taken.push(last.seen.duration_since(first.seen));
    }
    gaps.sort();
    taken.sort();
    let [median, nearly_all] = [gaps[gaps.len() / 2], gaps[gaps.len() * 99 / 100]];
    let longest = gaps[gaps.len() - 1];
    eprintln!(
        "{engine}: {} edges, gap median {median:?}, p99 {nearly_all:?}, longest {longest:?}; a chain of {} takes {:?}",
        gaps.len(),
        CHAIN.len(),
        taken[taken.len() / 2],
    );
    assert!(median < MEDIAN && nearly_all < NEARLY_ALL, "{gaps:?}");
}

/// From the first write with which `before` is verified to the first that asks `after` for more.
fn gap(before: &[&Entry], after: &[&Entry], is_ready: impl Fn(&[&Value]) -> bool, log: &[Entry]) -> Duration {
    let objects: Vec<&Value> = before.iter().map(|entry| &entry.object).collect();
    let verified = (1..=objects.len()).find(|count| is_ready(&objects[..*count]));
    let verified = verified.unwrap_or_else(|| panic!("never verified\n{}", describe(log)));
    // Argo CD compares when it likes, which is no news of ours.
    let is_asked = |entry: &&&Entry| entry.kind != APPLICATION.1 || !entry.object["operation"].is_null();
    let (verified, asked) = (before[verified - 1], after.iter().find(is_asked).expect("the next one is written"));
    assert!(
        verified.version < asked.version,
        "{} was asked before {} was verified\n{}",
        asked.name,
        verified.name,
        describe(log)
    );
    asked.seen.saturating_duration_since(verified.seen)
}

async fn wants(bench: &Bench, namespace: &str, engine: &str, note: &str) {
    let repository = &bench.charts().await.url;
    let component = |(name, depends_on): (&str, Vec<&str>)| {
        json!({
            "name": name, "values": {"note": note},
            "chart": {"repository": repository, "name": "conf", "version": "1.0.0"},
            "install": {"dependsOn": depends_on},
        })
    };
    let components: Vec<Value> = chain(&CHAIN).map(component).collect();
    let package = json!({
        "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": namespace},
        "spec": {"version": "1.0.0", "engine": engine, "components": components},
    });
    let cluster = bench.cluster().await;
    cluster.apply(namespace, package).await;
    let maps = cluster.dynamic("v1", "ConfigMap", namespace).await;
    until(&maps, "six-cm", MOVED_WITHIN, "the last one moves", |map| {
        let found = to_json(map.ok_or("no such ConfigMap")?)["data"]["note"].clone();
        if found == note { Ok(()) } else { Err(found.to_string()) }
    })
    .await;
    let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, namespace).await;
    until(&packages, namespace, MOVED_WITHIN, "ready", |package| {
        let package = to_json(package.ok_or("no such Package")?);
        let ready = package["status"]["conditions"][0]["reason"] == "Ready";
        let of_this = package["status"]["observedGeneration"] == package["metadata"]["generation"];
        if ready && of_this { Ok(()) } else { Err(package["status"]["summary"].to_string()) }
    })
    .await;
}

/// The release of this generation is deployed and ready.
fn is_ready_on_flux(so_far: &[&Value]) -> bool {
    let Some(object) = so_far.last() else { return false };
    let status = &object["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let is_true = |kind: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == "True");
    status["observedGeneration"] == object["metadata"]["generation"]
        && is_true("Ready")
        && !is_true("Reconciling")
        && status["history"][0]["status"] == "deployed"
        && so_far.iter().any(|earlier| earlier["status"]["observedGeneration"] != object["metadata"]["generation"])
}

/// An operation of ours has succeeded, a refresh after it is done with, and all is well.
fn is_ready_on_argo(so_far: &[&Value]) -> bool {
    let ours = |object: &Value| {
        let state = &object["status"]["operationState"];
        state["phase"] == "Succeeded" && state["operation"]["info"][0]["name"] == "windlass.dev/token"
    };
    let asked = so_far.iter().position(|object| !object["operation"].is_null()).unwrap_or(so_far.len());
    let succeeded = so_far.iter().skip(asked).position(|object| ours(object)).map(|position| position + asked);
    let refresh = |object: &&Value| object["metadata"]["annotations"]["argocd.argoproj.io/refresh"].is_string();
    let Some((succeeded, object)) = succeeded.zip(so_far.last()) else { return false };
    let compared = so_far[succeeded..].iter().any(refresh) && !refresh(object);
    let status = &object["status"];
    compared
        && object["operation"].is_null()
        && status["operationState"]["phase"] == "Succeeded"
        && status["sync"]["status"] == "Synced"
        && status["health"]["status"] == "Healthy"
}
