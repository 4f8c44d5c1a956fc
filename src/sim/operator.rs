//! Operators: what reports on resources, late or never.

use serde_json::{Map, Value};

use super::chart::{Care, Operator, Rendering, Told};
use super::conditions::{self, Condition};
use super::store::{Key, Object, generation, is_deleting};
use super::workload::NOTICE;
use super::world::{Task, World};
use super::{helm, json};

pub(super) const OPERATOR: &str = "operator";
const CONDITIONS: &str = "conditions";

impl World {
    /// A Deployment has become ready: if it is an operator it looks again.
    pub(super) fn wake_operators(&mut self, deployment: &Key) {
        let kinds: Vec<(String, String)> = self
            .script
            .operators
            .iter()
            .filter(|operator| operator.deployment_key() == *deployment)
            .map(|operator| (operator.api_version.clone(), operator.kind.clone()))
            .collect();
        for (api_version, kind) in kinds {
            let keys: Vec<Key> = self
                .store
                .list(&kind)
                .map(|(key, _)| key)
                .filter(|key| key.api_version == api_version)
                .cloned()
                .collect();
            keys.into_iter().for_each(|key| self.schedule(NOTICE, Task::Care(key, false)));
        }
    }

    /// An operator looks at a resource; `done`: its work on it is over.
    pub(super) fn care_step(&mut self, key: &Key, done: bool) {
        let Some(operator) = self.script.operators.iter().find(|operator| is_for(operator, key)).cloned() else {
            return;
        };
        let Some(resource) = self.store.get(key).cloned().filter(|resource| !is_deleting(resource)) else { return };
        let deployment = operator.deployment_key();
        if helm::readiness(&self.store, std::slice::from_ref(&deployment)) != helm::Readiness::Ready {
            return;
        }
        let Some(deployment) = self.store.get(&deployment).cloned() else { return };
        if let Some(told) = &operator.told {
            return self.tell(key, &operator, told, [&resource, &deployment], done);
        }
        let version = json::text(&deployment, &["spec", "version"]).to_owned();
        if is_up_to_date(&resource, &version) {
            return;
        }
        let care = operator.care.get(&version).copied().unwrap_or_default();
        if care == Care::Silent {
            return;
        }
        if !done {
            if !operator.stays_true {
                self.write_status(OPERATOR, key, |status| {
                    status.insert("phase".into(), "Deploying".into());
                });
                self.report(key, &operator, "False", "Deploying");
            }
            self.schedule(operator.takes, Task::Care(key.clone(), true));
            return;
        }
        let observed = generation(&resource);
        self.write_status(OPERATOR, key, |status| {
            status.insert("observedGeneration".into(), observed.into());
            match care {
                Care::Reports => {
                    status.insert("observedVersion".into(), version.clone().into());
                    status.insert("phase".into(), "Deployed".into());
                }
                Care::Fails => {
                    status.insert("phase".into(), "Failed".into());
                    status.insert("failedVersion".into(), version.clone().into());
                }
                Care::Silent => {}
            }
        });
        match care {
            Care::Reports => self.report(key, &operator, "True", "Deployed"),
            Care::Fails => self.report(key, &operator, "False", "DeploymentFailed"),
            Care::Silent => {}
        }
    }

    fn report(&mut self, key: &Key, operator: &Operator, value: &str, reason: &str) {
        let now = self.now();
        self.write_status(OPERATOR, key, |status| {
            let type_ = operator.condition.as_str();
            let condition = Condition { type_, status: value, reason, message: "", observed_generation: None };
            conditions::set(status, &condition, now);
        });
    }

    /// An operator says what is written out for it, when it is not said yet, and
    /// takes back what it said at the other time.
    fn tell(&mut self, key: &Key, operator: &Operator, told: &Told, about: [&Object; 2], done: bool) {
        let as_before = about.iter().all(|object| self.script.ran.contains(&Rendering::of(object)));
        let (said, other) = if as_before { (&told.before, &told.now) } else { (&told.now, &told.before) };
        let Some(said) = said else { return };
        let stale = Stale::of(said, other.as_ref());
        let [resource, _] = about;
        let observed = generation(resource);
        let seen = json::integer(resource, &["status", "observedGeneration"]) == Some(observed);
        if seen && !stale.is_in(resource) && said.iter().all(|(field, value)| says(resource, field, value)) {
            return;
        }
        if !done {
            self.schedule(operator.takes, Task::Care(key.clone(), true));
            return;
        }
        let now = self.now();
        self.write_status(OPERATOR, key, |status| {
            status.insert("observedGeneration".into(), observed.into());
            stale.take_back(status);
            for (field, value) in said {
                match value.as_array().filter(|_| field == CONDITIONS) {
                    Some(wanted) => {
                        wanted.iter().filter_map(Value::as_object).for_each(|wanted| say(status, wanted, now))
                    }
                    None => {
                        status.insert(field.clone(), value.clone());
                    }
                }
            }
        });
    }
}

/// What an operator said at one time and does not say at another.
struct Stale<'a> {
    fields: Vec<&'a str>,
    conditions: Vec<&'a str>,
}

impl<'a> Stale<'a> {
    fn of(said: &Map<String, Value>, other: Option<&'a Map<String, Value>>) -> Self {
        let is_kept = |field: &str| field == CONDITIONS || said.contains_key(field);
        let fields = other.into_iter().flat_map(Map::keys).map(String::as_str).filter(|field| !is_kept(field));
        let kept: Vec<&str> = types(said).collect();
        let conditions = other.into_iter().flat_map(types).filter(|type_| !kept.contains(type_));
        Self { fields: fields.collect(), conditions: conditions.collect() }
    }

    fn is_in(&self, resource: &Map<String, Value>) -> bool {
        self.fields.iter().any(|field| json::at(resource, &["status", field]).is_some())
            || self.conditions.iter().any(|type_| conditions::find(resource, type_).is_some())
    }

    fn take_back(&self, status: &mut Map<String, Value>) {
        self.fields.iter().for_each(|field| drop(status.shift_remove(*field)));
        self.conditions.iter().for_each(|type_| conditions::remove(status, type_));
    }
}

/// Types of the conditions that a status says something of.
fn types(said: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let conditions = said.get(CONDITIONS).and_then(Value::as_array).into_iter().flatten();
    conditions.filter_map(|condition| condition.get("type").and_then(Value::as_str))
}

/// Whether an operator looks after a resource.
pub(super) fn is_for(operator: &Operator, key: &Key) -> bool {
    let kind = operator.kind == key.kind && operator.api_version == key.api_version;
    let only = operator.resource.as_ref();
    kind && only.is_none_or(|(namespace, name)| *namespace == key.namespace && *name == key.name)
}

fn is_up_to_date(resource: &Map<String, Value>, version: &str) -> bool {
    let status = |field| json::text(resource, &["status", field]);
    let observed = json::integer(resource, &["status", "observedGeneration"]) == Some(generation(resource));
    let deployed = status("phase") == "Deployed" && status("observedVersion") == version;
    let failed = status("phase") == "Failed" && status("failedVersion") == version;
    observed && (deployed || failed)
}

/// Whether an object's status says something: conditions by type and status.
fn says(resource: &Map<String, Value>, field: &str, told: &Value) -> bool {
    match told.as_array().filter(|_| field == CONDITIONS) {
        None => json::at(resource, &["status", field]) == Some(told),
        Some(conditions) => conditions.iter().filter_map(Value::as_object).all(|told| {
            let found = conditions::find(resource, json::text(told, &["type"]));
            found.is_some_and(|found| json::text(found, &["status"]) == json::text(told, &["status"]))
        }),
    }
}

fn say(status: &mut Map<String, Value>, wanted: &Map<String, Value>, now: u64) {
    let text = |field: &str| json::text(wanted, &[field]);
    let (type_, value, reason) = (text("type"), text("status"), text("reason"));
    let condition = Condition { type_, status: value, reason, message: "", observed_generation: None };
    conditions::set(status, &condition, now);
}
