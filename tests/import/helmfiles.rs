//! `windlass import helmfile`.

use std::collections::BTreeMap;
use std::fs;

use rstest::rstest;
use serde_json::{Value, json};
use windlass::import::{Imported, Lookup, Options, helmfile};
use windlass::package::names::Namespace;
use windlass::package::source::Source;
use windlass::package::version::Version;

use crate::{errors, said, windlass, written};

pub const HELMFILE: &str = r#"
repositories:
- {name: example, url: "https://charts.example.org"}
- {name: registry, url: registry.example.org/charts, oci: true}
helmDefaults: {timeout: 300, wait: true, atomic: true, createNamespace: true, kubeContext: east}
commonLabels: {team: shop}
releases:
- name: shop-db-operator
  namespace: db
  chart: example/operator
  version: 1.4.0
  labels: {tier: data}
- name: shop-db
  namespace: db
  chart: ./charts/db
  version: 9.9.9
  needs: [shop-db-operator]
  timeout: 900
  values:
  - replicas: 1
    storage: {class: fast, size: 10Gi}
  - replicas: 3
    storage: {size: 20Gi}
  set:
  - {name: image.tag, value: 16}
  - {name: ports, values: [5432, 5433]}
  - {name: note, value: "a,{b}"}
  setString:
  - {name: image.build, value: 7}
- name: shop
  namespace: web
  chart: registry/shop
  version: 2.1.0
  needs: [db/shop-db, east/db/shop-db-operator, db/shop-search]
  createNamespace: false
  wait: false
- name: shop-search
  namespace: db
  chart: example/search
  version: 1.0.0
  installed: false
- name: metrics
  namespace: metrics
  chart: oci://registry.example.org/charts/metrics
  version: 4.0.1
"#;

/// Imports a helmfile of a name, with the files that lie where the command runs.
fn import(name: &str, text: &str, files: &BTreeMap<&str, &str>) -> Imported {
    let file = |path: &str| match files.get(path) {
        Some(text) => Lookup::Found((*text).to_owned()),
        None => Lookup::Problem(format!("there is no file {path}")),
    };
    let options = Options {
        version: Some(Version::parse("3.1.0").unwrap()),
        namespace: Some(Namespace::parse("packages").unwrap()),
        variants: BTreeMap::new(),
        chart_version: &|_| Lookup::Found("0.1.0".into()),
        file: &file,
    };
    helmfile::import(&[Source::new(name, text)], &options)
}

fn plain(text: &str) -> Imported {
    import("helmfile.yaml", text, &BTreeMap::new())
}

#[test]
fn releases_that_need_each_other_become_one_package() {
    insta::assert_snapshot!(written(&plain(HELMFILE)));
}

#[test]
fn what_a_helmfile_cannot_bring_is_said() {
    insta::assert_snapshot!(said(&plain(HELMFILE)).join("\n"));
}

/// A helmfile with one release of a chart in a repository; `more` is the rest of the release.
fn one(more: &str) -> String {
    format!(
        "repositories: [{{name: r, url: 'https://e.org'}}]\nreleases:\n- {{name: a, namespace: a, chart: r/c, version: \
         1.0.0{more}}}\n"
    )
}

fn component(imported: &Imported) -> Value {
    serde_json::to_value(&imported.packages[0].spec.components[0]).unwrap()
}

#[test]
fn values_files_are_merged_in_their_order() {
    let text = one(", values: [values/all.yaml, {b: 2, l: [1, 2]}, ../shared/prod.yaml]");
    let files = BTreeMap::from([
        ("deploy/values/all.yaml", "a: 1\nb: 1\nc: {d: 1}\n"),
        ("deploy/../shared/prod.yaml", "c: {e: 1}\nl: [3]\n"),
    ]);
    let imported = import("deploy/helmfile.yaml", &text, &files);
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
    assert_eq!(component(&imported)["values"], json!({"a": 1, "b": 2, "c": {"d": 1, "e": 1}, "l": [3]}));
    assert!(
        said(&imported).contains(
            &"warning a/a: values of values/all.yaml are copied, so that what is changed there later does not count"
                .to_owned()
        )
    );
}

#[rstest]
#[case::beside_it("helmfile.yaml", "./charts/a", Some("charts/a"))]
#[case::from_a_directory("deploy/helmfile.yaml", "../charts/a", Some("charts/a"))]
#[case::below_it("deploy/helmfile.yaml", "./a", Some("deploy/a"))]
#[case::above_the_root("helmfile.yaml", "../charts/a", None)]
#[case::absolute("/home/me/helmfile.yaml", "./charts/a", None)]
fn a_chart_in_a_directory_is_named_from_the_root(#[case] file: &str, #[case] chart: &str, #[case] path: Option<&str>) {
    let text = format!("releases: [{{name: a, namespace: a, chart: {chart}}}]\n");
    let imported = import(file, &text, &BTreeMap::new());
    assert_eq!(component(&imported).get("path").and_then(Value::as_str), path, "{:?}", said(&imported));
    assert_eq!(errors(&imported), usize::from(path.is_none()), "{:?}", said(&imported));
}

fn is_said(imported: &Imported, message: &str) {
    let all = said(imported);
    assert!(all.iter().any(|said| said.starts_with("error ") && said.contains(message)), "{all:?}");
}

#[rstest]
#[case::value(
    "releases:\n- name: a\n  chart: r/{{ .Values.chart }}\n",
    "helmfile.yaml:3:12: `{{` begins a Go template, which is not evaluated: import what `helmfile build --embed-values` prints"
)]
#[case::block(
    "{{ if .Values.x }}\nreleases: []\n{{ end }}\n",
    "helmfile.yaml:1:1: `{{` begins a Go template, which is not evaluated (1 more in this file)"
)]
#[case::behind_a_comment(
    "# {{ not here }}\nreleases: [] # {{ but here }}\n",
    "helmfile.yaml:2:16: `{{` begins a Go template"
)]
fn a_template_is_named_with_its_place_and_nothing_is_made(#[case] text: &str, #[case] message: &str) {
    let imported = plain(text);
    is_said(&imported, message);
    assert_eq!((imported.packages.len(), imported.notes.len()), (0, 1));
}

#[test]
fn in_what_helmfile_has_built_nothing_is_a_template() {
    let text = "---\n#  Source: deploy/helmfile.yaml\n\nfilepath: deploy/helmfile.yaml\nhelmDefaults: {verify: false, wait: \
                false, timeout: 0, kubeContext: ''}\nenvironments: {prod: {values: [x.yaml]}}\nhelmfiles: [{path: b.yaml}]\n\
                repositories: [{name: r, url: 'https://e.org'}]\nreleases:\n- {name: a, namespace: a, chart: r/c, version: \
                1.0.0, condition: a.enabled, values: [{rule: '{{ $labels.x }}'}, more.yaml]}\ntemplates: {x: {}}\n\
                renderedvalues: {a: {enabled: true}}\n---\n#  Source: deploy/b.yaml\n\nfilepath: deploy/b.yaml\n\
                repositories: [{name: r, url: 'https://other.example.org'}]\nreleases:\n- {name: b, namespace: b, chart: \
                r/c, version: 1.0.0}\ntemplates: {}\nrenderedvalues: {}\n";
    let imported = import("<stdin>", text, &BTreeMap::from([("deploy/more.yaml", "b: 1\n")]));
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
    assert_eq!(component(&imported)["values"], json!({"rule": "{{ $labels.x }}", "b": 1}));
    // Each document is a helmfile of its own, with its own repositories.
    let repositories = imported.packages.iter().map(|p| p.spec.components[0].chart.clone().unwrap().repository);
    assert_eq!(repositories.collect::<Vec<_>>(), ["https://e.org", "https://other.example.org"]);
    let about_parts = ["environments", "templates", "helmDefaults", "condition"];
    assert!(
        !said(&imported).iter().any(|said| about_parts.iter().any(|part| said.contains(part))),
        "{:?}",
        said(&imported)
    );
    assert!(said(&imported).iter().any(|said| said.contains("helmfile applies one helmfile after the other")));
}

#[test]
fn several_documents_are_laid_over_each_other() {
    let text = "repositories: [{name: r, url: 'https://e.org'}]\nhelmDefaults: {timeout: 60}\nreleases: [{name: a, namespace: \
                x, chart: r/a, version: 1.0.0}]\n---\nhelmDefaults: {timeout: 120}\nreleases: [{name: b, namespace: x, \
                chart: r/b, version: 1.0.0, needs: [a]}]\n";
    let imported = plain(text);
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
    let spec = &imported.packages[0].spec;
    assert_eq!(spec.components.len(), 2);
    assert_eq!(spec.upgrade.as_ref().unwrap().timeout.as_deref(), Some("2m"));
    let message = "warning helmfile.yaml: its 2 YAML documents are laid over each other, lists one behind the other";
    assert!(said(&imported).contains(&message.to_owned()), "{:?}", said(&imported));
}

#[rstest]
#[case::no_yaml("releases: [\n", "not readable as YAML")]
#[case::no_map("- a\n", "a document is no map, and so no helmfile")]
#[case::nothing("repositories: []\n", "there is no release in the input")]
#[case::wrong_type(
    "releases: 7\n",
    "cannot be read as a helmfile: releases: invalid type: integer `7`, expected a sequence"
)]
#[case::release_of_wrong_type(
    "releases: [{name: a, chart: [x]}]\n",
    "release a is left out, since it cannot be read: chart: invalid type"
)]
#[case::helmfiles(
    "helmfiles: [a.yaml, {path: b/*.yaml}]\n",
    "helmfiles (a.yaml, b/*.yaml) are not evaluated: import what `helmfile build"
)]
#[case::bases("bases: [common.yaml]\n", "bases (common.yaml) are not evaluated")]
#[case::hooks("hooks: [{events: [prepare], command: ./x.sh}]\n", "hook ./x.sh of prepare is not carried over")]
fn a_helmfile_that_is_not_whole_is_an_error(#[case] text: &str, #[case] message: &str) {
    is_said(&plain(text), message);
}

#[rstest]
#[case::range(
    "version: 1.0.0",
    "version: ~1.2",
    "a/a: chart.version: its version is `~1.2`, which is no exact version: pin it"
)]
#[case::no_version(
    ", version: 1.0.0",
    "",
    "a/a: chart.version: its version is not written, which is no exact version: pin it"
)]
#[case::unknown_repository(
    "chart: r/c",
    "chart: s/c",
    "has no chart, since the helmfile has no repository s: add it to `repositories`, or write ./s/c"
)]
#[case::archive("chart: r/c", "chart: 'https://e.org/c.tgz'", "has no chart, since https://e.org/c.tgz is neither")]
#[case::unknown_need("", ", needs: [b]", "needs b is lost, since the helmfile has no such release")]
#[case::need_in_another_namespace("", ", needs: [other/a]", "needs other/a is lost")]
#[case::condition(
    "",
    ", condition: redis.enabled",
    "condition redis.enabled is not evaluated, and the release is taken as installed"
)]
#[case::hook(
    "",
    ", hooks: [{events: [presync, postsync], command: kubectl, args: [apply]}]",
    "hook kubectl of presync, postsync is not carried over"
)]
#[case::secrets("", ", secrets: [secrets.yaml]", "secrets secrets.yaml are not carried over")]
#[case::reference("", ", values: [{a: [{b: 'ref+vault://x#/y'}]}]", "a value begins with `ref+`")]
#[case::template_file(
    "",
    ", values: [v.yaml.gotmpl]",
    "values of v.yaml.gotmpl are not carried over: it is a Go template"
)]
#[case::missing_file("", ", values: [v.yaml]", "values of v.yaml are not carried over: there is no file v.yaml")]
#[case::remote_file("", ", values: ['git::https://g.org/x@v.yaml']", "they come over the network")]
#[case::set_file(
    "",
    ", set: [{name: cert, file: tls.crt}]",
    "set cert is not carried over: it is the content of tls.crt"
)]
#[case::set_in_a_value(
    "",
    ", values: [{a: 1}], set: [{name: a.b, value: 2}]",
    "set a.b is not carried over: `b` is set in what is no map"
)]
#[case::patches("", ", jsonPatches: [{patch: []}]", "jsonPatches is not carried over: it changes what is installed")]
#[case::inherited("", ", inherit: [{template: x}]", "inherit is not carried over: import what `helmfile build")]
#[case::no_namespace(
    ", namespace: a",
    "",
    "it names no namespace, so for helmfile it is in that of the kubectl context, and here in packages"
)]
#[case::clusters(
    "\n- {name: a",
    "\n- {name: b, namespace: b, chart: r/c, version: 1.0.0, kubeContext: west}\n- {name: a",
    "releases go into several clusters (west)"
)]
fn what_a_package_cannot_have_is_an_error(#[case] part: &str, #[case] by: &str, #[case] message: &str) {
    let text = one("");
    let changed = if part.is_empty() { one(by) } else { text.replace(part, by) };
    assert_ne!(changed, text);
    is_said(&plain(&changed), message);
}

#[rstest]
#[case::environments(
    "environments: {prod: {values: [a.yaml]}, default: {}}\n",
    "environments (prod) are not evaluated"
)]
#[case::values("values: [a.yaml]\n", "values are not carried over: only templates and conditions look at them")]
#[case::templates("templates: {x: {wait: true}}\n", "templates are not carried over")]
#[case::credentials("", "repositories[].password is not carried over: put the credentials into a Secret")]
fn parts_that_only_helmfile_knows_are_said(#[case] part: &str, #[case] message: &str) {
    let text = one("").replace("'https://e.org'", "'https://e.org', password: hunter2");
    let all = said(&plain(&format!("{part}{text}"))).join("\n");
    assert!(all.contains(message) && !all.contains("hunter2"), "{all}");
}

#[test]
fn a_file_that_may_be_missing_is_a_warning() {
    let imported = plain(&one(", values: [v.yaml], missingFileHandler: Warn"));
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
}

#[rstest]
#[case::condition(", condition: 'false'")]
#[case::installed(", installed: false")]
fn a_release_that_is_not_installed_is_left_out(#[case] more: &str) {
    let imported = plain(&one(more));
    assert_eq!(imported.packages.len(), 0);
    assert!(said(&imported).iter().any(|said| said.contains("release a is left out, since it is not installed")));
}

#[test]
fn the_namespace_of_the_helmfile_wins() {
    let imported = plain(&format!("namespace: all\n{}", one("")));
    assert_eq!(component(&imported)["install"]["namespace"], "all");
}

#[rstest]
#[case::file(&["helmfile.yaml"], "helmfile.yaml", "helmfile.yaml")]
#[case::directory(&["deploy/helmfile.yaml", "deploy/other.yaml"], "deploy", "deploy/helmfile.yaml")]
#[case::parts(&["deploy/helmfile.d/a.yaml"], "deploy", "deploy/helmfile.d/a.yaml")]
#[case::templates(&["deploy/helmfile.yaml.gotmpl"], "deploy", "deploy/helmfile.yaml.gotmpl")]
fn the_command_finds_what_helmfile_finds(#[case] files: &[&str], #[case] argument: &str, #[case] read: &str) {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = if *file == read { "right" } else { "wrong" };
        fs::write(path, one("").replace("name: a,", &format!("name: {name},"))).unwrap();
    }
    windlass(root.path())
        .args(["import", "helmfile", argument, "--version", "2.0.0", "-n", "packages", "-o", "out"])
        .assert()
        .code(0);
    let found: Vec<_> = fs::read_dir(root.path().join("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(found, ["right.yaml"]);
    windlass(root.path()).args(["validate", "out", "--engine", "flux"]).assert().code(0);
}

#[test]
fn values_files_are_read_from_beside_the_helmfile() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("deploy/values")).unwrap();
    fs::write(root.path().join("deploy/values/a.yaml"), "replicas: 3\n").unwrap();
    fs::write(root.path().join("deploy/helmfile.yaml"), one(", values: [values/a.yaml]")).unwrap();
    let output = windlass(root.path()).args(["import", "helmfile", "deploy", "--version", "2.0.0"]).assert().code(0);
    let stdout = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(stdout.contains("    values:\n      replicas: 3\n"), "{stdout}");
}

#[test]
fn nothing_is_written_of_a_template() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("helmfile.yaml"), "releases: {{ x }}\n").unwrap();
    let output =
        windlass(root.path()).args(["import", "helmfile", ".", "--version", "2.0.0", "-o", "out"]).assert().code(1);
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("./helmfile.yaml:1:11"), "{stderr}");
    assert!(!root.path().join("out").exists());
}

#[test]
fn words_that_readers_disagree_about_are_said() {
    let imported = plain(&one(", values: [{a: on, b: 'on', c: 0644, d: true}]"));
    assert_eq!(component(&imported)["values"], json!({"a": true, "b": "on", "c": 420, "d": true}));
    let said = said(&imported).join("\n");
    assert!(said.contains("warning helmfile.yaml:3:68: `on` is taken as true, and may be text for helmfile"), "{said}");
    assert_eq!(said.matches("may be text for helmfile").count(), 2, "{said}");
}
