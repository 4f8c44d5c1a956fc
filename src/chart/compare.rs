//! What changes between two states of a CustomResourceDefinition.

use serde_json::{Map, Value};

use super::crd::Crd;

/// A change that may break what uses the kind, or the upgrade itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdChange {
    /// A version that was served is not any more.
    NotServed {
        /// Its name.
        version: String,
    },
    /// A version that objects are stored in is removed.
    StoredRemoved {
        /// Its name.
        version: String,
        /// Why they are.
        stored: Stored,
    },
    /// Fields of a version are gone from its schema.
    FieldsGone {
        /// Name of the version.
        version: String,
        /// Paths of the fields, the outermost that are gone.
        fields: Vec<String>,
    },
}

/// How it is known that objects are stored in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is the one that objects are written in.
    Now,
    /// The definition says so itself.
    Stated,
    /// It is neither served nor written, and was listed all the same.
    Presumably,
}

/// What changes. Nothing follows from what is not known of the second state.
pub fn changes(from: &Crd, to: &Crd) -> Vec<CrdChange> {
    if !to.is_whole {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for before in &from.versions {
        let version = before.name.clone();
        let after = to.version(&version);
        if before.served == Some(true) && after.is_none_or(|after| after.served == Some(false)) {
            changes.push(CrdChange::NotServed { version: version.clone() });
        }
        let stored = match (before.served, before.storage) {
            (_, Some(true)) => Some(Stored::Now),
            _ if from.stored.contains(&version) => Some(Stored::Stated),
            (Some(false), Some(false)) => Some(Stored::Presumably),
            _ => None,
        };
        if let Some(stored) = stored.filter(|_| after.is_none()) {
            changes.push(CrdChange::StoredRemoved { version: version.clone(), stored });
        }
        let Some(after) = after.filter(|after| after.served != Some(false) || after.storage != Some(false)) else {
            continue;
        };
        let mut fields = Vec::new();
        Fields { gone: &mut fields }.compare(&before.schema, &after.schema, "");
        if !fields.is_empty() {
            changes.push(CrdChange::FieldsGone { version, fields });
        }
    }
    changes
}

struct Fields<'f> {
    gone: &'f mut Vec<String>,
}

impl Fields<'_> {
    /// Compares two schemas of one place. What the second keeps whatever it is
    /// does not go.
    fn compare(&mut self, from: &Value, to: &Value, path: &str) {
        if to.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) || !to.is_object() {
            return;
        }
        let has_implicit = path.is_empty() || to.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        let properties = |schema: &'_ Value| schema.get("properties").and_then(Value::as_object).cloned();
        let (before, after) = (properties(from).unwrap_or_default(), properties(to));
        let any = to.get("additionalProperties").filter(|more| **more != Value::Bool(false));
        for (name, before) in &before {
            let inner = join(path, name);
            match after.as_ref().and_then(|after| after.get(name)).or(any) {
                Some(after) => self.compare(before, after, &inner),
                None if has_implicit && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") => {}
                None if is_object(to, after.as_ref()) => self.gone.push(inner),
                None => {}
            }
        }
        if let (Some(before), Some(after)) = (from.get("items"), to.get("items")) {
            self.compare(before, after, &format!("{path}[]"));
        }
        if let Some(before) = from.get("additionalProperties").filter(|before| before.is_object()) {
            match any {
                Some(after) => self.compare(before, after, &join(path, "*")),
                None if is_object(to, after.as_ref()) => self.gone.push(join(path, "*")),
                None => {}
            }
        }
    }
}

/// Whether a schema is one of objects: a field that has another type now is not
/// one whose fields are gone.
fn is_object(schema: &Value, properties: Option<&Map<String, Value>>) -> bool {
    schema.get("type").map_or(properties.is_some(), |type_| type_ == "object")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
