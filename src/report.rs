//! What the objects of a cluster say, as text for people.
//!
//! Pure: every value comes from the objects handed in, and every line is made
//! here, so that the commands only fetch and print.

mod age;
mod children;
pub mod diff;
pub mod history;
pub mod remedy;
pub mod rollback;
pub mod status;
mod table;
pub mod why;
pub mod workloads;

use crate::api::{Condition, HookOutcome, Package};

/// The `Ready` condition of a Package.
fn ready(package: &Package) -> Option<&Condition> {
    let status = package.status.as_ref()?;
    status.conditions.iter().find(|condition| condition.type_ == "Ready")
}

/// Whether the status speaks of the present spec.
fn is_current(package: &Package) -> bool {
    let observed = package.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed == package.metadata.generation
}

/// Whether the controller has ever looked at the Package.
fn is_looked_at(package: &Package) -> bool {
    let observed = package.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some_and(|observed| observed >= 0)
}

/// What is said of a Package whose status is not about the present spec.
fn unseen(package: &Package) -> &'static str {
    if is_looked_at(package) {
        "the controller has not looked at this spec yet"
    } else {
        "the controller has not looked at it yet"
    }
}

/// What has become of a hook, in a word.
fn hook_state(outcome: HookOutcome) -> &'static str {
    match outcome {
        HookOutcome::Running => "Running",
        HookOutcome::Succeeded => "Succeeded",
        HookOutcome::Failed => "Failed",
        HookOutcome::ToRepeat => "ToRepeat",
    }
}

/// How to find out why nobody looks at a Package.
const SEE_CONTROLLER: &str = "See whether it runs, and whether its --watch-namespace is another one: \
                              `kubectl get pods -A -l app.kubernetes.io/name=windlass`, then its logs.";

/// `namespace/name`.
fn full_name(package: &Package) -> String {
    let namespace = package.metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", package.metadata.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests;
