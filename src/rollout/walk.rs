//! The way forward: hooks, then one turn after the other, in order.

use std::collections::BTreeSet;

use super::canaries;
use super::evidence::{self, Remembered};
use super::hooks::{self, HookStanding};
use super::operation;
use super::prepare::{self, Prepared};
use super::release;
use super::replace;
use super::turn::{self, Gate, Limits, Standing};
use super::turns::{Turn, turns};
use super::work::Work;
use crate::api::{ComponentRecord, ComponentState, Reason, RecordedComponent, RevisionPhase};
use crate::engine::Manifest;
use crate::rollout::clock::Clock as _;

/// Where a revision stands after one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Charts are awaited; nothing has moved.
    Preparing { reason: Reason, message: String },
    /// A hook runs.
    Hook { name: String, message: String },
    /// Somebody holds the engine of a hook back.
    HookSuspended { name: String, message: String },
    /// A hook failed.
    HookFailed { name: String, message: String },
    /// A component's turn is open.
    Turn { name: String, message: String },
    /// Somebody holds the engine of the component whose turn it is back.
    Suspended { name: String, message: String },
    /// The account in use lacks a right.
    Denied { name: String, message: String },
    /// Nothing keeps the first step of a component's DaemonSets small.
    Unguarded { name: String, message: String },
    /// A component's chart cannot be had.
    NoSource { name: String, message: String },
    /// A component failed.
    Failed { name: String, message: String },
    /// Every component is verified.
    Done,
}

/// Takes the latest revision as far forward as it will go now.
pub(crate) fn forward(work: &mut Work<'_>) -> Stage {
    match prepare::charts(work) {
        Prepared::Waiting { reason, message } => return Stage::Preparing { reason, message },
        Prepared::Ready => {}
    }
    match hooks::run(work) {
        HookStanding::Waiting { name, message } => return Stage::Hook { name, message },
        HookStanding::Suspended { name, message } => return Stage::HookSuspended { name, message },
        HookStanding::Failed { name, message } => return Stage::HookFailed { name, message },
        HookStanding::Done => {}
    }
    work.enter(RevisionPhase::Applying);
    evidence::follow(work);
    let latest = work.latest;
    let limits = work.limits();
    let components: Vec<&RecordedComponent> = latest.spec.components.iter().filter(|c| !c.hook).collect();
    let runs_wanted = components.iter().filter(|component| work.runs_wanted(component));
    let runs_wanted: BTreeSet<&str> = runs_wanted.map(|component| component.name.as_str()).collect();
    let kinds = turns(latest, &work.history, |component| runs_wanted.contains(component.name.as_str()));
    for (position, component) in components.iter().enumerate() {
        let kind = kinds.get(position).copied().unwrap_or(Turn::Move);
        if work.record(&component.name).is_some_and(|record| record.verified_at.is_some()) {
            // What is written next stands on it.
            match runs_wanted.contains(component.name.as_str()) {
                true => release::keep_sources(work, component),
                false => release::keep_as_written(work, std::slice::from_ref(*component)),
            }
            continue;
        }
        let later = components.get(position + 1..).unwrap_or_default();
        match open(work, component, kind, later, limits) {
            Standing::Verified => verified(work, &component.name),
            Standing::Waiting(message) => return Stage::Turn { name: component.name.clone(), message },
            Standing::Suspended(message) => return Stage::Suspended { name: component.name.clone(), message },
            Standing::Denied(message) => return Stage::Denied { name: component.name.clone(), message },
            Standing::Unguarded(message) => return Stage::Unguarded { name: component.name.clone(), message },
            Standing::NoSource(message) => return Stage::NoSource { name: component.name.clone(), message },
            Standing::Failed(message) => return Stage::Failed { name: component.name.clone(), message },
        }
    }
    Stage::Done
}

/// Looks at the turn that is open, and begins no other: its component's name, and why
/// it failed if it did. `None` if none is open.
pub(crate) fn finish_turn(work: &mut Work<'_>) -> Option<(String, Option<String>)> {
    if hooks::is_running(work) {
        hooks::finish(work);
        return None;
    }
    let unverified = |component: &&RecordedComponent| {
        !component.hook && work.record(&component.name).is_none_or(|record| record.verified_at.is_none())
    };
    let component = work.latest.spec.components.iter().find(unverified)?;
    let mut record = work.take_record(&component.name);
    if !record.is_started() && !record.moved {
        return None;
    }
    evidence::follow(work);
    let limits = work.limits();
    let standing = turn::look(work, component, &mut record, limits, Gate::Verified);
    work.put_record(record);
    let failed = match standing {
        Standing::Failed(message) => Some(message),
        Standing::Verified => {
            verified(work, &component.name);
            None
        }
        Standing::Waiting(_)
        | Standing::Suspended(_)
        | Standing::Denied(_)
        | Standing::Unguarded(_)
        | Standing::NoSource(_) => None,
    };
    Some((component.name.clone(), failed))
}

/// The turn of one component whose predecessors are all verified.
fn open(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    kind: Turn,
    later: &[&RecordedComponent],
    limits: Limits,
) -> Standing {
    if kind == Turn::Move && replace::is_held(work, component) {
        let mut record = work.take_record(&component.name);
        record.state = ComponentState::Suspended;
        work.put_record(record);
        return Standing::Suspended("its former release is suspended, and is uninstalled once that is lifted".into());
    }
    let room = if kind == Turn::Move { replace::make_room(work, component) } else { None };
    let mut record = work.take_record(&component.name);
    if kind != Turn::Move {
        operation::inherit(work, &mut record);
    }
    let standing = match kind {
        Turn::Counted => Standing::Verified,
        Turn::VerifyAgain => {
            if !record.is_started() {
                release::begin_turn(work, component, &mut record, false);
            }
            record.start(work.now);
            match evidence::remember(work, component, &mut record) {
                Remembered::Yes => turn::look(work, component, &mut record, limits, Gate::Verified),
                not_yet => not_yet.into(),
            }
        }
        Turn::Move => match room {
            Some(message) => Standing::Waiting(message),
            None => match write(work, component, &mut record, later) {
                Remembered::Yes => turn::look(work, component, &mut record, limits, Gate::Verified),
                not_yet => not_yet.into(),
            },
        },
    };
    work.put_record(record);
    standing
}

/// Writes the wanted manifests, remembering first what `readyWhen` shows now.
fn write(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    record: &mut ComponentRecord,
    later: &[&RecordedComponent],
) -> Remembered {
    if record.moved {
        release::keep_sources(work, component);
    }
    if work.runs_wanted(component) && record.moved {
        return Remembered::Yes;
    }
    if !record.moved {
        match evidence::remember(work, component, record) {
            Remembered::Yes => {}
            not_yet => return not_yet,
        }
        match canaries::remember(work, component) {
            Remembered::Yes => {}
            not_yet => return not_yet,
        }
        match evidence::remember_downstream(work, component, later) {
            Remembered::Yes => {}
            not_yet => return not_yet,
        }
        release::begin_turn(work, component, record, true);
        let now = work.now.as_time();
        // Taking a release over moves nothing, nor does another way to the same chart.
        record.moved = !component.adopted && !has_only_another_source(work, component);
        record.state = ComponentState::Queued;
        record.queued_at.get_or_insert_with(|| now.clone());
        record.applied_at.get_or_insert(now);
    }
    work.apply(component, record);
    Remembered::Yes
}

/// Whether the live release differs from the wanted one in where its chart comes from
/// alone.
fn has_only_another_source(work: &Work<'_>, component: &RecordedComponent) -> bool {
    let Some(child) = work.child(component) else { return false };
    let mut there = component.clone();
    let (Some(wanted), Some(found)) = (there.manifests.last_mut(), release::chart_ref(child)) else { return false };
    let stored = Manifest::from_record(std::mem::take(wanted));
    *wanted = stored.with_chart_ref(Some(found.clone())).into_map();
    release::is_as_written(&there, child)
}

fn verified(work: &mut Work<'_>, name: &str) {
    let now = work.now;
    let mut record = work.take_record(name);
    record.pause(now);
    record.state = ComponentState::Verified;
    record.verified_at = Some(now.as_time());
    work.put_record(record);
}
