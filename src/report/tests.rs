use std::collections::BTreeMap;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::status::Columns;
use super::why::Found;
use super::workloads::Workload;
use super::{diff, history, remedy, status, why};
use crate::api::{Package, PackageRevision, Reason};

fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

fn package(name: &str, version: &str, status: &Value) -> Package {
    serde_json::from_value(json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Package",
        "metadata": {
            "name": name, "namespace": "packages", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"version": version, "components": []},
        "status": status,
    }))
    .unwrap()
}

fn condition(status: &str, reason: &str, message: &str) -> Value {
    json!([{
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:08:00Z",
    }])
}

fn upgrading() -> Package {
    let message = "component db: HelmRelease/shop-db: Running 'upgrade' action";
    let status = json!({
        "observedGeneration": 3, "version": "1.0.0", "revision": 1, "engine": "flux",
        "attempted": {"version": "2.0.0", "revision": 2},
        "summary": format!("Progressing: {message}"),
        "conditions": condition("Unknown", "Progressing", message),
        "components": [
            {"name": "operator", "state": "Verified", "version": "2.0.0", "since": "2026-01-01T00:09:00Z"},
            {"name": "db", "state": "Progressing", "version": "2.0.0", "since": "2026-01-01T00:09:30Z", "message": "HelmRelease/shop-db: Running 'upgrade' action"},
            {"name": "web", "state": "Waiting"},
        ],
    });
    package("shop", "2.0.0", &status)
}

fn key(name: &str) -> why::Key {
    ("packages".to_owned(), name.to_owned())
}

fn found(packages: Vec<Package>) -> Found {
    let packages = packages.into_iter().map(|package| (key(package.metadata.name.as_deref().unwrap()), package));
    Found { packages: packages.collect::<BTreeMap<_, _>>(), ..Found::default() }
}

#[test]
fn a_line_tells_version_progress_and_what_it_is_doing() {
    let fresh = package("new", "1.0.0", &json!({"observedGeneration": -1}));
    insta::assert_snapshot!(status::list(&[upgrading(), fresh], Columns { namespace: true, wide: false }, now()), @r"
    NAMESPACE   NAME   VERSION   READY     COMPONENTS     STATUS                                                                     AGE
    packages    shop   1.0.0     Unknown   1/3 of 2.0.0   Progressing: component db: HelmRelease/shop-db: Running 'upgrade' action   10m
    packages    new    -         -         -              the controller has not looked at it yet                                    10m
    ");
}

#[test]
fn one_package_is_shown_with_its_components() {
    insta::assert_snapshot!(status::detail(&upgrading(), None, now()), @r"
    Package:   packages/shop
    Wanted:    2.0.0
    Runs:      1.0.0 (revision 1)
    Attempted: 2.0.0 (revision 2)
    Engine:    flux

    Ready is Unknown (Progressing) for 2m:
      component db: HelmRelease/shop-db: Running 'upgrade' action

    1 of 3 components run 2.0.0; what waits for its turn runs what 1.0.0 has installed:
    COMPONENT   STATE         CHART   SINCE       MESSAGE
    operator    Verified      2.0.0   60s
    db          Progressing   2.0.0   30s         see above
    web         Waiting       -       <unknown>
    ");
}

#[test]
fn a_status_about_an_earlier_spec_says_so() {
    let mut stale = upgrading();
    stale.metadata.generation = Some(4);
    assert!(status::detail(&stale, None, now()).contains("The controller has not looked at the present spec yet"));
    assert!(why::write(&key("shop"), &found(vec![stale.clone()]), now()).contains("has not looked at this spec yet\n"));
    assert!(
        status::list(&[stale], Columns::default(), now()).contains("the controller has not looked at this spec yet")
    );
}

#[test]
fn a_package_that_nobody_has_looked_at_says_since_when_and_where_to_look() {
    let fresh = package("new", "1.0.0", &json!({"observedGeneration": -1}));
    let told = "has not looked at it yet, 10m after it was made";
    let detail = status::detail(&fresh, None, now());
    assert!(detail.contains(told) && detail.contains("kubectl get pods -A"), "{detail}");
    let why = why::write(&key("new"), &found(vec![fresh]), now());
    assert!(why.contains(told) && why.contains("kubectl get pods -A"), "{why}");
}

#[test]
fn wide_columns_come_last() {
    let columns = Columns { namespace: false, wide: true };
    insta::assert_snapshot!(status::list(&[upgrading()], columns, now()), @r"
    NAME   VERSION   READY     COMPONENTS     STATUS                                                                     AGE   WANTED   REVISION   ENGINE
    shop   1.0.0     Unknown   1/3 of 2.0.0   Progressing: component db: HelmRelease/shop-db: Running 'upgrade' action   10m   2.0.0    1          flux
    ");
}

fn waiting(name: &str, on: &str) -> Package {
    let status = json!({
        "observedGeneration": 3,
        "conditions": condition("False", "RequirementsNotMet", &format!("package {on} is required and is moving")),
        "blockedBy": [{"kind": "Package", "namespace": "packages", "name": on, "reason": "RequirementsNotMet"}],
    });
    package(name, "1.0.0", &status)
}

#[test]
fn the_chain_of_blockers_is_followed_to_its_root() {
    let mut found = found(vec![waiting("portal", "web"), waiting("web", "shop"), upgrading()]);
    let child = json!({
        "kind": "HelmRelease",
        "metadata": {
            "name": "shop-db", "namespace": "packages",
            "labels": {"windlass.dev/package": "shop", "windlass.dev/component": "db"},
        },
        "status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "UpgradeFailed", "message": "timed out\nwaiting"},
        ]},
    });
    found.children.push(child.as_object().cloned().unwrap());
    insta::assert_snapshot!(why::write(&key("portal"), &found, now()), @r"
    packages/portal is not ready for 2m: RequirementsNotMet
      package web is required and is moving
      packages/web is not ready for 2m: RequirementsNotMet
        package shop is required and is moving
        packages/shop is not ready for 2m: Progressing
          component db: HelmRelease/shop-db: Running 'upgrade' action
          component db is Progressing for 30s
            HelmRelease/shop-db: Ready is False (UpgradeFailed): timed out waiting
          To do: Nothing for now, unless something above cannot mend itself: it is waited for, bounded by upgrade.timeout.
    ");
}

#[test]
fn a_circle_of_blockers_ends() {
    let text = why::write(&key("a"), &found(vec![waiting("a", "b"), waiting("b", "a")]), now());
    assert!(text.contains("packages/a: see above"), "{text}");
}

#[test]
fn a_blocker_that_is_not_there_is_named() {
    let text = why::write(&key("a"), &found(vec![waiting("a", "gone")]), now());
    assert!(text.contains("packages/gone: there is no such Package"), "{text}");
}

#[test]
fn an_application_is_told_by_operation_sync_and_health() {
    let mut found = found(vec![upgrading()]);
    let child = json!({
        "kind": "Application",
        "metadata": {
            "name": "shop-db", "namespace": "packages",
            "labels": {"windlass.dev/package": "shop", "windlass.dev/component": "db"},
        },
        "status": {
            "operationState": {"phase": "Failed", "message": "one or more objects failed to apply"},
            "sync": {"status": "OutOfSync"}, "health": {"status": "Missing"},
            "conditions": [{"type": "ComparisonError", "message": "chart not found"}],
        },
    });
    found.children.push(child.as_object().cloned().unwrap());
    let text = why::write(&key("shop"), &found, now());
    for line in ["operation Failed: one or more", "sync OutOfSync, health Missing", "ComparisonError: chart not found"]
    {
        assert!(text.contains(&format!("Application/shop-db: {line}")), "{text}");
    }
}

fn application(status: Value) -> serde_json::Map<String, Value> {
    let child = json!({
        "kind": "Application",
        "metadata": {
            "name": "shop-db", "namespace": "packages",
            "labels": {"windlass.dev/package": "shop", "windlass.dev/component": "db"},
        },
        "status": status,
    });
    child.as_object().cloned().unwrap()
}

#[test]
fn what_stays_out_of_sync_is_named_and_does_not_go_on_by_itself() {
    let told = |phase: &str| {
        let mut found = found(vec![upgrading()]);
        found.children.push(application(json!({
            "operationState": {"phase": phase}, "sync": {"status": "OutOfSync"}, "health": {"status": "Healthy"},
            "resources": [{"kind": "StatefulSet", "namespace": "shop", "name": "db", "status": "OutOfSync"}],
        })));
        why::write(&key("shop"), &found, now())
    };
    let stays = told("Succeeded");
    assert!(stays.contains("Application/shop-db: is OutOfSync: StatefulSet/shop/db"), "{stays}");
    assert!(stays.contains("install.ignore") && !stays.contains("is waited for, bounded"), "{stays}");
    assert!(told("Running").contains("is waited for, bounded"));
}

#[test]
fn the_pod_that_a_release_waits_for_is_named() {
    let mut found = found(vec![upgrading()]);
    found.children.push(application(json!({"sync": {"status": "Synced"}, "health": {"status": "Progressing"}})));
    let object = json!({
        "kind": "Deployment", "metadata": {"name": "db", "namespace": "shop", "generation": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1},
    });
    let waiting = json!({"name": "db", "state": {"waiting": {"reason": "ImagePullBackOff"}}});
    let pod = json!({"metadata": {"name": "db-1"}, "status": {"phase": "Pending", "containerStatuses": [waiting]}});
    found.workloads.push(Workload {
        child: "Application/shop-db".into(),
        object: object.as_object().cloned().unwrap(),
        pods: vec![pod.as_object().cloned().unwrap()],
        ..Workload::default()
    });
    insta::assert_snapshot!(why::write(&key("shop"), &found, now()), @r"
    packages/shop is not ready for 2m: Progressing
      component db: HelmRelease/shop-db: Running 'upgrade' action
      component db is Progressing for 30s
        Application/shop-db: sync Synced, health Progressing
          Deployment/shop/db: 0 of 1 replicas are available
            pod db-1: container db: ImagePullBackOff
      To do: Nothing for now, unless something above cannot mend itself: it is waited for, bounded by upgrade.timeout.
    ");
}

/// A Package whose hook has failed, and its revision.
fn hook_failed() -> (Package, PackageRevision) {
    let message = "hook migrate failed, nothing else was changed: Job failed";
    let status = json!({
        "observedGeneration": 3, "version": "1.0.0", "revision": 1, "engine": "flux",
        "attempted": {"version": "2.0.0", "revision": 2}, "summary": format!("HookFailed: {message}"),
        "conditions": condition("False", "HookFailed", message),
        "components": [
            {"name": "db", "state": "Waiting", "version": "16.0.0"}, {"name": "web", "state": "Waiting", "version": "2.0.0"},
        ],
    });
    let hook = |name: &str| {
        json!({
            "name": name, "wave": 0, "digest": "v1:0", "chartVersion": "2.0.0", "hook": true,
            "release": {"storageNamespace": "packages", "namespace": "shop", "name": name},
        })
    };
    let revision = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "PackageRevision", "metadata": {"name": "shop-2"},
        "spec": {
            "package": "shop", "number": 2, "version": "2.0.0", "fromVersion": "1.0.0", "base": 1, "timeout": "1m",
            "retries": 0, "engine": "flux", "components": [hook("migrate"), hook("index")],
        },
        "status": {"phase": "Failed", "reason": "HookFailed", "hooks": [{
            "name": "migrate", "from": "1.0.0", "to": "2.0.0", "outcome": "Failed",
            "startedAt": "2026-01-01T00:07:00Z", "finishedAt": "2026-01-01T00:08:00Z",
        }]},
    });
    (package("shop", "2.0.0", &status), serde_json::from_value(revision).unwrap())
}

#[test]
fn hooks_are_shown_before_the_components_and_what_runs_meanwhile() {
    let (package, revision) = hook_failed();
    insta::assert_snapshot!(status::detail(&package, Some(&revision), now()), @r"
    Package:   packages/shop
    Wanted:    2.0.0
    Runs:      1.0.0 (revision 1)
    Attempted: 2.0.0 (revision 2)
    Engine:    flux

    Ready is False (HookFailed) for 2m:
      hook migrate failed, nothing else was changed: Job failed

    HOOK      STATE     FROM    TO      SINCE
    migrate   Failed    1.0.0   2.0.0   2m
    index     Waiting   1.0.0   2.0.0   -

    0 of 2 components run 2.0.0; what waits for its turn runs what 1.0.0 has installed:
    COMPONENT   STATE     CHART    SINCE       MESSAGE
    db          Waiting   16.0.0   <unknown>
    web         Waiting   2.0.0    <unknown>
    ");
    assert!(status::list(&[package], Columns::default(), now()).contains("0/2 of 2.0.0"));
}

#[test]
fn a_package_that_has_gone_back_counts_what_it_has_gone_back_to() {
    let (mut package, _) = hook_failed();
    let ready = package.status.as_mut().unwrap().conditions.first_mut().unwrap();
    ready.reason = "UpgradeRolledBack".to_owned();
    let shown = status::list(&[package], Columns::default(), now());
    assert!(shown.contains(" 0/2 ") && !shown.contains("of 2.0.0"), "{shown}");
}

#[test]
fn the_job_of_a_failed_hook_and_its_pod_are_named() {
    let (package, revision) = hook_failed();
    let mut found = found(vec![package]);
    found.revisions.insert(key("shop"), revision);
    let map = |value: Value| value.as_object().cloned().unwrap();
    found.children.push(map(json!({
        "kind": "HelmRelease",
        "metadata": {
            "name": "shop-migrate-2", "namespace": "packages",
            "labels": {"windlass.dev/package": "shop", "windlass.dev/component": "migrate"},
        },
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "failed"}]},
    })));
    let ended = json!({"name": "sql", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}});
    found.workloads.push(Workload {
        child: "HelmRelease/shop-migrate-2".into(),
        object: map(json!({
            "kind": "Job", "metadata": {"name": "migrate", "namespace": "shop"}, "spec": {},
            "status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}]},
        })),
        pods: vec![map(json!({
            "metadata": {"name": "migrate-x", "namespace": "shop"},
            "status": {"phase": "Failed", "containerStatuses": [ended]},
        }))],
        ..Workload::default()
    });
    insta::assert_snapshot!(why::write(&key("shop"), &found, now()), @r"
    packages/shop is not ready for 2m: HookFailed
      hook migrate failed, nothing else was changed: Job failed
      hook migrate is Failed for 2m
        HelmRelease/shop-migrate-2: Ready is False (InstallFailed): failed
          Job/shop/migrate: failed (BackoffLimitExceeded: limit)
            pod migrate-x: container sql ended with exit code 3 (Error)
            its logs: kubectl -n shop logs migrate-x
      To do: Read the logs of the hook, whose release is kept; then change the spec, or `windlass retry`.
    ");
}

#[rstest]
#[case(&Reason::ALL)]
fn every_reason_has_a_remedy(#[case] reasons: &&[Reason]) {
    for reason in *reasons {
        let remedy = remedy::remedy(*reason);
        assert!(remedy.ends_with('.') && remedy.len() > 10, "{reason}: {remedy}");
    }
}

#[test]
fn revisions_are_listed_with_what_they_did() {
    let revision = |number: u64, spec: Value, status: Value| -> PackageRevision {
        let mut whole = json!({
            "package": "shop", "number": number, "version": "1.0.0", "timeout": "1m", "retries": 0, "engine": "flux",
        });
        whole.as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "PackageRevision",
            "metadata": {"name": format!("shop-{number}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": whole, "status": status,
        }))
        .unwrap()
    };
    let revisions = [
        revision(
            2,
            json!({"version": "2.0.0", "fromVersion": "1.0.0", "rollback": {"safe": true, "to": ">=1.0"}}),
            json!({
                "phase": "RolledBack", "reason": "UpgradeRolledBack", "rollback": {"to": 1},
                "components": [{"name": "db", "moved": true}],
                "hooks": [{"name": "migrate", "from": "1.0.0", "to": "2.0.0", "outcome": "Succeeded"}],
            }),
        ),
        revision(1, json!({}), json!({"phase": "Succeeded", "reason": "Ready"})),
    ];
    insta::assert_snapshot!(history::write(&upgrading(), &revisions, false, now()), @r"
    REVISION   VERSION   FROM    PHASE               ROLLBACK        MOVED   HOOKS               AGE   REASON
    1 *        1.0.0     -       Succeeded           unsafe          -       -                   10m   Ready
    2          2.0.0     1.0.0   RolledBack (to 1)   safe to >=1.0   db      migrate:succeeded   10m   UpgradeRolledBack
    ");
    let wide = history::write(&upgrading(), &revisions, true, now());
    assert!(wide.lines().next().is_some_and(|line| line.ends_with("ENGINE   COMMIT")), "{wide}");
}

fn spec(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_difference_names_every_changed_field() {
    let live = spec(json!({"version": "1.0.0", "engine": "argo", "components": [
        {"name": "db", "chart": {"version": "1.0.0"}, "source": {"repoURL": "x"}, "values": {"a": 1, "b": [1]}},
        {"name": "old", "path": "old"},
    ]}));
    let wanted = spec(json!({"version": "2.0.0", "components": [
        {"name": "db", "chart": {"version": "2.0.0"}, "values": {"a": 1, "b": [1, 2]}}, {"name": "new", "path": "new"},
    ]}));
    insta::assert_snapshot!(diff::write("packages/shop", Some(&live), &wanted), @r#"
    packages/shop:
      ~ version: "1.0.0" -> "2.0.0"
      ~ components.db.chart.version: "1.0.0" -> "2.0.0"
      ~ components.db.values.b: [1] -> [1,2]
      - components.old: {"name":"old","path":"old"}
      + components.new: {"name":"new","path":"new"}
    "#);
}

#[test]
fn values_are_shown_whatever_they_are_called() {
    let with = |values: Value| spec(json!({"components": [{"name": "db", "values": values}]}));
    let live = with(json!({"engine": "x", "source": "y", "size": 1}));
    insta::assert_snapshot!(diff::write("packages/shop", Some(&live), &with(json!({"size": 1}))), @r#"
    packages/shop:
      - components.db.values.engine: "x"
      - components.db.values.source: "y"
    "#);
}

#[test]
fn what_is_the_same_is_not_mentioned() {
    let live = spec(json!({"version": "1.0.0", "engine": "argo", "components": []}));
    let wanted = spec(json!({"version": "1.0.0", "components": []}));
    assert_eq!(diff::write("packages/shop", Some(&live), &wanted), "");
    assert_eq!(diff::write("packages/shop", None, &wanted), "packages/shop: not in the cluster\n");
}
