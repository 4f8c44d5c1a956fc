//! What belongs to DaemonSets in the middle of a rollout: pods and revisions by
//! selector, and the nodes. Watched only as long as somebody needs it, and kept as
//! far as a rollout looks at it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Resource as _;
use kube::api::ApiResource;
use kube::client::Client;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use serde_json::{Map, Value};

use super::cached::Cached;
use super::cluster::typed_api;
use super::kinds::resource;
use super::lookups::refusal;
use super::needed::Watches;
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
    inner: Mutex<Watches<Selection, Seen>>,
}

/// What a watch has seen.
#[derive(Default)]
struct Seen {
    items: BTreeMap<String, Item>,
    incoming: Option<BTreeMap<String, Item>>,
    listed: bool,
    denied: bool,
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
        let mut watches = self.lock();
        watches.want(package, wanted.clone());
        let mut look = |selection: &Selection| {
            let start = || run(self.clone(), client.clone(), selection.clone(), queue.clone());
            (selection.clone(), watches.get_or_start(selection, Seen::default, start).selected())
        };
        wanted.iter().map(&mut look).collect()
    }

    /// A pod that we have deleted goes at once; the watch tells of it later.
    pub fn note_gone(&self, namespace: &str, uid: &str) {
        let mut watches = self.lock();
        let here = |selection: &Selection| selection.part == Part::Pods && selection.namespace == namespace;
        watches.iter_mut().filter(|(selection, _)| here(selection)).for_each(|(_, seen)| seen.note_gone(uid));
    }

    /// The Package needs nothing any more.
    pub fn forget(&self, package: &PackageKey) {
        self.lock().want(package, BTreeSet::new());
    }

    /// Takes an event in, and wakes those whom it tells something new.
    fn take(&self, selection: &Selection, event: Event<Cached>, queue: &Queue) {
        self.change(selection, queue, |seen| seen.take(selection.part, event));
    }

    fn deny(&self, selection: &Selection, queue: &Queue) {
        self.change(selection, queue, |seen| {
            let news = !seen.denied;
            (seen.denied, seen.listed) = (true, false);
            news
        });
    }

    fn change(&self, selection: &Selection, queue: &Queue, change: impl FnOnce(&mut Seen) -> bool) {
        let mut watches = self.lock();
        if watches.get_mut(selection).is_some_and(change) {
            watches.wake(selection, queue);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watches<Selection, Seen>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
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
                let name = name_of(&object);
                let mut item = read(part, &object);
                if let Some(before) = self.items.get(&name) {
                    item.goes_on_going(before);
                }
                let before = self.items.insert(name, item.clone());
                before.as_ref() != Some(&item)
            }
            Event::Delete(object) => self.items.remove(&name_of(&object)).is_some(),
        }
    }

    fn note_gone(&mut self, uid: &str) {
        for item in self.items.values_mut() {
            match item {
                Item::Pod(pod) if pod.uid == uid => pod.deleting = true,
                Item::Pod(_) | Item::Revision(_) | Item::Node(_) => {}
            }
        }
    }
}

impl Item {
    /// A deletion that has begun never ends: what tells otherwise is older.
    fn goes_on_going(&mut self, before: &Self) {
        if let (Self::Pod(pod), Self::Pod(before)) = (self, before) {
            pod.deleting |= before.deleting && before.uid == pod.uid;
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
        let objects = typed_api::<Cached>(client.clone(), &selection.namespace, &resource_of(selection.part));
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

fn resource_of(part: Part) -> ApiResource {
    match part {
        Part::Pods => resource("", "v1", "Pod", "pods"),
        Part::Revisions => resource("apps", "v1", "ControllerRevision", "controllerrevisions"),
        Part::Nodes => resource("", "v1", "Node", "nodes"),
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

    fn pod(uid: &str, phase: &str) -> Cached {
        let pod = json!({"metadata": {"name": "agent-1", "uid": uid}, "status": {"phase": phase}});
        Cached::new(pod.as_object().cloned().unwrap())
    }

    fn is_deleting(seen: &Seen) -> bool {
        matches!(&seen.items["agent-1"], Item::Pod(pod) if pod.deleting)
    }

    #[test]
    fn a_pod_that_we_have_deleted_is_seen_to_go_at_once() {
        let mut seen = Seen::default();
        seen.take(Part::Pods, Event::Apply(pod("a", "Pending")));
        seen.note_gone("b");
        assert!(!is_deleting(&seen));
        seen.note_gone("a");
        assert!(is_deleting(&seen));
        seen.take(Part::Pods, Event::Apply(pod("a", "Running")));
        assert!(is_deleting(&seen), "what comes late does not bring it back");
        seen.take(Part::Pods, Event::Apply(pod("c", "Running")));
        assert!(!is_deleting(&seen), "another pod of the same name");
    }

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
