//! `docs/package.md`: fields. `docs/reference.md`: annotations, labels, columns.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass::api::schema::crds;
use windlass::package::check::{Options, check};
use windlass::package::load::{Input, NamespaceRule, load};
use windlass::package::names::Namespace;

use crate::common::{read_yaml, root};
use crate::markdown::{fences, quoted, rows, section, sections};

const FIELDS: &str = include_str!("../../docs/package.md");
const DOCUMENT: &str = include_str!("../../docs/reference.md");
const NAMES: &str = include_str!("../../src/api/wellknown.rs");

/// A field: its path without the marks of lists, and its schema.
type Field = (String, Value);

/// Every field below a schema. Conditions are Kubernetes' own.
fn fields(schema: &Value, path: &str, found: &mut Vec<Field>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.push((below.clone(), property.clone()));
        if below != "status.conditions" {
            fields(property, &below, found);
            fields(&property["items"], &below, found);
        }
    }
}

fn fields_of(schema: &Value, path: &str) -> Vec<Field> {
    let mut found = Vec::new();
    fields(schema, path, &mut found);
    found
}

/// The committed schema of what authors write.
fn spec() -> Vec<Field> {
    let text = std::fs::read_to_string(root().join("manifests/schema/package.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    fields_of(&schema["properties"]["spec"], "spec")
}

fn schema_of(crd: usize, part: &str) -> Value {
    crds()[crd]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part].clone()
}

/// A line of a table of fields.
struct Row {
    path: String,
    cells: Vec<String>,
}

/// Rows of the tables below headings such as ``### `spec.upgrade` ``.
fn documented(kind: &str, part: &str) -> Vec<Row> {
    let mut found = Vec::new();
    for (heading, text) in sections(section(FIELDS, 2, kind), 3) {
        let object = heading.trim_matches('`').replace("[]", "");
        if object != part && !object.starts_with(&format!("{part}.")) {
            continue;
        }
        for row in rows(text) {
            for name in quoted(row[0]) {
                let path = format!("{object}.{}", name.replace("[]", ""));
                found.push(Row { path, cells: row.iter().map(|cell| (*cell).to_owned()).collect() });
            }
        }
    }
    found
}

/// Paths with those of everything around them.
fn with_parents<'a>(paths: impl Iterator<Item = &'a str>, part: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for path in paths {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        all.extend(ends.map(|end| path[..end].to_owned()).filter(|path| path != part));
    }
    all
}

fn assert_same_fields(rows: &[Row], fields: &[Field], part: &str) {
    let documented = with_parents(rows.iter().map(|row| row.path.as_str()), part);
    let known: BTreeSet<String> = fields.iter().map(|(path, _)| path.clone()).collect();
    let absent: Vec<_> = known.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&known).collect();
    assert!(absent.is_empty() && unknown.is_empty(), "not explained: {absent:?}; unknown: {unknown:?}");
}

#[test]
fn every_field_of_a_package_is_explained_and_nothing_else() {
    assert_same_fields(&documented("Package", "spec"), &spec(), "spec");
}

#[test]
fn every_field_of_the_status_is_explained_and_nothing_else() {
    assert_same_fields(&documented("Package", "status"), &fields_of(&schema_of(0, "status"), "status"), "status");
}

#[test]
fn the_fields_of_a_revision_are_explained() {
    for part in ["spec", "status"] {
        let mut fields = fields_of(&schema_of(1, part), part);
        fields.retain(|(path, _)| path.matches('.').count() == 1);
        assert_same_fields(&documented("PackageRevision", part), &fields, part);
    }
}

#[test]
fn allowed_words_and_defaults_are_those_of_the_schema() {
    let fields = spec();
    for row in documented("Package", "spec") {
        let (_, schema) = fields.iter().find(|(path, _)| *path == row.path).unwrap();
        let (kind, default) = (&row.cells[1], &row.cells[2]);
        let words: Vec<&str> = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if !words.is_empty() {
            assert_eq!(quoted(kind), words, "{}", row.path);
        }
        if schema["type"] == "boolean" {
            assert_eq!(kind, "true or false", "{}", row.path);
        }
        if let Some(stated) = default_in(schema["description"].as_str().unwrap_or_default()) {
            assert_eq!(default.trim_matches('`'), stated, "default of {}", row.path);
        }
        if let Some(limit) = schema["maxItems"].as_u64() {
            let told = format!("at most {limit}");
            assert!(row.cells.iter().any(|cell| cell.contains(&told)), "{} takes {told}", row.path);
        }
        if let (Some(least), Some(most)) = (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
            assert_eq!(*kind, format!("{least} to {most}"), "{}", row.path);
        }
    }
}

/// The value in `Default false.` or ``Default `10m`.``; nothing where the
/// default is told in words.
fn default_in(description: &str) -> Option<&str> {
    let (_, rest) = description.split_once("Default ")?;
    let value = match rest.strip_prefix('`') {
        Some(rest) => rest.split('`').next()?,
        None => rest.split('.').next()?,
    };
    Some(value)
}

#[test]
fn what_is_required_is_said_to_be() {
    fn required(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        found.extend(names.map(|name| format!("{path}.{name}")));
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let below = format!("{path}.{name}");
            required(property, &below, found);
            required(&property["items"], &below, found);
        }
    }
    let text = std::fs::read_to_string(root().join("manifests/schema/package.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    let mut wanted = BTreeSet::new();
    required(&schema["properties"]["spec"], "spec", &mut wanted);
    let rows = documented("Package", "spec");
    let said = rows.iter().filter(|row| row.cells[2] == "required").map(|row| row.path.clone());
    assert_eq!(said.collect::<BTreeSet<_>>(), wanted);
}

/// Paths of the keys of an example.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let below = format!("{path}.{key}");
                found.insert(below.clone());
                keys(value, &below, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, path, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_field_is_shown_in_an_example() {
    let mut shown = BTreeSet::new();
    for example in fences(FIELDS, "yaml") {
        read_yaml(example).iter().for_each(|value| keys(value, "spec", &mut shown));
    }
    let written_by_others = |path: &str| path.starts_with("spec.components.source");
    let absent: Vec<_> = spec()
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| !shown.contains(path) && !written_by_others(path))
        .collect();
    assert!(absent.is_empty(), "in no example: {absent:?}");
}

#[test]
fn examples_have_no_findings() {
    for example in fences(FIELDS, "yaml") {
        let lines: String = example.lines().map(|line| format!("  {line}\n")).collect();
        let text = format!("apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: it}}\nspec:\n{lines}");
        let rule = NamespaceRule::Default(Namespace::parse("packages").unwrap());
        let loaded = load(&[Input::Text { bytes: text.into_bytes(), shown: "example".into() }], &rule).unwrap();
        let more = check(&loaded, &Options::default()).unwrap();
        let found: Vec<_> = loaded.diagnostics.into_iter().chain(more).collect();
        // The required Packages are not among the files.
        let other = found.iter().filter(|found| found.code.to_string() != "WL036");
        let messages: Vec<_> = other.map(|found| format!("{}: {}", found.code, found.message)).collect();
        assert!(messages.is_empty(), "{messages:?}\n{example}");
    }
}

/// Names of ours in a text: what follows `windlass.dev/`.
fn own_names(text: &str) -> BTreeSet<&str> {
    const PREFIX: &str = "windlass.dev/";
    let found = text.match_indices(PREFIX).filter(|(at, _)| !text[..*at].ends_with('.'));
    let names = found.map(|(at, _)| {
        let rest = &text[at + PREFIX.len()..];
        &rest[..rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len())]
    });
    names.filter(|name| !name.is_empty() && *name != "v1alpha1").collect()
}

#[test]
fn every_annotation_label_and_finalizer_is_explained_and_nothing_else() {
    assert_eq!(own_names(DOCUMENT), own_names(NAMES));
}

#[test]
fn the_columns_are_those_of_kubectl() {
    let columns = |crd: usize, wide: bool| -> Vec<String> {
        let columns = crds()[crd]["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap().clone();
        let shown = columns.iter().filter(|column| (column["priority"].as_i64().unwrap_or(0) > 0) == wide);
        shown.map(|column| column["name"].as_str().unwrap().to_owned()).collect()
    };
    let table = rows(section(DOCUMENT, 2, "Columns"));
    let told: Vec<&str> = table.iter().map(|row| row[1]).collect();
    let joined = |names: Vec<String>| names.join(", ");
    let wide = format!("these, {}", columns(0, true).join(" and "));
    assert_eq!(told, [joined(columns(0, false)), wide, joined(columns(1, false))]);
}

#[test]
fn states_are_those_of_a_component() {
    let schema = schema_of(0, "status");
    let state = &schema["properties"]["components"]["items"]["properties"]["state"];
    let known: Vec<&str> = state["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let table = rows(section(DOCUMENT, 2, "States of a component"));
    assert_eq!(table.iter().map(|row| row[0].trim_matches('`')).collect::<Vec<_>>(), known);
}
