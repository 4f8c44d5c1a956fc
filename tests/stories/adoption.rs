//! Releases that run already are taken over.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script, Template};
use windlass::sim::store::Expected;
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, REPOSITORY, at, component, package};

/// Somebody's release of chart `podinfo`, applied from Git by Flux.
fn release(changes: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {
            "name": "web", "namespace": NAMESPACE,
            "labels": {
                "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
            },
        },
        "spec": {
            "interval": "5m", "releaseName": "podinfo", "storageNamespace": "helm-records",
            "chart": {"spec": {
                "chart": "podinfo", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "theirs"},
            }},
            "values": {"replicas": 2},
            "install": {"remediation": {"retries": 5}},
            "upgrade": {"remediation": {"retries": 5, "strategy": "rollback"}},
            "postRenderers": [{"kustomize": {"patches": [{"target": {"kind": "Deployment"}, "patch": "[]"}]}}],
            "dependsOn": [{"name": "other"}],
        },
    });
    merge(&mut object, changes);
    object
}

fn merge(object: &mut Value, changes: &Value) {
    match (object, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            changes.iter().for_each(|(key, value)| merge(object.entry(key.clone()).or_insert(Value::Null), value));
        }
        (object, changes) => *object = changes.clone(),
    }
}

fn key() -> Key {
    Key::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", NAMESPACE, "web")
}

fn repository() -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
        "metadata": {"name": "theirs", "namespace": NAMESPACE}, "spec": {"url": REPOSITORY, "interval": "5m"},
    })
}

/// The release runs, and is given to component `web` of package `app`.
fn running(script: Script, changes: &Value) -> Play {
    let mut play = Play::new(Engine::Flux, script);
    play.apply(&repository());
    let mut object = release(changes);
    object["spec"]["dependsOn"] = json!([]);
    play.apply(&object);
    play.rehearsal.run_for(120_000);
    assert_eq!(play.runs("podinfo").as_deref(), Some("1.0.0"), "{}", play.tell());
    play.patch(&key(), json!({"metadata": {"annotations": {"windlass.dev/adopt": "packages/app/web"}}}));
    play
}

/// A Package of which component `web` is that release.
fn taking_over(version: &str, chart: &str) -> Value {
    let mut web = component("web", chart, &[]);
    web["chart"]["name"] = json!("podinfo");
    web["install"]["releaseName"] = json!("podinfo");
    web["values"] = json!({"replicas": 2});
    package(version, vec![web])
}

fn spec(play: &Play) -> Map<String, Value> {
    play.object(&key()).unwrap()["spec"].as_object().unwrap().clone()
}

fn workload(play: &Play) -> Map<String, Value> {
    play.deployment(NAMESPACE, "podinfo").unwrap().clone()
}

#[test]
fn taking_a_running_release_over_changes_nothing_that_runs() {
    let mut play = running(Script::default(), &json!({}));
    let before = workload(&play);
    let position = play.position();
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until_ready("app");
    assert_eq!(workload(&play), before, "not even its resource version");
    let mut written = play.changes_since(position).filter(|change| change.key.kind == "HelmRelease");
    assert!(written.all(|change| change.verb != Verb::Deleted && change.key.name == "web"));
    let spec = spec(&play);
    assert_eq!(spec["install"], json!({"remediation": {"retries": 5}}));
    assert_eq!(spec["upgrade"], json!({"remediation": {"retries": 5, "strategy": "rollback"}}));
    assert_eq!(spec["storageNamespace"], json!("helm-records"), "a change of it would install anew");
    assert_eq!(spec["chartRef"]["kind"], json!("HelmChart"));
    assert!(!spec.contains_key("chart") && !spec.contains_key("dependsOn"), "{spec:?}");
    assert_eq!(play.status("app").version.as_deref(), Some("1.0.0"));
}

#[test]
fn the_first_move_brings_our_settings() {
    let mut play = running(Script::default(), &json!({}));
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until_ready("app");
    play.commit("app", taking_over("2.0.0", "2.0.0"));
    play.until_ready("app");
    assert_eq!(play.runs("podinfo").as_deref(), Some("2.0.0"));
    let spec = spec(&play);
    assert_eq!(spec["install"]["strategy"]["name"], json!("RetryOnFailure"));
    assert!(spec["install"].get("remediation").is_none() && spec["upgrade"].get("remediation").is_none(), "{spec:?}");
    assert!(spec["postRenderers"].to_string().contains("resource-policy: keep"), "{}", spec["postRenderers"]);
    assert_eq!(spec["storageNamespace"], json!("helm-records"));
    let mut releases = play.changes_since(0).filter(|change| change.key.kind == "HelmRelease");
    assert!(releases.all(|change| change.key.name == "web"), "the object keeps its name");
}

/// A null takes a chart's default away.
#[test]
fn nulls_are_kept_when_a_release_is_taken_over_and_after_it() {
    let mut play = running(Script::default(), &json!({"spec": {"values": {"note": null}}}));
    let mut app = taking_over("1.0.0", "1.0.0");
    app["components"][0]["values"] = json!({"replicas": 2, "note": null});
    play.commit("app", app);
    play.until_ready("app");
    assert_eq!(spec(&play)["values"], json!({"replicas": 2, "note": null}), "{}", play.tell());
    let mut app = taking_over("2.0.0", "2.0.0");
    app["components"][0]["values"] = json!({"replicas": 2, "other": null});
    play.commit("app", app);
    play.until_ready("app");
    assert_eq!(spec(&play)["values"], json!({"replicas": 2, "other": null}), "{}", play.tell());
}

#[rstest]
#[case::another_release(json!({"spec": {"releaseName": "other"}}), "set install.releaseName")]
#[case::another_version(json!({"spec": {"chart": {"spec": {"version": "0.9.0"}}}}), "take over what runs, then change it")]
#[case::another_chart(json!({"spec": {"chart": {"spec": {"chart": "nginx"}}}}), "its chart is nginx")]
#[case::other_values(json!({"spec": {"values": {"replicas": 3}}}), "spec.values.replicas differs")]
#[case::more_values(json!({"spec": {"values": {"extra": {"a": 1}}}}), "spec.values.extra.a differs")]
#[case::more_nulls(json!({"spec": {"values": {"extra": null}}}), "spec.values differs")]
#[case::another_cluster(json!({"spec": {"kubeConfig": {"secretRef": {"name": "remote"}}}}), "into another cluster")]
fn what_would_not_stay_as_it_is_is_not_taken_over(#[case] changes: Value, #[case] message: &str) {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.apply(&repository());
    let mut object = release(&changes);
    object["spec"]["dependsOn"] = json!([]);
    object["metadata"]["annotations"] = json!({"windlass.dev/adopt": "packages/app/web"});
    play.apply(&object);
    play.rehearsal.run_for(120_000);
    let before = spec(&play);
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until("app", "Conflict");
    assert!(play.message("app").contains(message), "{}", play.message("app"));
    play.rehearsal.run_for(600_000);
    assert_eq!(spec(&play), before);
}

#[test]
fn one_that_is_not_given_to_the_component_is_left_alone() {
    let mut play = running(Script::default(), &json!({}));
    play.patch(&key(), json!({"metadata": {"annotations": {"windlass.dev/adopt": "packages/app/another"}}}));
    let before = spec(&play);
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.rehearsal.run_for(60_000);
    assert_eq!(spec(&play), before);
}

/// Two writers would undo each other's work: first it leaves Git, and is kept
/// from being pruned on the way out.
#[test]
fn it_is_taken_over_only_when_git_has_let_it_go() {
    let mut play = running(Script::default(), &json!({}));
    let kustomization = Key::new("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "apps");
    play.apply(&json!({
        "apiVersion": kustomization.api_version, "kind": "Kustomization",
        "metadata": {"name": "apps", "namespace": "flux-system"}, "spec": {"path": "./apps"},
    }));
    let applies = |play: &mut Play, entries: Value| {
        let store = &mut play.rehearsal.world.store;
        let inventory = json!({"entries": entries});
        store
            .edit_status("kustomize-controller", &kustomization, |s| drop(s.insert("inventory".into(), inventory)))
            .unwrap();
        play.rehearsal.run_for(0);
    };
    applies(&mut play, json!([{"id": "packages_web_helm.toolkit.fluxcd.io_HelmRelease", "v": "v2"}]));
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until("app", "Conflict");
    assert!(play.message("app").contains("Kustomization/flux-system/apps still applies it"), "{}", play.message("app"));
    let object = Value::Object(play.object(&key()).unwrap().clone());
    assert_eq!(object.pointer("/metadata/annotations/kustomize.toolkit.fluxcd.io~1prune"), Some(&json!("disabled")));
    assert!(object.pointer("/spec/chartRef").is_none());

    applies(&mut play, json!([]));
    play.until_ready("app");
}

/// A failed upgrade that took something over on the way leaves that running.
#[test]
fn a_rollback_removes_nothing_that_was_taken_over() {
    let mut script = Script::default();
    script.behave("api", "2.0.0", Outcome::Fails, 1000);
    let mut play = running(script, &json!({}));
    play.commit("app", package("1.0.0", vec![component("api", "1.0.0", &[])]));
    play.until_ready("app");
    let before = workload(&play);
    let mut next = taking_over("2.0.0", "1.0.0");
    next["components"].as_array_mut().unwrap().push(component("api", "2.0.0", &["web"]));
    next["rollback"] = json!({"safe": true});
    play.commit("app", next);
    play.until("app", "UpgradeRolledBack");
    assert_eq!(workload(&play), before);
    assert_eq!(play.runs("api").as_deref(), Some("1.0.0"));
}

/// Helm would delete the claim: the release was not rendered with our marks.
#[test]
fn an_uninstall_waits_where_it_would_take_data_along() {
    let mut script = Script::default();
    let claim = Template::new("v1", "PersistentVolumeClaim", "data", json!({"version": "{version}"}));
    script.charts.insert("podinfo".into(), vec![Template::deployment(), claim]);
    let mut play = running(script, &json!({}));
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until_ready("app");
    play.delete("app");
    play.rehearsal.run_for(300_000);
    assert!(play.message("app").contains("was taken over and has not moved since"), "{}", play.message("app"));
    let claim = Key::new("v1", "PersistentVolumeClaim", NAMESPACE, "data");
    assert_eq!(at(play.object(&claim).unwrap(), "/metadata/name"), "data");
}

/// A replacement uninstalls as well.
#[test]
fn a_replacement_waits_where_it_would_take_data_along() {
    let mut script = Script::default();
    let claim = Template::new("v1", "PersistentVolumeClaim", "{release}-data", json!({"size": "1Mi"}));
    script.charts.insert("podinfo".into(), vec![Template::deployment(), claim]);
    let mut play = running(script, &json!({}));
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until_ready("app");
    let mut replaced = taking_over("2.0.0", "2.0.0");
    replaced["components"][0]["install"]["releaseName"] = json!("other");
    replaced["components"][0]["install"]["replace"] = json!(true);
    play.commit("app", replaced);
    play.rehearsal.run_for(300_000);
    assert!(play.message("app").contains("was taken over and has not moved since"), "{}", play.message("app"));
    assert_eq!(play.runs("podinfo").as_deref(), Some("1.0.0"), "{}", play.tell());
    assert_eq!(play.rehearsal.world.store.list("PersistentVolumeClaim").count(), 1);
}

/// Two objects that hold one release would undo each other's work, and removing
/// the old one later would uninstall what the new one runs.
#[rstest]
#[case::in_the_same_namespace(NAMESPACE, json!({}))]
#[case::in_another_namespace("flux-system", json!({"spec": {"targetNamespace": NAMESPACE}}))]
fn a_release_that_somebody_else_holds_under_any_name_is_a_conflict(#[case] namespace: &str, #[case] changes: Value) {
    let mut play = Play::new(Engine::Flux, Script::default());
    let mut object = release(&changes);
    object["metadata"]["namespace"] = json!(namespace);
    play.apply(&object);
    let position = play.position();
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until("app", "Conflict");
    assert!(play.message("app").contains("holds release podinfo of component `web`"), "{}", play.message("app"));
    assert!(play.message("app").contains("windlass.dev/adopt: packages/app/web"), "{}", play.message("app"));
    play.rehearsal.run_for(600_000);
    assert_eq!(play.moves_since(position), Vec::<String>::new());

    let key = Key::new("helm.toolkit.fluxcd.io/v2", "HelmRelease", namespace, "web");
    play.rehearsal.world.store.delete("user", &key, &Expected::default()).unwrap();
    play.until_ready("app");
}

#[test]
fn a_release_in_another_cluster_is_no_conflict() {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.apply(&release(&json!({"spec": {"kubeConfig": {"secretRef": {"name": "remote"}}}})));
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until_ready("app");
}

/// What was rendered for Git names Package and component, but is not ours.
#[test]
fn an_object_rendered_for_git_at_the_place_of_a_child_is_a_conflict() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let labels = json!({"windlass.dev/package": "app", "windlass.dev/component": "web"});
    play.apply(&release(&json!({"metadata": {"name": "app-web", "labels": labels}})));
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until("app", "Conflict");
}

/// The Package is gone and has left its children behind: another one may not
/// take them in silence.
#[test]
fn what_a_package_has_left_behind_is_a_conflict_for_one_of_another_name() {
    let mut play = Play::new(Engine::Flux, Script::default());
    let mut spec = taking_over("1.0.0", "1.0.0");
    spec["deletionPolicy"] = json!("Orphan");
    play.commit("old", spec);
    play.until_ready("old");
    play.delete("old");
    play.until_gone("old");
    play.commit("new", taking_over("1.0.0", "1.0.0"));
    play.until("new", "Conflict");
    assert!(
        play.message("new").contains("HelmRelease/packages/old-web holds release podinfo"),
        "{}",
        play.message("new")
    );
}

#[test]
fn values_from_are_the_same_with_or_without_the_default_key() {
    let changes = json!({"spec": {"valuesFrom": [{"kind": "ConfigMap", "name": "more"}]}});
    let mut play = running(Script::default(), &changes);
    let mut spec = taking_over("1.0.0", "1.0.0");
    spec["components"][0]["valuesFrom"] = json!([{"kind": "ConfigMap", "name": "more"}]);
    play.commit("app", spec);
    play.until_ready("app");
}

/// An operation would run the chart's own hooks again.
#[test]
fn taking_an_application_over_starts_no_operation() {
    let mut play = Play::new(Engine::Argo, Script::default());
    let application = Key::new("argoproj.io/v1alpha1", "Application", NAMESPACE, "web");
    play.apply(&json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {
            "name": "web", "namespace": NAMESPACE,
            "annotations": {"windlass.dev/adopt": "packages/app/web"},
        },
        "spec": {
            "project": "theirs",
            "source": {
                "repoURL": REPOSITORY, "chart": "podinfo", "targetRevision": "1.0.0",
                "helm": {"releaseName": "podinfo", "valuesObject": {"replicas": 2}},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}},
        },
    }));
    play.rehearsal.run_for(120_000);
    assert_eq!(play.runs("podinfo").as_deref(), Some("1.0.0"), "{}", play.tell());
    let (before, position) = (workload(&play), play.position());
    play.commit("app", taking_over("1.0.0", "1.0.0"));
    play.until_ready("app");
    assert_eq!(workload(&play), before, "not even its resource version");
    let operations = play.changes_since(position).filter(|change| {
        *change.key == application && change.object.get("operation").is_some_and(|operation| !operation.is_null())
    });
    assert_eq!(operations.count(), 0, "{}", play.tell());
    assert_eq!(play.object(&application).unwrap()["spec"]["project"], "theirs");

    play.commit("app", taking_over("2.0.0", "2.0.0"));
    play.until_ready("app");
    assert_eq!(play.runs("podinfo").as_deref(), Some("2.0.0"));
    let spec = &play.object(&application).unwrap()["spec"];
    assert_eq!(
        (&spec["project"], &spec["syncPolicy"]["syncOptions"][1]),
        (&json!("default"), &json!("ServerSideApply=true"))
    );
}
