//! Conditions with a deadline. Driven by watches; when the time is up the test fails
//! with what was seen instead.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::TryStreamExt;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

const AGAIN: Duration = Duration::from_millis(50);
/// How much longer than usual anything may take: a deadline is there to end what never comes,
/// and says nothing about speed.
pub const PATIENCE: u32 = 3;

/// Waits until `check` accepts the object of that name, and gives back what it makes of
/// it. `check` gets None while there is no such object, and answers with an error that
/// says what it sees.
pub async fn until<K, T>(
    api: &Api<K>,
    name: &str,
    deadline: Duration,
    what: &str,
    mut check: impl FnMut(Option<&K>) -> Result<T, String>,
) -> T
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let fields = format!("metadata.name={name}");
    let what = format!("{name}: {what}");
    until_all(api, ListParams::default().fields(&fields), deadline, &what, |objects| check(objects.first().copied()))
        .await
}

/// The same for all objects that `selection` selects, in order of their names.
pub async fn until_all<K, T>(
    api: &Api<K>,
    selection: ListParams,
    deadline: Duration,
    what: &str,
    mut check: impl FnMut(&[&K]) -> Result<T, String>,
) -> T
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut seen = "no answer yet".to_owned();
    let watching = async {
        loop {
            match watch_once(api, &selection, &mut check, &mut seen).await {
                Ok(Some(value)) => return value,
                // The watch ended.
                Ok(None) => (),
                Err(error) => {
                    seen = error.to_string();
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    };
    match tokio::time::timeout(deadline * PATIENCE, watching).await {
        Ok(value) => value,
        Err(_) => panic!("waited {deadline:?} for {what}\nbut saw: {seen}"),
    }
}

async fn watch_once<K, T>(
    api: &Api<K>,
    selection: &ListParams,
    check: &mut impl FnMut(&[&K]) -> Result<T, String>,
    seen: &mut String,
) -> kube::Result<Option<T>>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let list = api.list(selection).await?;
    let version = list.metadata.resource_version.clone().unwrap_or_default();
    let key = |object: &K| (object.namespace(), object.name_any());
    let mut objects: BTreeMap<_, K> = list.items.into_iter().map(|object| (key(&object), object)).collect();
    let parameters = WatchParams {
        label_selector: selection.label_selector.clone(),
        field_selector: selection.field_selector.clone(),
        ..WatchParams::default()
    };
    let events = api.watch(&parameters, &version).await?;
    let mut events = std::pin::pin!(events);
    loop {
        match check(&objects.values().collect::<Vec<_>>()) {
            Ok(value) => return Ok(Some(value)),
            Err(message) => *seen = message,
        }
        match events.try_next().await? {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                objects.insert(key(&object), object);
            }
            Some(WatchEvent::Deleted(object)) => {
                objects.remove(&key(&object));
            }
            Some(WatchEvent::Bookmark(_)) => (),
            Some(WatchEvent::Error(_)) | None => return Ok(None),
        }
    }
}

/// Watches for as long as `window` says, and fails at once when `check` refuses what it sees:
/// for what must not happen, where no later event could prove that it did not.
pub async fn throughout<K>(
    api: &Api<K>,
    selection: ListParams,
    window: Duration,
    what: &str,
    mut check: impl FnMut(&[&K]) -> Result<(), String>,
) where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let refused = until_all(api, selection, window * 2, what, |objects| match check(objects) {
        Ok(()) => Err("what it should be".to_owned()),
        Err(seen) => Ok(seen),
    });
    if let Ok(seen) = tokio::time::timeout(window, refused).await {
        panic!("{what} did not last {window:?}: {seen}");
    }
}

/// Waits until something outside the API server holds.
pub async fn until_true<T>(deadline: Duration, what: &str, check: impl AsyncFn() -> Result<T, String>) -> T {
    let started = std::time::Instant::now();
    loop {
        match check().await {
            Ok(value) => return value,
            Err(seen) if started.elapsed() > deadline * PATIENCE => {
                panic!("waited {deadline:?} for {what}\nbut saw: {seen}")
            }
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// The condition of that type in an object as JSON: (status, reason, message).
pub fn condition<'a>(object: &'a serde_json::Value, kind: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    Some((text("status"), text("reason"), text("message")))
}

/// For `until`: the object's Ready condition (or another) is True for its generation.
pub fn holds(object: &serde_json::Value, kind: &str) -> Result<(), String> {
    let (generation, observed) = (&object["metadata"]["generation"], &object["status"]["observedGeneration"]);
    match condition(object, kind) {
        Some(("True", _, _)) if observed.is_null() || observed == generation => Ok(()),
        found => Err(format!("{kind} is {found:?}, observedGeneration {observed} of {generation}")),
    }
}
