//! One component's turn: written, queued, at work, verified, or failed.

use std::time::Duration;

use super::clock::{Clock as _, Now};
use super::evidence::{self, Judged};
use super::release::{Release, ReleaseState};
use super::work::Work;
use crate::api::{ComponentRecord, ComponentState, RecordedComponent};

/// Where a turn stands after one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Something is awaited; the message names it.
    Waiting(String),
    /// It runs the wanted digest, is ready, and its evidence is fresh.
    Verified,
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
    let release = work.release(component, record);
    record.attempts = release.attempts;
    let standing = match release.state {
        ReleaseState::Suspended => {
            record.pause(now);
            record.state = ComponentState::Suspended;
            return Standing::Waiting(release.message);
        }
        ReleaseState::Absent | ReleaseState::Foreign | ReleaseState::Queued => {
            record.state = ComponentState::Queued;
            Standing::Waiting(release.message)
        }
        ReleaseState::Progressing => {
            record.start(now);
            record.state = ComponentState::Progressing;
            Standing::Waiting(release.message)
        }
        ReleaseState::Failed => {
            record.start(now);
            record.state = ComponentState::Progressing;
            failed_attempt(&release, limits)
        }
        ReleaseState::Ready => {
            record.start(now);
            record.release_ready_at.get_or_insert_with(|| now.as_time());
            record.state = ComponentState::Verifying;
            match gate {
                Gate::Release => Standing::Verified,
                Gate::Verified => judge(work, component, record),
            }
        }
    };
    record.run(now);
    settle(work, record, standing, limits, now)
}

/// Attempts that ended before the timeout are forgiven up to the retries; an
/// engine that has given up is not waited for.
fn failed_attempt(release: &Release, limits: Limits) -> Standing {
    if release.exhausted || release.attempts > limits.retries {
        Standing::Failed(release.message.clone())
    } else {
        Standing::Waiting(release.message.clone())
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
        Judged::Failed(message) => Standing::Failed(message),
    }
}

/// The timeout ends a turn whatever it is waiting for; without a started clock
/// (the engine has not begun) there is none.
fn settle(
    work: &mut Work<'_>,
    record: &mut ComponentRecord,
    standing: Standing,
    limits: Limits,
    now: Now,
) -> Standing {
    let standing = match standing {
        Standing::Waiting(message) if record.is_started() => {
            let elapsed = record.elapsed(now);
            match limits.timeout.checked_sub(elapsed) {
                Some(left) if !left.is_zero() => {
                    work.look_again(left);
                    Standing::Waiting(message)
                }
                Some(_) | None => Standing::Failed(format!("not ready within {}: {message}", short(limits.timeout))),
            }
        }
        other => other,
    };
    match &standing {
        Standing::Waiting(_) => {}
        Standing::Verified => record.pause(now),
        Standing::Failed(_) => {
            record.pause(now);
            record.state = ComponentState::Failed;
        }
    }
    standing
}

/// A duration as people write it, to the second.
pub(crate) fn short(duration: Duration) -> String {
    crate::package::duration::GoDuration::from_secs(duration.as_secs()).to_string()
}
