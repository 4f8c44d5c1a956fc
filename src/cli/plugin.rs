//! `windlass plugin`: the config management plugin's two calls, and what finds out why they are not made.

mod doctor;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;

use super::directory::Directory;
use super::{Exit, Streams, output};
use crate::package::check;
use crate::package::content::{ContentError, chart_content};
use crate::package::definition::RelativePath;
use crate::package::diagnostic::Severity;
use crate::package::load::{Input, LoadError, Loaded, NamespaceRule, Search, load};
use crate::package::tree::{EntryKind, Tree};
use crate::plugin::{Answer, Environment, Location, announcement, generate, locate};

/// Most errors that are shown: Argo CD keeps all of them in a condition.
const MOST_ERRORS: usize = 20;

const EXAMPLES: &str = "\
Environment, as Argo CD sets it:
  ARGOCD_APP_NAMESPACE         namespace of the Packages; must be set
  ARGOCD_APP_SOURCE_PATH       directory of the Application, from the root of the repository
  ARGOCD_APP_SOURCE_REPO_URL,  repository and commit, for charts at a path
  ARGOCD_APP_REVISION
  ARGOCD_APP_PROJECT_NAME      project of the Applications; default if absent
  ARGOCD_APP_PARAMETERS        parameters as JSON, see `windlass plugin parameters`
  KUBE_VERSION                 version of the cluster

Example, by hand in the root of a repository:
  ARGOCD_APP_NAMESPACE=packages \\
    ARGOCD_APP_PARAMETERS='[{\"name\": \"output\", \"string\": \"native\"}]' \\
    windlass plugin generate";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print the manifests of the application directory (Argo CD runs this).
    #[command(after_help = EXAMPLES)]
    Generate,
    /// Print the parameters that `generate` understands (Argo CD runs this).
    Parameters,
    /// Find why Argo CD does not find or does not use the plugin.
    Doctor(doctor::Arguments),
}

pub fn run(command: &Command, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    match command {
        Command::Generate => run_generate(streams),
        Command::Doctor(arguments) => doctor::run(arguments, streams),
        Command::Parameters => {
            writeln!(streams.stdout, "{:#}", announcement())?;
            Ok(Exit::Ok)
        }
    }
}

fn run_generate(streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let begun = Instant::now();
    match answer()? {
        Err(errors) => {
            for error in errors.iter().take(MOST_ERRORS) {
                writeln!(streams.stderr, "error: {error}")?;
            }
            if errors.len() > MOST_ERRORS {
                writeln!(streams.stderr, "and {} more errors", errors.len() - MOST_ERRORS)?;
            }
            Ok(Exit::Findings)
        }
        Ok(answer) => {
            for note in &answer.notes {
                writeln!(streams.stderr, "note: {note}")?;
            }
            output::to_stdout(&answer.objects, streams)?;
            let took = begun.elapsed().as_secs_f64() * 1000.0;
            let count = answer.objects.len();
            let plural = if count == 1 { "" } else { "s" };
            writeln!(streams.stderr, "windlass: {count} manifest{plural} in {took:.1} ms")?;
            Ok(Exit::Ok)
        }
    }
}

/// The answer, or one line for everything that stands in its way.
fn answer() -> anyhow::Result<Result<Answer, Vec<String>>> {
    let environment = match Environment::parse(|name| std::env::var(name).ok()) {
        Ok(environment) => environment,
        Err(error) => return Ok(Err(vec![error.to_string()])),
    };
    let current = std::env::current_dir().context("cannot tell the current directory")?;
    let parts: Vec<&str> = current.iter().filter_map(|part| part.to_str()).collect();
    let location = locate(&parts, &environment.source_path);
    let root: PathBuf = current.ancestors().nth(location.up).map(PathBuf::from).unwrap_or(current.clone());
    let tree = Directory::new(root);
    let directory = joined(&[environment.source_path.as_str(), environment.parameters.path.as_str()]);
    let mut loaded = match read(&tree, &location, &directory, &environment)? {
        Ok(loaded) => loaded,
        Err(error) => return Ok(Err(vec![error])),
    };
    loaded.refuse_stray_documents();
    // Of a part of the repository some charts are missing for another reason.
    let whole = location.begins_at.is_empty();
    let roots: [&dyn Tree; 1] = [&tree];
    let charts = whole.then_some(check::Charts { roots: &roots, severity: Severity::Error });
    let options = check::Options { engine: Some(environment.parameters.engine), charts, library: None };
    let found = check::check(&loaded, &options).context("cannot read a chart")?;
    loaded.diagnostics.extend(found);
    let errors = errors(&loaded);
    if !errors.is_empty() {
        return Ok(Err(errors));
    }
    let charts = |path: &RelativePath| match location.below(path.as_str()) {
        Some(below) => chart_content(&tree, below),
        None => Err(ContentError::NotSent(path.as_str().to_owned())),
    };
    Ok(generate(loaded, &environment, &directory, &charts)
        .map_err(|failure| failure.to_string().lines().map(str::to_owned).collect()))
}

fn read(
    tree: &Directory,
    location: &Location,
    directory: &str,
    environment: &Environment,
) -> anyhow::Result<Result<Loaded, String>> {
    let path = location.below(directory).unwrap_or_default().to_owned();
    match tree.kind(&path).with_context(|| format!("cannot read {directory}"))? {
        Some(EntryKind::Directory) => {}
        None => return Ok(Err(format!("there is no directory `{directory}`: check the plugin's parameter path"))),
        Some(EntryKind::Symlink) => return Ok(Err(format!("`{directory}` leads through a symbolic link"))),
        Some(EntryKind::File | EntryKind::Submodule | EntryKind::Other) => {
            return Ok(Err(format!("`{directory}` is no directory: check the plugin's parameter path")));
        }
    }
    let search = if environment.parameters.recurse { Search::Below } else { Search::Here };
    let input = Input::Directory { tree, path, shown: directory.to_owned(), search };
    let loaded = load(&[input], &NamespaceRule::Forced(environment.namespace.clone()));
    loaded
        .map(Ok)
        .map_err(|LoadError { path, source }| anyhow::Error::new(source).context(format!("cannot read {path}")))
}

/// Errors as single lines: Argo CD shows them in a proportional font.
fn errors(loaded: &Loaded) -> Vec<String> {
    let errors = loaded.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors
        .map(|error| {
            let source = loaded.sources.get(error.source);
            let place = source.map_or(String::new(), |source| {
                let position = source.position(error.span.start);
                format!("{}:{}:{}: ", source.path(), position.line, position.column)
            });
            let help = if error.help.is_empty() { String::new() } else { format!(" ({})", error.help) };
            format!("{place}{} {}{help}", error.code, error.message).replace(char::is_control, " ")
        })
        .collect()
}

fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("/")
}
