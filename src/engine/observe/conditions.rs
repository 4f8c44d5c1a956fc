//! Conditions of objects, as Kubernetes writes them.

use serde_json::{Map, Value};

use super::quote;
use crate::fields::{at, field};

/// A condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    pub observed_generation: Option<i64>,
    pub last_transition_time: &'a str,
}

impl Condition<'_> {
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// `Ready is False (UpgradeFailed): …`.
    pub fn describe(&self, condition: &str) -> String {
        let mut text = format!("{condition} is {}", self.status);
        if !self.reason.is_empty() {
            text = format!("{text} ({})", self.reason);
        }
        if self.message.is_empty() { text } else { format!("{text}: {}", quote(self.message)) }
    }
}

/// The condition of a type.
pub(crate) fn find<'a>(object: &'a Map<String, Value>, condition: &str) -> Option<Condition<'a>> {
    let conditions = at(object, &["status", "conditions"])?.as_array()?;
    let found = conditions.iter().find(|found| text(found, "type") == condition)?;
    Some(Condition {
        status: text(found, "status"),
        reason: text(found, "reason"),
        message: text(found, "message"),
        observed_generation: found.get("observedGeneration").and_then(Value::as_i64),
        last_transition_time: text(found, "lastTransitionTime"),
    })
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.as_object().and_then(|map| field(map, key)).and_then(Value::as_str).unwrap_or("")
}
