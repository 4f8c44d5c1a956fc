//! Components on Flux.

use rstest::rstest;
use serde_json::{Value, json};
use windlass::api::Engine;
use windlass::engine::{
    CanaryGuard, Commit, FluxTarget, GitOrigin, HookRun, Manifest, Owner, PathPin, RenderError, Target, preparation,
    render,
};
use windlass::package::version::Version;

use super::support::{at, definition, fixed_digest, flux, release, rendered, single, text};

fn one(component: Value) -> Manifest {
    release(&single(component), Engine::Flux)
}

#[test]
fn a_chart_of_a_repository_brings_its_sources_first() {
    let package = definition(json!({
        "version": "1.9.0",
        "serviceAccountName": "kubevirt",
        "upgrade": {"timeout": "15m"},
        "components": [{
            "name": "operator",
            "chart": {"repository": "https://charts.example.org", "name": "kubevirt-operator", "version": "1.9.0",
                      "secretRef": {"name": "login"}},
            "values": {"replicas": 2},
            "valuesFrom": [{"kind": "Secret", "name": "password", "targetPath": "a.b", "optional": true}],
            "install": {"namespace": "kubevirt", "privileged": true,
                        "healthCheckExprs": [{"apiVersion": "example.org/v1", "kind": "Thing", "current": "status.ok"}],
                        "ignore": [{"group": "apps", "kind": "Deployment", "name": "a.b", "jsonPointers": ["/spec/replicas"]}]},
        }],
    }));
    let objects = rendered(&package, Engine::Flux, None).unwrap().into_objects();
    insta::assert_snapshot!(text(objects));
}

#[test]
fn an_oci_chart_is_one_source() {
    let chart = json!({"repository": "oci://registry.example.org/charts/", "name": "one", "version": "1.0.0+b.1"});
    let objects = rendered(&single(json!({"chart": chart})), Engine::Flux, None).unwrap().into_objects();
    insta::assert_snapshot!(text(objects));
}

#[test]
fn an_oci_chart_with_a_digest_is_pinned_by_it() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let chart =
        json!({"repository": "oci://registry.example.org/charts", "name": "one", "version": "1.0.0", "digest": digest});
    let objects = rendered(&single(json!({"chart": chart})), Engine::Flux, None).unwrap().before;
    assert_eq!(at(&objects[0], "spec.ref"), json!({"digest": digest}));
}

#[test]
fn equal_sources_have_equal_names_and_bytes_in_every_package() {
    let mut first = single(json!({}));
    let second = single(json!({"values": {"a": 1}, "install": {"namespace": "other"}}));
    first.upgrade.retries = 7;
    let sources = |package| rendered(package, Engine::Flux, None).unwrap().before;
    assert_eq!(sources(&first), sources(&second));
}

#[rstest]
#[case::version(json!({"repository": "https://charts.example.org", "name": "one", "version": "1.0.1"}))]
#[case::name(json!({"repository": "https://charts.example.org", "name": "two", "version": "1.0.0"}))]
#[case::repository(json!({"repository": "https://other.example.org", "name": "one", "version": "1.0.0"}))]
#[case::secret(json!({"repository": "https://charts.example.org", "name": "one", "version": "1.0.0", "secretRef": {"name": "s"}}))]
#[case::oci(json!({"repository": "oci://charts.example.org", "name": "one", "version": "1.0.0"}))]
fn another_chart_is_another_source(#[case] chart: Value) {
    assert_ne!(at(&one(json!({"chart": chart})), "spec.chartRef"), at(&one(json!({})), "spec.chartRef"));
}

fn path_package() -> windlass::package::definition::Definition {
    single(json!({"path": "charts/one", "chartVersion": "1.0.0", "valuesFiles": ["values-big.yaml", "values.yaml"]}))
}

#[test]
fn before_the_commit_is_known_a_path_chart_is_only_followed() {
    let package = path_package();
    let digest = fixed_digest();
    insta::assert_snapshot!(text(preparation(&package.components[0], &flux(&package, &digest)).unwrap()));
}

#[test]
fn once_the_commit_is_known_a_path_chart_is_pinned_to_it() {
    let package = path_package();
    let digest = fixed_digest();
    let live = json!({"url": "https://git.example.org/packages", "ref": {"branch": "main"}, "interval": "1m",
                      "suspend": true, "secretRef": {"name": "git"}, "ignore": "/*\n"});
    let origin = GitOrigin::from_spec(live.as_object().unwrap()).unwrap();
    let commit = Commit::parse(&format!("main@sha1:{}", "c".repeat(40))).unwrap();
    let mut context = flux(&package, &digest);
    context.target =
        Target::Flux(FluxTarget { path_pin: PathPin::Commit { origin: &origin, commit: &commit }, depends_on: &[] });
    let objects = render(&package.components[0], &context).unwrap().into_objects();
    insta::assert_snapshot!(text(objects));
}

#[test]
fn a_chart_at_the_root_of_the_source_has_paths_without_gaps() {
    let package = single(json!({"path": ".", "chartVersion": "1.0.0", "valuesFiles": ["big.yaml"]}));
    let objects = rendered(&package, Engine::Flux, None).unwrap().before;
    assert_eq!(at(&objects[0], "spec.chart"), "./");
    assert_eq!(at(&objects[0], "spec.valuesFiles"), json!(["./values.yaml", "./big.yaml"]));
}

#[rstest]
#[case::bare("0123456789012345678901234567890123456789", true)]
#[case::branch("main@sha1:0123456789012345678901234567890123456789", true)]
#[case::tag("v1.0.0@sha1:0123456789012345678901234567890123456789", true)]
#[case::sha256("sha256:0123456789012345678901234567890123456789012345678901234567890123", true)]
#[case::branch_only("main", false)]
#[case::short("main@sha1:0123456", false)]
#[case::upper("0123456789012345678901234567890123456ABC", false)]
fn commits_are_read_from_the_revision_of_an_artifact(#[case] text: &str, #[case] is_commit: bool) {
    assert_eq!(Commit::parse(text).is_some(), is_commit);
}

#[test]
fn a_path_needs_a_source() {
    let mut package = path_package();
    package.source = None;
    let error = rendered(&package, Engine::Flux, None).unwrap_err();
    assert_eq!(error, RenderError::NoSourceRef { component: "one".into() });
}

fn hook_package() -> windlass::package::definition::Definition {
    single(json!({"install": {"phase": "PreUpgrade"},
                  "values": {"kubepkg": {"keep": 1, "toVersion": "mine"}, "windlass": "mine", "other": true}}))
}

#[test]
fn a_hook_runs_once_and_is_told_the_versions() {
    let [from, to] = ["v1.0.0", "1.1.0"].map(|text| Version::parse(text).unwrap());
    let run = HookRun { number: 7, from: &from, to: &to, migrated_to: None };
    let objects = rendered(&hook_package(), Engine::Flux, Some(run)).unwrap().into_objects();
    insta::assert_snapshot!(text(objects));
}

#[test]
fn a_hook_is_told_what_was_migrated_already() {
    let [from, mid, to] = ["1.0.0", "1.1.0", "1.2.0"].map(|text| Version::parse(text).unwrap());
    let run = HookRun { number: 8, from: &from, to: &to, migrated_to: Some(&mid) };
    let release = rendered(&hook_package(), Engine::Flux, Some(run)).unwrap().release;
    let told = json!({"fromVersion": "1.0.0", "toVersion": "1.2.0", "migratedTo": "1.1.0"});
    assert_eq!(at(&release, "spec.values.windlass"), told);
}

#[test]
fn a_hook_is_never_rendered_without_its_run_nor_a_component_with_one() {
    let version = Version::parse("1.0.0").unwrap();
    let run = HookRun { number: 1, from: &version, to: &version, migrated_to: None };
    let mismatch = RenderError::HookMismatch { component: "one".into() };
    assert_eq!(rendered(&hook_package(), Engine::Flux, None).unwrap_err(), mismatch);
    assert_eq!(rendered(&single(json!({})), Engine::Flux, Some(run)).unwrap_err(), mismatch);
}

fn canaried(guard: CanaryGuard, canary: Value) -> Manifest {
    let package = single(json!({"canary": canary}));
    let digest = fixed_digest();
    let mut context = flux(&package, &digest);
    context.guard = guard;
    render(&package.components[0], &context).unwrap().release
}

#[test]
fn a_canary_pins_the_budget_ignores_its_drift_and_does_not_hold_a_worker() {
    let release = canaried(CanaryGuard::Rendered, json!({"daemonSets": ["node.agent", "net"]}));
    insta::assert_snapshot!(text(vec![release]));
}

#[test]
fn where_the_api_server_guards_the_first_step_nothing_is_patched() {
    let release = canaried(CanaryGuard::Admission, json!({}));
    let patches = at(&release, "spec.postRenderers").to_string();
    assert!(!patches.contains("DaemonSet"), "{patches}");
    let ignore = json!([{"paths": ["/spec/updateStrategy"], "target": {"group": "apps", "kind": "DaemonSet"}}]);
    assert_eq!(at(&release, "spec.driftDetection.ignore"), ignore);
}

#[test]
fn data_is_kept_unless_its_deletion_is_asked_for() {
    assert_eq!(at(&one(json!({"install": {"deleteData": true}})), "spec.postRenderers"), Value::Null);
    assert_eq!(at(&one(json!({})), "spec.postRenderers")[0]["kustomize"]["patches"].as_array().unwrap().len(), 2);
}

#[rstest]
#[case::same_namespace(json!({}), Value::Null)]
#[case::other_namespace(json!({"namespace": "other"}), json!(true))]
#[case::privileged(json!({"namespace": "other", "privileged": true}), Value::Null)]
fn only_a_namespace_that_nobody_else_makes_is_created(#[case] install: Value, #[case] created: Value) {
    assert_eq!(at(&one(json!({"install": install})), "spec.install.createNamespace"), created);
}

#[rstest]
#[case::default(json!({}), "CreateReplace")]
#[case::skip(json!({"upgradeCRDs": "Skip"}), "Skip")]
#[case::create(json!({"upgradeCRDs": "Create"}), "Create")]
fn crds_are_always_installed_and_upgraded_as_told(#[case] install: Value, #[case] policy: &str) {
    let release = one(json!({"install": install}));
    assert_eq!(at(&release, "spec.install.crds"), "CreateReplace");
    assert_eq!(at(&release, "spec.upgrade.crds"), policy);
}

#[test]
fn what_git_owns_is_not_marked_as_managed_by_us() {
    let package = single(json!({}));
    let digest = fixed_digest();
    let mut context = flux(&package, &digest);
    context.owner = Owner::Git;
    for object in render(&package.components[0], &context).unwrap().into_objects() {
        assert_eq!(at(&object, "metadata.labels").get("app.kubernetes.io/managed-by"), None);
    }
}

#[test]
fn long_names_are_shortened() {
    let mut package = single(json!({"name": "c".repeat(53)}));
    package.name = windlass::package::names::PackageName::parse(&"p".repeat(63)).unwrap();
    let name = release(&package, Engine::Flux).name().to_owned();
    assert_eq!(name.len(), 63);
}
