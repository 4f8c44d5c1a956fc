//! Whatever fails on the way, the end is the same, in order, no hook runs twice, and nothing is
//! written over and over. Read from the API server.

use std::time::Duration;

use kube::api::{Api, DynamicObject};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::processes::Process;
use crate::support::proxy::Proxy;
use crate::support::recorder::{Change, Entry, Recorder, describe, first};
use crate::support::windlass::chain;

const HELM: (&str, &str) = ("helm.toolkit.fluxcd.io/v2", "HelmRelease");
const PACKAGE: (&str, &str) = ("windlass.dev/v1alpha1", "Package");
const REVISION: (&str, &str) = ("windlass.dev/v1alpha1", "PackageRevision");
const JOB: (&str, &str) = ("batch/v1", "Job");
const CHAIN: [&str; 3] = ["first", "second", "third"];
const DEADLINE: Duration = Duration::from_secs(60);
/// Writes of Package and revisions that an undisturbed upgrade needs, with room for what a fault
/// makes necessary again.
const MOST_WRITES: usize = 90;

pub async fn a_controller_killed_after_each_write_comes_to_the_same_end(bench: &Bench) {
    let stage = Stage::set(bench, "killed").await;
    let mut controller = bench.controller(&stage.name).await;
    stage.wants("1.0.0").await;
    stage.runs("1.0.0").await;
    stage.wants("1.1.0").await;
    let mut kills = 0;
    while !stage.is_done("1.1.0").await {
        let seen = stage.writes();
        tokio::select! {
            () = stage.another_write(seen) => {
                controller.kill().await;
                controller = bench.controller(&stage.name).await;
                kills += 1;
            }
            () = stage.runs("1.1.0") => {}
        }
    }
    eprintln!("bench: killed {kills} times during one upgrade");
    assert!(kills >= 10, "only {kills} kills: the test has lost its point");
    stage.judge().await;
}

pub async fn writes_that_fail_or_whose_answers_are_lost_change_nothing(bench: &Bench) {
    let stage = Stage::set(bench, "refused").await;
    let (proxy, _controller, _directory) = stage.controller_through_proxy().await;
    stage.wants("1.0.0").await;
    stage.runs("1.0.0").await;
    proxy.refuse_one_write_of(3);
    stage.wants("1.1.0").await;
    stage.runs("1.1.0").await;
    eprintln!("bench: {} writes went wrong during one upgrade", proxy.refused());
    assert!(proxy.refused() >= 5, "only {} writes went wrong", proxy.refused());
    stage.judge().await;
}

pub async fn lost_watches_and_an_absent_api_server_change_nothing(bench: &Bench) {
    upgraded_while(bench, "cut", DEADLINE, async |_, proxy, round| {
        proxy.cut();
        if round == 3 {
            stays_away(proxy, Duration::from_secs(3)).await;
        }
    })
    .await;
}

/// For longer than any watch or retry is patient; and with nothing left to begin from again.
pub async fn a_long_absence_and_a_forgotten_history_change_nothing(bench: &Bench) {
    upgraded_while(bench, "absent", Duration::from_secs(240), async |stage, proxy, round| match round {
        3 => stays_away(proxy, Duration::from_secs(20)).await,
        6 | 9 => {
            bench.control_plane().await.compact().await;
            proxy.expire(12);
        }
        12 => {
            stage.helm_controller.signal(Signal::STOP);
            tokio::time::sleep(Duration::from_secs(60)).await;
            stage.helm_controller.signal(Signal::CONT);
        }
        _ => {}
    })
    .await;
}

/// An upgrade during which something happens after each write; it gets the number of the write.
async fn upgraded_while(bench: &Bench, name: &str, within: Duration, happens: impl AsyncFn(&Stage<'_>, &Proxy, usize)) {
    let stage = Stage::set(bench, name).await;
    let (proxy, _controller, _directory) = stage.controller_through_proxy().await;
    stage.wants("1.0.0").await;
    stage.runs("1.0.0").await;
    stage.wants("1.1.0").await;
    let disturb = async {
        for round in 0.. {
            stage.another_write(stage.writes()).await;
            happens(&stage, &proxy, round).await;
        }
    };
    tokio::select! {
        () = disturb => {}
        () = stage.runs_within("1.1.0", within) => {}
    }
    stage.judge().await;
}

/// Nobody answers for a while.
async fn stays_away(proxy: &Proxy, duration: Duration) {
    proxy.set_down(true);
    tokio::time::sleep(duration).await;
    proxy.set_down(false);
}

pub async fn of_two_controllers_one_acts_and_the_other_takes_over(bench: &Bench) {
    let stage = Stage::set(bench, "two").await;
    let kubeconfig = &bench.control_plane().await.kubeconfig;
    let lease = format!("--lease-namespace={}", stage.name);
    let mut controllers = Vec::new();
    for identity in ["--identity=one", "--identity=two"] {
        controllers.push(bench.controller_as(kubeconfig, &stage.name, &[&lease, identity]).await);
    }
    stage.wants("1.0.0").await;
    stage.runs("1.0.0").await;
    let leases = bench.cluster().await.dynamic("coordination.k8s.io/v1", "Lease", &stage.name).await;
    let holder = to_json(&leases.get("windlass").await.expect("a Lease"))["spec"]["holderIdentity"].clone();
    stage.wants("1.1.0").await;
    stage.another_write(stage.writes()).await;
    let leader = controllers.remove(usize::from(holder == "two"));
    leader.kill().await;
    stage.runs("1.1.0").await;
    let after = to_json(&leases.get("windlass").await.expect("a Lease"))["spec"]["holderIdentity"].clone();
    assert_ne!(after, holder, "the other one leads");
    stage.judge().await;
}

/// A namespace with a helm-controller of its own and a Package of three releases and a hook.
struct Stage<'a> {
    bench: &'a Bench,
    name: String,
    charts: String,
    recorder: Recorder,
    packages: Api<DynamicObject>,
    helm_controller: Process,
}

impl<'a> Stage<'a> {
    async fn set(bench: &'a Bench, name: &str) -> Self {
        bench.flux().await;
        bench.own_crds().await;
        let cluster = bench.cluster().await;
        let name = cluster.namespace(name).await;
        let recorder = Recorder::start(cluster, &name, &[HELM, PACKAGE, REVISION, JOB]).await;
        let packages = cluster.dynamic(PACKAGE.0, PACKAGE.1, &name).await;
        let selector = format!("--watch-label-selector=windlass.dev/package={name}");
        let helm_controller = bench.helm_controller(&[&selector]).await;
        let charts = bench.charts().await.url.clone();
        Self { bench, name, charts, recorder, packages, helm_controller }
    }

    async fn controller_through_proxy(&self) -> (Proxy, Process, tempfile::TempDir) {
        let proxy = Proxy::start(self.bench.control_plane().await.client.clone()).await;
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        proxy.write_kubeconfig(&kubeconfig);
        let controller = self.bench.controller_as(&kubeconfig, &self.name, &["--lease-namespace="]).await;
        (proxy, controller, directory)
    }

    async fn wants(&self, version: &str) {
        let chart = |name: &str| json!({"repository": self.charts, "name": name, "version": version});
        let component = |(name, depends_on): (&str, Vec<&str>)| json!({"name": name, "chart": chart("conf"), "install": {"dependsOn": depends_on}});
        let mut components: Vec<Value> = chain(&CHAIN).map(component).collect();
        components.push(json!({"name": "migrate", "chart": chart("migrate"), "install": {"phase": "PreUpgrade"}}));
        let package = json!({
            "apiVersion": PACKAGE.0, "kind": PACKAGE.1, "metadata": {"name": self.name},
            "spec": {"version": version, "engine": "flux", "components": components},
        });
        self.bench.cluster().await.apply(&self.name, package).await;
    }

    async fn runs(&self, version: &str) {
        self.runs_within(version, DEADLINE).await;
    }

    async fn runs_within(&self, version: &str, deadline: Duration) {
        let check = |log: &[Entry]| {
            let package = log.iter().rev().find(|entry| entry.kind == PACKAGE.1).map(|entry| entry.object.clone());
            let package = package.unwrap_or_default();
            if is_done(&package, version) { Ok(()) } else { Err(format!("{}\n{}", package["status"], describe(log))) }
        };
        self.recorder.until(deadline, &format!("{version} runs"), check).await;
    }

    async fn is_done(&self, version: &str) -> bool {
        is_done(&to_json(&self.packages.get(&self.name).await.expect("the Package")), version)
    }

    /// Writes that only Windlass makes: of revisions and of the Package's status.
    fn writes(&self) -> usize {
        writes(&self.recorder.log())
    }

    async fn another_write(&self, seen: usize) {
        let check = |log: &[Entry]| if writes(log) > seen { Ok(()) } else { Err(format!("{seen} writes")) };
        self.recorder.until(DEADLINE * 2, "another write", check).await;
    }

    async fn judge(&self) {
        let log = self.recorder.complete().await;
        for pair in CHAIN.windows(2) {
            let ready =
                first(&log, "the first of two is ready at the new version", |entry| self.is_ready(entry, pair[0]));
            let written = first(&log, "the second is written", |entry| {
                self.is_of(entry, pair[1]) && entry.object["metadata"]["generation"] == 2
            });
            assert!(ready.version < written.version, "{} went before {}\n{}", pair[1], pair[0], describe(&log));
        }
        let hooks = log.iter().filter(|entry| entry.kind == JOB.1 && entry.change == Change::Added).count();
        assert_eq!(hooks, 1, "the hook runs once\n{}", describe(&log));
        for name in CHAIN {
            let generations = log.iter().filter(|entry| self.is_of(entry, name));
            let highest = generations.filter_map(|entry| entry.object["metadata"]["generation"].as_i64()).max();
            assert_eq!(highest, Some(2), "{name} was written once for each version\n{}", describe(&log));
        }
        let writes = writes(&log);
        eprintln!("bench: {writes} writes of Package and revisions for an install and an upgrade ({})", self.name);
        assert!(writes <= MOST_WRITES, "{writes} writes\n{}", describe(&log));
    }

    fn is_of(&self, entry: &Entry, component: &str) -> bool {
        entry.kind == HELM.1 && entry.name == format!("{}-{component}", self.name)
    }

    fn is_ready(&self, entry: &Entry, component: &str) -> bool {
        let status = &entry.object["status"];
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        self.is_of(entry, component)
            && status["observedGeneration"] == entry.object["metadata"]["generation"]
            && status["history"][0]["chartVersion"] == "1.1.0"
            && conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    }
}

fn is_done(package: &Value, version: &str) -> bool {
    let status = &package["status"];
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let is = |kind: &str| conditions.iter().any(|found| found["type"] == kind && found["status"] == "True");
    status["version"] == version
        && status["observedGeneration"] == package["metadata"]["generation"]
        && is("Ready")
        && !is("Reconciling")
}

fn writes(log: &[Entry]) -> usize {
    log.iter().filter(|entry| entry.kind == PACKAGE.1 || entry.kind == REVISION.1).count()
}
