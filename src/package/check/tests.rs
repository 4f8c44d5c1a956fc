//! What is found in a set of Packages.

use rstest::rstest;

use super::*;
use crate::package::diagnostic::Report;
use crate::package::load::{Input, NamespaceRule, load};
use crate::package::names::Namespace;
use crate::package::tree::testing::Files;
use crate::package::violation::Code;

const CHART: &str = "chart: {repository: \"https://charts.example.org\", name: x, version: 1.0.0}";

fn report(text: &str, options: &Options<'_>) -> Report {
    let rule = NamespaceRule::Default(Namespace::parse("apps").unwrap());
    let input = Input::Text { bytes: text.replace("CHART", CHART).into_bytes(), shown: "p.yaml".into() };
    let mut loaded = load(&[input], &rule).unwrap();
    let found = check(&loaded, options).unwrap();
    let own = std::mem::take(&mut loaded.diagnostics);
    Report::new(loaded.sources, own.into_iter().chain(found).collect())
}

fn found_with(text: &str, options: &Options<'_>) -> Vec<String> {
    let report = report(text, options);
    let line = |diagnostic: &Diagnostic| {
        let at = report.sources[diagnostic.source].position(diagnostic.span.start);
        format!("{} {}:{} {} {}", diagnostic.severity.as_str(), at.line, at.column, diagnostic.code, diagnostic.message)
    };
    report.diagnostics.iter().map(line).collect()
}

fn found(text: &str) -> Vec<String> {
    found_with(text, &Options::default())
}

/// A Package document; `spec` is what follows its version, in flow style.
fn package(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: {name}}}\nspec: {{version: 1.0.0, {spec}}}\n"
    )
}

fn component(rest: &str) -> String {
    package("db", &format!("components: [{{name: a, CHART, {rest}}}]"))
}

#[test]
fn nothing_is_said_about_a_sound_package() {
    assert_eq!(found(&component("values: {a: true, b: \"on\", c: 1.5, d: \"1.10\"}")), Vec::<String>::new());
}

#[rstest]
#[case::yes("values: {a: yes}", "yes is read as true by Kubernetes tools and as something else by others", "true")]
#[case::octal("values: {a: 0644}", "0644 is read as 420 by Kubernetes tools and as something else by others", "420")]
#[case::underscore(
    "values: {a: 1_000}",
    "1_000 is read as 1000 by Kubernetes tools and as something else by others",
    "1000"
)]
#[case::sexagesimal("values: {a: 12:30:59}", "12:30:59 is text to some tools and a number to others", "\"12:30:59\"")]
#[case::short_hash(
    "values: {a: 1234e5}",
    "1234e5 is read as 123400000 by Kubernetes tools and as something else by others",
    "123400000"
)]
#[case::point_and_zero("values: {a: 3.0}", "3.0 is a number and is read as 3", "")]
#[case::trailing_zero("values: {a: 1.10}", "1.10 is a number and is read as 1.1", "")]
#[case::key("values: {on: 1}", "the key `on` is read as `true` by some tools and as `on` by others", "")]
fn scalars_that_readers_disagree_about_are_warned_of(#[case] values: &str, #[case] message: &str, #[case] fix: &str) {
    let report = report(&component(values), &Options::default());
    let diagnostic = &report.diagnostics[0];
    assert_eq!(
        (diagnostic.code, diagnostic.severity, diagnostic.message.as_str()),
        (Code::AmbiguousScalar, Severity::Warning, message)
    );
    assert_eq!((diagnostic.fix.as_deref().unwrap_or(""), report.diagnostics.len()), (fix, 1));
    assert_eq!(diagnostic.component.as_deref(), Some("a"));
}

#[test]
fn what_aliases_repeat_is_said_once() {
    let components = "components: [{name: a, CHART, values: &v {on: 1, x: yes}, install: {readyWhen: &r [{apiVersion: v1, kind: A, name: a, expr: object.status.x == 1}]}},
      {name: b, CHART, values: *v, install: {readyWhen: *r}}]";
    let codes: Vec<_> =
        report(&package("db", components), &Options::default()).diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::AmbiguousScalar, Code::AmbiguousScalar, Code::UnguardedStatus]);
}

#[test]
fn findings_of_a_package_have_a_limit_and_errors_come_first() {
    let values: String = (0..300).map(|n| format!("k{n}: yes, ")).collect();
    let source = "source: {repoURL: x, revision: main}";
    let found = found(&package("db", &format!("components: [{{name: a, path: a, {source}, values: {{{values}}}}}]")));
    assert_eq!(found.len(), 201, "{found:#?}");
    assert!(found.iter().any(|line| line.contains("WL029")), "{found:?}");
    assert!(found.iter().any(|line| line.contains("more than 200 findings in this Package")), "{found:?}");
}

/// A Package with such fields of `metadata` beside its name.
fn with_metadata(fields: &str) -> String {
    package("db", "components: []").replace("{name: db}", &format!("{{name: db, {fields}}}"))
}

#[rstest]
#[case::namespace("namspace: prod", "error 4:22 WL002 unknown field `namspace`", "did you mean `namespace`?")]
#[case::annotations("annotation: {a: b}", "error 4:22 WL002 unknown field `annotation`", "did you mean `annotations`?")]
#[case::label_name("labels: {\"bad key!\": a}", "error 4:31 WL006 `bad key!` is no name of a label or annotation", "")]
#[case::annotation_name("annotations: {a/b/c: d}", "error 4:36 WL006 `a/b/c` is no name of a label or annotation", "")]
#[case::label_domain("labels: {Ex.org/b: d}", "error 4:31 WL006 `Ex.org/b` is no name of a label or annotation", "")]
#[case::label_value("labels: {a: has space}", "error 4:34 WL005 `has space` is no value of a label", "")]
#[case::rollback(
    "annotations: {windlass.dev/rollback-to: three}",
    "warning 4:62 WL005 `three` names no revision",
    "write the number of a revision, `@`, and any text that was not there before: \"3@monday\""
)]
#[case::force(
    "annotations: {windlass.dev/force-delete: \"yes\"}",
    "warning 4:63 WL005 `yes` has no effect: only `true` has",
    ""
)]
#[case::misspelt(
    "annotations: {windlass.dev/rety: \"1\"}",
    "warning 4:55 WL002 nothing reads the annotation `windlass.dev/rety`",
    "did you mean `windlass.dev/retry`?"
)]
#[case::of_something_else(
    "annotations: {windlass.dev/adopt: a/b/c}",
    "warning 4:56 WL002 nothing reads the annotation `windlass.dev/adopt`",
    ""
)]
fn what_is_wrong_with_metadata_is_found(#[case] fields: &str, #[case] message: &str, #[case] help: &str) {
    let text = with_metadata(fields);
    assert_eq!(found(&text), [message]);
    let report = report(&text, &Options::default());
    assert!(report.diagnostics[0].help.contains(help), "{:?}", report.diagnostics[0]);
}

#[rstest]
#[case::labels("labels: {app: \"\", example.org/tier: A-b_c.9}")]
#[case::annotations(
    "annotations: {Example.org/x: any text!, windlass.dev/retry: \"1\", windlass.dev/rollback-to: 3@a}"
)]
#[case::other_fields("generateName: db-, finalizers: [a.b/c], ownerReferences: []")]
fn what_an_api_server_takes_in_metadata_is_no_finding(#[case] fields: &str) {
    assert_eq!(found(&with_metadata(fields)), Vec::<String>::new());
}

#[rstest]
#[case::above("values: {a: 9223372036854775808}", true)]
#[case::far_above("values: {a: 99999999999999999999999}", true)]
#[case::below("values: {a: -9223372036854775809}", true)]
#[case::largest("values: {a: 9223372036854775807}", false)]
#[case::float("values: {a: 1.5e300}", false)]
#[case::quoted("values: {a: \"9223372036854775808\"}", false)]
fn integers_beyond_64_bits_are_errors(#[case] values: &str, #[case] error: bool) {
    let found = found(&component(values));
    assert_eq!(found.iter().any(|line| line.starts_with("error") && line.contains("WL018")), error, "{found:?}");
    assert_eq!(found.len(), usize::from(error));
}

#[test]
fn a_number_that_begins_with_zero_is_no_large_number() {
    let found = found(&component("values: {port: 08080}"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("warning") && found[0].contains("08080 is read as 8080 by"), "{found:?}");
}

#[rstest]
#[case::comparison("object.spec.a = 2", "compare with `==`")]
#[case::and("object.spec.a & true", "write `&&`")]
#[case::word("object.spec.a and true", "write `&&`")]
#[case::bracket("(object.spec.a", "something is missing at its end, such as a closing bracket")]
#[case::text("object.spec.a == 'x", "close the text with the quote that begins it")]
#[case::function("object.spec.?a.orValu(0) == 1", "did you mean `orValue`?")]
fn the_commonest_slips_in_expressions_are_told_with_the_remedy(#[case] expression: &str, #[case] help: &str) {
    let entry = format!("{{apiVersion: v1, kind: A, name: a, expr: \"{expression}\"}}");
    let text = component(&format!("install: {{readyWhen: [{entry}]}}"));
    let report = report(&text, &Options::default());
    let error = report.diagnostics.iter().find(|finding| finding.code == Code::Expression).unwrap();
    assert!(error.help.starts_with(help), "{} / {}", error.message, error.help);
}

#[rstest]
#[case::source(
    "path: p, source: {repoURL: x, revision: z}",
    "error 5:60 WL029 `source` is written by the Argo CD plugin alone"
)]
fn fields_of_the_plugin_are_refused_in_files(#[case] rest: &str, #[case] expected: &str) {
    let text = package("db", &format!("components: [{{name: a, {rest}}}]"));
    assert_eq!(
        found(&text),
        [expected.replace("5:60", &format!("5:{}", text.lines().nth(4).unwrap().find("source").unwrap() + 1))]
    );
}

#[rstest]
#[case::kubevirt("kubevirt.io/v1", "KubeVirt", "Available", true)]
#[case::kubevirt_alpha("kubevirt.io/v1alpha3", "KubeVirt", "Available", true)]
#[case::cdi("cdi.kubevirt.io/v1beta1", "CDI", "Available", true)]
#[case::deployment("apps/v1", "Deployment", "Available", true)]
#[case::other_condition("kubevirt.io/v1", "KubeVirt", "Created", false)]
#[case::other_group("example.org/v1", "KubeVirt", "Available", false)]
fn conditions_that_stay_true_are_warned_of(
    #[case] api: &str,
    #[case] kind: &str,
    #[case] condition: &str,
    #[case] warned: bool,
) {
    let entry =
        format!("install: {{readyWhen: [{{apiVersion: {api}, kind: {kind}, name: x, condition: {condition}}}]}}");
    let found = found(&component(&entry));
    assert_eq!(found.iter().any(|line| line.contains("WL041")), warned, "{found:?}");
}

#[rstest]
#[case::ready_when("readyWhen: [{apiVersion: apps/v1, kind: Deployment, name: x, condition: Available}]", "readyWhen")]
#[case::replace("replace: true", "replace")]
fn fields_without_effect_on_a_hook_are_warned_of(#[case] field: &str, #[case] name: &str) {
    let on_a_hook = component(&format!("install: {{phase: PreUpgrade, {field}}}"));
    let found = found(&on_a_hook);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("warning 5:"), "{found:?}");
    assert!(found[0].ends_with(&format!("WL047 {name} has no effect on a hook")), "{found:?}");
    let elsewhere = self::found(&component(&format!("install: {{{field}}}")));
    assert!(elsewhere.iter().all(|line| !line.contains("WL047")), "{elsewhere:?}");
}

#[rstest]
#[case::compat("{mode: Compat, nodeSelector: {pool: canary}}", "", Some("nodeSelector has no effect in mode Compat"))]
#[case::strict("{mode: Strict, nodeSelector: {pool: canary}}", "", None)]
#[case::unsafe_rollback("{onFailure: Rollback}", "", Some("onFailure: Rollback has no effect"))]
#[case::safe_rollback("{onFailure: Rollback}", "rollback: {safe: true}, ", None)]
fn fields_without_effect_on_a_canary_are_warned_of(
    #[case] canary: &str,
    #[case] spec: &str,
    #[case] expected: Option<&str>,
) {
    let found = found(&package("db", &format!("{spec}components: [{{name: m, CHART, canary: {canary}}}]")));
    assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
    let expected = expected.map(|expected| format!("WL047 {expected}"));
    assert!(expected.is_none_or(|expected| found[0].contains(&expected)), "{found:?}");
}

#[test]
fn a_condition_that_must_be_false_says_something() {
    let entry = "install: {readyWhen: [{apiVersion: apps/v1, kind: Deployment, name: x, condition: Available, status: \"False\"}]}";
    assert_eq!(found(&component(entry)), Vec::<String>::new());
}

#[rstest]
#[case::plain("app-settings", true)]
#[case::version("app-settings-v2", true)]
#[case::word("app-deadbeef", true)]
#[case::kustomize("app-settings-5h9tk7c8mf", false)]
#[case::hex("app-settings-3f2a9c1b", false)]
fn names_without_a_content_hash_are_warned_of(#[case] name: &str, #[case] warned: bool) {
    let found = found(&component(&format!("valuesFrom: [{{kind: Secret, name: {name}}}]")));
    assert_eq!(found.iter().any(|line| line.contains("WL040")), warned, "{found:?}");
}

#[test]
fn a_hook_and_a_safe_rollback_are_warned_of() {
    let hook = package("db", "rollback: {safe: true}, components: [{name: m, CHART, install: {phase: PreUpgrade}}]");
    assert_eq!(found(&hook), ["warning 5:41 WL039 a rollback is said to be safe, but hook `m` will have run"]);
}

#[rstest]
#[case::from("upgrade: {from: \">=1.0.0\"}", true)]
#[case::to("rollback: {safe: true, to: \"^2\"}", true)]
#[case::older("upgrade: {from: \">=0.9\"}", false)]
#[case::any("upgrade: {from: \"*\"}", false)]
#[case::downgrade("upgrade: {from: \"^2\", allowDowngrade: true}", false)]
fn paths_that_no_older_version_is_on_are_warned_of(#[case] spec: &str, #[case] warned: bool) {
    let found = found(&package("db", spec));
    assert_eq!(found.iter().any(|line| line.contains("no version older than 1.0.0")), warned, "{found:?}");
}

#[test]
fn flux_substitution_is_warned_of_once_per_package() {
    let values = "values: {a: \"${VAR}\", b: \"x${OTHER:=1}\", c: \"$${KEPT}\", d: \"{{ tpl }}\", e: \"${{ x }}\"}";
    assert_eq!(
        found(&component(values)),
        ["warning 5:135 WL043 `${…}` is replaced where Flux substitutes after the build, and 1 more in this Package"]
    );
    let off = component(values)
        .replace("{name: db}", "{name: db, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}");
    assert_eq!(found(&off), Vec::<String>::new());
}

#[test]
fn templates_outside_of_values_are_warned_of() {
    let found = found(&package("db", "serviceAccountName: \"{{ account }}\""));
    assert!(found.iter().any(|line| line.contains("WL006") || line.contains("WL043")), "{found:?}");
}

#[test]
fn what_only_the_cluster_writes_is_warned_of() {
    let text = package("db", "").replace("{name: db}", "{name: db, uid: x, creationTimestamp: null}")
        + "status: {version: 1.0.0}\n";
    let found = found(&text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|line| line.contains("WL044")));
}

#[rstest]
#[case::syntax("object.status.phase ==", "error", "WL030")]
#[case::long("CHARS100K", "error", "WL019")]
#[case::nested("PARENS1000", "error", "WL030")]
#[case::unknown("obj.status.phase == 'x'", "error", "WL031")]
#[case::flux_root("status.phase == 'x'", "error", "WL031")]
#[case::unguarded("object.status.phase == 'x'", "warning", "WL038")]
fn expressions_are_judged(#[case] expr: &str, #[case] severity: &str, #[case] code: &str) {
    let expr = expr
        .replace("CHARS100K", &"a".repeat(100 << 10))
        .replace("PARENS1000", &format!("{}1{}", "(".repeat(1000), ")".repeat(1000)));
    let found =
        found(&component(&format!("install: {{readyWhen: [{{apiVersion: v1, kind: A, name: x, expr: \"{expr}\"}}]}}")));
    assert!(found.iter().any(|line| line.starts_with(severity) && line.contains(code)), "{found:?}");
}

#[rstest]
#[case("object.?status.phase.orValue('') == 'x' && version != fromVersion")]
#[case("has(object.status) && has(object.status.phase) && object.status.phase == 'x'")]
#[case("object.metadata.labels.exists(label, label == version)")]
fn sound_expressions_are_left_alone(#[case] expr: &str) {
    let entry = format!("install: {{readyWhen: [{{apiVersion: v1, kind: A, name: x, expr: \"{expr}\"}}]}}");
    assert_eq!(found(&component(&entry)), Vec::<String>::new());
}

#[test]
fn an_expression_is_pointed_into() {
    let entry = "install: {readyWhen: [{apiVersion: v1, kind: A, name: x, expr: \"true && nope\"}]}";
    let text = component(entry).replace("CHART", CHART);
    let column = text.lines().nth(4).unwrap().find("nope").unwrap() + 1;
    assert_eq!(found(&text), [format!("error 5:{column} WL031 there is no variable `nope`")]);
    let block = "---\napiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: db}\nspec:\n  version: 1.0.0\n  components:\n  - name: a\n    CHART\n    install:\n      readyWhen:\n      - apiVersion: v1\n        kind: A\n        name: x\n        expr: |\n          true &&\n            nope\n";
    assert_eq!(found(block), ["error 17:13 WL031 there is no variable `nope`"]);
}

#[test]
fn health_checks_have_the_variables_of_flux() {
    let entry = |current: &str| {
        component(&format!("install: {{healthCheckExprs: [{{apiVersion: v1, kind: A, current: \"{current}\"}}]}}"))
    };
    assert!(found(&entry("object.spec.x == 1"))[0].contains("WL031"));
    assert!(found(&entry("status.ready"))[0].contains("as long as `status.ready` is absent this is an error to Flux"));
    assert_eq!(found(&entry("has(status.ready) && status.ready && data.x == '1'")), Vec::<String>::new());
}

#[rstest]
#[case::values_from(Engine::Argo, "valuesFrom: [{kind: Secret, name: a-3f2a9c1b}]", "error", "WL017")]
#[case::create(Engine::Argo, "install: {upgradeCRDs: Create}", "error", "WL017")]
#[case::health(
    Engine::Argo,
    "install: {healthCheckExprs: [{apiVersion: v1, kind: A, current: \"true\"}]}",
    "warning",
    "WL042"
)]
#[case::secret(
    Engine::Argo,
    "install: {}}, {name: b, chart: {repository: \"https://x.example\", name: b, version: 1.0.0, secretRef: {name: s}}",
    "warning",
    "WL042"
)]
fn the_chosen_engine_counts(#[case] engine: Engine, #[case] rest: &str, #[case] severity: &str, #[case] code: &str) {
    let with = Options { engine: Some(engine), charts: None };
    let found_it = found_with(&component(rest), &with);
    assert!(found_it.len() == 1 && found_it[0].starts_with(severity) && found_it[0].contains(code), "{found_it:?}");
    assert_eq!(found(&component(rest)), Vec::<String>::new());
    let own = component(rest).replace("version: 1.0.0, components", "version: 1.0.0, engine: flux, components");
    assert_eq!(found_with(&own, &with), Vec::<String>::new());
}

#[test]
fn flux_needs_chart_version_and_source() {
    let text = package("db", "components: [{name: a, path: p}]");
    let found = found_with(&text, &Options { engine: Some(Engine::Flux), charts: None });
    assert_eq!(found.iter().filter(|line| line.contains("error") && line.contains("WL028")).count(), 2, "{found:?}");
}

#[test]
fn two_packages_of_one_name_are_an_error_within_a_namespace() {
    let twice = package("db", "") + &package("db", "");
    assert_eq!(found(&twice), ["error 9:18 WL024 Package `db` is there twice in namespace `apps`: also at p.yaml:4"]);
    let elsewhere = package("db", "") + &package("db, namespace: other", "");
    assert_eq!(found(&elsewhere), Vec::<String>::new());
}

#[test]
fn two_children_of_one_name_are_an_error() {
    let text = package("a-b", "components: [{name: c, CHART, install: {releaseName: x}}]")
        + &package("a", "components: [{name: b-c, CHART, install: {releaseName: z}}]");
    assert_eq!(
        found(&text),
        [
            "error 10:44 WL025 component `b-c` of Package `a` and component `c` of Package `a-b` are both `a-b-c` in the cluster"
        ]
    );
}

#[test]
fn the_numbered_children_of_hooks_count_too() {
    let text = package("a", "components: [{name: b, CHART, install: {releaseName: x, phase: PreUpgrade}}]")
        + &package("a-b", "components: [{name: \"7\", CHART, install: {releaseName: z}}]");
    let found = found(&text);
    assert!(found.len() == 1 && found[0].contains("are both `a-b-7` in the cluster"), "{found:?}");
}

#[test]
fn two_hooks_of_one_name_are_an_error() {
    let text = package("a-b", "components: [{name: c, CHART, install: {releaseName: x, phase: PreUpgrade}}]")
        + &package("a", "components: [{name: b-c, CHART, install: {releaseName: z, phase: PreUpgrade}}]");
    assert_eq!(
        found(&text),
        [
            "error 10:44 WL025 hook `b-c` of Package `a` and hook `c` of Package `a-b` are both `a-b-c-1` in the cluster in revision 1"
        ]
    );
    let elsewhere = text.replacen("{name: a}", "{name: a, namespace: other}", 1);
    assert_eq!(found(&elsewhere), Vec::<String>::new());
}

#[test]
fn two_packages_with_one_release_are_an_error() {
    let text = package("one", "components: [{name: a, CHART}]") + &package("two", "components: [{name: a, CHART}]");
    assert_eq!(
        found(&text),
        ["error 10:44 WL026 component `a` and component `a` of Package `one` are both release `a` in namespace `apps`"]
    );
}

#[test]
fn requirements_nobody_meets_are_warned_of() {
    let text = package(
        "app",
        "requires: [{package: databse}, {package: cache, optional: true}, {package: database, version: \">=2\"}, {kubernetes: \">=1.30\"}]",
    ) + &package("database", "");
    let report = report(&text, &Options::default());
    let shown: Vec<_> =
        report.diagnostics.iter().map(|d| (d.severity, d.code, d.message.as_str(), d.help.as_str())).collect();
    assert_eq!(
        shown,
        [
            (
                Severity::Warning,
                Code::UnmetRequirement,
                "no Package `databse` in namespace `apps` among these files",
                "did you mean `database`?"
            ),
            (
                Severity::Warning,
                Code::UnmetRequirement,
                "Package `database` is at 1.0.0 here, not in `>=2`",
                "widen the range, or change the version at p.yaml:10"
            ),
        ]
    );
}

#[test]
fn requirements_that_exclude_each_other_are_warned_of() {
    let text = package("a", "requires: [{package: db, version: ^1}]")
        + &package("b", "requires: [{package: db, version: ^2}]")
        + &package("db", "");
    let found = found(&text);
    assert!(
        found.iter().any(|line| line
            .contains("WL035 no version of Package `db` is both in `^2` and in `^1`, which Package `a` requires")),
        "{found:?}"
    );
}

#[rstest]
#[case::elsewhere(
    package("db", "requires: [{package: cache}]") + &package("cache", "").replace("name: cache", "name: cache, namespace: other"),
    "there is one in namespace `other`"
)]
#[case::itself(package("certificates", "requires: [{package: certificate}]"), "the Package will wait until")]
fn nobody_is_advised_to_require_what_cannot_be_met(#[case] text: String, #[case] help: &str) {
    let report = report(&text, &Options::default());
    let unmet = report.diagnostics.iter().find(|finding| finding.code == Code::UnmetRequirement).unwrap();
    assert!(unmet.help.starts_with(help), "{}", unmet.help);
}

#[test]
fn a_requirement_that_has_errors_of_its_own_is_there() {
    let text = package("app", "requires: [{package: db}]") + &package("db", "engine: x");
    assert_eq!(found(&text).iter().filter(|line| line.contains("WL036")).count(), 0);
}

#[rstest]
#[case(2)]
#[case(50)]
fn packages_that_require_each_other_are_an_error_with_the_path(#[case] length: usize) {
    let name = |n: usize| format!("p{:02}", n % length);
    let text: String =
        (0..length).map(|n| package(&name(n), &format!("requires: [{{package: {}}}]", name(n + 1)))).collect();
    let path: Vec<String> = (0..=length).map(name).collect();
    assert_eq!(
        found(&text),
        [format!("error 5:45 WL027 Packages require each other in a circle: {}", path.join(" -> "))]
    );
}

#[test]
fn a_package_that_requires_itself_is_an_error() {
    assert_eq!(
        found(&package("db", "requires: [{package: db}]")),
        ["error 5:45 WL027 a Package cannot require itself"]
    );
}

#[test]
fn a_circle_is_found_behind_a_tail_and_only_once() {
    let text = package("a", "requires: [{package: b}, {package: c}]")
        + &package("b", "requires: [{package: c}]")
        + &package("c", "requires: [{package: b}]");
    assert_eq!(found(&text), ["error 10:45 WL027 Packages require each other in a circle: b -> c -> b"]);
}

#[test]
fn revisions_that_would_not_fit_are_errors() {
    let text = package(
        "db",
        &format!(
            "components: [{{name: a, CHART}}, {{name: big, CHART, values: {{m: {}, o: {}}}}}]",
            "x".repeat(600_000),
            "y".repeat(600_000)
        ),
    );
    let found = found(&text);
    assert!(found.len() == 1 && found[0].contains("WL034") && found[0].contains("`big`"), "{}", found.len());
}

fn charts() -> Files {
    Files::new([
        ("charts/a/Chart.yaml", "name: a\nversion: 1.2.3\n"),
        ("charts/a/values-prod.yaml", ""),
        ("charts/real/Chart.yaml", "name: a\nversion: 1.2.3\n"),
    ])
    .link("charts/link", Some("charts/real"))
}

fn found_of_chart(files: &Files, severity: Severity) -> Vec<String> {
    let options = Options { engine: None, charts: Some(Charts { roots: &[files], severity }) };
    found_with(&package("db", "components: [{name: a, path: charts/a, chartVersion: 1.0.0}]"), &options)
}

/// What the plugin and `render` refuse.
#[rstest]
#[case::partial_version(
    "version: \"1.0\"",
    "WL032 `charts/a` is no chart: its Chart.yaml states no exact version: `1.0` is no exact version: write all three numbers, such as `1.4.0`"
)]
#[case::number("version: 1.0", "WL032 `charts/a` is no chart: its Chart.yaml states no version")]
#[case::no_version("name: a", "WL032 `charts/a` is no chart: its Chart.yaml states no version")]
#[case::empty("", "WL032 `charts/a` is no chart: its Chart.yaml states no version")]
#[case::no_yaml("name: [", "WL032 `charts/a` is no chart: its Chart.yaml is no YAML: ")]
#[case::binary("name: \0", "WL032 `charts/a` is no chart: its Chart.yaml is no YAML: ")]
#[case::twice(
    "version: 1.0.0\nversion: 1.0.0",
    "WL032 `charts/a` is no chart: its Chart.yaml is no YAML: the key `version` is there twice"
)]
fn a_chart_that_cannot_be_used_is_found(#[case] chart: &str, #[case] message: &str) {
    let files = Files::new([("charts/a/Chart.yaml", chart)]);
    for severity in [Severity::Error, Severity::Warning] {
        let found = found_of_chart(&files, severity);
        let start = format!("{} 5:53 {message}", severity.as_str());
        assert!(found.len() == 1 && found[0].starts_with(&start), "{found:?}");
    }
}

#[test]
fn a_link_inside_a_chart_is_found() {
    let files = Files::new([("charts/a/Chart.yaml", "version: 1.0.0")]).link("charts/a/templates/x.yaml", None);
    assert_eq!(
        found_of_chart(&files, Severity::Error),
        ["error 5:53 WL016 `charts/a/templates/x.yaml` is a symbolic link: put the files themselves there"]
    );
}

#[rstest]
#[case::there("path: charts/a, chartVersion: 1.2.3, valuesFiles: [values-prod.yaml]", &[])]
#[case::version_unknown("path: ./charts//a/", &[])]
#[case::missing("path: charts/b", &["error WL032 there is no chart at `charts/b`"])]
#[case::no_chart("path: charts", &["error WL032 there is no chart at `charts`"])]
#[case::values_missing("path: charts/a, valuesFiles: [x.yaml]", &["error WL032 the chart has no file `x.yaml`"])]
#[case::version("path: charts/a, chartVersion: 1.2.4", &["error WL033 chartVersion is 1.2.4, but charts/a/Chart.yaml says 1.2.3"])]
#[case::link("path: charts/link", &["error WL016 `charts/link` leads through a symbolic link"])]
#[case::out("path: ../x", &["error WL016 `../x` leads out of the source"])]
fn chart_directories_are_looked_at(#[case] rest: &str, #[case] expected: &[&str]) {
    let files = charts();
    let options = Options { engine: None, charts: Some(Charts { roots: &[&files], severity: Severity::Error }) };
    let found = found_with(&package("db", &format!("components: [{{name: a, {rest}}}]")), &options);
    let without_place = found.iter().map(|line| {
        let mut words = line.splitn(3, ' ');
        format!("{} {}", words.next().unwrap(), words.nth(1).unwrap())
    });
    assert_eq!(without_place.collect::<Vec<_>>(), expected);
}

#[test]
fn a_missing_chart_is_only_a_warning_where_the_root_is_a_guess() {
    let files = charts();
    let options = Options { engine: None, charts: Some(Charts { roots: &[&files], severity: Severity::Warning }) };
    let found = found_with(&package("db", "components: [{name: a, path: nowhere}]"), &options);
    assert!(found.len() == 1 && found[0].starts_with("warning"), "{found:?}");
}
