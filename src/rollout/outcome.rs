//! What the standing of a revision leads to: every change of its phase.

use std::collections::BTreeSet;

use super::clock::Clock as _;
use super::gate::{self, Held};
use super::headline::Headline;
use super::hooks::{self, HookStanding};
use super::operation;
use super::request;
use super::rollback::{self, NoWayBack, Return};
use super::snapshot::RevisionView;
use super::turn::short;
use super::walk::{self, Stage};
use super::work::Work;
use super::{canaries, cleanup, release, settings};
use crate::api::wellknown::{ANNOTATION_RETRY, ANNOTATION_ROLLBACK_TO, LABEL_AGGREGATE};
use crate::api::{
    ComponentRecord, ComponentState, HookOutcome, PackageRevisionStatus, Reason, RecordedComponent, RevisionPhase,
};
use crate::engine::observe;
use crate::package::definition::Definition;
use crate::package::version::Version;

/// The component whose turn is open, and what it waits for.
pub(crate) type Open = Option<(String, String)>;

/// Takes the latest revision, which is what the spec asks for, one step on.
pub(crate) fn advance(work: &mut Work<'_>, definition: &Definition) -> (Headline, Open) {
    retry(work);
    settings::update(work, definition);
    let refused = rollback_by_hand(work);
    let (headline, open) = match work.status.phase {
        RevisionPhase::Pending | RevisionPhase::Preparing | RevisionPhase::Applying | RevisionPhase::Superseded => {
            walk_on(work, definition)
        }
        RevisionPhase::Failed => failed(work, definition),
        RevisionPhase::RollingBack => roll_back(work),
        RevisionPhase::Succeeded => (succeeded(work, definition), None),
        RevisionPhase::RolledBack => {
            cleanup::old_revisions(work, definition.revision_history_limit);
            (rolled_back(work), None)
        }
        RevisionPhase::RollbackFailed => rollback_failed(work),
    };
    canaries::look_after(work);
    match refused {
        Some(message) => (refused_beside(headline, &message), open),
        None => (headline, open),
    }
}

fn walk_on(work: &mut Work<'_>, definition: &Definition) -> (Headline, Open) {
    let has_begun = !matches!(work.status.phase, RevisionPhase::Pending | RevisionPhase::Preparing);
    if let (false, Err(Held::Waiting { reason, message, blocked_by })) =
        (has_begun, gate::may_begin(work.snapshot, definition))
    {
        work.blocked_by = blocked_by;
        return (Headline::new(reason, message), None);
    }
    let stage = walk::forward(work);
    conclude(work, definition, stage)
}

fn conclude(work: &mut Work<'_>, definition: &Definition, stage: Stage) -> (Headline, Open) {
    match stage {
        Stage::Preparing { reason, message } => {
            work.enter(RevisionPhase::Preparing);
            (Headline::new(reason, message), None)
        }
        Stage::Hook { name, message } => (Headline::new(Reason::Progressing, format!("hook {name}: {message}")), None),
        Stage::HookSuspended { name, message } => {
            (Headline::new(Reason::Suspended, format!("hook {name}: {message}")), None)
        }
        Stage::Suspended { name, message } => {
            (Headline::new(Reason::Suspended, format!("component {name}: {message}")), Some((name, message)))
        }
        Stage::HookFailed { name, message } => {
            let message = format!("hook {name} failed, {}: {message}", changed_besides(work, &name));
            fail(work, Reason::HookFailed, message)
        }
        Stage::Turn { name, message } => {
            (Headline::new(Reason::Progressing, format!("component {name}: {message}")), Some((name, message)))
        }
        Stage::Denied { name, message } => {
            let account = account(work);
            let headline = Headline::new(Reason::AccessDenied, format!("component {name}: {message} ({account})"));
            (headline, Some((name, message)))
        }
        Stage::Unguarded { name, message } => {
            (Headline::new(Reason::GuardMismatch, format!("component {name}: {message}")), Some((name, message)))
        }
        Stage::NoSource { name, message } => {
            (Headline::new(Reason::SourceNotFound, format!("component {name}: {message}")), Some((name, message)))
        }
        Stage::Failed { name, message } => component_failed(work, &name, &message),
        Stage::Done => (first_success(work, definition), None),
    }
}

/// What has been changed since *T* beside a hook that has failed.
fn changed_besides(work: &Work<'_>, failed: &str) -> String {
    let earlier = work.history.since_verified().iter().filter(|revision| revision.number() < work.latest.number());
    let statuses: Vec<&PackageRevisionStatus> =
        earlier.map(|revision| &revision.status).chain([&work.status]).collect();
    let hooks = statuses.iter().flat_map(|status| &status.hooks);
    let hooks = hooks.filter(|hook| hook.name != failed && hook.outcome == HookOutcome::Succeeded);
    let moved = statuses.iter().flat_map(|status| &status.components).filter(|record| record.moved);
    let hooks = hooks.map(|hook| format!("hook {}", hook.name));
    let changed: BTreeSet<String> = hooks.chain(moved.map(|record| format!("component {}", record.name))).collect();
    if changed.is_empty() {
        return "nothing else was changed".to_owned();
    }
    format!("what went before it stays ({})", changed.into_iter().collect::<Vec<_>>().join(", "))
}

/// As whom `readyWhen` is read, and how that is widened.
fn account(work: &Work<'_>) -> String {
    match work.snapshot.account() {
        Some(account) => {
            let namespace = &work.snapshot.package.namespace;
            format!("ServiceAccount {namespace}/{account}")
        }
        None => format!("Windlass's own: label a ClusterRole {LABEL_AGGREGATE}: \"true\""),
    }
}

fn fail(work: &mut Work<'_>, reason: Reason, message: String) -> (Headline, Open) {
    work.enter(RevisionPhase::Failed);
    work.status.reason = Some(reason);
    work.event(true, reason, message.clone());
    (Headline::new(reason, message), None)
}

/// First install: tried again until it succeeds. Upgrade: back to *T* if every
/// revision since then allows it; else it stands where it is.
fn component_failed(work: &mut Work<'_>, name: &str, message: &str) -> (Headline, Open) {
    let cause = format!("component {name}: {message}");
    match rollback::way_back(work) {
        Ok(verified) => {
            rollback::begin(work, verified, None, cause);
            roll_back(work)
        }
        Err(NoWayBack::FirstInstall) => {
            let (headline, _) = fail(work, Reason::InstallFailed, cause);
            (headline, Some((name.to_owned(), message.to_owned())))
        }
        Err(NoWayBack::Unsafe(objection)) => {
            let message = format!("{cause}; not rolled back: {objection}");
            let (headline, _) = fail(work, Reason::UpgradeFailed, message.clone());
            (headline, Some((name.to_owned(), message)))
        }
    }
}

/// A failed revision stands, but if the component becomes ready after all the
/// walk goes on.
fn failed(work: &mut Work<'_>, definition: &Definition) -> (Headline, Open) {
    let reason = work.status.reason.unwrap_or(Reason::UpgradeFailed);
    let before = work.status.clone();
    let culprit = before.components.iter().find(|record| record.state == ComponentState::Failed).cloned();
    let actions = work.actions.len();
    let stage = walk::forward(work);
    let stands = still_fails(&stage, culprit.as_ref());
    match stands {
        Some((name, message)) => {
            if work.latest.spec.base.is_some() || reason != Reason::InstallFailed {
                let seen = work.record(&name).cloned();
                let looked = std::mem::take(&mut work.status.components);
                // A failed rollout is looked after further: it may be frozen, or recover.
                let rollouts = std::mem::take(&mut work.status.rollouts);
                work.restore_status(before);
                keep_evidence(work, &name, looked);
                work.status.rollouts = rollouts;
                let (steered, asked) =
                    work.actions.split_off(actions).into_iter().partition(canaries::is_rollout_action);
                operation::only_look(work, seen, asked);
                work.actions.extend::<Vec<_>>(steered);
            } else {
                keep_trying(work, &name, before.phase);
            }
            let what = if reason == Reason::HookFailed { "hook" } else { "component" };
            let told = if name.is_empty() { message.clone() } else { format!("{what} {name}: {message}") };
            stands_as_told(work, reason, told, (name, message))
        }
        None => {
            work.event(false, Reason::Progressing, "the failed component became ready after all");
            work.status.reason = None;
            conclude(work, definition, stage)
        }
    }
}

/// The component that failed, or what is before it, with what is said of it; `None` if
/// the walk goes on.
fn still_fails(stage: &Stage, culprit: Option<&ComponentRecord>) -> Option<(String, String)> {
    match (stage, culprit) {
        (Stage::Done, _) => None,
        (
            Stage::Turn { name, message }
            | Stage::Suspended { name, message }
            | Stage::Denied { name, message }
            | Stage::Unguarded { name, message }
            | Stage::NoSource { name, message }
            | Stage::Failed { name, message },
            Some(failed),
        ) if *name == failed.name => Some((name.clone(), message.clone())),
        (
            Stage::Turn { .. }
            | Stage::Suspended { .. }
            | Stage::Denied { .. }
            | Stage::Unguarded { .. }
            | Stage::NoSource { .. }
            | Stage::Failed { .. },
            _,
        ) => None,
        (
            Stage::Hook { name, message }
            | Stage::HookSuspended { name, message }
            | Stage::HookFailed { name, message },
            _,
        ) => Some((name.clone(), message.clone())),
        (Stage::Preparing { message, .. }, _) => Some((String::new(), message.clone())),
    }
}

/// What was seen of `readyWhen`, and since when the release that failed is ready, is
/// remembered: else nothing would ever have lasted.
fn keep_evidence(work: &mut Work<'_>, failed: &str, looked: Vec<ComponentRecord>) {
    for seen in looked {
        let Some(mut record) = work.record(&seen.name).cloned() else { continue };
        record.before = seen.before;
        if seen.name == failed {
            record.release_ready_at = seen.release_ready_at;
        }
        work.put_record(record);
    }
}

/// What a failure was told as stays, however the engine goes on trying: nothing
/// new is told until something is.
fn stands_as_told(work: &Work<'_>, reason: Reason, message: String, open: (String, String)) -> (Headline, Open) {
    let Some(told) = told(work, reason) else { return (Headline::new(reason, message), Some(open)) };
    let (name, found) = open;
    let found = told_of(work, &name).unwrap_or(found);
    (Headline::new(reason, told), Some((name, found)))
}

/// What was last told of the latest revision for a reason.
pub(crate) fn told<'a>(work: &Work<'a>, reason: Reason) -> Option<&'a str> {
    let told = &work.snapshot.package.status;
    let of_this = told.attempted.as_ref().is_some_and(|attempted| attempted.revision == work.latest.number());
    let ready =
        told.conditions.iter().find(|condition| condition.type_ == "Ready" && condition.reason == reason.as_str());
    ready.filter(|_| of_this).map(|ready| ready.message.as_str())
}

/// What was last told of a component.
fn told_of(work: &Work<'_>, name: &str) -> Option<String> {
    let components = &work.snapshot.package.status.components;
    components.iter().find(|component| component.name == name)?.message.clone()
}

/// A first install is tried again until it succeeds; it stays failed meanwhile.
fn keep_trying(work: &mut Work<'_>, culprit: &str, phase: RevisionPhase) {
    let mut record = work.take_record(culprit);
    record.state = ComponentState::Failed;
    work.put_record(record);
    work.status.phase = phase;
}

fn roll_back(work: &mut Work<'_>) -> (Headline, Open) {
    let Some(target) = target(work) else {
        return fail_rollback(work, None, "the revision to return to is gone");
    };
    let version = &target.spec.version;
    match rollback::backward(work, target) {
        Return::Step { name, message } => {
            let text = format!("back to {version}: component {name}: {message}");
            (Headline::new(Reason::RollingBack, text), Some((name, message)))
        }
        Return::Check { message } => {
            (Headline::new(Reason::RollingBack, format!("back to {version}: checking: {message}")), None)
        }
        Return::Failed { name, message } => fail_rollback(work, name, &message),
        Return::Done => {
            work.enter(RevisionPhase::RolledBack);
            let now = work.now.as_time();
            work.status.rollback.iter_mut().for_each(|rollback| rollback.finished_at = Some(now.clone()));
            let headline = rolled_back(work);
            work.status.reason = Some(headline.reason);
            work.event(headline.reason != Reason::RolledBack, headline.reason, headline.message.clone());
            (headline, None)
        }
    }
}

fn fail_rollback(work: &mut Work<'_>, name: Option<String>, cause: &str) -> (Headline, Open) {
    work.enter(RevisionPhase::RollbackFailed);
    work.status.reason = Some(Reason::RollbackFailed);
    let message = not_restored(work, name.as_deref(), cause);
    work.event(true, Reason::RollbackFailed, message.clone());
    (Headline::new(Reason::RollbackFailed, message), name.map(|name| (name, cause.to_owned())))
}

fn not_restored(work: &Work<'_>, name: Option<&str>, cause: &str) -> String {
    let version = target(work).map_or("the version before", |target| &target.spec.version);
    let at = name.map_or_else(|| "the check at the end".to_owned(), |name| format!("component {name}"));
    format!("{version} could not be restored, it stopped at {at}: {cause}; fix forward, or ask for a retry")
}

fn target<'a>(work: &Work<'a>) -> Option<&'a RevisionView> {
    work.history.get(work.status.rollback.as_ref()?.to)
}

/// The revision before runs again: because an upgrade failed, or because
/// somebody asked for it. Held until the spec changes.
fn rolled_back(work: &mut Work<'_>) -> Headline {
    let target = target(work);
    if let Some(target) = target {
        rollback::keep(work, target);
    }
    let version = target.map_or_else(String::new, |target| target.spec.version.clone());
    let rollback = work.status.rollback.clone().unwrap_or_default();
    let trouble = target.and_then(|target| trouble(work, &target.spec.components));
    let beside: String = canaries::failure(work).iter().chain(&trouble).map(|message| format!("; {message}")).collect();
    if rollback.requested.is_some() {
        let message = format!("revision {} ({version}) runs as asked, until the spec changes{beside}", rollback.to);
        return Headline::new(Reason::RolledBack, message);
    }
    let wanted = &work.latest.spec.version;
    let message = format!("{wanted} failed ({}); {version} runs again{beside}", rollback.cause);
    Headline::new(Reason::UpgradeRolledBack, message)
}

fn rollback_failed(work: &mut Work<'_>) -> (Headline, Open) {
    let failed = work.status.components.iter().find(|record| record.state == ComponentState::Failed);
    let name = failed.map(|record| record.name.clone());
    let Some(told) = told(work, Reason::RollbackFailed) else {
        let message = not_restored(work, name.as_deref(), "its events tell why");
        return (Headline::new(Reason::RollbackFailed, message), None);
    };
    let open = name.and_then(|name| told_of(work, &name).map(|found| (name, found)));
    (Headline::new(Reason::RollbackFailed, told), open)
}

fn first_success(work: &mut Work<'_>, definition: &Definition) -> Headline {
    work.enter(RevisionPhase::Succeeded);
    work.status.reason = Some(Reason::Ready);
    work.status.succeeded = true;
    let from = work.latest.spec.from_version.as_str();
    let version = &work.latest.spec.version;
    let message = match from {
        "" => format!("{version} is installed"),
        from if from == version => format!("revision {} of {version} is rolled out", work.latest.number()),
        from if is_older(version, from) => format!("went back from {from} to {version}"),
        from => format!("upgraded from {from} to {version}"),
    };
    work.event(false, Reason::Ready, message);
    succeeded(work, definition)
}

fn is_older(version: &str, than: &str) -> bool {
    let versions = Version::parse(version).ok().zip(Version::parse(than).ok());
    versions.is_some_and(|(version, than)| version.cmp_precedence(&than).is_lt())
}

/// Outside of a move nothing gates: what was written is kept as written, and
/// what is left over is tidied up.
fn succeeded(work: &mut Work<'_>, definition: &Definition) -> Headline {
    let latest = work.latest;
    release::keep_as_written(work, &latest.spec.components);
    canaries::keep(work, &latest.spec.components);
    let version = &work.latest.spec.version;
    let removing = cleanup::after_success(work, definition.revision_history_limit);
    let failure = canaries::failure(work);
    let trouble = trouble(work, &latest.spec.components);
    let beside = removing.iter().chain(&failure).chain(&trouble).map(|message| format!("; {message}"));
    let headline = Headline::new(Reason::Ready, format!("{version} runs{}", beside.collect::<String>()));
    if removing.is_some() { headline.reconciling() } else { headline }
}

/// The present state of what runs gates nothing, but it is told: the first component
/// that its engine complains of, and each beside itself.
fn trouble(work: &mut Work<'_>, components: &[RecordedComponent]) -> Option<String> {
    let mut first = None;
    for component in components.iter().filter(|component| !component.hook) {
        let trouble = work.child(component).and_then(|child| observe::trouble_now(&child.object));
        if let Some(message) = trouble {
            first.get_or_insert_with(|| format!("component {}: {message}", component.name));
            work.remarks.insert(component.name.clone(), message);
        }
    }
    first
}

/// The Package is suspended: no moves, children stay as they are, clocks stand.
pub(crate) fn suspended(work: &mut Work<'_>) -> Headline {
    pause_clocks(work);
    let version = work.latest.spec.version.clone();
    let headline = Headline::new(Reason::Suspended, format!("{version} is wanted; moves are suspended"));
    match work.status.phase {
        RevisionPhase::Succeeded => {
            Headline { message: format!("{version} runs; moves are suspended"), ..headline }.but_ready()
        }
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::Failed
        | RevisionPhase::RollingBack
        | RevisionPhase::RolledBack
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => headline,
    }
}

/// The spec cannot be used, or has to wait. No turn begins, since nobody wants what it
/// would move towards any more. What runs is wanted by everybody: it is kept, a way
/// back to it is gone to its end, and a turn that is open still may fail. What is told
/// of that beside.
pub(crate) fn hold_up(work: &mut Work<'_>) -> (Option<String>, Open) {
    if work.snapshot.package.suspend {
        pause_clocks(work);
        return (None, None);
    }
    work.held = true;
    let told = match work.status.phase {
        RevisionPhase::Succeeded | RevisionPhase::RolledBack => {
            keep(work);
            stop_clocks(work);
            (None, None)
        }
        RevisionPhase::RollingBack => {
            let (headline, open) = roll_back(work);
            (Some(headline.message), open)
        }
        RevisionPhase::Applying => match walk::finish_turn(work) {
            Some((name, Some(message))) => {
                let (headline, open) = component_failed(work, &name, &message);
                (Some(headline.message), open)
            }
            Some((_, None)) => (None, None),
            None => {
                pause_clocks(work);
                return (None, None);
            }
        },
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Failed
        | RevisionPhase::RollbackFailed
        | RevisionPhase::Superseded => {
            pause_clocks(work);
            return (None, None);
        }
    };
    canaries::look_after(work);
    told
}

/// What runs is kept as it was last written, whatever is wanted next.
fn keep(work: &mut Work<'_>) {
    let actions = work.actions.len();
    match (work.status.phase, target(work)) {
        (RevisionPhase::RolledBack, Some(target)) => rollback::keep(work, target),
        (RevisionPhase::RolledBack, None) => {}
        _ => {
            let latest = work.latest;
            release::keep_as_written(work, &latest.spec.components);
            canaries::keep(work, &latest.spec.components);
        }
    }
    if work.actions.len() > actions {
        // It was written without the settings of a spec that may come.
        work.status.settings = None;
    }
}

/// Every clock stands: what was begun goes no further for now.
pub(crate) fn pause_clocks(work: &mut Work<'_>) {
    canaries::pause(work);
    stop_clocks(work);
}

fn stop_clocks(work: &mut Work<'_>) {
    let now = work.now;
    work.status.components.iter_mut().for_each(|record| record.pause(now));
    work.status.hooks.iter_mut().for_each(|hook| hook.pause(now));
    if let Some(rollback) = &mut work.status.rollback {
        rollback.pause(now);
    }
}

/// The spec has changed while a hook runs: the hook is waited for first,
/// bounded by its timeout.
pub(crate) fn finish_hook(work: &mut Work<'_>) -> (Headline, Open) {
    canaries::look_after(work);
    match hooks::finish(work) {
        HookStanding::Suspended { name, message } => {
            let text = format!("the spec has changed; hook {name} is waited for first: {message}");
            (Headline::new(Reason::Suspended, text), None)
        }
        HookStanding::Waiting { name, message } => {
            let timeout = short(work.limits().timeout);
            let text = format!("the spec has changed; hook {name} is waited for first, at most {timeout}: {message}");
            (Headline::new(Reason::Progressing, text), None)
        }
        HookStanding::Failed { .. } | HookStanding::Done => {
            (Headline::new(Reason::Progressing, "the hook has ended; the changed spec is next"), None)
        }
    }
}

/// A new retry token: another attempt at whatever failed.
fn retry(work: &mut Work<'_>) {
    let Some(token) = work.snapshot.package.annotations.get(ANNOTATION_RETRY) else { return };
    if work.status.last_handled_retry.as_ref() == Some(token) {
        return;
    }
    work.status.last_handled_retry = Some(token.clone());
    let by_hand = work.status.rollback.as_ref().is_some_and(|rollback| rollback.requested.is_some());
    match work.status.phase {
        RevisionPhase::Succeeded if canaries::failure(work).is_some() => {
            canaries::retry(work);
            work.event(false, Reason::Progressing, "another attempt at a DaemonSet's rollout was asked for");
            return;
        }
        RevisionPhase::RolledBack if by_hand && canaries::failure(work).is_some() => {
            canaries::retry(work);
            work.event(false, Reason::Progressing, "another attempt at a DaemonSet's rollout was asked for");
            return;
        }
        RevisionPhase::Failed => {
            hooks::repeat_failures(work);
            release::ask_again(work, token);
            canaries::retry(work);
            work.enter(RevisionPhase::Applying);
        }
        RevisionPhase::RolledBack if !by_hand => {
            work.forget_turns();
            canaries::retry(work);
            work.enter(RevisionPhase::Preparing);
        }
        RevisionPhase::RollbackFailed => {
            rollback::resume(work);
            canaries::retry(work);
        }
        RevisionPhase::Pending
        | RevisionPhase::Preparing
        | RevisionPhase::Applying
        | RevisionPhase::RollingBack
        | RevisionPhase::RolledBack
        | RevisionPhase::Succeeded
        | RevisionPhase::Superseded => return,
    }
    work.event(false, Reason::Progressing, "another attempt was asked for");
}

/// A request to return to an earlier revision, `<number>@<token>`; a token that
/// starts with `force` overrides the rollback rule. A message if it is refused.
fn rollback_by_hand(work: &mut Work<'_>) -> Option<String> {
    let request = work.snapshot.package.annotations.get(ANNOTATION_ROLLBACK_TO)?;
    let under_way = work.status.rollback.as_ref().and_then(|rollback| rollback.requested.as_ref());
    if under_way == Some(request) || hooks::is_running(work) {
        return None;
    }
    let handled = work.status.last_handled_rollback.as_ref() == Some(request);
    work.status.last_handled_rollback = Some(request.clone());
    // What an earlier revision has handled was held, or refused, until this one was made.
    let latest = work.latest.number();
    let is_handled = |revision: &RevisionView| revision.status.last_handled_rollback.as_ref() == Some(request);
    if work.snapshot.revisions.iter().any(|revision| revision.number() != latest && is_handled(revision)) {
        return None;
    }
    match request::permitted(work.history, request) {
        Err(refusal) => Some(refusal.to_string()),
        Ok(_) if handled => None,
        Ok(target) => {
            rollback::begin(work, target, Some(request.clone()), "asked for".to_owned());
            None
        }
    }
}

/// What runs is not touched by a refused request: it is a remark beside.
fn refused_beside(headline: Headline, refusal: &str) -> Headline {
    let message = format!("{refusal}; {}", headline.message);
    Headline { reason: Reason::RollbackRefused, message, ..headline }
}
