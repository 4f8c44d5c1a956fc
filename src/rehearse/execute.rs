//! Carries decisions out: records, then actions, then the status, each under its
//! conditions, and no further than the first that is refused.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::look::to_key;
use super::process::{Execution, PackageId, Planned, Write};
use super::{Happening, Note, Rehearsal};
use crate::api::PackageRevisionSpec;
use crate::api::wellknown::{API_VERSION, FIELD_MANAGER, FINALIZER, FINALIZER_REVISION};
use crate::canary;
use crate::package::names::{PackageName, revision_name};
use crate::rollout::{Action, Decision, Precondition, decide};
use crate::sim::store::{Expected, finalizers};
use crate::sim::{Key, Object, Refusal};

const ACTOR: &str = FIELD_MANAGER;
/// Milliseconds before a refused decision is made again; doubled each time.
const PAUSE: u64 = 50;
/// Milliseconds after which own writes that have not been seen are looked for.
const OWN_WRITES: u64 = 500;
/// Everything is looked at again after this many milliseconds.
const RESYNC: u64 = 600_000;

impl Rehearsal {
    /// Takes one step of the controller: a decision, or a write of the last one.
    pub(super) fn controller_step(&mut self) {
        self.steps += 1;
        match self.process.execution.take() {
            Some(execution) => self.carry_on(execution),
            None => self.decide_next(),
        }
        let killed = self.faults.kills.front().is_some_and(|kill| *kill <= self.steps);
        if killed || self.faults.kill_after == Some(self.steps) {
            self.faults.kills.pop_front();
            self.restart(self.faults.next_skew);
        }
    }

    fn decide_next(&mut self) {
        let now = self.now();
        let Some(id) = self.process.take_due(now) else { return };
        if !self.has_own_writes(&id) {
            // It is woken when its own write arrives, or soon, should that be missed.
            self.process.wake(id, now + OWN_WRITES);
            return;
        }
        let Some((mut snapshot, time)) = self.look(&id) else {
            self.process.interest.remove(&id);
            self.process.rollouts.remove(&id);
            self.process.watched.remove(&id);
            return;
        };
        if let Some(distortion) = self.faults.distortion {
            distortion(&mut snapshot);
        }
        let core = self.faults.core.unwrap_or(decide);
        let decision = core(&snapshot, time);
        self.note_events(&id, &decision);
        let changed = decision.status != snapshot.package.status;
        let Decision { records, actions, status, events: _, rollout_events: _, look_again } = decision;
        let writes: VecDeque<Arc<Planned>> = records
            .into_iter()
            .map(Write::Record)
            .chain(actions.into_iter().map(Write::Action))
            .chain(changed.then(|| Write::Status(Box::new(status))))
            .map(Planned::new)
            .collect();
        let look_again = look_again.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX).max(1));
        self.finish_or_go_on(Execution { package: id, writes, look_again });
    }

    fn note_events(&mut self, id: &PackageId, decision: &Decision) {
        for event in &decision.events {
            let what = Happening::Event(event.clone());
            self.note(id, what);
        }
    }

    fn note(&mut self, id: &PackageId, what: Happening) {
        let position = self.world.store.log().len();
        self.notes.push(Note { at: self.now(), position, package: Some(id.clone()), what });
    }

    /// Whether the cache holds what was last written for the package.
    fn has_own_writes(&mut self, id: &PackageId) -> bool {
        let (cache, store) = (&self.process.cache, &self.world.store);
        let Some(expected) = self.process.expected.get_mut(id) else { return true };
        expected.retain(|key, version| {
            let seen = cache.get(key).map(|object| super::packages::text(object, &["metadata", "resourceVersion"]));
            // What is gone from the cluster will not be seen again at that version.
            store.get(key).is_some() && seen.is_none_or(|seen| seen.parse::<u64>().unwrap_or(0) < *version)
        });
        expected.is_empty()
    }

    fn carry_on(&mut self, mut execution: Execution) {
        let Some(planned) = execution.writes.pop_front() else { return };
        let write = &planned.write;
        let id = execution.package.clone();
        match self.write(&id, write) {
            Ok(()) => {
                self.process.refusals.remove(&id);
                self.finish_or_go_on(execution);
            }
            Err(refusal) => self.refused(&id, write, refusal),
        }
    }

    fn refused(&mut self, id: &PackageId, write: &Write, refusal: Refusal) {
        let what = Happening::Refused(name_of(write), refusal);
        self.note(id, what);
        let refusals = self.process.refusals.entry(id.clone()).or_insert(0);
        *refusals = (*refusals + 1).min(8);
        let at = self.world.now() + (PAUSE << *refusals);
        self.process.wake(id.clone(), at);
    }

    /// Takes the next write for refused, whether or not it arrives.
    pub(super) fn refuse_next_write(&mut self, arrives: bool) {
        let Some(mut execution) = self.process.execution.take() else { return };
        let Some(planned) = execution.writes.pop_front() else { return };
        let write = &planned.write;
        let id = execution.package;
        // Nothing is known of what is written.
        let expected = self.process.expected.get(&id).cloned().unwrap_or_default();
        let refusal = if arrives { self.write(&id, write).err() } else { None };
        self.process.expected.insert(id.clone(), expected);
        self.refused(&id, write, refusal.unwrap_or(Refusal::Conflict));
    }

    fn finish_or_go_on(&mut self, execution: Execution) {
        if !execution.writes.is_empty() {
            self.process.execution = Some(execution);
            return;
        }
        let at = self.now() + execution.look_again.unwrap_or(RESYNC).min(RESYNC);
        self.process.wake(execution.package, at);
    }

    fn write(&mut self, id: &PackageId, write: &Write) -> Result<(), Refusal> {
        match write {
            Write::Record(record) => {
                let key = revision_key(id, &record.revision);
                let expected = Expected { uid: None, resource_version: Some(record.resource_version.clone()) };
                let status = to_value(&record.status);
                let written = self.world.store.edit(ACTOR, &key, &expected, |object| {
                    object.insert("status".into(), status);
                })?;
                self.expect(id, key, &written);
                Ok(())
            }
            Write::Action(action) => self.act(id, action),
            Write::Status(status) => {
                let status = to_value(status);
                let expected = Expected::default();
                let written = self.world.store.edit(ACTOR, &id.key(), &expected, |object| {
                    object.insert("status".into(), status);
                });
                written.map(|_| ())
            }
        }
    }

    fn expect(&mut self, id: &PackageId, key: Key, written: &Map<String, Value>) {
        let version = super::packages::text(written, &["metadata", "resourceVersion"]).parse().unwrap_or(0);
        self.process.expected.entry(id.clone()).or_default().insert(key, version);
    }

    fn act(&mut self, id: &PackageId, action: &Action) -> Result<(), Refusal> {
        let store = &mut self.world.store;
        match action {
            Action::HoldPackage => hold(store, &id.key(), None, FINALIZER),
            Action::ReleasePackage => release(store, &id.key(), None, FINALIZER),
            Action::CreateRevision(spec) => self.create_revision(id, spec),
            Action::HoldRevision { name, uid } => hold(store, &revision_key(id, name), Some(uid), FINALIZER_REVISION),
            Action::ReleaseRevision { name, uid } => {
                release(store, &revision_key(id, name), Some(uid), FINALIZER_REVISION)
            }
            Action::DeleteRevision { name, uid } => {
                let key = revision_key(id, name);
                ignore_absence(release(store, &key, Some(uid), FINALIZER_REVISION))?;
                ignore_absence(store.delete(ACTOR, &key, &of_uid(uid)))
            }
            Action::Apply { object, precondition } => {
                let written = apply(store, object, precondition)?;
                self.expect(id, Key::of(object), &written);
                Ok(())
            }
            Action::Patch { object, uid, resource_version, patch } => {
                let expected = Expected { uid: Some(uid.clone()), resource_version: resource_version.clone() };
                let patch = patch.as_object().cloned().unwrap_or_default();
                let written = store.patch(ACTOR, &to_key(object), &patch, &expected)?;
                self.expect(id, to_key(object), &written);
                Ok(())
            }
            Action::Operate { object, uid, resource_version, spec, operation } => {
                let expected = Expected { uid: Some(uid.clone()), resource_version: Some(resource_version.clone()) };
                let change = |live: &mut Map<String, Value>| operate(live, spec.as_ref(), operation.as_ref());
                let written = store.edit(ACTOR, &to_key(object), &expected, change)?;
                self.expect(id, to_key(object), &written);
                Ok(())
            }
            Action::MarkVolumeClaim { object, uid, resource_version, annotations } => {
                let expected = Expected { resource_version: Some(resource_version.clone()), ..of_uid(uid) };
                let patch = serde_json::json!({"metadata": {"annotations": annotations}});
                let patch = patch.as_object().cloned().unwrap_or_default();
                store.patch(ACTOR, &to_key(object), &patch, &expected).map(|_| ())
            }
            Action::Rollout(rollout) => match self.is_refused(id, action) {
                true => Err(Refusal::Invalid),
                false => self.roll_out(id, rollout),
            },
            Action::Delete { object, uid } => ignore_absence(store.delete(ACTOR, &to_key(object), &of_uid(uid))),
        }
    }

    /// Whether somebody's admission refuses a step of a rollout; that is noted.
    fn is_refused(&mut self, id: &PackageId, action: &Action) -> bool {
        let daemon_set = action.daemon_set().map(|(namespace, name)| format!("{namespace}/{name}"));
        let refused = self.process.refused.entry(id.clone()).or_default();
        match (&self.faults.rollouts_refused, daemon_set) {
            (Some(why), Some(daemon_set)) => {
                refused.insert(daemon_set, why.clone());
                true
            }
            (None, Some(daemon_set)) => {
                refused.remove(&daemon_set);
                false
            }
            (_, None) => false,
        }
    }

    /// One step of a rollout, with what must be true when it arrives.
    fn roll_out(&mut self, id: &PackageId, action: &canary::Action) -> Result<(), Refusal> {
        let store = &mut self.world.store;
        let (key, written) = match action {
            canary::Action::Label(label) => {
                let key = daemon_set_key(&label.namespace, &label.name);
                let patch = label.merge_patch().as_object().cloned().unwrap_or_default();
                let written = store.patch(ACTOR, &key, &patch, &of_uid(&label.uid))?;
                (key, written)
            }
            canary::Action::Steer(steering) => {
                let key = daemon_set_key(&steering.namespace, &steering.name);
                let written =
                    store.json_patch(ACTOR, &key, steering.json_patch().as_array().map_or(&[], Vec::as_slice))?;
                (key, written)
            }
            canary::Action::DeletePod { namespace, name, uid, .. } => {
                let key = Key::new("v1", "Pod", namespace, name);
                return ignore_absence(store.delete(ACTOR, &key, &of_uid(uid)));
            }
        };
        self.expect(id, key, &written);
        Ok(())
    }

    fn create_revision(&mut self, id: &PackageId, spec: &PackageRevisionSpec) -> Result<(), Refusal> {
        let Ok(package) = PackageName::parse(&id.name) else { return Err(Refusal::NotFound) };
        let name = revision_name(&package, spec.number);
        let mut stored = Cow::Borrowed(spec);
        if self.settings.manifests_apart {
            stored.to_mut().components.iter_mut().for_each(|component| component.manifests.clear());
        }
        let object = serde_json::json!({
            "apiVersion": API_VERSION, "kind": "PackageRevision",
            "metadata": {"name": name, "namespace": id.namespace, "finalizers": [FINALIZER_REVISION]},
            "spec": stored,
        });
        let written = self.world.store.create(ACTOR, object.as_object().cloned().unwrap_or_default())?;
        if self.settings.manifests_apart {
            let uid = super::packages::text(&written, &["metadata", "uid"]).to_owned();
            self.specs.insert(uid, Arc::new(spec.clone()));
        }
        self.expect(id, revision_key(id, &name), &written);
        Ok(())
    }
}

fn daemon_set_key(namespace: &str, name: &str) -> Key {
    Key::new("apps/v1", "DaemonSet", namespace, name)
}

type Store = crate::sim::Store;

fn hold(store: &mut Store, key: &Key, uid: Option<&String>, finalizer: &str) -> Result<(), Refusal> {
    let expected = Expected { uid: uid.cloned(), resource_version: None };
    store
        .edit(ACTOR, key, &expected, |object| {
            set_finalizers(object, |all| {
                if !all.iter().any(|known| known == finalizer) {
                    all.push(finalizer.to_owned());
                }
            })
        })
        .map(|_| ())
}

fn release(store: &mut Store, key: &Key, uid: Option<&String>, finalizer: &str) -> Result<(), Refusal> {
    let expected = Expected { uid: uid.cloned(), resource_version: None };
    store
        .edit(ACTOR, key, &expected, |object| set_finalizers(object, |all| all.retain(|known| known != finalizer)))
        .map(|_| ())
}

fn set_finalizers(object: &mut Map<String, Value>, change: impl FnOnce(&mut Vec<String>)) {
    let mut all: Vec<String> = finalizers(object).into_iter().map(str::to_owned).collect();
    change(&mut all);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("finalizers".into(), all.into());
    }
}

fn apply(store: &mut Store, object: &Map<String, Value>, precondition: &Precondition) -> Result<Object, Refusal> {
    let expected = match precondition {
        Precondition::Absent if store.get(&Key::of(object)).is_some() => return Err(Refusal::AlreadyExists),
        Precondition::Absent | Precondition::Any => Expected::default(),
        Precondition::Unchanged { uid, resource_version } => {
            Expected { uid: Some(uid.clone()), resource_version: Some(resource_version.clone()) }
        }
    };
    store.apply(ACTOR, object, &expected)
}

/// One write: the operation and no trace of the one before, and the whole spec.
fn operate(live: &mut Map<String, Value>, wanted: Option<&Map<String, Value>>, operation: Option<&Value>) {
    if let Some(operation) = operation {
        live.insert("operation".into(), operation.clone());
        if let Some(Value::Object(status)) = live.get_mut("status") {
            status.shift_remove("operationState");
        }
    }
    let Some(wanted) = wanted else { return };
    if let Some(spec) = wanted.get("spec") {
        live.insert("spec".into(), spec.clone());
    }
    let stated = wanted.get("metadata").and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    set_finalizers(live, |all| {
        let stated = stated.into_iter().flatten().filter_map(Value::as_str);
        let lacking: Vec<String> =
            stated.filter(|one| !all.iter().any(|known| known == one)).map(str::to_owned).collect();
        all.extend(lacking);
    });
    let fields = ["labels", "annotations"];
    for field in fields {
        let given = wanted.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_object);
        let Some(Value::Object(metadata)) = live.get_mut("metadata") else { continue };
        let own = metadata.entry(field.to_owned()).or_insert_with(|| Value::Object(Map::new()));
        if let (Value::Object(own), Some(given)) = (own, given) {
            own.extend(given.clone());
        }
    }
}

fn revision_key(id: &PackageId, name: &str) -> Key {
    Key::new(API_VERSION, "PackageRevision", &id.namespace, name)
}

fn of_uid(uid: &str) -> Expected {
    Expected { uid: Some(uid.to_owned()), resource_version: None }
}

/// What is gone already need not be taken away.
fn ignore_absence(written: Result<(), Refusal>) -> Result<(), Refusal> {
    match written {
        Err(Refusal::NotFound) => Ok(()),
        other => other,
    }
}

fn to_value(status: &impl serde::Serialize) -> Value {
    serde_json::to_value(status).unwrap_or_default()
}

pub(super) fn name_of(write: &Write) -> String {
    match write {
        Write::Record(record) => format!("record {}", record.revision),
        Write::Status(_) => "status".to_owned(),
        Write::Action(action) => match action {
            Action::HoldPackage => "hold the package".to_owned(),
            Action::ReleasePackage => "release the package".to_owned(),
            Action::CreateRevision(spec) => format!("create revision {}", spec.number),
            Action::HoldRevision { name, .. } => format!("hold {name}"),
            Action::ReleaseRevision { name, .. } => format!("release {name}"),
            Action::DeleteRevision { name, .. } => format!("delete {name}"),
            Action::Apply { object, .. } => format!("apply {}", Key::of(object)),
            Action::Patch { object, .. } => format!("patch {object}"),
            Action::Operate { object, .. } => format!("operate {object}"),
            Action::MarkVolumeClaim { object, .. } => format!("mark {object}"),
            Action::Rollout(canary::Action::Label(label)) => {
                format!("label DaemonSet {}/{}", label.namespace, label.name)
            }
            Action::Rollout(canary::Action::Steer(steering)) => {
                format!("steer DaemonSet {}/{} to {}", steering.namespace, steering.name, steering.pace)
            }
            Action::Rollout(canary::Action::DeletePod { namespace, name, .. }) => {
                format!("delete Pod {namespace}/{name}")
            }
            Action::Delete { object, .. } => format!("delete {object}"),
        },
    }
}
