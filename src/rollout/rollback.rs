//! The way back: the whole package to an earlier revision.

use std::collections::{BTreeMap, BTreeSet};

use super::canaries;
use super::clock::Clock as _;
use super::evidence::{self, Remembered};
use super::history::{History, Unsafe};
use super::live::Live;
use super::release;
use super::removal::{self, Removal};
use super::replace;
use super::snapshot::RevisionView;
use super::turn::{self, Gate, Limits, Standing, short};
use super::work::{Work, timeout_of};
use crate::api::{Claim, ComponentRecord, ComponentState, Reason, RecordedComponent, RevisionPhase, RollbackRecord};
use crate::engine::{Manifest, rollback_form};

/// Where a rollback stands after one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// A step is under way.
    Step { name: String, message: String },
    /// Everything is back; the check at the end waits.
    Check { message: String },
    /// The earlier revision runs again.
    Done,
    /// It could not be restored; without a name: the check at the end failed.
    Failed { name: Option<String>, message: String },
}

/// Why a failed upgrade is not rolled back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoWayBack {
    /// Nothing ever succeeded.
    FirstInstall,
    /// A revision since then forbids it.
    Unsafe(Unsafe),
}

/// Whether the failed latest revision is rolled back, and to which one: only if
/// **every** revision after *T* that started a hook or moved anything says
/// `safe: true` and admits *T*'s version.
pub(crate) fn way_back<'a>(work: &Work<'a>) -> Result<&'a RevisionView, NoWayBack> {
    let verified = work.history.verified().ok_or(NoWayBack::FirstInstall)?;
    let decided_now = RevisionView { status: work.status.clone(), ..work.latest.clone() };
    let since = work.history.since_verified().iter().filter(|revision| revision.number() < work.latest.number());
    let since: Vec<&RevisionView> = since.chain([&decided_now]).collect();
    History::may_return_to(verified, since.into_iter()).map_err(NoWayBack::Unsafe)?;
    Ok(verified)
}

/// Records that the package is rolled back.
pub(crate) fn begin(work: &mut Work<'_>, to: &RevisionView, requested: Option<String>, cause: String) {
    work.enter(RevisionPhase::RollingBack);
    work.status.reason = Some(Reason::RollingBack);
    let message = format!("rolling back to {} (revision {}): {cause}", to.spec.version, to.number());
    work.event(true, Reason::RollingBack, message);
    tell_what_stays(work, to);
    work.status.rollback = Some(RollbackRecord { to: to.number(), requested, cause, ..RollbackRecord::default() });
    let stale = work.status.components.iter().map(|record| record.name.clone()).collect::<Vec<_>>();
    for name in stale {
        let mut record = work.take_record(&name);
        record.reset();
        (record.release_ready_at, record.verified_at, record.attempts) = (None, None, 0);
        record.last_failure.clear();
        (record.token, record.token_succeeded) = (None, false);
        record.state = ComponentState::Waiting;
        work.put_record(record);
    }
}

/// What is new in this package, but older than its revision.
fn tell_what_stays(work: &mut Work<'_>, target: &RevisionView) {
    let inherited = inherited(work, target);
    let stays = |child: &&Live| release::claim(child).is_some_and(|claim| inherited.contains(claim));
    let names: Vec<&str> = work.inventory().filter(stays).filter_map(Live::component).collect();
    if !names.is_empty() {
        let message = format!("left as it is, since another package had its release before: {}", names.join(", "));
        work.event(false, Reason::RollingBack, message);
    }
}

/// Takes a rollback as far as it will go now: touched components in reverse
/// order, each gated on its release alone, those new since then removed at
/// their place; then what is missing, forward; then every `readyWhen`.
pub(crate) fn backward(work: &mut Work<'_>, target: &RevisionView) -> Return {
    let limits = Limits { timeout: timeout_of(target), retries: target.spec.retries };
    let settled = |step: &Step<'_>| work.record(step.name()).is_some_and(|record| is_settled(record.state));
    let left: Vec<Step<'_>> = steps(work, target).into_iter().filter(|step| !settled(step)).collect();
    for step in in_order(work, left) {
        match take(work, &step, limits) {
            Standing::Verified => {}
            Standing::Waiting(message)
            | Standing::Suspended(message)
            | Standing::Denied(message)
            | Standing::Unguarded(message)
            | Standing::NoSource(message) => {
                return Return::Step { name: step.name().to_owned(), message };
            }
            Standing::Failed(message) => {
                return Return::Failed { name: Some(step.name().to_owned()), message };
            }
        }
    }
    check(work, target, limits)
}

fn is_settled(state: ComponentState) -> bool {
    matches!(state, ComponentState::Restored | ComponentState::Removed)
}

/// One step of the way back.
enum Step<'a> {
    /// Its former manifests are written back.
    Restore(&'a RecordedComponent),
    /// It is new since then: removed.
    Remove(String),
}

impl Step<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Restore(component) => &component.name,
            Self::Remove(name) => name,
        }
    }
}

/// The steps in order. What runs is restored dependents first; what is missing
/// comes back after what it depends on.
fn steps<'a>(work: &Work<'_>, target: &'a RevisionView) -> Vec<Step<'a>> {
    let present = |component: &&RecordedComponent| {
        work.child(component).is_some()
            || replace::holder(work, component).is_some()
            || work.record(&component.name).is_some_and(|record| record.queued_at.is_some())
    };
    let targets: Vec<&RecordedComponent> = target.spec.components.iter().filter(|c| !c.hook).collect();
    let new = new_since(work, target);
    let touched = touched(work);
    let is_touched =
        |component: &&RecordedComponent| touched.contains(component.name.as_str()) || !work.runs_wanted(component);
    let restore = targets.iter().rev().copied().filter(present).filter(is_touched);
    let missing = targets.iter().copied().filter(|component| !present(component));
    new.into_iter().map(Step::Remove).chain(restore.map(Step::Restore)).chain(missing.map(Step::Restore)).collect()
}

/// What is new since then goes as soon as nothing that is still to be taken back
/// depends on it as it runs now; everything else keeps its order.
fn in_order<'a>(work: &Work<'_>, left: Vec<Step<'a>>) -> Vec<Step<'a>> {
    let mut needed: BTreeMap<&str, usize> = BTreeMap::new();
    for name in left.iter().flat_map(|step| needs(work, step.name())) {
        *needed.entry(name).or_default() += 1;
    }
    let (mut removals, restores): (Vec<Step<'a>>, Vec<Step<'a>>) =
        left.into_iter().partition(|step| matches!(step, Step::Remove(_)));
    let mut restores = restores.into_iter();
    let mut ordered = Vec::with_capacity(removals.len() + restores.len());
    loop {
        let is_free = |step: &Step<'_>| needed.get(step.name()).is_none_or(|others| *others == 0);
        // Only a circle, which parsing refuses, would leave but removals that are needed.
        let next = match removals.iter().position(is_free) {
            Some(free) => Some(removals.remove(free)),
            None => restores.next().or_else(|| (!removals.is_empty()).then(|| removals.remove(0))),
        };
        let Some(step) = next else { return ordered };
        for name in needs(work, step.name()) {
            needed.entry(name).and_modify(|others| *others -= 1);
        }
        ordered.push(step);
    }
}

/// What a component that is there depends on, as the newest revision that knows
/// it has it.
fn needs<'a>(work: &Work<'a>, name: &str) -> impl Iterator<Item = &'a str> {
    let there = !work.children_of(name).is_empty();
    let recorded = work.newest(name).filter(|_| there);
    recorded.into_iter().flat_map(|component| &component.depends_on).map(String::as_str)
}

/// Components with a child, or a record of one, that the target does not have;
/// dependents first.
fn new_since(work: &Work<'_>, target: &RevisionView) -> Vec<String> {
    let known: BTreeSet<&str> = target.spec.components.iter().map(|component| component.name.as_str()).collect();
    let kept: BTreeSet<&str> = target.spec.components.iter().filter(|c| !c.hook).map(|c| c.name.as_str()).collect();
    // What was only taken over runs as before: it is left as it is.
    let latest = work.latest.spec.components.iter().filter(|component| component.adopted);
    let taken_over: BTreeSet<&str> = latest.map(|component| component.name.as_str()).collect();
    let claims: BTreeSet<&Claim> = target.spec.components.iter().filter(|c| !c.hook).map(|c| &c.release).collect();
    let inherited = inherited(work, target);
    // The release of a hook is kept for its logs until the next success, one that
    // has another name now is handed back, and one that another Package had stays.
    let is_new = |child: &&Live| {
        let name = child.component().unwrap_or_default();
        let stays = |claim: &Claim| claims.contains(claim) || inherited.contains(claim);
        let stays = || release::claim(child).is_some_and(stays);
        !release::is_hook(child) && !kept.contains(name) && !taken_over.contains(name) && !stays()
    };
    let mut children: Vec<&Live> = work.inventory().filter(is_new).collect();
    children.sort_by_key(|child| std::cmp::Reverse(child.wave()));
    let leaving = work.status.components.iter().filter(|record| record.state == ComponentState::Removing);
    let leaving = leaving.map(|record| record.name.as_str()).filter(|name| !known.contains(name));
    let mut seen = BTreeSet::new();
    let names = leaving.chain(children.into_iter().filter_map(Live::component));
    names.filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}

/// Releases that were handed over by other Packages since the target.
fn inherited<'a>(work: &'a Work<'_>, target: &RevisionView) -> BTreeSet<&'a Claim> {
    let since = work.snapshot.revisions.iter().filter(|revision| revision.number() >= target.number());
    since.flat_map(|revision| &revision.status.inherits).collect()
}

/// What was written, or taken back, since then.
fn touched<'a>(work: &'a Work<'_>) -> BTreeSet<&'a str> {
    let stepped = |record: &&ComponentRecord| record.moved || record.state == ComponentState::Restoring;
    let own = work.status.components.iter().filter(stepped);
    let earlier = work.history.since_verified().iter().flat_map(|revision| &revision.status.components);
    own.chain(earlier.filter(|record| record.moved)).map(|record| record.name.as_str()).collect()
}

fn take(work: &mut Work<'_>, step: &Step<'_>, limits: Limits) -> Standing {
    match step {
        Step::Restore(component) => restore(work, component, limits),
        Step::Remove(name) => remove(work, name, limits),
    }
}

fn restore(work: &mut Work<'_>, component: &RecordedComponent, limits: Limits) -> Standing {
    if let Some(message) = replace::make_room(work, component) {
        // From here on it has its place among what is restored, whoever is gone meanwhile.
        let mut record = work.take_record(&component.name);
        record.queued_at.get_or_insert(work.now.as_time());
        work.put_record(record);
        return Standing::Waiting(message);
    }
    let mut record = work.take_record(&component.name);
    let restored = restored_form(component, work.child(component));
    let written = work.child(component).is_some_and(|child| release::is_as_written(&restored, child));
    let lifted = work.child(component).is_some_and(|child| !release::is_suspended(child));
    if record.state == ComponentState::Waiting {
        // What is written already brings no template that could be awaited.
        if !written {
            match canaries::remember(work, &restored) {
                Remembered::Yes => {}
                not_yet => return not_yet.into(),
            }
        }
        release::begin_turn(work, &restored, &mut record, !written);
        let now = work.now.as_time();
        record.state = ComponentState::Restoring;
        record.queued_at = Some(now.clone());
        record.applied_at = Some(now);
    }
    if !written || !lifted {
        write(work, &restored, &mut record);
    }
    let standing = turn::look(work, &restored, &mut record, limits, Gate::Release);
    record.state = match standing {
        Standing::Verified => ComponentState::Restored,
        Standing::Failed(_) => ComponentState::Failed,
        Standing::Waiting(_)
        | Standing::Suspended(_)
        | Standing::Denied(_)
        | Standing::Unguarded(_)
        | Standing::NoSource(_) => ComponentState::Restoring,
    };
    work.put_record(record);
    standing
}

/// Keeps what a rollback has restored as it was written, and what it has not
/// touched as it was.
pub(crate) fn keep(work: &mut Work<'_>, target: &RevisionView) {
    let kept = |component: &RecordedComponent| match work.child(component) {
        Some(child) if release::is_as_written(component, child) => component.clone(),
        child => restored_form(component, child),
    };
    let restored: Vec<RecordedComponent> = target.spec.components.iter().map(kept).collect();
    release::keep_as_written(work, &restored);
    canaries::keep(work, &restored);
}

/// The stored manifests with CRDs left alone, nobody's suspension in the way, and
/// nothing waited for that has to wait for others.
pub(crate) fn restored_form(component: &RecordedComponent, child: Option<&Live>) -> RecordedComponent {
    let mut restored = component.clone();
    let is_waited_for = release::is_waited_for_on_the_way_back(component, child);
    for manifest in &mut restored.manifests {
        *manifest = rollback_form(&Manifest::from_record(std::mem::take(manifest)), is_waited_for).into_map();
    }
    restored
}

fn write(work: &mut Work<'_>, component: &RecordedComponent, record: &mut ComponentRecord) {
    for manifest in &component.manifests {
        let manifest = work.with_settings(component, Manifest::from_record(manifest.clone()));
        let manifest = work.guarded(component, manifest);
        work.apply_manifest(release::lifted(manifest), record);
    }
}

fn remove(work: &mut Work<'_>, name: &str, limits: Limits) -> Standing {
    let mut record = work.take_record(name);
    record.start(work.now);
    record.run(work.now);
    record.state = ComponentState::Removing;
    let children: Vec<&Live> = work.children_of(name).to_vec();
    let standing = match removal::of(work, &children) {
        Removal::Gone => {
            record.pause(work.now);
            record.state = ComponentState::Removed;
            Standing::Verified
        }
        Removal::Waiting(message) if record.elapsed(work.now) < limits.timeout => {
            work.look_again(limits.timeout.saturating_sub(record.elapsed(work.now)));
            Standing::Waiting(message)
        }
        Removal::Waiting(message) => {
            record.pause(work.now);
            record.state = ComponentState::Failed;
            Standing::Failed(format!("not gone within {}: {message}", short(limits.timeout)))
        }
    };
    work.put_record(record);
    standing
}

/// Every `readyWhen` of the target, forward; fresh evidence is not asked for.
fn check(work: &mut Work<'_>, target: &RevisionView, limits: Limits) -> Return {
    let Some(mut rollback) = work.status.rollback.clone() else { return Return::Done };
    rollback.start(work.now);
    rollback.run(work.now);
    let waiting = target.spec.components.iter().filter(|c| !c.hook).find_map(|component| {
        evidence::awaited_now(work, target, component).map(|m| format!("component {}: {m}", component.name))
    });
    let outcome = match waiting {
        None => Return::Done,
        Some(message) => match limits.timeout.checked_sub(rollback.elapsed(work.now)) {
            Some(left) if !left.is_zero() => {
                work.look_again(left);
                Return::Check { message }
            }
            Some(_) | None => {
                let message = format!("not ready within {}: {message}", short(limits.timeout));
                Return::Failed { name: None, message }
            }
        },
    };
    if matches!(outcome, Return::Done | Return::Failed { .. }) {
        rollback.pause(work.now);
    }
    work.status.rollback = Some(rollback);
    outcome
}

/// Lets a failed rollback go on after a retry: steps that ended well stay.
pub(crate) fn resume(work: &mut Work<'_>) {
    let names: Vec<String> = work.status.components.iter().map(|record| record.name.clone()).collect();
    for name in names {
        let mut record: ComponentRecord = work.take_record(&name);
        if !is_settled(record.state) {
            record.reset();
            record.attempts = 0;
            record.last_failure.clear();
            record.state = ComponentState::Waiting;
            work.put_record(record);
        }
    }
    if let Some(rollback) = &mut work.status.rollback {
        rollback.reset();
    }
    work.enter(RevisionPhase::RollingBack);
    work.status.reason = Some(Reason::RollingBack);
}
