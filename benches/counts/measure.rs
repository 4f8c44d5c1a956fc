//! Instructions and wall time of a case.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::cases::Case;

/// Runs of which the median wall time is taken.
const RUNS: usize = 15;

/// Whether instructions can be counted here.
pub fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Median wall time of a case, process start and exit included.
pub fn median(case: &Case, root: &Path) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            assert!((case.command)(root).status().unwrap().success(), "{}", case.name);
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

/// Instructions of one run of a case under callgrind, from start to exit.
pub fn instructions(case: &Case, root: &Path) -> u64 {
    let inner = (case.command)(root);
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(inner.get_program())
        .args(inner.get_args());
    command.env_clear().envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let count = text.lines().find_map(|line| line.split_once("Collected :").map(|(_, count)| count.trim()));
    count.unwrap_or_else(|| panic!("callgrind counted nothing: {text}")).parse().unwrap()
}
