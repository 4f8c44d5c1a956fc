//! The record of the benchmarks, which only `make bench` compares with counts.

#![allow(dead_code, reason = "tests run nothing of the benchmarks")]

#[path = "../benches/counts/cases.rs"]
mod cases;
#[path = "../benches/counts/moments.rs"]
mod moments;
#[path = "../benches/counts/record.rs"]
mod record;

use rstest::rstest;

use record::{Counts, Verdict, is_linear, judge, without_case};

#[test]
fn every_case_has_a_record_and_every_record_a_case() {
    let recorded = record::read().unwrap();
    let mut names: Vec<&str> = cases::CASES.iter().map(|case| case.name).collect();
    assert_eq!(without_case(&recorded, &names), Vec::<&str>::new());
    names.sort_unstable();
    assert_eq!(recorded.keys().map(String::as_str).collect::<Vec<_>>(), names);
}

#[rstest]
#[case::the_same(1000, Some(1000), Verdict::Kept)]
#[case::a_tenth_more(1100, Some(1000), Verdict::Kept)]
#[case::above(1101, Some(1000), Verdict::Worse)]
#[case::a_tenth_less(900, Some(1000), Verdict::Kept)]
#[case::below(899, Some(1000), Verdict::Better)]
#[case::new(1, None, Verdict::NotRecorded)]
fn a_count_is_judged_by_its_record(#[case] count: u64, #[case] recorded: Option<u64>, #[case] verdict: Verdict) {
    assert_eq!(judge(count, recorded), verdict);
}

#[test]
fn what_is_not_compared_fails() {
    assert!(Verdict::NotRecorded.fails() && Verdict::Worse.fails());
    assert!(!Verdict::Kept.fails() && !Verdict::Better.fails());
    let recorded = Counts::from([("gone".to_owned(), 1), ("kept".to_owned(), 2)]);
    assert_eq!(without_case(&recorded, &["kept", "new"]), ["gone"]);
}

#[test]
fn twice_the_components_may_take_a_tenth_more_than_twice_as_much() {
    assert!(is_linear(1000, 2200));
    assert!(!is_linear(1000, 2201));
}

#[test]
fn only_cases_are_compared_with_each_other() {
    let names: Vec<&str> = cases::CASES.iter().map(|case| case.name).collect();
    assert!(cases::DOUBLED.iter().all(|(single, double)| names.contains(single) && names.contains(double)));
}
