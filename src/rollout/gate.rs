//! May a changed spec start? Refusals first, then what it has to wait for.
//! Nothing has changed in the cluster when this is asked.

use std::collections::{BTreeMap, BTreeSet};

use super::adopt;
use super::history::History;
use super::live::Live;
use super::release;
use super::snapshot::{Peer, Required, RevisionView, Snapshot};
use super::wanted::{Identity, Wanted};
use crate::api::wellknown::ANNOTATION_ADOPT;
use crate::api::{Blocker, Claim, Reason};
use crate::engine::ObjectKey;
use crate::package::definition::{ChartSource, Definition, Requirement};
use crate::package::names::PackageName;
use crate::package::range::Range;
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
        refuse_path(definition, verified)?;
        refuse_downgrade(definition, &history, verified)?;
    }
    refuse_replacement(snapshot, definition, wanted)?;
    refuse_running_release(snapshot, wanted)
}

/// Whether a changed spec waits for its requirements, whatever others hold.
pub(crate) fn waits_for_requirements(snapshot: &Snapshot, definition: &Definition) -> bool {
    requirements(snapshot, definition)
        .and_then(|()| excluded_by_requirers(snapshot, definition))
        .and_then(|()| settle(snapshot, definition))
        .is_err()
}

/// Asks once more for a revision that was made and has begun with nothing: it may have
/// been suspended since, or waited for a chart.
pub(crate) fn may_begin(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    requirements(snapshot, definition)?;
    excluded_by_requirers(snapshot, definition)
}

/// Judges a wanted state that differs from the latest revision.
pub(crate) fn may_start(snapshot: &Snapshot, definition: &Definition, wanted: &Wanted) -> Result<(), Held> {
    refusals(snapshot, definition, wanted)?;
    conflicts(snapshot, wanted)?;
    requirements(snapshot, definition)?;
    excluded_by_requirers(snapshot, definition)?;
    settle(snapshot, definition)
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
    let message = format!(
        "version {running} runs, and {} can only follow {}: go through a version in between",
        definition.version,
        from.as_written()
    );
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
        let message = format!(
            "version {running} runs, {} is older: set upgrade.allowDowngrade if that is meant",
            definition.version
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
        let runs = |child: &&Live| !release::is_hook(child) && release::claim(child).as_ref() == Some(&hook.release);
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
    let same = |claim: Claim| (&claim.namespace, &claim.name) == (&release.namespace, &release.name);
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
    let held: BTreeSet<Claim> = snapshot.own_children().filter_map(release::claim).collect();
    let standing: BTreeSet<&ObjectKey> = snapshot.own_children().map(Live::key).collect();
    let claimed = snapshot.peers.iter().filter_map(|peer| {
        let name = wanted.children().find(|(_, key)| peer.children.contains(key) && !standing.contains(key));
        let of_hooks = wanted.hooks().map(|hook| hook.release.clone());
        let mut claims = wanted.claims().chain(of_hooks);
        let release = claims.find(|claim| peer.has_claimed(snapshot, claim) && !held.contains(claim));
        let what = match (name, release) {
            (Some((component, key)), _) => format!("{key} of component `{component}`"),
            (None, Some(claim)) if is_stranger(snapshot, &peer.namespace) => return Some(held_by_stranger(&claim)),
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
    let held = |claim: &Claim| snapshot.peers.iter().any(|peer| peer.has_claimed(snapshot, claim));
    wanted.claims().filter(held).collect()
}

fn conflict_with(key: &ObjectKey) -> Blocker {
    Blocker {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        reason: Reason::Conflict.to_string(),
    }
}

/// The other Packages of the namespace.
fn neighbours(snapshot: &Snapshot) -> impl Iterator<Item = &Peer> {
    snapshot.peers.iter().filter(|peer| peer.namespace == snapshot.package.namespace)
}

fn waiting(reason: Reason, messages: Vec<String>, blocked_by: Vec<Blocker>) -> Result<(), Held> {
    if messages.is_empty() {
        return Ok(());
    }
    Err(Held::Waiting { reason, message: messages.join("; "), blocked_by })
}

/// Each required package has a last succeeded version in the range and is not
/// moving; Kubernetes is in the range.
fn requirements(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    let mut messages = Vec::new();
    let mut blocked_by = Vec::new();
    for requirement in &definition.requires {
        match requirement {
            Requirement::Kubernetes { range } => {
                let version = snapshot.cluster.kubernetes.as_ref();
                if !version.is_some_and(|version| range.admits(version)) {
                    let found = version.map_or_else(|| "unknown".to_owned(), Version::to_string);
                    messages.push(format!("Kubernetes {} is required, found {found}", range.as_written()));
                }
            }
            Requirement::Package { name, range, optional } => {
                let peer = neighbours(snapshot).find(|peer| peer.name == *name);
                if let Some(unmet) = unmet(snapshot, name, range.as_ref(), *optional, peer) {
                    messages.push(unmet);
                    blocked_by.push(package_blocker(snapshot, name));
                }
            }
        }
    }
    waiting(Reason::RequirementsNotMet, messages, blocked_by)
}

fn unmet(
    snapshot: &Snapshot,
    name: &PackageName,
    range: Option<&Range>,
    optional: bool,
    peer: Option<&Peer>,
) -> Option<String> {
    let Some(peer) = peer else {
        return (!optional).then(|| format!("package {name} is required and does not exist"));
    };
    let wanted = range.map_or_else(String::new, |range| format!(" {}", range.as_written()));
    let Some(version) = &peer.succeeded else {
        return Some(format!("package {name}{wanted} is required and has not succeeded yet"));
    };
    if range.is_some_and(|range| !range.admits(version)) {
        return Some(format!("package {name}{wanted} is required, {version} runs"));
    }
    is_moving(snapshot, peer).then(|| format!("package {name} is required and is moving"))
}

/// A revision has started and not ended, or is wanted and waits for something
/// other than a refusal or the package that asks, directly or through others.
pub(crate) fn is_moving(snapshot: &Snapshot, peer: &Peer) -> bool {
    peer.open || (peer.wants_change && !peer.refused && !waits_for_us(snapshot, peer, &mut BTreeSet::new()))
}

fn waits_for_us(snapshot: &Snapshot, peer: &Peer, seen: &mut BTreeSet<PackageName>) -> bool {
    if !seen.insert(peer.name.clone()) {
        return false;
    }
    let requires = |name: &PackageName| peer.requires.iter().any(|required| required.name == *name);
    if requires(&snapshot.package.name) || is_excluded_by_us(snapshot, peer) {
        return true;
    }
    let awaited = neighbours(snapshot).filter(|next| next.wants_change);
    awaited.filter(|next| requires(&next.name) || excludes(next, peer)).any(|next| waits_for_us(snapshot, next, seen))
}

/// Whether what this package asks for keeps another one from its version.
fn is_excluded_by_us(snapshot: &Snapshot, peer: &Peer) -> bool {
    let (Ok(definition), Some(wanted)) = (&snapshot.package.definition, &peer.wanted) else { return false };
    let runs = History::new(&snapshot.revisions).verified().is_some();
    let excludes = |requirement: &Requirement| match requirement {
        Requirement::Package { name, range: Some(range), .. } => *name == peer.name && !range.admits(wanted),
        Requirement::Package { range: None, .. } | Requirement::Kubernetes { .. } => false,
    };
    runs && definition.requires.iter().any(excludes)
}

/// Whether an installed requirer keeps another package from its version.
fn excludes(requirer: &Peer, peer: &Peer) -> bool {
    let Some(wanted) = &peer.wanted else { return false };
    let out = |required: &Required| required.range.as_ref().is_some_and(|range| !range.admits(wanted));
    let installed = requirer.succeeded.is_some() && !requirer.deleting;
    installed && requirer.requires.iter().any(|required| required.name == peer.name && out(required))
}

/// A package does not start towards a version that the wanted spec of an
/// installed requirer excludes.
fn excluded_by_requirers(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    let mut messages = Vec::new();
    let mut blocked_by = Vec::new();
    for peer in neighbours(snapshot).filter(|peer| peer.succeeded.is_some() && !peer.deleting) {
        let excluding = peer.requires.iter().find(|required| {
            required.name == definition.name && required.range.as_ref().is_some_and(|r| !r.admits(&definition.version))
        });
        if let Some(range) = excluding.and_then(|required| required.range.as_ref()) {
            messages.push(format!(
                "package {} requires {} {}, {} is outside of it",
                peer.name,
                definition.name,
                range.as_written(),
                definition.version
            ));
            blocked_by.push(package_blocker(snapshot, &peer.name));
        }
    }
    waiting(Reason::RequirementsNotMet, messages, blocked_by)
}

fn package_blocker(snapshot: &Snapshot, name: &PackageName) -> Blocker {
    Blocker {
        kind: "Package".into(),
        namespace: snapshot.package.namespace.clone(),
        name: name.to_string(),
        reason: Reason::RequirementsNotMet.to_string(),
    }
}

/// One commit changes several packages one after the other: whoever requires
/// others starts only when it and what it requires have been still.
fn settle(snapshot: &Snapshot, definition: &Definition) -> Result<(), Held> {
    let required: Vec<&Peer> = definition
        .requires
        .iter()
        .filter_map(|requirement| match requirement {
            Requirement::Package { name, .. } => neighbours(snapshot).find(|peer| peer.name == *name),
            Requirement::Kubernetes { .. } => None,
        })
        .collect();
    let requires_packages = definition.requires.iter().any(|r| matches!(r, Requirement::Package { .. }));
    if !requires_packages {
        return Ok(());
    }
    let still =
        required.iter().map(|peer| peer.still_for).chain([snapshot.package.still_for]).min().unwrap_or_default();
    match snapshot.cluster.requirements_settle.checked_sub(still) {
        Some(left) if !left.is_zero() => Err(Held::Settling { left }),
        Some(_) | None => Ok(()),
    }
}
