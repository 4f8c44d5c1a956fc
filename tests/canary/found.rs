//! Histories in which a rollout once broke a promise.

use windlass::api::RolloutMode;
use windlass::sim::chart::Fate;

use crate::history::{Event, History, history};
use crate::judge::judge;

fn keeps_its_promises(history: &History) {
    let mut rollout = history.start();
    let from = rollout.world.store.log().len();
    history.play(&mut rollout, None, false);
    if let Err(error) = judge(history, &mut rollout, from) {
        panic!("{}\nVIOLATION {error}", rollout.tell());
    }
}

/// The pod that the first of them took down was taken for one that had been so before.
#[test]
fn of_two_upgrades_in_a_second_only_one_pod_goes() {
    keeps_its_promises(&history(|h| {
        (h.nodes, h.guarded, h.soak, h.fix, h.latency) = (7, false, 0, Fate::NeverReady, 5);
        h.steps = vec!["10%".into()];
        h.lags.revisions = 400;
        h.events = vec![(16_016, Event::Template(3)), (16_579, Event::Template(3))];
    }));
    keeps_its_promises(&history(|h| {
        (h.nodes, h.mode, h.guarded, h.dead, h.soak) = (4, RolloutMode::Compat, false, 1, 0);
        (h.fix, h.latency) = (Fate::NeverReady, 400);
        h.events = vec![(1401, Event::Template(3)), (2086, Event::Template(3))];
    }));
}

/// Seen by a late watch, it was not ready, and to go for nothing.
#[test]
fn a_pod_that_has_just_become_ready_does_not_go_beside_another() {
    keeps_its_promises(&history(|h| {
        (h.nodes, h.guarded, h.dead, h.latency) = (11, false, 1, 5);
        h.steps = vec!["10%".into()];
        (h.lags.daemon_sets, h.lags.pods) = (20, 400);
        h.events = vec![(28_621, Event::Template(3))];
    }));
}

/// Left out, it would have left nothing that shows whether the template is well.
#[test]
fn the_only_node_is_not_left_out() {
    keeps_its_promises(&history(|h| {
        (h.nodes, h.guarded, h.soak) = (1, false, 0);
        h.events = vec![(147_072, Event::Evict(0)), (148_673, Event::Template(3))];
    }));
}

/// Beside the old pod a new one is made there, too, and stays pending.
#[test]
fn a_node_that_was_dead_before_two_upgrades_fails_neither() {
    keeps_its_promises(&history(|h| {
        (h.nodes, h.mode, h.surge, h.dead, h.soak, h.latency) = (4, RolloutMode::Compat, true, 1, 0, 5);
        h.steps = vec!["10%".into()];
        h.events = vec![(5145, Event::Rewrite(3))];
    }));
}
