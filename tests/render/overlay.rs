//! Changes to stored objects that move nothing, and the form of a rollback.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::engine::{Manifest, in_place, in_place_back, rollback_form};

use super::support::{at, definition, release, text};

fn with(engine: Engine, change: Value) -> Manifest {
    let mut spec = json!({
        "version": "1.0.0",
        "components": [{"name": "one", "values": {"a": 1},
                        "chart": {"repository": "https://charts.example.org", "name": "one", "version": "1.0.0"}}],
    });
    for (pointer, value) in change.as_object().unwrap() {
        match pointer.strip_prefix("component/") {
            Some(key) => spec["components"][0][key] = value.clone(),
            None => spec[pointer.as_str()] = value.clone(),
        }
    }
    release(&definition(spec), engine)
}

#[test]
fn settings_that_move_nothing_are_taken_over_and_nothing_else() {
    let stored =
        with(Engine::Flux, json!({"component/install": {"ignore": [{"kind": "Secret", "jsonPointers": ["/data"]}]}}));
    let fresh = with(
        Engine::Flux,
        json!({
            "upgrade": {"timeout": "1h"}, "serviceAccountName": "other", "component/values": {"a": 2},
            "component/canary": {},
            "component/install": {"namespace": "elsewhere", "releaseName": "other", "upgradeCRDs": "Skip", "deleteData": true,
                "healthCheckExprs": [{"apiVersion": "example.org/v1", "current": "true"}]},
        }),
    );
    let result = in_place(&stored, &fresh);
    for taken in
        ["spec.timeout", "spec.serviceAccountName", "spec.healthCheckExprs", "spec.waitStrategy", "spec.driftDetection"]
    {
        assert_eq!(at(&result, taken), at(&fresh, taken), "{taken}");
        assert_ne!(at(&result, taken), at(&stored, taken), "{taken}");
    }
    for kept in [
        "spec.values",
        "spec.releaseName",
        "spec.targetNamespace",
        "spec.storageNamespace",
        "spec.upgrade",
        "spec.postRenderers",
        "spec.chartRef",
        "spec.install",
        "metadata.labels",
        "metadata.annotations",
    ] {
        assert_eq!(at(&result, kept), at(&stored, kept), "{kept}");
    }
}

#[test]
fn a_setting_that_is_gone_is_removed() {
    let stored = with(Engine::Flux, json!({"serviceAccountName": "one"}));
    let result = in_place(&stored, &with(Engine::Flux, json!({})));
    assert_eq!(at(&result, "spec.serviceAccountName"), Value::Null);
}

#[test]
fn an_application_is_of_the_project_that_is_given_now() {
    let fresh = with(Engine::Argo, json!({}));
    let mut stored = fresh.clone().into_map();
    stored["spec"]["project"] = json!("everything");
    let result = in_place(&windlass::engine::Manifest::from_record(stored), &fresh);
    assert_eq!(at(&result, "spec.project"), at(&fresh, "spec.project"));
}

#[test]
fn ignores_of_an_application_come_and_go_with_the_option_that_respects_them() {
    let ignoring = json!({"component/install": {"ignore": [{"kind": "Secret", "jsonPointers": ["/data"]}]}});
    let [without, with] = [json!({}), ignoring].map(|change| with(Engine::Argo, change));
    assert_eq!(text(vec![in_place(&without, &with)]), text(vec![with.clone()]));
    assert_eq!(text(vec![in_place(&with, &without)]), text(vec![without]));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn taking_over_from_itself_changes_nothing(#[case] engine: Engine) {
    let stored = with(engine, json!({"serviceAccountName": "one", "component/canary": {}}));
    assert_eq!(text(vec![in_place(&stored, &stored)]), text(vec![stored]));
}

#[rstest]
#[case::flux(Engine::Flux, "spec.upgrade.crds", json!("Skip"))]
#[case::argo(Engine::Argo, "spec.source.helm.skipCrds", json!(true))]
fn a_rollback_leaves_crds_alone(#[case] engine: Engine, #[case] path: &str, #[case] value: Value) {
    let stored = with(engine, json!({}));
    let back = rollback_form(&stored, true);
    assert_eq!(at(&back, path), value);
    assert_ne!(at(&stored, path), value);
    assert_eq!(at(&back, "spec.install"), at(&stored, "spec.install"));
    assert_eq!(rollback_form(&back, true), back);
}

#[test]
fn a_rollback_of_what_nobody_waits_for_waits_for_nothing() {
    let mut stored = with(Engine::Flux, json!({})).as_map().clone();
    stored["spec"]["healthCheckExprs"] = json!([{"apiVersion": "example.org/v1", "kind": "App", "current": "true"}]);
    stored["spec"]["waitStrategy"] = json!({"name": "poller"});
    let stored = Manifest::from_record(stored);
    let back = rollback_form(&stored, false);
    assert_eq!(at(&back, "spec.upgrade.disableWait"), json!(true));
    assert_eq!((at(&back, "spec.healthCheckExprs"), at(&back, "spec.waitStrategy")), (Value::Null, Value::Null));
    assert_eq!(at(&rollback_form(&stored, true), "spec.waitStrategy"), json!({"name": "poller"}));
}

/// Whose account it is and what is left to others is for now to say; the rest is of
/// the version that goes back.
#[test]
fn what_goes_back_keeps_its_own_settings() {
    let [stored, fresh] = [json!({}), json!({"serviceAccountName": "two", "upgrade": {"timeout": "3m"}})]
        .map(|change| with(Engine::Flux, change));
    let back = in_place_back(&stored, &fresh, false);
    assert_eq!(at(&back, "spec.serviceAccountName"), json!("two"));
    assert_eq!(at(&back, "spec.timeout"), at(&stored, "spec.timeout"));
    assert_ne!(at(&fresh, "spec.timeout"), at(&stored, "spec.timeout"));
}
