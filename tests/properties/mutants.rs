//! Cores that overlook something. Each is made from the real one by what it
//! sees: a fact that a rule looks at is painted over before the decision, which
//! is the same as a core without that rule. Every one of them must be caught by a
//! property, and by the one that is meant for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::{ComponentRecord, ComponentState, Engine, HookOutcome, HookRecord, RevisionPhase, Time};
use windlass::rehearse::{Rehearsal, Settings};
use windlass::rollout::live::Live;
use windlass::rollout::{Action, Decision, Snapshot, decide};
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

/// An operation that was asked for counts as one that has succeeded, and what was
/// compared with the spec before as what is compared with this one.
fn comparison_trusted(snapshot: &mut Snapshot) {
    for application in snapshot.children.iter_mut().filter(|child| child.key().kind == "Application") {
        edit(application, |object| {
            let (operation, source) = (object["operation"].take(), object["spec"]["source"].clone());
            if object["status"]["sync"].is_null() {
                return;
            }
            let result = json!({"source": source, "revision": source["targetRevision"]});
            if !operation.is_null() {
                object["status"]["operationState"] = json!({
                    "phase": "Succeeded", "operation": operation, "syncResult": result,
                    "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:00Z",
                });
            }
            object["status"]["sync"] = json!({
                "status": "Synced", "revision": source["targetRevision"],
                "comparedTo": {"source": source, "destination": object["spec"]["destination"]},
            });
        });
    }
}

/// A hook that was started counts as one that has succeeded.
fn hook_not_awaited(snapshot: &mut Snapshot) {
    let hooks = snapshot.revisions.iter_mut().flat_map(|revision| &mut revision.status.hooks);
    hooks.filter(|hook| hook.outcome == HookOutcome::Running).for_each(|hook| hook.outcome = HookOutcome::Succeeded);
}

/// So does one that has failed.
fn hook_failure_ignored(snapshot: &mut Snapshot) {
    let hooks = snapshot.revisions.iter_mut().flat_map(|revision| &mut revision.status.hooks);
    hooks.filter(|hook| hook.outcome == HookOutcome::Failed).for_each(|hook| hook.outcome = HookOutcome::Succeeded);
}

/// A component that was written counts as verified.
fn order_edge_ignored(snapshot: &mut Snapshot) {
    let Some(latest) = snapshot.revisions.last_mut() else { return };
    let written = latest.status.components.iter_mut().filter(|record| record.moved && record.verified_at.is_none());
    written.for_each(|record| record.verified_at = Some(Time(jiff::Timestamp::UNIX_EPOCH)));
}

/// What was written back counts as back.
fn rollback_gate_ignored(snapshot: &mut Snapshot) {
    let Some(latest) = snapshot.revisions.last_mut() else { return };
    let back = latest.status.components.iter_mut().filter(|record| record.state == ComponentState::Restoring);
    back.for_each(|record| record.state = ComponentState::Restored);
}

/// A suspended package goes on.
fn suspension_ignored(snapshot: &mut Snapshot) {
    snapshot.package.suspend = false;
}

/// A core made of the real one.
type Core = fn(&Snapshot, jiff::Timestamp) -> Decision;

/// All children of a deleted package go with the first.
fn uninstall_all_at_once(snapshot: &Snapshot, now: jiff::Timestamp) -> Decision {
    let mut decision = decide(snapshot, now);
    if decision.actions.iter().any(|action| matches!(action, Action::Delete { .. })) {
        let left = snapshot.children.iter().filter(|child| !child.is_deleting());
        let all = left.map(|child| Action::Delete { object: child.key().clone(), uid: child.uid().to_owned() });
        decision.actions = all.collect();
    }
    decision
}

/// A revision has succeeded once its last component was written.
fn success_told_too_early(snapshot: &Snapshot, now: jiff::Timestamp) -> Decision {
    let mut decision = decide(snapshot, now);
    let Some(latest) = snapshot.revisions.last() else { return decision };
    let wanted = latest.spec.components.iter().filter(|component| !component.hook).count();
    for record in decision.records.iter_mut().filter(|record| record.revision == latest.name) {
        let written = record.status.components.iter().filter(|component| component.moved).count();
        if written == wanted && record.status.phase == RevisionPhase::Applying {
            record.status.phase = RevisionPhase::Succeeded;
        }
    }
    decision
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
    Commit { after, ..Commit::of(components) }
}

/// Three components, each on the one before, and an upgrade of all.
fn upgrade(engine: Engine, change: fn(&mut History)) -> History {
    let components = vec![component(&[]), component(&[0]), component(&[1])];
    let mut history = History {
        engine,
        commits: vec![commit(0, components.len()), commit(200_000, components.len())],
        components,
        troubles: Troubles::default(),
        retry: None,
        deleted: false,
        adopts: false,
    };
    change(&mut history);
    history
}

/// How a core is made to overlook something.
#[derive(Clone, Copy)]
enum Mutant {
    /// By what it sees.
    Sees(Distortion),
    /// By what it decides.
    Decides(Core),
}

fn play(history: &History, mutant: Option<Mutant>) -> Rehearsal {
    REMEMBERED.with_borrow_mut(Vec::clear);
    match mutant {
        None => history.play(None, None),
        Some(Mutant::Sees(distortion)) => history.play(Some(distortion), None),
        Some(Mutant::Decides(core)) => history.play(None, Some(core)),
    }
}

fn nothing(_: &mut History) {}

fn with_a_hook(history: &mut History) {
    history.commits[1].hook = Some(Outcome::Succeeds);
}

fn with_a_hook_and_kills(history: &mut History) {
    with_a_hook(history);
    history.troubles.kills = (50..150).step_by(5).collect();
}

fn with_a_hook_that_fails(history: &mut History) {
    history.commits[1].hook = Some(Outcome::Hangs);
}

fn unsafe_and_failing(history: &mut History) {
    history.commits[1].safe = false;
    history.commits[1].outcomes[1] = Outcome::Fails;
}

fn unsafe_before_failing(history: &mut History) {
    history.commits[1].safe = false;
    history.commits[1].outcomes[1] = Outcome::Hangs;
    let mut next = commit(30_000, 3);
    next.outcomes[1] = Outcome::Fails;
    history.commits.push(next);
}

fn with_a_resource(history: &mut History) {
    history.components[1].is_resource = true;
    history.components[1].takes = 20_000;
    history.commits[1].moves[1] = false;
}

fn with_a_resource_by_condition(history: &mut History) {
    with_a_resource(history);
    history.components[1].by_condition = true;
}

fn with_a_resource_that_had_failed(history: &mut History) {
    with_a_resource(history);
    history.commits[1].moves[1] = true;
    history.commits[1].safe = false;
    history.commits[1].care[1] = Care::Fails;
    history.commits.push(commit(600_000, 3));
}

fn failing_last(history: &mut History) {
    history.commits[1].outcomes[2] = Outcome::Fails;
}

fn with_a_hook_and_failing_at_first(history: &mut History) {
    with_a_hook(history);
    // Argo CD tries several times by itself.
    let failures = if history.engine == Engine::Argo { ARGO_ATTEMPTS } else { 3 };
    history.commits[1].outcomes[2] = Outcome::FailsFirst(failures);
    history.retry = Some(600_000);
}

fn deleted(history: &mut History) {
    history.deleted = true;
}

fn suspended(history: &mut History) {
    history.components.iter_mut().for_each(|component| component.takes = 3000);
    history.troubles.suspended = Some((200_600, 100_000));
}

/// Attempts that Argo CD makes, and we ask for, before an upgrade has failed.
const ARGO_ATTEMPTS: u32 = 9;
const BOTH: &[Engine] = &[Engine::Flux, Engine::Argo];
const FLUX: &[Engine] = &[Engine::Flux];
const ARGO: &[Engine] = &[Engine::Argo];

#[rstest]
#[case::generation_check_skipped(FLUX, Mutant::Sees(without_generations), "moves before", nothing)]
#[case::ready_trusted_before_history(FLUX, Mutant::Sees(without_history), "moves before", nothing)]
#[case::comparison_trusted_before_operation(ARGO, Mutant::Sees(comparison_trusted), "moves before", nothing)]
#[case::hook_run_twice(BOTH, Mutant::Sees(hook_run_twice), "runs again", with_a_hook_and_kills)]
#[case::hook_not_awaited(BOTH, Mutant::Sees(hook_not_awaited), "without its hook", with_a_hook)]
#[case::hook_failure_ignored(BOTH, Mutant::Sees(hook_failure_ignored), "without its hook", with_a_hook_that_fails)]
#[case::unsafe_version_rolled_back(BOTH, Mutant::Sees(unsafe_version_rolled_back), "is not safe", unsafe_and_failing)]
#[case::safe_read_from_one_revision_only(
    BOTH,
    Mutant::Sees(safe_read_from_one_revision_only),
    "is not safe",
    unsafe_before_failing
)]
#[case::order_edge_ignored(BOTH, Mutant::Sees(order_edge_ignored), "moves before", nothing)]
#[case::failed_component_passed_over(BOTH, Mutant::Sees(order_edge_ignored), "moves before", failing_last)]
#[case::downstream_not_verified_again(
    BOTH,
    Mutant::Sees(downstream_not_verified_again),
    "moves before",
    with_a_resource
)]
#[case::uninstall_forward(BOTH, Mutant::Sees(uninstall_forward), "is removed before", deleted)]
#[case::uninstall_not_awaited(BOTH, Mutant::Decides(uninstall_all_at_once), "is removed before", deleted)]
#[case::rollback_in_forward_order(BOTH, Mutant::Sees(rollback_in_forward_order), "goes back before", failing_last)]
#[case::rollback_gate_ignored(BOTH, Mutant::Sees(rollback_gate_ignored), "goes back before", failing_last)]
#[case::stale_evidence_accepted(
    BOTH,
    Mutant::Sees(stale_evidence_accepted),
    "moves before",
    with_a_resource_by_condition
)]
#[case::an_old_failure_fails_the_fix(
    BOTH,
    Mutant::Sees(an_old_failure_fails_the_fix),
    "an old failure",
    with_a_resource_that_had_failed
)]
#[case::hook_outcome_kept_over_a_rollback(
    BOTH,
    Mutant::Sees(hook_outcome_kept_over_a_rollback),
    "without its hook",
    with_a_hook_and_failing_at_first
)]
#[case::suspension_ignored(BOTH, Mutant::Sees(suspension_ignored), "is suspended", suspended)]
#[case::success_told_too_early(BOTH, Mutant::Decides(success_told_too_early), "succeeds before", nothing)]
fn a_core_that_overlooks_something_is_caught(
    #[case] engines: &[Engine],
    #[case] mutant: Mutant,
    #[case] by: &str,
    #[case] change: fn(&mut History),
) {
    for engine in engines {
        let history = upgrade(*engine, change);
        let mut sound = play(&history, None);
        assert_eq!(judge(&history, &mut sound), Ok(()), "{engine:?}: the real core passes");
        let mut mutated = play(&history, Some(mutant));
        let error = judge(&history, &mut mutated).err().unwrap_or_else(|| panic!("{engine:?}: it is not caught"));
        assert!(error.contains(by), "{engine:?}: caught by another property: {error}");
    }
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
