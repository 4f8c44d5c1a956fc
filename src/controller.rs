//! The controller: the thin layer of I/O around [`crate::rollout`].
//!
//! Watches fill stores, each kind in a task of its own; whatever changes wakes
//! the Packages it belongs to; a few workers take one Package after the other,
//! look at it, decide, and do what was decided. Nothing is kept that could not
//! be read again.

mod access;
mod cached;
pub(crate) mod cluster;
mod events;
mod execute;
mod foreign;
mod guards;
mod interruption;
pub(crate) mod kinds;
pub(crate) mod lease;
pub(crate) mod lookups;
mod metrics;
mod needed;
mod queue;
mod reconcile;
mod refusals;
mod repeats;
mod rollouts;
mod selections;
mod server;
pub mod settings;
mod shallow;
mod store;
mod view;
mod watch;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Config};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use access::Rights;
use cluster::{Accounts, RequestError};
use execute::WriteError;
use foreign::Foreign;
use kinds::Kind;
use lease::{Election, Leadership};
use metrics::{Ended, Metrics};
use queue::Queue;
use reconcile::{ReconcileError, Reconciler};
use refusals::Refusals;
use repeats::Repeats;
use settings::Settings;
use view::View;
use watch::Watches;

/// Why the controller ends by itself.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// The API server cannot be used.
    #[error("failed to connect to the API server: {0}")]
    Connect(#[from] kube::Error),
    /// The API server does not answer as expected.
    #[error("failed to ask the API server: {0}")]
    Ask(#[from] RequestError),
    /// A signal handler or the HTTP server cannot be set up.
    #[error("failed to set up: {0}")]
    SetUp(#[from] std::io::Error),
    /// Another process leads by now.
    #[error("leadership was lost; another process may lead by now")]
    LeadershipLost,
    /// A task that must run for ever has ended.
    #[error("a task ended unexpectedly: {0}")]
    TaskEnded(String),
}

/// Runs until a signal asks for the end.
///
/// # Errors
/// See [`ControllerError`]; the process should end then and be started again.
pub async fn run(config: Config, settings: Settings) -> Result<(), ControllerError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let accounts = Arc::new(Accounts::new(config)?);
    let view = Arc::new(View::new(settings.clone()));
    let queue = Arc::new(Queue::default());
    let metrics = Arc::new(Metrics::new());
    let kubernetes = watch::kubernetes_version(accounts.own()).await?;
    let identity = guards::identity(accounts.own()).await?;
    view.change_facts(|facts| (facts.kubernetes, facts.identity) = (kubernetes, identity));
    let mut tasks = JoinSet::new();
    start_watches(&mut tasks, &accounts, &view, &queue, &settings);
    let (address, seen, counted) = (settings.listen, view.clone(), metrics.clone());
    tasks.spawn(async move {
        if let Err(error) = server::serve(address, seen, counted).await {
            tracing::error!(%error, "health and metrics cannot be served");
        }
    });
    let mut election = settings.lease_namespace.as_deref().map(|namespace| {
        let leases: Api<Lease> = Api::namespaced(accounts.own(), namespace);
        Election::new(leases, settings.lease_name.clone(), settings.identity.clone())
    });
    let lease = settings.lease_namespace.as_deref().map(|namespace| format!("{namespace}/{}", settings.lease_name));
    let lead = lead(&mut tasks, &mut election, accounts, view, queue, metrics, settings);
    let outcome = tokio::select! {
        outcome = lead => outcome,
        _ = terminate.recv() => {
            shutting_down("SIGTERM", lease.as_deref());
            Ok(())
        }
        _ = interrupt.recv() => {
            shutting_down("SIGINT", lease.as_deref());
            Ok(())
        }
    };
    // Nothing may be written any more when the next process takes over.
    tasks.shutdown().await;
    if let Some(election) = &mut election {
        election.release().await;
    }
    tracing::info!("ended");
    outcome
}

/// Says that a signal ends the process, and what it does first.
fn shutting_down(signal: &str, lease: Option<&str>) {
    let broken_off = "shutting down: looks under way are broken off, the next process takes them up again";
    match lease {
        Some(lease) => tracing::info!(signal, lease, "{broken_off}; the Lease is given up, if it is held"),
        None => tracing::info!(signal, "{broken_off}"),
    }
}

fn start_watches(
    tasks: &mut JoinSet<()>,
    accounts: &Accounts,
    view: &Arc<View>,
    queue: &Arc<Queue>,
    settings: &Settings,
) {
    let watches =
        Watches { client: accounts.own(), view: view.clone(), queue: queue.clone(), settings: settings.clone() };
    tasks.spawn(watches.clone().follow(Kind::Package));
    tasks.spawn(watches.clone().follow(Kind::PackageRevision));
    tasks.spawn(watches.clone().follow_namespaces());
    tasks.spawn(watches.clone().follow_version());
    tasks.spawn(watches.clone().follow_guards());
    tasks.spawn(watches.follow_definitions());
}

/// Waits for the caches and for leadership, then works until one is lost.
async fn lead(
    tasks: &mut JoinSet<()>,
    election: &mut Option<Election>,
    accounts: Arc<Accounts>,
    view: Arc<View>,
    queue: Arc<Queue>,
    metrics: Arc<Metrics>,
    settings: Settings,
) -> Result<(), ControllerError> {
    while !server::unread(&view).is_empty() {
        tokio::select! {
            ended = tasks.join_next() => return Err(task_ended(ended)),
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    if let Some(election) = election {
        tokio::select! {
            ended = tasks.join_next() => return Err(task_ended(ended)),
            () = election.acquire() => {}
        }
    }
    let leadership = election.as_ref().map_or_else(Leadership::alone, Election::leadership);
    metrics.leads(true);
    view.watching_anew();
    tracing::info!("leading");
    let reconciler = Arc::new(Reconciler {
        recorder: events::Recorder::new(accounts.own(), settings.identity.clone()),
        lookups: Arc::default(),
        selections: Arc::default(),
        foreign: Foreign::default(),
        rights: Rights::default(),
        repeats: Repeats::default(),
        refusals: Refusals::default(),
        view: view.clone(),
        queue: queue.clone(),
        accounts,
        leadership,
        metrics,
        watch_namespace: settings.watch_namespace.clone(),
    });
    tasks.spawn(resync(view.clone(), queue.clone()));
    for _ in 0..settings.concurrency.max(1) {
        tasks.spawn(work(reconciler.clone()));
    }
    view.store(Kind::Package).all().iter().for_each(|package| queue.wake(view::package_key(package)));
    match election {
        Some(election) => tokio::select! {
            ended = tasks.join_next() => Err(task_ended(ended)),
            () = election.keep() => Err(ControllerError::LeadershipLost),
        },
        None => Err(task_ended(tasks.join_next().await)),
    }
}

fn task_ended(ended: Option<Result<(), tokio::task::JoinError>>) -> ControllerError {
    let what = match ended {
        Some(Err(error)) => error.to_string(),
        Some(Ok(())) | None => "it returned".to_owned(),
    };
    ControllerError::TaskEnded(what)
}

/// How often Packages that are at something are looked at without any news: the
/// backstop for what nobody has told.
const RESYNC: Duration = Duration::from_secs(600);

async fn resync(view: Arc<View>, queue: Arc<Queue>) {
    loop {
        tokio::time::sleep(RESYNC).await;
        for key in view.at_something() {
            queue.wake_after(key, RESYNC.mul_f64(jitter() / 4.0));
        }
    }
}

/// One worker: one Package after the other.
async fn work(reconciler: Arc<Reconciler>) {
    loop {
        let key = reconciler.queue.next().await;
        let began = Instant::now();
        let span = tracing::info_span!("reconcile", namespace = key.0, package = key.1);
        let outcome = {
            use tracing::Instrument as _;
            reconciler.reconcile(&key).instrument(span.clone()).await
        };
        let _entered = span.enter();
        let ended = match &outcome {
            Ok(()) => Ended::Well,
            Err(ReconcileError::Write(WriteError::Changed { object })) => {
                tracing::debug!(object, "changed meanwhile; looking again");
                Ended::Stale
            }
            Err(error) => {
                tracing::warn!(%error, "a look failed");
                Ended::Failed
            }
        };
        reconciler.metrics.reconciled(ended, began.elapsed().as_secs_f64());
        match ended {
            Ended::Well => reconciler.queue.done(&key),
            Ended::Stale => reconciler.queue.stale(&key, jitter()),
            Ended::Failed => reconciler.queue.failed(&key, jitter()),
        }
    }
}

/// A number between 0 and 1 that differs between calls, good enough to spread
/// retries.
fn jitter() -> f64 {
    let nanos = jiff::Timestamp::now().subsec_nanosecond();
    f64::from(nanos % 1000) / 1000.0
}
