//! A JSON Schema made ready for checking.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

/// What a value must look like.
#[derive(Debug)]
pub struct Shape {
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    Any,
    Object(Object),
    List { items: Box<Shape>, least: usize, most: Option<usize> },
    Text(Text),
    Integer { least: Option<i64>, most: Option<i64> },
    Boolean,
}

#[derive(Debug)]
pub struct Object {
    pub fields: BTreeMap<String, Shape>,
    pub required: Vec<String>,
    pub others: Others,
}

/// What holds for keys that are no field.
#[derive(Debug)]
pub enum Others {
    Refused,
    Allowed,
    Of(Box<Shape>),
}

#[derive(Debug)]
pub struct Text {
    pub allowed: Vec<String>,
    pub least: usize,
    pub most: Option<usize>,
    pub pattern: Option<Pattern>,
}

/// A regular expression that is compiled when it is first needed.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// Whether it matches. One that is no expression would match everything;
    /// a test sees to it that all are.
    pub fn matches(&self, text: &str) -> bool {
        self.compiled.get_or_init(|| Regex::new(&self.text).ok()).as_ref().is_none_or(|regex| regex.is_match(text))
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Text {
    /// Whether a text is one that this may be.
    pub fn fits(&self, text: &str) -> bool {
        let known = self.allowed.is_empty() || self.allowed.iter().any(|allowed| allowed == text);
        known && text.len() >= self.least && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(text))
    }

    /// How such texts are written, as far as their pattern tells.
    pub fn form(&self) -> &'static str {
        let fits = |text: &str| self.pattern.as_ref().is_some_and(|pattern| pattern.matches(text));
        match (fits("15s"), fits("1.2.3")) {
            (true, false) => "write a number and a unit: `15s`, `15m`",
            (false, true) => "write all three numbers: `2.1.0`",
            (true, true) | (false, false) => "",
        }
    }
}

impl Kind {
    /// The kind with its article, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Object(_) => "a map",
            Self::List { .. } => "a list",
            Self::Text(_) => "text",
            Self::Integer { .. } => "an integer",
            Self::Boolean => "true or false",
        }
    }
}

impl Shape {
    /// Compiles the parts of JSON Schema that our types give rise to. Whatever
    /// else there were would be accepted here and refused by the typed reading.
    pub fn compile(schema: &Value) -> Self {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let bound = |key: &str| schema.get(key).and_then(number);
        let texts = |key: &str| {
            let texts = schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        let kind = match schema.get("type").and_then(Value::as_str) {
            Some("object") => Kind::Object(Object {
                fields: fields(schema),
                required: texts("required"),
                others: match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => Others::Refused,
                    Some(inner @ Value::Object(_)) => Others::Of(Box::new(Self::compile(inner))),
                    _ => Others::Allowed,
                },
            }),
            Some("array") => Kind::List {
                items: Box::new(schema.get("items").map_or(Self { kind: Kind::Any }, Self::compile)),
                least: count("minItems").unwrap_or(0),
                most: count("maxItems"),
            },
            Some("string") => Kind::Text(Text {
                allowed: texts("enum"),
                least: count("minLength").unwrap_or(0),
                most: count("maxLength"),
                pattern: schema.get("pattern").and_then(Value::as_str).map(Pattern::new),
            }),
            Some("integer") => Kind::Integer { least: bound("minimum"), most: bound("maximum") },
            Some("boolean") => Kind::Boolean,
            _ => Kind::Any,
        };
        Self { kind }
    }

    /// An empty value of this shape that lets typed reading succeed; `None`
    /// where only one of a list of words would do.
    pub fn placeholder(&self) -> Option<Value> {
        match &self.kind {
            Kind::Any => Some(Value::Null),
            Kind::Object(object) => {
                let fields = object
                    .required
                    .iter()
                    .filter_map(|name| object.fields.get(name)?.placeholder().map(|value| (name.clone(), value)));
                Some(Value::Object(fields.collect()))
            }
            Kind::List { .. } => Some(Value::Array(Vec::new())),
            Kind::Text(text) => Some(Value::String(text.allowed.first().cloned().unwrap_or_default())),
            Kind::Integer { least, .. } => Some((*least).unwrap_or_default().into()),
            Kind::Boolean => Some(Value::Bool(false)),
        }
    }

    /// Whether this is a map, or a list of maps, that has a field.
    pub fn has_field(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Object(object) => object.fields.contains_key(name),
            Kind::List { items, .. } => items.has_field(name),
            Kind::Any | Kind::Text(_) | Kind::Integer { .. } | Kind::Boolean => false,
        }
    }
}

fn fields(schema: &Value) -> BTreeMap<String, Shape> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, property)| (name.clone(), Shape::compile(property))).collect()
}

/// Bounds are written as floats with no fraction.
fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| format!("{:.0}", value.as_f64()?).parse().ok())
}
