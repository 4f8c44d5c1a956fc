//! `canary` of a component, parsed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::strategy::Budget;
use crate::api::{Canary, CanaryFailure, RolloutMode, UnreadyNodes};
use crate::package::duration::GoDuration;

const SOAK: GoDuration = GoDuration::from_secs(60);
const TIMEOUT: GoDuration = GoDuration::from_secs(600);
const PROGRESS_DEADLINE: GoDuration = GoDuration::from_secs(600);
const MAX_RESTARTS: u32 = 2;
const STEP: Budget = Budget::Percent(10);

/// How DaemonSets of a component are rolled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Budgets after the canary, in order; at least one.
    pub steps: Vec<Budget>,
    /// How long the canary must stay ready.
    pub soak: Duration,
    /// Time the canary has to become ready.
    pub timeout: Duration,
    /// Time without a further updated node that fails the rollout.
    pub progress_deadline: Duration,
    /// Restarts of a container that are forgiven.
    pub max_restarts: u32,
    /// What a failure leaves behind.
    pub on_failure: CanaryFailure,
    /// Whether nodes that were not ready before count.
    pub unready_nodes: UnreadyNodes,
    /// Whether a pod may die before Windlass says so.
    pub mode: RolloutMode,
    /// Labels of the nodes a canary may be chosen from.
    pub node_selector: BTreeMap<String, String>,
    /// Annotations of a pod that must equal the DaemonSet's.
    pub match_annotations: Vec<String>,
}

impl From<&Canary> for Settings {
    /// Durations and steps that cannot be read have their default: the offline
    /// checks and the CRD refuse them.
    fn from(canary: &Canary) -> Self {
        let duration = |text: &Option<String>, default: GoDuration| {
            text.as_deref().and_then(|text| GoDuration::parse(text).ok()).unwrap_or(default).get()
        };
        let stated = canary.steps.iter().flatten();
        let mut steps: Vec<Budget> = stated.filter_map(|step| Budget::parse(step)).collect();
        if steps.is_empty() {
            steps.push(STEP);
        }
        Self {
            steps,
            soak: duration(&canary.soak, SOAK),
            timeout: duration(&canary.timeout, TIMEOUT),
            progress_deadline: duration(&canary.progress_deadline, PROGRESS_DEADLINE),
            max_restarts: canary.max_restarts.unwrap_or(MAX_RESTARTS),
            on_failure: canary.on_failure.unwrap_or(CanaryFailure::Hold),
            unready_nodes: canary.unready_nodes.unwrap_or(UnreadyNodes::Exclude),
            mode: canary.mode.unwrap_or(RolloutMode::Strict),
            node_selector: canary.node_selector.clone(),
            match_annotations: canary.match_annotations.clone(),
        }
    }
}

impl Settings {
    /// The budget of a step, counted from 1; after the last one the last.
    pub fn step(&self, position: u32) -> Budget {
        let index = usize::try_from(position.saturating_sub(1)).unwrap_or(usize::MAX);
        self.steps.get(index).or_else(|| self.steps.last()).copied().unwrap_or(STEP)
    }

    /// Number of the last step.
    pub fn last_step(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX).max(1)
    }
}
