//! The API server: objects, and the log of every change to them.

mod apply;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::guard::{self, Policy};
use super::shared::Shared;
use super::{fingerprint, json, strategy};
use apply::Managers;

/// An object; shared between the store, its log and everybody's caches.
pub type Object = Arc<Map<String, Value>>;

/// What tells one object from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A key of its parts.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [api_version, kind, namespace, name] = [api_version, kind, namespace, name].map(str::to_owned);
        Self { api_version, kind, namespace, name }
    }

    /// The key of an object.
    pub fn of(object: &Map<String, Value>) -> Self {
        let text = |path: &[&str]| json::text(object, path);
        let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
        Self::new(text(&["apiVersion"]), text(&["kind"]), namespace, name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(formatter, "{}/{}", self.kind, self.name)
        } else {
            write!(formatter, "{}/{}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// What was done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// It is gone.
    Deleted,
}

/// One change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Virtual time, in milliseconds.
    pub at: u64,
    /// Who did it.
    pub actor: &'static str,
    /// What was done.
    pub verb: Verb,
    /// To which object.
    pub key: Arc<Key>,
    /// The object after it; as it last was, if it is gone.
    pub object: Object,
}

/// Why a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such object.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// It is not the object that was meant, or it has changed since.
    Conflict,
    /// A test of a JSON patch failed, or what it makes is not allowed (422).
    Invalid,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
        })
    }
}

/// What must be true of an object when a write arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// uid it must have.
    pub uid: Option<String>,
    /// Resource version it must have.
    pub resource_version: Option<String>,
}

#[derive(Clone, Debug)]
struct Entry {
    object: Object,
    managers: Shared<Managers>,
    /// [`fingerprint::of_object`], once somebody has asked for it.
    print: Arc<OnceLock<u64>>,
}

/// All objects, and everything that ever happened to them.
#[derive(Clone, Debug, Default)]
pub struct Store {
    entries: BTreeMap<Arc<Key>, Entry>,
    log: Vec<Arc<Change>>,
    revision: u64,
    uids: u64,
    now: u64,
    /// Canary guards that are installed.
    pub policies: BTreeSet<Policy>,
}

impl Store {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock that changes are stamped with.
    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// The object of a key.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.entries.get(key).map(|entry| &entry.object)
    }

    /// All objects of a kind, by namespace and name.
    pub fn list<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a Key, &'a Object)> {
        self.groups(kind).flat_map(|(from, to)| {
            let of_kind = self.entries.range(from..to);
            of_kind.map(|(key, entry)| (key.as_ref(), &entry.object))
        })
    }

    /// Bounds of the keys of a kind in each group and version: keys are ordered
    /// by these first, and there are few.
    fn groups(&self, kind: &str) -> impl Iterator<Item = (Arc<Key>, Arc<Key>)> {
        let mut bounds = Vec::new();
        let mut next = self.entries.keys().next();
        while let Some(key) = next {
            let end = Arc::new(Key::new(&key.api_version, &format!("{}\0", key.kind), "", ""));
            if key.kind == kind {
                bounds.push((Arc::clone(key), Arc::clone(&end)));
            }
            next = self.entries.range(end..).next().map(|(key, _)| key);
        }
        bounds.into_iter()
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Object)> {
        self.entries.iter().map(|(key, entry)| (key.as_ref(), &entry.object))
    }

    /// Fingerprints of all objects.
    pub(super) fn prints(&self) -> impl Iterator<Item = u64> {
        let print =
            |(key, entry): (&Arc<Key>, &Entry)| *entry.print.get_or_init(|| fingerprint::of_object(key, &entry.object));
        self.entries.iter().map(print)
    }

    /// Everything that happened, oldest first.
    pub fn log(&self) -> &[Arc<Change>] {
        &self.log
    }

    /// Makes an object.
    ///
    /// # Errors
    /// [`Refusal::AlreadyExists`].
    pub fn create(&mut self, actor: &'static str, mut object: Map<String, Value>) -> Result<Object, Refusal> {
        let key = Key::of(&object);
        if self.entries.contains_key(&key) {
            return Err(Refusal::AlreadyExists);
        }
        if key.kind == "DaemonSet" {
            guard::default_strategy(&mut object);
            strategy::count_templates(None, &mut object);
            if !guard::is_valid(&object) {
                return Err(Refusal::Invalid);
            }
        }
        if has_status_subresource(&key.kind) {
            object.shift_remove("status");
            if let Some(status) = default_status(&key.kind) {
                object.insert("status".to_owned(), status);
            }
        }
        self.uids += 1;
        let metadata = json::section(&mut object, "metadata");
        metadata.insert("uid".to_owned(), format!("uid-{}", self.uids).into());
        metadata.insert("generation".to_owned(), 1.into());
        metadata.insert("creationTimestamp".to_owned(), json::time(self.now).into());
        Ok(self.put(actor, Verb::Created, Arc::new(key), object, Shared::default()))
    }

    /// Server-side apply with force: what the manager applied before and no
    /// longer does goes, what others wrote stays.
    ///
    /// # Errors
    /// [`Refusal::Conflict`]; [`Refusal::NotFound`] if a uid is expected.
    pub fn apply(
        &mut self,
        actor: &'static str,
        wanted: &Map<String, Value>,
        expected: &Expected,
    ) -> Result<Object, Refusal> {
        let key = Key::of(wanted);
        let applied = apply::without_status(wanted, !has_status_subresource(&key.kind));
        let Some(entry) = self.entries.get(&key) else {
            if expected.uid.is_some() {
                return Err(Refusal::NotFound);
            }
            self.create(actor, applied.clone())?;
            let Some(entry) = self.entries.get_mut(&key) else { return Err(Refusal::NotFound) };
            entry.managers.record(actor, &applied);
            return Ok(Arc::clone(&entry.object));
        };
        check(&entry.object, expected)?;
        let mut managers = entry.managers.clone();
        let mut object = entry.object.as_ref().clone();
        apply::apply(&mut object, &mut managers, actor, &applied);
        self.write(actor, &key, object, managers)
    }

    /// JSON merge patch of everything but the status, where that is a resource
    /// of its own.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`].
    pub fn patch(
        &mut self,
        actor: &'static str,
        key: &Key,
        patch: &Map<String, Value>,
        expected: &Expected,
    ) -> Result<Object, Refusal> {
        let keeps_status = has_status_subresource(&key.kind);
        self.edit(actor, key, expected, |object| {
            let status = object.get("status").cloned();
            json::merge(object, patch);
            if keeps_status {
                match status {
                    Some(status) => object.insert("status".to_owned(), status),
                    None => object.shift_remove("status"),
                };
            }
        })
    }

    /// JSON patch (RFC 6902) with the operations `test` and `replace`.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Invalid`].
    pub fn json_patch(&mut self, actor: &'static str, key: &Key, patch: &[Value]) -> Result<Object, Refusal> {
        let live = self.entries.get(key).map(|entry| entry.object.as_ref().clone()).ok_or(Refusal::NotFound)?;
        let mut object = Value::Object(live);
        for step in patch {
            let text = |field: &str| step.get(field).and_then(Value::as_str).unwrap_or("");
            let value = step.get("value").cloned().unwrap_or_default();
            match (text("op"), object.pointer_mut(text("path"))) {
                ("test", Some(found)) if *found == value => {}
                ("replace", Some(found)) => *found = value,
                (_, _) => return Err(Refusal::Invalid),
            }
        }
        let Value::Object(object) = object else { return Err(Refusal::Invalid) };
        self.edit(actor, key, &Expected::default(), |live| *live = object)
    }

    /// Any change of one object.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`].
    pub fn edit(
        &mut self,
        actor: &'static str,
        key: &Key,
        expected: &Expected,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Object, Refusal> {
        let entry = self.entries.get(key).ok_or(Refusal::NotFound)?;
        check(&entry.object, expected)?;
        let (mut object, mut managers) = (entry.object.as_ref().clone(), entry.managers.clone());
        change(&mut object);
        managers.update(actor, &entry.object, &object);
        self.write(actor, key, object, managers)
    }

    /// A change of the status alone.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub fn edit_status(
        &mut self,
        actor: &'static str,
        key: &Key,
        change: impl FnOnce(&mut Map<String, Value>),
    ) -> Result<Object, Refusal> {
        self.edit(actor, key, &Expected::default(), |object| change(json::section(object, "status")))
    }

    /// Deletes an object, or marks it as going while it has finalizers.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], [`Refusal::Conflict`].
    pub fn delete(&mut self, actor: &'static str, key: &Key, expected: &Expected) -> Result<(), Refusal> {
        let entry = self.entries.get(key).ok_or(Refusal::NotFound)?;
        check(&entry.object, expected)?;
        if !is_held(key, &entry.object) {
            self.take_away(actor, key);
            return Ok(());
        }
        if is_deleting(&entry.object) {
            return Ok(());
        }
        let now = json::time(self.now);
        let generation = generation(&entry.object) + 1;
        self.edit(actor, key, expected, |object| {
            let metadata = json::section(object, "metadata");
            metadata.insert("deletionTimestamp".to_owned(), now.into());
            metadata.insert("generation".to_owned(), generation.into());
        })?;
        Ok(())
    }

    fn write(
        &mut self,
        actor: &'static str,
        key: &Key,
        mut object: Map<String, Value>,
        managers: Shared<Managers>,
    ) -> Result<Object, Refusal> {
        let Some((key, entry)) = self.entries.get_key_value(key) else { return Err(Refusal::NotFound) };
        let (key, before) = (Arc::clone(key), Arc::clone(&entry.object));
        if key.kind == "DaemonSet" {
            guard::default_strategy(&mut object);
            guard::admit(&self.policies, actor, &before, &mut object);
            strategy::count_templates(Some(&before), &mut object);
            if !guard::is_valid(&object) {
                return Err(Refusal::Invalid);
            }
        }
        if object == *before {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.managers = managers;
            }
            return Ok(before);
        }
        if moves_generation(&key.kind, &before, &object) {
            let next = generation(&before) + 1;
            json::section(&mut object, "metadata").insert("generation".to_owned(), next.into());
        }
        let gone = is_deleting(&object) && !is_held(&key, &object);
        let object = self.put(actor, Verb::Updated, Arc::clone(&key), object, managers);
        if gone {
            self.take_away(actor, &key);
        }
        Ok(object)
    }

    fn put(
        &mut self,
        actor: &'static str,
        verb: Verb,
        key: Arc<Key>,
        mut object: Map<String, Value>,
        managers: Shared<Managers>,
    ) -> Object {
        self.revision += 1;
        json::set(&mut object, &["metadata", "resourceVersion"], self.revision.to_string().into());
        let object = Arc::new(object);
        self.entries.insert(Arc::clone(&key), Entry { object: Arc::clone(&object), managers, print: Arc::default() });
        self.log.push(Arc::new(Change { at: self.now, actor, verb, key, object: Arc::clone(&object) }));
        object
    }

    /// An object is gone, whatever held it.
    pub(super) fn take_away(&mut self, actor: &'static str, key: &Key) {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return };
        self.revision += 1;
        let change = Change { at: self.now, actor, verb: Verb::Deleted, key, object: entry.object };
        self.log.push(Arc::new(change));
    }
}

fn check(object: &Map<String, Value>, expected: &Expected) -> Result<(), Refusal> {
    let metadata = |field| json::text(object, &["metadata", field]);
    let differs = |wanted: &Option<String>, field| wanted.as_ref().is_some_and(|wanted| wanted != metadata(field));
    if differs(&expected.uid, "uid") || differs(&expected.resource_version, "resourceVersion") {
        return Err(Refusal::Conflict);
    }
    Ok(())
}

/// uid of an object.
pub fn uid(object: &Map<String, Value>) -> &str {
    json::text(object, &["metadata", "uid"])
}

/// Generation of an object.
pub fn generation(object: &Map<String, Value>) -> i64 {
    json::integer(object, &["metadata", "generation"]).unwrap_or(0)
}

/// Whether the deletion of an object has begun.
pub fn is_deleting(object: &Map<String, Value>) -> bool {
    json::at(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// Finalizers of an object.
pub fn finalizers(object: &Map<String, Value>) -> Vec<&str> {
    let list = json::at(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A pod goes when its kubelet says so.
fn is_held(key: &Key, object: &Map<String, Value>) -> bool {
    has_finalizers(object) || key.kind == "Pod"
}

fn has_finalizers(object: &Map<String, Value>) -> bool {
    !finalizers(object).is_empty()
}

/// Applications keep their status in the object itself: a status write moves
/// their generation too. Other objects with data and no status have none.
fn has_status_subresource(kind: &str) -> bool {
    !matches!(kind, "Application" | "ConfigMap" | "Secret" | "Namespace" | "ServiceAccount")
}

fn moves_generation(kind: &str, before: &Map<String, Value>, after: &Map<String, Value>) -> bool {
    let changed = |key: &str| before.get(key) != after.get(key);
    if has_status_subresource(kind) {
        return changed("spec");
    }
    kind == "Application" && ["spec", "status", "operation"].into_iter().any(changed)
}

/// What the schemas of Flux put there until a controller has looked.
fn default_status(kind: &str) -> Option<Value> {
    let flux = ["HelmRelease", "HelmChart", "HelmRepository", "OCIRepository", "GitRepository"];
    flux.contains(&kind).then(|| json!({"observedGeneration": -1}))
}
