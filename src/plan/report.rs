//! A plan as text, as Markdown for a pull request, and for programs.

mod json;
mod markdown;
mod text;

pub use json::write_json;
pub use markdown::write_markdown;
pub use text::write_text;

use serde_json::Value;

use crate::report::diff::{from_difference, short};

use super::{Action, Change, FailureAction, FieldChange, Finding, PackagePlan, RequirementState, Step};

/// `1.8.0 → 1.9.0`, or the one there is.
fn versions(from: Option<&str>, to: Option<&str>) -> String {
    match (from, to) {
        (Some(from), Some(to)) if from == to => to.to_owned(),
        (Some(from), Some(to)) => format!("{from} → {to}"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => String::new(),
    }
}

fn heading(package: &PackagePlan) -> String {
    let versions = versions(package.from_version.as_deref(), package.to_version.as_deref());
    match package.change {
        Change::Installed => format!("install {versions}"),
        Change::Upgraded => format!("upgrade {versions}"),
        Change::Changed => format!("change {versions}"),
        // Whether something moves is what the error is about.
        Change::Settings if is_open(package) => format!("{versions}, to be mended first"),
        Change::Settings => format!("settings of {versions}, nothing moves"),
        Change::Removed => format!("uninstall {versions}"),
        Change::LetGo => format!("let go {versions}, its releases stay"),
    }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::RunHook => "run hook",
        Action::Install => "install",
        Action::Upgrade => "upgrade",
        Action::VerifyAgain => "verify again",
        Action::HandOver => "hand over",
        Action::Replace => "replace",
        Action::Remove => "uninstall",
    }
}

fn title(step: &Step) -> String {
    let versions = versions(step.versions.0.as_deref(), step.versions.1.as_deref());
    let versions = if versions.is_empty() { versions } else { format!(" {versions}") };
    format!("{} {}{versions}", verb(step.action), step.component)
}

fn found(finding: &Finding) -> String {
    format!("component {}, {}: {}", finding.component, finding.object, finding.message)
}

fn failure(action: FailureAction) -> &'static str {
    match action {
        FailureAction::RollBack => "the whole package goes back",
        FailureAction::Stop => "it stands at UpgradeFailed, nothing is rolled back: fix forward",
        FailureAction::Retry => "it is tried again",
        FailureAction::Nothing => "nothing can fail",
    }
}

/// Whether an error leaves it open what moves.
fn is_open(package: &PackagePlan) -> bool {
    package.change == Change::Settings && !package.errors.is_empty()
}

/// What fails, what becomes of it, and why.
fn failures(package: &PackagePlan) -> Vec<(&'static str, String)> {
    if is_open(package) {
        return Vec::new();
    }
    let on_failure = &package.on_failure;
    let what = if on_failure.hook.is_some() { "a component" } else { "it" };
    let component = (what, format!("{} ({})", failure(on_failure.action), on_failure.why));
    let hook = on_failure.hook.iter().map(|told| ("a hook", told.clone()));
    hook.chain(Some(component).filter(|_| on_failure.components || on_failure.hook.is_none())).collect()
}

fn sign(state: RequirementState) -> &'static str {
    match state {
        RequirementState::Met => "met",
        RequirementState::MetAfter => "waits",
        RequirementState::NotMet => "NOT MET",
        RequirementState::Unknown => "not known here",
    }
}

/// So many characters of a value are shown.
const SHOWN: usize = 60;

fn change(change: &FieldChange) -> String {
    let short = |value: &Value| short(value, SHOWN);
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => {
            let (from, to) = from_difference(from, to, SHOWN);
            format!("{}: {from} → {to}", change.path)
        }
        (None, Some(to)) => format!("{}: {} (new)", change.path, short(to)),
        (Some(from), None) => format!("{}: {} (gone)", change.path, short(from)),
        (None, None) => change.path.clone(),
    }
}

/// Whether a change is told in another place: the version in the heading,
/// requirements with how they stand.
fn is_told(change: &FieldChange) -> bool {
    matches!(change.path.as_str(), "version" | "requires")
}

/// What it comes to: how many Packages and steps there are, and what is not known.
fn summary(plan: &super::Plan) -> String {
    let unknown = plan.unknown.join(", ");
    match (plan.packages.is_empty(), plan.unknown.is_empty()) {
        (true, true) => "Nothing changes.".to_owned(),
        (true, false) => format!("What changes cannot be told: what runs of {unknown} could not be read."),
        (false, true) => format!("{}.", counts(plan)),
        (false, false) => format!("{}; of {unknown} it cannot be told.", counts(plan)),
    }
}

fn counts(plan: &super::Plan) -> String {
    let steps: usize = plan.packages.iter().map(|package| package.steps.len()).sum();
    let plural = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let held = plan.packages.iter().filter(|package| package.refused.is_some()).count();
    let held = if held == 0 { String::new() } else { format!("; {} would not get there", plural(held, "package")) };
    format!("{} changed, {}{held}", plural(plan.packages.len(), "package"), plural(steps, "step"))
}
