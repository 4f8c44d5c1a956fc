//! Volume claims that outlive an uninstall by Argo CD.
//!
//! On Flux they are marked when they are made. An Application has no
//! post-renderer, so the live ones are marked before its deletion. Argo CD
//! decides from its own cache what it deletes: it is asked only once it has shown
//! that it knows the mark. It shows of an object only whether its deletion
//! has to be confirmed (`status.resources[].requiresDeletionConfirmation`, seen
//! on 3.5.7), so the mark says that too. CustomResourceDefinitions need no mark:
//! Argo CD never deletes them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::decision::Action;
use super::live::{Live, Place};
use super::release;
use super::replace;
use super::snapshot::{RevisionView, Snapshot};
use super::work::Work;
use crate::api::wellknown::{ARGO_SYNC_OPTIONS, HELM_RESOURCE_POLICY};
use crate::api::{Engine, RecordedComponent};
use crate::engine::ObjectKey;
use crate::ready::evidence::Lookup;

const KEEP: &str = "keep";
const CONFIRM: &str = "Delete=confirm";

/// Sees to it that the claims of a child's release stay, or go, with it as its
/// component says; a message while that is not certain.
pub(crate) fn settle(work: &mut Work<'_>, child: &Live) -> Option<String> {
    let keep = !deletes_data(&work.snapshot.revisions, child);
    let waiting = claims(child).filter_map(|claim| one(work, child, &claim, keep)).collect::<Vec<_>>();
    waiting.into_iter().next()
}

fn one(work: &mut Work<'_>, child: &Live, claim: &Claim, keep: bool) -> Option<String> {
    let key = &claim.key;
    let object = match work.snapshot.objects.get(key).unwrap_or(&Lookup::Pending) {
        Lookup::Found(object) => object,
        Lookup::Absent | Lookup::KindUnknown => return None,
        Lookup::Pending => return Some(format!("{}: {key} is being read", child.name())),
        Lookup::Denied | Lookup::NotImpersonated if !keep => return None,
        Lookup::Denied | Lookup::NotImpersonated => {
            return Some(format!(
                "{}: {key} may not be read, and would be lost: allow get, list, watch and patch of volume claims",
                child.name()
            ));
        }
    };
    let mark = Mark::of(object);
    if mark == Mark::Others {
        return None;
    }
    if (mark == Mark::Ours) != keep {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        work.actions.push(Action::MarkVolumeClaim {
            object: key.clone(),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
            annotations: annotations(object, keep),
        });
        return Some(format!("{}: marking {key} {}", child.name(), if keep { "to be kept" } else { "to be deleted" }));
    }
    if claim.needs_confirmation == has_option(object, CONFIRM) {
        return None;
    }
    // It compares anew by itself when one of its objects has changed.
    Some(format!("{}: Argo CD has yet to see that {key} is {}", child.name(), if keep { "kept" } else { "deleted" }))
}

/// Objects to look up for [`settle`]: claims of the children that are to go.
pub(crate) fn needed(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    going(snapshot).flat_map(|child| claims(child).map(|claim| claim.key).collect::<BTreeSet<_>>())
}

/// Children that go with their Package, or may go because nothing wanted stands at
/// their place.
pub(crate) fn going(snapshot: &Snapshot) -> impl Iterator<Item = &Live> {
    let stays = staying(snapshot);
    snapshot.own_children().filter(move |child| is_to_go(snapshot, &stays, child))
}

fn is_to_go(snapshot: &Snapshot, staying: &BTreeMap<Place<'_>, &RecordedComponent>, child: &Live) -> bool {
    let is_it = |component: &&&RecordedComponent| child.component() == Some(component.name.as_str());
    let kept = staying.get(&child.place()).filter(is_it);
    let stays = || kept.is_some_and(|component| !replace::is_replaced_by(&snapshot.revisions, child, component));
    !child.is_deleting() && (snapshot.package.deleting || !stays())
}

/// Components of the revision that runs in the end, where their releases stand.
fn staying(snapshot: &Snapshot) -> BTreeMap<Place<'_>, &RecordedComponent> {
    let target = snapshot.revisions.last().and_then(|latest| {
        let back_to = latest.way_back();
        back_to.map_or(Some(latest), |number| snapshot.revisions.iter().find(|known| known.number() == number))
    });
    let components = target.into_iter().flat_map(|target| &target.spec.components).filter(|component| !component.hook);
    components.filter_map(|component| Some((release::place(component)?, component))).collect()
}

/// As the newest revision that knows the component has it.
fn deletes_data(revisions: &[RevisionView], child: &Live) -> bool {
    let known = |revision: &RevisionView| revision.component(child.component()?).map(|known| known.delete_data);
    revisions.iter().rev().find_map(known).unwrap_or(false)
}

/// A volume claim that Argo CD lists for an Application.
struct Claim {
    key: ObjectKey,
    needs_confirmation: bool,
}

fn claims(child: &Live) -> impl Iterator<Item = Claim> {
    let argo = release::engine_of(&child.key().kind) == Some(Engine::Argo);
    let listed = child.object.get("status").and_then(|status| status.get("resources")).and_then(Value::as_array);
    listed.into_iter().flatten().filter(move |_| argo).filter_map(|entry| {
        let key = release::resource(entry).filter(|key| key.kind == "PersistentVolumeClaim")?;
        let shown = entry.get("requiresDeletionConfirmation").and_then(Value::as_bool);
        Some(Claim { key, needs_confirmation: shown.unwrap_or(false) })
    })
}

/// What a claim's annotations say of its deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    /// Kept by us.
    Ours,
    /// Kept because somebody told Argo CD itself not to delete it.
    Others,
}

impl Mark {
    fn of(object: &Value) -> Self {
        if has_option(object, "Delete=false") {
            Self::Others
        } else if annotation(object, HELM_RESOURCE_POLICY) == Some(KEEP) && has_option(object, CONFIRM) {
            Self::Ours
        } else {
            Self::None
        }
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

fn options(object: &Value) -> impl Iterator<Item = &str> {
    let all = annotation(object, ARGO_SYNC_OPTIONS).unwrap_or("");
    all.split(',').map(str::trim).filter(|option| !option.is_empty())
}

fn has_option(object: &Value, wanted: &str) -> bool {
    options(object).any(|option| option == wanted)
}

/// The annotations that make, or take away, our mark.
fn annotations(object: &Value, keep: bool) -> Value {
    let others = options(object).filter(|option| *option != CONFIRM);
    let options: Vec<&str> = others.chain(keep.then_some(CONFIRM)).collect();
    let options = if options.is_empty() { Value::Null } else { options.join(",").into() };
    let policy = if keep { Value::from(KEEP) } else { Value::Null };
    json!({HELM_RESOURCE_POLICY: policy, ARGO_SYNC_OPTIONS: options})
}
