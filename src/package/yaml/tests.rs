//! Reading, within limits, and reading back what was written.

use proptest::prelude::*;
use rstest::rstest;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::write::{Styled, style, write};
use super::*;

fn values(text: &str) -> Vec<Value> {
    let documents = parse(text);
    assert_eq!(documents.problems, []);
    documents.documents.iter().map(Node::to_value).collect()
}

fn only_problem(text: &str) -> (Code, String, String) {
    let mut problems = parse(text).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = problems.remove(0);
    (problem.code, problem.message, text.get(problem.span.start..problem.span.end).unwrap_or("?").to_owned())
}

/// Expectations are what `sigs.k8s.io/yaml` 1.6.0 answers, except where said.
#[rstest]
#[case::merge("a: &x {p: 1}\nb:\n  <<: *x\n  p: 2\n  q: 3", json!({"a": {"p": 1}, "b": {"p": 2, "q": 3}}))]
#[case::merges_of_several("b:\n  q: 1\n  <<: [{p: 1},{p: 2, r: 3}]", json!({"b": {"q": 1, "p": 1, "r": 3}}))]
#[case::quoted_merge_is_a_key("\"<<\": {a: 1}", json!({"<<": {"a": 1}}))]
#[case::keys_become_text("on: 1\nn: 2\n1: a\n1.5: b\n2020-01-01: d", json!({"true": 1, "false": 2, "1": "a", "1.5": "b", "2020-01-01": "d"}))]
#[case::tags("a: !!str 1\nb: !!int \"3\"\nd: !!float 1\nf: !!bool \"yes\"\ng: ! b", json!({"a": "1", "b": 3, "d": 1, "f": true, "g": "b"}))]
#[case::quoted("a: \"on\"\nb: '1'\nc: |\n  x\nd: >-\n  y\n  z\n", json!({"a": "on", "b": "1", "c": "x\n", "d": "y z"}))]
#[case::absent_values("a:\nb: ~\nc: ''", json!({"a": null, "b": null, "c": ""}))]
#[case::key_order_is_kept("b: 1\na: 2", json!({"b": 1, "a": 2}))]
#[case::number_keys_are_floats_of_32_bits(
    "1e3: a\n1.10: b\n1e6: c\n1234567.5: d\n0.00001: e\n-0.5: f\n123456789.125: g\n.5: h\n1e300: i\n-1e300: j\n1e21: k\n5e-324: l\n-0.0: m",
    json!({"1000": "a", "1.1": "b", "1e+06": "c", "1.2345675e+06": "d", "1e-05": "e", "-0.5": "f", "1.2345679e+08": "g",
           "0.5": "h", ".inf": "i", "-.inf": "j", "1e+21": "k", "0": "l", "-0": "m"})
)]
#[case::aliases("a: &x [1]\nb: *x", json!({"a": [1], "b": [1]}))]
#[case::between_brackets(
    "a: [b:c, 'd:', \"?e\", f, https://g.org:80/h]\ni: {j: k, \"l\":m, p: '?'}\no: p?q:z\nr: :s",
    json!({"a": ["b:c", "d:", "?e", "f", "https://g.org:80/h"], "i": {"j": "k", "l": "m", "p": "?"}, "o": "p?q:z", "r": ":s"})
)]
#[case::block_behind_brackets("a: [b]\nc: d?e\nf: ::1", json!({"a": ["b"], "c": "d?e", "f": "::1"}))]
#[case::byte_order_mark("\u{feff}a: 1", json!({"a": 1}))]
#[case::carriage_returns("a: 1\r\nb: 2\r\n", json!({"a": 1, "b": 2}))]
#[case::comments("# x\na: 1 # y\n", json!({"a": 1}))]
fn documents_are_read_as_go_reads_them(#[case] text: &str, #[case] expected: Value) {
    assert_eq!(values(text).iter().map(Value::to_string).collect::<Vec<_>>(), [expected.to_string()]);
}

#[test]
fn a_file_may_hold_many_documents() {
    assert_eq!(values("a: 1\n---\n---\n- 2\n...\n---\nc"), [json!({"a": 1}), json!(null), json!([2]), json!("c")]);
    assert_eq!(values(""), Vec::<Value>::new());
    assert_eq!(values("# nothing\n"), Vec::<Value>::new());
}

#[rstest]
#[case::duplicate_key("a: 1\nb: 2\na: 3", Code::DuplicateKey, "the key `a` is there twice", "a")]
#[case::duplicate_after_conversion("on: 1\ntrue: 2", Code::DuplicateKey, "the key `true` is there twice", "true")]
#[case::late_merge(
    "a: &x {p: 1}\nb:\n  p: 2\n  <<: *x",
    Code::DuplicateKey,
    "the merge comes after the key `p` that it also sets",
    "<<"
)]
#[case::next_line(
    "a: 1 # x\u{85}b: 2",
    Code::Syntax,
    "U+0085 ends a line for some readers and is text to others",
    "\u{85}"
)]
#[case::late_byte_order_mark(
    "# b\n\u{feff}c: 2",
    Code::Syntax,
    "a byte order mark stands only at the start of a file",
    "\u{feff}"
)]
#[case::line_separator(
    "a: \"x\u{2028}y\"",
    Code::Syntax,
    "U+2028 ends a line for some readers and is text to others",
    "\u{2028}"
)]
#[case::paragraph_separator(
    "a: |\n  x\u{2029}y",
    Code::Syntax,
    "U+2029 ends a line for some readers and is text to others",
    "\u{2029}"
)]
#[case::escaped_slash(r#"a: "b\/c""#, Code::Syntax, r"the escape `\/` is an error to Kubernetes tools", r"\/")]
#[case::surrogates(
    r#"a: "\ud83d\ude00""#,
    Code::Syntax,
    r"the escape `\ud83d` is an error to Kubernetes tools",
    r"\ud83d"
)]
#[case::merge_of_a_number("<<: 1", Code::Syntax, "`<<` merges a map or a list of maps", "<<")]
#[case::null_key("~: c", Code::Syntax, "nothing cannot be a key", "~")]
#[case::map_as_key("{a: b}: c", Code::Syntax, "a map cannot be a key", "{a: b}")]
#[case::template("a: {{ x }}", Code::Syntax, "a map cannot be a key", "{ x }")]
#[case::custom_tag("a: !foo b", Code::Syntax, "the tag `!foo` is not supported", "!foo")]
#[case::tag_of_a_list("a: &x !foo\n- b", Code::Syntax, "the tag `!foo` is not supported", "!foo")]
#[case::tag_that_is_dropped("a: ! true", Code::Syntax, "the tag `!` is not supported", "!")]
#[case::tab("a:\n \tb: c", Code::Syntax, "Kubernetes tools refuse a tab here", "\t")]
#[case::text_behind_a_marker(
    "a: b\n--- {c: d}",
    Code::Syntax,
    "Kubernetes tools refuse what stands behind `---`",
    "--- {c: d}"
)]
#[case::document_without_a_marker(
    "a: b\n...\nc: d",
    Code::Syntax,
    "Kubernetes tools leave out what stands behind `...` without a word",
    ""
)]
#[case::directive("%YAML 1.2\n---\na: b", Code::Syntax, "Kubernetes tools refuse directives", "%YAML 1.2")]
#[case::large_key(
    "18446744073709551615: a",
    Code::Syntax,
    "`18446744073709551615` cannot be a key: Kubernetes tools take no integer beyond 64 bits signed",
    "18446744073709551615"
)]
#[case::tag_that_does_not_fit("a: !!int b", Code::Syntax, "`b` is no int", "b")]
#[case::infinite("a: .inf", Code::WrongType, "JSON has no number `.inf`", ".inf")]
#[case::unknown_anchor("a: *x", Code::Syntax, "while parsing node, found unknown anchor", "*")]
#[case::anchor_in_itself("a: &x [*x]", Code::Syntax, "the anchor is not complete here: it would contain itself", "*x")]
#[case::key_or_text(
    "a: [localhost:, b]",
    Code::Syntax,
    "readers disagree about `localhost:` between brackets",
    "localhost:"
)]
#[case::key_or_text_at_the_end(
    "a: [system:node:]",
    Code::Syntax,
    "readers disagree about `system:node:` between brackets",
    "system:node:"
)]
#[case::colon_in_front("a: {b: ::1}", Code::Syntax, "readers disagree about `::1` between brackets", "::1")]
#[case::port("a:\n- [:8080]", Code::Syntax, "readers disagree about `:8080` between brackets", ":8080")]
#[case::question_in_front("a: [{b: [?x]}]", Code::Syntax, "readers disagree about `?x` between brackets", "?x")]
#[case::question(
    "a: [https://e.org/x?y=z]",
    Code::Syntax,
    "readers disagree about `https://e.org/x?y=z` between brackets",
    "https://e.org/x?y=z"
)]
#[case::question_in_a_key("a: {b?: c}", Code::Syntax, "readers disagree about `b?` between brackets", "b?")]
#[case::key_over_lines(
    "a: {b\n  c: d}",
    Code::Syntax,
    "a key between brackets and its `:` are on more than one line",
    "b\n  c"
)]
#[case::key_above_its_colon(
    "a: {\"b\"\n  : d}",
    Code::Syntax,
    "a key between brackets and its `:` are on more than one line",
    "\"b\""
)]
#[case::tag_before_a_comma(
    "a: [!!str, b]",
    Code::Syntax,
    "readers disagree on where a tag without a value ends between brackets",
    ""
)]
#[case::anchor_with_a_colon("a: &x:y z", Code::Syntax, "readers disagree on where the anchor `x:y` ends", "&x:y")]
#[case::anchor_with_a_point("a: &x.y {b: c}", Code::Syntax, "readers disagree on where the anchor `x.y` ends", "&x.y")]
#[case::bad_indentation("a: b: c", Code::Syntax, "mapping values are not allowed in this context", ":")]
fn what_is_wrong_has_a_place(#[case] text: &str, #[case] code: Code, #[case] message: &str, #[case] place: &str) {
    assert_eq!(only_problem(text), (code, message.to_owned(), place.to_owned()));
}

/// A line of `truth.jsonl`: what readers in Go make of a text. `read` is what all of them
/// read; where they differ, `go` is what `sigs.k8s.io/yaml` 1.6.0 reads as kubectl and Argo
/// CD call it (apimachinery 0.36.3), and `kustomize` what kustomize (kyaml 0.20.1), and
/// with it Flux, makes of it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Truth {
    #[serde(rename = "in")]
    text: String,
    read: Option<Vec<Value>>,
    go: Option<Vec<Value>>,
    #[serde(rename = "kustomize")]
    _kustomize: Option<Vec<Value>>,
    /// One of them refuses it.
    refused_by: Option<String>,
    /// We refuse what they read: a key that is there twice, or what other readers read
    /// otherwise.
    #[serde(default)]
    strict: bool,
}

#[test]
fn odd_texts_are_read_as_go_reads_them_or_refused() {
    let table = include_str!("truth.jsonl");
    for line in table.lines() {
        let truth: Truth = serde_json::from_str(line).unwrap();
        let documents = parse(&truth.text);
        let expected = truth.read.or(truth.go);
        let is_refused = !documents.problems.is_empty();
        assert_eq!(
            is_refused,
            truth.strict || (truth.refused_by.is_some() && expected.is_none()),
            "{line}: {documents:?}"
        );
        if let (false, Some(expected)) = (is_refused, expected) {
            let read: Vec<Value> =
                documents.documents.iter().map(Node::to_value).filter(|value| !value.is_null()).collect();
            assert_eq!(as_numbers(read.into()), as_numbers(expected.into()), "{line}");
        }
    }
    assert!(table.lines().count() > 900);
}

/// JSON has one kind of number: Go writes `1000` for `1e3`.
fn as_numbers(value: Value) -> Value {
    match value {
        // serde_json reads a number of many digits a little beside it.
        Value::Number(number) => json!(number.as_f64().map(|number| format!("{number:.14e}"))),
        Value::Array(items) => items.into_iter().map(as_numbers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, as_numbers(value))).collect(),
        other => other,
    }
}

#[test]
fn a_broken_document_does_not_hide_the_next() {
    let documents = parse("a: [1\n---\nb: 1\n---\nc: }\n---\nd: 1\n");
    assert_eq!(documents.problems.len(), 2);
    assert_eq!(documents.documents.iter().map(Node::to_value).collect::<Vec<_>>(), [json!({"b": 1}), json!({"d": 1})]);
}

#[test]
fn a_colon_before_a_bracket_is_told_what_to_do() {
    let problem = parse("a: {b:[c]}").problems.remove(0);
    assert_eq!(problem.help, "write a space behind the `:`; if it is text, put it in quotes");
}

#[test]
fn templates_are_recognised() {
    let documents = parse("a: 1\n{{- if .Values.x }}\nb: 1\n{{ end }}\n");
    assert!(documents.problems.iter().any(|problem| problem.help.contains("template")), "{:?}", documents.problems);
}

#[test]
fn billions_of_laughs_end_at_a_limit() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let previous = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{previous}]\n"));
    }
    let (code, message, _) = only_problem(&text);
    assert_eq!((code, message.as_str()), (Code::TooLarge, "aliases multiply beyond the limits"));
}

#[test]
fn long_texts_do_not_multiply_either() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(MAX_SCALAR), vec!["*a"; 40].join(", "));
    assert_eq!(only_problem(&text).0, Code::TooLarge);
}

#[rstest]
#[case::lists("[".repeat(100_000))]
#[case::maps("{a: ".repeat(100_000))]
#[case::blocks((0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect())]
#[case::aliases((1..70).map(|n| format!("a{n}: &a{n} [{}]\n", if n > 1 { format!("*a{}", n - 1) } else { "x".into() })).collect())]
fn deep_nesting_is_refused(#[case] text: String) {
    let problems = parse(&text).problems;
    assert!(
        problems.iter().any(|problem| problem.message.contains("nested deeper") || problem.code == Code::TooLarge),
        "{problems:?}"
    );
}

#[test]
fn the_deepest_nesting_is_accepted() {
    let text = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(parse(&text).problems, []);
}

#[test]
fn long_scalars_and_many_documents_are_refused() {
    assert_eq!(only_problem(&format!("a: {}", "x".repeat(10 << 20))).0, Code::TooLarge);
    assert_eq!(only_problem(&"---\na\n".repeat(MAX_DOCUMENTS + 1)).0, Code::TooLarge);
    assert_eq!(only_problem(&format!("[{}]", "1,".repeat(MAX_NODES + 1))).0, Code::TooLarge);
}

#[test]
fn every_key_and_value_knows_its_place() {
    let text = "a:\n- b: é\n  c: [1, x]\n";
    let root = parse(text).documents.remove(0);
    let place = |pointer: &str| {
        let span = root.locate(pointer);
        text.get(span.start..span.end).unwrap().to_owned()
    };
    assert_eq!(place("/a/0/b"), "é");
    assert_eq!(place("/a/0/c/1"), "x");
    assert_eq!(place("/a/0/c"), "c");
    assert_eq!(place("/a/0"), "b");
    assert_eq!(place("/a/0/missing/deeper"), "b");
    assert_eq!(place("/a"), "a");
    assert_eq!(place(""), "a");
}

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-zA-Z0-9 _.:#'\"\\\\{}\\[\\],&*!|>%@`~=+-]{0,12}",
        "\\PC{0,20}",
        "([ \\t]{0,3}[a-z#:-]{0,5}\n){0,4}[ a]{0,3}",
        "[0-9_.:eExXob+-]{1,8}",
        "[A-Za-z/]{1,4}(:|:/|://)?[a-z0-9.:/_-]{0,4}",
        "[0-9]{1,2}[0-9a-zA-Z]{0,3}",
        proptest::sample::select(vec![
            "on", "No", "y", "~", "null", "<<", "=", "0x1F", "012", "1_000", ".inf", "---", "...", "- a", "? b",
            "\u{feff}", "\u{85}", "\r", "\t"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| json!(n)),
        (-1e300..1e300f64).prop_map(|n| json!(n)),
        text.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((text.clone(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// A value as serde-saphyr writes the whole of it.
struct Whole<'a>(&'a Value);

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(Whole)),
            Value::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, Whole(value)))),
            scalar => Styled(scalar).serialize(serializer),
        }
    }
}

proptest! {
    #[test]
    fn the_layout_is_that_of_the_library(value in json_value()) {
        let mut whole = "---\n".to_owned();
        serde_saphyr::to_fmt_writer_with_options(&mut whole, &Whole(&value), style()).unwrap();
        prop_assert_eq!(write(&[value]).unwrap(), whole);
    }

    #[test]
    fn what_is_written_is_read_back_the_same(value in json_value()) {
        let text = write(&[value.clone(), value.clone()]).unwrap();
        let documents = parse(&text);
        prop_assert_eq!(&documents.problems, &[], "{}", text);
        for read in &documents.documents {
            // Whole floats are integers to JSON.
            let (read_value, written) = (read.to_value().to_string(), value.to_string());
            prop_assert_eq!(&read_value, &written, "{}", text);
            prop_assert_eq!(read.clone().into_value().to_string(), written, "{}", text);
        }
        prop_assert_eq!(documents.documents.len(), 2);
    }

    #[test]
    fn no_text_makes_the_reader_crash(text in "[a-z \n:{}\\[\\],&*!|>'\"%@`~<#?\t-]{0,80}") {
        let _ = parse(&text);
    }
}
