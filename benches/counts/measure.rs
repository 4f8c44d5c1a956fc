//! Instructions and wall time of a case.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::cases::{Case, Work};
use super::moments;

/// Runs of which the median wall time is taken.
const RUNS: usize = 15;

/// The argument with which this program makes the decision of a case, to be counted.
pub const DECIDE: &str = "--decide";

/// Whether instructions can be counted here.
pub fn can_count() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Median wall time of a case: of a program with its start and exit.
pub fn median(case: &Case, root: &Path) -> Duration {
    let command = match case.work {
        Work::Program(command) => command,
        Work::Decision(moment, components) => return moments::median(moment, components),
    };
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            assert!(is_done(command(root).status().unwrap()), "{}", case.name);
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

/// Instructions of a case under callgrind: of a program from start to exit, of
/// a decision alone.
pub fn instructions(case: &Case, root: &Path) -> u64 {
    match case.work {
        Work::Program(command) => count(&command(root), &[]),
        Work::Decision(..) => {
            let mut this = Command::new(std::env::current_exe().unwrap());
            this.args([DECIDE, case.name]);
            count(&this, &["--collect-atstart=no", "--toggle-collect=*counted_decision*"])
        }
    }
}

/// Whether a program did what it should; 4: a plan that changes something.
fn is_done(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 4))
}

fn count(inner: &Command, options: &[&str]) -> u64 {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(inner.get_program())
        .args(inner.get_args());
    command.env_clear().envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(is_done(output.status), "{text}");
    let count = text.lines().find_map(|line| line.split_once("Collected :").map(|(_, count)| count.trim()));
    let count = count.unwrap_or_else(|| panic!("callgrind counted nothing: {text}")).parse().unwrap();
    assert!(count > 0, "nothing ran that is to be counted: {text}");
    count
}
