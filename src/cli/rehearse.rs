//! `windlass rehearse`.

mod before;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::engine::EngineArgument;
use super::{Exit, Streams, findings, paths};
use crate::api::Engine;
use crate::package::check::{Options, check};
use crate::package::diagnostic::Style;
use crate::package::duration::GoDuration;
use crate::package::load::{Loaded, NamespaceRule};
use crate::package::names::Namespace;
use crate::rehearse::play::{End, play};
use crate::rehearse::report;
use crate::rehearse::scene::{FailAt, Failure, Scene, read};
use crate::rehearse::trials::{self, Exploration, Progress};
use crate::translate::Compiled;

/// While something is slow, engines try again and again: days of that take minutes to play.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 3600);

const EXAMPLES: &str = "\
Examples:
  windlass rehearse packages/                             a first installation
  windlass rehearse v2/ --from v1/                        the upgrade that one commit makes
  windlass rehearse packages/ --from main                 what the working tree makes of it
  windlass rehearse v2/ --from v1/ --fail api             … and a release that fails
  windlass rehearse v2/ --from v1/ --fail api --fail api@rollback
  windlass rehearse v2/ --from v1/ --slow api=20m --restart-at 12
  windlass rehearse v2/ --from v1/ --explore              every failure, and every restart
  windlass rehearse v2/ --from v1/ --format svg > upgrade.svg
  windlass rehearse --format json packages/ | jq '.packages[] | select(.ready | not)'

Where a component can fail (--fail COMPONENT[@STEP]):
  chart      its chart cannot be fetched
  release    the engine cannot install or upgrade its release (the default)
  workload   its workload never becomes ready; the Job of a hook fails
  ready      its readyWhen never holds; where `failed` is given, that comes to hold
  rollback   the engine cannot bring back the release that ran before
  canary     new pods of its DaemonSets crash at once
  late       new pods of its DaemonSets become ready, and crash 20 seconds later

Nothing is contacted or changed: the cluster, its engine and its clock are simulated, the decisions
are those of the controller. Charts are not read: every release is a workload that takes a second,
and every object of a readyWhen shows what is asked of it once what it depends on runs. Times
compare with each other, not with a real cluster.

Exit status: 0 every Package is Ready as it is wanted, 1 some Package is not, or there are errors in
the input, 2 usage, 3 something cannot be read.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files, directories (searched for *.yaml and *.yml) or - for standard input: the Packages
    /// as they are committed.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The Packages as they run before: files, a Git revision, which has them at the same PATH, or
    /// REV:PATH; without it nothing is installed. What is not in PATH any more is uninstalled.
    #[arg(long, value_name = "PATH|REV")]
    from: Option<PathBuf>,
    /// Engine of the Packages that name none [default: flux].
    #[arg(long)]
    engine: Option<EngineArgument>,
    /// Let a component fail, `api` or `shop/api`; see below for the steps.
    #[arg(long, value_name = "COMPONENT[@STEP]")]
    fail: Vec<String>,
    /// Let a component take that long until it is ready, 24h at most.
    #[arg(long, value_name = "COMPONENT=DURATION")]
    slow: Vec<String>,
    /// Kill the controller after its N-th step, a decision or a write; the last line of a
    /// rehearsal says how many there are.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    restart_at: Option<u64>,
    /// Try every failure, one at a time, and a restart of the controller after each of its steps,
    /// and say what each of them leads to.
    #[arg(long, conflicts_with_all = ["fail", "restart_at"])]
    explore: bool,
    /// Nodes of the simulated cluster, for canaries of DaemonSets.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(..=1000))]
    nodes: u16,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A timeline and a table, for people.
    Text,
    /// For programs.
    Json,
    /// A picture: a row for each hook and component against time, for a pull request.
    Svg,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    if arguments.from.iter().chain(&arguments.paths).filter(|path| is_stdin(path)).count() > 1 {
        writeln!(streams.stderr, "error: standard input can be read only once")?;
        return Ok(Exit::Usage);
    }
    let rule = NamespaceRule::Default(Namespace::parse("default")?);
    let before = match &arguments.from {
        Some(from) => match before::read(from, &arguments.paths, &rule, streams)? {
            Ok(loaded) => compiled(loaded, std::slice::from_ref(from), arguments, 1, streams)?,
            Err(message) => {
                writeln!(streams.stderr, "error: {message}")?;
                return Ok(Exit::Usage);
            }
        },
        None => Some(Vec::new()),
    };
    let loaded = paths::read(&arguments.paths, &rule, streams)?;
    let after = compiled(loaded, &arguments.paths, arguments, 2, streams)?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(Exit::Findings) };
    let nodes = usize::from(arguments.nodes);
    let scene = Scene { before, after, restart_at: arguments.restart_at, nodes, ..Scene::default() };
    let scene = match with_mishaps(scene, arguments) {
        Ok(scene) => scene,
        Err(message) => {
            writeln!(streams.stderr, "error: {message}")?;
            return Ok(Exit::Usage);
        }
    };
    if arguments.explore {
        return explore(&scene, arguments, streams);
    }
    let played = play(&scene);
    let report = report::report(&scene, &played);
    let text = match arguments.format {
        Format::Text => report::write_text(&report, if streams.color_stdout { Style::Colored } else { Style::Plain }),
        Format::Json => format!("{:#}\n", report::write_json(&report)),
        Format::Svg => report::write_svg(&report),
    };
    streams.stdout.write_all(text.as_bytes())?;
    Ok(if report.end == End::Ready { Exit::Ok } else { Exit::Findings })
}

fn explore(scene: &Scene, arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let write: fn(&Exploration, Style) -> String = match arguments.format {
        Format::Text => trials::write_text,
        Format::Json => |found, _| format!("{:#}\n", trials::write_json(found)),
        Format::Svg => {
            writeln!(streams.stderr, "error: a picture shows one rehearsal: leave out --explore or --format svg")?;
            return Ok(Exit::Usage);
        }
    };
    let found = explored(scene, streams)?;
    let text = write(&found, if streams.color_stdout { Style::Colored } else { Style::Plain });
    streams.stdout.write_all(text.as_bytes())?;
    Ok(if found.is_sound() { Exit::Ok } else { Exit::Findings })
}

/// Tries everything, and shows somebody who looks on how far that is.
fn explored(scene: &Scene, streams: &mut Streams<'_>) -> io::Result<Exploration> {
    /// Takes away what stands on the line.
    const CLEAR: &str = "\r\u{1b}[K";
    if !streams.live_stderr {
        return Ok(trials::explore(scene, &mut |_| ()));
    }
    let mut written = Ok(());
    let mut tell = |Progress { what, done, of }| {
        if written.is_ok() {
            written = write!(streams.stderr, "{CLEAR}{what} {done} of {of}").and_then(|()| streams.stderr.flush());
        }
    };
    let found = trials::explore(scene, &mut tell);
    written.and_then(|()| write!(streams.stderr, "{CLEAR}"))?;
    Ok(found)
}

/// The Packages of what was read; `None` if there are errors, which are shown.
fn compiled(
    mut loaded: Loaded,
    paths: &[PathBuf],
    arguments: &Arguments,
    commit: u32,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Vec<Compiled>>> {
    let engine = arguments.engine.map_or(Engine::Flux, Engine::from);
    let found = check(&loaded, &Options { engine: Some(engine), ..Options::default() })?;
    loaded.diagnostics.extend(found);
    findings::add_no_package(paths, &mut loaded);
    if loaded.has_errors() {
        findings::write_errors(loaded, streams)?;
        return Ok(None);
    }
    match read(loaded.packages, engine, commit) {
        Ok(compiled) => Ok(Some(compiled)),
        Err(refusals) => {
            for refusal in refusals {
                writeln!(streams.stderr, "error: {refusal}")?;
            }
            Ok(None)
        }
    }
}

fn with_mishaps(mut scene: Scene, arguments: &Arguments) -> Result<Scene, String> {
    for text in &arguments.fail {
        let (name, at) = text.split_once('@').unwrap_or((text, "release"));
        let known = FailAt::ALL.into_iter().find(|known| known.as_str() == at);
        let at = known.ok_or_else(|| {
            format!("--fail {text}: no step `{at}`: chart, release, workload, ready, rollback, canary or late")
        })?;
        let place = scene.find(name).map_err(|message| format!("--fail {text}: {message}"))?;
        let failure = Failure { place, at };
        scene.allow(&failure).map_err(|message| format!("--fail {text}: {message}"))?;
        scene.failures.push(failure);
    }
    for text in &arguments.slow {
        let (name, duration) = text.split_once('=').ok_or_else(|| format!("--slow {text}: say COMPONENT=DURATION"))?;
        let place = scene.find(name).map_err(|message| format!("--slow {text}: {message}"))?;
        let duration = GoDuration::parse(duration).map_err(|error| format!("--slow {text}: {error}"))?;
        if duration.get() > LONGEST_DELAY {
            return Err(format!(
                "--slow {text}: at most 24h are played, which outlasts every timeout worth rehearsing"
            ));
        }
        scene.delays.push((place, duration.get()));
    }
    Ok(scene)
}
