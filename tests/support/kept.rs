//! Logs of runs that have failed: those of the last few, each in a directory of its own.

use std::path::{Path, PathBuf};

/// Of so many runs the logs are there.
pub const RUNS: usize = 5;

/// Makes room for the logs of one more run; a name that sorts later is a later run.
pub fn make_room(directory: &Path, name: &str) -> PathBuf {
    let mut known: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    known.sort();
    let most = known.len().saturating_sub(RUNS - 1);
    for old in &known[..most] {
        let removed = if old.is_dir() { std::fs::remove_dir_all(old) } else { std::fs::remove_file(old) };
        if let Err(error) = removed {
            eprintln!("bench: {}: {error}", old.display());
        }
    }
    directory.join(name)
}

/// The time of a run, and who it is.
pub fn name_of_this_run() -> String {
    let now = jiff::Timestamp::now();
    format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), std::process::id())
}

pub mod measure {
    use super::{RUNS, make_room};

    /// What an earlier run has kept is not deleted by the next one.
    pub fn the_logs_of_the_last_failed_runs_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        for run in 0..RUNS + 2 {
            let kept = make_room(directory.path(), &format!("2026-{run}"));
            std::fs::create_dir_all(&kept).expect("a directory");
            std::fs::write(kept.join("controller.log"), "x").expect("a log");
        }
        let left = std::fs::read_dir(directory.path()).expect("a directory").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().expect("a name")).collect();
        left.sort();
        assert_eq!(left, ["2026-2", "2026-3", "2026-4", "2026-5", "2026-6"]);
    }
}
