//! What commands and decisions cost, as instructions.
//!
//! Wall time on a shared machine says little, so it is only shown; what counts
//! is how many instructions a whole run of the binary takes, from process start
//! to exit, or one decision, under callgrind. More than a tenth above
//! `benches/counts/record.json` fails, as does a case without a record, a record
//! without a case, or a decision that is not linear in the components.
//! `WINDLASS_BENCH_UPDATE=1` writes that file anew. `cargo bench -- plan` takes the
//! cases alone whose names contain that.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

mod cases;
mod measure;
mod moments;
mod packages;
mod record;

use std::process::ExitCode;

use cases::{CASES, DOUBLED, Work};
use record::{Counts, Verdict};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, name] = arguments.as_slice()
        && option == measure::DECIDE
    {
        return decide(name);
    }
    if !measure::can_count() {
        eprintln!("error: instructions are counted by valgrind, which is not installed: apt-get install valgrind");
        return ExitCode::FAILURE;
    }
    let directory = tempfile::tempdir().unwrap();
    packages::write(directory.path());
    let update = std::env::var_os("WINDLASS_BENCH_UPDATE").is_some();
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |case: &&cases::Case| wanted.is_empty() || wanted.iter().any(|part| case.name.contains(*part));
    let recorded = if update { record::read().unwrap_or_default() } else { record::read().unwrap() };
    println!("{:<42} {:>10} {:>8} {:>16} {:>16}", "", "median", "bar", "instructions", "recorded");
    let mut counts = Counts::new();
    let mut failed = false;
    for case in CASES.iter().filter(is_wanted) {
        let median = measure::median(case, directory.path());
        let count = measure::instructions(case, directory.path());
        let before = recorded.get(case.name).copied();
        let verdict = record::judge(count, before);
        failed |= verdict.fails();
        let (ms, bar) = (median.as_secs_f64() * 1e3, case.bar.as_secs_f64() * 1e3);
        let before = before.map_or("-".to_owned(), |before| before.to_string());
        println!("{:<42} {ms:>7.2} ms {bar:>5} ms {count:>16} {before:>16}{}", case.name, mark(verdict));
        counts.insert(case.name.to_owned(), count);
    }
    if update {
        let kept = recorded.into_iter().filter(|(name, _)| !wanted.is_empty() && !counts.contains_key(name));
        let counts: Counts = kept.chain(counts.clone()).collect();
        record::write(&counts).unwrap();
        return ExitCode::SUCCESS;
    }
    if !wanted.is_empty() {
        return if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    for name in record::without_case(&recorded, &names) {
        println!("{name:<42} RECORD WITHOUT A CASE");
        failed = true;
    }
    for (single, double) in DOUBLED {
        if !record::is_linear(counts[*single], counts[*double]) {
            println!("{double:<42} MORE THAN TWICE OF {single}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Makes the decision of a case.
fn decide(name: &str) -> ExitCode {
    let case = CASES.iter().find(|case| case.name == name);
    let Some(Work::Decision(moment, components)) = case.map(|case| case.work) else {
        eprintln!("error: `{name}` is no decision");
        return ExitCode::FAILURE;
    };
    moments::decide_once(moment, components);
    ExitCode::SUCCESS
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "",
        Verdict::Better => "  more than a tenth below: record it with WINDLASS_BENCH_UPDATE=1",
        Verdict::Worse => "  MORE THAN A TENTH ABOVE",
        Verdict::NotRecorded => "  NOT RECORDED: WINDLASS_BENCH_UPDATE=1 does it",
    }
}
