//! Components on Argo CD.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::engine::{CanaryGuard, Destination, HookRun, Manifest, RenderError, preparation, render};
use windlass::package::version::Version;

use super::support::{argo, at, definition, fixed_digest, release, rendered, single, text};

fn one(component: Value) -> Manifest {
    release(&single(component), Engine::Argo)
}

#[test]
fn a_component_is_one_application() {
    let package = definition(json!({
        "version": "1.9.0",
        "serviceAccountName": "kubevirt",
        "components": [{
            "name": "operator",
            "chart": {"repository": "https://charts.example.org", "name": "kubevirt-operator", "version": "1.9.0"},
            "values": {"replicas": 2, "empty": {}, "nothing": null, "list": []},
            "install": {"namespace": "kubevirt", "privileged": true, "upgradeCRDs": "Skip",
                        "ignore": [{"group": "apps", "kind": "Deployment", "name": "a.b", "jsonPointers": ["/spec/replicas"]},
                                   {"group": "", "kind": "Secret", "namespace": "kubevirt", "jsonPointers": ["/data"]}]},
        }],
    }));
    insta::assert_snapshot!(text(rendered(&package, Engine::Argo, None).unwrap().into_objects()));
}

#[test]
fn a_path_is_taken_from_its_commit() {
    let source =
        json!({"repoURL": "https://git.example.org/packages", "revision": "c".repeat(40), "contentDigest": "sha256:1"});
    let package = single(json!({"path": "charts/one", "valuesFiles": ["$ref/values-big.yaml"], "source": source}));
    insta::assert_snapshot!(text(rendered(&package, Engine::Argo, None).unwrap().into_objects()));
}

#[test]
fn an_oci_registry_is_named_without_its_scheme() {
    let chart = json!({"repository": "oci://registry.example.org/charts/", "name": "one", "version": "1.0.0"});
    let release = one(json!({"chart": chart}));
    assert_eq!(at(&release, "spec.source.repoURL"), "registry.example.org/charts");
    assert_eq!(at(&release, "spec.source.chart"), "one");
}

#[test]
fn a_path_without_a_source_is_refused() {
    let package = single(json!({"path": "charts/one", "chartVersion": "1.0.0"}));
    let error = rendered(&package, Engine::Argo, None).unwrap_err();
    assert_eq!(error, RenderError::NoSource { component: "one".into() });
}

#[rstest]
#[case::values_from(json!({"valuesFrom": [{"kind": "Secret", "name": "s"}]}), "valuesFrom")]
#[case::create(json!({"install": {"upgradeCRDs": "Create"}}), "upgradeCRDs Create")]
#[case::digest(
    json!({"chart": {"repository": "https://charts.example.org", "name": "one", "version": "1.0.0",
                     "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000"}}),
    "chart.digest"
)]
fn what_argo_cannot_do_is_refused(#[case] component: Value, #[case] what: &'static str) {
    let error = rendered(&single(component), Engine::Argo, None).unwrap_err();
    assert_eq!(error, RenderError::NotOnArgo { component: "one".into(), what });
}

#[test]
fn nothing_is_prepared() {
    let package = single(json!({}));
    let (digest, destination) = (fixed_digest(), Destination::in_cluster());
    assert_eq!(preparation(&package.components[0], &argo(&package, &digest, &destination)).unwrap(), []);
}

#[test]
fn project_and_destination_come_from_configuration() {
    let package = single(json!({}));
    let (digest, destination) = (fixed_digest(), Destination::Name("edge".into()));
    let release = render(&package.components[0], &argo(&package, &digest, &destination)).unwrap().release;
    assert_eq!(at(&release, "spec.destination"), json!({"name": "edge", "namespace": "packages"}));
    assert_eq!(at(&release, "spec.project"), "default");
}

#[test]
fn a_hook_is_never_run_by_argo_itself() {
    let version = Version::parse("1.0.0").unwrap();
    let run = HookRun { number: 2, from: &version, to: &version, migrated_to: None };
    let package = single(json!({"install": {"phase": "PreUpgrade"}}));
    let release = rendered(&package, Engine::Argo, Some(run)).unwrap().release;
    assert_eq!(at(&release, "spec.syncPolicy.automated"), Value::Null);
    assert_eq!(at(&release, "metadata.finalizers"), json!(["resources-finalizer.argocd.argoproj.io"]));
    assert_eq!(at(&release, "spec.source.helm.valuesObject.kubepkg.toVersion"), "1.0.0");
}

#[rstest]
#[case::guarded_by_the_api_server(CanaryGuard::Admission, false)]
#[case::guarded_by_what_is_rendered(CanaryGuard::Rendered, true)]
fn a_canary_keeps_the_live_budget_where_nothing_else_does(#[case] guard: CanaryGuard, #[case] kept: bool) {
    let package = single(json!({"canary": {"daemonSets": ["agent"]}}));
    let (digest, destination) = (fixed_digest(), Destination::in_cluster());
    let mut context = argo(&package, &digest, &destination);
    context.guard = guard;
    let release = render(&package.components[0], &context).unwrap().release;
    let ignore =
        json!([{"group": "apps", "kind": "DaemonSet", "name": "agent", "jsonPointers": ["/spec/updateStrategy"]}]);
    assert_eq!(at(&release, "spec.ignoreDifferences"), ignore);
    let options = at(&release, "spec.syncPolicy.syncOptions").to_string();
    assert_eq!(options.contains("RespectIgnoreDifferences"), kept);
}

/// Argo CD removes zero values from what it stores, and whoever applied them
/// then sees a difference for ever.
#[test]
fn no_zero_value_is_ever_stated_outside_of_values() {
    fn zero_values(value: &Value, at: &str, found: &mut Vec<String>) {
        let zero = match value {
            Value::Null | Value::Bool(false) => true,
            Value::Bool(true) => false,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
        };
        if zero {
            found.push(at.to_owned());
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| zero_values(item, &format!("{at}[]"), found)),
            Value::Object(map) => map
                .iter()
                .filter(|(key, _)| *key != "valuesObject")
                .for_each(|(key, value)| zero_values(value, &format!("{at}.{key}"), found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let source = json!({"repoURL": "https://git.example.org/packages", "revision": "main"});
    let components = [
        json!({}),
        json!({"values": {}}),
        json!({"canary": {}, "install": {"privileged": true, "ignore": [{"group": "", "kind": "Secret", "jsonPointers": ["/data"]}]}}),
        json!({"path": ".", "chartVersion": "1.0.0", "source": source}),
    ];
    for component in components {
        let mut found = Vec::new();
        zero_values(&Value::from(one(component.clone())), "", &mut found);
        assert_eq!(found, Vec::<String>::new(), "{component}");
    }
}
