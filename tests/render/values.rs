//! Helm values on their way through a Package to what an engine reads.
//!
//! sigs.k8s.io/yaml 1.6.0, which kubectl, Flux and Argo CD use, read every value
//! here back as PyYAML does.

use rstest::rstest;
use serde_json::{Map, Value, json};
use windlass::api::Engine;
use windlass::package::yaml::parse;

use super::support::{at, release, single, text};
use crate::common;

/// Keys that readers take for something else.
const KEYS: &[&str] = &[
    "on",
    "y",
    "n",
    "no",
    "true",
    "null",
    "~",
    "",
    " ",
    "1",
    "1.0",
    "0x1F",
    "a.b/c",
    "a b",
    "a:",
    "a: b",
    "- a",
    "# a",
    "\"a\"",
    "'a'",
    "[a]",
    "{a}",
    "é",
    "日本",
    "a\nb",
    "=",
    "<",
    "2020-01-01",
    "12:30",
    "?",
    "*a",
    "&a",
];

/// Values that readers and writers of YAML are known to change.
fn torture() -> Map<String, Value> {
    let mut values = json!({
        "integers": [0, -1, 42, 1_000_000, i64::MAX, i64::MIN, 9_007_199_254_740_993_i64, 0o644],
        "floats": [0.5, -0.1, 1.0, 100.0, 1e300, 1e-7, 1.7976931348623157e308, 5e-324, 123456789.125],
        "booleans": [true, false],
        "nothing": null,
        "empty": {"map": {}, "list": [], "text": "", "nested": {"deeper": {}}, "lists": [[], {}, [[]]]},
        "nulls": [null, {"a": null}],
        "words": ["y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "on", "On", "ON", "off", "OFF", "true", "True",
                  "TRUE", "false", "null", "Null", "NULL", "~", ".inf", "-.Inf", ".NaN", ".nan", "=", "<<"],
        "numbers": ["0", "012", "0o14", "0x1F", "0b101", "1_000", "1.10", "1.0", "-1", "+1", "1e3", "1E3", ".5", "5.",
                    "1:30", "12:30:45", "190:20:30", "685_230.15", "9223372036854775808", "1e400", "0644"],
        "dates": ["2020-01-01", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43"],
        "marks": ["-", "- a", "?", "? a", ":", "a: b", "a:", ": a", "# a", "a # b", "a#b", "&a", "*a", "!a", "!!str a", "|",
                  ">", "'a'", "\"a\"", "'", "\"", "%a", "@a", "`a`", "{", "}", "[", "]", "{a: b}", "[a, b]", ",", "a, b",
                  "---", "--- a", "...", "... a", "\\", "a\\nb"],
        "templates": ["${x}", "$x", "$$", "{{ .Values.a }}", "{{- if }}", "%{x}", "<%= a %>"],
        "space": [" ", "  ", " a", "a ", "\ta", "a\t", "a  b", "\t", "a \t b"],
        "lines": ["a\nb", "a\nb\n", "a\n\nb\n\n", "\na", "\n", "\n\n", "  a\nb", "a\n  b\nc", "a \nb", "a\n \nb", "\ta\nb",
                  "a\r\nb", "a\rb", "# a\nb", "- a\n- b\n", "---\na: b\n", "a: |\n  b\n", "a\n\tb", "a\n...\nb"],
        "unicode": ["é", "日本語", "\u{1f600}", "\u{feff}a", "a\u{85}b", "a\u{2028}b", "a\u{a0}b", "\u{200b}", "e\u{301}",
                    "\u{fffd}", "\u{ffff}"],
        "control": ["\u{7f}", "\u{1}", "a\u{8}b", "\u{1b}[31m", "a\u{c}b"],
        "long": ["x".repeat(5_000), "word ".repeat(500), "日本 ".repeat(300)],
    });
    values["keys"] = KEYS.iter().map(|key| ((*key).to_owned(), json!(key))).collect::<Map<_, _>>().into();
    values.as_object().unwrap().clone()
}

fn values_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Flux => "/spec/values",
        Engine::Argo => "/spec/source/helm/valuesObject",
    }
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn nothing_is_changed_before_it_is_written(#[case] engine: Engine) {
    let release = release(&single(json!({"values": torture()})), engine);
    let path = values_of(engine).trim_start_matches('/').replace('/', ".");
    assert_eq!(at(&release, &path), Value::Object(torture()));
}

#[rstest]
#[case::flux(Engine::Flux)]
#[case::argo(Engine::Argo)]
fn a_yaml_1_1_reader_gets_what_was_meant(#[case] engine: Engine) {
    if !common::available("a_yaml_1_1_reader_gets_what_was_meant", "python3", &["-c", "import yaml; yaml.CSafeLoader"])
    {
        return;
    }
    let written = text(vec![release(&single(json!({"values": torture()})), engine)]);
    let read = common::read_yaml_1_1(&written);
    assert_same(read[0].pointer(values_of(engine)).unwrap(), &Value::Object(torture()), "");
}

/// What Windlass writes it reads back itself, so that a compiled Package can be
/// compiled again.
#[test]
fn our_own_reader_gets_what_was_meant() {
    let written = text(vec![release(&single(json!({"values": torture()})), Engine::Flux)]);
    let documents = parse(&written);
    assert_eq!(documents.problems, []);
    assert_same(documents.documents[0].to_value().pointer("/spec/values").unwrap(), &Value::Object(torture()), "");
}

/// Names the place of the first difference: the whole is too long to read.
fn assert_same(found: &Value, meant: &Value, place: &str) {
    match (found, meant) {
        (Value::Object(found), Value::Object(meant)) => {
            assert_eq!(found.keys().collect::<Vec<_>>(), meant.keys().collect::<Vec<_>>(), "keys at {place}");
            meant.iter().for_each(|(key, value)| assert_same(&found[key], value, &format!("{place}/{key}")));
        }
        (Value::Array(found), Value::Array(meant)) => {
            assert_eq!(found.len(), meant.len(), "length at {place}");
            let pairs = found.iter().zip(meant).enumerate();
            pairs.for_each(|(index, (found, meant))| assert_same(found, meant, &format!("{place}/{index}")));
        }
        (found, meant) => assert_eq!(found, meant, "at {place}"),
    }
}
