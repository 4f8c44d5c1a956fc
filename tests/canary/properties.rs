//! Properties of random rollouts.

use proptest::prelude::*;
use windlass::sim::chart::Fate;

use crate::history::{Event, histories};
use crate::judge::judge;

/// Fewer than usual, unless `PROPTEST_CASES` says how many.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { 100 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Never more unavailable pods than the phase allows; no old pod dies before
    /// its time; what is broken fails at once; it ends; it succeeds where nothing
    /// fails; nothing is written at rest.
    #[test]
    fn a_rollout_keeps_its_promises(history in histories()) {
        let mut rollout = history.start();
        let from = rollout.world.store.log().len();
        history.play(&mut rollout, None, false);
        let judged = judge(&history, &mut rollout, from);
        if let Err(error) = judged {
            prop_assert!(false, "{}\nVIOLATION {}", rollout.tell(), error);
        }
    }

    /// A process that is killed at any moment changes nothing of how it ends.
    #[test]
    fn a_restart_changes_nothing(mut history in histories(), kills in prop::collection::vec(0..150_000u64, 1..6)) {
        history.events.retain(|(_, event)| matches!(event, Event::Reapply));
        history.dead = 0;
        if history.fate.1.is_some() {
            history.fate.0 = Fate::Runs;
        }
        let mut calm = history.start();
        history.play(&mut calm, None, false);
        history.events.extend(kills.into_iter().map(|at| (at, Event::Restart)));
        history.events.sort_by_key(|(at, _)| *at);
        let mut killed = history.start();
        history.play(&mut killed, None, false);
        prop_assert_eq!(
            (calm.record.phase, calm.record.reason, calm.pods()),
            (killed.record.phase, killed.record.reason, killed.pods()),
            "{}\n\n{}", calm.tell(), killed.tell()
        );
    }
}
