//! The contract of the stand-in for helm-controller: the steps of every recorded run of the
//! real one, side by side in namespaces of their own, give the same writes in the same order.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::recorder::{Change, Entry, Recorder};
use crate::support::recordings::{Action, Recording, What, Write, compare, times_to_ready};
use crate::support::wait;

const HELM: &str = "helm.toolkit.fluxcd.io/v2";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

/// Says which process of the stand-in a HelmRelease is for.
const INSTANCE: &str = "bench.windlass.dev/helm-controller";

/// Longer than any wait of a recording.
const STEP_WITHIN: Duration = Duration::from_secs(60);

/// After the last recorded write nothing may follow at once; shorter than the pause between
/// two looks at a release that a recording leaves waiting.
const QUIET: Duration = Duration::from_secs(2);

/// No chart has it. (Recorded was 7.7.7, which other tests publish.)
const ABSENT: &str = "77.7.7";

macro_rules! recordings {
    ($($name:literal),+ $(,)?) => {
        [$(include_str!(concat!("../data/recordings/helm-controller-1.6.3/", $name, ".json"))),+]
    };
}

const RECORDINGS: [&str; 14] = recordings![
    "chartref-install-upgrade-uninstall",
    "chartref-missing-version",
    "chartref-wait-timeout-retry",
    "daemonset-upgrade-disablewait",
    "daemonset-upgrade-wait",
    "depends-on",
    "fix-forward-cancel-gate",
    "fix-forward-during-wait",
    "install-upgrade-values-uninstall",
    "job-chart",
    "oneshot-failure-retries-0",
    "suspend-then-change",
    "template-failure-retry",
    "wait-timeout-retry",
];

/// Recorded with `CancelHealthCheckOnNewRevision=true`.
const WITH_GATE: &str = "fix-forward-cancel-gate";

pub async fn writes_what_the_real_controller_wrote(bench: &Bench) {
    bench.flux().await;
    let (plain, gate) = ("recordings", "recordings-gate");
    let plain_selector = format!("--watch-label-selector={INSTANCE}={plain}");
    let gate_selector = format!("--watch-label-selector={INSTANCE}={gate}");
    let gates = "--feature-gates=CancelHealthCheckOnNewRevision=true";
    // All at once, so that no recording waits for another's place.
    let _plain = bench.helm_controller(&["--concurrent=20", &plain_selector]).await;
    let _gate = bench.helm_controller(&[gates, &gate_selector]).await;
    let replays = RECORDINGS.map(async |text| {
        let recording = Recording::parse(text).expect("a recording");
        let instance = match recording.scenario == WITH_GATE {
            true => gate,
            false => plain,
        };
        let namespace = bench.cluster().await.namespace("recorded").await;
        let replay = Replay { bench, recording, instance, namespace };
        replay.run().await
    });
    let (mut failures, mut ratios) = (Vec::new(), Vec::new());
    for result in join_all(replays).await {
        match result {
            Ok(found) => ratios.extend(found),
            Err(failure) => failures.push(failure),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    is_not_faster_than_the_real_one(ratios);
}

/// Each is the time of ours divided by the recorded one, of the same move.
fn is_not_faster_than_the_real_one(mut ratios: Vec<f64>) {
    ratios.sort_by(f64::total_cmp);
    assert!(ratios.len() >= 10, "only {} moves compared", ratios.len());
    let median = ratios[ratios.len() / 2];
    assert!(median >= 1.0, "our moves take {median:.2} of the real time: {ratios:.2?}");
}

struct Replay<'a> {
    bench: &'a Bench,
    recording: Recording,
    instance: &'a str,
    namespace: String,
}

impl Replay<'_> {
    async fn run(&self) -> Result<Vec<f64>, String> {
        let cluster = self.bench.cluster().await;
        let watched = Recorder::start(cluster, &self.namespace, &[(HELM, "HelmRelease")]).await;
        let mut arrivals = Arrivals::default();
        let recorded = self.recording.writes();
        for action in self.recording.actions()? {
            // When they do not come, the comparison says what is missing.
            if !arrivals.reach(&watched, action.after).await {
                break;
            }
            self.act(&action).await;
        }
        arrivals.reach(&watched, recorded.len()).await;
        tokio::time::sleep(QUIET).await;
        let replayed = arrivals.writes(&watched.complete().await);
        compare(recorded, &replayed, &self.namespace)
            .map_err(|difference| format!("{}: {difference}", self.recording.scenario))?;
        let ours = times_to_ready(&replayed, "conf");
        let theirs = times_to_ready(recorded, "conf");
        Ok(ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect())
    }

    async fn act(&self, action: &Action) {
        let cluster = self.bench.cluster().await;
        match &action.what {
            What::Apply { kind, name, spec } => {
                let object = self.object(kind, name, spec.clone()).await;
                let absent = object["spec"]["version"] == ABSENT;
                cluster.apply(&self.namespace, object).await;
                if kind == "HelmChart" && !absent {
                    self.chart_is_ready(name).await;
                }
            }
            What::Delete { kind, name } => {
                let api = cluster.dynamic(HELM, kind, &self.namespace).await;
                api.delete(name, &DeleteParams::default()).await.expect("a deletion");
            }
        }
    }

    async fn object(&self, kind: &str, name: &str, mut spec: Value) -> Value {
        let api_version = match kind {
            "HelmRelease" => HELM,
            _ => SOURCE,
        };
        if kind == "HelmRepository" {
            spec["url"] = self.bench.charts().await.url.clone().into();
        }
        if spec["version"] == "7.7.7" {
            spec["version"] = ABSENT.into();
        }
        json!({
            "apiVersion": api_version, "kind": kind, "spec": spec,
            "metadata": {"name": name, "labels": {INSTANCE: self.instance}},
        })
    }

    /// The recordings made their HelmCharts well before they were used.
    async fn chart_is_ready(&self, name: &str) {
        let cluster = self.bench.cluster().await;
        let charts = cluster.dynamic(SOURCE, "HelmChart", &self.namespace).await;
        wait::until(&charts, name, STEP_WITHIN, "ready", |chart| {
            wait::holds(&to_json(chart.ok_or("no such HelmChart")?), "Ready")
        })
        .await;
    }
}

/// When each write was first seen here.
#[derive(Default)]
struct Arrivals {
    began: Option<Instant>,
    seconds: Vec<f64>,
}

impl Arrivals {
    /// Waits for that many writes; false when they do not come.
    async fn reach(&mut self, watched: &Recorder, count: usize) -> bool {
        let began = *self.began.get_or_insert_with(Instant::now);
        let seconds = &mut self.seconds;
        let seen = watched.until(STEP_WITHIN * 2, "recorded writes", |log| {
            seconds.resize(log.len().max(seconds.len()), began.elapsed().as_secs_f64());
            match log.len() >= count {
                true => Ok(()),
                false => Err(format!("{} of {count}", log.len())),
            }
        });
        tokio::time::timeout(STEP_WITHIN, seen).await.is_ok()
    }

    fn writes(&self, log: &[Entry]) -> Vec<Write> {
        let last = self.seconds.last().copied().unwrap_or_default();
        let times = self.seconds.iter().copied().chain(std::iter::repeat(last));
        log.iter().zip(times).map(|(entry, t)| write(entry, t)).collect()
    }
}

fn write(entry: &Entry, t: f64) -> Write {
    let object = &entry.object;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let change = match entry.change {
        Change::Added => "ADDED",
        Change::Modified => "MODIFIED",
        Change::Deleted => "DELETED",
    };
    Write {
        t,
        change: change.to_owned(),
        name: entry.name.clone(),
        generation: object["metadata"]["generation"].as_i64().expect("a generation"),
        deleting: object["metadata"]["deletionTimestamp"].is_string(),
        finalizers: object["metadata"]["finalizers"].clone(),
        suspend: object["spec"]["suspend"].as_bool(),
        chart_version: text("/spec/chart/spec/version"),
        chart_ref: object["spec"].get("chartRef").cloned(),
        status: object["status"].clone(),
    }
}
