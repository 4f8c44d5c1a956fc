//! Cores that overlook something. Each is made from the real one by what it
//! sees: a fact that a rule looks at is painted over before the decision, which
//! is the same as a core without that rule. Every one of them must be caught by a
//! property, and by the one that is meant for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{ComponentRecord, Engine, HookOutcome, HookRecord, RevisionPhase, Time};
use windlass::rehearse::{Rehearsal, Settings};
use windlass::rollout::Snapshot;
use windlass::rollout::live::Live;
use windlass::sim::Verb;
use windlass::sim::chart::{Care, Outcome, Script};
use windlass::sim::store::Expected;

use crate::history::{Commit, Component, History, Troubles};
use crate::judge::judge;

/// What a core does not see.
type Distortion = for<'a> fn(&'a mut Snapshot);

fn releases(snapshot: &mut Snapshot) -> impl Iterator<Item = &mut Live> {
    snapshot.children.iter_mut().filter(|child| child.key().kind == "HelmRelease")
}

fn set(live: &mut Live, pointer: &str, value: Value) {
    edit(live, |object| {
        if let Some(slot) = object.pointer_mut(pointer) {
            *slot = value;
        }
    });
}

fn edit(live: &mut Live, change: impl FnOnce(&mut Value)) {
    let mut object = Value::Object(live.object.as_ref().clone());
    change(&mut object);
    *live = Live::new(object.as_object().cloned().unwrap_or_default());
}

/// Whatever generation a status is about, it is taken for the present one.
fn generation_check_skipped(snapshot: &mut Snapshot) {
    for release in releases(snapshot) {
        let generation = release.object["metadata"]["generation"].clone();
        set(release, "/status/observedGeneration", generation.clone());
        set(release, "/status/lastAttemptedGeneration", generation.clone());
        for condition in 0..4 {
            set(release, &format!("/status/conditions/{condition}/observedGeneration"), generation.clone());
        }
        history_follows(release);
    }
}

/// Ready=True is believed before the history has followed.
fn ready_trusted_before_history(snapshot: &mut Snapshot) {
    for release in releases(snapshot) {
        history_follows(release);
        let ready =
            release.object.get("status").and_then(|status| status["conditions"].as_array()).is_some_and(|all| {
                all.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
            });
        if !ready {
            continue;
        }
        let generation = release.object["metadata"]["generation"].clone();
        set(release, "/status/observedGeneration", generation);
        edit(release, |object| {
            if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
                conditions.retain(|condition| condition["type"] != "Reconciling");
            }
        });
    }
}

/// The newest entry of the history is what was attempted, or is wanted, last.
fn history_follows(release: &mut Live) {
    let name = release.object["spec"]["releaseName"].clone();
    let namespace = release.object["spec"]["targetNamespace"].clone();
    let digest = release.object.get("status").map(|status| status["lastAttemptedConfigDigest"].clone());
    // The chart is named by the version that every commit gives it.
    let entry = json!([{"status": "deployed", "action": "upgrade", "name": name, "namespace": namespace,
        "chartVersion": "", "configDigest": digest}]);
    let mut entry = entry;
    entry[0]["chartVersion"] = WANTED_VERSION
        .with(|wanted| wanted.borrow().get(release_name(&name)).cloned().map(Value::from).unwrap_or(Value::Null));
    edit(release, |object| {
        if object.pointer("/status/observedGeneration").is_some() {
            object["status"]["history"] = entry;
        }
    });
}

fn release_name(name: &Value) -> &str {
    name.as_str().unwrap_or("")
}

thread_local! {
    static WANTED_VERSION: std::cell::RefCell<BTreeMap<String, String>> = const { std::cell::RefCell::new(BTreeMap::new()) };
}

fn with_versions(snapshot: &mut Snapshot, mutate: fn(&mut Snapshot)) {
    if let Some(latest) = snapshot.revisions.last() {
        let versions = latest.spec.components.iter().map(|c| (c.release.name.clone(), c.chart_version.clone()));
        WANTED_VERSION.with(|wanted| *wanted.borrow_mut() = versions.collect());
    }
    mutate(snapshot);
}

fn without_generations(snapshot: &mut Snapshot) {
    with_versions(snapshot, generation_check_skipped);
}

fn without_history(snapshot: &mut Snapshot) {
    with_versions(snapshot, ready_trusted_before_history);
}

/// What a hook came to is forgotten as soon as it is known.
fn hook_run_twice(snapshot: &mut Snapshot) {
    for revision in &mut snapshot.revisions {
        let applying = revision.status.phase == RevisionPhase::Applying;
        let moved = revision.status.components.iter().any(|record| record.moved && record.verified_at.is_none());
        if applying && moved {
            revision.status.hooks.retain(|hook| hook.outcome != HookOutcome::Succeeded);
        }
    }
}

/// Every version says that the one before may run again.
fn unsafe_version_rolled_back(snapshot: &mut Snapshot) {
    snapshot.revisions.iter_mut().for_each(|revision| Arc::make_mut(&mut revision.spec).rollback.safe = true);
    snapshot.package.definition.iter_mut().for_each(|definition| Arc::make_mut(definition).rollback.safe = true);
}

/// Only the newest revision is asked.
fn safe_read_from_one_revision_only(snapshot: &mut Snapshot) {
    let latest = snapshot.revisions.len().saturating_sub(1);
    snapshot
        .revisions
        .iter_mut()
        .take(latest)
        .for_each(|revision| Arc::make_mut(&mut revision.spec).rollback.safe = true);
}

/// What is not written itself counts as verified.
fn downstream_not_verified_again(snapshot: &mut Snapshot) {
    let digests: Vec<String> = snapshot.children.iter().filter_map(|c| c.digest().map(str::to_owned)).collect();
    let Some(latest) = snapshot.revisions.last_mut() else { return };
    let unchanged = latest.spec.components.iter().filter(|component| digests.contains(&component.digest));
    let names: Vec<String> = unchanged.map(|component| component.name.clone()).collect();
    for name in names {
        let verified_at = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        match latest.status.components.iter_mut().find(|record| record.name == name) {
            Some(record) if record.moved => {}
            Some(record) => record.verified_at = verified_at,
            None => latest.status.components.push(ComponentRecord { name, verified_at, ..ComponentRecord::default() }),
        }
    }
}

/// Dependents come last.
fn uninstall_forward(snapshot: &mut Snapshot) {
    for child in &mut snapshot.children {
        let wave: i64 = child.annotation("windlass.dev/wave").and_then(|wave| wave.parse().ok()).unwrap_or(0);
        set(child, "/metadata/annotations/windlass.dev~1wave", json!((1000 - wave).to_string()));
    }
    if snapshot.package.deleting {
        let specs = snapshot.revisions.iter_mut().map(|revision| Arc::make_mut(&mut revision.spec));
        let components = specs.flat_map(|spec| &mut spec.components);
        components.for_each(|component| component.depends_on.clear());
    }
}

/// The revision that is returned to is restored first things first.
fn rollback_in_forward_order(snapshot: &mut Snapshot) {
    let target =
        snapshot.revisions.last().and_then(|latest| latest.status.rollback.as_ref()).map(|rollback| rollback.to);
    for revision in snapshot.revisions.iter_mut().filter(|revision| Some(revision.spec.number) == target) {
        Arc::make_mut(&mut revision.spec).components.reverse();
    }
}

/// Whatever holds now counts.
fn stale_evidence_accepted(snapshot: &mut Snapshot) {
    for revision in &mut snapshot.revisions {
        revision
            .status
            .components
            .iter_mut()
            .flat_map(|record| &mut record.before)
            .for_each(|before| before.lapsed = true);
    }
}

/// What had failed before fails what mends it.
fn an_old_failure_fails_the_fix(snapshot: &mut Snapshot) {
    for revision in &mut snapshot.revisions {
        revision
            .status
            .components
            .iter_mut()
            .flat_map(|record| &mut record.before)
            .for_each(|before| before.recovered = true);
    }
}

thread_local! {
    static REMEMBERED: std::cell::RefCell<Vec<HookRecord>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// A hook that succeeded once has succeeded for good.
fn hook_outcome_kept_over_a_rollback(snapshot: &mut Snapshot) {
    REMEMBERED.with_borrow_mut(|remembered| {
        for hook in snapshot.revisions.iter().flat_map(|revision| &revision.status.hooks) {
            if hook.outcome == HookOutcome::Succeeded && !remembered.contains(hook) {
                remembered.push(hook.clone());
            }
        }
        if let Some(latest) = snapshot.revisions.last_mut().filter(|latest| latest.status.hooks.is_empty()) {
            let same = remembered.iter().filter(|hook| hook.to == latest.spec.version).cloned();
            latest.status.hooks.extend(same);
        }
    });
}

fn component(depends_on: &[usize]) -> Component {
    Component {
        depends_on: depends_on.to_vec(),
        is_resource: false,
        stays_true: true,
        by_condition: false,
        takes: 1000,
    }
}

fn commit(after: u64, components: usize) -> Commit {
    Commit {
        after,
        moves: vec![true; components],
        present: vec![true; components],
        safe: true,
        outcomes: vec![Outcome::Succeeds; components],
        care: vec![Care::Reports; components],
        hook: None,
    }
}

/// Two components, the second a resource that the first looks after, and an
/// upgrade of both.
fn upgrade(change: impl FnOnce(&mut History)) -> History {
    let components = vec![component(&[]), component(&[0]), component(&[1])];
    let mut history = History {
        engine: Engine::Flux,
        commits: vec![commit(0, components.len()), commit(200_000, components.len())],
        components,
        troubles: Troubles::default(),
        retry: None,
        deleted: false,
    };
    change(&mut history);
    history
}

fn caught(history: &History, distortion: Distortion) -> Option<String> {
    REMEMBERED.with_borrow_mut(Vec::clear);
    let mut rehearsal = history.play(Some(distortion));
    judge(history, &mut rehearsal).err()
}

#[rstest]
#[case::generation_check_skipped(
    without_generations, "moves before", upgrade(|_| {}))]
#[case::ready_trusted_before_history(
    without_history, "moves before", upgrade(|_| {}))]
#[case::hook_run_twice(hook_run_twice, "runs again", upgrade(|history| {
    history.commits[1].hook = Some(Outcome::Succeeds);
    history.troubles.kills = vec![60, 70, 80, 90];
}))]
#[case::unsafe_version_rolled_back(unsafe_version_rolled_back, "is not safe", upgrade(|history| {
    history.commits[1].safe = false;
    history.commits[1].outcomes[1] = Outcome::Fails;
}))]
#[case::safe_read_from_one_revision_only(safe_read_from_one_revision_only, "is not safe", upgrade(|history| {
    history.commits[1].safe = false;
    history.commits[1].outcomes[1] = Outcome::Hangs;
    let mut next = commit(30_000, 3);
    next.outcomes[1] = Outcome::Fails;
    history.commits.push(next);
}))]
#[case::downstream_not_verified_again(downstream_not_verified_again, "moves before", upgrade(|history| {
    history.components[1].is_resource = true;
    history.components[1].takes = 20_000;
    history.commits[1].moves[1] = false;
}))]
#[case::uninstall_forward(uninstall_forward, "is removed before", upgrade(|history| history.deleted = true))]
#[case::rollback_in_forward_order(rollback_in_forward_order, "goes back before", upgrade(|history| {
    history.commits[1].outcomes[2] = Outcome::Fails;
}))]
#[case::stale_evidence_accepted(stale_evidence_accepted, "moves before", upgrade(|history| {
    history.components[1].is_resource = true;
    history.components[1].by_condition = true;
    history.components[1].takes = 20_000;
    history.commits[1].moves[1] = false;
}))]
#[case::an_old_failure_fails_the_fix(an_old_failure_fails_the_fix, "an old failure", upgrade(|history| {
    history.components[1].is_resource = true;
    history.components[1].takes = 20_000;
    history.commits[1].safe = false;
    history.commits[1].care[1] = Care::Fails;
    history.commits.push(commit(600_000, 3));
}))]
#[case::hook_outcome_kept_over_a_rollback(hook_outcome_kept_over_a_rollback, "without its hook", upgrade(|history| {
    history.commits[1].hook = Some(Outcome::Succeeds);
    history.commits[1].outcomes[2] = Outcome::FailsFirst(3);
    history.retry = Some(600_000);
}))]
fn a_core_that_overlooks_something_is_caught(
    #[case] distortion: Distortion,
    #[case] by: &str,
    #[case] history: History,
) {
    let mut sound = history.play(None);
    assert_eq!(judge(&history, &mut sound), Ok(()), "the real core passes");
    let error = caught(&history, distortion).unwrap_or_else(|| panic!("it is not caught"));
    assert!(error.contains(by), "caught by another property: {error}");
}

/// Children of components that are no longer wanted are not seen before the end,
/// and then uninstalled.
fn renamed_component_uninstalled_after_its_successor(snapshot: &mut Snapshot) {
    let Some(latest) = snapshot.revisions.last() else { return };
    if latest.status.phase != RevisionPhase::Succeeded {
        snapshot.children.retain(|child| child.component().is_none_or(|name| latest.component(name).is_some()));
    }
}

/// On Argo CD an object belongs to the Application that applied it last.
#[test]
fn a_core_that_uninstalls_a_renamed_component_after_its_successor_is_caught() {
    let engine = Engine::Flux;
    let deleted = |distortion: Option<Distortion>| {
        let mut rehearsal = Rehearsal::new(Script::default(), Settings::new(engine));
        rehearsal.faults.distortion = distortion;
        for (name, version) in [("old", "1.0.0"), ("new", "2.0.0")] {
            let package = json!({
                "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
                "metadata": {"name": "app", "namespace": "packages"},
                "spec": {"version": version, "engine": engine.as_str(), "components": [{
                    "name": name, "install": {"releaseName": "web"},
                    "chart": {"repository": "https://charts.example.org", "name": "web", "version": version},
                }]},
            });
            let object = package.as_object().unwrap();
            rehearsal.world.store.apply("git", object, &Expected::default()).unwrap();
            rehearsal.run_for(1_200_000);
        }
        let log = rehearsal.world.store.log().iter();
        log.filter(|change| change.key.kind == "Deployment" && change.verb == Verb::Deleted).count()
    };
    assert_eq!(deleted(None), 0, "the real core hands it over");
    assert!(deleted(Some(renamed_component_uninstalled_after_its_successor)) > 0);
}
