//! What belongs to DaemonSets in the middle of a rollout: pods and revisions by
//! selector, and the nodes. Watched only as long as somebody needs it, and kept as
//! far as a rollout looks at it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Resource as _;
use kube::api::ApiResource;
use kube::client::Client;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use serde_json::{Map, Value};
use tokio::task::AbortHandle;

use super::cached::Cached;
use super::cluster::typed_api;
use super::lookups::refusal;
use super::queue::Queue;
use super::store::PackageKey;
use crate::canary::objects::{Node, Pod, Revision};

/// Objects per page of a list.
const PAGE: u32 = 100;
/// Pause before what may not be read is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// Pods.
    Pods,
    /// ControllerRevisions.
    Revisions,
    /// Nodes.
    Nodes,
}

/// Objects of one kind in one namespace with certain labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selection {
    /// Which kind.
    pub part: Part,
    /// Namespace; empty for nodes.
    pub namespace: String,
    /// Label selector; empty: all.
    pub selector: String,
}

/// One object, as far as a rollout looks at it.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A pod.
    Pod(Box<Pod>),
    /// A ControllerRevision.
    Revision(Revision),
    /// A node.
    Node(Node),
}

/// What is known of a selection.
#[derive(Clone, Debug, PartialEq)]
pub enum Selected {
    /// It has not been read completely yet.
    Pending,
    /// It may not be read.
    Denied,
    /// All of it.
    Items(Vec<Item>),
}

/// Selections that are watched.
#[derive(Default)]
pub struct Selections {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    watches: HashMap<Selection, Watch>,
    wanted: BTreeMap<PackageKey, BTreeSet<Selection>>,
}

struct Watch {
    items: BTreeMap<String, Item>,
    incoming: Option<BTreeMap<String, Item>>,
    listed: bool,
    denied: bool,
    task: AbortHandle,
}

impl Selections {
    /// Says what a Package needs from now on, and gives what is known of it.
    /// Watches that nobody needs any more end.
    pub fn want(
        self: &Arc<Self>,
        package: &PackageKey,
        wanted: &BTreeSet<Selection>,
        client: &Client,
        queue: &Arc<Queue>,
    ) -> BTreeMap<Selection, Selected> {
        let mut inner = self.lock();
        if wanted.is_empty() {
            inner.wanted.remove(package);
        } else {
            inner.wanted.insert(package.clone(), wanted.clone());
        }
        inner.end_unwanted();
        let look = |selection: &Selection| (selection.clone(), inner.look(self, selection, client, queue));
        wanted.iter().map(look).collect()
    }

    /// The Package needs nothing any more.
    pub fn forget(&self, package: &PackageKey) {
        let mut inner = self.lock();
        inner.wanted.remove(package);
        inner.end_unwanted();
    }

    /// Takes an event in, and wakes those whom it tells something new.
    fn take(&self, selection: &Selection, event: Event<Cached>, queue: &Queue) {
        let mut inner = self.lock();
        let Some(watch) = inner.watches.get_mut(selection) else { return };
        let changed = watch.take(selection.part, event);
        if changed {
            inner.wake(selection, queue);
        }
    }

    fn deny(&self, selection: &Selection, queue: &Queue) {
        let mut inner = self.lock();
        let Some(watch) = inner.watches.get_mut(selection) else { return };
        let news = !watch.denied;
        (watch.denied, watch.listed) = (true, false);
        if news {
            inner.wake(selection, queue);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn look(
        &mut self,
        selections: &Arc<Selections>,
        selection: &Selection,
        client: &Client,
        queue: &Arc<Queue>,
    ) -> Selected {
        if let Some(watch) = self.watches.get(selection) {
            return watch.selected();
        }
        let run = run(selections.clone(), client.clone(), selection.clone(), queue.clone());
        let task = tokio::spawn(run).abort_handle();
        let watch = Watch { items: BTreeMap::new(), incoming: None, listed: false, denied: false, task };
        self.watches.insert(selection.clone(), watch);
        Selected::Pending
    }

    fn wake(&self, selection: &Selection, queue: &Queue) {
        let waiting = self.wanted.iter().filter(|(_, wanted)| wanted.contains(selection));
        waiting.for_each(|(package, _)| queue.wake(package.clone()));
    }

    fn end_unwanted(&mut self) {
        let wanted: BTreeSet<&Selection> = self.wanted.values().flatten().collect();
        self.watches.retain(|selection, watch| {
            let keep = wanted.contains(selection);
            if !keep {
                watch.task.abort();
            }
            keep
        });
    }
}

impl Watch {
    fn selected(&self) -> Selected {
        match (self.denied, self.listed) {
            (true, _) => Selected::Denied,
            (false, false) => Selected::Pending,
            (false, true) => Selected::Items(self.items.values().cloned().collect()),
        }
    }

    /// Whether anything is known that was not known before.
    fn take(&mut self, part: Part, event: Event<Cached>) -> bool {
        match event {
            Event::Init => {
                self.incoming = Some(BTreeMap::new());
                false
            }
            Event::InitApply(object) => {
                let (name, item) = (name_of(&object), read(part, &object));
                self.incoming.get_or_insert_default().insert(name, item);
                false
            }
            Event::InitDone => {
                let items = self.incoming.take().unwrap_or_default();
                let changed = !self.listed || self.denied || items != self.items;
                (self.items, self.listed, self.denied) = (items, true, false);
                changed
            }
            Event::Apply(object) => {
                let item = read(part, &object);
                let before = self.items.insert(name_of(&object), item.clone());
                before.as_ref() != Some(&item)
            }
            Event::Delete(object) => self.items.remove(&name_of(&object)).is_some(),
        }
    }
}

fn name_of(object: &Cached) -> String {
    object.meta().name.clone().unwrap_or_default()
}

fn read(part: Part, object: &Cached) -> Item {
    let object = object.object();
    match part {
        Part::Pods => Item::Pod(Box::new(Pod::read(&object))),
        Part::Revisions => Item::Revision(Revision::read(&object)),
        Part::Nodes => Item::Node(Node::read(&object)),
    }
}

/// Follows a selection until it is not needed any more.
async fn run(selections: Arc<Selections>, client: Client, selection: Selection, queue: Arc<Queue>) {
    loop {
        let objects = typed_api::<Cached>(client.clone(), &selection.namespace, &resource(selection.part));
        let mut config = watch::Config::default().page_size(PAGE);
        if !selection.selector.is_empty() {
            config = config.labels(&selection.selector);
        }
        let mut events = std::pin::pin!(watcher::watcher(objects, config).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => selections.take(&selection, event, &queue),
                Err(error) if matches!(refusal(&error), Some(401 | 403)) => {
                    selections.deny(&selection, &queue);
                    break;
                }
                Err(error) => tracing::debug!(?selection, %error, "watch interrupted"),
            }
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

fn resource(part: Part) -> ApiResource {
    let (group, api_version, kind, plural) = match part {
        Part::Pods => ("", "v1", "Pod", "pods"),
        Part::Revisions => ("apps", "apps/v1", "ControllerRevision", "controllerrevisions"),
        Part::Nodes => ("", "v1", "Node", "nodes"),
    };
    ApiResource {
        group: group.into(),
        version: "v1".into(),
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
    }
}

/// A LabelSelector as the API server takes it in a query.
pub fn selector_text(selector: &Value) -> String {
    let exact = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let exact = exact.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let expressions = expressions.filter_map(Value::as_object).filter_map(expression);
    exact.chain(expressions).collect::<Vec<_>>().join(",")
}

fn expression(expression: &Map<String, Value>) -> Option<String> {
    let key = expression.get("key")?.as_str()?;
    let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    match expression.get("operator")?.as_str()? {
        "In" => Some(format!("{key} in ({})", values.join(","))),
        "NotIn" => Some(format!("{key} notin ({})", values.join(","))),
        "Exists" => Some(key.to_owned()),
        "DoesNotExist" => Some(format!("!{key}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::labels(json!({"matchLabels": {"app": "agent", "tier": "a"}}), "app=agent,tier=a")]
    #[case::among(json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}), "a in (b,c)")]
    #[case::mixed(
        json!({"matchLabels": {"x": "y"}, "matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["b"]}, {"key": "c", "operator": "Exists"},
            {"key": "d", "operator": "DoesNotExist"}]}),
        "x=y,a notin (b),c,!d"
    )]
    fn selectors_are_written_as_queries(#[case] selector: Value, #[case] expected: &str) {
        assert_eq!(selector_text(&selector), expected);
    }
}
