//! `windlass render`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::Value;

use super::directory::Directory;
use super::engine::EngineArgument;
use super::{Exit, Streams, findings, output, paths};
use crate::api::Engine;
use crate::package::check;
use crate::package::content::chart_content;
use crate::package::definition::{ChartSource, Definition, RelativePath, Requirement};
use crate::package::diagnostic::{Diagnostic, Severity};
use crate::package::load::{Loaded, LoadedPackage, NamespaceRule};
use crate::package::names::Namespace;
use crate::package::tree::Tree;
use crate::translate::{
    Charts, Compilation, Compiled, Options, Refusal, Subject, Translation, compile, managed, native,
};

const EXAMPLES: &str = "\
Examples:
  windlass render --engine flux packages/                 what the controller writes
  windlass render --engine argo --mode native -o out/ packages/
  windlass render --engine argo --mode package --repo-url https://git.example.org/platform.git \\
      --revision \"$(git rev-parse HEAD)\" --chart-root . -n packages packages/";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files, directories (searched for *.yaml and *.yml) or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Engine of the Packages that name none; one that names another is refused.
    #[arg(long)]
    engine: Option<EngineArgument>,
    /// What the Packages become.
    #[arg(long, value_enum, default_value_t = Mode::Managed)]
    mode: Mode,
    /// Git repository of the charts at a path.
    #[arg(long, value_name = "URL", requires = "revision")]
    repo_url: Option<String>,
    /// Commit of the charts at a path; with the name of a branch Argo CD would follow it, out of
    /// order.
    #[arg(long, requires = "repo_url")]
    revision: Option<String>,
    /// Directory that the paths of charts begin at: reads the charts' versions and content.
    #[arg(long, value_name = "DIR")]
    chart_root: Option<PathBuf>,
    /// With --mode native: leave hooks out instead of refusing them.
    #[arg(long)]
    skip_hooks: bool,
    /// Namespace of the Packages, whatever they say.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Write `<kind>_<name>.yaml` files into this directory, all or none; others in it are named
    /// and left alone, also those of components that are gone.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// The HelmReleases or Applications as the controller writes them.
    Managed,
    /// HelmReleases or Applications that keep their order without a controller.
    Native,
    /// The Packages for the controller, with the source of their charts.
    Package,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if arguments.skip_hooks && !matches!(arguments.mode, Mode::Native) {
        writeln!(
            streams.stderr,
            "error: --skip-hooks goes with --mode native: in all others the controller runs hooks"
        )?;
        return Ok(Exit::Usage);
    }
    let namespace = match arguments.namespace.as_deref().map(Namespace::parse).transpose() {
        Ok(namespace) => namespace,
        Err(error) => {
            writeln!(streams.stderr, "error: --namespace: {error}")?;
            return Ok(Exit::Usage);
        }
    };
    let rule = match &namespace {
        Some(namespace) => NamespaceRule::Forced(namespace.clone()),
        None => NamespaceRule::Default(Namespace::parse("default")?),
    };
    let mut loaded = paths::read(&arguments.paths, &rule, streams)?;
    loaded.refuse_stray_documents();
    let root = arguments.chart_root.as_deref().map(chart_root).transpose()?;
    let roots: Vec<&dyn Tree> = root.iter().map(|root| root as &dyn Tree).collect();
    let charts = root.is_some().then_some(check::Charts { roots: &roots, severity: Severity::Error });
    let options = check::Options { engine: arguments.engine.map(Engine::from), charts, library: None };
    let found = check::check(&loaded, &options).context("cannot read a chart")?;
    loaded.diagnostics.extend(found);
    findings::add_no_package(&arguments.paths, &mut loaded);
    let places = places(&loaded);
    if loaded.has_errors() {
        let refusals = refused_besides(&loaded, arguments, root.as_ref());
        findings::write_errors(loaded, streams)?;
        write_refusals(&refusals, &places, streams)?;
        return Ok(Exit::Findings);
    }
    match translate(loaded, arguments, root.as_ref()) {
        Err(refusals) => {
            write_refusals(&refusals, &places, streams)?;
            Ok(Exit::Findings)
        }
        Ok((objects, notes)) => {
            for note in notes {
                writeln!(streams.stderr, "note: {note}")?;
            }
            write(&objects, arguments, streams)?;
            Ok(Exit::Ok)
        }
    }
}

/// What is refused of the Packages that have no errors themselves: told with the errors of
/// the others, and not only once these are mended.
fn refused_besides(loaded: &Loaded, arguments: &Arguments, root: Option<&Directory>) -> Vec<Refusal> {
    let charts = root.map(|root| move |path: &RelativePath| chart_content(root, path.as_str()));
    let charts = charts.as_ref().map(|read| read as &Charts<'_>);
    let errors = || loaded.diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
    let is_sound = |package: &&LoadedPackage| {
        let is_its = |finding: &Diagnostic| finding.package.as_deref() == Some(package.name.as_str());
        package.definition.is_some() && !errors().any(is_its)
    };
    let sound = loaded.packages.iter().filter(is_sound).cloned().collect();
    compile_all(sound, &compilation(arguments, charts)).err().unwrap_or_default()
}

fn write_refusals(
    refusals: &[Refusal],
    places: &BTreeMap<Subject, String>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    for refusal in refusals {
        let place = places.get(&refusal.about).map(|place| format!("{place}: ")).unwrap_or_default();
        writeln!(streams.stderr, "error: {place}{refusal}")?;
    }
    Ok(())
}

fn compilation<'a>(arguments: &'a Arguments, charts: Option<&'a Charts<'a>>) -> Compilation<'a> {
    Compilation {
        engine: arguments.engine.map(Engine::from),
        origin: arguments.repo_url.as_deref().zip(arguments.revision.as_deref()),
        origin_stated_in: "--repo-url and --revision",
        charts,
    }
}

/// Where the Packages and their components are: `FILE:LINE`.
fn places(loaded: &Loaded) -> BTreeMap<Subject, String> {
    let mut places = BTreeMap::new();
    for package in &loaded.packages {
        let Some(source) = loaded.sources.get(package.source) else { continue };
        let place =
            |pointer: &str| format!("{}:{}", source.path(), source.position(package.root.locate(pointer).start).line);
        let about = |component: Option<String>| Subject { package: package.name.clone(), component };
        places.entry(about(None)).or_insert_with(|| place("/metadata/name"));
        let components = package.definition.iter().flat_map(|definition| &definition.components).enumerate();
        for (position, component) in components {
            let pointer = format!("/spec/components/{position}");
            places.entry(about(Some(component.name.to_string()))).or_insert_with(|| place(&pointer));
        }
    }
    places
}

/// So many names of a list are told.
const SHOWN: usize = 10;

/// What is said where the namespace of Packages is ours to choose.
fn assumed_namespace(packages: &[LoadedPackage]) -> Option<String> {
    let names_none = |package: &&LoadedPackage| package.root.find("/metadata/namespace").is_none();
    let names: Vec<&str> = packages.iter().filter(names_none).map(|package| package.name.as_str()).collect();
    let verb = if names.len() == 1 { "names" } else { "name" };
    let shown = output::first_of(&names, SHOWN);
    (!names.is_empty()).then(|| format!("{shown} {verb} no namespace: `default` is written; -n NAMESPACE says another"))
}

fn chart_root(path: &Path) -> anyhow::Result<Directory> {
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    anyhow::ensure!(metadata.is_dir(), "{} is no directory", path.display());
    Ok(Directory::new(path))
}

fn write(objects: &[Value], arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let Some(directory) = &arguments.output else { return output::to_stdout(objects, streams) };
    let names = output::to_directory(objects, directory)?;
    let others = output::other_manifests(directory, &names)?;
    if !others.is_empty() {
        let shown = output::first_of(&others, SHOWN);
        writeln!(streams.stderr, "note: not of this run, and left as they are: {shown}")?;
    }
    let plural = if names.len() == 1 { "" } else { "s" };
    writeln!(streams.stderr, "{} file{plural} in {}", names.len(), directory.display())
        .context("cannot write to standard error")
}

/// Objects in order, and what has to be said of them.
type Output = (Vec<Value>, Vec<String>);

fn translate(loaded: Loaded, arguments: &Arguments, root: Option<&Directory>) -> Result<Output, Vec<Refusal>> {
    let charts = root.map(|root| move |path: &RelativePath| chart_content(root, path.as_str()));
    let charts = charts.as_ref().map(|read| read as &Charts<'_>);
    let engine = arguments.engine.map(Engine::from);
    let compilation = compilation(arguments, charts);
    let assumed = assumed_namespace(&loaded.packages).filter(|_| arguments.namespace.is_none());
    let compiled = compile_all(loaded.packages, &compilation)?;
    let (objects, definitions): (Vec<Value>, Vec<Definition>) =
        compiled.into_iter().map(|package| (Value::Object(package.object), package.definition)).unzip();
    let options = Options { skip_hooks: arguments.skip_hooks, ..Options::for_engine(engine) };
    let (objects, mut notes) = match arguments.mode {
        Mode::Managed => {
            let (objects, mut notes) = output_of(managed(&definitions, &options)?);
            notes.push(MANAGED.to_owned());
            (objects, notes)
        }
        Mode::Native => {
            let (objects, mut notes) = output_of(native(&definitions, &options)?);
            notes.extend(definitions.iter().flat_map(unchecked_kubernetes));
            (objects, notes)
        }
        Mode::Package => {
            managed(&definitions, &options)?;
            (objects, Vec::new())
        }
    };
    notes.extend(assumed);
    notes.extend(arguments.revision.as_deref().and_then(|revision| follows(revision, &definitions)));
    match loaded.others.len() {
        0 => {}
        1 => notes.push("one manifest that is no Package is left out".to_owned()),
        count => notes.push(format!("{count} manifests that are no Packages are left out")),
    }
    Ok((objects, notes))
}

/// Argo CD looks up again and again what a name stands for: what is no commit goes on by itself.
fn follows(revision: &str, packages: &[Definition]) -> Option<String> {
    let is_commit = matches!(revision.len(), 40 | 64) && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names_it = |package: &Definition| {
        let sources = package.components.iter().filter_map(|component| match &component.chart {
            ChartSource::Path(chart) => chart.source.as_ref(),
            ChartSource::Repository(_) => None,
        });
        sources.into_iter().any(|source| source.revision == revision)
    };
    (!is_commit && packages.iter().any(names_it)).then(|| {
        format!(
            "`{revision}` is no full commit id: Argo CD follows what it stands for, and a release moves whenever that \
             does, in no order; give the commit (`git rev-parse {revision}`)"
        )
    })
}

/// Said with objects that are meant for the controller's eyes only.
const MANAGED: &str = "these are the objects as the controller writes them, one turn at a time: applied by hand or \
                       from Git they keep no order; --mode native does";

/// Nobody compares the cluster's version with what a Package requires where
/// there is no controller and no plugin.
fn unchecked_kubernetes(package: &Definition) -> Vec<String> {
    let requirements = package.requires.iter().filter_map(|requirement| match requirement {
        Requirement::Kubernetes { range } => {
            let range = range.as_written();
            Some(format!("package `{}` requires Kubernetes {range}: nothing checks that here", package.name))
        }
        Requirement::Package { .. } => None,
    });
    requirements.collect()
}

fn output_of(translation: Translation) -> Output {
    let objects = translation.objects.into_iter().map(Value::from).collect();
    (objects, translation.notes.iter().map(ToString::to_string).collect())
}

fn compile_all(packages: Vec<LoadedPackage>, compilation: &Compilation<'_>) -> Result<Vec<Compiled>, Vec<Refusal>> {
    let (mut compiled, mut refusals) = (Vec::new(), Vec::new());
    for package in packages {
        match compile(package, compilation) {
            Ok(package) => compiled.push(package),
            Err(mut found) => refusals.append(&mut found),
        }
    }
    if refusals.is_empty() { Ok(compiled) } else { Err(refusals) }
}
