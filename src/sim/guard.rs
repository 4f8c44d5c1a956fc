//! The canary guard: admission policies that keep the first step of a DaemonSet's
//! rollout small, as they were seen to act on an API server.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::json;

/// Label that picks the policy.
const LABEL: &str = "windlass.dev/canary";
/// The one user whose writes are let through as they are.
const EXEMPT: &str = "windlass";

/// A policy that is installed and bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// A changed template arrives as `OnDelete`.
    Strict,
    /// A changed template arrives with a budget of 1.
    Compat,
}

/// What becomes of an update of a DaemonSet.
pub(super) fn admit(
    policies: &BTreeSet<Policy>,
    actor: &str,
    before: &Map<String, Value>,
    object: &mut Map<String, Value>,
) {
    let policy = match json::text(object, &["metadata", "labels", LABEL]) {
        "strict" => Policy::Strict,
        "compat" => Policy::Compat,
        _ => return,
    };
    if actor == EXEMPT || !policies.contains(&policy) {
        return;
    }
    let part = |object: &Map<String, Value>, field: &str| json::at(object, &["spec", field]).cloned();
    if part(before, "template") == part(object, "template") {
        if let Some(strategy) = part(before, "updateStrategy") {
            json::set(object, &["spec", "updateStrategy"], strategy);
        }
        return;
    }
    let surge = json::at(object, &["spec", "updateStrategy", "rollingUpdate", "maxSurge"]);
    let surges = surge.is_some_and(|surge| *surge != 0 && *surge != "0%");
    let (unavailable, surge) = if surges { (0, 1) } else { (1, 0) };
    let type_ = match policy {
        Policy::Strict => "OnDelete",
        Policy::Compat => "RollingUpdate",
    };
    let strategy = json!({"type": type_, "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}});
    json::set(object, &["spec", "updateStrategy"], strategy);
}

/// What the API server puts where nothing is stated.
pub(super) fn default_strategy(object: &mut Map<String, Value>) {
    let strategy = json::section(json::section(object, "spec"), "updateStrategy");
    strategy.entry("type").or_insert_with(|| "RollingUpdate".into());
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate") {
        let rolling = json::section(strategy, "rollingUpdate");
        rolling.entry("maxUnavailable").or_insert_with(|| 1.into());
        rolling.entry("maxSurge").or_insert_with(|| 0.into());
    }
}

/// Exactly one of the two numbers is above zero, unless nothing is replaced by
/// itself.
pub(super) fn is_valid(object: &Map<String, Value>) -> bool {
    let number = |field| json::at(object, &["spec", "updateStrategy", "rollingUpdate", field]);
    let is_zero = |value: Option<&Value>| value.is_none_or(|value| *value == 0 || *value == "0%");
    json::text(object, &["spec", "updateStrategy", "type"]) == "OnDelete"
        || is_zero(number("maxUnavailable")) != is_zero(number("maxSurge"))
}
