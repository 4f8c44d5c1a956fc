//! The steps of a Package, from what happened to it when the commit was played.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Action, FieldChange, Sides, Step, gates, rollout};
use crate::package::definition::{Component, Definition};
use crate::rehearse::scene::chart_version;
use crate::rehearse::timeline::{Moment, What};

/// What a removal waits for.
const ALL_READY: &str = "all that stays is ready";

/// The steps in order, and what changes of components that no step is about.
pub fn of(
    sides: &Sides<'_>,
    moments: &[&Moment],
    mut changes: BTreeMap<String, Vec<FieldChange>>,
) -> (Vec<Step>, Vec<FieldChange>) {
    let mut walk = Walk { sides, steps: Vec::new(), replaced: BTreeSet::new(), handed_over: BTreeSet::new() };
    for moment in moments {
        if let Some(component) = &moment.component {
            walk.take(component, &moment.what);
        }
    }
    let mut steps = walk.steps;
    for step in &mut steps {
        if step.action != Action::Remove {
            step.changes = changes.remove(&step.component).unwrap_or_default();
        }
        let lists = step.changes.iter().filter(|change| replaces_a_list(change));
        let warnings: Vec<String> =
            lists.map(|change| format!("the list at `{}` is replaced as a whole", change.path)).collect();
        step.warnings.extend(warnings);
    }
    let elsewhere = |(component, changes): (String, Vec<FieldChange>)| {
        changes
            .into_iter()
            .map(move |change| FieldChange { path: format!("components.{component}.{}", change.path), ..change })
    };
    (steps, changes.into_iter().flat_map(elsewhere).collect())
}

fn replaces_a_list(change: &FieldChange) -> bool {
    let is_list =
        |side: &Option<Value>| side.as_ref().is_some_and(|value| value.as_array().is_some_and(|list| !list.is_empty()));
    change.path.starts_with("values.") && is_list(&change.from) && is_list(&change.to)
}

struct Walk<'a> {
    sides: &'a Sides<'a>,
    steps: Vec<Step>,
    replaced: BTreeSet<String>,
    handed_over: BTreeSet<String>,
}

impl Walk<'_> {
    fn take(&mut self, component: &str, what: &What) {
        match what {
            What::HookRuns => self.add(Action::RunHook, component, (None, None), &[]),
            What::Moves { from, to, after } => {
                let action = match from {
                    None if self.replaced.contains(component) => Action::Replace,
                    None if self.is_handed_over(component) => Action::HandOver,
                    None => Action::Install,
                    Some(_) => Action::Upgrade,
                };
                self.add(action, component, (from.clone(), Some(to.clone())), after);
            }
            What::VerifiedAgain { after } => self.add(Action::VerifyAgain, component, (None, None), after),
            What::Uninstalls if self.is_wanted(component) => {
                self.replaced.insert(component.to_owned());
            }
            What::Uninstalls => self.add(Action::Remove, component, (None, None), &[]),
            What::HandsOver => {
                if let Some(component) = self.definition(false).and_then(|from| gates::component(from, component)) {
                    let release = release(component);
                    self.handed_over.insert(release);
                }
            }
            What::Committed { .. }
            | What::Withdrawn
            | What::Waits { .. }
            | What::Begins { .. }
            | What::Fetched { .. }
            | What::HookSucceeded { .. }
            | What::HookFailed { .. }
            | What::AttemptFailed { .. }
            | What::ReleaseReady { .. }
            | What::RollsOut { .. }
            | What::Verified { .. }
            | What::GoesBack { .. }
            | What::IsBack { .. }
            | What::Uninstalled { .. }
            | What::GoesOn
            | What::Told { .. }
            | What::Gone
            | What::Restarted => {}
        }
    }

    fn definition(&self, after: bool) -> Option<&Definition> {
        let side = if after { self.sides.to } else { self.sides.from };
        side.map(|package| &package.definition)
    }

    /// Whether the Package goes on having the component.
    fn is_wanted(&self, component: &str) -> bool {
        self.definition(true).is_some_and(|to| gates::component(to, component).is_some())
    }

    /// Whether another component, of this Package or of one that goes, had the
    /// release before.
    fn is_handed_over(&self, component: &str) -> bool {
        let Some(wanted) = self.definition(true).and_then(|to| gates::component(to, component)) else { return false };
        let release = release(wanted);
        if self.handed_over.contains(&release) {
            return true;
        }
        let others = self.sides.states.0.packages.iter().flat_map(|package| &package.definition.components);
        others.filter(|other| !other.hook).any(|other| self::release(other) == release)
    }

    fn add(&mut self, action: Action, component: &str, versions: (Option<String>, Option<String>), after: &[String]) {
        if self.steps.iter().any(|step| step.component == component && step.action == action) {
            return;
        }
        let step = Step {
            action,
            component: component.to_owned(),
            versions: self.versions(action, component, versions),
            gate: self.gate(action, after),
            rollout: self.rollout(action, component),
            changes: Vec::new(),
            warnings: self.warnings(action, component),
        };
        self.steps.push(step);
    }

    fn versions(
        &self,
        action: Action,
        component: &str,
        written: (Option<String>, Option<String>),
    ) -> (Option<String>, Option<String>) {
        let package = |after: bool| self.definition(after).map(|definition| definition.version.to_string());
        let chart = |after: bool| {
            let component = self.definition(after).and_then(|definition| gates::component(definition, component));
            component.map(|component| chart_version(component).to_owned()).filter(|version| !version.is_empty())
        };
        match action {
            Action::RunHook => (package(false), package(true)),
            Action::Remove => (chart(false), None),
            Action::VerifyAgain => (None, chart(true)),
            Action::Install | Action::Upgrade | Action::HandOver | Action::Replace => {
                (written.0.or_else(|| chart(false).filter(|_| action != Action::Install)), written.1)
            }
        }
    }

    /// What is waited for: the step before, for a package moves one component
    /// at a time, and what the component depends on.
    fn gate(&self, action: Action, after: &[String]) -> Vec<String> {
        let Some(definition) = self.definition(true).or_else(|| self.definition(false)) else { return Vec::new() };
        let mut gate = Vec::new();
        let mut told = BTreeSet::new();
        for name in after {
            if told.insert(name.clone()) {
                gate.extend(gates::verified(definition, name));
            }
        }
        let Some(before) = self.steps.last() else {
            match self.sides.to {
                Some(_) if action == Action::Remove => gate.push(ALL_READY.to_owned()),
                Some(_) if gate.is_empty() => gate.push("every chart is there, in its version".to_owned()),
                Some(_) | None => {}
            }
            return gate;
        };
        match before.action {
            Action::RunHook => gate.push(format!("hook `{}` has succeeded", before.component)),
            Action::Remove => gate.push(format!("`{}` and all that it had are gone", before.component)),
            Action::Install | Action::Upgrade | Action::VerifyAgain | Action::HandOver | Action::Replace => {
                if told.insert(before.component.clone()) {
                    gate.extend(gates::verified(definition, &before.component));
                }
            }
        }
        if action == Action::Remove && before.action != Action::Remove && self.sides.to.is_some() {
            gate.push(ALL_READY.to_owned());
        }
        gate
    }

    /// Only an upgrade replaces pods: what is installed has none.
    fn rollout(&self, action: Action, component: &str) -> Option<String> {
        let component = self.definition(true).and_then(|to| gates::component(to, component))?;
        component.canary.as_ref().filter(|_| action == Action::Upgrade).map(rollout::told)
    }

    fn warnings(&self, action: Action, component: &str) -> Vec<String> {
        let before = self.definition(false).and_then(|from| gates::component(from, component));
        match action {
            Action::Remove | Action::Replace if before.is_some_and(|component| component.delete_data) => {
                vec!["its volume claims and CRDs go with it: install.deleteData is true".to_owned()]
            }
            Action::Remove => vec!["its volume claims, CRDs and namespace stay".to_owned()],
            Action::Replace => {
                vec!["everything that it has is deleted and made anew; volume claims and CRDs stay".to_owned()]
            }
            Action::RunHook | Action::Install | Action::Upgrade | Action::VerifyAgain | Action::HandOver => Vec::new(),
        }
    }
}

fn release(component: &Component) -> String {
    format!("{}/{}", component.namespace, component.release_name)
}
