//! Flux: source-controller and helm-controller, as they were seen to behave.

mod action;
mod plan;
mod release;
mod source;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::store::{Change, Key, Verb, generation, is_deleting};
use super::world::{START, Task, World};
use super::{conditions, json};

/// Field manager and actor of helm-controller.
pub(super) const HELM_CONTROLLER: &str = "helm-controller";
/// Field manager and actor of source-controller.
pub(super) const SOURCE_CONTROLLER: &str = "source-controller";
/// Asks for a reconciliation.
pub(super) const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";
/// Milliseconds until a change is noticed.
const NOTICE: u64 = 10;

/// State of both controllers beyond what is in the objects.
#[derive(Clone, Debug)]
pub(super) struct Flux {
    /// HelmReleases that wait for a worker.
    pub queue: VecDeque<Key>,
    /// What workers are at.
    pub runs: BTreeMap<Key, release::Run>,
    /// HelmReleases that changed while a worker was at them.
    pub dirty: BTreeSet<Key>,
    /// When each repository was last fetched.
    pub fetched: BTreeMap<Key, u64>,
    /// Generation, request and deletion last noticed of each object.
    noticed: BTreeMap<Key, (i64, String, bool)>,
    /// How many HelmReleases are worked on at a time.
    pub workers: usize,
    /// `CancelHealthCheckOnNewRevision`.
    pub cancel_gate: bool,
}

impl Default for Flux {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            runs: BTreeMap::new(),
            dirty: BTreeSet::new(),
            fetched: BTreeMap::new(),
            noticed: BTreeMap::new(),
            workers: 4,
            cancel_gate: false,
        }
    }
}

impl World {
    /// Switches helm-controller's `CancelHealthCheckOnNewRevision` on.
    pub fn cancel_health_checks(&mut self) {
        self.flux.cancel_gate = true;
    }

    /// Whether a worker of helm-controller is at a HelmRelease.
    pub fn is_worked_on(&self, key: &Key) -> bool {
        self.flux.runs.contains_key(key)
    }

    /// Whatever workers were at is begun again.
    pub(super) fn helm_controller_starts(&mut self) {
        (self.flux.queue, self.flux.runs, self.flux.dirty) = Default::default();
        let releases: Vec<Key> = self.store.list("HelmRelease").map(|(key, _)| key.clone()).collect();
        releases.into_iter().for_each(|key| self.schedule(START, Task::HelmQueue(key)));
    }

    /// Every source is looked at.
    pub(super) fn source_controller_starts(&mut self) {
        let kinds = ["HelmRepository", "GitRepository", "OCIRepository", "HelmChart"].into_iter();
        let sources = kinds.flat_map(|kind| self.store.list(kind)).map(|(key, _)| key.clone());
        sources.collect::<Vec<_>>().into_iter().for_each(|key| self.schedule(START, Task::Source(key)));
    }

    pub(super) fn flux_react(&mut self, change: &Change) {
        let key = change.key.as_ref();
        match key.kind.as_str() {
            "HelmRelease" => self.notice(change, Task::HelmQueue(key.clone())),
            "HelmRepository" | "HelmChart" | "OCIRepository" | "GitRepository" => {
                self.notice(change, Task::Source(key.clone()));
                if change.actor == SOURCE_CONTROLLER {
                    self.source_changed(change);
                }
            }
            _ => {}
        }
    }

    /// Changes of a status, or of metadata that nobody asked for, are no reason
    /// to look.
    fn notice(&mut self, change: &Change, task: Task) {
        let key = change.key.as_ref();
        if change.verb == Verb::Deleted {
            self.flux.noticed.remove(key);
            return;
        }
        let object = &change.object;
        let requested = json::text(object, &["metadata", "annotations", REQUESTED_AT]).to_owned();
        let now = (generation(object), requested, is_deleting(object));
        if self.flux.noticed.insert(key.clone(), now.clone()) != Some(now) {
            self.schedule(NOTICE, task);
        }
    }

    /// Whoever uses a source looks again when its artifact, or its readiness, is
    /// another.
    fn source_changed(&mut self, change: &Change) {
        let key = change.key.as_ref();
        let users: Vec<Key> = match key.kind.as_str() {
            "HelmRepository" | "GitRepository" => self.charts_of(key),
            _ => self.releases_of(key),
        };
        for user in users {
            let task = if user.kind == "HelmChart" { Task::Source(user) } else { Task::HelmQueue(user) };
            self.schedule(NOTICE, task);
        }
    }

    fn charts_of(&self, source: &Key) -> Vec<Key> {
        let uses = |chart: &serde_json::Map<String, serde_json::Value>| {
            let text = |field| json::text(chart, &["spec", "sourceRef", field]);
            text("kind") == source.kind && text("name") == source.name
        };
        let charts = self.store.list("HelmChart").filter(|(key, _)| key.namespace == source.namespace);
        charts.filter(|(_, chart)| uses(chart)).map(|(key, _)| key.clone()).collect()
    }

    fn releases_of(&self, chart: &Key) -> Vec<Key> {
        let releases = self.store.list("HelmRelease").filter(|(key, _)| key.namespace == chart.namespace);
        releases
            .filter(|(key, release)| plan::chart_key(key, release).as_ref() == Some(chart))
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// Whether a source is ready at its present generation.
pub(super) fn is_source_ready(source: &serde_json::Map<String, serde_json::Value>) -> bool {
    json::integer(source, &["status", "observedGeneration"]) == Some(generation(source))
        && conditions::is_true(source, "Ready")
}
