//! `windlass import argo`.

use std::collections::BTreeMap;
use std::fs;

use rstest::rstest;
use windlass::import::{Document, Imported, Lookup, Options, Severity, argo};
use windlass::package::version::Version;

use crate::{Format, documents, errors, import, said, windlass, written};

/// A platform in waves: a parent, an operator, its resource with values from
/// everywhere, two things beside it, one that depends on all.
pub const APPLICATIONS: &str = r#"
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: platform, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  source: {repoURL: "https://git.example.org/platform.git", path: apps, targetRevision: stable}
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: db-operator
  namespace: argocd
  annotations: {argocd.argoproj.io/sync-wave: "-1"}
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec:
  project: default
  source:
    repoURL: https://charts.example.org
    chart: operator
    targetRevision: 1.4.0
    helm: {releaseName: operator, skipCrds: true, valuesObject: {on: "off", empty: {}, nothing: null}}
  destination: {server: "https://kubernetes.default.svc", namespace: db}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    syncOptions: [CreateNamespace=true, ServerSideApply=true]
    managedNamespaceMetadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: db, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  source:
    repoURL: https://git.example.org/platform.git
    path: ./charts/db
    targetRevision: stable
    helm:
      valueFiles: [values-prod.yaml, /charts/db/values-big.yaml]
      values: |
        # three of them
        replicas: 3
        storage: {class: fast, size: 10Gi}
      parameters:
      - {name: storage.size, value: 20Gi}
      - {name: image.tag, value: "16", forceString: true}
      - {name: ports, value: "{5432,5433}"}
  destination: {name: in-cluster, namespace: db}
  ignoreDifferences:
  - {group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    syncOptions: [CreateNamespace=true, ServerSideApply=true, RespectIgnoreDifferences=true]
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: cache, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io/background]}
spec:
  project: default
  source: {repoURL: registry.example.org/charts, chart: cache, targetRevision: 4.0.1}
  destination: {server: "https://kubernetes.default.svc", namespace: cache}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    syncOptions: [CreateNamespace=true, ServerSideApply=true]
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop
  namespace: argocd
  annotations: {argocd.argoproj.io/sync-wave: "5", notifications.argoproj.io/subscribe.slack: shop}
spec:
  project: shop
  source: {repoURL: "oci://registry.example.org/charts/shop", path: ., targetRevision: "2.1.0"}
  destination: {server: "https://kubernetes.default.svc", namespace: argocd}
  syncPolicy:
    automated: {prune: false}
    retry: {limit: 5}
    syncOptions: [PruneLast=true]
  revisionHistoryLimit: 3
"#;

/// The documents as an app-of-apps: the parent beside the directory of the others.
fn app_of_apps() -> Vec<Document> {
    let mut documents = documents(APPLICATIONS);
    for (index, document) in documents.iter_mut().enumerate() {
        document.origin = if index == 0 { "root.yaml".into() } else { format!("apps/{index}.yaml") };
    }
    documents
}

fn import_family(documents: &[Document], files: &BTreeMap<&str, &str>) -> Imported {
    let file = |path: &str| {
        files.get(path).map_or_else(
            || if files.is_empty() { Lookup::NotLooked } else { Lookup::Problem(format!("there is no {path}")) },
            |text| Lookup::Found((*text).to_owned()),
        )
    };
    let options = Options {
        version: Some(Version::parse("3.1.0").unwrap()),
        namespace: None,
        variants: BTreeMap::new(),
        chart_version: &|_| Lookup::Found("0.1.0".into()),
        file: &file,
    };
    argo::import(documents, &options)
}

#[test]
fn an_app_of_apps_becomes_one_package_in_the_order_of_its_waves() {
    insta::assert_snapshot!(written(&import_family(&app_of_apps(), &BTreeMap::new())));
}

#[test]
fn what_applications_cannot_bring_is_said() {
    insta::assert_snapshot!(said(&import_family(&app_of_apps(), &BTreeMap::new())).join("\n"));
}

/// An Application with a source; `more` is the rest of its spec.
fn application(name: &str, source: &str, more: &str) -> String {
    format!(
        "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd, \
         finalizers: [resources-finalizer.argocd.argoproj.io]}}\nspec: {{{source}, destination: {{namespace: {name}}}, \
         syncPolicy: {{automated: {{prune: true, selfHeal: true}}, syncOptions: [CreateNamespace=true, \
         ServerSideApply=true]}}{more}}}\n"
    )
}

const CHART: &str = "source: {repoURL: 'https://charts.example.org', chart: c, targetRevision: 1.0.0}";

/// The component that a single Application becomes.
fn component(source: &str) -> serde_json::Value {
    let imported = import(Format::Argo, &application("a", source, ""), None);
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
    serde_json::to_value(&imported.packages[0].spec.components[0]).unwrap()
}

#[rstest]
#[case::helm_repository("https://charts.example.org", "https://charts.example.org")]
#[case::registry("ghcr.io/acme/charts", "oci://ghcr.io/acme/charts")]
#[case::registry_with_a_port("localhost:5000/charts/", "oci://localhost:5000/charts")]
#[case::registry_with_a_scheme("oci://ghcr.io/acme/charts", "oci://ghcr.io/acme/charts")]
fn a_repository_keeps_its_meaning(#[case] written: &str, #[case] repository: &str) {
    let source = format!("source: {{repoURL: '{written}', chart: c, targetRevision: 1.0.0}}");
    assert_eq!(component(&source)["chart"]["repository"], repository);
}

#[rstest]
#[case::exact_names_stay("a-very-plain-name", "a-very-plain-name", None)]
#[case::dots("shop.v2", "shop-v2", Some("shop.v2"))]
fn the_release_keeps_the_name_of_its_application(
    #[case] name: &str,
    #[case] component: &str,
    #[case] release: Option<&str>,
) {
    let imported = import(Format::Argo, &application(name, CHART, ""), None);
    let found = &imported.packages[0].spec.components[0];
    assert_eq!(found.name, component);
    assert_eq!(found.install.as_ref().and_then(|install| install.release_name.as_deref()), release);
}

#[rstest]
#[case::range("'1.*'", "a/a: chart.version: targetRevision is `1.*`, which is no exact version: pin it")]
#[case::constraint("'>=1.2 <2'", "a/a: chart.version: targetRevision is `>=1.2 <2`, which is no exact version: pin it")]
#[case::short("'1.2'", "a/a: chart.version: targetRevision is `1.2`, which is no exact version: pin it")]
#[case::nothing("''", "a/a: chart.version: targetRevision is nothing, which is no exact version: pin it")]
fn a_range_is_one_error_that_says_to_pin_it(#[case] revision: &str, #[case] message: &str) {
    let source = format!("source: {{repoURL: 'https://charts.example.org', chart: c, targetRevision: {revision}}}");
    let imported = import(Format::Argo, &application("a", &source, ""), None);
    let found: Vec<String> = said(&imported).into_iter().filter(|said| said.starts_with("error ")).collect();
    assert!(found.len() == 1 && found[0].starts_with(&format!("error {message}")), "{found:?}");
}

#[test]
fn of_a_live_application_the_version_that_runs_is_named() {
    let text = application("a", "source: {repoURL: 'https://e.org', chart: c, targetRevision: 1.x}", "");
    let imported = import(Format::Argo, &format!("{text}status: {{sync: {{revision: 1.4.2}}}}\n"), None);
    assert!(said(&imported).iter().any(|said| said.contains("pin it to the version that runs, 1.4.2")));
}

#[test]
fn values_of_another_source_are_copied_from_below_the_chart_root() {
    let text = application(
        "a",
        "sources: [{repoURL: 'https://charts.example.org', chart: c, targetRevision: 1.0.0, helm: {valueFiles: \
         [$values/envs/all.yaml, $values/envs/prod.yaml], valuesObject: {b: 3}}}, {repoURL: 'https://git.example.org/x', \
         ref: values, targetRevision: main}]",
        "",
    );
    let files =
        BTreeMap::from([("envs/all.yaml", "a: 1\nb: 1\nc: {d: [1, 2]}\n"), ("envs/prod.yaml", "b: 2\nc: {d: [3]}\n")]);
    let imported = import_family(&documents(&text), &files);
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
    let component = serde_json::to_value(&imported.packages[0].spec.components[0]).unwrap();
    assert_eq!(component["values"], serde_json::json!({"a": 1, "b": 3, "c": {"d": [3]}}));
    assert!(said(&imported).iter().any(|said| said.contains("values of envs/prod.yaml are copied")));
}

/// A file behind one that is copied must still win over it.
#[test]
fn values_files_keep_their_order() {
    let text = application(
        "a",
        "source: {repoURL: 'https://git.example.org/x', path: charts/a, targetRevision: main, helm: {valueFiles: \
         [first.yaml, ../../envs/all.yaml, last.yaml]}}",
        "",
    );
    let files = BTreeMap::from([("envs/all.yaml", "a: 1\nb: 1\n"), ("charts/a/last.yaml", "b: 2\n")]);
    let imported = import_family(&documents(&text), &files);
    let component = serde_json::to_value(&imported.packages[0].spec.components[0]).unwrap();
    assert_eq!(component["valuesFiles"], serde_json::json!(["first.yaml"]));
    assert_eq!(component["values"], serde_json::json!({"a": 1, "b": 2}));
}

#[test]
fn several_charts_of_an_application_become_components_of_one_wave() {
    let text = application(
        "a",
        "sources: [{repoURL: 'https://e.org', chart: crds, targetRevision: 1.0.0, helm: {releaseName: crds}}, {repoURL: \
         'https://e.org', chart: app, targetRevision: 1.0.0}]",
        "",
    );
    let later =
        application("z", CHART, "").replace("{name: z", "{annotations: {argocd.argoproj.io/sync-wave: '1'}, name: z");
    let imported = import(Format::Argo, &format!("{text}{later}"), None);
    assert_eq!(errors(&imported), 0, "{:?}", said(&imported));
    let components = imported.packages[0].spec.components.iter();
    let told: Vec<_> = components.map(|c| (c.name.as_str(), c.install.clone().unwrap())).collect();
    let told: Vec<_> = told.iter().map(|(name, i)| (*name, i.release_name.as_deref(), i.depends_on.clone())).collect();
    let nothing: Vec<String> = vec![];
    assert_eq!(
        told,
        [
            ("a-crds", Some("crds"), nothing.clone()),
            ("a-app", Some("a"), nothing),
            ("z", None, vec!["a-crds".to_owned(), "a-app".to_owned()]),
        ]
    );
}

#[rstest]
#[case::none("{a: 1}", "there is no Application in the input: where the app-of-apps is a chart, render it first")]
#[case::set(
    "{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: apps}, spec: {}}",
    "ApplicationSet apps is not carried over"
)]
#[case::wrong_type(
    "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a}, spec: {source: {chart: [x]}}}",
    "left out, since Application a cannot be read: spec.source.chart: invalid type: sequence, expected a string"
)]
#[case::wave(
    "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a, annotations: \
     {argocd.argoproj.io/sync-wave: first}}, spec: {source: {repoURL: 'https://e.org', chart: c, targetRevision: 1.0.0}}}",
    "its sync wave `first` is no number"
)]
#[case::hook(
    "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: a, annotations: {argocd.argoproj.io/hook: \
     PreSync}}, spec: {source: {repoURL: 'https://e.org', chart: c, targetRevision: 1.0.0}}}",
    "argocd.argoproj.io/hook: PreSync is not carried over"
)]
fn an_input_that_is_no_package_is_an_error(#[case] text: &str, #[case] message: &str) {
    is_said(&import(Format::Argo, text, None), message);
}

fn is_said(imported: &Imported, message: &str) {
    assert!(errors(imported) > 0);
    let all = said(imported);
    assert!(all.iter().any(|said| said.starts_with("error ") && said.contains(message)), "{all:?}");
}

#[rstest]
#[case::kustomize(
    "source: {repoURL: 'https://g.org', path: x, kustomize: {namePrefix: a-}}",
    "its source of kind kustomize is no Helm chart"
)]
#[case::plain_manifests(
    "source: {repoURL: 'https://g.org', path: x, directory: {recurse: true}}",
    "its source of kind directory is no Helm chart"
)]
#[case::plugin(
    "source: {repoURL: 'https://g.org', path: x, plugin: {name: y}}",
    "its source of kind plugin is no Helm chart"
)]
#[case::nothing("source: {repoURL: 'https://g.org'}", "a source of it names neither chart nor path")]
#[case::tag(
    "source: {repoURL: 'https://g.org/x', path: x, targetRevision: v1.2.0}",
    "targetRevision v1.2.0 is not carried over"
)]
#[case::part_of_an_image(
    "source: {repoURL: 'oci://r.org/x', path: charts/a, targetRevision: 1.0.0}",
    "charts/a of oci://r.org/x is not carried over"
)]
#[case::file_in_the_archive(
    "source: {repoURL: 'https://e.org', chart: c, targetRevision: 1.0.0, helm: {valueFiles: [prod.yaml]}}",
    "helm.valueFiles prod.yaml is not carried over: only charts at a path have values files"
)]
#[case::file_from_the_network(
    "source: {repoURL: 'https://g.org', path: x, helm: {valueFiles: ['https://e.org/v.yaml']}}",
    "helm.valueFiles https://e.org/v.yaml is not carried over: it comes over the network"
)]
#[case::file_elsewhere(
    "source: {repoURL: 'https://g.org', path: x, helm: {valueFiles: [../v.yaml]}}",
    "helm.valueFiles ../v.yaml is not carried over: it is not in the chart's directory: give --chart-root"
)]
#[case::file_of_the_build_environment(
    "source: {repoURL: 'https://g.org', path: x, helm: {valueFiles: [$ARGOCD_APP_NAME/v.yaml]}}",
    "what begins with `$` is replaced by Argo CD"
)]
#[case::values_text(
    "source: {repoURL: 'https://g.org', path: x, helm: {values: '- a'}}",
    "helm.values is not carried over: it is no map"
)]
#[case::parameter_of_the_build_environment(
    "source: {repoURL: 'https://g.org', path: x, helm: {parameters: [{name: a, value: $ARGOCD_APP_NAME}]}}",
    "helm.parameters a is not carried over: what begins with `$`"
)]
#[case::parameter_in_a_list_of_a_file(
    "source: {repoURL: 'https://g.org', path: x, helm: {valueFiles: [v.yaml], parameters: [{name: 'a[0]', value: b}]}}",
    "helm.parameters a[0] is not carried over: the list that it changes may be in a values file"
)]
#[case::file_parameter(
    "source: {repoURL: 'https://g.org', path: x, helm: {fileParameters: [{name: cert, path: tls.crt}]}}",
    "helm.fileParameters cert is not carried over: copy the content of tls.crt to values"
)]
#[case::namespace_of_the_rendering(
    "source: {repoURL: 'https://g.org', path: x, helm: {namespace: other}}",
    "helm.namespace is not carried over"
)]
#[case::one_release_for_two_charts(
    "sources: [{repoURL: 'https://e.org', chart: b, targetRevision: 1.0.0}, {repoURL: 'https://e.org', chart: c, \
     targetRevision: 1.0.0}]",
    "components `a-b` and `a-c` are both release `a`"
)]
fn a_source_that_a_package_cannot_have_is_an_error(#[case] source: &str, #[case] message: &str) {
    is_said(&import(Format::Argo, &application("a", source, ""), None), message);
}

#[rstest]
#[case::cluster(
    "destination: {namespace: a}",
    "destination: {server: 'https://other.example.org', namespace: a}",
    "it goes to cluster https://other.example.org"
)]
#[case::cluster_by_name(
    "destination: {namespace: a}",
    "destination: {name: east, namespace: a}",
    "it goes to cluster east"
)]
#[case::no_namespace("destination: {namespace: a}", "destination: {}", "it has no destination.namespace")]
#[case::jq(
    "]}}",
    "]}, ignoreDifferences: [{kind: Service, jqPathExpressions: [.spec.x]}]}",
    "ignoreDifferences of Service: jqPathExpressions .spec.x is not carried over"
)]
#[case::managers(
    "]}}",
    "]}, ignoreDifferences: [{group: apps, kind: Deployment, managedFieldsManagers: [hpa]}]}",
    "ignoreDifferences of apps/Deployment: managedFieldsManagers hpa is not carried over"
)]
#[case::every_kind(
    "]}}",
    "]}, ignoreDifferences: [{kind: '*', jsonPointers: [/spec]}]}",
    "ignoreDifferences of * is not carried over"
)]
#[case::namespace_labels(
    "]}}",
    "], managedNamespaceMetadata: {labels: {team: db}}}}",
    "managedNamespaceMetadata team: \"db\" is not carried over"
)]
#[case::hydrator("]}}", "]}, sourceHydrator: {drySource: {path: x}}}", "spec.sourceHydrator is not carried over")]
fn what_changes_the_installation_is_an_error(#[case] part: &str, #[case] by: &str, #[case] message: &str) {
    let text = application("a", CHART, "");
    let changed = text.replace(part, by);
    assert_ne!(text, changed);
    is_said(&import(Format::Argo, &changed, None), message);
}

#[test]
fn charts_of_several_repositories_are_an_error() {
    let of = |name: &str, repository: &str| {
        application(
            name,
            &format!("source: {{repoURL: 'https://git.example.org/{repository}', path: charts/{name}}}"),
            "",
        )
    };
    is_said(
        &import(Format::Argo, &format!("{}{}", of("a", "one"), of("b", "two")), None),
        "its charts at a path are in several repositories (https://git.example.org/one, https://git.example.org/two)",
    );
    let same = import(Format::Argo, &format!("{}{}", of("a", "one"), of("b", "one.git")), None);
    assert_eq!(errors(&same), 0, "{:?}", said(&same));
}

#[test]
fn an_app_of_apps_inside_of_another_loses_its_wave_which_is_said() {
    let parent =
        |name: &str, path: &str| application(name, &format!("source: {{repoURL: 'https://g.org', path: {path}}}"), "");
    let texts = [
        ("root.yaml", parent("all", "teams")),
        ("teams/a.yaml", parent("team", "team-a")),
        ("teams/b.yaml", application("web", CHART, "")),
        ("team-a/db.yaml", application("db", CHART, "")),
    ];
    let documents: Vec<Document> = texts
        .iter()
        .flat_map(|(origin, text)| documents(text).into_iter().map(|d| Document { origin: (*origin).into(), ..d }))
        .collect();
    let imported = import_family(&documents, &BTreeMap::new());
    let names: Vec<_> = imported.packages.iter().map(|package| package.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["all", "team"]);
    is_said(&imported, "Application argocd/team is itself held by another one");
}

/// What an Application that is as Windlass would make it needs to have said of it.
#[test]
fn of_an_application_like_ours_little_is_said() {
    let imported = import(Format::Argo, &application("a", CHART, ""), None);
    let all: Vec<_> = imported.notes.iter().map(|note| (note.severity, note.message.as_str())).collect();
    let adopt = "to have the Package take over the Application that runs, annotate it with windlass.dev/adopt: \
                 <namespace>/<package>/<component>";
    assert_eq!(all, [(Severity::Warning, adopt)]);
}

#[test]
fn a_directory_of_applications_is_imported_by_the_command() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("git/apps")).unwrap();
    fs::create_dir_all(root.path().join("git/charts/db")).unwrap();
    fs::create_dir_all(root.path().join("git/envs")).unwrap();
    fs::write(root.path().join("git/charts/db/Chart.yaml"), "name: db\nversion: 0.3.7\n").unwrap();
    fs::write(root.path().join("git/envs/prod.yaml"), "replicas: 3\n").unwrap();
    let source = "source: {repoURL: 'https://g.org', path: apps, targetRevision: HEAD}";
    fs::write(root.path().join("git/root.yaml"), application("platform", source, "")).unwrap();
    let source = "source: {repoURL: 'https://g.org', path: charts/db, helm: {valueFiles: [/envs/prod.yaml]}}";
    fs::write(root.path().join("git/apps/db.yaml"), application("db", source, "")).unwrap();
    windlass(root.path())
        .args(["import", "argo", "git", "--version", "2.0.0", "--chart-root", "git", "-o", "out"])
        .assert()
        .code(0);
    let package = fs::read_to_string(root.path().join("out/platform.yaml")).unwrap();
    assert!(
        package.contains("path: charts/db\n    chartVersion: \"0.3.7\"\n    values:\n      replicas: 3\n"),
        "{package}"
    );
    windlass(root.path()).args(["validate", "out", "--engine", "argo"]).assert().code(0);
}

#[test]
fn a_values_file_that_is_missing_below_the_chart_root_is_named() {
    let root = tempfile::tempdir().unwrap();
    let source = "source: {repoURL: 'https://g.org', path: x, helm: {valueFiles: [/gone.yaml]}}";
    fs::write(root.path().join("a.yaml"), application("a", source, "")).unwrap();
    let output = windlass(root.path())
        .args(["import", "argo", "a.yaml", "--version", "1.0.0", "--chart-root", "."])
        .assert()
        .code(1);
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(
        stderr.contains("helm.valueFiles /gone.yaml is not carried over: there is no gone.yaml below --chart-root"),
        "{stderr}"
    );
}

#[test]
fn a_package_of_another_namespace_takes_nothing_over() {
    let imported = import(Format::Argo, &application("a", CHART, ""), Some("packages"));
    assert_eq!(imported.packages[0].metadata.namespace.as_deref(), Some("packages"));
    let wanted = "warning a/a: its Application is in namespace argocd, and so not taken over by a Package of packages";
    assert_eq!(said(&imported), [wanted]);
}
