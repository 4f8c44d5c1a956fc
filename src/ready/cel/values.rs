//! Kubernetes objects as CEL values.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ::cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt};
use ::cel::common::value::Val;
use serde_json::Value;

use super::library::TYPES;

/// The variables an expression is evaluated with.
#[derive(Clone, Debug, Default)]
pub struct Variables<'a> {
    values: BTreeMap<&'a str, Variable<'a>>,
}

#[derive(Clone, Copy, Debug)]
enum Variable<'a> {
    Json(&'a Value),
    Text(&'a str),
}

impl<'a> Variables<'a> {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Variables of `readyWhen`: `object`, and `version` and `fromVersion` without
    /// leading `v`; `from_version` is empty on a first install.
    pub fn ready(object: &'a Value, version: &'a str, from_version: &'a str) -> Self {
        let bare = |text: &'a str| text.strip_prefix('v').unwrap_or(text);
        Self::new()
            .with("object", object)
            .with_text("version", bare(version))
            .with_text("fromVersion", bare(from_version))
    }

    /// Variables of Flux's health check expressions: the fields at the top of
    /// the object, as many as it has.
    pub fn fields(object: &'a Value) -> Self {
        let fields = object.as_object().into_iter().flatten();
        Self { values: fields.map(|(name, value)| (name.as_str(), Variable::Json(value))).collect() }
    }

    /// Adds a variable.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: &'a Value) -> Self {
        self.values.insert(name, Variable::Json(value));
        self
    }

    /// Adds a variable that is a text.
    #[must_use]
    pub fn with_text(mut self, name: &'a str, value: &'a str) -> Self {
        self.values.insert(name, Variable::Text(value));
        self
    }

    /// The JSON of a variable.
    pub(super) fn json(&self, name: &str) -> Option<&'a Value> {
        match self.values.get(name)? {
            Variable::Json(value) => Some(value),
            Variable::Text(_) => None,
        }
    }

    /// Those of the variables that are wanted, as CEL values.
    pub(super) fn values(&self, wanted: &BTreeSet<String>) -> Vec<(String, Box<dyn Val>)> {
        self.values
            .iter()
            // A variable comes before a type of its name: `type` of a Secret.
            .filter(|(name, _)| wanted.contains(**name) || TYPES.contains(name))
            .map(|(name, value)| {
                let value: Box<dyn Val> = match value {
                    Variable::Json(value) => to_cel(value),
                    Variable::Text(text) => Box::new(CelString::from((*text).to_owned())),
                };
                ((*name).to_owned(), value)
            })
            .collect()
    }
}

/// Integers become `int`, as they do in Go; those beyond it `uint`, then `double`.
fn to_cel(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(int), _, _) => Box::new(CelInt::from(int)),
            (None, Some(uint), _) => Box::new(CelUInt::from(uint)),
            (None, None, Some(double)) => Box::new(CelDouble::from(double)),
            (None, None, None) => Box::new(CelString::from(number.to_string())),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(to_cel).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let fields: HashMap<CelMapKey<'static>, Box<dyn Val>> =
                fields.iter().map(|(name, value)| (CelMapKey::from(name.clone()), to_cel(value))).collect();
            Box::new(CelMap::from(fields))
        }
    }
}
