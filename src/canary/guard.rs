//! The guard: what keeps the first step of a rollout small before anybody can
//! react to a new template.
//!
//! The best one is an admission policy (`manifests/canary`), which changes the
//! strategy in the very write that brings the template. Its policies and bindings
//! carry the label `windlass.dev/guard`; which of them a DaemonSet is under is
//! said by its own label `windlass.dev/canary`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::objects::DaemonSet;
use crate::api::wellknown::LABEL_GUARD;
use crate::api::{RolloutGuard, RolloutMode};

/// Whether a policy acts on the DaemonSets of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyState {
    /// There is none, or it is not bound here.
    #[default]
    Absent,
    /// It acts, and lets the writes of Windlass through as they are.
    Active,
    /// It acts, and takes Windlass for somebody else.
    ForAnother,
}

/// The policies of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// The one for Strict.
    pub strict: PolicyState,
    /// The one for Compat.
    pub compat: PolicyState,
}

/// Why the first step of a rollout cannot be kept small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unguarded {
    /// The policy takes Windlass for somebody else.
    Mismatch,
    /// There is no policy, and the release states no budget of 1 either.
    NoPolicy,
}

/// Value of the label that puts a DaemonSet under the policy for Strict.
pub const STRICT: &str = "strict";
/// Value of the label that puts a DaemonSet under the policy for Compat.
pub const COMPAT: &str = "compat";

impl Policies {
    /// Whether the one that [`Policies::label`] picks acts as it should.
    pub fn acts(&self, mode: RolloutMode) -> bool {
        let picked = if self.label(mode) == STRICT { &self.strict } else { &self.compat };
        *picked == PolicyState::Active
    }

    /// What acts in a namespace with these labels, as `identity` sees it.
    pub fn of(
        policies: &[Map<String, Value>],
        bindings: &[Map<String, Value>],
        labels: &BTreeMap<String, String>,
        identity: Option<&str>,
    ) -> Self {
        let state = |kind: &str| {
            let of_kind = policies.iter().filter(|policy| label(policy, LABEL_GUARD) == Some(kind));
            let mut here = of_kind.filter(|policy| is_bound(policy, bindings, labels)).peekable();
            if here.peek().is_none() {
                PolicyState::Absent
            } else if here.all(|policy| identity.is_none_or(|identity| exempts(policy, identity))) {
                PolicyState::Active
            } else {
                PolicyState::ForAnother
            }
        };
        Self { strict: state(STRICT), compat: state(COMPAT) }
    }

    /// The label that a DaemonSet should carry.
    pub fn label(&self, mode: RolloutMode) -> &'static str {
        match mode {
            RolloutMode::Strict if self.strict == PolicyState::Absent && self.compat == PolicyState::Active => COMPAT,
            RolloutMode::Strict => STRICT,
            RolloutMode::Compat => COMPAT,
        }
    }

    /// What keeps the first step of a DaemonSet small. `pinned`: whether the
    /// release states or keeps a budget of 1.
    ///
    /// # Errors
    /// When nothing does.
    pub fn guard(&self, daemon_set: &DaemonSet, pinned: bool) -> Result<RolloutGuard, Unguarded> {
        if daemon_set.controller.is_some() {
            return Ok(RolloutGuard::Observed);
        }
        let (state, guard) = match daemon_set.guarded_as.as_deref() {
            Some(STRICT) => (&self.strict, RolloutGuard::AdmissionStrict),
            Some(COMPAT) => (&self.compat, RolloutGuard::AdmissionCompat),
            Some(_) | None => (&PolicyState::Absent, RolloutGuard::Rendered),
        };
        match state {
            PolicyState::Active => Ok(guard),
            PolicyState::ForAnother => Err(Unguarded::Mismatch),
            PolicyState::Absent if pinned => Ok(RolloutGuard::Rendered),
            PolicyState::Absent => Err(Unguarded::NoPolicy),
        }
    }
}

/// Whether a binding of the policy covers a namespace with these labels.
fn is_bound(policy: &Map<String, Value>, bindings: &[Map<String, Value>], labels: &BTreeMap<String, String>) -> bool {
    let name = text(policy.get("metadata"), "name");
    let everywhere = policy.get("spec").and_then(|spec| spec.get("matchConstraints"));
    let covers = |resources: Option<&Value>| {
        resources.and_then(|resources| resources.get("namespaceSelector")).is_none_or(|by| selects(by, labels))
    };
    let is_of = |binding: &&Map<String, Value>| text(binding.get("spec"), "policyName") == name;
    let mut own = bindings.iter().filter(is_of);
    covers(everywhere) && own.any(|binding| covers(binding.get("spec").and_then(|spec| spec.get("matchResources"))))
}

/// Whether the policy lets the writes of a user through: one of its conditions
/// names the user.
fn exempts(policy: &Map<String, Value>, identity: &str) -> bool {
    let conditions = policy.get("spec").and_then(|spec| spec.get("matchConditions")).and_then(Value::as_array);
    let mut expressions = conditions.into_iter().flatten().map(|condition| text(Some(condition), "expression"));
    expressions.any(|expression| expression.contains(&format!("'{identity}'")))
}

/// A LabelSelector.
fn selects(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let exact = selector.get("matchLabels").and_then(Value::as_object);
    let exact = exact.into_iter().flatten().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str());
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    exact && expressions.into_iter().flatten().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let found = labels.get(text(Some(expression), "key"));
    let values = expression.get("values").and_then(Value::as_array);
    let among = found.is_some_and(|found| values.into_iter().flatten().any(|value| value.as_str() == Some(found)));
    match text(Some(expression), "operator") {
        "In" => among,
        "NotIn" => !among,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        _ => false,
    }
}

fn label<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

fn text<'a>(value: Option<&'a Value>, field: &str) -> &'a str {
    value.and_then(|value| value.get(field)).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const WINDLASS: &str = "system:serviceaccount:windlass-system:windlass";

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn policy(kind: &str) -> Map<String, Value> {
        let condition = format!("request.userInfo.username != '{WINDLASS}'");
        map(json!({
            "metadata": {"name": format!("windlass-{kind}"), "labels": {LABEL_GUARD: kind}},
            "spec": {"matchConditions": [{"name": "not-windlass", "expression": condition}]},
        }))
    }

    fn binding(kind: &str, selector: Value) -> Map<String, Value> {
        map(json!({
            "metadata": {"name": format!("windlass-{kind}")},
            "spec": {"policyName": format!("windlass-{kind}"), "matchResources": {"namespaceSelector": selector}},
        }))
    }

    fn labels() -> BTreeMap<String, String> {
        BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), "agents".to_owned())])
    }

    #[rstest]
    #[case::everywhere(json!({}), PolicyState::Active)]
    #[case::here(json!({"matchLabels": {"kubernetes.io/metadata.name": "agents"}}), PolicyState::Active)]
    #[case::elsewhere(json!({"matchLabels": {"kubernetes.io/metadata.name": "other"}}), PolicyState::Absent)]
    #[case::among(json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "agents"]}]}), PolicyState::Active)]
    #[case::not_among(json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["agents"]}]}), PolicyState::Absent)]
    #[case::without_a_label(json!({"matchExpressions": [
        {"key": "off", "operator": "DoesNotExist"}]}), PolicyState::Active)]
    #[case::with_a_label(json!({"matchExpressions": [{"key": "off", "operator": "Exists"}]}), PolicyState::Absent)]
    fn a_policy_acts_where_it_is_bound(#[case] selector: Value, #[case] expected: PolicyState) {
        let found = Policies::of(&[policy("strict")], &[binding("strict", selector)], &labels(), Some(WINDLASS));
        assert_eq!(found, Policies { strict: expected, compat: PolicyState::Absent });
    }

    #[test]
    fn a_policy_without_a_binding_does_nothing() {
        let found = Policies::of(&[policy("strict")], &[binding("compat", json!({}))], &labels(), Some(WINDLASS));
        assert_eq!(found, Policies::default());
    }

    #[test]
    fn a_policy_that_names_another_account_is_told_from_one_of_ours() {
        let found = Policies::of(&[policy("compat")], &[binding("compat", json!({}))], &labels(), Some("admin"));
        assert_eq!(found.compat, PolicyState::ForAnother);
        let daemon_set = daemon_set(json!({"labels": {"windlass.dev/canary": "compat"}}));
        assert_eq!(found.guard(&daemon_set, true), Err(Unguarded::Mismatch));
    }

    fn daemon_set(metadata: Value) -> DaemonSet {
        DaemonSet::read(&map(json!({"metadata": metadata})))
    }

    #[rstest]
    #[case::strict("strict", false, Ok(RolloutGuard::AdmissionStrict))]
    #[case::compat_is_not_there("compat", true, Ok(RolloutGuard::Rendered))]
    #[case::nothing_is("compat", false, Err(Unguarded::NoPolicy))]
    #[case::another_label("other", false, Err(Unguarded::NoPolicy))]
    fn the_label_picks_the_policy(
        #[case] label: &str,
        #[case] pinned: bool,
        #[case] expected: Result<RolloutGuard, Unguarded>,
    ) {
        let policies = Policies { strict: PolicyState::Active, compat: PolicyState::Absent };
        let daemon_set = daemon_set(json!({"labels": {"windlass.dev/canary": label}}));
        assert_eq!(policies.guard(&daemon_set, pinned), expected);
    }

    #[test]
    fn what_another_operator_makes_is_only_observed() {
        let owner = json!([{"kind": "KubeVirt", "name": "kubevirt", "uid": "1", "controller": true}]);
        let daemon_set = daemon_set(json!({"ownerReferences": owner}));
        assert_eq!(Policies::default().guard(&daemon_set, false), Ok(RolloutGuard::Observed));
    }

    #[rstest]
    #[case(RolloutMode::Strict, PolicyState::Active, PolicyState::Active, STRICT)]
    #[case(RolloutMode::Strict, PolicyState::Absent, PolicyState::Active, COMPAT)]
    #[case(RolloutMode::Strict, PolicyState::Absent, PolicyState::Absent, STRICT)]
    #[case(RolloutMode::Strict, PolicyState::ForAnother, PolicyState::Active, STRICT)]
    #[case(RolloutMode::Compat, PolicyState::Active, PolicyState::Absent, COMPAT)]
    fn strict_makes_do_with_the_policy_that_is_there(
        #[case] mode: RolloutMode,
        #[case] strict: PolicyState,
        #[case] compat: PolicyState,
        #[case] expected: &str,
    ) {
        assert_eq!(Policies { strict, compat }.label(mode), expected);
    }
}
