//! A canary before a thousand nodes.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{memory, metrics_of_the_api_server};
use crate::agents::{Agents, Guard, Wish};
use crate::support::bench::Bench;
use crate::support::wait::until_true;
use crate::support::windlass::{metrics, writes};

const NODES: usize = 1000;
const WITHIN: Duration = Duration::from_secs(600);

pub async fn a_thousand_nodes_are_rolled_out_behind_a_canary(bench: &Bench) {
    let stage = Agents::set(bench, "wide", Guard::Strict, NODES).await;
    let canary = json!({"soak": "3s", "timeout": "120s", "progressDeadline": "300s"});
    let wish = |version| Wish { timeout: "600s", ..Wish::new(version).canary(canary.clone()) };
    let began = Instant::now();
    stage.wants(&wish("1.0.0")).await;
    stage.runs("1.0.0", WITHIN).await;
    eprintln!("scale: {NODES} nodes installed in {:.0?}", began.elapsed());
    let at_rest = pod_watches(bench).await;
    let before = writes(&metrics(stage.port).await);

    let began = Instant::now();
    stage.wants(&wish("1.1.0")).await;
    stage.is_in("canary", None, WITHIN).await;
    assert_eq!(pod_watches(bench).await, at_rest + 1, "watches of pods during a rollout");
    stage.runs("1.1.0", WITHIN).await;
    let written = writes(&metrics(stage.port).await) - before;
    let pid = stage.pid().await;
    eprintln!(
        "scale: {NODES} nodes rolled out in {:.0?} with {written} writes; {} MiB, {} MiB at most",
        began.elapsed(),
        memory(pid, "VmRSS") >> 20,
        memory(pid, "VmHWM") >> 20,
    );
    until_true(WITHIN, "the watch of pods to be closed", async || {
        let open = pod_watches(bench).await;
        if open == at_rest { Ok(()) } else { Err(format!("{open} are open, {at_rest} were")) }
    })
    .await;
    let story = stage.story(0).await;
    assert_eq!(story.budgets(), ["1", "frozen", "10%", "1"]);
    assert_eq!(story.versions(), vec!["1.1.0"; NODES]);
    eprintln!("scale: at most {} of {NODES} nodes were down", story.most_down());
}

/// Watches of the pods of one namespace that the API server serves: ours, while a rollout is
/// open, and those of the recorders.
async fn pod_watches(bench: &Bench) -> u64 {
    let text = metrics_of_the_api_server(bench).await;
    let of_pods = |line: &&str| {
        line.starts_with("apiserver_longrunning_requests{")
            && ["resource=\"pods\"", "scope=\"namespace\"", "verb=\"WATCH\""].iter().all(|label| line.contains(label))
    };
    let count = |line: &str| line.rsplit_once(' ').and_then(|(_, number)| number.parse::<f64>().ok());
    text.lines().filter(of_pods).filter_map(count).sum::<f64>() as u64
}
