//! For programs; `docs/plan.md` explains the fields.

use serde_json::{Value, json};

use crate::api::Engine;
use crate::plan::{FieldChange, Finding, PackagePlan, Plan, Requirement, Step};

/// Writes a plan.
pub fn write_json(plan: &Plan) -> Value {
    json!({
        "packages": plan.packages.iter().map(package).collect::<Value>(),
        "notes": plan.notes,
        "unknown": plan.unknown,
    })
}

fn package(package: &PackagePlan) -> Value {
    let refused = package.refused.as_ref().map(|refused| json!({"reason": refused.reason, "message": refused.message}));
    json!({
        "namespace": package.namespace,
        "name": package.name,
        "change": package.change.as_str(),
        "fromVersion": package.from_version,
        "toVersion": package.to_version,
        "engine": package.engine.map(Engine::as_str),
        "refused": refused,
        "onFailure": {
            "action": package.on_failure.action.as_str(), "why": package.on_failure.why, "hook": package.on_failure.hook,
        },
        "requirements": package.requirements.iter().map(requirement).collect::<Value>(),
        "changes": package.changes.iter().map(change).collect::<Value>(),
        "steps": package.steps.iter().map(step).collect::<Value>(),
        "warnings": package.warnings,
        "findings": package.findings.iter().map(finding).collect::<Value>(),
        "errors": package.errors,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "code": finding.code.to_string(), "component": finding.component, "object": finding.object,
        "message": finding.message,
    })
}

fn requirement(requirement: &Requirement) -> Value {
    json!({
        "what": requirement.what, "range": requirement.range, "state": requirement.state.as_str(),
        "message": requirement.message,
    })
}

fn step(step: &Step) -> Value {
    json!({
        "action": step.action.as_str(),
        "component": step.component,
        "fromVersion": step.versions.0,
        "toVersion": step.versions.1,
        "gate": step.gate,
        "rollout": step.rollout,
        "changes": step.changes.iter().map(change).collect::<Value>(),
        "warnings": step.warnings,
    })
}

fn change(change: &FieldChange) -> Value {
    json!({"path": change.path, "from": change.from, "to": change.to})
}
