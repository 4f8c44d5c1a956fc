//! For programs: stable names, times in milliseconds.

use serde_json::{Value, json};

use super::{ComponentAtEnd, Exploration, Group, Outcome, Standing};
use crate::rehearse::scene::Failure;

/// Writes what was found. `docs/rehearse.md` explains the fields.
pub fn write_json(found: &Exploration) -> Value {
    let restarts = &found.restarts;
    let others = restarts.others.iter().map(|(after, end)| json!({"after": after, "outcome": outcome(end)}));
    json!({
        "engines": found.plain.engines.iter().map(|engine| engine.as_str()).collect::<Vec<_>>(),
        "kubernetes": found.plain.kubernetes.as_ref().map(ToString::to_string),
        "outcome": outcome(&found.outcome),
        "failures": found.failures.iter().map(group).collect::<Value>(),
        "restarts": {"steps": restarts.steps, "tried": restarts.tried, "others": others.collect::<Value>()},
        "notes": found.remarks,
    })
}

fn group(group: &Group) -> Value {
    let cases = group.cases.iter().map(|case| case.iter().map(failure).collect::<Value>());
    json!({"cases": cases.collect::<Value>(), "outcome": outcome(&group.outcome)})
}

fn failure(failure: &Failure) -> Value {
    let place = &failure.place;
    json!({
        "namespace": place.namespace, "package": place.package, "component": place.component,
        "step": failure.at.as_str(),
    })
}

fn outcome(outcome: &Outcome) -> Value {
    json!({
        "end": outcome.end.as_str(),
        "took": {"least": outcome.took.0, "most": outcome.took.1},
        "packages": outcome.packages.iter().map(|package| standing(package, outcome)).collect::<Value>(),
    })
}

fn standing(package: &Standing, outcome: &Outcome) -> Value {
    json!({
        "namespace": package.id.namespace,
        "name": package.id.name,
        "wanted": package.wanted,
        "version": package.version,
        "ready": package.is_ready,
        "reason": package.reason,
        "message": outcome.messages.get(&package.id),
        "moved": package.moved,
        "hooks": package.hooks,
        "components": package.components.iter().map(component).collect::<Value>(),
    })
}

fn component(component: &ComponentAtEnd) -> Value {
    let runs = component.runs.versions.iter().map(|running| match running.nodes {
        Some(nodes) => json!({"version": running.version, "nodes": nodes}),
        None => json!({"version": running.version}),
    });
    json!({
        "name": component.name, "runs": runs.collect::<Value>(), "ready": component.runs.is_ready,
        "failed": component.failed,
    })
}
