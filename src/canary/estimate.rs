//! How long a rollout may take without missing a deadline of its own.

use std::time::Duration;

use super::settings::Settings;

/// The time that the rollout of a DaemonSet on `desired` nodes may take: the
/// canary, its soak, and every batch up to the deadline for progress, which
/// `min_ready` (`minReadySeconds`) is added to. It is added to the timeout of its
/// component's turn.
pub fn allowance(settings: &Settings, desired: i64, min_ready: Duration) -> Duration {
    let batches = u32::try_from(batches(settings, desired)).unwrap_or(u32::MAX);
    let steps = settings.progress_deadline.saturating_add(min_ready).saturating_mul(batches);
    settings.timeout.saturating_add(settings.soak).saturating_add(steps)
}

/// Batches after the canary.
pub fn batches(settings: &Settings, desired: i64) -> i64 {
    let mut left = (desired - 1).max(0);
    let mut batches = 0;
    for step in 1..settings.last_step() {
        if left > 0 {
            left = (left - settings.step(step).of(desired).max(1)).max(0);
            batches += 1;
        }
    }
    let last = settings.step(settings.last_step()).of(desired).max(1);
    batches + (left + last - 1) / last
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::Canary;

    #[rstest]
    #[case::none(&[], 0, 0)]
    #[case::one(&[], 1, 0)]
    #[case::ten_one_by_one(&[], 10, 9)]
    #[case::hundred_by_ten(&[], 100, 10)]
    #[case::thousand_by_a_hundred(&[], 1000, 10)]
    #[case::two_steps(&["10%", "50%"], 100, 3)]
    #[case::a_number(&["3"], 10, 3)]
    fn batches_follow_the_steps(#[case] steps: &[&str], #[case] desired: i64, #[case] expected: i64) {
        let steps = (!steps.is_empty()).then(|| steps.iter().map(|step| (*step).to_owned()).collect());
        let settings = Settings::from(&Canary { steps, ..Canary::default() });
        assert_eq!(batches(&settings, desired), expected);
    }

    #[rstest]
    #[case(10)]
    #[case(100)]
    #[case(1000)]
    fn the_costs_in_the_documentation_are_those_of_the_code(#[case] nodes: i64) {
        let settings = Settings::from(&Canary::default());
        let (batches, allowance) = (batches(&settings, nodes), allowance(&settings, nodes, Duration::ZERO));
        let row = format!("| {nodes} | {batches} | ");
        let document = include_str!("../../docs/canary.md");
        let found = document.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("no row `{row}`"));
        let minutes = (90 + 30 * batches + 30) / 60;
        assert!(found.contains(&format!("| {minutes} min |")), "{minutes} min: {found}");
        assert!(found.ends_with(&format!("| {} |", crate::clock::short(allowance))), "{allowance:?}: {found}");
    }

    #[test]
    fn the_allowance_is_what_its_own_deadlines_admit() {
        let settings = Settings::from(&Canary::default());
        assert_eq!(allowance(&settings, 1000, Duration::ZERO), Duration::from_secs(600 + 60 + 10 * 600));
        let min_ready = Duration::from_secs(30);
        assert_eq!(allowance(&settings, 1000, min_ready), Duration::from_secs(600 + 60 + 10 * 630));
    }
}
