//! What a Package may try that is not its own: each attempt, and that it comes to
//! nothing. What the API server refuses by the rules of the CRD, such as paths for
//! kinds and names, is tried in `tests/bad_input.rs` and the end-to-end tests.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::sim::chart::{Outcome, Script};
use windlass::sim::guard::Policy;
use windlass::sim::store::Expected;
use windlass::sim::{Key, Verb};

use crate::play::{NAMESPACE, Play, at, component, package};

/// Everything that Windlass wrote outside of the Package's namespace.
fn written_elsewhere(play: &Play) -> Vec<&Key> {
    let written = play.changes_since(0).filter(|change| change.actor == "windlass" && change.verb != Verb::Deleted);
    written.map(|change| change.key.as_ref()).filter(|key| key.namespace != NAMESPACE).collect()
}

fn with(pointer: &str, value: Value) -> Value {
    let mut spec = package("1.0.0", vec![component("a", "1.0.0", &[])]);
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[field] = value;
    spec
}

#[rstest]
#[case::component_named_like_a_path("/components/0/name", json!("../../kube-system/a"))]
#[case::component_named_like_two_objects("/components/0/name", json!("a\n---\nkind: Secret"))]
#[case::component_named_like_an_expression("/components/0/name", json!("a' || true"))]
#[case::release_named_like_a_path("/components/0/install/releaseName", json!("../a"))]
#[case::namespace_named_like_a_path("/components/0/install/namespace", json!("../kube-system"))]
#[case::namespace_of_a_template("/components/0/install/namespace", json!("{{ .Release.Namespace }}"))]
#[case::account_of_another_namespace("/serviceAccountName", json!("kube-system:admin"))]
#[case::account_named_like_a_user("/serviceAccountName", json!("system:admin"))]
#[case::repository_on_disk("/components/0/chart/repository", json!("file:///var/run/secrets"))]
#[case::repository_with_credentials("/components/0/chart/repository", json!("https://u:p@charts.example.org"))]
#[case::secret_of_another_namespace("/components/0/chart/secretRef", json!({"name": "kube-system/token"}))]
#[case::values_of_another_namespace("/components/0/valuesFrom", json!([{"kind": "Secret", "name": "kube-system/token"}]))]
#[case::values_file_outside("/components/0/valuesFiles", json!(["../../etc/passwd"]))]
#[case::daemon_set_of_another_namespace("/components/0/canary", json!({"daemonSets": ["kube-system/kube-proxy"]}))]
#[case::required_package_of_another_namespace("/requires", json!([{"package": "elsewhere/db"}]))]
#[case::endless_expression(
    "/components/0/install/readyWhen",
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "expr": "object.a".repeat(20_000)}])
)]
#[case::deep_expression(
    "/components/0/install/readyWhen",
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "expr": format!("{}true{}", "(".repeat(1000), ")".repeat(1000))}])
)]
fn what_leads_elsewhere_is_refused_and_nothing_is_written(#[case] pointer: &str, #[case] value: Value) {
    let mut play = Play::new(Engine::Flux, Script::default());
    play.commit("app", with(pointer, value));
    play.until("app", "InvalidSpec");
    play.rehearsal.run_for(60_000);
    assert_eq!(play.moves_since(0), Vec::<String>::new());
    assert_eq!(written_elsewhere(&play), Vec::<&Key>::new());
}

/// Values are the chart's: nobody on the way takes them for a template.
#[rstest]
#[case::shell("${HOME} $(id) `id`")]
#[case::go("{{ lookup \"v1\" \"Secret\" \"kube-system\" \"token\" }}")]
#[case::yaml("!!python/object:os.system id")]
fn values_are_carried_and_not_evaluated(#[case] text: &str, #[values(Engine::Flux, Engine::Argo)] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    play.commit("app", with("/components/0/values", json!({"text": text})));
    play.until_ready("app");
    let child = play.object(&play.child("app", "a")).unwrap();
    let place = if engine == Engine::Flux { "/spec/values/text" } else { "/spec/source/helm/valuesObject/text" };
    assert_eq!(at(child, place), text);
    assert_eq!(written_elsewhere(&play), Vec::<&Key>::new());
}

/// `a` with component `b-c` and `a-b` with component `c` would have one child.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_child_of_another_package_is_not_taken_by_its_name(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let named = |component_name: &str, release: &str| {
        let mut component = component(component_name, "1.0.0", &[]);
        component["install"]["releaseName"] = json!(release);
        package("1.0.0", vec![component])
    };
    play.commit("a", named("b-c", "first"));
    play.until_ready("a");
    play.commit("a-b", named("c", "second"));
    play.until("a-b", "Conflict");
    play.rehearsal.run_for(600_000);
    assert_eq!(play.reason("a"), "Ready");
    assert!(play.runs("first").is_some() && play.runs("second").is_none());
}

/// The annotation that gives a release away is worth something only on an object
/// of the Package's own namespace.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_release_object_of_another_namespace_is_not_taken_over(#[case] engine: Engine) {
    let mut play = Play::new(engine, Script::default());
    let child = play.child("app", "a");
    let theirs = Key { namespace: "elsewhere".into(), ..child };
    play.apply(&json!({
        "apiVersion": theirs.api_version, "kind": theirs.kind,
        "metadata": {
            "name": theirs.name, "namespace": theirs.namespace,
            "annotations": {"windlass.dev/adopt": format!("{NAMESPACE}/app/a")},
        },
        "spec": {"suspend": true},
    }));
    play.commit("app", package("1.0.0", vec![component("a", "1.0.0", &[])]));
    play.until_ready("app");
    assert_eq!(written_elsewhere(&play), Vec::<&Key>::new());
}

/// A DaemonSet of another namespace, whose upgrades would be Windlass's to steer: what a
/// release has is said by the release object, which whoever may write there can forge.
#[rstest]
#[case::flux_does_not_say(Engine::Flux, None)]
#[case::flux_is_made_to_say(Engine::Flux, Some(json!({"inventory": {"entries": [{"id": "theirs_agent_apps_DaemonSet", "v": "v1"}]}})))]
#[case::argo_is_made_to_say(Engine::Argo, Some(json!({"resources": [
    {"group": "apps", "version": "v1", "kind": "DaemonSet", "namespace": "theirs", "name": "agent"}]})))]
fn a_daemon_set_of_somebody_else_is_neither_labelled_nor_steered(
    #[case] engine: Engine,
    #[case] forged: Option<Value>,
    #[values(false, true)] deleted: bool,
) {
    let mut script = Script::default();
    script.behave("mine", "1.0.0", Outcome::Fails, 1000);
    let mut play = Play::new(engine, script);
    play.rehearsal.world.store.policies.insert(Policy::Strict);
    for node in ["n1", "n2", "n3"] {
        play.rehearsal.world.add_node(node);
    }
    let pods = json!({"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "main", "image": "agent:1"}]}});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "30%"}});
    play.apply(&json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "theirs"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": pods, "updateStrategy": strategy},
    }));
    let mut mine = component("mine", "1.0.0", &[]);
    mine["install"]["namespace"] = json!("theirs");
    mine["canary"] = json!({"daemonSets": ["agent"], "soak": "1s"});
    play.commit("app", package("1.0.0", vec![mine]));
    for _ in 0..20 {
        play.rehearsal.run_for(10_000);
        if let Some(forged) = &forged {
            let child = play.child("app", "mine");
            let forge = |release: &mut serde_json::Map<String, Value>| {
                let status = release.entry("status").or_insert_with(|| json!({}));
                status.as_object_mut().unwrap().extend(forged.as_object().unwrap().clone());
            };
            play.rehearsal.world.store.edit("user", &child, &Expected::default(), forge).unwrap();
        }
    }
    if deleted {
        play.delete("app");
        play.rehearsal.run_for(60_000);
    }
    assert_eq!(written_elsewhere(&play), Vec::<&Key>::new(), "{}", play.tell());
}
