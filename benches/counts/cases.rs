//! What is counted. A new case is one entry of [`CASES`], then
//! `WINDLASS_BENCH_UPDATE=1 make bench` for its record.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::moments::Moment;

/// Something that is counted.
pub struct Case {
    /// What it does; the name of its record.
    pub name: &'static str,
    /// What the median of its wall time should stay below; shown, not judged.
    pub bar: Duration,
    /// What is run.
    pub work: Work,
}

/// What is run.
#[derive(Clone, Copy)]
pub enum Work {
    /// A program, from its start to its exit, given the directory with the packages.
    Program(fn(&Path) -> Command),
    /// One decision about a chain of so many components.
    Decision(Moment, usize),
}

use Work::{Decision, Program};

pub const CASES: &[Case] = &[
    Case { name: "start and exit", bar: Duration::from_millis(5), work: Program(|_| windlass(&["--version"])) },
    Case {
        name: "validate 100 packages, 1,000 components",
        bar: Duration::from_millis(200),
        work: Program(|root| {
            let mut command = windlass(&["validate", "--engine", "flux", "."]);
            command.current_dir(root.join("large"));
            command
        }),
    },
    Case {
        name: "render 1,000 components, managed, flux",
        bar: Duration::from_millis(100),
        work: Program(|root| render(root, "flux", "managed")),
    },
    Case {
        name: "render 1,000 components, managed, argo",
        bar: Duration::from_millis(100),
        work: Program(|root| render(root, "argo", "managed")),
    },
    Case {
        name: "render 1,000 components, native, flux",
        bar: Duration::from_millis(100),
        work: Program(|root| render(root, "flux", "native")),
    },
    Case { name: "plugin generate, 10 packages", bar: Duration::from_millis(20), work: Program(plugin) },
    Case { name: "plan 2 packages of 3,000 files", bar: Duration::from_millis(500), work: Program(plan) },
    Case { name: "decide at rest, 50 components", bar: Duration::from_micros(500), work: Decision(Moment::AtRest, 50) },
    Case { name: AT_REST, bar: Duration::from_millis(1), work: Decision(Moment::AtRest, 100) },
    Case { name: "decide midway, 50 components", bar: Duration::from_micros(500), work: Decision(Moment::Midway, 50) },
    Case { name: MIDWAY, bar: Duration::from_millis(1), work: Decision(Moment::Midway, 100) },
];

const AT_REST: &str = "decide at rest, 100 components";
const MIDWAY: &str = "decide midway, 100 components";

/// Pairs of cases of which the second has twice the components of the first:
/// what is linear in them takes no more than twice as much.
pub const DOUBLED: &[(&str, &str)] =
    &[("decide at rest, 50 components", AT_REST), ("decide midway, 50 components", MIDWAY)];

/// The binary, with nothing of this process's environment or streams.
fn windlass(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).env_clear().stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn render(root: &Path, engine: &str, mode: &str) -> Command {
    let mut command = windlass(&["render", "--engine", engine, "--mode", mode, "."]);
    command.current_dir(root.join("large"));
    command
}

fn plan(root: &Path) -> Command {
    let mut command = windlass(&["plan", "before", "after", "--repo"]);
    command.arg(root.join("repository"));
    command
}

fn plugin(root: &Path) -> Command {
    let mut command = windlass(&["plugin", "generate"]);
    command.current_dir(root.join("small/packages")).envs([
        ("ARGOCD_APP_NAMESPACE", "packages"),
        ("ARGOCD_APP_REVISION", "0123456789012345678901234567890123456789"),
        ("ARGOCD_APP_SOURCE_REPO_URL", "https://git.example.org/platform.git"),
        ("ARGOCD_APP_SOURCE_PATH", "packages"),
        ("KUBE_VERSION", "1.33.4"),
    ]);
    command
}
