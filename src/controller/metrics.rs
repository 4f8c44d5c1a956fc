//! Prometheus metrics, labels bounded: by Package, by reason, by kind of write.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::store::PackageKey;
use crate::api::{ComponentState, PackageStatus, RolloutStatus};

/// Labels as pairs of name and value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Labels(Vec<(&'static str, String)>);

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        self.0.encode(encoder)
    }
}

/// The counters of one process.
pub struct Metrics {
    registry: Registry,
    writes: Family<Labels, Counter>,
    reconciles: Family<Labels, Counter>,
    latency: Histogram,
    ready: Family<Labels, Gauge>,
    components: Family<Labels, Gauge>,
    leader: Gauge,
    rollouts: Family<Labels, Gauge>,
    nodes: Family<Labels, Gauge>,
    shown: Mutex<HashMap<PackageKey, Labels>>,
    shown_rollouts: Mutex<HashMap<PackageKey, ShownRollouts>>,
}

/// Labels under which the rollouts of a Package are shown.
#[derive(Debug, Default)]
struct ShownRollouts {
    infos: Vec<Labels>,
    counts: Vec<Labels>,
}

/// How a look at a Package ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Well,
    /// The cluster had changed meanwhile.
    Stale,
    /// With an error.
    Failed,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("windlass");
        let (writes, reconciles, ready) = (Family::default(), Family::default(), Family::default());
        let latency = Histogram::new([0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0]);
        let leader = Gauge::default();
        registry.register("api_writes", "Writes to the API server by what they do", writes.clone());
        registry.register("reconciles", "Looks at Packages by how they ended", reconciles.clone());
        registry.register("reconcile_duration_seconds", "Duration of looks at Packages", latency.clone());
        registry.register("package_info", "1 for each Package with the reason it is in", ready.clone());
        let components = Family::default();
        registry.register("package_components", "Components of a Package, done or not", components.clone());
        registry.register("leader", "1 in the process that leads", leader.clone());
        let (rollouts, nodes) = (Family::default(), Family::default());
        registry.register(
            "rollout_info",
            "1 for each DaemonSet behind a canary with phase and guard",
            rollouts.clone(),
        );
        registry.register("rollout_nodes", "Nodes of a DaemonSet behind a canary", nodes.clone());
        let (shown, shown_rollouts) = (Mutex::default(), Mutex::default());
        Self {
            registry,
            writes,
            reconciles,
            latency,
            ready,
            components,
            leader,
            rollouts,
            nodes,
            shown,
            shown_rollouts,
        }
    }

    /// A write was made.
    pub fn wrote(&self, what: &str) {
        self.writes.get_or_create(&Labels(vec![("action", what.to_owned())])).inc();
    }

    /// A look has ended.
    pub fn reconciled(&self, ended: Ended, seconds: f64) {
        let result = match ended {
            Ended::Well => "well",
            Ended::Stale => "stale",
            Ended::Failed => "failed",
        };
        self.reconciles.get_or_create(&Labels(vec![("result", result.to_owned())])).inc();
        self.latency.observe(seconds);
    }

    /// Whether this process leads.
    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// What a Package's status says.
    pub fn observe(&self, key: &PackageKey, status: &PackageStatus) {
        self.observe_rollouts(key, &status.rollouts);
        let done = status.components.iter().filter(|component| is_done(component.state)).count();
        for (labels, count) in component_labels(key).iter().zip([done, status.components.len() - done]) {
            self.components.get_or_create(labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let Some(ready) = status.conditions.iter().find(|condition| condition.type_ == "Ready") else { return };
        let labels = Labels(vec![
            ("namespace", key.0.clone()),
            ("package", key.1.clone()),
            ("ready", ready.status.clone()),
            ("reason", ready.reason.clone()),
        ]);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = shown.insert(key.clone(), labels.clone()).filter(|before| *before != labels) {
            self.ready.remove(&before);
        }
        self.ready.get_or_create(&labels).set(1);
    }

    fn observe_rollouts(&self, key: &PackageKey, rollouts: &[RolloutStatus]) {
        let mut now = ShownRollouts::default();
        for rollout in rollouts {
            let of =
                [("namespace", key.0.clone()), ("package", key.1.clone()), ("daemonset", rollout.daemon_set.clone())];
            let guard = rollout.guard.map(|guard| format!("{guard:?}")).unwrap_or_default();
            let told = [("phase", rollout.phase.to_string()), ("guard", guard)];
            let info = Labels(of.iter().cloned().chain(told).collect());
            self.rollouts.get_or_create(&info).set(1);
            now.infos.push(info);
            for (state, count) in [("desired", rollout.desired), ("updated", rollout.updated), ("ready", rollout.ready)]
            {
                let labels = Labels(of.iter().cloned().chain([("state", state.to_owned())]).collect());
                self.nodes.get_or_create(&labels).set(count);
                now.counts.push(labels);
            }
        }
        let mut shown = self.shown_rollouts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.remove(key).unwrap_or_default();
        before.infos.iter().filter(|labels| !now.infos.contains(labels)).for_each(|labels| {
            self.rollouts.remove(labels);
        });
        before.counts.iter().filter(|labels| !now.counts.contains(labels)).for_each(|labels| {
            self.nodes.remove(labels);
        });
        if !now.infos.is_empty() {
            shown.insert(key.clone(), now);
        }
    }

    /// The Package is gone.
    pub fn forget(&self, key: &PackageKey) {
        self.observe_rollouts(key, &[]);
        component_labels(key).iter().for_each(|labels| {
            self.components.remove(labels);
        });
        let before = self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        before.iter().for_each(|labels| {
            self.ready.remove(labels);
        });
    }

    /// All metrics as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => {
                tracing::error!(%error, "metrics cannot be written");
                String::new()
            }
        }
    }
}

/// Both are there from the first look on, so that a change from none is seen.
fn component_labels(key: &PackageKey) -> [Labels; 2] {
    ["done", "open"].map(|state| {
        Labels(vec![("namespace", key.0.clone()), ("package", key.1.clone()), ("state", state.to_owned())])
    })
}

/// Whether nothing is to be done about a component any more.
const fn is_done(state: ComponentState) -> bool {
    matches!(state, ComponentState::Verified | ComponentState::Restored | ComponentState::Removed)
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
