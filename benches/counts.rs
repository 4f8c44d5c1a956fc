//! What commands cost, as instructions.
//!
//! Wall time on a shared machine says little, so it is only shown; what counts
//! is how many instructions a whole run of the binary takes, from process start
//! to exit, under callgrind. More than a tenth above `benches/counts.json` fails.
//! `WINDLASS_BENCH_UPDATE=1` writes that file anew.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How far above the recorded count a count may be.
const TOLERANCE: f64 = 1.10;
/// Runs of which the median wall time is shown.
const RUNS: usize = 15;
const RECORD: &str = "benches/counts.json";

struct Case {
    name: &'static str,
    bar: Duration,
    command: fn(&Path) -> Command,
}

const CASES: [Case; 6] = [
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

fn main() -> ExitCode {
    let directory = tempfile::tempdir().unwrap();
    write_packages(&directory.path().join("large"), 100, 10);
    write_packages(&directory.path().join("small/packages"), 10, 5);
    write_charts(&directory.path().join("small/charts"), 10);
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORD);
    let recorded: BTreeMap<String, u64> =
        fs::read_to_string(&record).map_or_else(|_| BTreeMap::new(), |text| serde_json::from_str(&text).unwrap());
    let counting = Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success());
    let mut counts = BTreeMap::new();
    let mut failed = false;
    println!("{:<42} {:>10} {:>8} {:>16} {:>16}", "", "median", "bar", "instructions", "recorded");
    for case in &CASES {
        let median = median(case, directory.path());
        let count = counting.then(|| instructions(case, directory.path()));
        let before = recorded.get(case.name).copied();
        let above = count.zip(before).is_some_and(|(count, before)| count as f64 > before as f64 * TOLERANCE);
        failed |= above;
        let shown = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
        let mark = if above { "  MORE THAN A TENTH ABOVE" } else { "" };
        let (ms, bar) = (median.as_secs_f64() * 1e3, case.bar.as_millis());
        println!("{:<42} {ms:>7.1} ms {bar:>5} ms {:>16} {:>16}{mark}", case.name, shown(count), shown(before));
        counts.extend(count.map(|count| (case.name, count)));
    }
    if !counting {
        println!("NOT GATED: valgrind is not installed (apt-get install valgrind)");
    } else if std::env::var_os("WINDLASS_BENCH_UPDATE").is_some() {
        fs::write(record, format!("{:#}\n", serde_json::json!(counts))).unwrap();
        return ExitCode::SUCCESS;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

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

fn median(case: &Case, root: &Path) -> Duration {
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

fn instructions(case: &Case, root: &Path) -> u64 {
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

/// Packages with a chain of components each; every second one requires the one before.
fn write_packages(directory: &Path, packages: usize, components: usize) {
    fs::create_dir_all(directory).unwrap();
    let with_paths = directory.ends_with("packages");
    for package in 0..packages {
        let requires = if package % 2 == 1 { format!("[{{package: p{}}}]", package - 1) } else { "[]".to_owned() };
        let mut text = format!(
            "apiVersion: windlass.dev/v1alpha1\nkind: Package\nmetadata: {{name: p{package}}}\nspec:\n  \
             version: 1.{package}.0\n  requires: {requires}\n  components:\n"
        );
        for component in 0..components {
            text.push_str(&component_text(package, component, with_paths && component == 0));
        }
        fs::write(directory.join(format!("p{package}.yaml")), text).unwrap();
    }
}

fn component_text(package: usize, component: usize, path: bool) -> String {
    let mut text = format!("  - name: c{component}\n");
    let chart = if path {
        format!("path: charts/c{package}")
    } else {
        let repository = format!("https://charts.example.org/r{}", package % 7);
        format!("chart: {{repository: '{repository}', name: c{component}, version: 1.2.{package}}}")
    };
    let depends_on = if component > 0 { format!("[c{}]", component - 1) } else { "[]".to_owned() };
    // No CEL: its limit on wall time could end a run under callgrind.
    let ready = "{apiVersion: example.org/v1, kind: Thing, name: t, condition: Current}";
    let image = format!("{{repository: images.example.org/c{component}, tag: 'v1.2.{package}'}}");
    let _ = write!(
        text,
        "    {chart}\n    values:\n      replicas: {component}\n      image: {image}\n      config: |\n        a = 1\n        \
         b = [on, off]\n    install:\n      namespace: n{package}\n      dependsOn: {depends_on}\n      readyWhen:\n      - {ready}\n"
    );
    text
}

fn write_charts(directory: &Path, charts: usize) {
    for chart in 0..charts {
        let root = directory.join(format!("c{chart}"));
        fs::create_dir_all(root.join("templates")).unwrap();
        fs::write(root.join("Chart.yaml"), format!("apiVersion: v2\nname: c{chart}\nversion: 1.0.0\n")).unwrap();
        fs::write(root.join("values.yaml"), "replicas: 1\n".repeat(50)).unwrap();
        for template in 0..10 {
            fs::write(root.join(format!("templates/t{template}.yaml")), "kind: ConfigMap\n".repeat(100)).unwrap();
        }
    }
}
