//! The reference of the kinds as a Markdown page: prose and examples around
//! tables of the fields, which are made of the schemas.

use serde_json::Value;

use super::schema::crds;

/// Prose and examples. A line `{fields}` below a heading stands for the table of
/// the object that the heading names.
const FRAME: &str = include_str!("reference.md.in");
const PLACE: &str = "{fields}";
/// Said first, to whoever opens the page in an editor.
const WARNING: &str = "<!-- Made of the types by `make generate`; its prose is in src/api/reference.md.in. -->\n";

const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
const VERSION: &str = r"^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$";
const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const RELEASE: &str = "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$";

/// The page.
pub fn markdown() -> String {
    let crds = crds();
    let mut text = WARNING.to_owned();
    let (mut crd, mut object) = (None, "");
    for line in FRAME.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            crd = crds.iter().find(|crd| crd.pointer("/spec/names/kind").and_then(Value::as_str) == Some(heading));
        } else if let Some(heading) = line.strip_prefix("### ") {
            object = heading.trim_matches('`');
        }
        match crd {
            Some(crd) if line == PLACE => text.push_str(&table(crd, object)),
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

fn table(crd: &Value, object: &str) -> String {
    let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    let schema = schema_of(crd, object);
    match (kind, object) {
        ("Package", "status") => status(schema),
        ("Package", _) => fields(schema),
        _ => record(schema),
    }
}

/// The schema of an object such as `spec.components[].chart`.
fn schema_of<'a>(crd: &'a Value, object: &str) -> Option<&'a Value> {
    let root = crd.pointer("/spec/versions/0/schema/openAPIV3Schema")?;
    object.split('.').try_fold(root, |schema, part| {
        let property = schema.get("properties")?.get(part.trim_end_matches("[]"))?;
        if part.ends_with("[]") { property.get("items") } else { Some(property) }
    })
}

fn properties(schema: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object).into_iter().flatten()
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What an author writes: required fields first, and the rules between fields below.
fn fields(schema: Option<&Value>) -> String {
    let required: Vec<&str> = schema.map(|schema| words(schema, "required")).unwrap_or_default();
    let mut rows: Vec<_> = properties(schema).collect();
    rows.sort_by_key(|(name, _)| !required.contains(&name.as_str()));
    let mut table = "| field | type | default | what it does |\n|---|---|---|---|\n".to_owned();
    for (name, property) in rows {
        let (said, default) = description(property);
        let default = match default {
            _ if required.contains(&name.as_str()) => "required".to_owned(),
            Some(default) => default,
            None => "none".to_owned(),
        };
        table.push_str(&format!("| `{name}` | {} | {} | {} |\n", kind(property), cell(&default), cell(&said)));
    }
    let rules = rules(schema);
    if !rules.is_empty() {
        table.push_str("\nRules that an API server holds it to:\n\n");
        rules.iter().for_each(|rule| table.push_str(&format!("- {rule}\n")));
    }
    table
}

/// Messages of the rules of an object, and of its lists of objects as wholes.
fn rules(schema: Option<&Value>) -> Vec<&str> {
    let lists = properties(schema).map(|(_, property)| property).filter(|property| text(property, "type") == "array");
    let rules = schema.into_iter().chain(lists);
    let rules = rules.filter_map(|schema| schema.get("x-kubernetes-validations")).filter_map(Value::as_array).flatten();
    rules.map(|rule| text(rule, "message")).collect()
}

/// The status, with what is in its objects.
fn status(schema: Option<&Value>) -> String {
    let mut table = "| field | type | what it says |\n|---|---|---|\n".to_owned();
    let mut add = |name: &str, property: &Value| {
        table.push_str(&format!("| `{name}` | {} | {} |\n", kind(property), cell(&description(property).0)));
    };
    for (name, property) in properties(schema) {
        let inner: Vec<_> = match property.get("items") {
            _ if name == "conditions" => Vec::new(),
            Some(items) => {
                properties(Some(items)).map(|(below, schema)| (format!("{name}[].{below}"), schema)).collect()
            }
            None => properties(Some(property)).map(|(below, schema)| (format!("{name}.{below}"), schema)).collect(),
        };
        if inner.is_empty() {
            add(name, property);
        }
        inner.iter().for_each(|(name, property)| add(name, property));
    }
    table
}

/// What the controller records for itself.
fn record(schema: Option<&Value>) -> String {
    let mut table = "| field | what it holds |\n|---|---|\n".to_owned();
    for (name, property) in properties(schema) {
        table.push_str(&format!("| `{name}` | {} |\n", cell(&description(property).0)));
    }
    table
}

/// A description in one line, and the default that it states.
fn description(property: &Value) -> (String, Option<String>) {
    let said = text(property, "description").split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((before, default)) = said.rsplit_once("Default").filter(|(_, rest)| rest.starts_with([' ', ':'])) else {
        return (said, None);
    };
    let default = default.trim_start_matches(':').trim().trim_end_matches('.');
    let default = match default {
        bare if bare.parse::<f64>().is_ok() || bare == "false" => format!("`{bare}`"),
        words => words.to_owned(),
    };
    (before.trim().to_owned(), Some(default))
}

/// Type and limits.
fn kind(property: &Value) -> String {
    if !words(property, "enum").is_empty() {
        return words(property, "enum").iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    match text(property, "type") {
        "boolean" => "true or false".to_owned(),
        "integer" => integer(property),
        "array" => limited(&list(property), property.get("maxItems"), ""),
        "string" => string(property),
        "object" if property.get("additionalProperties").is_some_and(Value::is_object) => "map of text".to_owned(),
        "object" if property.get("properties").is_none() => "map".to_owned(),
        other => other.to_owned(),
    }
}

fn integer(property: &Value) -> String {
    let number = |key: &str| property.get(key).and_then(Value::as_f64);
    match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "number".to_owned(),
    }
}

fn list(property: &Value) -> String {
    match property.get("items").map(|items| text(items, "type")) {
        Some("string") => "list of text".to_owned(),
        _ => "list".to_owned(),
    }
}

fn string(property: &Value) -> String {
    let said = text(property, "description");
    match text(property, "pattern") {
        DURATION => "duration".to_owned(),
        VERSION => "version".to_owned(),
        LABEL | RELEASE => limited("name", property.get("maxLength"), ""),
        _ if text(property, "format") == "date-time" => "time".to_owned(),
        _ if said.starts_with("Range") => "range".to_owned(),
        _ if said.starts_with("CEL") => limited("CEL", property.get("maxLength"), " bytes"),
        _ => limited("text", property.get("maxLength"), ""),
    }
}

fn limited(kind: &str, most: Option<&Value>, unit: &str) -> String {
    most.map_or_else(|| kind.to_owned(), |most| format!("{kind}, at most {most}{unit}"))
}

fn words<'a>(schema: &'a Value, key: &str) -> Vec<&'a str> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
