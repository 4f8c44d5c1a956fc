//! What is found in a set of Packages.

mod charts;
mod sets;

use rstest::rstest;

use super::*;
use crate::package::diagnostic::Report;
use crate::package::load::{Input, NamespaceRule, load};
use crate::package::names::Namespace;
use crate::package::violation::Code;
use crate::package::yaml;

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
#[case::small(
    "values: {a: 1e-7}",
    "1e-7 is read as 1.0e-7 by Kubernetes tools and as something else by others",
    "1.0e-7"
)]
#[case::large(
    "values: {a: -12e20}",
    "-12e20 is read as -1.2e+21 by Kubernetes tools and as something else by others",
    "-1.2e+21"
)]
#[case::left_out(
    "values: {a: {b: }}",
    "a value that is left out between brackets is null to some tools and empty text to others",
    " null"
)]
#[case::left_out_with_its_colon(
    "values: {a: {b}}",
    "a value that is left out between brackets is null to some tools and empty text to others",
    ""
)]
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
    assert_eq!((diagnostic.fix.as_ref().map_or("", |fix| &fix.text), report.diagnostics.len()), (fix, 1));
    assert_eq!(diagnostic.component.as_deref(), Some("a"));
}

/// What is advised is itself no matter of opinion, and the same number.
#[test]
fn advice_about_numbers_holds() {
    for written in
        ["1e-7", "1e3", "-12e20", "1e300", "5e-324", "0b11", "-0x1F", "017", "0o17", "1_000", "08", "1e15", "123e16"]
    {
        let root = yaml::parse(&format!("a: {written}")).documents.remove(0);
        let advice = yaml::plainly(&root.get("a").unwrap().content).unwrap();
        assert_eq!(yaml::ambiguity(&advice), None, "{advice}");
        let again = yaml::parse(&format!("a: {advice}")).documents.remove(0);
        assert_eq!(again.to_value()["a"].as_f64(), root.to_value()["a"].as_f64(), "{advice}");
    }
}

#[test]
fn an_unknown_variable_is_shown_where_it_is_read() {
    let expr = "install: {readyWhen: [{apiVersion: v1, kind: A, name: a, expr: \"object.b == \\\"b\\\" && b\"}]}";
    let text = component(expr).replace("CHART", CHART);
    let line = text.lines().last().unwrap();
    let column = line.find("&& b").unwrap() + 4;
    let wanted = format!("error 5:{column} WL031 there is no variable `b`");
    assert!(found(&text).contains(&wanted), "{:?} {wanted}", found(&text));
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
#[case::key("nodeSelector: {\"../../a b\": x}", "WL006 `../../a b` is no name of a label or annotation")]
#[case::value("nodeSelector: {pool: x y}", "WL005 `x y` is no value of a label")]
#[case::long(
    "nodeSelector: {pool: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}",
    "is no value of a label"
)]
#[case::annotation("matchAnnotations: [a, \"a b\"]", "WL006 `a b` is no name of a label or annotation")]
fn labels_and_annotations_of_a_canary_that_nothing_can_carry_are_refused(#[case] canary: &str, #[case] message: &str) {
    let found = found(&component(&format!("canary: {{{canary}}}")));
    assert!(found.len() == 1 && found[0].contains(message) && found[0].starts_with("error"), "{found:?}");
    let well =
        "nodeSelector: {node-role.kubernetes.io/worker: \"\", pool: a_b.c}, matchAnnotations: [example.org/Version]";
    let found = self::found(&component(&format!("canary: {{{well}}}")));
    assert_eq!(found, Vec::<String>::new());
}

#[rstest]
#[case::values("values: {\"${VAR}\": 1}")]
#[case::deeper("values: {a: {\"x${VAR}\": {b: 1}}}")]
fn flux_substitution_of_a_key_is_warned_of(#[case] rest: &str) {
    let found = found(&component(rest));
    assert!(found.len() == 1 && found[0].contains("WL043 `${…}` is replaced"), "{found:?}");
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
    let with = Options { engine: Some(engine), ..Options::default() };
    let found_it = found_with(&component(rest), &with);
    assert!(found_it.len() == 1 && found_it[0].starts_with(severity) && found_it[0].contains(code), "{found_it:?}");
    assert_eq!(found(&component(rest)), Vec::<String>::new());
    let own = component(rest).replace("version: 1.0.0, components", "version: 1.0.0, engine: flux, components");
    assert_eq!(found_with(&own, &with), Vec::<String>::new());
}

#[test]
fn flux_needs_chart_version_and_source() {
    let text = package("db", "components: [{name: a, path: p}]");
    let found = found_with(&text, &Options { engine: Some(Engine::Flux), ..Options::default() });
    assert_eq!(found.iter().filter(|line| line.contains("error") && line.contains("WL028")).count(), 2, "{found:?}");
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
