//! Single objects that decisions depend on: watched by name, as the Package's
//! account, only while a move is open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::ApiResource;
use kube::client::Client;
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::cached::Cached;
use super::cluster::{RequestError, bounded, typed_api};
use super::needed::Watches;
use super::queue::Queue;
use super::store::PackageKey;
use crate::engine::ObjectKey;
use crate::ready::evidence::Lookup;

/// Pause before a kind that the cluster does not know, or an object that may
/// not be read, is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Longest pause before an object that may not be read is asked for again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long what the cluster says of a kind counts for all who ask.
const FRESH: Duration = Duration::from_secs(4);

/// An object, and who looks at it: an account of a namespace, or Windlass itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Watched {
    account: Option<(String, String)>,
    key: ObjectKey,
}

/// The objects that are watched by name.
#[derive(Default)]
pub struct Lookups {
    inner: Mutex<Watches<Watched, Lookup>>,
    kinds: Mutex<BTreeMap<Asked, Arc<tokio::sync::Mutex<Option<Known>>>>>,
}

/// Who asks about a kind, and about which.
type Asked = (Option<(String, String)>, String, String);

/// What the cluster said of a kind, and when.
struct Known {
    at: Instant,
    kind: Result<(ApiResource, Scope), Lookup>,
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
        let (namespace, _) = package;
        let watched = |account: &Option<String>, key: &ObjectKey| Watched {
            account: account.as_ref().map(|name| (namespace.clone(), name.clone())),
            key: key.clone(),
        };
        let all = wanted.iter().flat_map(|(account, _, keys)| keys.iter().map(|key| watched(account, key))).collect();
        let mut watches = self.lock();
        watches.want(package, all);
        let mut found = BTreeMap::new();
        for (account, client, keys) in wanted {
            for key in keys {
                let watched = watched(account, key);
                let start = || run(self.clone(), client.clone(), watched.clone(), queue.clone());
                found.insert(key.clone(), watches.get_or_start(&watched, || Lookup::Pending, start).clone());
            }
        }
        found
    }

    /// What one of our own writes gave back is seen at once; the watch tells of
    /// it later. An object that is known to be gone, or another one by now, stays
    /// so, and whoever may not see it does not see it.
    pub fn note(&self, key: &ObjectKey, object: Map<String, Value>) {
        let written = Lookup::Found(Value::Object(object));
        let mut watches = self.lock();
        for (_, known) in watches.iter_mut().filter(|(watched, _)| watched.key == *key) {
            if version_of_same(known, &written).is_some_and(|(known, written)| known < written) {
                *known = written.clone();
            }
        }
    }

    /// The Package needs nothing any more.
    pub fn forget(&self, package: &PackageKey) {
        self.lock().want(package, BTreeSet::new());
    }

    /// Where a kind is served, or what is known of its objects if it is not: asked once
    /// for all that look at objects of it.
    async fn resolve(
        &self,
        client: &Client,
        watched: &Watched,
    ) -> Result<Result<(ApiResource, Scope), Lookup>, RequestError> {
        let asked = (watched.account.clone(), watched.key.api_version.clone(), watched.key.kind.clone());
        let slot = {
            let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
            // What nobody waits for is forgotten.
            kinds.retain(|_, slot| Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|known| is_fresh(&known)));
            kinds.entry(asked).or_default().clone()
        };
        let mut known = slot.lock().await;
        if let Some(Known { kind, .. }) = known.as_ref().filter(|_| is_fresh(&known)) {
            return Ok(kind.clone());
        }
        let kind = match resolve(client, &watched.key).await {
            Ok((resource, capabilities)) => Ok((resource, capabilities.scope)),
            Err(error) if error.is_not_found() => Err(Lookup::KindUnknown),
            Err(error) if error.is_forbidden() => Err(denied(&error.to_string())),
            Err(error) => return Err(error),
        };
        *known = Some(Known { at: Instant::now(), kind: kind.clone() });
        Ok(kind)
    }

    fn set(&self, watched: &Watched, lookup: Lookup, queue: &Queue) {
        let mut watches = self.lock();
        let Some(known) = watches.get_mut(watched).filter(|known| **known != lookup) else { return };
        // A watch may tell of what was there before our own write.
        if version_of_same(known, &lookup).is_some_and(|(known, told)| told < known) {
            return;
        }
        *known = lookup;
        watches.wake(watched, queue);
    }

    fn is_denied(&self, watched: &Watched) -> bool {
        matches!(self.lock().get_mut(watched), Some(Lookup::Denied | Lookup::NotImpersonated))
    }

    fn lock(&self) -> MutexGuard<'_, Watches<Watched, Lookup>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resource versions of two states of one object; `None` if they are not that.
/// API servers number the changes of an object in rising order.
fn version_of_same(known: &Lookup, other: &Lookup) -> Option<(u64, u64)> {
    let (Lookup::Found(known), Lookup::Found(other)) = (known, other) else { return None };
    let uid = |object: &Value| object.pointer("/metadata/uid").cloned();
    let version = |object: &Value| object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok();
    (uid(known) == uid(other)).then_some(())?;
    Some((version(known)?, version(other)?))
}

/// Follows one object until the watch is not needed any more.
async fn run(lookups: Arc<Lookups>, client: Client, watched: Watched, queue: Arc<Queue>) {
    let mut pause = ASK_AGAIN;
    loop {
        match lookups.resolve(&client, &watched).await {
            Ok(Ok((resource, scope))) => {
                let namespace = match scope {
                    Scope::Namespaced => watched.key.namespace.as_str(),
                    Scope::Cluster => "",
                };
                follow(&lookups, &client, &watched, &resource, namespace, &queue).await;
            }
            Ok(Err(unseen)) => lookups.set(&watched, unseen, &queue),
            Err(error) => tracing::warn!(object = %watched.key, %error, "cannot look a kind up"),
        }
        pause = pause_after(pause, lookups.is_denied(&watched));
        tokio::time::sleep(pause.mul_f64(0.8 + 0.4 * super::jitter())).await;
    }
}

/// A kind may appear at any moment, and one question serves all; a right that is
/// lacking is asked for object by object, less and less often.
fn pause_after(pause: Duration, is_denied: bool) -> Duration {
    if is_denied { (pause * 2).min(LONGEST_PAUSE) } else { ASK_AGAIN }
}

fn is_fresh(known: &Option<Known>) -> bool {
    known.as_ref().is_some_and(|known| known.at.elapsed() < FRESH)
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
    let objects = typed_api::<Cached>(client.clone(), namespace, resource);
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

fn found(object: Cached) -> Lookup {
    Lookup::Found(Value::Object(object.object()))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kube::Config;
    use serde_json::json;

    use super::*;

    fn found(uid: &str, version: u64) -> Value {
        json!({"metadata": {"uid": uid, "resourceVersion": version.to_string()}})
    }

    /// An object that somebody looks at, and what is known of it.
    struct Looked {
        lookups: Arc<Lookups>,
        queue: Arc<Queue>,
        key: ObjectKey,
    }

    impl Looked {
        fn new(found: Value) -> Self {
            let key = ObjectKey {
                api_version: "apps/v1".into(),
                kind: "DaemonSet".into(),
                namespace: "agents".into(),
                name: "agent".into(),
            };
            let looked = Self { lookups: Arc::default(), queue: Arc::default(), key };
            looked.known();
            looked.told(Lookup::Found(found));
            looked
        }

        fn known(&self) -> Lookup {
            let nowhere = Config::new("http://127.0.0.1:1".parse().unwrap());
            let wanted = [(None, Client::try_from(nowhere).unwrap(), BTreeSet::from([self.key.clone()]))];
            let package = ("agents".to_owned(), "agent".to_owned());
            self.lookups.want(&package, &wanted, &self.queue).remove(&self.key).unwrap()
        }

        fn told(&self, lookup: Lookup) -> Lookup {
            self.lookups.set(&Watched { account: None, key: self.key.clone() }, lookup, &self.queue);
            self.known()
        }

        fn wrote(&self, object: Value) -> Lookup {
            self.lookups.note(&self.key, object.as_object().cloned().unwrap());
            self.known()
        }
    }

    #[tokio::test]
    async fn an_account_of_the_same_name_in_another_namespace_looks_for_itself() {
        let looked = Looked::new(found("a", 11));
        let client = || Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let look = |namespace: &str| {
            let wanted = [(Some("packages".to_owned()), client(), BTreeSet::from([looked.key.clone()]))];
            let package = (namespace.to_owned(), "p".to_owned());
            looked.lookups.want(&package, &wanted, &looked.queue).remove(&looked.key).unwrap()
        };
        assert_eq!((look("one"), look("two")), (Lookup::Pending, Lookup::Pending));
        let account = Some(("one".to_owned(), "packages".to_owned()));
        let theirs = Watched { account, key: looked.key.clone() };
        looked.lookups.set(&theirs, Lookup::Found(found("a", 12)), &looked.queue);
        assert_eq!((look("one"), look("two")), (Lookup::Found(found("a", 12)), Lookup::Pending));
    }

    #[tokio::test]
    async fn what_was_there_before_our_own_write_is_not_seen_again() {
        let looked = Looked::new(found("a", 11));
        let own = Lookup::Found(found("a", 13));
        assert_eq!(looked.wrote(found("a", 13)), own);
        assert_eq!(looked.told(Lookup::Found(found("a", 12))), own, "it came late");
        assert_eq!(looked.told(Lookup::Found(found("a", 14))), Lookup::Found(found("a", 14)));
        assert_eq!(looked.told(Lookup::Found(found("b", 9))), Lookup::Found(found("b", 9)), "another object");
    }

    #[tokio::test]
    async fn an_answer_that_comes_late_brings_nothing_back() {
        let looked = Looked::new(found("a", 11));
        assert_eq!(looked.told(Lookup::Absent), Lookup::Absent);
        assert_eq!(looked.wrote(found("a", 12)), Lookup::Absent);
        looked.told(Lookup::Found(found("b", 15)));
        assert_eq!(looked.wrote(found("a", 16)), Lookup::Found(found("b", 15)));
    }
}
