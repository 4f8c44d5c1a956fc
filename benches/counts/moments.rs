//! Moments in the life of a Package at which a decision is made.

use std::hint::black_box;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::rehearse::{PackageId, Rehearsal, Settings};
use windlass::rollout::{Snapshot, decide};
use windlass::sim::Key;
use windlass::sim::chart::Script;
use windlass::sim::store::Expected;

/// Decisions of which the median wall time is taken.
const RUNS: usize = 101;
/// Virtual time in which a moment must come, in milliseconds.
const LIMIT: u64 = 24 * 3_600_000;
const NAMESPACE: &str = "packages";

/// When a decision is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Everything is Ready: what the controller does most of the time.
    AtRest,
    /// Half of the components run the new version.
    Midway,
}

/// Median wall time of a decision about a chain of so many components.
pub fn median(moment: Moment, components: usize) -> Duration {
    let (snapshot, now) = snapshot(moment, components);
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            black_box(decide(black_box(&snapshot), now));
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

/// Makes one decision that callgrind counts, after one that it does not: digests
/// and the like are worked out once for each spec.
pub fn decide_once(moment: Moment, components: usize) {
    let (snapshot, now) = snapshot(moment, components);
    black_box(decide(&snapshot, now));
    counted_decision(&snapshot, now);
}

#[inline(never)]
fn counted_decision(snapshot: &Snapshot, now: Timestamp) {
    black_box(decide(black_box(snapshot), now));
}

fn snapshot(moment: Moment, components: usize) -> (Snapshot, Timestamp) {
    let mut rehearsal = Rehearsal::new(Script::default(), Settings::new(Engine::Flux));
    commit(&mut rehearsal, "1.0.0", components);
    assert!(rehearsal.run_until(LIMIT, |rehearsal| running(rehearsal, "1.0.0") == components && at_rest(rehearsal)));
    if moment == Moment::Midway {
        commit(&mut rehearsal, "1.1.0", components);
        assert!(rehearsal.run_until(LIMIT, |rehearsal| running(rehearsal, "1.1.0") == components / 2));
    }
    rehearsal.look(&PackageId::new(NAMESPACE, "chain")).unwrap()
}

fn commit(rehearsal: &mut Rehearsal, version: &str, components: usize) {
    let package = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
        "metadata": {"name": "chain", "namespace": NAMESPACE},
        "spec": {
            "version": version,
            "rollback": {"safe": true},
            "components": (0..components).map(|number| component(number, version)).collect::<Vec<Value>>(),
        },
    });
    rehearsal.world.store.apply("git", package.as_object().unwrap(), &Expected::default()).unwrap();
}

fn component(number: usize, version: &str) -> Value {
    let before: Vec<String> = number.checked_sub(1).map(|before| format!("c{before}")).into_iter().collect();
    json!({
        "name": format!("c{number}"),
        "chart": {"repository": "https://charts.example.org", "name": format!("c{number}"), "version": version},
        "values": {"replicas": number, "image": {"tag": version}},
        "install": {
            "dependsOn": before,
            "readyWhen": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("c{number}"), "condition": "Available"}],
        },
    })
}

/// How many components' workloads have a version.
fn running(rehearsal: &Rehearsal, version: &str) -> usize {
    let store = &rehearsal.world.store;
    store.list("Deployment").filter(|(_, object)| object["spec"]["version"] == version).count()
}

fn at_rest(rehearsal: &Rehearsal) -> bool {
    let key = Key::new("windlass.dev/v1alpha1", "Package", NAMESPACE, "chain");
    let package = rehearsal.world.store.get(&key);
    let summary = package.and_then(|package| package.get("status")).map(|status| &status["summary"]);
    summary.is_some_and(|summary| summary == "Ready")
}
