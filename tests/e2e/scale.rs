//! A thousand Packages of five releases each, on the real API server: what the controller takes
//! while nothing happens, after a restart, and while a hundred of them are upgraded at once.
//! The releases are played: their status is written as soon as their spec is seen.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::{Process, Program};
use crate::support::wait::until_true;
use crate::support::windlass::{chain, metrics, static_binary, sum, writes};

pub mod nodes;

const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const HELM_RELEASE: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const PACKAGES: usize = 1000;
const COMPONENTS: [&str; 5] = ["one", "two", "three", "four", "five"];
const UPGRADED: usize = 100;
const AT_ONCE: usize = 16;
const ALL_MOVED_WITHIN: Duration = Duration::from_secs(1200);
const IDLE: Duration = Duration::from_secs(60);
const MOST_MEMORY: u64 = 100 << 20;

pub async fn a_thousand_packages_cost_little(bench: &Bench) {
    tokio::join!(bench.flux(), bench.own_crds(), bench.charts());
    let cluster = bench.cluster().await;
    let namespace = cluster.namespace("scale").await;
    let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &namespace).await;
    let _engine = play_engine(cluster.dynamic(HELM_RELEASE.0, HELM_RELEASE.1, &namespace).await);
    let scene = Scene { bench, namespace, packages };

    let began = Instant::now();
    let controller = scene.controller().await;
    scene.want(0..PACKAGES, "first").await;
    scene.all_ready(PACKAGES, &controller).await;
    eprintln!("scale: {PACKAGES} Packages installed in {:.0?}", began.elapsed());
    controller.tell("after the installation").await;
    controller.settled().await;

    let idle = controller.idle(bench).await;
    assert_eq!(idle.writes, 0, "writes while nothing happens");
    assert_eq!(idle.lists, 0, "lists while nothing happens");

    controller.process.kill().await;
    let began = Instant::now();
    let controller = scene.controller().await;
    let first = controller.reconciled_at_least(1, began).await;
    let all = controller.reconciled_at_least(PACKAGES, began).await;
    eprintln!("scale: after a restart the first decision after {first:.1?}, all of them after {all:.1?}");
    controller.settled().await;
    let idle = controller.idle(bench).await;
    assert_eq!(idle.writes, 0, "writes after a restart");
    assert!(idle.memory < MOST_MEMORY, "{} MiB", idle.memory >> 20);

    let before = controller.metrics().await;
    let began = Instant::now();
    scene.want(0..UPGRADED, "second").await;
    scene.all_ready(PACKAGES, &controller).await;
    let after = controller.metrics().await;
    let [half, nearly_all] = [0.5, 0.99].map(|share| quantile(&before, &after, share));
    eprintln!(
        "scale: {UPGRADED} Packages upgraded at once in {:.1?}; a look takes p50 <= {half} s, p99 <= {nearly_all} s; {} writes",
        began.elapsed(),
        writes(&after) - writes(&before),
    );
    controller.tell("after the upgrades").await;
}

struct Scene<'a> {
    bench: &'a Bench,
    namespace: String,
    packages: Api<DynamicObject>,
}

impl Scene<'_> {
    /// The optimised program, as it is shipped.
    async fn controller(&self) -> Controller {
        let binary = static_binary();
        let kubeconfig = &self.bench.control_plane().await.kubeconfig;
        let program = || Program::new("controller-scale", binary.clone()).env_path("KUBECONFIG", kubeconfig);
        let (port, process) = self.bench.controller_on_port(program, &self.namespace, &["--lease-namespace="]).await;
        Controller { port, pid: process.pid().await, process }
    }

    async fn want(&self, numbers: std::ops::Range<usize>, note: &str) {
        let repository = &self.bench.charts().await.url;
        let cluster = self.bench.cluster().await;
        let applied =
            stream::iter(numbers).map(|number| cluster.apply(&self.namespace, package(repository, number, note)));
        applied.buffer_unordered(AT_ONCE).for_each(async |_| ()).await;
    }

    async fn all_ready(&self, count: usize, controller: &Controller) {
        let mut told = Instant::now();
        loop {
            let listed = self.packages.list(&kube::api::ListParams::default()).await.expect("a list");
            let ready = listed.items.iter().filter(|package| is_ready(&to_json(package))).count();
            if ready == count {
                return;
            }
            if told.elapsed() > Duration::from_secs(20) {
                told = Instant::now();
                controller.tell(&format!("with {ready} Packages ready")).await;
            }
            assert!(self.bench.age() < ALL_MOVED_WITHIN, "{ready} of {count} Packages are ready");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

fn is_ready(package: &Value) -> bool {
    let status = &package["status"];
    status["observedGeneration"] == package["metadata"]["generation"] && status["conditions"][0]["reason"] == "Ready"
}

fn package(repository: &str, number: usize, note: &str) -> Value {
    let component = |(name, depends_on): (&str, Vec<&str>)| {
        json!({
            "name": name, "values": {"note": note, "replicas": 3, "resources": {"limits": {"memory": "64Mi"}}},
            "chart": {"repository": repository, "name": "conf", "version": "1.0.0"},
            "install": {"dependsOn": depends_on, "releaseName": format!("p{number}-{name}")},
        })
    };
    let components: Vec<Value> = chain(&COMPONENTS).map(component).collect();
    json!({
        "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": format!("p{number}")},
        "spec": {"version": "1.0.0", "engine": "flux", "components": components},
    })
}

/// Says of each release at once that it runs what its spec asks for.
fn play_engine(releases: Api<DynamicObject>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let seen = watcher(releases.clone(), watcher::Config::default()).default_backoff().applied_objects();
        let behind = seen.try_filter_map(async |release| {
            Ok(deployed(&to_json(&release)).map(|status| (release.name_any(), status)))
        });
        behind
            .for_each_concurrent(AT_ONCE, async |found| {
                let Ok((name, status)) = found else { return };
                let patch = Patch::Merge(json!({"status": status}));
                if let Err(error) = releases.patch_status(&name, &PatchParams::default(), &patch).await {
                    eprintln!("scale: {name}: {error}");
                }
            })
            .await;
    });
    tasks
}

/// The status of a release that is done, unless it has it already.
fn deployed(release: &Value) -> Option<Value> {
    let generation = release["metadata"]["generation"].as_i64()?;
    if release["status"]["observedGeneration"] == generation {
        return None;
    }
    let now = "2026-01-01T00:00:00Z";
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    Some(json!({
        "observedGeneration": generation, "lastAttemptedGeneration": generation, "lastAttemptedConfigDigest": digest,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "UpgradeSucceeded", "message": "Helm upgrade succeeded",
            "observedGeneration": generation, "lastTransitionTime": now,
        }],
        "history": [{
            "name": release["spec"]["releaseName"], "namespace": release["spec"]["targetNamespace"],
            "chartName": "conf", "chartVersion": "1.0.0", "configDigest": digest, "digest": digest,
            "firstDeployed": now, "lastDeployed": now, "status": "deployed", "version": generation,
        }],
    }))
}

/// Bytes that a process has, by the name of a field of its status.
fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the controller's status");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|number| number.parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes << 10)
}

struct Controller {
    port: u16,
    pid: u32,
    process: Process,
}

/// What was spent over a minute without events.
struct Idle {
    writes: u64,
    lists: u64,
    memory: u64,
}

impl Controller {
    async fn metrics(&self) -> BTreeMap<String, f64> {
        metrics(self.port).await
    }

    async fn tell(&self, when: &str) {
        let (memory, most) = (self.memory("VmRSS"), self.memory("VmHWM"));
        let written = writes(&self.metrics().await);
        eprintln!(
            "scale: {when}: {} MiB ({} MiB at most), {:.1?} of CPU, {written} writes",
            memory >> 20,
            most >> 20,
            self.cpu(),
        );
    }

    fn memory(&self, field: &str) -> u64 {
        memory(self.pid, field)
    }

    fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("the controller's times");
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 =
            after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Waits until nothing has been written for a while.
    async fn settled(&self) {
        let quiet = Duration::from_secs(10);
        let (mut last, mut since) = (u64::MAX, Instant::now());
        while since.elapsed() < quiet {
            let now = writes(&self.metrics().await);
            if now != last {
                (last, since) = (now, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn idle(&self, bench: &Bench) -> Idle {
        let (cpu, written, listed) = (self.cpu(), writes(&self.metrics().await), lists(bench).await);
        tokio::time::sleep(IDLE).await;
        let idle = Idle {
            writes: writes(&self.metrics().await) - written,
            lists: lists(bench).await - listed,
            memory: self.memory("VmRSS"),
        };
        eprintln!(
            "scale: idle for {IDLE:?}: {} writes, {} lists, {:.2?} of CPU, {} MiB",
            idle.writes,
            idle.lists,
            self.cpu() - cpu,
            idle.memory >> 20,
        );
        idle
    }

    async fn reconciled_at_least(&self, count: usize, began: Instant) -> Duration {
        until_true(Duration::from_secs(120), "decisions", async || {
            let done: f64 = sum(&self.metrics().await, "windlass_reconciles_total");
            if done >= count as f64 { Ok(began.elapsed()) } else { Err(format!("{done} decisions")) }
        })
        .await
    }
}

/// Lists of our kinds and of HelmReleases that the API server has answered.
async fn lists(bench: &Bench) -> u64 {
    let text = metrics_of_the_api_server(bench).await;
    let of_ours = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && line.contains("verb=\"LIST\"")
            && ["\"packages\"", "\"packagerevisions\"", "\"helmreleases\"", "\"helmcharts\""]
                .iter()
                .any(|kind| line.contains(kind))
    };
    let count = |line: &str| line.rsplit_once(' ').and_then(|(_, number)| number.parse::<f64>().ok());
    text.lines().filter(of_ours).filter_map(count).sum::<f64>() as u64
}

async fn metrics_of_the_api_server(bench: &Bench) -> String {
    let client = bench.cluster().await.client.clone();
    let mut request = kube::api::Request::new("").get("metrics", &kube::api::GetParams::default()).expect("a request");
    *request.uri_mut() = "/metrics".parse().expect("a path");
    client.request_text(request).await.expect("the API server's metrics")
}

/// Upper bound of the bucket that a share of the looks in between is in.
fn quantile(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>, share: f64) -> f64 {
    let prefix = "windlass_reconcile_duration_seconds_bucket{le=\"";
    let mut buckets: Vec<(f64, f64)> = after
        .iter()
        .filter_map(|(name, count)| {
            let bound = name.strip_prefix(prefix)?.strip_suffix("\"}")?.parse().unwrap_or(f64::INFINITY);
            Some((bound, count - before.get(name).copied().unwrap_or(0.0)))
        })
        .collect();
    buckets.sort_by(|left, right| left.0.total_cmp(&right.0));
    let all = buckets.last().map_or(0.0, |bucket| bucket.1);
    buckets.iter().find(|bucket| bucket.1 >= all * share).map_or(f64::INFINITY, |bucket| bucket.0)
}
