//! One component's turn: written, queued, at work, verified, or failed.

use std::time::Duration;

use super::canaries;
use super::clock::{Clock as _, Now};
use super::evidence::{self, Judged};
use super::operation;
use super::release::Look;
use super::work::Work;
use super::workloads;
use crate::api::{ComponentRecord, ComponentState, Engine, RecordedComponent};
pub(crate) use crate::clock::short;
use crate::engine::Manifest;
use crate::ready::release::{Failure, Release, ReleaseState, Trouble};

/// Where a turn stands after one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Something is awaited; the message names it.
    Waiting(String),
    /// Somebody holds the engine back, and the clock stands.
    Suspended(String),
    /// It runs the wanted digest, is ready, and its evidence is fresh.
    Verified,
    /// It cannot go on because the account in use lacks a right.
    Denied(String),
    /// Nothing keeps the first step of its DaemonSets small.
    Unguarded(String),
    /// Its chart cannot be had, or not be rendered.
    NoSource(String),
    /// It failed.
    Failed(String),
}

/// Time a turn may take and failures it may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub timeout: Duration,
    pub retries: u32,
}

/// What a turn demands beyond the release itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The release, `readyWhen` with fresh evidence, and the canary.
    Verified,
    /// The release alone: a step of a rollback.
    Release,
}

/// Looks at a component whose wanted manifests are written, or need not be.
pub(crate) fn look(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    record: &mut ComponentRecord,
    limits: Limits,
    gate: Gate,
) -> Standing {
    let now = work.now;
    let limits = Limits { timeout: limits.timeout.saturating_add(canaries::allowance(work, component)), ..limits };
    let Look { release, lacks_operation } = work.release(component, record, gate);
    record.attempts = release.attempts;
    let state = release.state.clone();
    if matches!(state, ReleaseState::Failed(_)) {
        record.last_failure.clone_from(&release.message);
    }
    let grace = if record.last_failure.is_empty() { verdict_in(&release) } else { Duration::ZERO };
    if state == ReleaseState::Queued && record.moved && !record.is_started() && gate == Gate::Verified {
        evidence::remember_anew(work, component, record);
    }
    let standing = of_release(work, component, record, release, limits);
    if state == ReleaseState::Suspended {
        canaries::pause_component(work, component);
        return standing;
    }
    let standing = match canaries::judge(work, component, &state, limits) {
        Some(failed @ Standing::Failed(_)) => failed,
        // What has failed is told before what is awaited because of it.
        Some(canary) if record.is_started() && !matches!(state, ReleaseState::Failed(_)) => canary,
        Some(_) | None => standing,
    };
    let settled = state == ReleaseState::Ready || (gate == Gate::Verified && !record.moved);
    let standing = match (canaries::let_go_of_lost(work, component, settled), standing) {
        (Some(message), Standing::Verified) => Standing::Waiting(message),
        (_, standing) => standing,
    };
    let standing = match standing {
        Standing::Verified => workloads::awaited(work, component).unwrap_or(Standing::Verified),
        other => other,
    };
    let standing = match (standing, gate) {
        (Standing::Verified, Gate::Verified) => judge(work, component, record),
        (Standing::Waiting(message), Gate::Verified)
            if matches!(state, ReleaseState::Progressing | ReleaseState::Ready) =>
        {
            said_to_have_failed(work, component, record).unwrap_or(Standing::Waiting(message))
        }
        (standing, Gate::Verified | Gate::Release) => standing,
    };
    record.run(now);
    let standing = settle(work, record, standing, Bound { limits, grace }, now);
    // What has failed is asked for once more only where nothing else is to be done.
    if lacks_operation && (!matches!(standing, Standing::Failed(_)) || work.has_failed_first_install()) {
        operation::ask(work, component, record);
    }
    standing
}

/// Where the release alone stands.
fn of_release(
    work: &Work<'_>,
    component: &RecordedComponent,
    record: &mut ComponentRecord,
    release: Release,
    limits: Limits,
) -> Standing {
    let now = work.now;
    if !matches!(release.state, ReleaseState::Ready | ReleaseState::Suspended) && !release.is_looked_at_again {
        // What lasts has to last from when it is ready again.
        record.release_ready_at = None;
    }
    match release.state {
        ReleaseState::Suspended => {
            record.pause(now);
            record.state = ComponentState::Suspended;
            Standing::Suspended(release.message)
        }
        ReleaseState::Absent | ReleaseState::Outdated if record.moved => {
            // It was decided in this very look, or shortly before, that it is.
            record.state = ComponentState::Queued;
            let object = component.manifests.last().map(|manifest| Manifest::from_record(manifest.clone()).key());
            Standing::Waiting(
                object.map_or(release.message, |key| format!("{}/{} is being written", key.kind, key.name)),
            )
        }
        ReleaseState::Absent
        | ReleaseState::Foreign(_)
        | ReleaseState::Deleting
        | ReleaseState::Outdated
        | ReleaseState::Queued => {
            record.state = ComponentState::Queued;
            waiting(work, release.trouble, release.message)
        }
        ReleaseState::Progressing => {
            record.start(now);
            record.state = ComponentState::Progressing;
            waiting(work, release.trouble, release.message)
        }
        ReleaseState::Failed(failure) => {
            record.start(now);
            record.state = ComponentState::Progressing;
            let over = failure == Failure::GivenUp || release.attempts > limits.retries;
            let message = release.message;
            if over { Standing::Failed(message) } else { waiting(work, release.trouble, message) }
        }
        ReleaseState::Ready => {
            record.start(now);
            record.release_ready_at.get_or_insert_with(|| now.as_time());
            record.state = ComponentState::Verifying;
            Standing::Verified
        }
    }
}

/// On Argo CD no chart is fetched beforehand, so it is missed only now. On Flux it
/// was there, and is away for a moment at the start of many moves.
fn waiting(work: &Work<'_>, trouble: Option<Trouble>, message: String) -> Standing {
    match (work.latest.spec.engine, trouble) {
        (Engine::Argo, Some(Trouble::NoSource)) => Standing::NoSource(message),
        (Engine::Argo | Engine::Flux, _) => Standing::Waiting(message),
    }
}

/// A `failed` expression that holds, with fresh evidence, is not waited for until
/// the engine is done: it may be waiting for the very same object.
fn said_to_have_failed(work: &Work<'_>, component: &RecordedComponent, record: &ComponentRecord) -> Option<Standing> {
    match evidence::judge(work, component, record) {
        Judged::Failed(message) => Some(Standing::Failed(message)),
        Judged::Holds | Judged::Waiting { .. } | Judged::Denied(_) => None,
    }
}

fn judge(work: &mut Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord) -> Standing {
    match evidence::judge(work, component, record) {
        Judged::Holds => Standing::Verified,
        Judged::Waiting { message, look_again } => {
            if let Some(after) = look_again {
                work.look_again(after);
            }
            Standing::Waiting(message)
        }
        Judged::Denied(message) => Standing::Denied(message),
        Judged::Failed(message) => Standing::Failed(message),
    }
}

/// For how much longer than the timeout an engine that is about to say what it lacks is
/// listened to: its own timeout began a moment after our clock.
const VERDICT: Duration = Duration::from_secs(5);

pub(crate) fn verdict_in(release: &Release) -> Duration {
    if release.verdict_is_due { VERDICT } else { Duration::ZERO }
}

/// The time a turn may take, and for how much longer a verdict is awaited.
#[derive(Clone, Copy)]
struct Bound {
    limits: Limits,
    grace: Duration,
}

impl Bound {
    fn left(self, record: &ComponentRecord, now: Now) -> Duration {
        self.limits.timeout.saturating_add(self.grace).saturating_sub(record.elapsed(now))
    }
}

/// The timeout ends a turn whatever it is waiting for; without a started clock
/// (the engine has not begun) there is none.
fn settle(work: &mut Work<'_>, record: &mut ComponentRecord, standing: Standing, bound: Bound, now: Now) -> Standing {
    let standing = match standing {
        Standing::Waiting(message)
        | Standing::Denied(message)
        | Standing::Unguarded(message)
        | Standing::NoSource(message)
            if record.is_started() && bound.left(record, now).is_zero() =>
        {
            let timeout = short(bound.limits.timeout);
            Standing::Failed(format!("not ready within {timeout}: {}", with_cause(record, message)))
        }
        other => other,
    };
    match &standing {
        Standing::Waiting(_) | Standing::NoSource(_) | Standing::Unguarded(_) | Standing::Denied(_)
            if record.is_started() =>
        {
            work.look_again(bound.left(record, now));
        }
        Standing::Waiting(_)
        | Standing::Suspended(_)
        | Standing::NoSource(_)
        | Standing::Unguarded(_)
        | Standing::Denied(_) => {}
        Standing::Verified => record.pause(now),
        Standing::Failed(_) => {
            record.pause(now);
            record.state = ComponentState::Failed;
        }
    }
    standing
}

/// What is awaited, and why the engine's last attempt failed: it may be in the middle of
/// the next one.
fn with_cause(record: &ComponentRecord, message: String) -> String {
    let is_told = |cause: &str| cause.is_empty() || message.contains(cause);
    match record.last_failure.as_str() {
        cause if is_told(cause) => message,
        cause => format!("{message}; the attempt before it: {}", without_object(cause, &message)),
    }
}

/// A cause without the name of the object, where the message has it already.
fn without_object<'a>(cause: &'a str, message: &str) -> &'a str {
    let named = cause.split_once(": ").filter(|(object, _)| message.starts_with(object));
    named.map_or(cause, |(_, rest)| rest)
}
