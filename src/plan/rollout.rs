//! How DaemonSets go behind a canary, in words.

use crate::api::{Canary, RolloutMode};
use crate::canary::Settings;
use crate::clock::short;

/// The rollout of a component that is upgraded.
pub fn told(canary: &Canary) -> String {
    let settings = Settings::from(canary);
    let first = match settings.mode {
        RolloutMode::Strict => "one node first",
        RolloutMode::Compat => "one node at a time first",
    };
    let steps: Vec<String> = settings.steps.iter().map(ToString::to_string).collect();
    format!(
        "behind a canary: {first}, ready for {}; then at most {} of the nodes at once",
        short(settings.soak),
        steps.join(", then "),
    )
}
