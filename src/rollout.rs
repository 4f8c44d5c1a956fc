//! The decisions of Windlass: from one look at the cluster to the next step.
//!
//! [`decide`] is total, synchronous and without memory: everything it knows is
//! in the [`Snapshot`]. The controller, `plan` and `rehearse` run the same one.
//!
//! Where to find the rules of the design:
//!
//! | rule | module |
//! |---|---|
//! | may a changed spec start: refusals, conflicts, requirements | `gate` |
//! | charts are fetched and checked first | `prepare` |
//! | PreUpgrade hooks | `hooks` |
//! | who moves, who is only verified again | `turns` |
//! | one component's turn | `turn`; its clock is the crate's |
//! | fresh evidence | `evidence` |
//! | DaemonSets behind a canary: one question to [`crate::canary`] each | `canaries` |
//! | what else their releases run | `workloads` |
//! | what failure leads to; retry | `outcome`, [`phase`] |
//! | settings that move nothing | `settings` |
//! | the whole package back | `rollback`; by hand: [`request`] |
//! | hand-over and replacement | `replace` |
//! | taking a running release over | `adopt` |
//! | removed components, hooks, history | `cleanup`, `removal` |
//! | data that outlives an uninstall | `volumes` |
//! | a deleted Package | `uninstall` |
//! | what was last verified, what is safe to undo | [`history`] |
//! | conditions and reasons | `headline`, `status` |
//! | events about single components | `transitions` |

mod adopt;
mod canaries;
mod cleanup;
mod compile;
mod decision;
mod evidence;
mod gate;
mod headline;
pub mod history;
mod hooks;
pub mod live;
mod needs;
mod operation;
mod outcome;
mod peer;
pub mod phase;
mod prepare;
mod release;
mod removal;
mod replace;
pub mod request;
mod requirements;
mod rights;
mod rollback;
mod settings;
mod snapshot;
mod status;
mod transitions;
mod turn;
mod turns;
mod uninstall;
mod volumes;
mod walk;
mod wanted;
mod work;
mod workloads;

use std::time::Duration;

use jiff::Timestamp;

use compile::Compiled;
use gate::Held;
use headline::Headline;
use wanted::Wanted;
use work::Work;

use crate::api::wellknown::FINALIZER;
use crate::api::{Claim, Engine, PackageStatus, Reason};
use crate::clock::{self, Now};
use crate::engine::ObjectKey;
use crate::package::definition::Definition;
use crate::package::violation::Violation;

pub use decision::{Action, Decision, Event, Precondition, Record, RolloutEvent, RolloutEventReason};
pub use needs::{Depth, Needs, needs};
pub use peer::{Found, peer, sort, sources_of};
pub use rights::Right;
pub use snapshot::{Cluster, OtherPackage, PackageView, Peer, Required, RevisionView, Snapshot, Unreadable};
pub use workloads::not_rolled_out;

/// How often an object of somebody else that is in the way is looked at again.
const CONFLICT: Duration = Duration::from_secs(30);

/// Most revisions of a Package besides those that its history keeps.
const MORE_REVISIONS: usize = 64;

/// What is to be done for a Package, given what was seen of it at `now`.
///
/// The same snapshot and time give the same decision. Nothing is done twice for
/// the same evidence: an action that has had its effect is not asked for again.
pub fn decide(snapshot: &Snapshot, now: Timestamp) -> Decision {
    let now = Now { time: now, watching_for: snapshot.cluster.watching_for };
    if let Some(revision) = snapshot.unreadable.first() {
        return unreadable(snapshot, revision, now);
    }
    if snapshot.package.deleting {
        return deleted(snapshot, now);
    }
    if !snapshot.package.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        let status = snapshot.package.status.clone();
        return Decision { actions: vec![Action::HoldPackage], status, ..Decision::default() };
    }
    match (&snapshot.package.definition, engine(snapshot)) {
        (Err(violations), _) => invalid(snapshot, violations, now),
        (Ok(_), _) if acts_as(snapshot) == ActsAs::Nobody => {
            let message = "serviceAccountName is required in this cluster";
            stand_still(snapshot, &Headline::new(Reason::InvalidSpec, message), now)
        }
        (Ok(_), Err(headline)) => stand_still(snapshot, &headline, now),
        (Ok(definition), Ok(engine)) => match Wanted::of(snapshot, definition, engine) {
            Err(error) => hold(snapshot, Headline::new(Reason::InvalidSpec, error.to_string()), now),
            Ok(wanted) => live(snapshot, definition, &wanted, now),
        },
    }
}

/// As whom what belongs to a Package's releases is read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActsAs {
    /// A ServiceAccount of the Package's namespace.
    Account(String),
    /// Windlass itself.
    Windlass,
    /// The cluster wants an account, and the Package names none.
    Nobody,
}

/// The account that a Package names, else the default one, else Windlass itself,
/// unless that is not allowed.
pub fn acts_as(snapshot: &Snapshot) -> ActsAs {
    match snapshot.account() {
        Some(account) => ActsAs::Account(account.to_string()),
        None if snapshot.cluster.require_service_account => ActsAs::Nobody,
        None => ActsAs::Windlass,
    }
}

/// A status that says that something decided upon is refused by the cluster;
/// everything else in it stays.
pub fn refused(
    snapshot: &Snapshot,
    status: PackageStatus,
    reason: Reason,
    message: String,
    now: Timestamp,
) -> PackageStatus {
    let now = Now { time: now, watching_for: snapshot.cluster.watching_for };
    let headline = Headline::new(reason, message);
    PackageStatus {
        conditions: headline.conditions(&snapshot.package, now),
        summary: Some(headline.summary()),
        ..status
    }
}

/// Whether the spec asks for something that no revision stands for yet, and that
/// may start as far as its requirements go.
fn is_about_to_change(snapshot: &Snapshot) -> bool {
    let (Ok(definition), Ok(engine)) = (&snapshot.package.definition, engine(snapshot)) else { return false };
    let wanted = Wanted::of(snapshot, definition, engine);
    let is_new = |wanted: &Wanted| {
        snapshot.revisions.last().is_none_or(|latest| wanted.differs_from(latest))
            && !gate::is_refused(snapshot, definition, wanted)
    };
    wanted.is_ok_and(|wanted| is_new(&wanted)) && !gate::waits_for_requirements(snapshot, definition)
}

/// Where to see who still applies what this Package is to take over.
fn owners_of_given(snapshot: &Snapshot) -> Vec<ObjectKey> {
    if !snapshot.children.iter().any(|child| child.package().is_none() && adopt::is_taken_over(child)) {
        return Vec::new();
    }
    let (Ok(definition), Ok(engine)) = (&snapshot.package.definition, engine(snapshot)) else { return Vec::new() };
    Wanted::of(snapshot, definition, engine).map_or_else(|_| Vec::new(), |wanted| adopt::owners(snapshot, &wanted))
}

/// Revision 1 has recorded the engine for good; before it the spec, the flag or
/// the only installed one decides.
fn engine(snapshot: &Snapshot) -> Result<Engine, Headline> {
    let recorded = snapshot.revisions.last().map(|revision| revision.spec.engine);
    let stated = snapshot.package.definition.as_ref().ok().and_then(|definition| definition.engine);
    let installed = &snapshot.cluster.engines;
    if let (Some(recorded), Some(stated)) = (recorded, stated)
        && recorded != stated
    {
        let message = format!("engine is {}, but revision 1 was made for {}", stated.as_str(), recorded.as_str());
        return Err(Headline::new(Reason::InvalidSpec, message));
    }
    let only = || if installed.len() == 1 { installed.first().copied() } else { None };
    match recorded.or(stated).or(snapshot.cluster.default_engine).or_else(only) {
        Some(engine) if installed.contains(&engine) => Ok(engine),
        Some(engine) => {
            let message = format!("the kinds of engine {} are not installed in this cluster", engine.as_str());
            Err(Headline::new(Reason::EngineMissing, message))
        }
        None if installed.is_empty() => {
            Err(Headline::new(Reason::EngineMissing, "neither Flux nor Argo CD is installed in this cluster"))
        }
        None => Err(Headline::new(Reason::EngineAmbiguous, "both Flux and Argo CD are installed: set spec.engine")),
    }
}

/// What a revision records decides what is safe: without it nothing is done, but for
/// letting go of what somebody deletes, and of a namespace that goes.
fn unreadable(snapshot: &Snapshot, revision: &Unreadable, now: Now) -> Decision {
    let message = format!("{}: nothing is changed until it can be read, or is deleted", revision.message);
    let status =
        PackageStatus { observed_generation: Some(snapshot.package.generation), ..snapshot.package.status.clone() };
    let status = refused(snapshot, status, Reason::InvalidSpec, message, now.time);
    let namespace_goes = snapshot.cluster.namespace_terminating;
    let children = snapshot.children.iter().filter(|_| namespace_goes);
    let mut actions: Vec<Action> = children.filter_map(release::let_go).collect();
    if actions.is_empty() {
        // Children are suspended before anything that tells of them goes.
        let gone = snapshot.unreadable.iter().filter(|revision| revision.deleting || namespace_goes);
        let held = gone.filter(|revision| revision.held);
        actions.extend(held.map(|held| Action::ReleaseRevision { name: held.name.clone(), uid: held.uid.clone() }));
        if namespace_goes && snapshot.package.deleting {
            actions.extend(uninstall::let_package_go(snapshot));
        }
    }
    Decision { actions, status, ..Decision::default() }
}

fn invalid(snapshot: &Snapshot, violations: &[Violation], now: Now) -> Decision {
    let message = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let headline = Headline::new(Reason::InvalidSpec, message);
    match acts_as(snapshot) {
        ActsAs::Nobody => stand_still(snapshot, &headline, now),
        ActsAs::Account(_) | ActsAs::Windlass => hold(snapshot, headline, now),
    }
}

/// The spec cannot be used: no turn begins, but what is under way comes to its end,
/// and what runs is kept.
fn hold(snapshot: &Snapshot, headline: Headline, now: Now) -> Decision {
    match snapshot.revisions.last() {
        Some(latest) => beside(Work::new(snapshot, latest, now), headline),
        None => before_first_revision(snapshot, &headline, now, Vec::new()),
    }
}

/// Whatever is told of a spec that is not taken stands first; what goes on meanwhile
/// follows.
fn beside(mut work: Work<'_>, headline: Headline) -> Decision {
    let (told, open) = outcome::hold_up(&mut work);
    let headline = match told {
        Some(told) => Headline { message: format!("{}; meanwhile {told}", headline.message), ..headline },
        None => headline,
    };
    let open = open.as_ref().map(|(name, message): &(String, String)| (name.as_str(), message.as_str()));
    finish(work, &headline, open)
}

/// Nothing is done at all, and no clock runs.
fn stand_still(snapshot: &Snapshot, headline: &Headline, now: Now) -> Decision {
    match snapshot.revisions.last() {
        Some(latest) => {
            let mut work = Work::new(snapshot, latest, now);
            outcome::pause_clocks(&mut work);
            finish(work, headline, None)
        }
        None => before_first_revision(snapshot, headline, now, Vec::new()),
    }
}

fn live(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted, now: Now) -> Decision {
    match snapshot.revisions.last() {
        Some(latest) if !wanted.differs_from(latest) => {
            let mut work = Work::new(snapshot, latest, now);
            work.supersede_older();
            cleanup::hold_revisions(&mut work);
            cleanup::idle_revisions(&mut work);
            let (headline, open) = if snapshot.package.suspend {
                (outcome::suspended(&mut work), None)
            } else {
                outcome::advance(&mut work, definition)
            };
            let open = open.as_ref().map(|(name, message): &(String, String)| (name.as_str(), message.as_str()));
            finish(work, &headline, open)
        }
        latest => changed(snapshot, definition, wanted, latest, now),
    }
}

/// The spec asks for something that no revision stands for yet.
fn changed(
    snapshot: &Snapshot,
    definition: &Definition,
    wanted: &Wanted,
    latest: Option<&RevisionView>,
    now: Now,
) -> Decision {
    if let Some(latest) = latest {
        let mut work = Work::new(snapshot, latest, now);
        if hooks::is_running(&work) {
            let (headline, _) = outcome::finish_hook(&mut work);
            return finish(work, &headline, None);
        }
    }
    if snapshot.package.suspend {
        let message = format!("version {} is wanted; moves are suspended", wanted.version());
        return hold(snapshot, Headline::new(Reason::Suspended, message), now);
    }
    if let Err(held) = gate::may_start(snapshot, definition, wanted) {
        return held_up(snapshot, held, gate::held_by_peers(snapshot, wanted), now);
    }
    if let Some(message) = too_many_revisions(snapshot, definition) {
        return hold(snapshot, Headline::new(Reason::InvalidSpec, message), now);
    }
    match compile::revision(snapshot, definition, wanted) {
        Compiled::Ready(spec) => {
            let message = format!("revision {} ({}) begins", spec.number, spec.version);
            let headline = Headline::new(Reason::Progressing, message);
            let mut decision = stand_still(snapshot, &headline, now);
            decision.actions.push(Action::CreateRevision(spec));
            decision
        }
        Compiled::Waiting { actions, message } => {
            let mut decision = hold(snapshot, Headline::new(Reason::Preparing, message), now);
            decision.actions.extend(actions);
            decision.look_again = snapshot.cluster.guard_settles_in.into_iter().chain(decision.look_again).min();
            decision
        }
        Compiled::Conflict { actions, held } => {
            let mut decision = held_up(snapshot, held, Vec::new(), now);
            decision.actions.extend(actions);
            decision
        }
        Compiled::Refused { message } => hold(snapshot, Headline::new(Reason::InvalidSpec, message), now),
    }
}

/// Each revision that has moved something is kept until one succeeds, and each may have
/// a megabyte, in the cluster as in the memory of the controller.
fn too_many_revisions(snapshot: &Snapshot, definition: &Definition) -> Option<String> {
    let most = definition.revision_history_limit as usize + MORE_REVISIONS;
    let kept = snapshot.revisions.len();
    (kept >= most).then(|| {
        format!(
            "{kept} revisions are kept, since none of the last ones has succeeded: no more are made; delete old ones, \
             and with them what they tell of a way back"
        )
    })
}

/// `inherits` are releases that other Packages still hold: once they are ours,
/// nothing else tells that they are older than the revision that installs them.
fn held_up(snapshot: &Snapshot, held: Held, inherits: Vec<Claim>, now: Now) -> Decision {
    let (headline, blocked_by, look_again) = match held {
        Held::Refused { reason, message } => (Headline::new(reason, message), Vec::new(), None),
        Held::Waiting { reason, message, blocked_by } => {
            // Objects of others are not watched.
            let look_again = (reason == Reason::Conflict).then_some(CONFLICT);
            (Headline::new(reason, message), blocked_by, look_again)
        }
        Held::Settling { left } => {
            let message = "waiting until this package and what it requires have been unchanged for a moment";
            (Headline::new(Reason::Progressing, message), Vec::new(), Some(left))
        }
    };
    let mut decision = match snapshot.revisions.last() {
        Some(latest) => {
            let mut work = Work::new(snapshot, latest, now);
            work.blocked_by = blocked_by;
            let known = &mut work.status.inherits;
            known.extend(inherits.into_iter().filter(|claim| !known.contains(claim)).collect::<Vec<_>>());
            beside(work, headline)
        }
        None => before_first_revision(snapshot, &headline, now, blocked_by),
    };
    decision.look_again = look_again.into_iter().chain(decision.look_again).min();
    decision
}

fn before_first_revision(
    snapshot: &Snapshot,
    headline: &Headline,
    now: Now,
    blocked_by: Vec<crate::api::Blocker>,
) -> Decision {
    let status = status::without_revision(snapshot, headline, now, blocked_by);
    Decision { status, ..Decision::default() }
}

/// A Package that is being deleted.
fn deleted(snapshot: &Snapshot, now: Now) -> Decision {
    let Some(latest) = snapshot.revisions.last() else {
        let held = snapshot.package.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
        let actions = if held { vec![Action::ReleasePackage] } else { Vec::new() };
        return Decision { actions, status: snapshot.package.status.clone(), ..Decision::default() };
    };
    let mut work = Work::new(snapshot, latest, now);
    match uninstall::step(&mut work) {
        Some(message) => finish(work, &Headline::new(Reason::Deleting, message), None),
        None => {
            let mut decision = finish(work, &Headline::new(Reason::Deleting, "done"), None);
            decision.status = snapshot.package.status.clone();
            decision
        }
    }
}

/// Puts the decision together.
fn finish(mut work: Work<'_>, headline: &Headline, open: Option<(&str, &str)>) -> Decision {
    let status: PackageStatus = status::of(&work, headline, open);
    let mut records = std::mem::take(&mut work.other_records);
    if work.status != work.latest.status {
        records.push(Record {
            revision: work.latest.name.clone(),
            resource_version: work.latest.resource_version.clone(),
            status: work.status.clone(),
        });
    }
    let look_again = work.next_look();
    // Of what becomes of the package its components are the cause.
    let mut events = transitions::events(&work, open);
    events.append(&mut work.events);
    let (actions, rollout_events) = (work.actions, work.rollout_events);
    Decision { records, actions, status, events, rollout_events, look_again }
}
