//! Random histories.

use proptest::strategy::Strategy as _;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use rstest::rstest;

use crate::history::{History, histories};
use crate::judge::judge;

/// How many histories each test plays; more with `PROPTEST_CASES`.
const CASES: u32 = 80;

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

fn runner(seed: u32, shrink: u32) -> TestRunner {
    let config = Config { failure_persistence: None, max_shrink_iters: shrink, ..Config::default() };
    let mut bytes = [7; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn outcome(history: &History) -> Result<(), String> {
    let mut rehearsal = history.play(None);
    judge(history, &mut rehearsal)
}

#[rstest]
#[case::first(0)]
#[case::second(1_000_000)]
fn whatever_happens_the_order_is_kept_and_an_end_is_reached(#[case] first: u32) {
    let first = number("SEED").unwrap_or(first);
    for seed in first..first + number("PROPTEST_CASES").unwrap_or(CASES) {
        let mut tree = histories().new_tree(&mut runner(seed, 0)).unwrap();
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

/// For people: what goes wrong with which seed, and how long each takes.
#[test]
#[ignore = "a survey, run by hand"]
fn survey() {
    let first = number("SEED").unwrap_or(0);
    for seed in first..first + number("PROPTEST_CASES").unwrap_or(CASES) {
        let history = histories().new_tree(&mut runner(seed, 0)).unwrap().current();
        let begin = std::time::Instant::now();
        let result = outcome(&history);
        println!("{seed} {:?} {:?} {result:?}", history.engine, begin.elapsed());
    }
}

/// For people: the end of one seed's story.
#[test]
#[ignore = "a look at one seed, run by hand"]
fn tell() {
    let history = histories().new_tree(&mut runner(number("SEED").unwrap(), 0)).unwrap().current();
    println!("{history:#?}");
    let mut rehearsal = history.play(None);
    println!("{:?}", judge(&history, &mut rehearsal));
    for change in rehearsal.world.store.log().iter().filter(|change| change.actor != "argocd") {
        let object = change.object.as_ref();
        let told = match change.key.kind.as_str() {
            "PackageRevision" | "Package" => object.get("status").map(ToString::to_string).unwrap_or_default(),
            kind if kind.starts_with("Thing") => object.get("status").map(ToString::to_string).unwrap_or_default(),
            _ => String::new(),
        };
        println!("{:>9} {:<18} {:?} {} {told}", change.at, change.actor, change.verb, change.key);
    }
    for note in &rehearsal.notes {
        println!("{:>9} {:?}", note.at, note.what);
    }
}
