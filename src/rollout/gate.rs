//! May a changed spec start? Refusals first, then what it has to wait for.
//! Nothing has changed in the cluster when this is asked.

use std::collections::{BTreeMap, BTreeSet};

use super::adopt;
use super::history::History;
use super::live::Live;
use super::release;
use super::requirements;
use super::snapshot::{RevisionView, Snapshot};
use super::wanted::{Identity, Wanted};
use crate::api::wellknown::ANNOTATION_ADOPT;
use crate::api::{Blocker, Claim, Reason};
use crate::engine::ObjectKey;
use crate::package::definition::{ChartSource, Definition};
use crate::package::version::Version;
use crate::ready::evidence::Entry;

/// Why a changed spec does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It will not start as it is: a changed spec must mend it.
    Refused { reason: Reason, message: String },
    /// It starts as soon as something else has changed.
    Waiting { reason: Reason, message: String, blocked_by: Vec<Blocker> },
    /// It starts once the specs have been still for a moment.
    Settling { left: std::time::Duration },
}

impl Held {
    fn refused(reason: Reason, message: impl Into<String>) -> Self {
        Self::Refused { reason, message: message.into() }
    }
}

/// Whether a wanted state is refused, whatever the other Packages do.
pub(crate) fn is_refused(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted) -> bool {
    refusals(snapshot, definition, wanted).is_err()
}

fn refusals(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted) -> Result<(), Held> {
    refuse_expressions(definition)?;
    let history = History::new(&snapshot.revisions);
    if let Some(verified) = history.verified() {
        refuse_downgrade(definition, &history, verified)?;
        refuse_path(definition, verified)?;
    }
    refuse_replacement(snapshot, definition, wanted)?;
    refuse_running_release(snapshot, wanted)
}

/// Whether a changed spec waits for its requirements, whatever others hold.
pub(crate) fn waits_for_requirements(snapshot: &Snapshot, definition: &Definition) -> bool {
    requirements::met(snapshot, definition).and_then(|()| requirements::still(snapshot, definition)).is_err()
}

/// Asks once more for a revision that was made and has begun with nothing: it may have
/// been suspended since, or waited for a chart.
pub(crate) fn may_begin(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    requirements::met(snapshot, definition)
}

/// Judges a wanted state that differs from the latest revision.
pub(crate) fn may_start(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted) -> Result<(), Held> {
    refusals(snapshot, definition, wanted)?;
    conflicts(snapshot, wanted)?;
    requirements::met(snapshot, definition)?;
    requirements::still(snapshot, definition)
}

/// An expression that cannot be evaluated would be found out only once its
/// component has moved.
fn refuse_expressions(definition: &Definition) -> Result<(), Held> {
    for component in &definition.components {
        let entries = component.ready_when.iter().enumerate();
        if let Some((index, error)) =
            entries.filter_map(|(index, entry)| Some((index, Entry::parse(entry).err()?))).next()
        {
            let message = format!("component `{}`: readyWhen {index}: {error}", component.name);
            return Err(Held::refused(Reason::InvalidSpec, message));
        }
    }
    Ok(())
}

fn refuse_path(definition: &Definition, verified: &RevisionView) -> Result<(), Held> {
    let (Some(from), Ok(running)) = (&definition.upgrade.from, Version::parse(&verified.spec.version)) else {
        return Ok(());
    };
    if running == definition.version || from.admits(&running) {
        return Ok(());
    }
    let (version, range) = (&definition.version, from.as_written());
    let message = if version.cmp_precedence(&running).is_lt() {
        format!(
            "version {running} runs, {version} is older and can only follow {range}: let upgrade.from admit {running}"
        )
    } else {
        format!("version {running} runs, and {version} can only follow {range}: go through a version in between")
    };
    Err(Held::refused(Reason::UpgradePathNotAllowed, message))
}

/// An older version than *T*, or *T* itself after a move that the rollback rule
/// would not allow to undo.
fn refuse_downgrade(definition: &Definition, history: &History<'_>, verified: &RevisionView) -> Result<(), Held> {
    let Ok(running) = Version::parse(&verified.spec.version) else { return Ok(()) };
    if definition.upgrade.allow_downgrade {
        return Ok(());
    }
    if definition.version.cmp_precedence(&running).is_lt() {
        let refuses = definition.upgrade.from.as_ref().filter(|from| !from.admits(&running));
        let path = refuses.map(|from| format!(", and let upgrade.from ({}) admit {running}", from.as_written()));
        let message = format!(
            "version {running} runs, {} is older: set upgrade.allowDowngrade if that is meant{}",
            definition.version,
            path.unwrap_or_default()
        );
        return Err(Held::refused(Reason::DowngradeRefused, message));
    }
    let other_versions =
        history.since_verified().iter().filter(|revision| revision.spec.version != verified.spec.version);
    if let (true, Err(objection)) = (definition.version == running, History::may_return_to(verified, other_versions)) {
        let message =
            format!("{objection}, so {running} must not run again: fix forward, or set upgrade.allowDowngrade");
        return Err(Held::refused(Reason::DowngradeRefused, message));
    }
    Ok(())
}

/// Another namespace, release name or chart name for a component that runs.
fn refuse_replacement(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted) -> Result<(), Held> {
    for replacement in wanted.replacements(snapshot) {
        let component = definition.components.iter().find(|c| c.name.as_str() == replacement.component);
        if component.is_some_and(|component| component.replace) {
            continue;
        }
        let at_a_path = component.is_some_and(|component| matches!(component.chart, ChartSource::Path(_)));
        let (name, remedy) = (&replacement.component, "set install.replace if that is meant");
        let message = match replacement.what {
            Identity::ChartName if at_a_path => format!(
                "component `{name}` gets its chart from a directory of another name, which stands for another chart: that \
                 uninstalls and installs it; keep the last part of its path, or {remedy}"
            ),
            what => format!("component `{name}` gets another {what}: that uninstalls and installs it; {remedy}"),
        };
        return Err(Held::refused(Reason::InvalidSpec, message));
    }
    Ok(())
}

/// A hook whose release is that of a component that runs: it would be upgraded to
/// the hook's chart.
fn refuse_running_release(snapshot: &Snapshot, wanted: &Wanted) -> Result<(), Held> {
    for hook in wanted.hooks() {
        let runs = |child: &&Live| !release::is_hook(child) && release::claim(child) == Some(&hook.release);
        if let Some(child) = snapshot.own_children().find(runs) {
            let component = child.component().unwrap_or_default();
            let message = format!(
                "hook `{}` would take release {}, in which component `{component}` runs: give the hook a releaseName of its own",
                hook.name, hook.release.name
            );
            return Err(Held::refused(Reason::InvalidSpec, message));
        }
    }
    Ok(())
}

/// Objects and releases that belong to somebody else.
fn conflicts(snapshot: &Snapshot, wanted: &Wanted) -> Result<(), Held> {
    let foreign = foreign_children(snapshot, wanted);
    let held = releases_of_others(snapshot, wanted);
    let foreign = foreign.into_iter().map(|(message, blocker)| (message, Some(blocker)));
    let (messages, blocked_by): (Vec<_>, Vec<_>) = foreign.chain(held).chain(claims_of_peers(snapshot, wanted)).unzip();
    waiting(Reason::Conflict, messages, blocked_by.into_iter().flatten().collect())
}

/// What stands at the place of a child and is not ours.
fn foreign_children(snapshot: &Snapshot, wanted: &Wanted) -> Vec<(String, Blocker)> {
    let there: BTreeMap<&ObjectKey, &Live> = snapshot.children.iter().map(|child| (child.key(), child)).collect();
    let foreign = wanted.children().filter_map(|(component, key)| {
        let child = there.get(key).filter(|child| !wanted.owns(snapshot, component, child))?;
        let owner = child.package().map_or_else(|| "nobody we know".to_owned(), |p| format!("package {p}"));
        let message = format!(
            "{} {} exists and belongs to {owner}: remove it, or annotate it for adoption by `{component}`",
            key.kind, key.name
        );
        Some((message, conflict_with(key)))
    });
    foreign.collect()
}

/// Where the cluster wants accounts its tenants do not trust each other: what stands
/// in another namespace counts only if it runs, and nothing of it is told.
fn is_stranger(snapshot: &Snapshot, namespace: &str) -> bool {
    snapshot.cluster.require_service_account && namespace != snapshot.package.namespace
}

/// Whether an object of somebody else keeps us from a release.
fn holds(snapshot: &Snapshot, live: &Live, release: &Claim) -> bool {
    let same = |claim: &Claim| (&claim.namespace, &claim.name) == (&release.namespace, &release.name);
    let is_ours = || snapshot.own_children().filter_map(release::claim).any(same);
    release::holds(live, release)
        && (!is_stranger(snapshot, &live.key().namespace) || (release::is_deployed(live, release) && !is_ours()))
}

fn held_by_stranger(release: &Claim) -> (String, Option<Blocker>) {
    let message = format!(
        "release {}/{} is held from another namespace: ask whoever runs the cluster",
        release.namespace, release.name
    );
    (message, None)
}

/// Objects of somebody else that hold a wanted release, wherever they stand.
fn releases_of_others(snapshot: &Snapshot, wanted: &Wanted) -> Vec<(String, Option<Blocker>)> {
    let held = wanted.releases().filter_map(|(component, _)| {
        let in_the_way = |live: &&Live| {
            holds(snapshot, live, &component.release) && !adopt::is_given(snapshot, &component.name, live)
        };
        let key = snapshot.others.iter().find(in_the_way)?.key();
        if is_stranger(snapshot, &key.namespace) {
            return Some(held_by_stranger(&component.release));
        }
        let message = format!(
            "{key} holds release {} of component `{}`: remove it so that its release stays, or annotate it \
             {ANNOTATION_ADOPT}: {}",
            component.release.name,
            component.name,
            adopt::given_to(snapshot, &component.name)
        );
        Some((message, Some(conflict_with(key))))
    });
    let of_hooks = wanted.hooks().filter_map(|hook| {
        let key = snapshot.others.iter().find(|live| holds(snapshot, live, &hook.release))?.key();
        if is_stranger(snapshot, &key.namespace) {
            return Some(held_by_stranger(&hook.release));
        }
        let message = format!(
            "{key} holds release {} of hook `{}`: remove it, or give the hook another releaseName",
            hook.release.name, hook.name
        );
        Some((message, Some(conflict_with(key))))
    });
    held.chain(of_hooks).collect()
}

/// Children and releases that other Packages have, or ask for.
fn claims_of_peers(snapshot: &Snapshot, wanted: &Wanted) -> Vec<(String, Option<Blocker>)> {
    let held: BTreeSet<&Claim> = snapshot.own_children().filter_map(release::claim).collect();
    let standing: BTreeSet<&ObjectKey> = snapshot.own_children().map(Live::key).collect();
    let claimed = snapshot.peers.iter().filter_map(|peer| {
        let name = wanted.children().find(|(_, key)| peer.children.contains(key) && !standing.contains(key));
        let of_hooks = wanted.hooks().map(|hook| &hook.release);
        let mut claims = wanted.claims().chain(of_hooks);
        let release = claims.find(|claim| peer.has_claimed(snapshot, claim) && !held.contains(claim));
        let what = match (name, release) {
            (Some((component, key)), _) => format!("{key} of component `{component}`"),
            (None, Some(claim)) if is_stranger(snapshot, &peer.namespace) => return Some(held_by_stranger(claim)),
            (None, Some(claim)) => format!("release {}/{}", claim.namespace, claim.name),
            (None, None) => return None,
        };
        let hands_over = if peer.deleting { ", which is being deleted and hands it over" } else { "" };
        let blocker = Blocker {
            kind: "Package".into(),
            namespace: peer.namespace.clone(),
            name: peer.name.to_string(),
            reason: Reason::Conflict.to_string(),
        };
        Some((format!("{what} belongs to package {}{hands_over}", peer.name), Some(blocker)))
    });
    claimed.collect()
}

/// Wanted releases that other Packages have, or ask for.
pub(crate) fn held_by_peers(snapshot: &Snapshot, wanted: &Wanted) -> Vec<Claim> {
    let held = |claim: &&Claim| snapshot.peers.iter().any(|peer| peer.has_claimed(snapshot, claim));
    wanted.claims().filter(held).cloned().collect()
}

fn conflict_with(key: &ObjectKey) -> Blocker {
    Blocker {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        reason: Reason::Conflict.to_string(),
    }
}

pub(super) fn waiting(reason: Reason, messages: Vec<String>, blocked_by: Vec<Blocker>) -> Result<(), Held> {
    if messages.is_empty() {
        return Ok(());
    }
    Err(Held::Waiting { reason, message: messages.join("; "), blocked_by })
}
