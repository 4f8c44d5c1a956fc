//! What is seen of DaemonSets behind a canary, for one look at a Package.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::selections::{Item, Part, Selected, Selection, selector_text};
use crate::canary::objects::{DaemonSet, Node};
use crate::canary::{Observation, Sight};
use crate::engine::ObjectKey;
use crate::ready::evidence::Lookup;
use crate::rollout::Depth;

/// DaemonSets that are to be looked at closely, with what belongs to them.
pub fn selections(wanted: &BTreeMap<ObjectKey, Depth>, found: &BTreeMap<ObjectKey, Lookup>) -> BTreeSet<Selection> {
    let mut selections = BTreeSet::new();
    for (key, depth) in wanted {
        let Some(daemon_set) = daemon_set(found.get(key)) else { continue };
        if depth.is_full(&daemon_set) {
            let [revisions, pods] = own(&daemon_set);
            selections.extend([revisions, pods, nodes()]);
        }
    }
    selections
}

/// Puts together what is known of each.
pub fn sights(
    wanted: &BTreeMap<ObjectKey, Depth>,
    found: &BTreeMap<ObjectKey, Lookup>,
    selected: &BTreeMap<Selection, Selected>,
) -> BTreeMap<ObjectKey, Sight> {
    let nodes = Arc::new(all_nodes(selected));
    let sight = |(key, depth): (&ObjectKey, &Depth)| (key.clone(), sight(key, depth, found.get(key), selected, &nodes));
    wanted.iter().map(sight).collect()
}

fn all_nodes(selected: &BTreeMap<Selection, Selected>) -> BTreeMap<String, Node> {
    let items = match selected.get(&nodes()) {
        Some(Selected::Items(items)) => items.as_slice(),
        Some(Selected::Pending | Selected::Denied) | None => &[],
    };
    let nodes = items.iter().filter_map(|item| match item {
        Item::Node(node) => Some((node.name.clone(), node.clone())),
        Item::Pod(_) | Item::Revision(_) => None,
    });
    nodes.collect()
}

fn sight(
    key: &ObjectKey,
    depth: &Depth,
    found: Option<&Lookup>,
    selected: &BTreeMap<Selection, Selected>,
    nodes: &Arc<BTreeMap<String, Node>>,
) -> Sight {
    match found {
        None | Some(Lookup::Pending) => Sight::Pending,
        Some(Lookup::Denied | Lookup::NotImpersonated) => Sight::Denied(denied(key, &format!("{key}"))),
        Some(Lookup::Absent | Lookup::KindUnknown) => Sight::Alone(None),
        Some(Lookup::Found(_)) => match daemon_set(found) {
            Some(daemon_set) if depth.is_full(&daemon_set) => closely(key, daemon_set, selected, nodes),
            other => Sight::Alone(other.map(Box::new)),
        },
    }
}

fn closely(
    key: &ObjectKey,
    daemon_set: DaemonSet,
    selected: &BTreeMap<Selection, Selected>,
    all: &Arc<BTreeMap<String, Node>>,
) -> Sight {
    let mut seen = Observation { nodes: Arc::clone(all), ..Observation::default() };
    let [revisions, pods] = own(&daemon_set);
    for selection in [revisions, pods, nodes()] {
        match selected.get(&selection) {
            None | Some(Selected::Pending) => return Sight::Pending,
            Some(Selected::Denied) if selection.part == Part::Nodes => {
                return Sight::Denied("nodes may not be read: apply manifests/controller/rbac.yaml".to_owned());
            }
            Some(Selected::Denied) => {
                return Sight::Denied(denied(key, &format!("what belongs to {key}")));
            }
            Some(Selected::Items(items)) => items.iter().for_each(|item| add(&mut seen, item)),
        }
    }
    seen.daemon_set = Some(daemon_set);
    Sight::Full(Arc::new(seen))
}

fn denied(key: &ObjectKey, what: &str) -> String {
    format!("{what} may not be read: apply manifests/tenant/canary.yaml in namespace {}", key.namespace)
}

fn add(seen: &mut Observation, item: &Item) {
    match item {
        Item::Pod(pod) => seen.pods.push(pod.as_ref().clone()),
        Item::Revision(revision) => seen.revisions.push(revision.clone()),
        Item::Node(_) => {}
    }
}

fn own(daemon_set: &DaemonSet) -> [Selection; 2] {
    let selector = selector_text(&daemon_set.selector);
    [Part::Revisions, Part::Pods].map(|part| Selection {
        part,
        namespace: daemon_set.namespace.clone(),
        selector: selector.clone(),
    })
}

fn nodes() -> Selection {
    Selection { part: Part::Nodes, namespace: String::new(), selector: String::new() }
}

fn daemon_set(found: Option<&Lookup>) -> Option<DaemonSet> {
    match found {
        Some(Lookup::Found(Value::Object(object))) => Some(DaemonSet::read(object)),
        _ => None,
    }
}
