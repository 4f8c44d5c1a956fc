//! One wrong thing each, and many at once.

use rstest::rstest;

use super::*;
use crate::package::yaml;

const HEAD: &str = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: db}\nspec:\n  version: 1.0.0\n";

fn findings(text: &str) -> Vec<(String, Code, String, String)> {
    let documents = yaml::parse(text);
    assert_eq!(documents.problems, []);
    let structure = check(&documents.documents[0]);
    let typed: Result<crate::api::Package, _> = serde_json::from_value(structure.fitting.clone());
    assert!(typed.is_ok(), "{typed:?} {}", structure.fitting);
    let found = structure.findings.into_iter().map(|finding| finding.violation);
    found.map(|violation| (violation.pointer, violation.code, violation.message, violation.help)).collect()
}

#[rstest]
#[case::unknown(
    "  upgrades: {}",
    "/spec/upgrades",
    Code::UnknownField,
    "unknown field `upgrades`",
    "did you mean `upgrade`?"
)]
#[case::unknown_case(
    "  serviceaccountname: x",
    "/spec/serviceaccountname",
    Code::UnknownField,
    "unknown field `serviceaccountname`",
    "did you mean `serviceAccountName`?"
)]
#[case::short_for(
    "  components: [{name: a, chart: {repository: 'https://x', repo: y, name: a, version: 1.0.0}}]",
    "/spec/components/0/chart/repo",
    Code::UnknownField,
    "unknown field `repo`",
    "did you mean `repository`?"
)]
#[case::boolean_for_map(
    "  rollback: true",
    "/spec/rollback",
    Code::WrongType,
    "`rollback` must be a map, this is a boolean",
    "did you mean `{safe: true}`?"
)]
#[case::text_for_map(
    "  sourceRef: platform",
    "/spec/sourceRef",
    Code::WrongType,
    "`sourceRef` must be a map, this is text",
    "known here: kind, name"
)]
#[case::misplaced(
    "  timeout: 1m",
    "/spec/timeout",
    Code::UnknownField,
    "unknown field `timeout`",
    "`timeout` belongs under `upgrade`"
)]
#[case::misplaced_in_component(
    "  components: [{name: a, path: p, dependsOn: [b]}]",
    "/spec/components/0/dependsOn",
    Code::UnknownField,
    "unknown field `dependsOn`",
    "`dependsOn` belongs under `install`"
)]
#[case::foreign(
    "  sourceRef: {kind: GitRepository, name: x, banana: 1}",
    "/spec/sourceRef/banana",
    Code::UnknownField,
    "unknown field `banana`",
    "known here: kind, name"
)]
#[case::text_wanted(
    "  serviceAccountName: 5",
    "/spec/serviceAccountName",
    Code::WrongType,
    "`serviceAccountName` must be text, this is an integer",
    "put it in quotes: without them YAML reads another type"
)]
#[case::boolean_for_text(
    "  serviceAccountName: y",
    "/spec/serviceAccountName",
    Code::WrongType,
    "`serviceAccountName` must be text, this is a boolean",
    "put it in quotes: without them YAML reads another type"
)]
#[case::text_for_boolean(
    "  suspend: \"true\"",
    "/spec/suspend",
    Code::WrongType,
    "`suspend` must be true or false, this is text",
    "write true or false, without quotes"
)]
#[case::text_for_list(
    "  components: [{name: a, path: p, install: {dependsOn: b}}]",
    "/spec/components/0/install/dependsOn",
    Code::WrongType,
    "`dependsOn` must be a list, this is text",
    "write a list, also for one: `[…]` or a line with `- `"
)]
#[case::map_for_list(
    "  components: {}",
    "/spec/components",
    Code::WrongType,
    "`components` must be a list, this is a map",
    "write a list: a line with `- ` for each entry"
)]
#[case::float_for_integer(
    "  upgrade: {retries: 1.5}",
    "/spec/upgrade/retries",
    Code::WrongType,
    "`retries` must be an integer, this is a number",
    "write it without a fraction"
)]
#[case::bounds(
    "  upgrade: {retries: 101}",
    "/spec/upgrade/retries",
    Code::InvalidValue,
    "`retries` must be 0 to 100, not 101",
    "write another number, or leave it out"
)]
#[case::negative(
    "  upgrade: {retries: -1}",
    "/spec/upgrade/retries",
    Code::InvalidValue,
    "`retries` must be 0 to 100, not -1",
    "write another number, or leave it out"
)]
#[case::huge(
    "  upgrade: {retries: 18446744073709551615}",
    "/spec/upgrade/retries",
    Code::InvalidValue,
    "`retries` must be 0 to 100, not 18446744073709551615",
    "write another number, or leave it out"
)]
#[case::nothing(
    "  upgrade:",
    "/spec/upgrade",
    Code::WrongType,
    "`upgrade` has no value",
    "remove it, or give it a value"
)]
#[case::number_for_duration(
    "  upgrade: {timeout: 15}",
    "/spec/upgrade/timeout",
    Code::WrongType,
    "`timeout` must be text, this is an integer",
    "write a number and a unit: `15s`, `15m`"
)]
#[case::number_for_version(
    "  components: [{name: a, chart: {repository: 'https://x', name: a, version: 16.4}}]",
    "/spec/components/0/chart/version",
    Code::WrongType,
    "`version` must be text, this is a number",
    "write all three numbers: `2.1.0`"
)]
#[case::list_for_text(
    "  serviceAccountName: [a]",
    "/spec/serviceAccountName",
    Code::WrongType,
    "`serviceAccountName` must be text, this is a list",
    "write one text, without `[…]`, `{…}` or `- `"
)]
#[case::a_hook_afterwards(
    "  components: [{name: a, path: p, install: {phase: PostUpgrade}}]",
    "/spec/components/0/install/phase",
    Code::InvalidValue,
    "`phase` must be PreUpgrade, not `PostUpgrade`",
    "nothing runs afterwards but components: let one depend on the others"
)]
#[case::wrong_word(
    "  engine: Flux",
    "/spec/engine",
    Code::InvalidValue,
    "`engine` must be flux or argo, not `Flux`",
    "did you mean `flux`?"
)]
#[case::required_word(
    "  sourceRef: {kind: Bucket, name: x}",
    "/spec/sourceRef/kind",
    Code::InvalidValue,
    "`kind` must be GitRepository, not `Bucket`",
    ""
)]
#[case::missing(
    "  sourceRef: {kind: GitRepository}",
    "/spec/sourceRef/name",
    Code::MissingField,
    "`sourceRef` needs `name`",
    "add `name: …`"
)]
#[case::empty(
    "  serviceAccountName: ''",
    "/spec/serviceAccountName",
    Code::InvalidValue,
    "`serviceAccountName` is empty",
    "write something, or remove the field"
)]
#[case::pattern(
    "  components: [{name: a, chart: {repository: 'ftp://x', name: a, version: 1.0.0}}]",
    "/spec/components/0/chart/repository",
    Code::InvalidValue,
    "`repository` is malformed: `ftp://x` does not match ^(https?://[^\\s@/]+(/[^\\s]*)?|oci://[^\\s@/]+(/[^\\s@:]*)?)$",
    "write it in that form"
)]
#[case::empty_list(
    "  components: [{name: a, path: p, canary: {steps: []}}]",
    "/spec/components/0/canary/steps",
    Code::InvalidValue,
    "`steps` needs at least 1 entry",
    "add one, or remove the field"
)]
#[case::map_of_texts(
    "  components: [{name: a, path: p, canary: {nodeSelector: {a: 1}}}]",
    "/spec/components/0/canary/nodeSelector/a",
    Code::WrongType,
    "`a` must be text, this is an integer",
    "put it in quotes: without them YAML reads another type"
)]
#[case::in_a_list(
    "  components: [5]",
    "/spec/components/0",
    Code::WrongType,
    "an entry of `components` must be a map, this is an integer",
    "known here: canary, chart, chartVersion, install, name, path, source, values, valuesFiles, valuesFrom"
)]
fn one_thing_is_wrong(
    #[case] line: &str,
    #[case] pointer: &str,
    #[case] code: Code,
    #[case] message: &str,
    #[case] help: &str,
) {
    let expected = (pointer.to_owned(), code, message.to_owned(), help.to_owned());
    assert_eq!(findings(&format!("{HEAD}{line}\n")), [expected]);
}

#[test]
fn everything_wrong_is_found_at_once() {
    let text = "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {name: 5, labels: {a: true}}\nspec:\n  engine: x\n  components: [{name: [], values: []}, {chart: {version: 1}}]\n";
    let pointers: Vec<String> = findings(text).into_iter().map(|(pointer, ..)| pointer).collect();
    assert_eq!(
        pointers,
        [
            "/metadata/name",
            "/metadata/labels/a",
            "/spec/engine",
            "/spec/components/0/name",
            "/spec/components/0/values",
            "/spec/components/1/chart/version",
            "/spec/components/1/chart/name",
            "/spec/components/1/chart/repository",
            "/spec/components/1/name",
            "/spec/version",
        ]
    );
}

#[rstest]
#[case::components(format!("  components: [{}]", (0..129).map(|n| format!("{{name: c{n}, path: p}},")).collect::<String>()))]
#[case::edges(format!("  components: [{{name: a, path: p, install: {{dependsOn: [{}]}}}}]", "b,".repeat(17)))]
#[case::path(format!("  components: [{{name: a, path: {}}}]", "p".repeat(1025)))]
#[case::expression(format!("  components: [{{name: a, path: p, install: {{readyWhen: [{{apiVersion: v1, kind: A, name: a, expr: {}}}]}}}}]", "e".repeat(102_400)))]
fn limits_are_kept(#[case] line: String) {
    let found = findings(&format!("{HEAD}{line}\n"));
    assert_eq!(found.iter().map(|(_, code, ..)| *code).collect::<Vec<_>>(), [Code::TooLarge], "{found:?}");
}

#[test]
fn values_may_be_anything_and_are_kept() {
    let line = "  components: [{name: a, path: p, values: {a: null, b: [1, {c: 2.5}], default: x, nullable: true}}]";
    let documents = yaml::parse(&format!("{HEAD}{line}\n"));
    let structure = check(&documents.documents[0]);
    assert_eq!(structure.findings, []);
    assert_eq!(structure.fitting, documents.documents[0].to_value());
}

#[test]
fn a_document_that_is_no_map_fits_nothing() {
    let structure = check(&yaml::parse("- 1").documents[0]);
    assert_eq!(structure.findings[0].violation.message, "the document must be a map, this is a list");
    assert_eq!(structure.fitting, Value::Null);
}

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let committed: Value = serde_json::from_str(SCHEMA).unwrap();
    assert!(committed == crate::api::schema::package_json_schema(), "run `make generate`");
}

#[test]
fn every_pattern_is_a_regular_expression() {
    fn patterns(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("pattern").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|inner| patterns(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| patterns(inner, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    patterns(&crate::api::schema::package_json_schema(), &mut found);
    assert!(found.len() > 10 && found.iter().all(|pattern| regex::Regex::new(pattern).is_ok()), "{found:?}");
}

#[rstest]
#[case::version("version: 2.1", false)]
#[case::name("serviceAccountName: 5", true)]
fn quotes_are_a_remedy_only_where_they_mend(#[case] line: &str, #[case] mend: bool) {
    let text = format!("apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: db}}\nspec:\n  {line}\n");
    let structure = check(&yaml::parse(&text).documents[0]);
    let found = structure.findings.iter().find(|finding| finding.violation.code == Code::WrongType);
    assert_eq!(found.unwrap().quotes_mend, mend);
}
