//! Single objects that decisions depend on: watched by name, as the Package's
//! account, only while a move is open.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::client::Client;
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use serde_json::{Map, Value};
use tokio::task::AbortHandle;

use super::cluster::{RequestError, api, bounded};
use super::queue::Queue;
use super::store::PackageKey;
use crate::engine::ObjectKey;
use crate::ready::evidence::Lookup;

/// Pause before a kind that the cluster does not know, or an object that may
/// not be read, is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// An object, and who looks at it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Watched {
    account: Option<String>,
    key: ObjectKey,
}

/// The objects that are watched by name.
#[derive(Default)]
pub struct Lookups {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    watches: HashMap<Watched, Watch>,
    wanted: BTreeMap<PackageKey, BTreeSet<Watched>>,
}

struct Watch {
    lookup: Lookup,
    task: AbortHandle,
}

impl Lookups {
    /// Says what a Package needs from now on, as whom, and gives what is known
    /// of it. Watches that nobody needs any more end.
    pub fn want(
        self: &Arc<Self>,
        package: &PackageKey,
        wanted: &[(Option<String>, Client, BTreeSet<ObjectKey>)],
        queue: &Arc<Queue>,
    ) -> BTreeMap<ObjectKey, Lookup> {
        let watched =
            |account: &Option<String>, key: &ObjectKey| Watched { account: account.clone(), key: key.clone() };
        let all = wanted.iter().flat_map(|(account, _, keys)| keys.iter().map(|key| watched(account, key))).collect();
        let mut inner = self.lock();
        inner.wanted.insert(package.clone(), all);
        inner.end_unwanted();
        let mut found = BTreeMap::new();
        for (account, client, keys) in wanted {
            for key in keys {
                let lookup = inner.look(self, watched(account, key), client, queue);
                found.insert(key.clone(), lookup);
            }
        }
        found
    }

    /// What one of our own writes gave back is seen at once; the watch tells of
    /// it later.
    pub fn note(&self, key: &ObjectKey, object: Map<String, Value>) {
        let mut inner = self.lock();
        let watched = Watched { account: None, key: key.clone() };
        if let Some(watch) = inner.watches.get_mut(&watched) {
            watch.lookup = Lookup::Found(Value::Object(object));
        }
    }

    /// The Package needs nothing any more.
    pub fn forget(&self, package: &PackageKey) {
        let mut inner = self.lock();
        inner.wanted.remove(package);
        inner.end_unwanted();
    }

    fn set(&self, watched: &Watched, lookup: Lookup, queue: &Queue) {
        let mut inner = self.lock();
        let Some(watch) = inner.watches.get_mut(watched) else { return };
        if watch.lookup == lookup {
            return;
        }
        watch.lookup = lookup;
        let waiting = inner.wanted.iter().filter(|(_, wanted)| wanted.contains(watched));
        waiting.for_each(|(package, _)| queue.wake(package.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn look(&mut self, lookups: &Arc<Lookups>, watched: Watched, client: &Client, queue: &Arc<Queue>) -> Lookup {
        if let Some(watch) = self.watches.get(&watched) {
            return watch.lookup.clone();
        }
        let run = run(lookups.clone(), client.clone(), watched.clone(), queue.clone());
        let task = tokio::spawn(run).abort_handle();
        self.watches.insert(watched, Watch { lookup: Lookup::Pending, task });
        Lookup::Pending
    }

    fn end_unwanted(&mut self) {
        let wanted: BTreeSet<&Watched> = self.wanted.values().flatten().collect();
        self.watches.retain(|watched, watch| {
            let keep = wanted.contains(watched);
            if !keep {
                watch.task.abort();
            }
            keep
        });
    }
}

/// Follows one object until the watch is not needed any more.
async fn run(lookups: Arc<Lookups>, client: Client, watched: Watched, queue: Arc<Queue>) {
    loop {
        match resolve(&client, &watched.key).await {
            Ok((resource, capabilities)) => {
                let namespace = match capabilities.scope {
                    Scope::Namespaced => watched.key.namespace.as_str(),
                    Scope::Cluster => "",
                };
                follow(&lookups, &client, &watched, &resource, namespace, &queue).await;
            }
            Err(error) if error.is_not_found() => lookups.set(&watched, Lookup::KindUnknown, &queue),
            Err(error) if error.is_forbidden() => lookups.set(&watched, denied(&error.to_string()), &queue),
            Err(error) => tracing::warn!(object = %watched.key, %error, "cannot look a kind up"),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

async fn resolve(client: &Client, key: &ObjectKey) -> Result<(ApiResource, ApiCapabilities), RequestError> {
    let (group, version) = key.api_version.rsplit_once('/').unwrap_or(("", &key.api_version));
    bounded(pinned_kind(client, &GroupVersionKind::gvk(group, version, &key.kind))).await
}

async fn follow(
    lookups: &Lookups,
    client: &Client,
    watched: &Watched,
    resource: &ApiResource,
    namespace: &str,
    queue: &Queue,
) {
    let objects = api(client.clone(), namespace, resource);
    let config = watch::Config::default().fields(&format!("metadata.name={}", watched.key.name));
    let mut events = std::pin::pin!(watch::watcher(objects, config).default_backoff());
    let mut listed = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed = None,
            Ok(Event::InitApply(object)) => listed = Some(object),
            Ok(Event::InitDone) => lookups.set(watched, listed.take().map_or(Lookup::Absent, found), queue),
            Ok(Event::Apply(object)) => lookups.set(watched, found(object), queue),
            Ok(Event::Delete(_)) => lookups.set(watched, Lookup::Absent, queue),
            Err(error) => match refusal(&error) {
                Some(403 | 401) => return lookups.set(watched, denied(&error.to_string()), queue),
                Some(404) => return lookups.set(watched, Lookup::KindUnknown, queue),
                Some(_) | None => tracing::debug!(object = %watched.key, %error, "watch interrupted"),
            },
        }
    }
}

fn found(object: DynamicObject) -> Lookup {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Lookup::Found(value)
}

/// Who lacks the right: the API server says which one in its message only.
fn denied(message: &str) -> Lookup {
    if message.contains("cannot impersonate") { Lookup::NotImpersonated } else { Lookup::Denied }
}

/// The HTTP status with which the API server ended a watch.
pub fn refusal(error: &watcher::Error) -> Option<u16> {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status,
        watcher::Error::WatchError(status) => status,
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => return None,
    };
    Some(status.code)
}
