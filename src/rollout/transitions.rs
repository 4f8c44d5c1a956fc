//! What becomes of single components, as events: told when the record of one changes.

use std::collections::BTreeMap;

use super::clock::Clock as _;
use super::decision::{Action, Event};
use super::live::Live;
use super::release;
use super::work::Work;
use crate::api::{ComponentRecord, ComponentState, Reason, RecordedComponent};

/// The transitions of this decision. That a component has failed is told with what
/// follows from it for the package.
pub(crate) fn events(work: &Work<'_>, open: Option<(&str, &str)>) -> Vec<Event> {
    let default = ComponentRecord::default();
    let known = work.latest.status.components.iter().map(|known| (known.name.as_str(), known));
    let known: BTreeMap<&str, &ComponentRecord> = known.collect();
    let before = |record: &ComponentRecord| known.get(record.name.as_str()).copied().unwrap_or(&default);
    // Most looks change the state of none.
    let changed = work.status.components.iter().filter(|record| before(record).state != record.state);
    let told = changed.filter(|record| !is_hook(work, &record.name)).filter_map(|record| {
        let (reason, what) = transition(work, before(record), record)?;
        let found = open.filter(|(name, _)| reason == Reason::Suspended && *name == record.name);
        let found = found.map_or_else(String::new, |(_, message)| format!(": {message}"));
        let message = format!("component {} {what}{found}", record.name);
        Some(Event { warning: false, reason, component: Some(record.name.clone()), message })
    });
    let mut told: Vec<Event> = told.chain(removals(work)).collect();
    // What ends lets the next one begin.
    told.sort_by_key(|event| !ends(work, event));
    told
}

/// Whether an event tells of the end of something.
fn ends(work: &Work<'_>, event: &Event) -> bool {
    let record = event.component.as_deref().and_then(|name| work.record(name));
    record.is_some_and(|record| {
        matches!(record.state, ComponentState::Verified | ComponentState::Restored | ComponentState::Removed)
    })
}

/// Releases that are asked to go outside of a rollback.
fn removals<'a>(work: &'a Work<'_>) -> impl Iterator<Item = Event> + 'a {
    let asked = work.actions.iter().filter_map(|action| match action {
        Action::Delete { object, .. } => work.inventory().find(|child| child.key() == object),
        _ => None,
    });
    let components = asked.filter(|child| !release::is_hook(child)).filter_map(Live::component);
    let is_told = |name: &&str| work.record(name).is_none_or(|record| record.state != ComponentState::Removing);
    let reason = if work.snapshot.package.deleting { Reason::Deleting } else { Reason::Progressing };
    components.filter(is_told).map(move |name| Event {
        warning: false,
        reason,
        component: Some(name.to_owned()),
        message: format!("component {name} is being removed"),
    })
}

/// The proof of a hook's run on Argo CD is kept with the records of components.
fn is_hook(work: &Work<'_>, name: &str) -> bool {
    work.latest.component(name).is_some_and(|component| component.hook)
}

fn transition(work: &Work<'_>, before: &ComponentRecord, now: &ComponentRecord) -> Option<(Reason, String)> {
    use ComponentState as State;
    let was = |states: &[State]| states.contains(&before.state);
    let at = |what: &str| format!("{what}{}", version_of(work, &now.name));
    match now.state {
        State::Queued | State::Progressing | State::Verifying if was(&[State::Suspended]) => {
            Some((Reason::Progressing, "goes on".to_owned()))
        }
        State::Queued | State::Progressing | State::Verifying if was(&[State::Waiting]) => {
            let what = match now.moved {
                true => "moves",
                false if was_verified(work, &now.name) => "is to be verified again",
                false => "is to be verified",
            };
            Some((Reason::Progressing, at(what)))
        }
        // What neither moved nor stands on what moved has had no turn.
        State::Verified if now.moved || now.is_started() => Some((Reason::Progressing, at("is verified"))),
        State::Suspended => Some((Reason::Suspended, "is suspended".to_owned())),
        State::Restoring => Some((Reason::RollingBack, format!("goes back{}", earlier(work, &now.name)))),
        State::Restored => Some((Reason::RollingBack, format!("is back{}", earlier(work, &now.name)))),
        State::Removing => Some((Reason::RollingBack, "is being removed".to_owned())),
        State::Removed => Some((Reason::RollingBack, "is removed".to_owned())),
        State::Queued | State::Progressing | State::Verifying | State::Verified | State::Waiting | State::Failed => {
            None
        }
    }
}

/// Whether any revision has verified a component.
fn was_verified(work: &Work<'_>, name: &str) -> bool {
    let is_it = |record: &ComponentRecord| record.name == name && record.verified_at.is_some();
    work.snapshot.revisions.iter().any(|revision| {
        let has_it = revision.status.succeeded && revision.component(name).is_some();
        has_it || revision.status.components.iter().any(is_it)
    })
}

fn version_of(work: &Work<'_>, name: &str) -> String {
    chart(work.latest.component(name))
}

/// What a rollback returns a component to.
fn earlier(work: &Work<'_>, name: &str) -> String {
    let target = work.status.rollback.as_ref().and_then(|rollback| work.history.get(rollback.to));
    chart(target.and_then(|target| target.component(name)))
}

fn chart(component: Option<&RecordedComponent>) -> String {
    let version = component.map(|component| component.chart_version.as_str()).filter(|version| !version.is_empty());
    version.map_or_else(String::new, |version| format!(" (chart {version})"))
}
