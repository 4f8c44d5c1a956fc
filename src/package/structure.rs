//! The shape of a Package document: fields, types, limits.
//!
//! Driven by the JSON Schema that follows from the types, so that checks
//! offline, editors and API servers agree. The committed schema is read, since
//! making it anew would take most of a run's time; a test compares the two.

mod shape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::definition::did_you_mean;
use super::pointer::Pointer;
use super::violation::{Code, Violation, short};
use super::yaml::{Content, Entry, Node};
use shape::{Kind, Shape, Text};

/// A broken rule and whether it is about the key rather than the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule and its place.
    pub violation: Violation,
    /// Whether to point at the key.
    pub at_key: bool,
    /// Whether quotes around the value mend it.
    pub quotes_mend: bool,
}

/// What a document's shape came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Everything wrong with the shape, in the order of the document.
    pub findings: Vec<Finding>,
    /// The document without what does not fit, required fields filled with
    /// empty values, so that further rules can be checked all the same.
    pub fitting: Value,
}

const SCHEMA: &str = include_str!("../../manifests/schema/package.schema.json");

/// Checks the shape of a Package document.
pub fn check(root: &Node) -> Structure {
    static SHAPE: LazyLock<Shape> = LazyLock::new(|| Shape::compile(&serde_json::from_str(SCHEMA).unwrap_or_default()));
    let mut checker = Checker { findings: Vec::new(), pointer: Pointer::default() };
    let fitting = checker.value(&SHAPE, root, Name::Document).unwrap_or(Value::Null);
    Structure { findings: checker.findings, fitting }
}

/// What a value is called in messages.
#[derive(Clone, Copy)]
enum Name<'a> {
    Document,
    Field(&'a str),
    EntryOf(&'a str),
}

impl Name<'_> {
    fn entry(self) -> Self {
        match self {
            Self::Field(name) => Self::EntryOf(name),
            Self::Document | Self::EntryOf(_) => self,
        }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => formatter.write_str("the document"),
            Self::Field(name) => write!(formatter, "`{name}`"),
            Self::EntryOf(name) => write!(formatter, "an entry of `{name}`"),
        }
    }
}

struct Checker {
    findings: Vec<Finding>,
    pointer: Pointer,
}

impl Checker {
    fn report(&mut self, at_key: bool, code: Code, message: String, help: impl Into<String>) {
        let violation = Violation::new(code, self.pointer.as_str(), message).help(help);
        self.findings.push(Finding { violation, at_key, quotes_mend: false });
    }

    fn within<T>(&mut self, key: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        self.pointer.push(key);
        let result = run(self);
        self.pointer.pop();
        result
    }

    /// The value as far as it fits; `None` where it does not at all.
    fn value(&mut self, shape: &Shape, node: &Node, name: Name<'_>) -> Option<Value> {
        match (&shape.kind, &node.content) {
            (Kind::Any, _) => Some(node.to_value()),
            (_, Content::Null) => {
                let help = "remove it, or give it a value";
                self.report(true, Code::WrongType, format!("{name} has no value"), help);
                None
            }
            (Kind::Object(object), Content::Mapping(entries)) => Some(self.object(object, entries, name)),
            (Kind::List { items, least, most }, Content::Sequence(nodes)) => {
                self.list_length(nodes.len(), *least, *most, name);
                let values = nodes.iter().enumerate();
                let values = values.filter_map(|(index, node)| {
                    self.pointer.push_index(index);
                    let value = self.value(items, node, name.entry());
                    self.pointer.pop();
                    value.or_else(|| items.placeholder())
                });
                Some(Value::Array(values.collect()))
            }
            (Kind::Text(text), Content::Text(found)) => self.text(text, found, name),
            (Kind::Integer { least, most }, Content::Number(number)) if !number.is_f64() => {
                let fits = number.as_i64().is_some_and(|n| least.is_none_or(|l| n >= l) && most.is_none_or(|m| n <= m));
                if !fits {
                    let bounds = bounds(*least, *most);
                    let message = format!("{name} must be {bounds}, not {number}");
                    self.report(false, Code::InvalidValue, message, "write another number, or leave it out");
                }
                fits.then(|| Value::Number(number.clone()))
            }
            (Kind::Boolean, Content::Bool(value)) => Some(Value::Bool(*value)),
            (kind, _) => {
                self.wrong_type(kind, node, name);
                None
            }
        }
    }

    fn wrong_type(&mut self, kind: &Kind, node: &Node, name: Name<'_>) {
        let quotes_mend = matches!(kind, Kind::Text(text) if node.plain && text.fits(&node.to_value().to_string()));
        let help = match (kind, &node.content) {
            (Kind::Text(_), Content::Number(_) | Content::Bool(_)) if quotes_mend => {
                "put it in quotes: without them YAML reads another type"
            }
            (Kind::Text(text), Content::Number(_) | Content::Bool(_)) => text.form(),
            (Kind::Text(_), Content::Mapping(_) | Content::Sequence(_)) => {
                "write one text, without `[…]`, `{…}` or `- `"
            }
            (Kind::List { .. }, Content::Mapping(_)) => "write a list: a line with `- ` for each entry",
            (Kind::Integer { .. }, Content::Number(_)) => "write it without a fraction",
            (Kind::Integer { .. }, Content::Text(_)) if node.plain => "write a whole number",
            (Kind::List { .. }, Content::Text(_)) => "write a list, also for one: `[…]` or a line with `- `",
            (Kind::Boolean, Content::Text(_)) => "write true or false, without quotes",
            (Kind::Integer { .. }, Content::Text(_)) => "write the number without quotes",
            (Kind::Object(object), _) => &object_help(object, node),
            _ => "",
        };
        let message = format!("{name} must be {}, this is {}", kind.name(), node.kind());
        self.report(false, Code::WrongType, message, help);
        if let (true, Some(finding)) = (quotes_mend, self.findings.last_mut()) {
            finding.quotes_mend = true;
        }
    }

    fn list_length(&mut self, length: usize, least: usize, most: Option<usize>, name: Name<'_>) {
        if let Some(most) = most.filter(|most| length > *most) {
            self.report(
                true,
                Code::TooLarge,
                format!("{name} has {length} entries, at most {most} are allowed"),
                "leave some out",
            );
        }
        if length < least {
            self.report(
                true,
                Code::InvalidValue,
                format!("{name} needs at least {least} entry"),
                "add one, or remove the field",
            );
        }
    }

    fn object(&mut self, object: &shape::Object, entries: &[Entry], name: Name<'_>) -> Value {
        let mut fitting = Map::new();
        for entry in entries {
            let key = entry.key.as_str();
            match (object.fields.get(key), &object.others) {
                (Some(shape), _) => {
                    if let Some(value) = self.within(key, |this| this.value(shape, &entry.value, Name::Field(key))) {
                        fitting.insert(key.to_owned(), value);
                    }
                }
                (None, shape::Others::Allowed) => {
                    fitting.insert(key.to_owned(), entry.value.to_value());
                }
                (None, shape::Others::Of(shape)) => {
                    if let Some(value) = self.within(key, |this| this.value(shape, &entry.value, Name::Field(key))) {
                        fitting.insert(key.to_owned(), value);
                    }
                }
                (None, shape::Others::Refused) => self.within(key, |this| this.unknown(object, key)),
            }
        }
        for required in &object.required {
            if !entries.iter().any(|entry| entry.key == *required) {
                let message = format!("{name} needs `{required}`");
                let help = format!("add `{required}: …`");
                self.within(required, |this| this.report(true, Code::MissingField, message, help));
            }
            if let (false, Some(shape)) = (fitting.contains_key(required), object.fields.get(required)) {
                fitting.extend(shape.placeholder().map(|value| (required.clone(), value)));
            }
        }
        Value::Object(fitting)
    }

    fn unknown(&mut self, object: &shape::Object, key: &str) {
        let similar = did_you_mean(key, object.fields.keys().map(String::as_str));
        let inside = || object.fields.iter().find(|(_, shape)| shape.has_field(key)).map(|(name, _)| name);
        let help = if !similar.is_empty() {
            similar
        } else if let Some(parent) = inside() {
            format!("`{key}` belongs under `{parent}`")
        } else {
            let known: Vec<&str> = object.fields.keys().map(String::as_str).collect();
            format!("known here: {}", known.join(", "))
        };
        self.report(true, Code::UnknownField, format!("unknown field `{key}`"), help);
    }

    fn text(&mut self, text: &Text, found: &str, name: Name<'_>) -> Option<Value> {
        if !text.allowed.is_empty() {
            if text.allowed.iter().any(|allowed| allowed == found) {
                return Some(Value::String(found.to_owned()));
            }
            let allowed = text.allowed.iter().map(String::as_str);
            let same = text.allowed.iter().find(|allowed| allowed.eq_ignore_ascii_case(found));
            let help = match same {
                Some(same) => format!("did you mean `{same}`?"),
                None if found.starts_with("Post") => AFTERWARDS.to_owned(),
                None => did_you_mean(found, allowed.clone()),
            };
            let message =
                format!("{name} must be {}, not `{}`", allowed.collect::<Vec<_>>().join(" or "), short(found));
            self.report(false, Code::InvalidValue, message, help);
            return None;
        }
        let length = found.chars().count();
        if let Some(most) = text.most.filter(|most| length > *most) {
            let message = format!("{name} has {length} characters, at most {most} are allowed");
            self.report(false, Code::TooLarge, message, "shorten it");
        } else if length < text.least {
            self.report(false, Code::InvalidValue, format!("{name} is empty"), "write something, or remove the field");
        } else if let Some(pattern) = text.pattern.as_ref().filter(|pattern| !pattern.matches(found)) {
            let message = format!("{name} is malformed: `{}` does not match {}", short(found), pattern.as_str());
            self.report(false, Code::InvalidValue, message, form_help(name, found));
        }
        Some(Value::String(found.to_owned()))
    }
}

/// What to do for want of hooks that run after an upgrade.
const AFTERWARDS: &str = "nothing runs afterwards but components: let one depend on the others";

/// What to write where a text does not have its form.
fn form_help(name: Name<'_>, found: &str) -> String {
    let is_group = matches!(name, Name::Field("apiVersion")) && found.contains('.') && !found.contains('/');
    if is_group { format!("write group/version, such as `{found}/v1`") } else { "write it in that form".to_owned() }
}

/// What to write where a map was expected: its only field that could hold what
/// was found, else all there are.
fn object_help(object: &shape::Object, found: &Node) -> String {
    let holds = |shape: &Shape| match (&shape.kind, &found.content) {
        (Kind::Boolean, content) => matches!(content, Content::Bool(_)),
        (Kind::Integer { .. }, content) => matches!(content, Content::Number(_)),
        (Kind::Text(_), content) => matches!(content, Content::Text(_)),
        (Kind::Any | Kind::Object(_) | Kind::List { .. }, _) => false,
    };
    let mut fitting = object.fields.iter().filter(|(_, shape)| holds(shape));
    match (fitting.next(), fitting.next()) {
        (Some((field, _)), None) => format!("did you mean `{{{field}: {}}}`?", short(&found.to_value().to_string())),
        _ if object.fields.is_empty() => String::new(),
        _ => format!("known here: {}", object.fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ")),
    }
}

fn bounds(least: Option<i64>, most: Option<i64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "an integer".into(),
    }
}
