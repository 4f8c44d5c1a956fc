//! DaemonSets that Windlass lets go: whatever happens, none is left under the guard, and
//! none goes on unjudged.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::Engine;
use windlass::canary::Sight;
use windlass::sim::Key;
use windlass::sim::chart::Outcome;
use windlass::sim::guard::Policy;
use windlass::sim::store::Expected;

use crate::canaries::{NODES, agents, budgets, images, installed, key, most_down, script};
use crate::play::{NAMESPACE, Play, at, component, package, package_key};

fn label(play: &Play) -> Option<String> {
    at(play.object(&key()).unwrap(), "/metadata/labels/windlass.dev~1canary").as_str().map(str::to_owned)
}

fn orphan(play: &mut Play) {
    play.patch(&package_key("app"), json!({"spec": {"deletionPolicy": "Orphan"}}));
    play.delete("app");
}

/// The guard is there until the template has come: it is what keeps the first step small.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_canary_that_goes_with_a_new_version_keeps_the_first_step_small(#[case] engine: Engine) {
    let mut play = installed(engine, &[Policy::Strict], script(), json!({}));
    play.rehearsal.run_for(60_000);
    let position = play.position();
    play.commit("app", package("2.0.0", vec![component("agent", "2.0.0", &[])]));
    play.until_ready("app");
    assert_eq!(label(&play), None);
    assert!(budgets(&play, position).starts_with(&["frozen".into(), "1".into()]), "{}", play.tell());
    // From then on Argo CD wants the chart's own budget.
    assert!(engine == Engine::Argo || most_down(&play, position) == 1, "{}", play.tell());
    assert_eq!(images(&play), vec!["agent:2.0.0"; NODES]);
}

/// What a revision does not have any more runs until that has ended well.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_component_that_was_removed_and_still_runs_is_let_go_with_its_package(#[case] engine: Engine) {
    let mut play = installed(engine, &[Policy::Strict], script(), json!({}));
    play.rehearsal.world.script.behave("after", "2.0.0", Outcome::Hangs, 1000);
    play.commit("app", package("2.0.0", vec![component("after", "2.0.0", &[])]));
    play.rehearsal.run_for(60_000);
    assert_eq!(label(&play).as_deref(), Some("strict"));
    orphan(&mut play);
    play.until_gone("app");
    assert_eq!(label(&play), None, "{}", play.tell());
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_daemon_set_that_an_uninstall_keeps_is_let_go(#[case] engine: Engine) {
    let mut play = installed(engine, &[Policy::Strict], script(), json!({}));
    play.patch(&key(), json!({"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}));
    play.rehearsal.run_for(60_000);
    play.delete("app");
    play.until_gone("app");
    assert_eq!(label(&play), None, "{}", play.tell());
}

/// Nobody judges it any more: what it may cost at once is not what a judged one may.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn what_is_let_go_in_the_middle_of_its_rollout_goes_on_one_pod_at_a_time(#[case] engine: Engine) {
    let canary = json!({"steps": ["50%"], "soak": "5s"});
    let mut play = installed(engine, &[Policy::Strict], script(), canary.clone());
    let position = play.position();
    play.commit("app", agents("2.0.0", canary));
    let is_raised = |object: &Map<String, Value>| {
        at(object, "/spec/updateStrategy/rollingUpdate/maxUnavailable") == "50%"
            && at(object, "/spec/updateStrategy/type") == "RollingUpdate"
    };
    let raised =
        play.rehearsal.run_until(600_000, |rehearsal| rehearsal.world.store.get(&key()).is_some_and(|o| is_raised(o)));
    assert!(raised, "{:?}", budgets(&play, position));
    orphan(&mut play);
    play.until_gone("app");
    assert_eq!(label(&play), None, "{}", play.tell());
    assert_eq!(budgets(&play, position).last().map(String::as_str), Some("1"), "{}", play.tell());
}

/// Its namespace takes the release along, and nobody would lift a freeze elsewhere.
#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_daemon_set_elsewhere_is_let_go_when_the_namespace_of_its_package_goes(#[case] engine: Engine) {
    let mut script = script();
    script.charts.get_mut("agent").unwrap()[0].namespace = Some("elsewhere".into());
    let mut play = installed(engine, &[Policy::Strict], script, json!({}));
    play.rehearsal.run_for(60_000);
    let elsewhere = Key::new("apps/v1", "DaemonSet", "elsewhere", "agent");
    let label = |play: &Play| at(play.object(&elsewhere).unwrap(), "/metadata/labels/windlass.dev~1canary").clone();
    assert_eq!(label(&play), "strict");
    let metadata = json!({"name": NAMESPACE, "finalizers": ["kubernetes"]});
    play.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
    play.rehearsal
        .world
        .store
        .delete("user", &Key::new("v1", "Namespace", "", NAMESPACE), &Expected::default())
        .unwrap();
    play.delete("app");
    play.until_gone("app");
    assert_eq!(label(&play), Value::Null, "{}", play.tell());
}

/// Its rights went with it, in one directory: nobody could lift the guard later.
#[test]
fn a_daemon_set_that_may_not_be_read_any_more_is_waited_for() {
    let mut play = installed(Engine::Flux, &[Policy::Strict], script(), json!({}));
    play.rehearsal.faults.distortion = Some(|snapshot| {
        snapshot.daemon_sets.values_mut().for_each(|sight| *sight = Sight::Denied("grant it".into()));
    });
    orphan(&mut play);
    play.rehearsal.run_for(600_000);
    assert!(play.message("app").contains("grant it"), "{}", play.message("app"));
    let blocked = play.status("app").blocked_by;
    assert_eq!((blocked[0].kind.as_str(), blocked[0].name.as_str()), ("DaemonSet", "agent"));
    play.annotate("app", "windlass.dev/force-delete", "true");
    play.until_gone("app");
}

/// A package that is being deleted may wait for hours for those that require it.
#[test]
fn a_rollout_stands_still_while_its_package_waits_to_be_deleted() {
    let canary = json!({"mode": "Compat", "steps": ["1"], "soak": "5s"});
    let mut play = installed(Engine::Flux, &[Policy::Compat], script(), canary.clone());
    let mut requirer = package("1.0.0", vec![component("other", "1.0.0", &[])]);
    requirer["requires"] = json!([{"package": "app", "version": ">=1.0.0"}]);
    play.commit("requirer", requirer);
    play.until_ready("requirer");
    play.commit("app", agents("2.0.0", canary));
    play.rehearsal.run_for(15_000);
    play.delete("app");
    play.rehearsal.run_for(10_000);
    let old = |play: &Play| images(play).iter().filter(|image| *image == "agent:1.0.0").count();
    let left = old(&play);
    assert!(left > 0 && left < NODES, "{left}");
    play.rehearsal.run_for(600_000);
    assert_eq!(old(&play), left, "{}", play.tell());
    assert!(play.message("app").contains("required by"), "{}", play.message("app"));
}
