//! `RollingUpdate`: which pods go now. Candidates are taken in no order that
//! means anything; old pods that are not available go whatever the budget says,
//! and use it up.

use serde_json::{Map, Value};

use super::view::{Place, View};
use crate::sim::json;
use crate::sim::store::{Key, Object, generation};

/// What a look at a DaemonSet comes to.
#[derive(Default)]
pub(super) struct Plan {
    pub delete: Vec<Key>,
    /// Nodes that get a second pod.
    pub create: Vec<String>,
}

/// Pods that may be made beside old ones.
pub(super) fn surge(daemon_set: &Map<String, Value>, desired: u64) -> u64 {
    if json::text(daemon_set, &["spec", "updateStrategy", "type"]) == "OnDelete" {
        return 0;
    }
    number(daemon_set, "maxSurge", desired)
}

fn number(daemon_set: &Map<String, Value>, field: &str, desired: u64) -> u64 {
    match json::at(daemon_set, &["spec", "updateStrategy", "rollingUpdate", field]) {
        Some(Value::String(text)) => {
            let share: u64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (desired * share).div_ceil(100)
        }
        Some(value) => value.as_u64().unwrap_or(0),
        None => 0,
    }
}

pub(super) fn plan(view: &View<'_>, daemon_set: &Object) -> Plan {
    let desired = view.desired();
    let surge = surge(daemon_set, desired);
    let places = in_no_order(view, daemon_set);
    if surge > 0 {
        return surging(&places, surge);
    }
    let unavailable = number(daemon_set, "maxUnavailable", desired).max(1);
    replacing(&places, unavailable)
}

fn in_no_order<'v, 'a>(view: &'v View<'a>, daemon_set: &Object) -> Vec<&'v Place<'a>> {
    let salt = generation(daemon_set);
    let mut places: Vec<&Place<'_>> = view.places.values().collect();
    places.sort_by_key(|place| json::digest(&Value::from(format!("{}{salt}", place.name()))));
    places
}

fn replacing(places: &[&Place<'_>], max_unavailable: u64) -> Plan {
    let mut unavailable = 0;
    let mut plan = Plan::default();
    let mut candidates: Vec<Key> = Vec::new();
    for place in places {
        match place.staying() {
            (new, old) if new.len() > 1 || old.len() > 1 || new.len() == old.len() => unavailable += 1,
            (new, old) => match (new.first(), old.first()) {
                (Some((_, true)), _) => {}
                (Some((_, false)), _) | (None, None) => unavailable += 1,
                (None, Some((key, false))) => {
                    plan.delete.push((*key).clone());
                    unavailable += 1;
                }
                (None, Some((key, true))) => candidates.push((*key).clone()),
            },
        }
    }
    let left = usize::try_from(max_unavailable.saturating_sub(unavailable)).unwrap_or(usize::MAX);
    plan.delete.extend(candidates.into_iter().take(left));
    plan
}

fn surging(places: &[&Place<'_>], max_surge: u64) -> Plan {
    let mut surging = 0;
    let mut plan = Plan::default();
    let mut candidates: Vec<String> = Vec::new();
    for place in places {
        match place.staying() {
            (new, old) if new.len() > 1 || old.len() > 1 => surging += 1,
            (new, old) => match (new.first(), old.first()) {
                (_, None) => {}
                (None, Some((_, false))) => plan.create.push(place.name()),
                (None, Some((_, true))) => candidates.push(place.name()),
                (Some((_, false)), Some(_)) => surging += 1,
                (Some((_, true)), Some((key, _))) => plan.delete.push((*key).clone()),
            },
        }
    }
    let left = usize::try_from(max_surge.saturating_sub(surging)).unwrap_or(usize::MAX);
    plan.create.extend(candidates.into_iter().take(left));
    plan
}
