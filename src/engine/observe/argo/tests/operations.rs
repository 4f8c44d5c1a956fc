//! Operations: ours and those of others.

use rstest::rstest;
use serde_json::{Value, json};

use super::super::*;
use super::objects::*;
use super::ready;

/// R8 and R10: what another operation left behind leaks into ours.
#[rstest]
#[case::some_resources("/status/operationState/operation/sync/resources", json!([{"kind": "ConfigMap", "name": "a"}]))]
#[case::dry_run("/status/operationState/operation/sync/dryRun", json!(true))]
#[case::manifests("/status/operationState/operation/sync/manifests", json!(["{}"]))]
#[case::result_of_another_source("/status/operationState/syncResult/source", old_source())]
// R12: Succeeded without a result, or without an end.
#[case::no_result("/status/operationState/syncResult", Value::Null)]
#[case::no_end("/status/operationState/finishedAt", Value::Null)]
fn an_operation_that_was_not_whole_is_asked_for_again(ready: Value, #[case] pointer: &str, #[case] value: Value) {
    let seen = look(with(ready, pointer, value), &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Progressing, Some(Need::Operation)));
    assert!(!seen.proof.succeeded);
}

#[rstest]
fn a_partial_self_heal_after_our_operation_is_let_be(ready: Value) {
    let mut healed = state("Succeeded", &source(), None);
    healed["operation"]["sync"]["resources"] = json!([{"kind": "ConfigMap", "name": "a"}]);
    let seen = look(with(ready, "/status/operationState", healed), &proved());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Ready, None));
}

/// R9: ours was overwritten or cleared by another one.
#[rstest]
#[case::cleared(Value::Null)]
#[case::overwritten(state("Succeeded", &source(), None))]
#[case::failed(state("Failed", &source(), None))]
#[case::older_token(state("Succeeded", &source(), Some("token-0")))]
fn an_operation_that_got_lost_is_asked_for_again(ready: Value, #[case] operation_state: Value) {
    let seen = look(with(ready, "/status/operationState", operation_state), &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, Some(Need::Operation)));
    assert_eq!(seen.release.attempts, 0);
}

#[rstest]
#[case::ours(Some(TOKEN))]
#[case::automated(None)]
fn an_operation_of_the_wanted_source_that_is_about_to_run_is_awaited(ready: Value, #[case] token: Option<&str>) {
    let pending = with(ready, "/operation", operation(&source(), token));
    let pending = with(pending, "/status/operationState", Value::Null);
    let seen = look(pending, &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, None));
}

#[rstest]
fn the_second_operation_of_argo_cd_is_let_be(ready: Value) {
    let pending = with(ready, "/operation", operation(&source(), None));
    let pending = with(pending, "/status/operationState", Value::Null);
    let seen = look(pending, &proved());
    assert_eq!((seen.release.state, seen.need, seen.proof), (ReleaseState::Progressing, None, proved()));
}

/// R11: 3.5.3 never takes an operation away.
#[rstest]
fn an_operation_that_is_left_over_is_named_and_not_trusted(ready: Value) {
    let left = with(ready, "/operation", operation(&source(), Some(TOKEN)));
    let seen = look(left.clone(), &proved());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Progressing, None));
    assert!(seen.release.message.contains("3.5.3"), "{}", seen.release.message);
    let left = with(left, "/operation", operation(&old_source(), None));
    let left = with(left, "/status/operationState", state("Failed", &old_source(), None));
    assert_eq!(look(left, &asked()).need, None);
}

/// R12: nobody works on it any more.
#[rstest]
fn a_running_operation_that_is_no_longer_asked_for_is_asked_for_again(ready: Value) {
    let mut running = state("Running", &source(), Some(TOKEN));
    running.as_object_mut().unwrap().remove("finishedAt");
    let stuck = with(ready, "/status/operationState", running);
    assert_eq!(look(stuck.clone(), &asked()).need, Some(Need::Operation));
    assert_eq!(look(stuck.clone(), &proved()).need, Some(Need::Operation));
    assert_eq!(look(with(stuck, "/operation", operation(&source(), Some(TOKEN))), &asked()).need, None);
}

/// R17: a PostSync hook failed although everything is Synced and Healthy.
#[rstest]
#[case::failed("Failed")]
#[case::error("Error")]
fn a_failed_operation_is_one_failed_attempt_and_counted_once(ready: Value, #[case] phase: &str) {
    let failed = with(ready, "/status/operationState", state(phase, &source(), Some(TOKEN)));
    let first = look(failed.clone(), &asked());
    assert_eq!(first.release.state, ReleaseState::Failed(Failure::Attempt));
    assert_eq!((first.release.attempts, first.need), (1, Some(Need::Operation)));
    let second = look(failed, &first.proof);
    assert_eq!((second.release.attempts, second.proof.clone()), (1, first.proof));
    assert_eq!(second.proof.asked("token-2".into()).attempts, 1);
}

#[rstest]
fn failed_operations_of_several_tokens_add_up(ready: Value) {
    let mut proof = asked();
    for token in ["token-1", "token-2", "token-3"] {
        proof = proof.asked(token.to_owned());
        let failed = with(ready.clone(), "/status/operationState", state("Failed", &source(), Some(token)));
        proof = look(failed, &proof).proof;
    }
    assert_eq!(proof.attempts, 3);
}

#[rstest]
fn a_failure_for_want_of_the_chart_says_so(ready: Value) {
    let failed = with(ready, "/status/operationState", state("Error", &source(), Some(TOKEN)));
    let failed = with(failed, "/status/conditions", json!([{"type": "ComparisonError", "message": "no 1.1.0"}]));
    let seen = look(failed, &asked());
    assert_eq!(seen.release.state, ReleaseState::Failed(Failure::Attempt));
    assert_eq!(seen.release.trouble, Some(Trouble::NoSource));
    assert_eq!(seen.release.message, "Application/pkg-app: ComparisonError: no 1.1.0");
}

/// Argo CD repeats the command, with the name of a directory that is another one
/// with every try: only what the command printed tells anything.
#[rstest]
fn a_command_that_failed_is_told_by_what_it_printed(ready: Value) {
    let said = "Failed to load target state: error fetching chart: failed running helm: `helm pull --destination \
                /tmp/2e3e7084 --version 1.1.0 --repo https://charts.example.org app` failed exit status 1: \
                Error: chart \"app\" version \"1.1.0\" not found in https://charts.example.org repository";
    let failed = with(ready, "/status/conditions", json!([{"type": "ComparisonError", "message": said}]));
    let expected = "Application/pkg-app: ComparisonError: Error: chart \"app\" version \"1.1.0\" not found in \
                    https://charts.example.org repository";
    assert_eq!(look(failed, &asked()).release.message, expected);
}

/// R18: between two tries the phase is Running and `finishedAt` is set.
#[rstest]
fn an_operation_between_two_tries_is_neither_done_nor_failed(ready: Value) {
    let retrying = with(ready, "/status/operationState", state("Running", &source(), Some(TOKEN)));
    let retrying = with(retrying, "/operation", operation(&source(), Some(TOKEN)));
    let seen = look(retrying, &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Progressing, None));
    assert_eq!((seen.release.attempts, seen.proof.succeeded), (0, false));
    assert!(seen.release.message.contains("tried again"), "{}", seen.release.message);
}

/// There is nothing to end yet: Argo CD has not begun with it.
#[rstest]
#[case::nothing_ran(Value::Null)]
#[case::another_has_ended(state("Succeeded", &source(), None))]
fn an_operation_of_the_old_spec_that_has_not_begun_is_replaced(ready: Value, #[case] operation_state: Value) {
    let busy = with(ready, "/operation", operation(&old_source(), None));
    let busy = with(busy, "/status/operationState", operation_state);
    for proof in [asked(), proved()] {
        let seen = look(busy.clone(), &proof);
        assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, Some(Need::Operation)));
    }
}

fn without_source(phase: &str, token: Option<&str>) -> Value {
    let mut state = state(phase, &old_source(), token);
    state["operation"]["sync"].as_object_mut().unwrap().remove("source");
    state
}

#[rstest]
#[case::running(state("Running", &old_source(), None), operation(&old_source(), None))]
#[case::between_two_tries(state("Running", &old_source(), Some("token-0")), operation(&old_source(), None))]
#[case::known_by_its_result(without_source("Running", None), json!({"sync": {"revision": "1.0.0"}}))]
// Ours came in between a look of Argo CD and its start.
#[case::not_the_one_asked_for(state("Running", &old_source(), None), operation(&source(), Some(TOKEN)))]
fn an_operation_of_the_old_spec_is_ended_first(ready: Value, #[case] operation_state: Value, #[case] operation: Value) {
    let busy = with(ready, "/operation", operation);
    let busy = with(busy, "/status/operationState", operation_state);
    for proof in [asked(), proved()] {
        let seen = look(busy.clone(), &proof);
        assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, Some(Need::Termination)));
    }
}

#[rstest]
fn an_operation_that_is_being_ended_is_awaited(ready: Value) {
    let busy = with(ready, "/operation", operation(&old_source(), None));
    let ending = with(busy, "/status/operationState", state("Terminating", &old_source(), None));
    let seen = look(ending, &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, None));
}

#[rstest]
#[case::another_source(state("Succeeded", &old_source(), None))]
#[case::failed(state("Failed", &source(), None))]
#[case::forgotten(Value::Null)]
fn what_ran_after_our_operation_must_be_the_same(ready: Value, #[case] operation_state: Value) {
    let seen = look(with(ready, "/status/operationState", operation_state), &proved());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Progressing, Some(Need::Operation)));
}

/// A synchronisation started by hand may name no source; its result does.
#[rstest]
#[case::same(source(), ReleaseState::Ready, None)]
#[case::another(old_source(), ReleaseState::Progressing, Some(Need::Operation))]
fn an_operation_without_a_source_is_known_by_its_result(
    ready: Value,
    #[case] result: Value,
    #[case] expected: ReleaseState,
    #[case] need: Option<Need>,
) {
    let mut by_hand = state("Succeeded", &result, None);
    by_hand["operation"]["sync"] = json!({"revision": "1.1.0"});
    let seen = look(with(ready, "/status/operationState", by_hand), &proved());
    assert_eq!((seen.release.state, seen.need), (expected, need));
}

#[rstest]
fn an_operation_without_a_source_that_is_about_to_run_is_for_the_spec(ready: Value) {
    let busy = with(ready, "/operation", json!({"sync": {"revision": "1.1.0"}}));
    let busy = with(busy, "/status/operationState", state("Succeeded", &old_source(), None));
    let seen = look(busy, &asked());
    assert_eq!((seen.release.state, seen.need), (ReleaseState::Queued, None));
}

#[test]
fn a_proof_goes_through_the_record_unchanged() {
    let proof = Proof { failed: true, attempts: 2, ..proved() };
    let mut record = ComponentRecord::default();
    proof.clone().record(&mut record);
    assert_eq!(Proof::of(&record), proof);
    assert_eq!(proof.asked("token-2".into()), Proof { token: Some("token-2".into()), attempts: 2, ..Proof::default() });
}
