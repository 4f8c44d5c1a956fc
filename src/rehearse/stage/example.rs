//! An object as it looks when the entries of `readyWhen` about it hold.

use serde_json::{Map, Value, json};

use crate::package::definition::{ReadyTest, ReadyWhen};
use crate::ready::cel::Expression;
use crate::ready::evidence::{Entry, Holding, Lookup, Observation, Versions};
use crate::sim::Key;

/// What every template puts into the spec.
const OWN: [&str; 3] = ["release", "version", "config"];

/// An object, made up from what is asked of it.
#[derive(Debug)]
pub(super) struct Example {
    object: Value,
    is_workload: bool,
}

/// Versions that an expression knows.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The one that is wanted.
    pub version: String,
    /// The one that runs before; empty: none.
    pub from: String,
}

/// Whether the simulated Kubernetes itself makes an object ready.
pub(super) fn is_workload(key: &Key) -> bool {
    matches!((key.api_version.as_str(), key.kind.as_str()), ("apps/v1", "Deployment") | ("batch/v1", "Job"))
}

/// Whether a kind comes with Kubernetes.
pub(super) fn is_built_in(api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

impl Example {
    /// An object of which nothing is known but its key, and that its generation
    /// has been observed.
    pub fn new(key: &Key, chart_version: &str) -> Self {
        let mut status = json!({"observedGeneration": 1});
        let replicas = json!({"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1});
        match (is_workload(key), key.kind.as_str()) {
            (true, "Job") => {
                status["succeeded"] = 1.into();
                status["conditions"] = json!([{"type": "Complete", "status": "True"}]);
            }
            (true, _) => {
                status = replicas;
                status["observedGeneration"] = 1.into();
                status["conditions"] = json!([{"type": "Available", "status": "True"}]);
            }
            (false, _) => {}
        }
        let object = json!({
            "apiVersion": key.api_version, "kind": key.kind,
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": "example", "generation": 1},
            "spec": {"release": "", "version": chart_version, "config": "", "replicas": 1},
            "status": status,
        });
        Self { object, is_workload: is_workload(key) }
    }

    /// An object of which the `failed` of an entry holds, if it can be told.
    pub fn failed(key: &Key, entry: &ReadyWhen, chart_version: &str, version: &str) -> Option<Self> {
        let mut example = Self::new(key, chart_version);
        let known = Known { version: version.to_owned(), from: String::new() };
        let expression = Expression::compile(entry.failed.as_deref()?).ok()?;
        expression.suggest(&mut example.object, version, "");
        (example.is_sound() && example.observe(entry, &known, 1)?.failed == Holding::Yes).then_some(example)
    }

    /// An object of which none of some entries holds, if it can be told.
    pub fn denied(key: &Key, entries: &[&ReadyWhen], chart_version: &str, version: &str) -> Option<Self> {
        let mut example = Self::new(key, chart_version);
        let known = Known { version: version.to_owned(), from: String::new() };
        let conditions = entries.iter().filter_map(|entry| match &entry.test {
            ReadyTest::Condition { condition, status } => {
                let other = if status == "False" { "True" } else { "False" };
                Some(json!({"type": condition, "status": other, "reason": "Rehearsed"}))
            }
            ReadyTest::Expr(_) => None,
        });
        example.object["status"]["conditions"] = conditions.collect();
        let holds =
            |entry: &&ReadyWhen| example.observe(entry, &known, 1).is_none_or(|seen| seen.holds == Holding::Yes);
        (!entries.iter().any(holds)).then_some(example)
    }

    /// Gives the object what an entry asks of it. What Kubernetes itself reports
    /// cannot be chosen.
    pub fn ask(&mut self, entry: &ReadyWhen, known: &Known) {
        if self.is_workload {
            return;
        }
        let before = self.object.clone();
        match &entry.test {
            ReadyTest::Condition { condition, status } => {
                let condition = json!({"type": condition, "status": status, "reason": "Rehearsed"});
                match self.object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
                    Some(conditions) => conditions.push(condition),
                    None => self.object["status"]["conditions"] = json!([condition]),
                }
            }
            ReadyTest::Expr(text) => {
                if let Ok(expression) = Expression::compile(text) {
                    expression.suggest(&mut self.object, &known.version, &known.from);
                }
            }
        }
        // Of all else the stage has nothing to say: not of labels, and not of `data`.
        let kept = |object: &Value| {
            let mut kept = object.as_object().cloned().unwrap_or_default();
            kept.shift_remove("status");
            kept.insert("spec".to_owned(), object["spec"]["version"].clone());
            kept
        };
        if kept(&self.object) != kept(&before) || !self.is_sound() || !self.holds(entry, known) {
            self.object = before;
        }
    }

    /// Whether an entry holds of the object, at any generation of it.
    pub fn holds(&self, entry: &ReadyWhen, known: &Known) -> bool {
        [1, 7]
            .iter()
            .all(|generation| self.observe(entry, known, *generation).is_some_and(|seen| seen.holds == Holding::Yes))
    }

    fn is_sound(&self) -> bool {
        ["metadata", "spec", "status"].iter().all(|section| self.object.get(section).is_some_and(Value::is_object))
    }

    fn observe(&self, entry: &ReadyWhen, known: &Known, generation: i64) -> Option<Observation> {
        let mut object = self.object.clone();
        object["metadata"]["generation"] = generation.into();
        object["status"]["observedGeneration"] = generation.into();
        let versions = Versions { wanted: &known.version, from: &known.from };
        Some(Entry::parse(entry).ok()?.observe(&Lookup::Found(object), versions))
    }

    /// The spec that a chart gives it.
    pub fn spec(&self) -> Value {
        let mut spec = json!({"release": "{release}", "version": "{version}", "config": "{values}"});
        let asked = self.object["spec"].as_object().into_iter().flatten();
        for (field, value) in asked.filter(|(field, _)| !OWN.contains(&field.as_str())) {
            spec[field.as_str()] = value.clone();
        }
        spec
    }

    /// The status that is reported of it.
    pub fn status(&self) -> Map<String, Value> {
        let mut status = self.object["status"].as_object().cloned().unwrap_or_default();
        status.shift_remove("observedGeneration");
        status
    }
}
