//! Histories by number: the same number is the same history.

use proptest::strategy::Strategy as _;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::history::{History, histories};
use crate::judge::judge;

/// The history of a number, to be made smaller.
pub fn tree(seed: u32) -> impl ValueTree<Value = History> {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    histories().new_tree(&mut runner).unwrap()
}

/// Plays a history and judges it.
pub fn outcome(history: &History) -> Result<(), String> {
    let mut rehearsal = history.play(None, None);
    judge(history, &mut rehearsal)
}
