//! `windlass import`: what is carried over, and what is said of the rest.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use rstest::rstest;
use serde_json::Value;
use windlass::import::{Document, Imported, Lookup, Options, Severity, argo, cozystack, flux, helmfile, kubepkg};
use windlass::package::names::Namespace;
use windlass::package::source::Source;
use windlass::package::version::Version;
use windlass::package::yaml;

#[path = "import/applications.rs"]
mod applications;
#[path = "import/helmfiles.rs"]
mod helmfiles;

#[derive(Clone, Copy)]
enum Format {
    Cozystack,
    Kubepkg,
    Flux,
    Argo,
    Helmfile,
}

fn documents(text: &str) -> Vec<Document> {
    let parsed = yaml::parse(text);
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    let values = parsed.documents.iter().map(yaml::Node::to_value);
    values.map(|value| Document { origin: "input.yaml".into(), value, written: None }).collect()
}

fn import(format: Format, text: &str, namespace: Option<&str>) -> Imported {
    import_documents(format, &documents(text), namespace)
}

fn import_documents(format: Format, documents: &[Document], namespace: Option<&str>) -> Imported {
    let options = Options {
        version: Some(Version::parse("3.1.0").unwrap()),
        namespace: namespace.map(|namespace| Namespace::parse(namespace).unwrap()),
        variants: BTreeMap::new(),
        chart_version: &|_| Lookup::NotLooked,
        file: &|_| Lookup::NotLooked,
    };
    match format {
        Format::Cozystack => cozystack::import(documents, &options),
        Format::Kubepkg => kubepkg::import(documents, &options),
        Format::Flux => flux::import(documents, &options),
        Format::Argo => argo::import(documents, &options),
        Format::Helmfile => {
            let values: Vec<Value> = documents.iter().map(|document| document.value.clone()).collect();
            helmfile::import(&[Source::new("input.yaml", yaml::write::write(&values).unwrap())], &options)
        }
    }
}

fn written(imported: &Imported) -> String {
    let values: Vec<Value> = imported.packages.iter().map(|package| serde_json::to_value(package).unwrap()).collect();
    yaml::write::write(&values).unwrap()
}

fn said(imported: &Imported) -> Vec<String> {
    let notes = imported.notes.iter();
    notes.map(|note| format!("{} {}: {}", note.severity.as_str(), note.subject, note.message)).collect()
}

fn errors(imported: &Imported) -> usize {
    imported.notes.iter().filter(|note| note.severity == Severity::Error).count()
}

const KUBEPKG: &str = r#"
apiVersion: kubepkg.dev/v1
kind: PackageSource
metadata: {name: mail}
spec:
  version: 2.4.0
  build: 7
  sourceRef: {kind: GitRepository, name: apps, namespace: flux-system, path: ./packages}
  provides: [smtp]
  rollback: {safe: false}
  variants:
  - name: default
    dependsOn: [dns]
    requires:
    - {package: certificates, version: ">=1.2 <2"}
    - {package: metrics, optional: true}
    - {capability: ingress}
    components:
    - name: migrate
      path: mail/migrate
      install: {namespace: mail, phase: PreUpgrade, releaseName: mail-migrate}
    - name: server
      chart: {repository: "https://charts.example.org", name: server, version: 2.4.1}
      values: {on: "off", empty: {}, nothing: null, big: 9007199254740993}
      install:
        namespace: mail
        upgradeCRDs: Skip
        waitStrategy: poller
        readyWhen:
        - {apiVersion: example.org/v1, kind: Mail, name: mail, condition: Ready}
    - name: only-published
      path: mail/extra
    - name: web
      path: mail/web
      libraries: [common]
      valuesFiles: [values-prod.yaml]
      install: {namespace: mail, dependsOn: [server, only-published]}
"#;

#[test]
fn a_kubepkg_source_becomes_a_package() {
    insta::assert_snapshot!(written(&import(Format::Kubepkg, KUBEPKG, None)));
}

#[test]
fn what_a_kubepkg_source_cannot_bring_is_said() {
    insta::assert_snapshot!(said(&import(Format::Kubepkg, KUBEPKG, None)).join("\n"));
}

const HELM_RELEASES: &str = r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: db}
spec: {url: "https://charts.example.org", interval: 1h, secretRef: {name: pull}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: cache, namespace: db}
spec: {url: "oci://registry.example.org/charts/cache", ref: {tag: 4.0.1}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: db-operator, namespace: db}
spec:
  interval: 10m
  timeout: 90s
  chart: {spec: {chart: operator, version: 1.4.0, sourceRef: {kind: HelmRepository, name: charts}}}
  install: {remediation: {retries: 3}}
  upgrade: {crds: CreateReplace, remediation: {retries: 3}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: db-cluster, namespace: db}
spec:
  interval: 10m
  timeout: 20m
  targetNamespace: tenants
  dependsOn: [{name: db-operator, readyExpr: "true"}]
  chart: {spec: {chart: ./charts/cluster, sourceRef: {kind: GitRepository, name: apps}, valuesFiles: [./charts/cluster/values-prod.yaml]}}
  upgrade: {crds: Skip}
  valuesFrom: [{kind: Secret, name: cluster, targetPath: auth.password, valuesKey: password}]
  healthCheckExprs: [{apiVersion: example.org/v1, kind: Cluster, current: "status.ready"}]
  driftDetection: {mode: enabled, ignore: [{paths: [/spec/replicas], target: {kind: Deployment, group: apps}}]}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: cache, namespace: db}
spec:
  interval: 10m
  chartRef: {kind: OCIRepository, name: cache}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shop}
spec:
  interval: 10m
  dependsOn: [{name: db-cluster, namespace: db}]
  chart: {spec: {chart: shop, version: ">=1", sourceRef: {kind: HelmRepository, name: charts, namespace: db}}}
  postRenderers: [{kustomize: {images: []}}]
"#;

#[test]
fn releases_that_depend_on_each_other_become_one_package() {
    insta::assert_snapshot!(written(&import(Format::Flux, HELM_RELEASES, None)));
}

#[test]
fn what_helm_releases_cannot_bring_is_said() {
    insta::assert_snapshot!(said(&import(Format::Flux, HELM_RELEASES, None)).join("\n"));
}

#[test]
fn a_namespace_gathers_releases_and_keeps_edges_between_namespaces() {
    let imported = import(Format::Flux, HELM_RELEASES, Some("packages"));
    let packages: Vec<_> = imported.packages.iter().map(|package| package.metadata.name.clone().unwrap()).collect();
    assert_eq!(packages, ["db-operator", "cache"]);
    let components = &imported.packages[0].spec.components;
    let edges: Vec<_> = components.iter().map(|c| (c.name.as_str(), &c.install.as_ref().unwrap().depends_on)).collect();
    assert_eq!(
        edges,
        [
            ("db-operator", &vec![]),
            ("db-cluster", &vec!["db-operator".to_owned()]),
            ("shop", &vec!["db-cluster".to_owned()])
        ]
    );
    assert!(said(&imported).iter().any(|said| said.contains("Secret db/cluster must be in namespace packages too")));
}

#[rstest]
#[case::short("operator", None, "operator")]
#[case::target("operator", Some("apps"), "apps-operator")]
// 40 characters of `<namespace>-<name>` and 12 of its SHA-256, as helm-controller cuts them.
#[case::long(
    "a-release-with-a-name-that-is-rather-long",
    Some("a-namespace-too"),
    "a-namespace-too-a-release-with-a-name-th-c775715986bd"
)]
fn the_release_keeps_the_name_that_flux_gave_it(
    #[case] name: &str,
    #[case] target: Option<&str>,
    #[case] release: &str,
) {
    let target = target.map(|target| format!("targetNamespace: {target},")).unwrap_or_default();
    let text = format!(
        "{{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {{name: {name}, namespace: db}}, \
         spec: {{{target} chart: {{spec: {{chart: charts/x, sourceRef: {{kind: GitRepository, name: apps}}}}}}}}}}"
    );
    let imported = import(Format::Flux, &text, None);
    let component = &imported.packages[0].spec.components[0];
    let written = component.install.as_ref().and_then(|install| install.release_name.clone());
    let written = written.unwrap_or_else(|| component.name.clone());
    assert_eq!(written, release);
}

#[rstest]
#[case::no_objects(Format::Flux, "{a: 1}", "there is no HelmRelease in the input")]
#[case::no_sources(
    Format::Cozystack,
    "{kind: Package, apiVersion: cozystack.io/v1}",
    "there is no PackageSource of cozystack.io in the input"
)]
#[case::wrong_type(
    Format::Cozystack,
    "{apiVersion: cozystack.io/v1alpha1, kind: PackageSource, metadata: {name: a}, spec: {variants: 7}}",
    "invalid type"
)]
#[case::no_variant(
    Format::Cozystack,
    "{apiVersion: cozystack.io/v1alpha1, kind: PackageSource, metadata: {name: a}, spec: {}}",
    "left out, since its variants are: none"
)]
#[case::cycle(
    Format::Kubepkg,
    "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: a}, spec: {variants: [{name: default, components: \
     [{name: a, path: a, install: {dependsOn: [b]}}, {name: b, path: b, install: {dependsOn: [a]}}]}]}}",
    "in a circle"
)]
#[case::name(
    Format::Kubepkg,
    "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: ../../b}, spec: {variants: [{name: default}]}}",
    "left out: the name of a Package `../../b` must be"
)]
#[case::no_source(
    Format::Kubepkg,
    "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: a}, spec: {version: 1.0.0, variants: [{name: \
     default, components: [{name: b, path: c, install: {}}]}]}}",
    "its charts at a path have no source, since it has no sourceRef"
)]
#[case::empty_field(
    Format::Kubepkg,
    "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: a}, spec: {version: 1.0.0, variants: [{name: \
     default, components: [{name: b, chart: {repository: 'https://e.org', name: c, version: 1.0.0}, install: \
     {healthCheckExprs: [{apiVersion: v1, kind: '', current: 'true'}]}}]}]}}",
    "a/b: install.healthCheckExprs.0.kind: `kind` is empty (WL005)"
)]
#[case::unreadable_component(
    Format::Kubepkg,
    "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: a}, spec: {version: 1.0.0, variants: [{name: \
     default, components: [{name: b, path: c, install: {phase: PostUpgrade}}]}]}}",
    "a/b: the package is left out, since this component cannot be read: install.phase: unknown variant `PostUpgrade`"
)]
#[case::field_of_another_type(
    Format::Flux,
    "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a, namespace: b}, spec: {chart: {spec: \
     {chart: c, version: 1.0.0, sourceRef: {kind: HelmRepository, name: 7}}}}}",
    "HelmRelease b/a cannot be read: spec.chart.spec.sourceRef.name: invalid type: integer `7`, expected a string"
)]
#[case::order_at_another_place(
    Format::Kubepkg,
    "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: a}, spec: {version: 1.0.0, requires: [{package: \
     top}], variants: [{name: default}]}}",
    "a: spec.requires is not carried over: the other format has no such field at this place, Windlass has one"
)]
#[case::missing_source(
    Format::Flux,
    "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a, namespace: b}, spec: {chart: {spec: \
     {chart: x, version: 1.0.0, sourceRef: {kind: HelmRepository, name: gone}}}}}",
    "HelmRepository b/gone is not in the input"
)]
#[case::outside_of_the_input(
    Format::Flux,
    "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a, namespace: b}, spec: {dependsOn: \
     [{name: gone}], chart: {spec: {chart: x, sourceRef: {kind: GitRepository, name: g}}}}}",
    "dependsOn b/gone is lost, since it is not in the input"
)]
#[case::values_file_of_old_versions(
    Format::Flux,
    "{apiVersion: helm.toolkit.fluxcd.io/v2beta1, kind: HelmRelease, metadata: {name: a, namespace: b}, spec: {chart: \
     {spec: {chart: charts/x, valuesFile: charts/x/prod.yaml, sourceRef: {kind: GitRepository, name: g}}}}}",
    "spec.chart.spec.valuesFile is not carried over"
)]
#[case::values_files_outside_of_the_chart(
    Format::Flux,
    "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: a, namespace: b}, spec: {chart: {spec: \
     {chart: charts/x, valuesFiles: [charts/x-prod.yaml], sourceRef: {kind: GitRepository, name: g}}}}}",
    "charts/x-prod.yaml is not in the chart's directory"
)]
fn what_cannot_be_imported_is_an_error(#[case] format: Format, #[case] text: &str, #[case] message: &str) {
    let imported = import(format, text, None);
    assert!(errors(&imported) > 0);
    assert!(
        said(&imported).iter().any(|said| said.starts_with("error ") && said.contains(message)),
        "{:?}",
        said(&imported)
    );
}

#[rstest]
#[case::range(
    "version: '>=1', sourceRef: {kind: HelmRepository, name: h}",
    "error a/a: chart.version: `>=1` is no exact version"
)]
#[case::no_repository(
    "version: 1.0.0, sourceRef: {kind: HelmRepository, name: gone}",
    "error a/a: has no chart, since HelmRepository b/gone is not in the input"
)]
fn one_fault_is_one_error_and_names_its_field(#[case] chart: &str, #[case] message: &str) {
    let text = format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: a, namespace: b}}\n\
         spec: {{chart: {{spec: {{chart: x, {chart}}}}}}}\n---\n\
         apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {{name: h, namespace: b}}\n\
         spec: {{url: 'https://charts.example.org'}}\n"
    );
    let imported = import(Format::Flux, &text, None);
    let said: Vec<String> = said(&imported).into_iter().filter(|said| said.starts_with("error ")).collect();
    assert!(said.len() == 1 && said[0].starts_with(message), "{said:?}");
}

#[test]
fn two_packages_of_one_name_are_never_one_file() {
    let text =
        "{apiVersion: kubepkg.dev/v1, kind: PackageSource, metadata: {name: a}, spec: {variants: [{name: default}]}}";
    let imported = import(Format::Kubepkg, &format!("{text}\n---\n{text}\n"), None);
    assert_eq!(imported.packages.len(), 1);
    assert!(said(&imported).contains(&"error a: left out, since there is another package of this name".to_owned()));
}

/// Where an object stands in a document: below values, and where nothing is
/// carried over as a whole, fields are anybody's.
fn object_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    if at.ends_with("/values") || at.ends_with("/valuesObject") {
        return;
    }
    match value {
        Value::Object(fields) => {
            found.push(at.to_owned());
            fields.iter().for_each(|(key, inner)| object_pointers(inner, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, inner)| object_pointers(inner, &format!("{at}/{index}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `/spec/variants/0/components/1/install` as notes write it: `components[].install`.
fn as_in_notes(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(_) => path.push_str("[]"),
            Err(_) if path.is_empty() => path.push_str(part),
            Err(_) => path.push_str(&format!(".{part}")),
        }
    }
    let of_item = ["spec.variants[].", "releases[]."].into_iter().find_map(|item| path.strip_prefix(item));
    of_item.map_or(path.clone(), str::to_owned)
}

#[rstest]
#[case::kubepkg(Format::Kubepkg, KUBEPKG)]
#[case::flux(Format::Flux, HELM_RELEASES)]
#[case::argo(Format::Argo, applications::APPLICATIONS)]
#[case::helmfile(Format::Helmfile, helmfiles::HELMFILE)]
fn no_field_is_dropped_in_silence(#[case] format: Format, #[case] text: &str) {
    let clean = documents(text);
    let mut tried = 0;
    for (index, document) in clean.iter().enumerate() {
        let mut pointers = Vec::new();
        object_pointers(&document.value, "", &mut pointers);
        for pointer in pointers {
            let mut changed = clean.clone();
            let object = changed[index].value.pointer_mut(&pointer).unwrap();
            object.as_object_mut().unwrap().insert("unheardOf".into(), "x".into());
            let said = said(&import_documents(format, &changed, None)).join("\n");
            let path = as_in_notes(&pointer);
            let whole = |part: &str| !part.is_empty() && said.contains(&format!(" {part} is not carried over"));
            let above = path.match_indices(['.', '[']).map(|(end, _)| &path[..end]).chain([path.as_str()]);
            let left_out = said.contains("only-published: left out") && pointer.ends_with("/components/2")
                || said.contains("release shop-search is left out") && pointer == "/releases/3";
            let known = said.contains("unheardOf") || above.into_iter().any(whole) || left_out;
            assert!(known || said.contains("driftDetection.ignore"), "{pointer} of document {index}:\n{said}");
            tried += 1;
        }
    }
    assert!(tried >= 15, "{tried}");
}

fn windlass(directory: &Path) -> Command {
    let mut command = Command::cargo_bin("windlass").unwrap();
    command.current_dir(directory).env("NO_COLOR", "1");
    command
}

#[test]
fn chart_versions_are_read_below_the_chart_root() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("charts/packages/mail/web")).unwrap();
    fs::write(root.path().join("charts/packages/mail/web/Chart.yaml"), "name: web\nversion: 0.3.7\n").unwrap();
    fs::write(root.path().join("mail.yaml"), KUBEPKG).unwrap();
    let output = windlass(root.path())
        .args(["import", "kubepkg", "mail.yaml", "--chart-root", "charts", "-o", "out"])
        .assert()
        .code(1); // the chart of `migrate` is missing
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("error: there is no Chart.yaml at its path below --chart-root"), "{stderr}");
    let package = fs::read_to_string(root.path().join("out/mail.yaml")).unwrap();
    assert!(package.contains("path: packages/mail/web\n    chartVersion: \"0.3.7\""), "{package}");
}

#[rstest]
#[case::cozystack("cozystack")]
#[case::flux("flux")]
#[case::argo("argo")]
#[case::helmfile("helmfile")]
fn formats_without_a_version_ask_for_one(#[case] format: &str) {
    let root = tempfile::tempdir().unwrap();
    let output = windlass(root.path()).args(["import", format, "-"]).write_stdin("").assert().code(2);
    assert_eq!(output.get_output().stdout, b"");
}

#[test]
fn directories_are_read_without_their_charts() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("in/chart/templates")).unwrap();
    fs::write(root.path().join("in/chart/Chart.yaml"), "name: x\nversion: 1.0.0\n").unwrap();
    fs::write(root.path().join("in/chart/templates/a.yaml"), "{{ if }}\n").unwrap();
    fs::write(root.path().join("in/releases.yml"), HELM_RELEASES).unwrap();
    let output = windlass(root.path()).args(["import", "flux", "in", "--version", "1.0.0", "-n", "apps"]).assert();
    let stdout = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert_eq!(stdout.matches("kind: Package\n").count(), 2);
}

/// What `kubectl get helmreleases -o yaml` prints.
#[test]
fn a_list_from_standard_input_is_read() {
    let root = tempfile::tempdir().unwrap();
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: helm.toolkit.fluxcd.io/v2\n  kind: HelmRelease\n  \
                metadata: {name: a, namespace: b, uid: u, generation: 3}\n  spec: {chart: {spec: {chart: charts/a, \
                sourceRef: {kind: GitRepository, name: g}}}}\n  status: {observedGeneration: 3}\n";
    let output = windlass(root.path()).args(["import", "flux", "-", "--version", "1.0.0"]).write_stdin(list).assert();
    let output = output.code(0).get_output().clone();
    assert!(String::from_utf8(output.stdout).unwrap().contains("path: charts/a\n"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains("status") && !stderr.contains("metadata"), "{stderr}");
}

#[test]
fn nothing_is_written_when_the_input_cannot_be_read() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.yaml"), HELM_RELEASES).unwrap();
    fs::write(root.path().join("b.yaml"), "a: [\n").unwrap();
    let output =
        windlass(root.path()).args(["import", "flux", ".", "--version", "1.0.0", "-o", "out"]).assert().code(1);
    assert!(String::from_utf8(output.get_output().stderr.clone()).unwrap().contains("b.yaml:"));
    assert!(!root.path().join("out").exists());
}

#[test]
fn a_path_that_is_not_there_is_an_input_error() {
    let root = tempfile::tempdir().unwrap();
    windlass(root.path()).args(["import", "kubepkg", "gone.yaml"]).assert().code(3);
}

#[rstest]
#[case::flux(
    "flux",
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: d}\nspec:\n  chart: {spec: {chart: app, version: 1.2.3, sourceRef: {kind: HelmRepository, name: r}}}\n  values: {id: 18446744073709551615}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: r, namespace: d}\nspec: {url: \"https://charts.example.org\"}\n"
)]
#[case::argo(
    "argo",
    "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: app, namespace: argocd}\nspec:\n  destination: {namespace: d}\n  source: {repoURL: \"https://charts.example.org\", chart: app, targetRevision: 1.2.3, helm: {valuesObject: {id: 18446744073709551615}}}\n"
)]
#[case::helmfile(
    "helmfile",
    "repositories: [{name: r, url: \"https://charts.example.org\"}]\nreleases: [{name: app, namespace: d, chart: r/app, version: 1.2.3, values: [{id: 18446744073709551615}]}]\n"
)]
fn what_validate_would_refuse_is_said_at_once(#[case] format: &str, #[case] text: &str) {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("in.yaml"), text).unwrap();
    let imported =
        windlass(root.path()).args(["import", format, "in.yaml", "--version", "1.0.0", "-o", "out"]).output().unwrap();
    let said = String::from_utf8(imported.stderr).unwrap();
    assert_eq!(imported.status.code(), Some(1), "{said}");
    assert!(said.contains("error: the integer 18446744073709551615 is beyond 64 bits signed (WL018)"), "{said}");
    windlass(root.path()).args(["validate", "out"]).assert().code(1);
}

/// What cannot be read is named as an editor jumps to it.
#[rstest]
#[case::release(
    "flux",
    "apiVersion: v1\nkind: List\nitems:\n- apiVersion: helm.toolkit.fluxcd.io/v2\n  kind: HelmRelease\n  metadata: \
     {name: a, namespace: b}\n  spec:\n    chart: {spec: {chart: 7}}\n",
    "input.yaml:8:27"
)]
#[case::application(
    "argo",
    "# first\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {source: [x]}\n",
    "input.yaml:6:8"
)]
#[case::component(
    "kubepkg",
    "apiVersion: kubepkg.dev/v1\nkind: PackageSource\nmetadata: {name: a}\nspec:\n  version: 1.0.0\n  variants:\n  - \
     name: default\n    components:\n    - name: b\n      path: c\n      install: {phase: Never}\n",
    "at input.yaml:11:24"
)]
#[case::metadata("flux", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: 5\n", "input.yaml:3:11")]
#[case::helmfile("helmfile", "releases:\n- name: a\n  chart: [x]\n", "input.yaml:3:3")]
fn a_field_of_a_wrong_type_is_named_with_its_place(#[case] format: &str, #[case] text: &str, #[case] place: &str) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("input.yaml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .current_dir(directory.path())
        .args(["import", format, "input.yaml", "--version", "1.0.0"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(place) && !said.contains("struct"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}
