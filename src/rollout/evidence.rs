//! `readyWhen` in a walk: what is remembered before a write, what is followed
//! since, and what it comes to now.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::snapshot::RevisionView;
use super::turn::Standing;
use super::work::Work;
use crate::api::{self, ComponentRecord, RecordedComponent};
use crate::engine::ObjectKey;
use crate::package::definition::parse_ready_when;
use crate::package::names::Namespace;
use crate::ready::evidence::{self, Entry, Freshness, Lookup, Moment, Observation, Verdict, Versions};

/// What the entries of a component come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// All of them hold, with fresh evidence.
    Holds,
    /// One is awaited.
    Waiting { message: String, look_again: Option<Duration> },
    /// The account in use may not read an object.
    Denied(String),
    /// One of them says that the component failed.
    Failed(String),
}

/// Whether what stood there before is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remembered {
    /// It is, or there is nothing to record.
    Yes,
    /// An object has not been read yet: nothing is written before it is.
    NotRead(String),
    /// The account in use may not read an object.
    Denied(String),
    /// Nothing would keep the first step of a DaemonSet small.
    Unguarded(String),
}

impl From<Remembered> for Standing {
    fn from(remembered: Remembered) -> Self {
        match remembered {
            Remembered::Yes => Self::Verified,
            Remembered::NotRead(message) => Self::Waiting(message),
            Remembered::Denied(message) => Self::Denied(message),
            Remembered::Unguarded(message) => Self::Unguarded(message),
        }
    }
}

/// Records what the entries of a component show before its own write or, if it
/// does not move, before the revision's first write upstream of it. A revision
/// that takes over from one that had not ended takes its record over.
pub(crate) fn remember(work: &Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord) -> Remembered {
    if component.ready_when.is_empty() || !record.before.is_empty() {
        return Remembered::Yes;
    }
    if let Some(earlier) = taken_over(work, component) {
        record.before = earlier;
        return Remembered::Yes;
    }
    remember_now(work, component, record)
}

/// The same where something upstream is about to be written by this revision:
/// what an earlier one has seen since its own write says nothing of this one.
fn remember_now(work: &Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord) -> Remembered {
    if component.ready_when.is_empty() || !record.before.is_empty() {
        return Remembered::Yes;
    }
    let mut before = Vec::with_capacity(component.ready_when.len());
    for (position, entry) in (0..).zip(&component.ready_when) {
        let Ok(entry) = parse(component, entry) else { continue };
        match look_up(work, component, &entry) {
            Lookup::Pending => return Remembered::NotRead(format!("{} is being read", entry.target())),
            lookup => {
                let observation = entry.observe(lookup, versions(work.latest));
                if observation.denied {
                    return Remembered::Denied(observation.message);
                }
                before.extend(evidence::remember(position, &observation));
            }
        }
    }
    record.before = before;
    Remembered::Yes
}

/// As long as the engine has not begun with what was written, whatever changes has
/// other causes.
pub(crate) fn remember_anew(work: &Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord) {
    let before = std::mem::take(&mut record.before);
    if remember_now(work, component, record) != Remembered::Yes {
        record.before = before;
    }
}

fn taken_over(work: &Work<'_>, component: &RecordedComponent) -> Option<Vec<api::BeforeRead>> {
    if !work.runs_wanted(component) {
        return None;
    }
    let earlier = work.history.since_verified().iter().rev().filter(|r| r.number() < work.latest.number());
    earlier
        .filter(|revision| revision.component(&component.name).is_some_and(|c| c.ready_when == component.ready_when))
        .find_map(|revision| revision.record(&component.name).filter(|record| !record.before.is_empty()))
        .map(|record| record.before.clone())
}

/// Does the same for everything downstream that will not be written itself.
pub(crate) fn remember_downstream(
    work: &mut Work<'_>,
    component: &RecordedComponent,
    later: &[&RecordedComponent],
) -> Remembered {
    let mut affected: BTreeSet<&str> = BTreeSet::from([component.name.as_str()]);
    let mut records = Vec::new();
    for downstream in later {
        if !downstream.depends_on.iter().any(|name| affected.contains(name.as_str())) {
            continue;
        }
        affected.insert(&downstream.name);
        if !work.runs_wanted(downstream) {
            continue;
        }
        let mut record = work.take_record(&downstream.name);
        match remember_now(work, downstream, &mut record) {
            Remembered::Yes => records.push(record),
            // A downstream object that may not be read is reported in its own turn.
            Remembered::Denied(_) | Remembered::Unguarded(_) => {}
            not_read @ Remembered::NotRead(_) => return not_read,
        }
    }
    records.into_iter().filter(|record| !record.before.is_empty()).for_each(|record| work.put_record(record));
    Remembered::Yes
}

/// Keeps the records up to date with what is seen now.
pub(crate) fn follow(work: &mut Work<'_>) {
    let latest = work.latest;
    for component in latest.spec.components.iter().filter(|component| !component.ready_when.is_empty()) {
        let waiting = |record: &&ComponentRecord| !record.before.is_empty() && record.verified_at.is_none();
        let Some(mut record) = work.record(&component.name).filter(waiting).cloned() else { continue };
        for before in &mut record.before {
            let entry = component.ready_when.get(before.entry as usize).and_then(|e| parse(component, e).ok());
            if let Some(entry) = entry {
                let observation = entry.observe(look_up(work, component, &entry), versions(latest));
                evidence::follow(before, &observation);
            }
        }
        work.put_record(record);
    }
}

/// What the entries come to, with fresh evidence.
pub(crate) fn judge(work: &Work<'_>, component: &RecordedComponent, record: &ComponentRecord) -> Judged {
    let freshness = Freshness::Fresh {
        release_ready_at: record.release_ready_at.as_ref().map(|time| by_own_clock(work, time)),
        turn_began: record.turn_began.as_ref().map(|time| by_own_clock(work, time)),
        version_changed: is_first_of_its_version(work),
    };
    let mut verdicts = Vec::with_capacity(component.ready_when.len());
    for (position, written) in (0..).zip(&component.ready_when) {
        let entry = match parse(component, written) {
            Ok(entry) => entry,
            Err(message) => return Judged::Failed(message),
        };
        let observation = entry.observe(look_up(work, component, &entry), versions(work.latest));
        let before = record.before.iter().find(|before| before.entry == position);
        let moment = Moment { now: work.now.time, freshness };
        verdicts.push(evidence::judge(&entry, &observation, before, moment));
    }
    worst(work, verdicts)
}

/// Whether nothing has been written for the wanted version since that which runs was
/// first: what names the version cannot be left over then. A rollback takes back
/// what was written, not what was reported meanwhile.
fn is_first_of_its_version(work: &Work<'_>) -> bool {
    let spec = &work.latest.spec;
    let verified = work.history.verified().map_or(0, RevisionView::number);
    let earlier = work.history.after(verified).iter().filter(|revision| revision.number() < spec.number);
    let mut same = earlier.filter(|revision| revision.spec.version == spec.version);
    let was_taken_back = work.status.rollback.as_ref().is_some_and(|rollback| rollback.finished_at.is_some());
    spec.version != spec.from_version && !was_taken_back && !same.any(RevisionView::touched_anything)
}

/// A time on record as this process can vouch for it.
fn by_own_clock(work: &Work<'_>, at: &api::Time) -> Timestamp {
    let since = SignedDuration::try_from(work.now.at_least_since(at)).unwrap_or_default();
    work.now.time.checked_sub(since).unwrap_or(work.now.time)
}

/// A failure counts before anything that is only awaited.
fn worst(work: &Work<'_>, verdicts: Vec<Verdict>) -> Judged {
    let mut worst = Judged::Holds;
    for verdict in verdicts {
        match verdict {
            Verdict::Failed { message } => return Judged::Failed(message),
            Verdict::Denied { message } => worst = Judged::Denied(message),
            Verdict::Waiting { message, until } if worst == Judged::Holds => {
                let left = until.map(|at| at.duration_since(work.now.time));
                let look_again = left.and_then(|left| Duration::try_from(left).ok());
                worst = Judged::Waiting { message, look_again };
            }
            Verdict::Waiting { .. } | Verdict::Ready => {}
        }
    }
    worst
}

/// What is still awaited of a component at the end of a rollback, where fresh
/// evidence is not asked for.
pub(crate) fn awaited_now(work: &Work<'_>, target: &RevisionView, component: &RecordedComponent) -> Option<String> {
    component.ready_when.iter().find_map(|written| {
        let entry = match parse(component, written) {
            Ok(entry) => entry,
            Err(message) => return Some(message),
        };
        let observation: Observation = entry.observe(look_up(work, component, &entry), versions(target));
        let moment = Moment { now: work.now.time, freshness: Freshness::Any };
        match evidence::judge(&entry, &observation, None, moment) {
            Verdict::Ready => None,
            Verdict::Waiting { message, .. } | Verdict::Denied { message } | Verdict::Failed { message } => {
                Some(message)
            }
        }
    })
}

fn versions(revision: &RevisionView) -> Versions<'_> {
    Versions { wanted: &revision.spec.version, from: &revision.spec.from_version }
}

fn parse(component: &RecordedComponent, entry: &api::ReadyWhen) -> Result<Entry, String> {
    let namespace = Namespace::parse(&component.release.namespace).map_err(|error| error.to_string())?;
    let entry = parse_ready_when(entry, &namespace)
        .map_err(|violations| violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    Entry::parse(&entry).map_err(|error| error.to_string())
}

fn look_up<'a>(work: &Work<'a>, component: &RecordedComponent, entry: &Entry) -> &'a Lookup {
    let target = entry.target();
    let key = ObjectKey {
        api_version: target.api_version.clone(),
        kind: target.kind.clone(),
        namespace: if target.namespace.is_empty() {
            component.release.namespace.clone()
        } else {
            target.namespace.clone()
        },
        name: target.name.clone(),
    };
    work.snapshot.objects.get(&key).unwrap_or(&Lookup::Pending)
}
