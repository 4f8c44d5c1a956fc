//! `windlass plugin` as Argo CD runs it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

const PACKAGE: &str = "\
apiVersion: windlass.dev/v1alpha1
kind: Package
metadata:
  name: app
  namespace: somewhere
spec:
  version: 1.0.0
  components:
  - name: one
    chart: {repository: https://charts.example.org, name: one, version: 1.0.0}
  - name: two
    path: charts/two
    install: {dependsOn: [one]}
";
const CHART: (&str, &str) = ("charts/two/Chart.yaml", "apiVersion: v2\nname: two\nversion: 2.0.0\n");
const CONFIG_MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {on: 'yes', number: '012', lines: \"a\\nb\\n\"}
";
const OTHER_ENGINE: &str = "\
apiVersion: windlass.dev/v1alpha1
kind: Package
metadata: {name: other}
spec: {version: 1.0.0, engine: flux}
";
const COMMIT: &str = "0123456789012345678901234567890123456789";

fn files(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

/// Runs `generate` the way Argo CD does: in the application's directory, with
/// nothing of our own environment but what it sets.
fn generate(directory: &Path, variables: &[(&str, &str)]) -> Assert {
    let mut command = Command::cargo_bin("windlass").unwrap();
    command.env_clear().args(["plugin", "generate"]).current_dir(directory);
    command.envs([
        ("ARGOCD_APP_NAME", "packages"),
        ("ARGOCD_APP_NAMESPACE", "packages"),
        ("ARGOCD_APP_PROJECT_NAME", "platform"),
        ("ARGOCD_APP_REVISION", COMMIT),
        ("ARGOCD_APP_SOURCE_REPO_URL", "https://git.example.org/platform.git"),
        ("ARGOCD_APP_SOURCE_PATH", "clusters/prod"),
        ("ARGOCD_APP_SOURCE_TARGET_REVISION", "main"),
        ("KUBE_VERSION", "1.33.4"),
        ("KUBE_API_VERSIONS", "v1,apps/v1"),
        ("PARAM_OUTPUT", "ignored"),
    ]);
    command.envs(variables.iter().copied()).assert()
}

fn parameters(parameters: &[(&str, &str)]) -> String {
    let list: Vec<Value> =
        parameters.iter().map(|(name, text)| serde_json::json!({"name": name, "string": text})).collect();
    Value::from(list).to_string()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// The answer's documents, parsed by another reader than the one under test.
fn objects(assert: &Assert) -> Vec<Value> {
    serde_saphyr::from_multiple(&stdout(assert)).unwrap()
}

fn repository() -> TempDir {
    files(&[("clusters/prod/app.yaml", PACKAGE), ("clusters/prod/b.yaml", CONFIG_MAP), CHART])
}

#[test]
fn packages_are_compiled_and_the_rest_passes_through() {
    let directory = repository();
    let answer = generate(&directory.path().join("clusters/prod"), &[]).success();
    insta::assert_snapshot!(stdout(&answer));
    assert!(stderr(&answer).starts_with("windlass: 2 manifests in "), "{}", stderr(&answer));
}

#[test]
fn native_output_needs_no_controller() {
    let directory = repository();
    let variables = parameters(&[("output", "native")]);
    let answer = generate(&directory.path().join("clusters/prod"), &[("ARGOCD_APP_PARAMETERS", &variables)]).success();
    let objects = objects(&answer);
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ConfigMap", "Application", "Application"]);
    assert_eq!(objects[2]["spec"]["project"], "platform");
    assert_eq!(objects[2]["metadata"]["namespace"], "packages");
    assert_eq!(objects[2]["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"], "1");
    assert_eq!(objects[2]["spec"]["source"]["targetRevision"], COMMIT);
}

#[test]
fn parameters_choose_engine_path_depth_and_waves() {
    let package = PACKAGE.replace(
        "    path: charts/two",
        "    chart: {repository: https://charts.example.org, name: two, version: 1.0.0}",
    );
    let nested = package
        .replace("name: app\n", "name: nested\n")
        .replace("- name: ", "- name: nested-")
        .replace("[one]", "[nested-one]");
    let directory = files(&[("clusters/prod/in/app.yaml", &package), ("clusters/prod/in/deep/app.yaml", &nested)]);
    let run = |list: &[(&str, &str)]| {
        let answer = generate(&directory.path().join("clusters/prod"), &[("ARGOCD_APP_PARAMETERS", &parameters(list))]);
        objects(&answer.success())
    };
    assert_eq!(run(&[]).len(), 2);
    assert_eq!(run(&[("path", "in"), ("recurse", "false")]).len(), 1);
    assert_eq!(run(&[("path", "./in/deep")])[0]["metadata"]["name"], "nested");
    let native = [("output", "native"), ("engine", "flux"), ("path", "in"), ("recurse", "false")];
    assert_eq!(run(&native).last().unwrap()["kind"], "HelmRelease");
    let waves = run(&[("output", "native"), ("waves", "off")]);
    assert_eq!(waves[1]["metadata"]["annotations"].get("argocd.argoproj.io/sync-wave"), None);
}

#[rstest]
#[case::unknown(
    r#"[{"name":"ouput","string":"native"}]"#,
    "there is no parameter `ouput`, only output, engine, path, recurse, waves: did you mean `output`?"
)]
#[case::value(r#"[{"name":"output","string":"Native"}]"#, "parameter `output` is `Native`: write package or native")]
#[case::list_of_paths(
    r#"[{"name":"path","array":["packages"]}]"#,
    "parameter `path` is a list: write a path below the Application's, without `..`, under `string`"
)]
#[case::map_of_paths(
    r#"[{"name":"path","map":{"a":"packages"}}]"#,
    "parameter `path` is a map: write a path below the Application's, without `..`, under `string`"
)]
#[case::list(r#"[{"name":"waves","array":["on"]}]"#, "parameter `waves` is a list: write on or off, under `string`")]
#[case::map(
    r#"[{"name":"engine","map":{"argo":"yes"}}]"#,
    "parameter `engine` is a map: write argo or flux, under `string`"
)]
#[case::empty(r#"[{"name":"recurse","string":""}]"#, "parameter `recurse` is empty: write true or false")]
#[case::twice(
    r#"[{"name":"output","string":"native"},{"name":"output","string":"package"}]"#,
    "parameter `output` is there twice: remove one"
)]
#[case::outside(
    r#"[{"name":"path","string":"../.."}]"#,
    "parameter `path` is `../..`: write a path below the Application's, without `..`"
)]
#[case::absolute(
    r#"[{"name":"path","string":"/etc"}]"#,
    "parameter `path` is `/etc`: write a path below the Application's, without `..`"
)]
#[case::absent(
    r#"[{"name":"path","string":"nowhere"}]"#,
    "there is no directory `clusters/prod/nowhere`: check the plugin's parameter path"
)]
#[case::no_list(
    "{}",
    "ARGOCD_APP_PARAMETERS is no list of parameters: invalid type: map, expected a sequence at line 1 column 0"
)]
fn parameters_that_mean_nothing_are_errors(#[case] parameters: &str, #[case] message: &str) {
    let directory = repository();
    let failed = generate(&directory.path().join("clusters/prod"), &[("ARGOCD_APP_PARAMETERS", parameters)]).code(1);
    assert_eq!((stderr(&failed).as_str(), stdout(&failed).as_str()), (format!("error: {message}\n").as_str(), ""));
}

#[test]
fn without_a_namespace_there_is_no_answer() {
    let directory = repository();
    let failed = generate(&directory.path().join("clusters/prod"), &[("ARGOCD_APP_NAMESPACE", "")]).code(1);
    assert_eq!(
        stderr(&failed),
        "error: ARGOCD_APP_NAMESPACE is empty: write spec.destination.namespace in the Application\n"
    );
}

/// Exit code 0 without manifests would delete everything.
#[rstest]
#[case::empty(&[("clusters/prod/.keep", "")])]
#[case::only_others(&[("clusters/prod/b.yaml", CONFIG_MAP)])]
#[case::only_a_chart(&[("clusters/prod/one/Chart.yaml", "name: one\nversion: 1.0.0\n"), ("clusters/prod/one/templates/a.yaml", "{{ broken")])]
fn no_package_is_never_an_empty_answer(#[case] content: &[(&str, &str)]) {
    let directory = files(content);
    let failed = generate(&directory.path().join("clusters/prod"), &[]).code(1);
    assert_eq!(stdout(&failed), "");
    let message = "error: no Package in `clusters/prod`: nothing is generated, so that nothing is deleted. Check the Application's \
                   source.path and the plugin's parameters path and recurse\n";
    assert_eq!(stderr(&failed), message);
}

#[rstest]
#[case::syntax("a: [", "clusters/prod/z.yaml:1:")]
#[case::binary("a: \0", "clusters/prod/z.yaml:1:1: ")]
#[case::lost_kind(&OTHER_ENGINE.replace("kind: Package\n", ""), "clusters/prod/z.yaml:1:1: WL022 this document is no Kubernetes object: kind is missing")]
#[case::lost_kind_of_another(&CONFIG_MAP.replace("kind: ConfigMap\n", ""), "clusters/prod/z.yaml:1:1: WL022 this document is no Kubernetes object: kind is missing (")]
#[case::lost_api_version(
    "kind: ConfigMap\nmetadata: {name: a}\n",
    "clusters/prod/z.yaml:1:1: WL022 this document is no Kubernetes object: apiVersion is missing ("
)]
#[case::values(
    "replicas: 1\n",
    "clusters/prod/z.yaml:1:1: WL022 this document is no Kubernetes object: apiVersion and kind are missing ("
)]
#[case::text("replicas\n", "clusters/prod/z.yaml:1:1: WL022 this document is no Kubernetes object: this is text (")]
#[case::edge(&PACKAGE.replace("[one]", "[ona]"), "clusters/prod/z.yaml:13:27: WL013 there is no component `ona` (did you mean `one`?)")]
#[case::revision(
    "apiVersion: windlass.dev/v1alpha1\nkind: PackageRevision\nmetadata: {name: app-1}\n",
    "clusters/prod/z.yaml:2:"
)]
#[case::application(
    "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n",
    "clusters/prod/z.yaml:2: Application must not be among the files of Packages: apply it by other means"
)]
#[case::set(
    "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\n",
    "clusters/prod/z.yaml:1: ApplicationSet must not"
)]
#[case::project(
    "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: a}\n",
    "clusters/prod/z.yaml:1: AppProject must not"
)]
#[case::in_a_list(
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}}\n",
    "clusters/prod/z.yaml:1: Application must not"
)]
#[case::list_kind(
    "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationList\nitems: []\n",
    "clusters/prod/z.yaml:1: ApplicationList must not"
)]
#[case::missing_chart(&PACKAGE.replace("charts/two", "charts/three").replace("name: app", "name: other"), "clusters/prod/z.yaml:12:11: WL032 there is no chart at `charts/three` (")]
#[case::chart_outside(&PACKAGE.replace("charts/two", "../../etc"), "clusters/prod/z.yaml:12:")]
#[case::twice(PACKAGE, "clusters/prod/z.yaml:4:9: WL024 Package `app` is there twice")]
#[case::other_engine(
    OTHER_ENGINE,
    "other: its spec.engine is flux, and this is for argo: keep the Packages of either engine in a directory of their own"
)]
fn any_error_is_one_line_and_no_manifest(#[case] content: &str, #[case] message: &str) {
    let directory = repository();
    fs::write(directory.path().join("clusters/prod/z.yaml"), content).unwrap();
    let failed = generate(&directory.path().join("clusters/prod"), &[]).code(1);
    assert_eq!(stdout(&failed), "");
    let text = stderr(&failed);
    assert!(text.starts_with(&format!("error: {message}")), "{text}");
    assert!(text.lines().next().unwrap().chars().count() < 250, "{text}");
}

#[test]
fn other_kinds_named_application_pass_through() {
    let directory = repository();
    let other = "apiVersion: app.k8s.io/v1beta1\nkind: Application\nmetadata: {name: a}\n";
    fs::write(directory.path().join("clusters/prod/z.yaml"), other).unwrap();
    let answer = generate(&directory.path().join("clusters/prod"), &[]).success();
    assert_eq!(objects(&answer).last().unwrap()["kind"], "Application");
}

#[cfg(unix)]
#[rstest]
#[case::chart(
    "charts/two/templates",
    "clusters/prod/app.yaml:12:11: WL016 `charts/two/templates` is a symbolic link: put the files themselves there ("
)]
#[case::manifest("clusters/prod/z.yaml", "clusters/prod/z.yaml:1:1: WL016 ")]
fn links_are_refused(#[case] link: &str, #[case] message: &str) {
    let outside = files(&[("secret.yaml", "password: x\n")]);
    let directory = repository();
    std::os::unix::fs::symlink(outside.path().join("secret.yaml"), directory.path().join(link)).unwrap();
    let failed = generate(&directory.path().join("clusters/prod"), &[]).code(1);
    assert!(stderr(&failed).starts_with(&format!("error: {message}")), "{}", stderr(&failed));
    assert_eq!(stdout(&failed), "");
}

/// With `manifest-generate-paths` Argo CD sends only what those have in common.
#[test]
fn a_part_of_the_repository_is_recognised() {
    let nested = PACKAGE.replace("charts/two", "clusters/charts/two");
    let chart = ("charts/two/Chart.yaml", CHART.1);
    let directory = files(&[("prod/app.yaml", &nested), chart]);
    let answer = generate(&directory.path().join("prod"), &[]).success();
    assert_eq!(objects(&answer)[0]["spec"]["components"][1]["source"]["chartVersion"], "2.0.0");
    let directory = files(&[("prod/app.yaml", PACKAGE)]);
    let failed = generate(&directory.path().join("prod"), &[]).code(1);
    let message = "error: app/two: `charts/two` is not among the files that Argo CD sent: name it in the Application's annotation \
                   argocd.argoproj.io/manifest-generate-paths\n";
    assert_eq!(stderr(&failed), message);
}

#[test]
fn the_cluster_is_asked_for_its_version() {
    let package = PACKAGE.replace("spec:\n", "spec:\n  requires: [{kubernetes: '>=1.34'}]\n");
    let directory = files(&[("clusters/prod/app.yaml", &package), CHART]);
    let run = |variables: &[(&str, &str)]| generate(&directory.path().join("clusters/prod"), variables);
    let waiting = run(&[]).success();
    let note = "note: app: requires Kubernetes >=1.34, the cluster has 1.33.4; the controller waits for it\n";
    assert!(stderr(&waiting).starts_with(note), "{}", stderr(&waiting));
    let native = parameters(&[("output", "native")]);
    let refused = run(&[("ARGOCD_APP_PARAMETERS", &native)]).code(1);
    assert_eq!(stderr(&refused), "error: app: requires Kubernetes >=1.34, the cluster has 1.33.4\n");
    let unreadable = ("KUBE_VERSION", "newest");
    let said = "app: requires Kubernetes >=1.34, KUBE_VERSION is `newest`, which is no version";
    assert!(stderr(&run(&[unreadable]).success()).starts_with(&format!("note: {said}")));
    assert_eq!(stderr(&run(&[unreadable, ("ARGOCD_APP_PARAMETERS", &native)]).code(1)), format!("error: {said}\n"));
    let version = ("KUBE_VERSION", "v1.34.1-gke.100");
    assert!(!stderr(&run(&[version]).success()).contains("requires"));
    run(&[version, ("ARGOCD_APP_PARAMETERS", &native)]).success();
}

#[test]
fn by_hand_the_plugin_says_which_variables_it_lacks() {
    let directory = repository();
    let failed = generate(&directory.path().join("clusters/prod"), &[("ARGOCD_APP_REVISION", "")]).code(1);
    let message = "error: app/two: a path needs its repository and commit on Argo CD: ARGOCD_APP_SOURCE_REPO_URL and ARGOCD_APP_REVISION\n";
    assert_eq!(stderr(&failed), message);
}

/// Argo CD's own way to apply would take nulls for keys to remove.
#[test]
fn objects_that_hold_a_null_are_applied_on_the_server() {
    let package = PACKAGE.replace("  - name: two\n", "  - name: two\n    values: {a: null}\n");
    assert_ne!(package, PACKAGE);
    let directory = files(&[("clusters/prod/app.yaml", &package), CHART]);
    let options = |parameters_: &str| {
        let answer =
            generate(&directory.path().join("clusters/prod"), &[("ARGOCD_APP_PARAMETERS", parameters_)]).success();
        let option = |object: &Value| object["metadata"]["annotations"]["argocd.argoproj.io/sync-options"].clone();
        objects(&answer).iter().map(option).collect::<Vec<_>>()
    };
    assert_eq!(options(""), ["ServerSideApply=true"]);
    assert_eq!(options(&parameters(&[("output", "native")])), [Value::Null, "ServerSideApply=true".into()]);
}

/// Argo CD would apply it, nobody would ever look at it, and a Package of that
/// name would be pruned.
#[test]
fn a_package_of_a_misspelt_group_is_refused() {
    let directory = repository();
    let misspelt = PACKAGE.replace("windlass.dev", "windlas.dev").replace("name: app", "name: other");
    fs::write(directory.path().join("clusters/prod/other.yaml"), misspelt).unwrap();
    let failed = generate(&directory.path().join("clusters/prod"), &[]).code(1);
    assert!(
        stderr(&failed).contains("other.yaml:1:13: WL023 this Windlass does not know `windlas.dev/v1alpha1`"),
        "{}",
        stderr(&failed)
    );
}

/// kustomize is not run: what else such a file asks for would be missed in silence.
#[test]
fn a_kustomization_is_said_not_to_be_applied() {
    let directory = repository();
    let kustomization =
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamePrefix: a-\nresources: [app.yaml]\n";
    fs::write(directory.path().join("clusters/prod/kustomization.yaml"), kustomization).unwrap();
    let answer = generate(&directory.path().join("clusters/prod"), &[]).success();
    let note =
        "note: clusters/prod/kustomization.yaml: kustomize is not run, so that what it asks for is not applied: ";
    assert!(stderr(&answer).starts_with(note), "{}", stderr(&answer));
    assert!(!stdout(&answer).contains("namePrefix"), "{}", stdout(&answer));
    let only_lists = kustomization.replace("namePrefix: a-\n", "");
    fs::write(directory.path().join("clusters/prod/kustomization.yaml"), only_lists).unwrap();
    let answer = generate(&directory.path().join("clusters/prod"), &[]).success();
    assert!(!stderr(&answer).contains("note: "), "{}", stderr(&answer));
}

#[test]
fn a_chart_version_that_differs_is_told_in_terms_of_argo_cd() {
    let directory = repository();
    let package = PACKAGE.replace("path: charts/two", "path: charts/two\n    chartVersion: 9.9.9");
    fs::write(directory.path().join("clusters/prod/app.yaml"), package).unwrap();
    let failed = generate(&directory.path().join("clusters/prod"), &[]).code(1);
    assert!(stderr(&failed).contains("WL033") && !stderr(&failed).contains("Flux"), "{}", stderr(&failed));
}

#[test]
fn many_errors_are_cut_short() {
    let directory = repository();
    let edges: String = (0..30).map(|n| format!("  - {{name: c{n}, chart: {{repository: 'https://a.example.org', name: a, version: 1.0.0}}, install: {{dependsOn: [x{n}]}}}}\n")).collect();
    fs::write(directory.path().join("clusters/prod/app.yaml"), format!("{PACKAGE}{edges}")).unwrap();
    let failed = generate(&directory.path().join("clusters/prod"), &[]).code(1);
    assert_eq!(stderr(&failed).lines().last(), Some("and 10 more errors"));
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let directory = repository();
    let bytes = || stdout(&generate(&directory.path().join("clusters/prod"), &[]).success());
    assert_eq!(bytes(), bytes());
}

#[test]
fn nothing_is_left_on_disk() {
    let (directory, temporary) = (repository(), tempfile::tempdir().unwrap());
    let variables = [("TMPDIR", temporary.path().to_str().unwrap())];
    generate(&directory.path().join("clusters/prod"), &variables).success();
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    let entries = fs::read_dir(directory.path().join("clusters/prod")).unwrap().count();
    assert_eq!(entries, 2);
}

#[test]
fn parameters_are_announced_as_a_list() {
    let output = Command::cargo_bin("windlass").unwrap().env_clear().args(["plugin", "parameters"]).assert().success();
    let announced: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let names: Vec<&str> = announced.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["output", "engine", "path", "recurse", "waves"]);
    assert_eq!(stderr(&output), "");
}
