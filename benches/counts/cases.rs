//! What is counted. A new case is one entry of [`CASES`], then
//! `WINDLASS_BENCH_UPDATE=1 make bench` for its record.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// One run of a program.
pub struct Case {
    /// What it does; the name of its record.
    pub name: &'static str,
    /// What the median of its wall time should stay below; shown, not judged.
    pub bar: Duration,
    /// The program, given the directory with the packages.
    pub command: fn(&Path) -> Command,
}

pub const CASES: &[Case] = &[
    Case { name: "start and exit", bar: Duration::from_millis(5), command: |_| windlass(&["--version"]) },
    Case {
        name: "validate 100 packages, 1,000 components",
        bar: Duration::from_millis(200),
        command: |root| {
            let mut command = windlass(&["validate", "--engine", "flux", "."]);
            command.current_dir(root.join("large"));
            command
        },
    },
    Case {
        name: "render 1,000 components, managed, flux",
        bar: Duration::from_millis(100),
        command: |root| render(root, "flux", "managed"),
    },
    Case {
        name: "render 1,000 components, managed, argo",
        bar: Duration::from_millis(100),
        command: |root| render(root, "argo", "managed"),
    },
    Case {
        name: "render 1,000 components, native, flux",
        bar: Duration::from_millis(100),
        command: |root| render(root, "flux", "native"),
    },
    Case { name: "plugin generate, 10 packages", bar: Duration::from_millis(20), command: plugin },
];

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
