//! `windlass plan`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;

use super::directory::Directory;
use super::findings::WHAT_A_PACKAGE_IS;
use super::{Exit, Streams, charts, findings, paths};
use crate::api::Engine;
use crate::chart::Library;
use crate::git::{Repository, Revision};
use crate::package::check::{Options, check};
use crate::package::content::{ChartContent, ContentError, chart_content};
use crate::package::definition::RelativePath;
use crate::package::diagnostic::Style;
use crate::package::load::{Input, LoadedPackage, NamespaceRule, Search};
use crate::package::names::Namespace;
use crate::package::tree::{EntryKind, Tree};
use crate::plan::{self, Fault, State, report};
use crate::translate::{Charts, Compilation, Compiled, Refusal, compile};

const EXAMPLES: &str = "\
Examples:
  windlass plan main HEAD                      what merging the branch does
  windlass plan main...HEAD                    what the branch adds since it left main
  windlass plan origin/main HEAD packages/     of a part of the repository
  windlass plan v1/ v2/                        two directories
  windlass plan main HEAD --format markdown    for a comment in a pull request
  windlass plan main HEAD --charts vendor/     with what changes of the kinds that charts define

The commit is played on a simulated cluster with the decisions of the controller; nothing is
contacted, checked out or changed. What runs before is taken to be what FROM says.

Exit status: 0 nothing changes, 4 something does, 1 something must be mended first, 2 usage, 3
something cannot be read.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What runs: a directory, or a revision of the Git repository; or both as FROM..TO, or
    /// TARGET...BRANCH for what the branch adds since it left the target.
    from: String,
    /// What is to run: a directory, or a revision.
    to: Option<String>,
    /// Directory below the root of both in which the Packages are [default: the root].
    path: Option<String>,
    /// A directory of the Git repository.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Directory with the charts of repositories, unpacked: NAME-VERSION, or NAME with that
    /// version in its Chart.yaml. They are looked into for CustomResourceDefinitions that change.
    /// Can be given several times.
    #[arg(long, value_name = "DIR")]
    charts: Vec<PathBuf>,
    /// Engine of the Packages that name none.
    #[arg(long)]
    engine: Option<super::engine::EngineArgument>,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For a pull request.
    Markdown,
    /// For programs.
    Json,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let compared = match Compared::of(arguments) {
        Ok(compared) => compared,
        Err(message) => {
            writeln!(streams.stderr, "error: {message}")?;
            return Ok(Exit::Usage);
        }
    };
    let path = match compared.path.map_or(Some(RelativePath::default()), RelativePath::parse) {
        Some(path) => path,
        None => {
            let path = compared.path.unwrap_or_default();
            writeln!(streams.stderr, "error: PATH `{path}` leads out of what is compared: give a path below its root")?;
            return Ok(Exit::Usage);
        }
    };
    let is_directory = |side: &str| Path::new(side).is_dir();
    let needs_git = !is_directory(compared.from) || !is_directory(compared.to);
    let repository = if needs_git { Some(open_repository(arguments, &compared)?) } else { None };
    let base = match &repository {
        Some(repository) if compared.since_branched => repository.merge_base(compared.from, compared.to)?,
        Some(_) | None => compared.from.to_owned(),
    };
    let open = |side: &str| Side::open(side, repository.as_ref());
    let (from, to) = (open(&base)?, open(compared.to)?);
    let absent = without(&path, [(&from, compared.from), (&to, compared.to)])?;
    if absent.len() == 2 {
        let path = path.as_str();
        writeln!(
            streams.stderr,
            "error: `{path}` is in neither of the two; PATH begins at the root of the repository"
        )?;
        return Ok(Exit::Findings);
    }
    warn_of_uncommitted(repository.as_ref(), &to, streams)?;
    let engine = arguments.engine.map_or(Engine::Flux, Engine::from);
    let (from_charts, to_charts) = (ChartReader::new(from.tree()), ChartReader::new(to.tree()));
    let from_charts = |path: &RelativePath| from_charts.read(path);
    let to_charts = |path: &RelativePath| to_charts.read(path);
    let before = read(&from, compared.from, &path, &from_charts, engine, streams)?;
    let after = read(&to, compared.to, &path, &to_charts, engine, streams)?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(Exit::Findings) };
    if before.compiled.is_empty() && after.compiled.is_empty() {
        writeln!(streams.stderr, "error: there is no Package in either of the two: {WHAT_A_PACKAGE_IS}")?;
        return Ok(Exit::Findings);
    }
    let unpacked =
        arguments.charts.iter().map(|directory| charts::open(directory)).collect::<anyhow::Result<Vec<_>>>()?;
    let unpacked: Vec<&dyn Tree> = unpacked.iter().map(|directory| directory as &dyn Tree).collect();
    let libraries = [&from, &to].map(|side| Library::new(&[side.tree()], &unpacked));
    let [from_library, to_library] = &libraries;
    let mut plan = plan::plan(before.state(&from_charts, from_library), after.state(&to_charts, to_library));
    plan.notes.extend(charts::absent(&libraries));
    plan.notes.extend(absent.iter().map(|side| {
        let path = path.as_str();
        format!("`{path}` is not in {side}: if it was moved, compare a directory that holds both places")
    }));
    write(&plan, arguments.format, streams)?;
    Ok(match plan {
        plan if plan.has_errors() => Exit::Findings,
        plan if plan.packages.is_empty() => Exit::Ok,
        _ => Exit::Changes,
    })
}

fn write(plan: &plan::Plan, format: Format, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let text = match format {
        Format::Text => report::write_text(plan, if streams.color_stdout { Style::Colored } else { Style::Plain }),
        Format::Markdown => report::write_markdown(plan),
        Format::Json => format!("{:#}\n", report::write_json(plan)),
    };
    Ok(streams.stdout.write_all(text.as_bytes())?)
}

/// Names of the sides that have nothing at a path.
fn without<'a>(path: &RelativePath, sides: [(&Side<'_>, &'a str); 2]) -> anyhow::Result<Vec<&'a str>> {
    let mut absent = Vec::new();
    for (side, name) in sides {
        if side.kind(path.as_str())?.is_none() {
            absent.push(name);
        }
    }
    Ok(absent)
}

/// What is compared, as it was written.
struct Compared<'a> {
    from: &'a str,
    to: &'a str,
    path: Option<&'a str>,
    /// `from` stands for the commit at which `to` left it.
    since_branched: bool,
}

impl<'a> Compared<'a> {
    fn of(arguments: &'a Arguments) -> Result<Self, &'static str> {
        let (from, to, path) = (arguments.from.as_str(), arguments.to.as_deref(), arguments.path.as_deref());
        let range = from.split_once("..").filter(|_| !Path::new(from).is_dir());
        let range = range.map(|(from, to)| (from, to.strip_prefix('.').unwrap_or(to), to.starts_with('.')));
        match (range.filter(|(from, to, _)| !from.is_empty() && !to.is_empty() && !to.starts_with('/')), to) {
            (Some(_), _) if path.is_some() => Err("FROM..TO says both: only PATH may follow"),
            (Some((from, to, since_branched)), path) => Ok(Self { from, to, path, since_branched }),
            (None, Some(to)) => Ok(Self { from, to, path, since_branched: false }),
            (None, None) => Err("what is it compared with? Give FROM and TO, or FROM..TO"),
        }
    }
}

/// The Git repository of what is no directory.
fn open_repository(arguments: &Arguments, compared: &Compared<'_>) -> anyhow::Result<Repository> {
    let sides = [compared.from, compared.to];
    let file = sides.iter().find(|side| Path::new(side).is_file());
    if let Some(file) = file {
        anyhow::bail!("`{file}` is a file: give the directory that it is in, and its name as PATH");
    }
    let other = sides.iter().find(|side| !Path::new(side).is_dir());
    let named = || format!("`{}` is no directory, and no revision either", other.copied().unwrap_or_default());
    Repository::open(&arguments.repo).with_context(named)
}

/// One of the two that are compared.
enum Side<'r> {
    Directory(Directory),
    Revision(Revision<'r>),
}

impl<'r> Side<'r> {
    fn open(side: &str, repository: Option<&'r Repository>) -> anyhow::Result<Self> {
        match repository {
            Some(repository) if !Path::new(side).is_dir() => Ok(Self::Revision(repository.revision(side)?)),
            Some(_) | None => Ok(Self::Directory(Directory::new(side))),
        }
    }

    fn tree(&self) -> &dyn Tree {
        match self {
            Self::Directory(directory) => directory,
            Self::Revision(revision) => revision,
        }
    }

    fn kind(&self, path: &str) -> anyhow::Result<Option<EntryKind>> {
        self.tree().kind(path).with_context(|| format!("cannot read {path}"))
    }
}

/// The charts of a side, each read once.
struct ChartReader<'t> {
    tree: &'t dyn Tree,
    known: RefCell<BTreeMap<RelativePath, ChartContent>>,
}

impl<'t> ChartReader<'t> {
    fn new(tree: &'t dyn Tree) -> Self {
        Self { tree, known: RefCell::default() }
    }

    fn read(&self, path: &RelativePath) -> Result<ChartContent, ContentError> {
        if let Some(known) = self.known.borrow().get(path) {
            return Ok(known.clone());
        }
        let content = chart_content(self.tree, path.as_str())?;
        self.known.borrow_mut().insert(path.clone(), content.clone());
        Ok(content)
    }
}

/// The Packages of a side, and what is wrong with their charts.
#[derive(Default)]
struct Packages {
    compiled: Vec<Compiled>,
    faults: Vec<Fault>,
}

impl Packages {
    fn state<'a>(&'a self, charts: &'a Charts<'a>, library: &'a Library<'a>) -> State<'a> {
        State { packages: &self.compiled, charts, library, faults: &self.faults }
    }

    /// Compiles a Package; where charts are in the way, without them.
    fn add(&mut self, package: LoadedPackage, options: &Compilation<'_>) -> Result<(), Vec<Refusal>> {
        let (namespace, name) = (package.namespace.clone(), package.name.clone());
        let compiled = match compile(package.clone(), options) {
            Ok(compiled) => compiled,
            Err(refusals) => {
                let compiled = compile(package, &Compilation { charts: None, ..*options })?;
                self.faults.extend(refusals.iter().map(|refusal| Fault {
                    namespace: namespace.clone(),
                    package: name.clone(),
                    message: match &refusal.about.component {
                        Some(component) => format!("component {component}: {}", refusal.message),
                        None => refusal.message.clone(),
                    },
                }));
                compiled
            }
        };
        self.compiled.push(compiled);
        Ok(())
    }
}

/// What is not committed is not in a revision: said where somebody may think so.
fn warn_of_uncommitted(
    repository: Option<&Repository>,
    to: &Side<'_>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let Some(repository) = repository else { return Ok(()) };
    let head = repository.head();
    let is_head = matches!(to, Side::Revision(revision) if Some(revision.commit()) == head.as_deref());
    if is_head && repository.is_dirty()? {
        writeln!(streams.stderr, "note: there are uncommitted changes, which are not part of this plan")?;
    }
    Ok(())
}

/// The Packages of a side; `None` if there are errors, which are shown.
fn read(
    side: &Side<'_>,
    shown: &str,
    path: &RelativePath,
    charts: &Charts<'_>,
    engine: Engine,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Packages>> {
    let tree = side.tree();
    let shown = match side {
        Side::Directory(_) if path.as_str().is_empty() => shown.to_owned(),
        Side::Directory(_) => format!("{}/{}", shown.trim_end_matches('/'), path.as_str()),
        Side::Revision(_) => format!("{shown}:{}", path.as_str()),
    };
    let input = match side.kind(path.as_str())? {
        None => return Ok(Some(Packages::default())),
        Some(EntryKind::Directory) => {
            Input::Directory { tree, path: path.as_str().to_owned(), shown, search: Search::Repository }
        }
        Some(EntryKind::File) => Input::File { tree, path: path.as_str().to_owned(), shown },
        Some(EntryKind::Symlink | EntryKind::Other) => anyhow::bail!("{shown} is neither a file nor a directory"),
    };
    let rule = NamespaceRule::Default(Namespace::parse("default")?);
    let mut loaded = paths::read_inputs(&[input], &rule)?;
    let found = check(&loaded, &Options { engine: Some(engine), ..Options::default() })?;
    loaded.diagnostics.extend(found);
    if loaded.has_errors() {
        findings::write_errors(loaded, streams)?;
        return Ok(None);
    }
    let commit = match side {
        Side::Directory(_) => "0000000000000000000000000000000000000000",
        Side::Revision(revision) => revision.commit(),
    };
    let (mut packages, mut refusals) = (Packages::default(), Vec::new());
    for package in loaded.packages {
        let engine = package.definition.as_ref().and_then(|definition| definition.engine).unwrap_or(engine);
        let origin = match engine {
            Engine::Flux => None,
            Engine::Argo => Some((crate::rehearse::scene::REPOSITORY, commit)),
        };
        let compilation = Compilation { engine: Some(engine), origin, origin_stated_in: "", charts: Some(charts) };
        refusals.extend(packages.add(package, &compilation).err().unwrap_or_default());
    }
    for refusal in &refusals {
        writeln!(streams.stderr, "error: {refusal}")?;
    }
    Ok(refusals.is_empty().then_some(packages))
}
