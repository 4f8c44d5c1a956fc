//! Upgrades that fail on a real Argo CD.

use std::time::Duration;

use kube::api::ListParams;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{APPLICATION, Runs, Stage, tell};
use crate::support::bench::Bench;
use crate::support::cluster::to_json;
use crate::support::recorder::{Change, Entry, first};
use crate::support::wait;

const MOVED_WITHIN: Duration = Duration::from_secs(60);
/// Long enough for whoever would go on after a failure.
const AFTERWARDS: Duration = Duration::from_secs(5);

const COMPONENTS: [&str; 3] = ["base", "middle", "roof"];

/// A hook, and three components, each on top of the one before.
async fn package(stage: &Stage<'_>, version: &str, [base, middle, roof]: [&str; 3]) -> Value {
    let mut hook = stage.component("migrate", "migrate", base, &[]).await;
    hook["install"] = json!({"phase": "PreUpgrade"});
    let base = stage.component("base", "conf", base, &[]).await;
    let middle = stage.component("middle", "app", middle, &["base"]).await;
    let roof = stage.component("roof", "conf", roof, &["middle"]).await;
    json!({
        "version": version, "upgrade": {"timeout": "1m", "retries": 0},
        "components": [hook, base, middle, roof],
    })
}

pub async fn a_failed_upgrade_is_left_and_mended_forward(bench: &Bench) {
    let stage = Stage::set(bench, "forward").await;
    stage.wants(package(&stage, "1.0.0", ["1.0.0"; 3]).await).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    an_operation_that_hangs_fails_the_upgrade_and_nothing_else_is_touched(&stage).await;
    a_fix_ends_the_operation_that_hangs(&stage).await;
    the_hook_ran_once(&stage).await;
}

pub async fn a_failed_safe_upgrade_is_rolled_back(bench: &Bench) {
    let stage = Stage::set(bench, "back").await;
    stage.wants(package(&stage, "1.1.0", ["1.1.0"; 3]).await).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    a_failed_hook_stops_the_upgrade_with_nothing_else_changed(&stage).await;
    a_safe_upgrade_that_fails_is_rolled_back_newest_first(&stage).await;
    an_uninstallation_ends_the_operation_that_hangs(&stage).await;
}

/// The chart's own hook never ends, and Argo CD waits for it for as long as it takes.
async fn an_operation_that_hangs_fails_the_upgrade_and_nothing_else_is_touched(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    let mut spec = package(stage, "1.1.0", ["1.1.0"; 3]).await;
    spec["components"][2]["values"] = json!({"hook": "never-ready"});
    spec["upgrade"]["timeout"] = "25s".into();
    stage.wants(spec).await;
    let message = stage.says("UpgradeFailed", MOVED_WITHIN).await;
    assert!(message.contains("middle") && message.contains("not rolled back"), "{message}");
    // What is written from now on would be by mistake.
    let applications = stage.applications().await;
    let specs = |objects: &[&kube::api::DynamicObject]| {
        objects.iter().map(|object| to_json(object)["spec"].clone()).collect::<Vec<_>>()
    };
    let before = applications.list(&ListParams::default()).await.expect("Applications");
    let before = specs(&before.items.iter().collect::<Vec<_>>());
    wait::throughout(&applications, ListParams::default(), AFTERWARDS, "what was left", |objects| {
        if specs(objects) == before { Ok(()) } else { Err(format!("{:?}", specs(objects))) }
    })
    .await;
    let log = stage.recorder.complete().await.split_off(position);
    stage.moved_in_order(&log, &[Runs::Map("base", "1.1.0"), Runs::Deployment("middle", "1.1.0")]);
    assert!(!log.iter().any(|entry| stage.asks_for(entry, "roof", "1.1.0")), "{}", tell(&log));
}

async fn a_fix_ends_the_operation_that_hangs(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    stage.wants(package(stage, "1.1.0", ["1.1.0"; 3]).await).await;
    stage.runs("1.1.0", MOVED_WITHIN).await;
    let log = stage.recorder.complete().await.split_off(position);
    stage.moved_in_order(&log, &[Runs::Deployment("middle", "1.1.0"), Runs::Map("roof", "1.1.0")]);
}

/// Not on the first install, once for the upgrade although that took two revisions.
async fn the_hook_ran_once(stage: &Stage<'_>) {
    let log = stage.recorder.complete().await;
    let jobs: Vec<&Entry> =
        log.iter().filter(|entry| entry.kind == "Job" && entry.name.starts_with("migrate")).collect();
    let made = jobs.iter().filter(|entry| entry.change == Change::Added).count();
    assert_eq!(made, 1, "{}", tell(&log));
    let annotations = &jobs[0].object["metadata"]["annotations"];
    assert_eq!((&annotations["from"], &annotations["to"]), (&json!("1.0.0"), &json!("1.1.0")));
    let done = first(&log, "the hook done", |entry| entry.kind == "Job" && entry.object["status"]["succeeded"] == 1);
    let moved = first(&log, "base moved", |entry| stage.asks_for(entry, "base", "1.1.0"));
    assert!(done.version < moved.version, "{}", tell(&log));
    let of_the_hook = |entry: &Entry| {
        entry.kind == APPLICATION.1 && entry.object["metadata"]["labels"]["windlass.dev/component"] == "migrate"
    };
    let hook = first(&log, "the hook's Application", of_the_hook);
    assert!(hook.object["spec"]["syncPolicy"]["automated"].is_null());
    first(&log, "it is removed", |entry| of_the_hook(entry) && entry.change == Change::Deleted);
}

/// Its Job fails: to Argo CD the operation has succeeded, and what it applied is Degraded.
async fn a_failed_hook_stops_the_upgrade_with_nothing_else_changed(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    let mut spec = package(stage, "2.0.0", ["2.0.0"; 3]).await;
    spec["components"][0]["values"] = json!({"podLabels": {"bench.windlass.dev/behaviour": "fail"}});
    // Not even a safe version is rolled back: nothing has moved.
    spec["rollback"] = json!({"safe": true});
    stage.wants(spec).await;
    let message = stage.says("HookFailed", MOVED_WITHIN).await;
    assert!(message.contains("hook migrate failed"), "{message}");
    let log = stage.recorder.complete().await.split_off(position);
    for component in COMPONENTS {
        assert!(!log.iter().any(|entry| stage.asks_for(entry, component, "2.0.0")), "{}", tell(&log));
    }
}

/// Argo CD goes on with an operation before it looks at a deletion.
async fn an_uninstallation_ends_the_operation_that_hangs(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    let mut spec = package(stage, "2.0.1", ["2.0.0"; 3]).await;
    spec["components"][2]["values"] = json!({"hook": "never-ready"});
    stage.wants(spec).await;
    let hangs = |log: &[Entry]| {
        let hangs = |entry: &Entry| {
            let message = entry.object["status"]["operationState"]["message"].as_str().unwrap_or_default();
            entry.name == stage.child("middle") && message.contains("waiting for completion of hook")
        };
        let found = log.iter().skip(position).any(hangs);
        if found { Ok(()) } else { Err(tell(log.get(position..).unwrap_or_default())) }
    };
    stage.recorder.until(MOVED_WITHIN, "a synchronisation that hangs", hangs).await;
    stage.is_removed(Duration::from_secs(20)).await;
}

async fn a_safe_upgrade_that_fails_is_rolled_back_newest_first(stage: &Stage<'_>) {
    let position = stage.recorder.complete().await.len();
    // This version of the chart cannot be rendered.
    let mut spec = package(stage, "2.0.0", ["2.0.0", "2.0.0", "1.2.0"]).await;
    spec["rollback"] = json!({"safe": true});
    stage.wants(spec).await;
    let message = stage.says("UpgradeRolledBack", MOVED_WITHIN).await;
    assert!(message.contains("roof") && message.contains("1.1.0 runs again"), "{message}");
    let log = stage.recorder.complete().await.split_off(position);
    let failed = first(&log, "roof asked for 1.2.0", |entry| stage.asks_for(entry, "roof", "1.2.0")).version;
    let mut back = failed;
    for component in COMPONENTS.iter().rev() {
        let asked = first(&log, &format!("{component} asked to return"), |entry| {
            entry.version > failed && stage.asks_for(entry, component, "1.1.0")
        });
        assert!(back < asked.version, "{component} went back too early\n{}", tell(&log));
        let runs = match *component {
            "middle" => Runs::Deployment(component, "1.1.0"),
            map => Runs::Map(map, "1.1.0"),
        };
        // The last one never got as far as its new version.
        back = if *component == "roof" {
            asked.version
        } else {
            first(&log, &format!("{runs:?} again"), |entry| entry.version > asked.version && runs.is_shown_by(entry))
                .version
        };
    }
}

/// What is recorded and not done, and what is done and not seen, is done, and seen, by the next
/// one: in order, with one hook, and with no more operations than it takes.
pub async fn a_controller_killed_after_each_write_comes_to_the_same_end(bench: &Bench) {
    let mut stage = Stage::set(bench, "killed").await;
    stage.wants(package(&stage, "1.0.0", ["1.0.0"; 3]).await).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    let position = stage.recorder.complete().await.len();
    stage.wants(package(&stage, "1.1.0", ["1.1.0"; 3]).await).await;
    let mut kills = 0;
    loop {
        let seen = stage.writes();
        let runs = tokio::select! {
            biased;
            () = stage.runs("1.1.0", MOVED_WITHIN) => true,
            () = stage.another_write(seen, MOVED_WITHIN) => false,
        };
        if runs {
            break;
        }
        stage = stage.another_controller().await;
        kills += 1;
    }
    eprintln!("bench: killed {kills} times during one upgrade");
    assert!(kills >= 10, "only {kills} kills: the test has lost its point");
    let log = stage.recorder.complete().await.split_off(position);
    let chain = [Runs::Map("base", "1.1.0"), Runs::Deployment("middle", "1.1.0"), Runs::Map("roof", "1.1.0")];
    stage.moved_in_order(&log, &chain);
    let made = log.iter().filter(|entry| entry.kind == "Job" && entry.change == Change::Added).count();
    assert_eq!(made, 1, "{}", tell(&log));
    for component in COMPONENTS {
        let ours = stage.operations(&log, component).into_iter().flatten().count();
        assert!((1..=2).contains(&ours), "{ours} operations of {component}\n{}", tell(&log));
    }
}

pub async fn argo_cd_may_stand_still_for_a_minute(bench: &Bench) {
    let stage = Stage::set(bench, "still").await;
    stage.wants(package(&stage, "1.0.0", ["1.0.0"; 3]).await).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    let position = stage.recorder.complete().await.len();
    stage.wants(package(&stage, "1.1.0", ["1.1.0"; 3]).await).await;
    stage.has_moved("middle", MOVED_WITHIN).await;
    let controller = &bench.argocd().await.application_controller;
    controller.signal(Signal::STOP);
    tokio::time::sleep(Duration::from_secs(60)).await;
    controller.signal(Signal::CONT);
    stage.runs("1.1.0", MOVED_WITHIN * 2).await;
    let log = stage.recorder.complete().await.split_off(position);
    let chain = [Runs::Map("base", "1.1.0"), Runs::Deployment("middle", "1.1.0"), Runs::Map("roof", "1.1.0")];
    stage.moved_in_order(&log, &chain);
    let made = log.iter().filter(|entry| entry.kind == "Job" && entry.change == Change::Added).count();
    assert_eq!(made, 1, "{}", tell(&log));
}

/// By the next attempt, Argo CD's own or ours.
pub async fn a_chart_that_is_published_late_is_taken(bench: &Bench) {
    let stage = Stage::set(bench, "late").await;
    let package = async |version: &str| {
        let component = stage.component("it", "conf", version, &[]).await;
        json!({"version": version, "components": [component]})
    };
    stage.wants(package("1.0.0").await).await;
    stage.runs("1.0.0", MOVED_WITHIN).await;
    stage.wants(package("3.1.4").await).await;
    stage.says("SourceNotFound", MOVED_WITHIN).await;
    bench.charts().await.publish("conf", "3.1.4").await;
    stage.runs("3.1.4", MOVED_WITHIN).await;
}
