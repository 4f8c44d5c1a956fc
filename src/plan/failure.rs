//! What a failure on the way does, by the rule of [`crate::rollout`].

use super::{Action, FailureAction, OnFailure, Sides, Step};
use crate::api::Reason;
use crate::rehearse::play::Played;
use crate::rollout::RevisionView;
use crate::rollout::history::History;

pub fn of(sides: &Sides<'_>, steps: &[Step], played: &Played) -> OnFailure {
    let moves = steps.iter().any(|step| !matches!(step.action, Action::VerifyAgain | Action::Remove));
    let removes = steps.iter().any(|step| step.action == Action::Remove);
    let (action, why) = match (sides.from, sides.to) {
        (_, None) if steps.is_empty() => (FailureAction::Nothing, "its releases are left alone".to_owned()),
        (_, None) => (FailureAction::Retry, "it is going: an uninstall that fails is tried again".to_owned()),
        (None, Some(_)) => (
            FailureAction::Retry,
            "nothing ran before that it could go back to: it is tried again until it succeeds".to_owned(),
        ),
        (Some(_), Some(_)) if steps.is_empty() => (FailureAction::Nothing, "nothing moves".to_owned()),
        (Some(_), Some(_)) if removes && !moves => {
            (FailureAction::Retry, "all that stays is as it was: an uninstall that fails is tried again".to_owned())
        }
        (Some(_), Some(_)) => by_the_record(sides, moves, played),
    };
    OnFailure {
        action,
        why,
        hook: of_a_hook(steps),
        components: steps.iter().any(|step| step.action != Action::RunHook),
    }
}

/// What a hook that fails leads to: it is no component, and nothing goes back for it.
fn of_a_hook(steps: &[Step]) -> Option<String> {
    let last = steps.iter().rposition(|step| step.action == Action::RunHook)?;
    let before = steps.iter().take(last).filter(|step| step.action != Action::RunHook);
    let changed: Vec<&str> = before.map(|step| step.component.as_str()).collect();
    let stands = match changed.as_slice() {
        [] => "no component has changed".to_owned(),
        changed => format!("{} stay as they have become", changed.join(", ")),
    };
    Some(format!("it stands at {}, and {stands}: mend the hook, or retry", Reason::HookFailed))
}

fn by_the_record(sides: &Sides<'_>, moves: bool, played: &Played) -> (FailureAction, String) {
    let revisions = played.rehearsal.revisions(&sides.id.0, &sides.id.1);
    let Some((latest, base)) = latest_and_base(&revisions) else {
        return (FailureAction::Stop, "it does not begin".to_owned());
    };
    if !moves {
        return (FailureAction::RollBack, "nothing of it has moved: what ran before is what is written".to_owned());
    }
    match History::may_return_to(base, std::iter::once(latest)) {
        Ok(()) => {
            let version = &base.spec.version;
            (FailureAction::RollBack, format!("{} says that {version} may run again after it", latest.spec.version))
        }
        Err(objection) => (FailureAction::Stop, format!("{} {}", objection.version, objection.cause)),
    }
}

fn latest_and_base(revisions: &[RevisionView]) -> Option<(&RevisionView, &RevisionView)> {
    let latest = revisions.last()?;
    let base = latest.spec.base?;
    Some((latest, revisions.iter().find(|revision| revision.number() == base)?))
}
