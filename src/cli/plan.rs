//! `windlass plan`.

mod read;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;

use super::directory::Directory;
use super::findings::WHAT_A_PACKAGE_IS;
use super::{Exit, Streams, charts, output};
use crate::api::Engine;
use crate::chart::Library;
use crate::git::{GitError, Repository, Revision, is_both};
use crate::package::definition::RelativePath;
use crate::package::diagnostic::Style;
use crate::package::tree::{EntryKind, Tree};
use crate::plan::{self, report};

use read::{ChartReader, Packages, Read};

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
    /// Engine of the Packages that name none [default: flux].
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
    let (compared, path) = match Compared::of(arguments).and_then(|compared| Ok((compared, compared.path()?))) {
        Ok(found) => found,
        Err(message) => {
            writeln!(streams.stderr, "error: {message}")?;
            return Ok(Exit::Usage);
        }
    };
    let needs_git = !compared.is_directory(compared.from) || !compared.is_directory(compared.to);
    let repository = if needs_git { Some(open_repository(arguments, &compared)?) } else { None };
    if let Some(message) = ambiguous(arguments, &compared, repository.as_ref()) {
        writeln!(streams.stderr, "error: {message}")?;
        return Ok(Exit::Usage);
    }
    let base = match &repository {
        Some(repository) if compared.since_branched => repository.merge_base(compared.from, compared.to)?,
        Some(_) | None => compared.from.to_owned(),
    };
    let open = |side: &str, name: &str| Side::open(side, repository.as_ref().filter(|_| !compared.is_directory(name)));
    let (from, to) = (open(&base, compared.from)?, open(compared.to, compared.to)?);
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
    let absent = absent.iter().map(|side| {
        let path = path.as_str();
        format!("`{path}` is not in {side}: if it was moved, compare a directory that holds both places")
    });
    compare(arguments, [(&from, compared.from), (&to, compared.to)], &path, absent.collect(), streams)
}

/// Plans what leads from the one side to the other, and prints it; `notes` of what is compared
/// come last.
fn compare(
    arguments: &Arguments,
    [(from, from_name), (to, to_name)]: [(&Side<'_>, &str); 2],
    path: &RelativePath,
    notes: Vec<String>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let engine = arguments.engine.map_or(Engine::Flux, Engine::from);
    let (from_charts, to_charts) = (ChartReader::new(from.tree()), ChartReader::new(to.tree()));
    let from_charts = |path: &RelativePath| from_charts.read(path);
    let to_charts = |path: &RelativePath| to_charts.read(path);
    let before = read::read(from, from_name, path, &from_charts, engine)?;
    let after = read::read(to, to_name, path, &to_charts, engine)?;
    if after.has_errors() {
        after.write_errors(streams)?;
        return Ok(Exit::Findings);
    }
    let passed_over: BTreeSet<String> = before.passed_over().chain(after.passed_over()).map(str::to_owned).collect();
    let (before, unknown) = before_commit(before, from_name, &after, streams)?;
    let after = after.packages;
    if before.compiled.is_empty() && after.compiled.is_empty() && unknown.is_empty() {
        writeln!(streams.stderr, "error: there is no Package in either of the two: {WHAT_A_PACKAGE_IS}")?;
        return Ok(Exit::Findings);
    }
    let unpacked =
        arguments.charts.iter().map(|directory| charts::open(directory)).collect::<anyhow::Result<Vec<_>>>()?;
    let unpacked: Vec<&dyn Tree> = unpacked.iter().map(|directory| directory as &dyn Tree).collect();
    let libraries = [from, to].map(|side| Library::new(&[side.tree()], &unpacked));
    let [from_library, to_library] = &libraries;
    let mut plan = plan::plan(before.state(&from_charts, from_library), after.state(&to_charts, to_library));
    plan.notes.extend(not_known(&unknown, from_name));
    plan.unknown = unknown;
    if arguments.engine.is_none() {
        plan.notes.extend(assumed_engine(&plan, [&before, &after]));
    }
    plan.notes.extend(passed_over);
    plan.notes.extend(charts::absent(&libraries));
    plan.notes.extend(notes);
    write(&plan, arguments.format, streams)?;
    Ok(match plan {
        plan if plan.has_errors() => Exit::Findings,
        plan if plan.packages.is_empty() && plan.unknown.is_empty() => Exit::Ok,
        _ => Exit::Changes,
    })
}

/// So many Packages are named where all of them have something in common.
const NAMED: usize = 3;

/// Says for which of the Packages that change nobody has named an engine.
fn assumed_engine(plan: &plan::Plan, sides: [&Packages; 2]) -> Option<String> {
    let is_assumed = |package: &&plan::PackagePlan| {
        sides.iter().any(|side| side.name_no_engine.contains(&(package.namespace.clone(), package.name.clone())))
    };
    let names: Vec<String> = plan
        .packages
        .iter()
        .filter(is_assumed)
        .map(|package| format!("{}/{}", package.namespace, package.name))
        .collect();
    let name = if names.len() == 1 { "names" } else { "name" };
    let shown = output::first_of(&names, NAMED);
    (!names.is_empty()).then(|| format!("{shown} {name} no engine: planned for flux; --engine argo plans for Argo CD"))
}

/// What ran before, and what could not be read of it. Errors there are shown and hold
/// nothing up: the commit may be the one that mends them.
fn before_commit(
    before: Read,
    name: &str,
    after: &Read,
    streams: &mut Streams<'_>,
) -> anyhow::Result<(Packages, Vec<String>)> {
    if !before.has_errors() {
        return Ok((before.packages, Vec::new()));
    }
    writeln!(streams.stderr, "note: there are errors in {name}, which the commit starts from:")?;
    before.write_errors(streams)?;
    Ok(before.without_errors(after))
}

/// Says what could not be read of what ran before.
fn not_known(unknown: &[String], name: &str) -> Option<String> {
    let note = format!(
        "what runs of {} is not known, since {name} has errors there: it is taken to run as the commit wants it; \
         compare with the last revision without errors",
        unknown.join(", ")
    );
    Some(note).filter(|_| !unknown.is_empty())
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
        if let Some(submodule) = side.submodule(path.as_str())? {
            anyhow::bail!(
                "`{submodule}` is a Git submodule of {name}, whose files are not in this repository: name the submodule \
                 with --repo, and what to compare of it as FROM and TO"
            );
        }
        if side.kind(path.as_str())?.is_none() {
            absent.push(name);
        }
    }
    Ok(absent)
}

/// What is compared, as it was written.
#[derive(Clone, Copy)]
struct Compared<'a> {
    from: &'a str,
    to: &'a str,
    path: Option<&'a str>,
    /// `from` stands for the commit at which `to` left it.
    since_branched: bool,
}

impl<'a> Compared<'a> {
    fn of(arguments: &'a Arguments) -> Result<Self, String> {
        let (from, to, path) = (arguments.from.as_str(), arguments.to.as_deref(), arguments.path.as_deref());
        let range = from.split_once("..").filter(|_| !Path::new(from).is_dir());
        let range = range.map(|(from, to)| (from, to.strip_prefix('.').unwrap_or(to), to.starts_with('.')));
        match (range.filter(|(from, to, _)| !from.is_empty() && !to.is_empty() && !to.starts_with('/')), to) {
            _ if from.is_empty() => Err("FROM is empty".to_owned()),
            (_, Some("")) => Err("TO is empty".to_owned()),
            (Some(_), _) if path.is_some() => Err("FROM..TO says both: only PATH may follow".to_owned()),
            (Some((from, to, since_branched)), path) => Ok(Self { from, to, path, since_branched }),
            (None, Some(to)) => Ok(Self { from, to, path, since_branched: false }),
            (None, None) => Err("what is it compared with? Give FROM and TO, or FROM..TO".to_owned()),
        }
    }

    /// Where the Packages are, below the root of both.
    fn path(&self) -> Result<RelativePath, String> {
        let Some(path) = self.path else { return Ok(RelativePath::default()) };
        let leads_out = || format!("PATH `{path}` leads out of what is compared: give a path below its root");
        RelativePath::parse(path).ok_or_else(leads_out)
    }

    /// Whether a side is a directory. Directories have nothing in common that one could
    /// have left.
    fn is_directory(&self, side: &str) -> bool {
        !self.since_branched && Path::new(side).is_dir()
    }
}

/// The Git repository of what is no directory.
fn open_repository(arguments: &Arguments, compared: &Compared<'_>) -> anyhow::Result<Repository> {
    let sides = [compared.from, compared.to];
    let file = sides.iter().find(|side| Path::new(side).is_file());
    if let Some(file) = file {
        anyhow::bail!("`{file}` is a file: give the directory that it is in, and its name as PATH");
    }
    let other = sides.iter().find(|side| !compared.is_directory(side));
    let named = || format!("`{}` is no directory, and no revision either", other.copied().unwrap_or_default());
    match Repository::open(&arguments.repo) {
        // There may be such a revision: nobody has looked.
        Err(error @ GitError::NotOwned(_)) => Err(error.into()),
        opened => opened.with_context(named),
    }
}

/// One of the two that are compared.
enum Side<'r> {
    Directory(Directory),
    Revision(Revision<'r>),
}

impl<'r> Side<'r> {
    /// A revision of a repository, or a directory.
    fn open(side: &str, repository: Option<&'r Repository>) -> anyhow::Result<Self> {
        match repository {
            Some(repository) => Ok(Self::Revision(repository.revision(side)?)),
            None => Ok(Self::Directory(Directory::new(side))),
        }
    }

    fn tree(&self) -> &dyn Tree {
        match self {
            Self::Directory(directory) => directory,
            Self::Revision(revision) => revision,
        }
    }

    /// The Git submodule that a path is, or is in.
    fn submodule<'p>(&self, path: &'p str) -> anyhow::Result<Option<&'p str>> {
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        for path in above.chain([path]) {
            if self.kind(path)? == Some(EntryKind::Submodule) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn kind(&self, path: &str) -> anyhow::Result<Option<EntryKind>> {
        self.tree().kind(path).with_context(|| format!("cannot read {path}"))
    }
}

/// What is said of a side that is a directory and a revision as well.
fn ambiguous(arguments: &Arguments, compared: &Compared<'_>, opened: Option<&Repository>) -> Option<String> {
    let found;
    let repository = match opened {
        Some(repository) => repository,
        // Without a repository that can be read nothing is a revision.
        None => {
            found = Repository::open(&arguments.repo).ok()?;
            &found
        }
    };
    let directories = [compared.from, compared.to].into_iter().filter(|side| compared.is_directory(side));
    let mut both = directories.filter_map(|side| Some((side, repository.full_name(side)?)));
    both.next().map(|(side, full)| is_both(side, "directory", &full))
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
