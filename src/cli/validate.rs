//! `windlass validate`.

mod fix;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;

use super::directory::Directory;
use super::engine::EngineArgument;
use super::{Exit, Streams, charts, findings, paths};
use crate::chart::Library;
use crate::package::check::{Charts, Options, check};
use crate::package::diagnostic::{Report, Severity, Style, write_github, write_json, write_text};
use crate::package::load::{LoadedPackage, NamespaceRule};
use crate::package::names::Namespace;
use crate::package::tree::Tree;

const EXAMPLES: &str = "\
Examples:
  windlass validate packages/                             everything below a directory
  windlass validate --engine flux --chart-root . packages/
  windlass validate --charts vendor/charts --fix packages/  add dependencies that charts show
  windlass validate --format github --deny-warnings .     in a workflow
  helm template packages | windlass validate -

Exit status: 0 no errors (warnings are no errors), 1 errors, 2 usage, 3 something cannot be read.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files, directories (searched for *.yaml and *.yml) or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Engine of the Packages that name none. Without it only what holds for both engines is
    /// checked of them.
    #[arg(long)]
    engine: Option<EngineArgument>,
    /// Directory that the paths of charts begin at; an absent chart is an error then.
    /// Default: any directory from the first PATH up to the root of its Git
    /// repository or to the current one, and an absent chart is a warning.
    #[arg(long, value_name = "DIR")]
    chart_root: Option<PathBuf>,
    /// Directory with the charts of repositories, unpacked: NAME-VERSION, or NAME with that
    /// version in its Chart.yaml. With this or --chart-root charts are looked into for what one
    /// component needs of another. Can be given several times.
    #[arg(long, value_name = "DIR")]
    charts: Vec<PathBuf>,
    /// How findings are written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Exit with 1 on warnings too.
    #[arg(long)]
    deny_warnings: bool,
    /// Mend what can be mended with certainty: quotes where text is meant, one
    /// spelling where readers disagree, missing entries of dependsOn.
    #[arg(long)]
    fix: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people: the line and a caret.
    Text,
    /// For programs.
    Json,
    /// Workflow commands, shown beside the line in a pull request.
    Github,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if arguments.fix && arguments.paths.iter().any(|path| path.as_os_str() == "-") {
        writeln!(streams.stderr, "error: --fix changes files, and standard input is none")?;
        return Ok(Exit::Usage);
    }
    let mut outcome = find(arguments, streams)?;
    if arguments.fix {
        let count = fix::apply(&outcome.report)?;
        if count > 0 {
            let places = if count == 1 { "place" } else { "places" };
            writeln!(streams.stderr, "mended {count} {places}")?;
            outcome = find(arguments, streams)?;
        }
    }
    if let Some(absent) = &outcome.absent {
        writeln!(streams.stderr, "note: {absent}")?;
    }
    write(&outcome, arguments.format, streams)?;
    for path in &outcome.kustomizations {
        writeln!(
            streams.stderr,
            "note: {path}: kustomize is not run: `kustomize build DIR | windlass validate -` checks what it makes"
        )?;
    }
    // Of what has errors there is enough to say.
    if outcome.names_no_engine && outcome.report.errors() == 0 {
        writeln!(streams.stderr, "{NO_ENGINE}")?;
    }
    let denied = outcome.report.errors() > 0 || (arguments.deny_warnings && outcome.report.warnings() > 0);
    Ok(if denied { Exit::Findings } else { Exit::Ok })
}

/// Said where only what holds for both engines was checked.
const NO_ENGINE: &str = "note: no engine is named: what holds on Flux or on Argo CD alone was not checked; --engine flux or --engine argo does";

struct Outcome {
    report: Report,
    packages: usize,
    /// Nobody says which engine the Packages are for.
    names_no_engine: bool,
    /// Files of kustomize that do more than list the Packages.
    kustomizations: Vec<String>,
    /// What is said of charts that are not there.
    absent: Option<String>,
}

fn find(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Outcome> {
    let rule = NamespaceRule::Default(Namespace::parse("default")?);
    let mut loaded = paths::read(&arguments.paths, &rule, streams)?;
    let (roots, severity) = chart_roots(arguments)?;
    let roots: Vec<&dyn Tree> = roots.iter().map(|root| root as &dyn Tree).collect();
    let charts = Some(Charts { roots: &roots, severity }).filter(|_| !roots.is_empty());
    let unpacked =
        arguments.charts.iter().map(|directory| charts::open(directory)).collect::<anyhow::Result<Vec<_>>>()?;
    let unpacked: Vec<&dyn Tree> = unpacked.iter().map(|directory| directory as &dyn Tree).collect();
    let library = Library::new(&roots, &unpacked);
    let looks = arguments.chart_root.is_some() || !arguments.charts.is_empty();
    let library = Some(&library).filter(|_| looks);
    let options = Options { engine: arguments.engine.map(Into::into), charts, library };
    let found = check(&loaded, &options).context("cannot read the charts")?;
    let absent = library.and_then(|library| charts::absent(std::slice::from_ref(library)));
    loaded.diagnostics.extend(found);
    findings::add_no_package(&arguments.paths, &mut loaded);
    let packages = loaded.packages.len();
    let of_package = |package: &LoadedPackage| package.package.as_ref()?.spec.engine;
    let is_open = arguments.engine.is_none() && packages > 0;
    let names_no_engine = is_open && loaded.packages.iter().all(|package| of_package(package).is_none());
    let kustomizations = loaded.kustomizations().map(str::to_owned).collect();
    let report = Report::new(loaded.sources, loaded.diagnostics);
    Ok(Outcome { report, packages, names_no_engine, kustomizations, absent })
}

/// The root that was named; else, as a guess, every directory from the first path
/// up to the root of its Git repository or, outside of one, to the current directory.
fn chart_roots(arguments: &Arguments) -> anyhow::Result<(Vec<Directory>, Severity)> {
    if let Some(root) = &arguments.chart_root {
        let is_directory = std::fs::metadata(root).with_context(|| format!("cannot read {}", root.display()))?.is_dir();
        anyhow::ensure!(is_directory, "{} is no directory", root.display());
        return Ok((vec![Directory::new(root)], Severity::Error));
    }
    let first = arguments.paths.iter().find(|path| path.as_os_str() != "-");
    let Some(first) = first.and_then(|path| path.canonicalize().ok()) else {
        return Ok((Vec::new(), Severity::Warning));
    };
    let around: Vec<&Path> = first.ancestors().filter(|path| path.is_dir()).collect();
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let position = |wanted: &dyn Fn(&Path) -> bool| around.iter().position(|directory| wanted(directory));
    let last =
        position(&|directory| directory.join(".git").exists()).or_else(|| position(&|directory| directory == here));
    let roots = around.into_iter().take(last.unwrap_or(0) + 1);
    Ok((roots.map(Directory::new).collect(), Severity::Warning))
}

fn write(outcome: &Outcome, format: Format, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let text = match format {
        Format::Text if outcome.report.diagnostics.is_empty() => {
            let plural = if outcome.packages == 1 { "" } else { "s" };
            format!("{} Package{plural}, no findings\n", outcome.packages)
        }
        Format::Text => write_text(&outcome.report, if streams.color_stdout { Style::Colored } else { Style::Plain }),
        Format::Json => format!("{:#}\n", write_json(&outcome.report)),
        Format::Github => write_github(&outcome.report),
    };
    streams.stdout.write_all(text.as_bytes())?;
    Ok(())
}
