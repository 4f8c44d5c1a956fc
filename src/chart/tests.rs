//! What is read of charts, and what is left unknown.

mod definitions;

use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::*;
use crate::package::tree::testing::Files as Memory;

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.2.3\nappVersion: \"4.5\"\n";

fn looked_with(files: &[(&str, &str)], values: Option<Value>) -> Look {
    let files = files.iter().map(|(path, text)| (format!("charts/shop/{path}"), *text)).collect::<Vec<_>>();
    let chart = [("charts/shop/Chart.yaml", CHART)];
    let tree = Memory::new(chart.into_iter().chain(files.iter().map(|(path, text)| (path.as_str(), *text))));
    let values: Option<Map<String, Value>> = values.map(|values| values.as_object().unwrap().clone());
    let release = Release { name: "web", namespace: "apps", values: values.as_ref(), values_files: &[] };
    look(&tree, "charts/shop", &release).unwrap()
}

fn looked(files: &[(&str, &str)]) -> Look {
    looked_with(files, Some(json!({})))
}

/// `kind/name` of the objects, `?` for what is not known.
fn objects(look: &Look) -> Vec<String> {
    let name = |object: &Object| object.name.clone().unwrap_or_else(|| "?".into());
    look.objects.iter().map(|object| format!("{}/{}", object.kind, name(object))).collect()
}

fn of_template(template: &str, values: Value) -> Vec<String> {
    objects(&looked_with(&[("templates/it.yaml", template)], Some(values)))
}

const A: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

#[rstest]
#[case::text("a")]
#[case::release("{{ .Release.Name }}-{{ $.Release.Namespace }}")]
#[case::value("{{ .Values.name | default \"a\" }}")]
#[case::nested_value("{{ .Values.deep.name }}")]
#[case::chart("{{ .Chart.Name }}-{{ .Chart.Version | replace \".\" \"-\" }}-{{ .Chart.AppVersion }}")]
#[case::printf("{{ printf \"%s-%d\" .Release.Name 3 | trunc 63 | trimSuffix \"-\" }}")]
#[case::quoted("{{ .Release.Name | quote }}")]
#[case::condition("{{ if .Values.deep.name }}x{{ else }}y{{ end }}")]
#[case::with("{{ with .Values.deep }}{{ .name }}{{ end }}")]
#[case::variable("{{ $n := .Release.Name }}{{ $n }}")]
#[case::assigned("{{ $n := \"a\" }}{{ if true }}{{ $n = \"b\" }}{{ end }}{{ $n }}")]
#[case::loop_("{{ range $i, $x := .Values.list }}{{ $i }}{{ $x }}{{ end }}")]
#[case::ternary("{{ ternary \"a\" \"b\" (eq .Release.Name \"web\") }}")]
fn names_are_evaluated(#[case] name: &str) {
    let expected = match name {
        "a" => "a",
        name if name.contains("Namespace") => "web-apps",
        name if name.contains("Values.name") || name.contains("ternary") => "a",
        name if name.contains("Chart") => "shop-1-2-3-4.5",
        name if name.contains("printf") => "web-3",
        name if name.contains("if .Values") => "x",
        name if name.contains("deep") => "m",
        name if name.contains("range") => "0p1q",
        name if name.contains("= \"b\"") => "b",
        _ => "web",
    };
    let template = A.replace("name: a", &format!("name: {name}"));
    let found = of_template(&template, json!({"deep": {"name": "m"}, "list": ["p", "q"]}));
    assert_eq!(found, [format!("ConfigMap/{expected}")]);
}

#[rstest]
#[case::function_that_is_not_here("{{ randAlpha 5 }}")]
#[case::cluster("{{ .Capabilities.KubeVersion.Version }}")]
#[case::lookup("{{ (lookup \"v1\" \"Secret\" \"\" \"\").metadata.name }}")]
#[case::unknown_condition("{{ if .Release.IsUpgrade }}x{{ else }}y{{ end }}")]
#[case::value_below_nothing("{{ .Values.absent.name }}")]
#[case::list("{{ .Values.list }}")]
#[case::file("{{ .Files.Get \"a\" }}")]
#[case::malformed("{{ ) }}")]
#[case::assigned_perhaps("{{ $n := \"a\" }}{{ if .Release.IsUpgrade }}{{ $n = \"b\" }}{{ end }}{{ $n }}")]
#[case::float("{{ 1.5 }}")]
#[case::large("{{ .Values.large }}")]
fn names_that_are_not_known_are_not_made_up(#[case] name: &str) {
    let template = A.replace("name: a", &format!("name: x{name}"));
    assert_eq!(of_template(&template, json!({"list": [1], "large": 12345678})), ["ConfigMap/?"]);
}

#[test]
fn values_that_are_elsewhere_are_not_known() {
    let template = A.replace("name: a", "name: {{ .Values.name }}");
    let files = [("templates/it.yaml", template.as_str()), ("values.yaml", "name: b\n")];
    assert_eq!(objects(&looked_with(&files, None)), ["ConfigMap/?"]);
    assert_eq!(objects(&looked(&files)), ["ConfigMap/b"]);
    assert_eq!(objects(&looked_with(&files, Some(json!({"name": "c"})))), ["ConfigMap/c"]);
}

#[rstest]
#[case::known_to_hold("{{- if .Values.on }}\nDOC{{- end }}\n", &["ConfigMap/b", "ConfigMap/z"])]
#[case::known_not_to("{{- if .Values.off }}\nDOC{{- end }}\n", &["ConfigMap/z"])]
#[case::not_known("{{- if .Capabilities.x }}\nDOC{{- end }}\n", &["ConfigMap/z"])]
#[case::not_known_and_trimmed("{{ if .Capabilities.x -}}\nDOC{{ end -}}\n", &["ConfigMap/z"])]
#[case::else_not_known("{{- if .Capabilities.x }}\nDOC{{ else if .Values.on }}\nDOC{{- end }}\n", &["ConfigMap/z"])]
#[case::and("{{- if and .Values.on (not .Values.off) (or .Capabilities.x true) }}\nDOC{{- end }}\n", &["ConfigMap/b", "ConfigMap/z"])]
#[case::and_not("{{- if and .Capabilities.x .Values.off }}\nDOC{{- end }}\n", &["ConfigMap/z"])]
#[case::has("{{- if .Capabilities.APIVersions.Has \"x/v1\" }}\nDOC{{- end }}\n", &["ConfigMap/z"])]
#[case::empty_loop("{{- range .Values.none }}\nDOC{{- end }}\n", &["ConfigMap/z"])]
#[case::loop_("{{- range .Values.two }}\nDOC{{- end }}\n", &["ConfigMap/b", "ConfigMap/b", "ConfigMap/z"])]
fn documents_count_where_their_condition_is_known_to_hold(#[case] text: &str, #[case] expected: &[&str]) {
    let document = format!("---\n{}", A.replace("name: a", "name: b"));
    let template = format!("{}---\n{}", text.replace("DOC", &document), A.replace("name: a", "name: z"));
    let values = json!({"on": true, "off": false, "none": [], "two": [1, 2]});
    assert_eq!(of_template(&template, values), expected);
}

#[test]
fn parts_that_are_not_known_leave_the_rest_as_it_is() {
    let template = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  labels:\n    \
                    {{- include \"nowhere\" . | nindent 4 }}\n{{- if .Capabilities.x }}\n  namespace: b\n{{- end }}\nspec:\n  \
                    template:\n    spec:\n      {{- with .Capabilities.y }}\n      serviceAccountName: b\n      {{- else }}\n      \
                    serviceAccountName: c\n      {{- end }}\n      containers: []\n";
    let look = looked(&[("templates/it.yaml", template)]);
    let [object] = look.objects.as_slice() else { panic!("{look:?}") };
    assert_eq!(
        (object.name.as_deref(), object.namespace.as_deref(), object.account.as_deref()),
        (Some("a"), None, None)
    );
}

#[rstest]
#[case::in_labels("  labels:\n    {{- include \"nowhere\" . | nindent 4 }}\n", Some("apps"))]
#[case::in_a_condition_in_labels(
    "  labels:\n    a: b\n    {{- if .Capabilities.x }}\n    c: d\n    {{- end }}\n",
    Some("apps")
)]
#[case::beside_labels("  labels: {}\n  {{- include \"nowhere\" . | nindent 2 }}\n", None)]
#[case::at_any_depth("  labels:\n    a: b\n  {{- include \"nowhere\" . }}\n", None)]
#[case::in_a_condition_beside_labels(
    "  labels:\n    a: b\n  {{- with .Capabilities.x }}\n  c: d\n  {{- end }}\n",
    None
)]
#[case::behind_it("  labels: {}\n{{- if .Capabilities.x }}\ndata: {}\n{{- end }}\n", Some("apps"))]
#[case::trimmed_to_the_right("  {{ if .Capabilities.x -}}\n  namespace: d\n  {{ end -}}\n  labels: {}\n", None)]
fn a_namespace_is_missed_only_where_there_may_be_one(#[case] more: &str, #[case] expected: Option<&str>) {
    let look = looked(&[("templates/it.yaml", &format!("{A}{more}data: {{}}\n"))]);
    let [object] = look.objects.as_slice() else { panic!("{look:?}") };
    assert_eq!((object.name.as_deref(), object.namespace.as_deref()), (Some("a"), expected));
}

#[test]
fn what_other_templates_define_is_included() {
    let helpers = "{{- define \"shop.name\" -}}\n{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}\
                   {{- else }}\n{{- $name := default .Chart.Name .Values.nameOverride }}\n\
                   {{- if contains $name .Release.Name }}\n{{- .Release.Name | trunc 63 }}\n{{- else }}\n\
                   {{- printf \"%s-%s\" .Release.Name $name | trunc 63 | trimSuffix \"-\" }}\n{{- end }}\n{{- end }}\n\
                   {{- end }}\n{{- define \"labels\" }}\napp: {{ include \"shop.name\" . }}\n{{- end }}\n";
    let template = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ include \"shop.name\" . }}\n  labels:\n    \
                    {{- include \"labels\" . | nindent 4 }}\n    {{- toYaml .Values.labels | nindent 4 }}\n  \
                    namespace: {{ .Values.namespace }}\n";
    let files = [("templates/_helpers.tpl", helpers), ("templates/it.yaml", template)];
    let look = looked_with(&files, Some(json!({"labels": {"a": "b"}, "namespace": "other"})));
    let expected = Object {
        group: String::new(),
        kind: "ServiceAccount".into(),
        name: Some("web-shop".into()),
        namespace: Some("other".into()),
        account: None,
        file: "templates/it.yaml".into(),
    };
    assert_eq!(look.objects, [expected]);
}

#[test]
fn templates_that_include_each_other_end() {
    let helpers = "{{ define \"a\" }}{{ include \"b\" . }}{{ include \"b\" . }}{{ end }}\
                   {{ define \"b\" }}{{ include \"a\" . }}{{ include \"a\" . }}{{ end }}";
    let template = A.replace("name: a", "name: {{ include \"a\" . }}");
    let look = looked(&[("templates/_helpers.tpl", helpers), ("templates/it.yaml", &template)]);
    assert_eq!(objects(&look), ["ConfigMap/?"]);
}

#[test]
fn tests_and_notes_are_no_objects_of_a_release() {
    let hook = |hook: &str| A.replace("name: a", &format!("name: {hook}\n  annotations: {{helm.sh/hook: {hook}}}"));
    let (test, install) = (hook("test"), hook("pre-install"));
    let files = [("templates/tests/t.yaml", test.as_str()), ("templates/i.yaml", &install), ("templates/NOTES.txt", A)];
    assert_eq!(objects(&looked(&files)), ["ConfigMap/pre-install"]);
}

#[test]
fn lists_are_their_items() {
    let template = format!("apiVersion: v1\nkind: List\nitems:\n- {}", A.trim_end().replace('\n', "\n  "));
    assert_eq!(of_template(&template, json!({})), ["ConfigMap/a"]);
}

const PARENT: &str = "name: shop\nversion: 1.2.3\ndependencies:\n- {name: db, version: 1.0.0, condition: db.enabled}\n";
const SUBCHART: &str = "name: db\nversion: 1.0.0\n";

#[rstest]
#[case::on("db: {enabled: true, name: m}", &["ConfigMap/m"])]
#[case::off("db: {enabled: false}", &[])]
#[case::nothing_said("db: {name: m}", &["ConfigMap/m"])]
#[case::global("db: {name: null}\nglobal: {name: g}", &["ConfigMap/g"])]
fn subcharts_are_read_with_the_values_that_are_theirs(#[case] values: &str, #[case] expected: &[&str]) {
    let template = A.replace("name: a", "name: {{ .Values.name | default .Values.global.name }}");
    let files = [
        ("values.yaml", values),
        ("charts/db/Chart.yaml", SUBCHART),
        ("charts/db/values.yaml", "name: own\n"),
        ("charts/db/templates/it.yaml", &template),
    ];
    let tree = files.map(|(path, text)| (format!("charts/shop/{path}"), text));
    let tree = tree.iter().map(|(path, text)| (path.as_str(), *text)).chain([("charts/shop/Chart.yaml", PARENT)]);
    let values = Map::new();
    let release = Release { name: "web", namespace: "apps", values: Some(&values), values_files: &[] };
    let look = look(&Memory::new(tree), "charts/shop", &release).unwrap();
    assert_eq!((objects(&look), look.may_hide_crds), (expected.iter().map(|&name| name.to_owned()).collect(), false));
}

#[rstest]
#[case::archive(&[("charts/db-1.0.0.tgz", "")])]
#[case::unreadable_definition(&[("crds/a.yaml", "a: [")])]
#[case::unreadable_template(&[("templates/a.yaml", "{{ if }}kind: CustomResourceDefinition")])]
#[case::definition_in_a_condition(&[("templates/a.yaml", "{{ if .Capabilities.x }}\nkind: CustomResourceDefinition\n{{ end }}")])]
#[case::left_out_perhaps(&[(".helmignore", "crds/old\n")])]
fn what_may_hide_definitions_is_known(#[case] files: &[(&str, &str)]) {
    assert!(looked(files).may_hide_crds);
    let other = [("templates/a.yaml", "{{ if .Capabilities.x }}\nkind: Other\n{{ end }}"), (".helmignore", "*.md\n")];
    assert!(!looked(&other).may_hide_crds);
}

proptest! {
    #[test]
    fn any_template_is_read_or_left(
        text in "(\\{\\{-? |-?\\}\\}|if |else|end|with |range |define \"a\"|include \"a\" \\.|\\$x := |\\.Values\\.a|nindent 2|\\||\\(|\\)|\"|`|[ \n]{0,3}|é|a: b\n|---\n|- |#|/\\*|\\*/){0,30}"
    ) {
        let look = looked_with(&[("templates/it.yaml", &text)], Some(json!({"a": {"b": [1]}})));
        prop_assert!(look.crds.is_empty());
    }
}
