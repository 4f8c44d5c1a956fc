//! An entry of `readyWhen`, and what an object shows of it.

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use super::{Holding, Lookup, Observation};
use crate::package::definition::{ReadyTest, ReadyWhen};
use crate::package::duration::GoDuration;
use crate::ready::cel::{CompileError, Expression, Outcome, Variables};

/// Longest part of an expression, or of another's text, that a message repeats.
const MAX_QUOTE: usize = 120;

/// Where kubectl keeps the whole of an object that it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An entry of `readyWhen`, its expressions parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    target: Target,
    test: Test,
    failed: Option<Expression>,
    settle: GoDuration,
}

/// The object an entry is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// `apiVersion`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; not looked at for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Target {
    fn is_secret(&self) -> bool {
        (self.api_version.as_str(), self.kind.as_str()) == ("v1", "Secret")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind, self.name)
    }
}

/// The versions an expression can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions<'a> {
    /// Wanted version.
    pub wanted: &'a str,
    /// Version that ran before; empty on a first install.
    pub from: &'a str,
}

/// Why an entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: {error}")]
pub struct EntryError {
    /// `expr` or `failed`.
    pub field: &'static str,
    /// What is wrong with the expression.
    pub error: CompileError,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Condition { condition: String, status: String },
    Expr(Expression),
}

/// What a test came to.
struct Tested {
    holds: Holding,
    status: Option<String>,
    last_transition_time: Option<String>,
    found: String,
}

impl Entry {
    /// Parses the expressions of an entry.
    ///
    /// # Errors
    /// When one of them is not CEL, or beyond the limits.
    pub fn parse(entry: &ReadyWhen) -> Result<Self, EntryError> {
        let compile = |field, text: &str| Expression::compile(text).map_err(|error| EntryError { field, error });
        let test = match &entry.test {
            ReadyTest::Condition { condition, status } => {
                Test::Condition { condition: condition.clone(), status: status.clone() }
            }
            ReadyTest::Expr(text) => Test::Expr(compile("expr", text)?),
        };
        let failed = entry.failed.as_deref().map(|text| compile("failed", text)).transpose()?;
        let target = Target {
            api_version: entry.api_version.clone(),
            kind: entry.kind.clone(),
            namespace: entry.namespace.to_string(),
            name: entry.name.clone(),
        };
        Ok(Self { target, test, failed, settle: entry.settle })
    }

    /// The object it is about.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How long it must hold when nothing else shows that it is fresh.
    pub fn settle(&self) -> GoDuration {
        self.settle
    }

    /// Whether what must hold names the wanted version, so that it cannot be
    /// left over from another.
    pub fn names_version(&self) -> bool {
        match &self.test {
            Test::Condition { .. } => false,
            Test::Expr(expression) => names_version(expression),
        }
    }

    /// The same of `failed`.
    pub fn failed_names_version(&self) -> bool {
        self.failed.as_ref().is_some_and(names_version)
    }

    /// What the entry shows of an object.
    pub fn observe(&self, lookup: &Lookup, versions: Versions<'_>) -> Observation {
        match lookup {
            Lookup::Found(object) if self.target.is_secret() => self.read(&without_secrets(object), versions),
            Lookup::Found(object) => self.read(object, versions),
            Lookup::Absent => self.unseen(Holding::No, " does not exist"),
            Lookup::KindUnknown => {
                let Target { api_version, kind, .. } = &self.target;
                self.unseen(Holding::No, &format!(": the cluster does not know {kind} of {api_version} yet"))
            }
            Lookup::Denied => self.denied("grant get, list and watch to the account in use"),
            Lookup::NotImpersonated => self.denied("Windlass may not act as the account in use, see manifests/tenant"),
            Lookup::Pending => self.unseen(Holding::Unknown, " has not been read yet"),
        }
    }

    fn denied(&self, why: &str) -> Observation {
        let denied = self.unseen(Holding::Unknown, &format!(" may not be read: {why}"));
        Observation { denied: true, ..denied }
    }

    fn unseen(&self, holding: Holding, found: &str) -> Observation {
        Observation {
            holds: holding,
            failed: holding,
            uid: None,
            status: None,
            last_transition_time: None,
            denied: false,
            message: format!("{}{found}", self.target),
        }
    }

    fn read(&self, object: &Value, versions: Versions<'_>) -> Observation {
        let tested = self.test(object, versions);
        let stale = going(object).or_else(|| self.lagging(object));
        let (holds, found) = match stale {
            Some(reason) => (Holding::No, reason),
            None => (tested.holds, tested.found),
        };
        let (failed, failure) = self.failed(object, versions);
        let message = format!("{}{}", self.target, failure.unwrap_or(found));
        Observation {
            holds,
            failed,
            uid: text(object, "/metadata/uid"),
            status: tested.status,
            last_transition_time: tested.last_transition_time,
            denied: false,
            message,
        }
    }

    fn test(&self, object: &Value, versions: Versions<'_>) -> Tested {
        match &self.test {
            Test::Condition { condition, status } => test_condition(object, condition, status),
            Test::Expr(expression) => {
                let outcome = expression.evaluate(&Variables::ready(object, versions.wanted, versions.from));
                let found = match &outcome {
                    Outcome::False | Outcome::NotBoolean { .. } | Outcome::Error { .. } => {
                        which_is_not_true(expression, &outcome, object, versions)
                    }
                    Outcome::True | Outcome::Missing { .. } | Outcome::LimitExceeded => told(expression, &outcome),
                };
                Tested { holds: holding(&outcome), status: None, last_transition_time: None, found }
            }
        }
    }

    /// `failed` is looked at whatever the generation: a controller that fails
    /// may never get to observe it.
    fn failed(&self, object: &Value, versions: Versions<'_>) -> (Holding, Option<String>) {
        let Some(expression) = &self.failed else {
            return (Holding::No, None);
        };
        let outcome = expression.evaluate(&Variables::ready(object, versions.wanted, versions.from));
        let message = outcome.is_true().then(|| format!(": `{}` is true", quote(expression.text())));
        (holding(&outcome), message)
    }

    /// A generation that the object's status, or the condition asked for, is
    /// not about.
    fn lagging(&self, object: &Value) -> Option<String> {
        let generation = integer(object, "/metadata/generation")?;
        let condition = match &self.test {
            Test::Condition { condition, .. } => find_condition(object, condition),
            Test::Expr(_) => None,
        };
        let observed = [
            integer(object, "/status/observedGeneration"),
            condition.and_then(|found| integer(found, "/observedGeneration")),
        ];
        let behind = observed.into_iter().flatten().find(|observed| *observed != generation)?;
        Some(format!(": observedGeneration is {behind}, the object is at generation {generation}"))
    }
}

/// A Secret with its keys, but nothing of what they hold: an expression could ask for
/// it piece by piece, and whoever may read the Package would read the answers.
fn without_secrets(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["data", "stringData"] {
        let values = object.get_mut(field).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
        values.for_each(|value| *value = "".into());
    }
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    object
}

fn names_version(expression: &Expression) -> bool {
    expression.roots().contains("version")
}

fn holding(outcome: &Outcome) -> Holding {
    match outcome {
        Outcome::True => Holding::Yes,
        Outcome::False | Outcome::NotBoolean { .. } | Outcome::Missing { .. } | Outcome::Error { .. } => Holding::No,
        Outcome::LimitExceeded => Holding::Unknown,
    }
}

fn told(expression: &Expression, outcome: &Outcome) -> String {
    let text = quote(expression.text());
    match outcome {
        Outcome::Missing { .. } => format!(": {}", quote(&outcome.to_string())),
        Outcome::Error { message } => format!(": `{text}` fails: {}", quote(message)),
        Outcome::True | Outcome::False | Outcome::NotBoolean { .. } | Outcome::LimitExceeded => {
            format!(": `{text}` {outcome}")
        }
    }
}

/// Of a conjunction the operand that is not true, since that is what is waited for.
fn which_is_not_true(expression: &Expression, whole: &Outcome, object: &Value, versions: Versions<'_>) -> String {
    let variables = Variables::ready(object, versions.wanted, versions.from);
    let parts = expression.parts().iter().map(|part| (part, part.evaluate(&variables)));
    let first = parts.into_iter().find(|(_, outcome)| !outcome.is_true());
    first.map_or_else(|| told(expression, whole), |(part, outcome)| told(part, &outcome))
}

fn test_condition(object: &Value, condition: &str, wanted: &str) -> Tested {
    let Some(found) = find_condition(object, condition) else {
        let found = format!(": condition {condition} is not there yet");
        return Tested { holds: Holding::No, status: None, last_transition_time: None, found };
    };
    let status = text(found, "/status");
    let shown = status.as_deref().unwrap_or("without a status");
    let reason = text(found, "/reason").filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(" (reason {})", quote(&reason))).unwrap_or_default();
    Tested {
        holds: Holding::of(status.as_deref() == Some(wanted)),
        last_transition_time: text(found, "/lastTransitionTime"),
        found: format!(": {condition} is {}{reason}", quote(shown)),
        status,
    }
}

fn find_condition<'a>(object: &'a Value, condition: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|found| found.get("type").and_then(Value::as_str) == Some(condition))
}

fn going(object: &Value) -> Option<String> {
    object.pointer("/metadata/deletionTimestamp").map(|_| " is being deleted".to_owned())
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer)?.as_str().map(str::to_owned)
}

fn integer(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer)?.as_i64()
}

/// One line of bounded length.
fn quote(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
