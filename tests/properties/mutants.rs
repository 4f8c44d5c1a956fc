//! Cores that overlook something. Each is made from the real one by what it
//! sees: a fact that a rule looks at is painted over before the decision, which
//! is the same as a core without that rule. Every one of them must be caught by a
//! property, and by the one that is meant for it.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{Engine, HookOutcome, HookRecord, RevisionPhase};
use windlass::rollout::Snapshot;
use windlass::rollout::live::Live;
use windlass::sim::chart::{Care, Outcome};

use crate::history::{Commit, Component, History, Troubles};
use crate::judge::judge;

fn releases(snapshot: &mut Snapshot) -> impl Iterator<Item = &mut Live> {
    snapshot.children.iter_mut().filter(|child| child.key().kind == "HelmRelease")
}

fn set(live: &mut Live, pointer: &str, value: Value) {
    let mut object = Value::Object(std::mem::take(&mut live.object));
    if let Some(slot) = object.pointer_mut(pointer) {
        *slot = value;
    }
    live.object = object.as_object().cloned().unwrap_or_default();
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
        let mut object = Value::Object(std::mem::take(&mut release.object));
        if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| condition["type"] != "Reconciling");
        }
        release.object = object.as_object().cloned().unwrap_or_default();
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
    if let Some(Value::Object(status)) = release.object.get_mut("status")
        && status.contains_key("observedGeneration")
    {
        let mut entry = entry;
        entry[0]["chartVersion"] = WANTED_VERSION
            .with(|wanted| wanted.borrow().get(release_name(&name)).cloned().map(Value::from).unwrap_or(Value::Null));
        status.insert("history".into(), entry);
    }
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
    snapshot.revisions.iter_mut().for_each(|revision| revision.spec.rollback.safe = true);
}

/// Only the newest revision is asked.
fn safe_read_from_one_revision_only(snapshot: &mut Snapshot) {
    let latest = snapshot.revisions.len().saturating_sub(1);
    snapshot.revisions.iter_mut().take(latest).for_each(|revision| revision.spec.rollback.safe = true);
}

/// Nothing is downstream of anything.
fn downstream_not_verified_again(snapshot: &mut Snapshot) {
    for component in snapshot.revisions.iter_mut().flat_map(|revision| &mut revision.spec.components) {
        component.depends_on.clear();
    }
    snapshot.package.definition.iter_mut().flat_map(|d| &mut d.components).for_each(|c| c.depends_on.clear());
}

/// Dependents come last.
fn uninstall_forward(snapshot: &mut Snapshot) {
    for child in &mut snapshot.children {
        let wave: i64 = child.annotation("windlass.dev/wave").and_then(|wave| wave.parse().ok()).unwrap_or(0);
        set(child, "/metadata/annotations/windlass.dev~1wave", json!((1000 - wave).to_string()));
    }
    if snapshot.package.deleting {
        downstream_not_verified_again(snapshot);
    }
}

/// The revision that is returned to is restored first things first.
fn rollback_in_forward_order(snapshot: &mut Snapshot) {
    let target =
        snapshot.revisions.last().and_then(|latest| latest.status.rollback.as_ref()).map(|rollback| rollback.to);
    for revision in snapshot.revisions.iter_mut().filter(|revision| Some(revision.spec.number) == target) {
        revision.spec.components.reverse();
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
    Component { depends_on: depends_on.to_vec(), is_resource: false, stays_true: true, takes: 1000 }
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
        deleted: false,
    };
    change(&mut history);
    history
}

fn caught(history: &History, distortion: fn(&mut Snapshot)) -> Option<String> {
    REMEMBERED.with_borrow_mut(Vec::clear);
    let mut rehearsal = history.play(Some(distortion));
    judge(history, &mut rehearsal).err()
}

#[rstest]
#[case::generation_check_skipped(
    (|snapshot| with_versions(snapshot, generation_check_skipped)) as fn(&mut Snapshot), "moves before", upgrade(|_| {}))]
#[case::ready_trusted_before_history(
    |snapshot| with_versions(snapshot, ready_trusted_before_history), "moves before", upgrade(|_| {}))]
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
#[case::hook_outcome_kept_over_a_rollback(hook_outcome_kept_over_a_rollback, "without its hook", upgrade(|history| {
    history.commits[1].hook = Some(Outcome::Succeeds);
    history.commits[1].outcomes[2] = Outcome::Fails;
    let mut again = commit(1_200_000, 3);
    again.hook = Some(Outcome::Succeeds);
    again.outcomes[2] = Outcome::Succeeds;
    history.commits.push(again);
}))]
fn a_core_that_overlooks_something_is_caught(
    #[case] distortion: fn(&mut Snapshot),
    #[case] by: &str,
    #[case] history: History,
) {
    let mut sound = history.play(None);
    assert_eq!(judge(&history, &mut sound), Ok(()), "the real core passes");
    let error = caught(&history, distortion).unwrap_or_else(|| panic!("it is not caught"));
    assert!(error.contains(by), "caught by another property: {error}");
}
