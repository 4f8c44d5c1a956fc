//! Random histories.

use proptest::strategy::ValueTree as _;
use rstest::rstest;

use crate::seeds::{outcome, tree};

/// How many histories each test plays; more with `PROPTEST_CASES`.
const CASES: u32 = 80;

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

#[rstest]
#[case::first(0)]
#[case::second(1_000_000)]
fn whatever_happens_the_order_is_kept_and_an_end_is_reached(#[case] first: u32) {
    let first = number("SEED").unwrap_or(first);
    for seed in first..first + number("PROPTEST_CASES").unwrap_or(CASES) {
        let mut tree = tree(seed);
        let Err(mut error) = outcome(&tree.current()) else { continue };
        let mut smallest = tree.current();
        for _ in 0..number("SHRINK").unwrap_or(60) {
            match outcome(&tree.current()) {
                Err(again) => {
                    (error, smallest) = (again, tree.current());
                    if !tree.simplify() {
                        break;
                    }
                }
                Ok(()) => {
                    if !tree.complicate() {
                        break;
                    }
                }
            }
        }
        panic!("SEED={seed}: {error}\n{smallest:#?}");
    }
}
