//! Recorded runs of helm-controller, and how a run of ours is compared with them.
//!
//! What differs from run to run is put aside (times, durations, digests of releases, the
//! namespace); everything else of every write must be the same, in the same order. Writes of
//! different objects have no order among each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// One recorded run.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    pub scenario: String,
    steps: Vec<Step>,
    events: Vec<Write>,
}

#[derive(Debug, Clone, Deserialize)]
struct Step {
    t: f64,
    step: String,
}

/// One write to a HelmRelease, as its watch showed it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// Seconds since the start.
    pub t: f64,
    #[serde(rename = "type")]
    pub change: String,
    pub name: String,
    pub generation: i64,
    pub deleting: bool,
    pub finalizers: Value,
    pub suspend: Option<bool>,
    pub chart_version: Option<String>,
    pub chart_ref: Option<Value>,
    pub status: Value,
}

/// What was done when that many writes had been seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub after: usize,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    Apply { kind: String, name: String, spec: Value },
    Delete { kind: String, name: String },
}

/// The namespace of the recordings.
const NAMESPACE: &str = "ns";

/// Waits that end in a timeout, as (in the spec, in messages, here). Here they are no multiple
/// of the five seconds between two looks, so that a look never coincides with the end; and the
/// longest ends well between two looks of a dependent, thirty seconds apart.
const TIMEOUTS: [(&str, &str, &str); 3] = [("60s", "1m0s", "37s"), ("45s", "45s", "12s"), ("10s", "10s", "6s")];

/// How a wait ended in one recording only: its client was throttled.
const THROTTLED: &str = "client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline";

impl Recording {
    /// Reads a recording; its timeouts become those that the replay uses.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut recording: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for write in &mut recording.events {
            let waited = format!("timeout waiting for: [Deployment/ns/{} status: 'InProgress']", write.name);
            replace_messages(&mut write.status, |message| {
                let message = message.replace(THROTTLED, &waited);
                TIMEOUTS.iter().fold(message, |message, (_, long, short)| {
                    message.replace(&format!("timeout of {long}"), &format!("timeout of {short}"))
                })
            });
        }
        Ok(recording)
    }

    pub fn writes(&self) -> &[Write] {
        &self.events
    }

    /// The steps in order.
    pub fn actions(&self) -> Result<Vec<Action>, String> {
        self.steps.iter().map(|step| self.action(step)).collect()
    }

    fn action(&self, step: &Step) -> Result<Action, String> {
        let unknown = || format!("{}: unknown step {:?}", self.scenario, step.step);
        let mut words = step.step.splitn(4, ' ');
        let mut word = || words.next().ok_or_else(unknown);
        let (verb, kind, name) = (word()?, word()?.to_owned(), word()?.to_owned());
        let what = match verb {
            "apply" => {
                let spec = self.spec(step, &name, word()?)?;
                What::Apply { kind, name, spec }
            }
            "delete" => What::Delete { kind, name },
            _ => return Err(unknown()),
        };
        let after = self.events.iter().filter(|write| write.t < step.t).count();
        Ok(Action { after, what })
    }

    /// Long specs were cut in the recordings. What is missing is the post-renderer, whose
    /// digest is in the status, and the chartRef, which is in the next write.
    fn spec(&self, step: &Step, name: &str, text: &str) -> Result<Value, String> {
        let mut spec: Map<String, Value> = match serde_json::from_str(text) {
            Ok(spec) => spec,
            Err(_) => self.cut_spec(step, name, text)?,
        };
        if let Some(Value::String(timeout)) = spec.get_mut("timeout")
            && let Some((_, _, short)) = TIMEOUTS.iter().find(|(long, _, _)| timeout == long)
        {
            *timeout = (*short).to_owned();
        }
        Ok(Value::Object(spec))
    }

    fn cut_spec(&self, step: &Step, name: &str, text: &str) -> Result<Map<String, Value>, String> {
        let (whole, _) = text
            .split_once(r#", "postRenderers""#)
            .ok_or_else(|| format!("{}: cut elsewhere: {text}", self.scenario))?;
        let mut spec: Map<String, Value> =
            serde_json::from_str(&format!("{whole}}}")).map_err(|error| error.to_string())?;
        spec.insert("postRenderers".to_owned(), unschedulable());
        let next = self.events.iter().find(|write| write.t > step.t && write.name == name);
        if let Some(chart) = next.and_then(|write| write.chart_ref.clone()) {
            spec.insert("chartRef".to_owned(), chart);
        }
        Ok(spec)
    }
}

/// The post-renderer of the recordings that keeps a Deployment from being scheduled.
fn unschedulable() -> Value {
    let patch = "- op: add\n  path: /spec/template/spec/nodeSelector\n  value: {no: where}\n";
    json!([{"kustomize": {"patches": [{"target": {"kind": "Deployment"}, "patch": patch}]}}])
}

/// The first difference between what was recorded and what was written now in `namespace`.
pub fn compare(recorded: &[Write], replayed: &[Write], namespace: &str) -> Result<(), String> {
    let names: BTreeSet<&str> = recorded.iter().chain(replayed).map(|write| write.name.as_str()).collect();
    names.into_iter().try_for_each(|name| compare_one(name, recorded, replayed, namespace))
}

fn compare_one(name: &str, recorded: &[Write], replayed: &[Write], namespace: &str) -> Result<(), String> {
    let mut recorded = comparables(recorded, name, NAMESPACE);
    let mut replayed = comparables(replayed, name, namespace);
    for number in 1.. {
        match (recorded.next(), replayed.next()) {
            (Some(recorded), Some(replayed)) if recorded == replayed => (),
            (Some(recorded), Some(replayed)) => {
                let mut lines = Vec::new();
                differences("", &recorded, &replayed, &mut lines);
                return Err(format!("write {number} of {name} differs\n{}", lines.join("\n")));
            }
            (Some(recorded), None) => {
                return Err(format!("write {number} of {name} is missing: {recorded:#}"));
            }
            (None, Some(replayed)) => {
                return Err(format!("write {number} of {name} was never recorded: {replayed:#}"));
            }
            (None, None) => break,
        }
    }
    Ok(())
}

/// The writes of one object, in a form that can be compared.
fn comparables<'a>(writes: &'a [Write], name: &'a str, namespace: &'a str) -> impl Iterator<Item = Value> + 'a {
    let mut digests = BTreeMap::new();
    let own = writes.iter().filter(move |write| write.name == name);
    own.map(move |write| comparable(write, namespace, &mut digests))
}

/// A write without what differs from run to run. Digests of releases are numbered in the order
/// in which they appear: that a digest stays, or changes, is compared.
fn comparable(write: &Write, namespace: &str, digests: &mut BTreeMap<String, usize>) -> Value {
    let mut status = write.status.clone();
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.iter_mut().for_each(|condition| hide(condition, "lastTransitionTime"));
    }
    if let Some(Value::Array(history)) = status.get_mut("history") {
        for snapshot in history {
            hide(snapshot, "firstDeployed");
            hide(snapshot, "lastDeployed");
            if let Some(Value::String(digest)) = snapshot.get_mut("digest") {
                let next = digests.len() + 1;
                let number = *digests.entry(digest.clone()).or_insert(next);
                *digest = format!("release digest {number}");
            }
        }
    }
    hide(&mut status, "lastAttemptedReleaseActionDuration");
    let mut whole = json!({
        "type": write.change, "generation": write.generation, "deleting": write.deleting,
        "finalizers": write.finalizers, "suspend": write.suspend,
        "chartVersion": write.chart_version, "chartRef": write.chart_ref,
    });
    // Moved in: the macro would copy it.
    whole["status"] = status;
    in_recorded_namespace(whole, namespace)
}

fn hide(object: &mut Value, field: &str) {
    if let Some(value) = object.get_mut(field) {
        *value = Value::from("varies");
    }
}

fn in_recorded_namespace(mut value: Value, namespace: &str) -> Value {
    if namespace == NAMESPACE {
        return value;
    }
    replace_strings(&mut value, &|text| match text == namespace {
        true => NAMESPACE.to_owned(),
        // Part of a name: ns/a, ns_a-cm__ConfigMap, ns/ns-a.
        false => ["/", "_", "-"].iter().fold(text.to_owned(), |text, mark| {
            text.replace(&format!("{namespace}{mark}"), &format!("{NAMESPACE}{mark}"))
        }),
    });
    value
}

fn replace_strings(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_strings(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_strings(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
    }
}

fn replace_messages(status: &mut Value, change: impl Fn(&str) -> String) {
    let Some(Value::Array(conditions)) = status.get_mut("conditions") else {
        return;
    };
    for condition in conditions {
        if let Some(Value::String(message)) = condition.get_mut("message") {
            *message = change(message);
        }
    }
}

fn differences(path: &str, recorded: &Value, replayed: &Value, lines: &mut Vec<String>) {
    match (recorded, replayed) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let of = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or_default();
                differences(&format!("{path}/{key}"), &of(one), &of(other), lines);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            for index in 0..one.len().max(other.len()) {
                let of = |items: &[Value]| items.get(index).cloned().unwrap_or_default();
                differences(&format!("{path}/{index}"), &of(one), &of(other), lines);
            }
        }
        (recorded, replayed) if recorded == replayed => (),
        (recorded, replayed) => {
            lines.push(format!("  {path}: recorded {recorded}, now {replayed}"));
        }
    }
}

/// Seconds from each new spec of a release of the chart until it was reported done, in order.
pub fn times_to_ready(writes: &[Write], chart: &str) -> Vec<f64> {
    let mut began: BTreeMap<&str, (i64, f64)> = BTreeMap::new();
    let mut ready = BTreeMap::new();
    let mut times = Vec::new();
    for write in writes {
        let (generation, since) = *began
            .entry(&write.name)
            .and_modify(|known| {
                if known.0 != write.generation {
                    *known = (write.generation, write.t);
                }
            })
            .or_insert((write.generation, write.t));
        let done = write.status["observedGeneration"] == generation
            && write.status["lastAttemptedGeneration"] == generation
            && write.status.pointer("/history/0/chartName").is_some_and(|name| name == chart)
            && is_ready(&write.status);
        if done && ready.insert(&write.name, generation) != Some(generation) {
            times.push(write.t - since);
        }
    }
    times
}

fn is_ready(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
