//! One look at a Package: snapshot, decide, act.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use thiserror::Error;

use super::access::{self, Rights};
use super::cached::Cached;
use super::cluster::{Accounts, RequestError, api, bounded};
use super::events::Recorder;
use super::execute::{Executor, WriteError, Written};
use super::foreign::{self, Foreign};
use super::kinds::{Kind, daemon_set_resource};
use super::lease::Leadership;
use super::lookups::Lookups;
use super::metrics::Metrics;
use super::queue::Queue;
use super::refusals::Refusals;
use super::repeats::Repeats;
use super::rollouts;
use super::selections::Selections;
use super::store::{PackageKey, Taken};
use super::view::View;
use crate::api::{DeletionPolicy, PackageStatus, Reason};
use crate::canary;
use crate::canary::strategy::Pace;
use crate::engine::ObjectKey;
use crate::package::names::NameError;
use crate::ready::evidence::Lookup;
use crate::rollout::{self, ActsAs, Decision, Found, Peer, Snapshot};

/// From when on a decision is long.
const LONG_DECISION: Duration = Duration::from_secs(1);
/// How many times as long as a long decision the Package then rests.
const REST: u32 = 4;

/// Everything one look needs.
pub struct Reconciler {
    /// What was seen.
    pub view: Arc<View>,
    /// Whom to wake.
    pub queue: Arc<Queue>,
    /// Objects watched by name.
    pub lookups: Arc<Lookups>,
    /// Releases of others.
    pub foreign: Foreign,
    /// What accounts may do.
    pub rights: Rights,
    /// What was done over and over.
    pub repeats: Repeats,
    /// What could not be written to DaemonSets.
    pub refusals: Refusals,
    /// Pods, revisions and nodes, while a DaemonSet is rolled out.
    pub selections: Arc<Selections>,
    /// As whom to act.
    pub accounts: Arc<Accounts>,
    /// Whether this process may write.
    pub leadership: Leadership,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Events.
    pub recorder: Recorder,
    /// The only namespace that is looked at, if there is one.
    pub watch_namespace: Option<String>,
}

/// Why a look did not come to its end.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// The object has no Package's name.
    #[error("this is no name of a Package: {0}")]
    Name(#[from] NameError),
    /// A read failed.
    #[error("failed to read: {0}")]
    Read(#[from] RequestError),
    /// A write failed.
    #[error("failed to write: {0}")]
    Write(#[from] WriteError),
    /// The configuration of a client cannot be used.
    #[error("failed to act as the Package's account: {0}")]
    Client(#[from] kube::Error),
    /// What was written is changed back.
    #[error("{0}")]
    Undone(String),
    /// The decision itself failed.
    #[error("the decision failed: {0}")]
    Decision(#[from] tokio::task::JoinError),
    /// Somebody else leads by now.
    #[error("this process does not lead any more")]
    NotLeading,
}

impl ReconcileError {
    /// Whether nothing could be decided.
    fn is_blind(&self) -> bool {
        match self {
            Self::Read(_) | Self::Client(_) | Self::Decision(_) => true,
            Self::Name(_) | Self::Write(_) | Self::Undone(_) | Self::NotLeading => false,
        }
    }
}

impl Reconciler {
    /// Looks at a Package once and does what is decided.
    ///
    /// # Errors
    /// See [`ReconcileError`]; the same look is worth another try then.
    pub async fn reconcile(&self, key: &PackageKey) -> Result<(), ReconcileError> {
        let looked = self.look(key).await;
        if matches!(looked, Err(ReconcileError::Name(_) | ReconcileError::Decision(_))) {
            self.view.give_up(key);
        }
        if let Err(error) = &looked
            && error.is_blind()
            && self.queue.failures(key) >= SILENT_FAILURES
        {
            self.tell_of_failure(key, error).await?;
        }
        looked
    }

    /// A look that comes to no decision again and again would be a silent wait.
    async fn tell_of_failure(&self, key: &PackageKey, error: &ReconcileError) -> Result<(), ReconcileError> {
        let Some(snapshot) = self.view.snapshot(key)? else { return Ok(()) };
        let executor = self.executor(&snapshot)?;
        let observed_generation = Some(snapshot.package.generation);
        let status = PackageStatus { observed_generation, ..snapshot.package.status.clone() };
        self.tell(key, &snapshot, &executor, status, Reason::Progressing, error.to_string()).await
    }

    async fn look(&self, key: &PackageKey) -> Result<(), ReconcileError> {
        let Some(snapshot) = self.view.snapshot(key)? else {
            self.forget(key);
            return Ok(());
        };
        // Expressions of a Package may take long; nobody else waits for them.
        let see = move || {
            let own = rollout::peer(&snapshot);
            (snapshot, own)
        };
        let (mut snapshot, own) = tokio::task::spawn_blocking(see).await?;
        self.publish(key, own.clone());
        if !self.view.knows_all_peers() {
            self.queue.wake_after(key.clone(), Duration::from_millis(50));
            return Ok(());
        }
        snapshot.peers = self.view.peers(key);
        self.look_up(key, &own, &mut snapshot).await?;
        let decide = move || {
            let began = Instant::now();
            let decision = rollout::decide(&snapshot, Timestamp::now());
            (snapshot, decision, began.elapsed())
        };
        let (snapshot, decision, took) = tokio::task::spawn_blocking(decide).await?;
        if took >= LONG_DECISION {
            tracing::warn!(
                seconds = took.as_secs(),
                "a decision took long: the expressions of readyWhen cost too much"
            );
            self.queue.rest(key, took.saturating_mul(REST));
        }
        let executor = self.executor(&snapshot)?;
        self.execute(key, &snapshot, &executor, decision).await
    }

    fn forget(&self, key: &PackageKey) {
        self.view.forget(key);
        self.lookups.forget(key);
        self.selections.forget(key);
        self.repeats.forget(key);
        self.refusals.note(key, BTreeMap::new());
        self.queue.forget(key);
        self.metrics.forget(key);
        self.wake_related(key);
    }

    /// Tells the others what this Package is doing, if that is news.
    fn publish(&self, key: &PackageKey, own: Peer) {
        if self.view.publish(key, own) {
            self.wake_related(key);
        }
    }

    fn wake_related(&self, key: &PackageKey) {
        self.view.related(key).into_iter().for_each(|related| self.queue.wake(related));
    }

    async fn look_up(&self, key: &PackageKey, own: &Peer, snapshot: &mut Snapshot) -> Result<(), ReconcileError> {
        let mut needs = rollout::needs(snapshot);
        if needs.foreign_releases {
            for kind in [Kind::HelmRelease, Kind::Application] {
                let installed = kind.engine().is_some_and(|engine| snapshot.cluster.engines.contains(&engine));
                if installed {
                    self.foreign(own, snapshot, kind).await?;
                }
            }
            needs = rollout::needs(snapshot);
        }
        let own = needs.as_windlass.into_iter().chain(needs.daemon_sets.keys().cloned()).collect();
        let (mut wanted, mut denied) = (vec![(None, self.accounts.own(), own)], BTreeSet::new());
        match rollout::acts_as(snapshot) {
            ActsAs::Windlass => wanted.push((None, self.accounts.own(), needs.as_package)),
            ActsAs::Account(account) => {
                let client = self.accounts.of(&key.0, Some(&account))?;
                wanted.push((Some(account), client, needs.as_package));
            }
            ActsAs::Nobody => denied = needs.as_package,
        }
        snapshot.objects = self.lookups.want(key, &wanted, &self.queue);
        snapshot.objects.extend(denied.into_iter().map(|key| (key, Lookup::Denied)));
        for key in &needs.fresh {
            let found = self.read(key).await?;
            if let Lookup::Found(Value::Object(object)) = &found {
                self.lookups.note(key, object.clone());
            }
            snapshot.objects.insert(key.clone(), found);
        }
        let selections = rollouts::selections(&needs.daemon_sets, &snapshot.objects);
        let selected = self.selections.want(key, &selections, &self.accounts.own(), &self.queue);
        snapshot.daemon_sets = rollouts::sights(&needs.daemon_sets, &snapshot.objects, &selected);
        snapshot.policies = self.view.policies(needs.guarded);
        snapshot.refusals = self.refusals.of(key);
        let rights = if is_left(snapshot) { BTreeSet::new() } else { needs.rights };
        snapshot.rights = self.rights.ask(self.accounts.own(), &key.0, rights).await?;
        Ok(())
    }

    /// A DaemonSet as it is now.
    async fn read(&self, key: &ObjectKey) -> Result<Lookup, ReconcileError> {
        let daemon_sets = api(self.accounts.own(), &key.namespace, &daemon_set_resource());
        match bounded(daemon_sets.get(&key.name)).await {
            Ok(object) => Ok(serde_json::to_value(object).map_or(Lookup::Pending, Lookup::Found)),
            Err(error) if error.is_not_found() => Ok(Lookup::Absent),
            Err(error) if error.is_forbidden() => Ok(Lookup::Denied),
            Err(error) => Err(error.into()),
        }
    }

    /// Release objects that are not watched because they are not ours: those at
    /// the places of our children, and those given to us.
    async fn foreign(&self, own: &Peer, snapshot: &mut Snapshot, kind: Kind) -> Result<(), ReconcileError> {
        let namespace = self.watch_namespace.as_deref().unwrap_or_default();
        let all = self.foreign.all(self.accounts.own(), namespace, kind).await?;
        for live in all.iter().map(Cached::live) {
            match rollout::sort(own, &live) {
                Found::Child if !snapshot.children.iter().any(|known| known.key() == live.key()) => {
                    let whole = foreign::whole(self.accounts.own(), live.key(), &kind.resource()).await?;
                    snapshot.children.extend(whole);
                }
                Found::Other => {
                    // The Package is not told of what stands in other namespaces.
                    tracing::info!(object = %live.key(), "holds a release that this Package asks for");
                    snapshot.others.push(live);
                }
                Found::Child | Found::Nothing => {}
            }
        }
        Ok(())
    }

    fn executor(&self, snapshot: &Snapshot) -> Result<Executor, ReconcileError> {
        let namespace = snapshot.package.namespace.clone();
        let account = match rollout::acts_as(snapshot) {
            ActsAs::Account(account) => self.accounts.of(&namespace, Some(&account))?,
            // Nobody is asked to write anything for a Package that acts as nobody.
            ActsAs::Windlass | ActsAs::Nobody => self.accounts.own(),
        };
        let require_account = snapshot.cluster.require_service_account;
        Ok(Executor {
            own: self.accounts.own(),
            account,
            namespace,
            package: snapshot.package.name.clone(),
            require_account,
        })
    }

    /// Records first, then actions in order, then events and the status.
    async fn execute(
        &self,
        key: &PackageKey,
        snapshot: &Snapshot,
        executor: &Executor,
        decision: Decision,
    ) -> Result<(), ReconcileError> {
        let mut news = false;
        for record in &decision.records {
            match self.while_leading(executor.record(record)).await? {
                Ok(written) => news |= self.taken(written) == Taken::Yes,
                Err(error) => return self.not_written(key, snapshot, executor, decision, error).await,
            }
            self.metrics.wrote("PackageRevision");
        }
        self.ask_before_uninstall(snapshot, &decision.actions).await?;
        let (acted, changed) = self.act(key, executor, &decision.actions).await;
        let undone = self.repeats.is_undone(key, &decision.actions);
        // What changes nothing, or is done over and over, does not shorten the pause.
        if (news || changed == Taken::Yes) && !undone {
            self.queue.progressed(key);
        }
        // What is on record is told, whatever became of the actions: they are tried again.
        self.publish_events(snapshot, &decision).await;
        match acted {
            Ok(()) => {}
            Err(ReconcileError::Write(error)) => {
                return self.not_written(key, snapshot, executor, decision, error).await;
            }
            Err(error) => return Err(error),
        }
        if undone {
            let message = told_of_undone(&decision.actions);
            self.tell(key, snapshot, executor, decision.status, Reason::Conflict, message.clone()).await?;
            return Err(ReconcileError::Undone(message));
        }
        if decision.status != snapshot.package.status {
            self.taken(self.while_leading(executor.status(&decision.status)).await??);
            self.metrics.wrote("Package");
        }
        self.metrics.observe(key, &decision.status);
        if !decision.records.is_empty() || !decision.actions.is_empty() {
            // What was just done is evidence for the next step.
            self.queue.wake(key.clone());
        }
        if let Some(after) = decision.look_again {
            self.queue.wake_after(key.clone(), after);
        }
        Ok(())
    }

    /// What could not be written is told, and tried again; what else is due by then, such as
    /// the end of another DaemonSet's soak, does not wait for it.
    async fn not_written(
        &self,
        key: &PackageKey,
        snapshot: &Snapshot,
        executor: &Executor,
        decision: Decision,
        error: WriteError,
    ) -> Result<(), ReconcileError> {
        if let Some(after) = decision.look_again {
            self.queue.wake_after(key.clone(), after);
        }
        if let Some(reason) = reason_of(&error, self.queue.failures(key)) {
            self.tell(key, snapshot, executor, decision.status, reason, error.to_string()).await?;
        }
        Err(error.into())
    }

    /// Watches may lag behind each other: whether the Package goes because its kind or
    /// its namespace does is asked once more before anything is uninstalled.
    async fn ask_before_uninstall(
        &self,
        snapshot: &Snapshot,
        actions: &[rollout::Action],
    ) -> Result<(), ReconcileError> {
        let destroys = actions.iter().any(|action| matches!(action, rollout::Action::Delete { .. }));
        if !destroys || !snapshot.package.deleting || snapshot.cluster.crd_terminating {
            return Ok(());
        }
        let namespace = &snapshot.package.namespace;
        let going = access::is_going(&self.accounts.own(), namespace).await?;
        let news = self.view.change_facts(|facts| {
            facts.crd_terminating |= going.kind;
            if going.namespace {
                facts.terminating.insert(namespace.clone());
            }
        });
        if news && !snapshot.cluster.namespace_terminating {
            return Err(WriteError::Changed { object: format!("Namespace/{namespace} or the kind Package") }.into());
        }
        Ok(())
    }

    /// In order, up to the first that fails. But what is done for one DaemonSet does not
    /// wait for another, nor for the engine, and a freeze for nothing.
    /// Also says whether anything is another than before.
    async fn act(
        &self,
        key: &PackageKey,
        executor: &Executor,
        actions: &[rollout::Action],
    ) -> (Result<(), ReconcileError>, Taken) {
        let mut changed = Taken::No;
        let mut problem: Option<WriteError> = None;
        let mut stopped = false;
        let mut failed: Vec<(&str, &str)> = Vec::new();
        let mut refused = BTreeMap::new();
        let (first, then): (Vec<_>, Vec<_>) = actions.iter().partition(|action| is_freeze(action));
        for action in first.into_iter().chain(then) {
            let daemon_set = action.daemon_set();
            let is_held_up = match daemon_set {
                Some(daemon_set) => failed.contains(&daemon_set),
                None => stopped,
            };
            if is_held_up {
                continue;
            }
            tracing::info!(action = describe(action), "acting");
            let done = match self.while_leading(executor.act(action)).await {
                Ok(done) => done,
                Err(error) => return (Err(error), changed),
            };
            match done {
                Ok(written) => {
                    if self.taken(written) == Taken::Yes {
                        changed = Taken::Yes;
                    }
                    self.metrics.wrote(describe(action));
                }
                Err(error) => {
                    match daemon_set {
                        Some(daemon_set) => {
                            let (namespace, name) = daemon_set;
                            if !matches!(error, WriteError::Changed { .. }) {
                                refused.insert(format!("{namespace}/{name}"), error.to_string());
                            }
                            failed.push(daemon_set);
                        }
                        None => stopped = true,
                    }
                    problem.get_or_insert(error);
                }
            }
        }
        self.refusals.note(key, refused);
        (problem.map_or(Ok(()), |error| Err(error.into())), changed)
    }

    /// After the actions: nothing waits for an event to be written.
    async fn publish_events(&self, snapshot: &Snapshot, decision: &Decision) {
        for event in &decision.events {
            self.recorder.publish(snapshot, event).await;
        }
        for event in &decision.rollout_events {
            self.recorder.publish_rollout(snapshot, event).await;
        }
    }

    /// Says in the status that a write is refused: what is only logged would be
    /// a silent wait.
    async fn tell(
        &self,
        key: &PackageKey,
        snapshot: &Snapshot,
        executor: &Executor,
        status: PackageStatus,
        reason: Reason,
        message: String,
    ) -> Result<(), ReconcileError> {
        let status = rollout::refused(snapshot, status, reason, message, Timestamp::now());
        if status != snapshot.package.status {
            self.taken(self.while_leading(executor.status(&status)).await??);
            self.metrics.wrote("Package");
        }
        self.metrics.observe(key, &status);
        Ok(())
    }

    /// Own writes are seen at once: a stale cache never causes a second action. A
    /// write that changed nothing is answered with what is known already.
    fn taken(&self, written: Written) -> Taken {
        match written {
            Written::Object(object) => match Kind::of(&object.key().kind) {
                Some(kind) => return self.view.store(kind).put(*object),
                None => self.lookups.note(object.key(), object.object()),
            },
            Written::Gone(key) => {
                if let Some(kind) = Kind::of(&key.kind) {
                    self.view.store(kind).remove(&key);
                }
            }
            Written::GonePod(namespace, uid) => self.selections.note_gone(&namespace, &uid),
            Written::Other => return Taken::No,
        }
        Taken::Yes
    }

    /// A write that is sent while this process leads is waited for no longer than it
    /// does: whoever leads next must not be overtaken by it.
    async fn while_leading<T>(&self, write: impl Future<Output = T>) -> Result<T, ReconcileError> {
        match self.leadership.left() {
            None => Ok(write.await),
            Some(left) if left.is_zero() => Err(ReconcileError::NotLeading),
            Some(left) => tokio::time::timeout(left, write).await.map_err(|_| ReconcileError::NotLeading),
        }
    }
}

/// Whether nothing of a Package is uninstalled, though it is deleted.
fn is_left(snapshot: &Snapshot) -> bool {
    let cluster = &snapshot.cluster;
    let is_orphaned = snapshot.package.deletion_policy == DeletionPolicy::Orphan;
    snapshot.package.deleting && (is_orphaned || cluster.crd_terminating || cluster.namespace_terminating)
}

/// Failures after the first until a write that only failed is told of: most
/// succeed when they are tried again.
const SILENT_FAILURES: u32 = 4;

/// The reason under which a write that was not made is told; `None` while it may
/// pass by itself.
fn reason_of(error: &WriteError, failures: u32) -> Option<Reason> {
    match error {
        WriteError::Denied { .. } => Some(Reason::AccessDenied),
        WriteError::Invalid { .. } => Some(Reason::InvalidSpec),
        WriteError::Mismatch { .. } => Some(Reason::GuardMismatch),
        WriteError::Taken { .. } => Some(Reason::Conflict),
        WriteError::Changed { .. } => (failures >= SILENT_FAILURES).then_some(Reason::Conflict),
        WriteError::Failed { .. } => (failures >= SILENT_FAILURES).then_some(Reason::Progressing),
    }
}

/// Says what is written over and over.
fn told_of_undone(actions: &[rollout::Action]) -> String {
    let objects: BTreeSet<String> =
        actions.iter().filter_map(rollout::Action::object).map(|key| key.to_string()).collect();
    let objects = objects.into_iter().collect::<Vec<_>>().join(", ");
    format!("{objects}: somebody else changes back what is written, such as an admission webhook: exempt these objects")
}

/// Whether it only makes a rollout smaller.
fn is_freeze(action: &rollout::Action) -> bool {
    matches!(action, rollout::Action::Rollout(canary::Action::Steer(steering)) if steering.pace == Pace::Frozen)
}

/// What an action is called in logs and metrics.
fn describe(action: &rollout::Action) -> &'static str {
    use rollout::Action;
    match action {
        Action::HoldPackage => "HoldPackage",
        Action::ReleasePackage => "ReleasePackage",
        Action::CreateRevision(_) => "CreateRevision",
        Action::HoldRevision { .. } => "HoldRevision",
        Action::ReleaseRevision { .. } => "ReleaseRevision",
        Action::DeleteRevision { .. } => "DeleteRevision",
        Action::Apply { .. } => "Apply",
        Action::Patch { .. } => "Patch",
        Action::Operate { .. } => "Operate",
        Action::MarkVolumeClaim { .. } => "MarkVolumeClaim",
        Action::Rollout(canary::Action::Label(_)) => "LabelDaemonSet",
        Action::Rollout(canary::Action::Steer(_)) => "SteerDaemonSet",
        Action::Rollout(canary::Action::DeletePod { .. }) => "DeletePod",
        Action::Delete { .. } => "Delete",
    }
}
