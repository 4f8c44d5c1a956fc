//! For programs: stable names, times in milliseconds.

use serde_json::{Map, Value, json};

use super::{PackageAtEnd, Report};
use crate::rehearse::timeline::{Moment, What};

/// Writes a report. `docs/rehearse.md` explains the fields.
pub fn write_json(report: &Report) -> Value {
    let engines: Vec<&str> = report.engines.iter().map(|engine| engine.as_str()).collect();
    let before = report.before.iter().map(|(name, version)| json!({"package": name, "version": version}));
    json!({
        "engines": engines,
        "kubernetes": report.kubernetes.as_ref().map(ToString::to_string),
        "before": before.collect::<Value>(),
        "events": report.moments.iter().map(moment).collect::<Value>(),
        "packages": report.packages.iter().map(package).collect::<Value>(),
        "notes": report.remarks,
        "summary": {
            "end": report.end.as_str(),
            "took": report.took,
            "steps": report.steps,
        },
    })
}

fn moment(moment: &Moment) -> Value {
    let mut event = Map::new();
    event.insert("at".into(), moment.at.into());
    if let Some(package) = &moment.package {
        event.insert("namespace".into(), package.namespace.clone().into());
        event.insert("package".into(), package.name.clone().into());
    }
    if let Some(component) = &moment.component {
        event.insert("component".into(), component.clone().into());
    }
    event.insert("event".into(), moment.what.name().into());
    if let Value::Object(more) = details(&moment.what) {
        event.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    event.into()
}

fn details(what: &What) -> Value {
    match what {
        What::Committed { from, to } | What::GoesBack { from, to } => json!({"from": from, "to": to}),
        What::Waits { reason, message } => json!({"reason": reason, "message": message}),
        What::Begins { revision, from, to, moves, waited } => {
            json!({"revision": revision, "from": from, "to": to, "moves": moves, "waited": waited})
        }
        What::Moves { from, to, after } => json!({"from": from, "to": to, "after": after}),
        What::VerifiedAgain { after } => json!({"after": after}),
        What::AttemptFailed { attempts, message } => json!({"attempts": attempts, "message": message}),
        What::ReleaseReady { message } => json!({"message": message}),
        What::RollsOut { daemon_set, phase, budget, updated, desired, message } => json!({
            "daemonSet": daemon_set, "phase": phase.as_str(), "budget": budget,
            "updated": updated, "desired": desired, "message": message,
        }),
        What::Told { warning, reason, message } => {
            json!({"warning": warning, "reason": reason.as_str(), "message": message})
        }
        What::Fetched { took }
        | What::HookSucceeded { took }
        | What::HookFailed { took }
        | What::Verified { took }
        | What::IsBack { took }
        | What::Uninstalled { took } => json!({"took": took}),
        What::Withdrawn
        | What::HookRuns
        | What::Uninstalls
        | What::HandsOver
        | What::GoesOn
        | What::Gone
        | What::Restarted => Value::Null,
    }
}

fn package(package: &PackageAtEnd) -> Value {
    let ready = package.ready();
    let components = package.status.components.iter().map(|component| {
        let mut shown = json!({"name": component.name, "state": format!("{:?}", component.state)});
        if let Some(version) = &component.version {
            shown["version"] = version.clone().into();
        }
        if let Some(message) = &component.message {
            shown["message"] = message.clone().into();
        }
        shown
    });
    json!({
        "namespace": package.namespace,
        "name": package.name,
        "wanted": package.wanted,
        "version": package.status.version,
        "ready": package.is_ready(),
        "reason": ready.map(|ready| ready.reason.clone()),
        "message": ready.map(|ready| ready.message.clone()),
        "age": package.age,
        "blockedBy": package.status.blocked_by,
        "components": components.collect::<Value>(),
    })
}
