//! `windlass status`.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};

use super::output::{self, Output};
use super::{Cluster, ClusterArguments, block_on, listed, not_installed};
use crate::api::{Package, PackageRevision};
use crate::cli::{Exit, Streams};
use crate::controller::cluster::bounded;
use crate::controller::kinds::Kind;
use crate::controller::lookups::refusal;
use crate::report::status::{self, Columns};

const EXAMPLES: &str = "\
Examples:
  windlass status -n packages            every Package of a namespace
  windlass status -A --watch             all of them, as they change
  windlass status kubevirt -n packages   one Package with its components
  windlass status -n packages -o yaml    the objects as they are stored";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of a Package; all of the namespace without one.
    name: Option<String>,
    /// Packages of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["name", "namespace"])]
    all_namespaces: bool,
    /// Go on showing it as it changes.
    #[arg(short, long)]
    watch: bool,
    /// Another format than the table.
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Output>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// On a terminal ages are kept up to date.
const REDRAW: Duration = Duration::from_secs(1);
/// Changes that come together are shown together.
const GATHER: Duration = Duration::from_millis(100);
const CLEAR: &str = "\x1b[H\x1b[2J";

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let format = arguments.output.and_then(Output::machine);
        if arguments.watch && format.is_some() {
            writeln!(
                streams.stderr,
                "error: --watch shows tables: leave -o out, or use `kubectl get wpkg --watch -o …`"
            )?;
            return Ok(Exit::Usage);
        }
        let cluster = arguments.cluster.connect().await?;
        if let Some(format) = format {
            let name = arguments.name.as_deref();
            let stored = cluster.stored(Kind::Package, namespace(arguments, &cluster), name).await?;
            output::print(&stored, "package.windlass.dev", format, name.is_some(), streams)?;
            return Ok(Exit::Ok);
        }
        if arguments.watch {
            return follow(arguments, &cluster, streams).await;
        }
        let packages = match &arguments.name {
            Some(name) => vec![cluster.package(name).await?],
            None => {
                let api = cluster.packages(namespace(arguments, &cluster));
                let list = bounded(api.list(&ListParams::default())).await;
                list.map_err(|error| listed(error, "cannot list the Packages"))?.items
            }
        };
        if packages.is_empty() {
            writeln!(streams.stderr, "no Packages found in {}", place(arguments, &cluster))?;
            return Ok(Exit::Ok);
        }
        let under_way = under_way(arguments, &cluster, &packages, &mut String::new(), streams).await?;
        streams.stdout.write_all(show(arguments, &packages, under_way.as_ref()).as_bytes())?;
        Ok(Exit::Ok)
    })
}

/// The revision that a single Package is on the way to. That it may not be read is said once:
/// `told` is what was said.
async fn under_way(
    arguments: &Arguments,
    cluster: &Cluster,
    packages: &[Package],
    told: &mut String,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<PackageRevision>> {
    let (Some(_), Some(package)) = (&arguments.name, packages.first()) else { return Ok(None) };
    match cluster.revision_under_way(package).await {
        Ok(revision) => Ok(revision),
        Err(error) => {
            let note = format!("the revision under way cannot be read, so its hooks are left out: {error}");
            if *told != note {
                writeln!(streams.stderr, "note: {note}")?;
            }
            *told = note;
            Ok(None)
        }
    }
}

fn namespace<'a>(arguments: &Arguments, cluster: &'a Cluster) -> Option<&'a str> {
    Some(cluster.namespace.as_str()).filter(|_| !arguments.all_namespaces)
}

fn place(arguments: &Arguments, cluster: &Cluster) -> String {
    namespace(arguments, cluster).map_or_else(|| "any namespace".to_owned(), |name| format!("namespace {name}"))
}

fn show(arguments: &Arguments, packages: &[Package], under_way: Option<&PackageRevision>) -> String {
    let now = Timestamp::now();
    match (&arguments.name, packages.first()) {
        (Some(_), Some(package)) => status::detail(package, under_way, now),
        (Some(name), None) => format!("Package {name} is gone\n"),
        (None, _) => {
            let columns = Columns { namespace: arguments.all_namespaces, wide: arguments.output == Some(Output::Wide) };
            status::list(packages, columns, now)
        }
    }
}

/// On a terminal the picture is drawn anew; elsewhere it is printed again
/// whenever it has changed.
async fn follow(arguments: &Arguments, cluster: &Cluster, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let config = match &arguments.name {
        Some(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        None => watcher::Config::default(),
    };
    let mut events = std::pin::pin!(watcher(cluster.packages(namespace(arguments, cluster)), config).default_backoff());
    let mut known: BTreeMap<(String, String), Package> = BTreeMap::new();
    let mut complete = false;
    let (mut told, mut trouble, mut unread, mut seen) = (String::new(), String::new(), String::new(), None);
    let mut revision = None;
    // What was never there cannot be seen to go.
    let mut awaited = arguments.name.as_ref();
    loop {
        let pause = if complete { GATHER } else { REDRAW };
        match tokio::time::timeout(pause, events.next()).await {
            Ok(Some(event)) => {
                complete |= take(event, &mut known, &mut trouble, streams)?;
                continue;
            }
            Ok(None) => return Ok(Exit::Ok),
            Err(_) if !complete => continue,
            Err(_) => {}
        }
        let packages: Vec<Package> = known.values().cloned().collect();
        let state = serde_json::to_string(&packages)?;
        let is_news = seen.as_ref() != Some(&state);
        match awaited.filter(|_| packages.is_empty()) {
            Some(name) if is_news => {
                writeln!(streams.stderr, "there is no Package {}/{name} yet: waiting for it", cluster.namespace)?;
            }
            Some(_) => {}
            None => {
                awaited = None;
                if is_news {
                    revision = under_way(arguments, cluster, &packages, &mut unread, streams).await?;
                }
                draw(show(arguments, &packages, revision.as_ref()), &state, &mut told, streams)?;
            }
        }
        seen = Some(state);
        // Nothing but time changes the picture until the next event.
        match tokio::time::timeout(REDRAW, events.next()).await {
            Ok(Some(event)) => drop(take(event, &mut known, &mut trouble, streams)?),
            Ok(None) => return Ok(Exit::Ok),
            Err(_) => {}
        }
    }
}

/// Shows a text if it is another one. Where it is not drawn anew, time alone is nothing to print
/// it again for: then `state` is what counts.
fn draw(text: String, state: &str, told: &mut String, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let start = if streams.color_stdout { CLEAR } else { "" };
    let what = if streams.color_stdout { text.as_str() } else { state };
    if what != told {
        what.clone_into(told);
        write!(streams.stdout, "{start}{text}")?;
        streams.stdout.flush()?;
    }
    Ok(())
}

/// Takes one event in; whether all that there is has been listed. An interruption
/// is told once, and the watch goes on by itself.
fn take(
    event: Result<Event<Package>, watcher::Error>,
    known: &mut BTreeMap<(String, String), Package>,
    trouble: &mut String,
    streams: &mut Streams<'_>,
) -> anyhow::Result<bool> {
    let event = match event {
        Ok(event) => event,
        Err(error) if matches!(refusal(&error), Some(404)) => return Err(not_installed()),
        Err(error) if matches!(refusal(&error), Some(401 | 403)) => {
            return Err(anyhow::Error::from(error).context("cannot watch the Packages"));
        }
        Err(error) => {
            let told = error.to_string();
            if *trouble != told {
                writeln!(streams.stderr, "warning: {told}; trying again")?;
            }
            *trouble = told;
            return Ok(false);
        }
    };
    trouble.clear();
    let key = |package: &Package| {
        let metadata = &package.metadata;
        (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
    };
    match event {
        Event::Init => known.clear(),
        Event::InitApply(package) | Event::Apply(package) => drop(known.insert(key(&package), package)),
        Event::Delete(package) => drop(known.remove(&key(&package))),
        Event::InitDone => return Ok(true),
    }
    Ok(false)
}
