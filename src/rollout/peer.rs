//! A Package as the others see it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::gate;
use super::history::History;
use super::live::{Live, key_of};
use super::release;
use super::snapshot::{Peer, Required, RevisionView, Snapshot};
use super::wanted::Wanted;
use crate::api::{Claim, Engine, RevisionPhase};
use crate::engine::{ObjectKey, claim, follower_name};
use crate::package::definition::{ChartSource, Definition, Requirement};
use crate::package::version::Version;

/// What other Packages may know of the one in `snapshot`, whose own peers do not
/// matter here.
pub fn peer(snapshot: &Snapshot) -> Peer {
    let history = History::new(&snapshot.revisions);
    let latest = history.latest();
    let definition = snapshot.package.definition.as_deref().ok();
    let wanted = definition.and_then(|definition| {
        let engine = super::engine(snapshot).ok()?;
        Some((definition, Wanted::of(snapshot, definition, engine).ok()?))
    });
    let changed = wanted.as_ref().is_some_and(|(_, wanted)| latest.is_none_or(|latest| wanted.differs_from(latest)));
    let pending = latest.is_some_and(|latest| latest.status.phase == RevisionPhase::Pending);
    let own: Vec<&Live> = snapshot.own_children().collect();
    let spec_claims = wanted.iter().flat_map(|(_, wanted)| wanted.claims().cloned());
    let canaried = definition.iter().flat_map(|definition| &definition.components).filter(|c| c.canary.is_some());
    let hook_claims = wanted.iter().flat_map(|(_, wanted)| wanted.hooks()).map(|hook| hook.release.clone());
    let spec_children = wanted.iter().flat_map(|(_, wanted)| wanted.children().map(|(_, key)| key.clone()));
    let held = own.iter().filter_map(|child| release::claim(child));
    let running =
        own.iter().filter_map(|child| release::claim(child).filter(|claim| release::is_deployed(child, claim)));
    let standing = own.iter().map(|child| child.key().clone());
    let followed = wanted.iter().filter(|_| changed).flat_map(|(definition, w)| followers(definition, w.engine));
    let deleting = snapshot.package.deleting;
    Peer {
        namespace: snapshot.package.namespace.clone(),
        name: snapshot.package.name.clone(),
        succeeded: history.verified().and_then(|verified| Version::parse(&verified.spec.version).ok()),
        wanted: definition.map(|definition| definition.version.clone()),
        open: latest.is_some_and(|latest| latest.is_open() && !pending),
        wants_change: changed || pending,
        refused: definition.is_none()
            || wanted.as_ref().is_some_and(|(d, wanted)| changed && gate::is_refused(snapshot, d, wanted)),
        deleting,
        requires: definition.map(required).unwrap_or_default(),
        generation: snapshot.package.generation,
        claims: Arc::new(spec_claims.filter(|_| !deleting).chain(held.cloned()).collect()),
        held: Arc::new(running.cloned().collect()),
        guarded: Arc::new(canaried.filter(|_| !deleting).map(claim).collect()),
        hook_claims: Arc::new(hook_claims.collect()),
        children: Arc::new(spec_children.filter(|_| !deleting).chain(standing).collect()),
        sources: Arc::new(sources(snapshot).chain(followed).collect()),
    }
}

impl Peer {
    /// Whether this Package, another one than that of the snapshot, claims a
    /// release. Where the cluster wants accounts its tenants do not trust each
    /// other: in another namespace only what runs counts, not what a spec says.
    pub(crate) fn has_claimed(&self, snapshot: &Snapshot, claim: &Claim) -> bool {
        let trusted = self.namespace == snapshot.package.namespace || !snapshot.cluster.require_service_account;
        if trusted { self.claims.contains(claim) } else { self.held.contains(claim) }
    }
}

/// Where an object of an engine, found in the cluster, belongs in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// At the place of a child, or given to this Package.
    Child,
    /// It holds a release that the Package claims.
    Other,
    /// It does not matter.
    Nothing,
}

/// Sorts an object that somebody else may own; `own` is the Package as the
/// others see it.
pub fn sort(own: &Peer, live: &Live) -> Found {
    let key = live.key();
    let given = format!("{}/{}/", own.namespace, own.name);
    let here = key.namespace == own.namespace;
    let is_given = live.adopt().is_some_and(|adopt| adopt.starts_with(&given));
    if here && (own.children.contains(key) || is_given) {
        Found::Child
    } else if here && live.package() == Some(own.name.as_str()) {
        Found::Nothing
    } else if own.claims.iter().chain(own.hook_claims.iter()).any(|claim| release::holds(live, claim)) {
        Found::Other
    } else {
        Found::Nothing
    }
}

fn required(definition: &Definition) -> Vec<Required> {
    let packages = definition.requires.iter().filter_map(|requirement| match requirement {
        Requirement::Package { name, range, optional } => {
            Some(Required { name: name.clone(), range: range.clone(), optional: *optional })
        }
        Requirement::Kubernetes { .. } => None,
    });
    packages.collect()
}

/// Flux sources that children and revisions point at, whoever they belong to.
pub fn sources_of(children: &[Live], revisions: &[RevisionView]) -> BTreeSet<ObjectKey> {
    children.iter().filter_map(release::chart_source).chain(recorded_sources(revisions)).collect()
}

fn sources(snapshot: &Snapshot) -> impl Iterator<Item = ObjectKey> {
    recorded_sources(&snapshot.revisions)
}

fn recorded_sources(revisions: &[RevisionView]) -> impl Iterator<Item = ObjectKey> {
    let components = revisions.iter().flat_map(|revision| &revision.spec.components);
    let manifests = components.flat_map(|component| &component.manifests).map(key_of);
    manifests.filter(|key| release::is_source_kind(&key.kind))
}

/// Charts of ours that follow the Package's source until the wanted version of
/// each is there: no revision points at them yet.
fn followers(definition: &Definition, engine: Engine) -> impl Iterator<Item = ObjectKey> {
    let source = definition.source.as_ref().filter(|_| engine == Engine::Flux);
    let charts = definition.components.iter().filter_map(|component| match &component.chart {
        ChartSource::Path(chart) => Some(chart),
        ChartSource::Repository(_) => None,
    });
    let namespace = definition.namespace.to_string();
    source.into_iter().flat_map(move |source| {
        let namespace = namespace.clone();
        charts.clone().map(move |chart| ObjectKey {
            api_version: "source.toolkit.fluxcd.io/v1".into(),
            kind: "HelmChart".into(),
            namespace: namespace.clone(),
            name: follower_name(&source.name, chart),
        })
    })
}
