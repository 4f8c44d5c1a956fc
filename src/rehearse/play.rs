//! A scene played to its end: the Packages as they were are installed, then the
//! commit is made, and everything goes on until nothing moves any more.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::process::PackageId;
use super::scene::Scene;
use super::stage::{self, Adjacent, NotPlayed, Stage};
use super::{Rehearsal, Settings};
use crate::api::{Engine, PackageStatus, Reason};
use crate::canary::estimate::allowance;
use crate::package::version::Version;
use crate::sim::chart::Script;
use crate::sim::guard::Policy;
use crate::sim::store::{Expected, generation};
use crate::sim::{Verb, World};
use crate::translate::Compiled;

/// Who makes commits.
pub(super) const GIT: &str = "git";
/// Kubernetes serves the policies of the canary's guard from this version on.
const SERVES_POLICIES: &str = "1.36.0";
/// Milliseconds without a change after which what waits is taken to wait for good.
const QUIET: u64 = 120_000;
/// The same where something is still under way, beyond the longest timeout.
const PATIENCE: u64 = 600_000;
/// More steps of the controller than a scene takes, and than each component adds;
/// what needs more does not end.
const MAX_STEPS: (u64, u64) = (20_000, 1_000);
/// The same for changes in the cluster, all of which are kept: an engine that
/// tries again for days of virtual time makes them without the controller.
const MAX_CHANGES: (usize, usize) = (5_000, 500);

/// How a play ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every Package is Ready as it is wanted, and what was removed is gone.
    Ready,
    /// Nothing goes on any more, and some Package is not Ready.
    Stopped,
    /// What ran before could not be brought to run; the commit was not made.
    NotBegun,
    /// It still goes on after more steps than that should take.
    Unfinished,
}

impl End {
    /// Its stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stopped => "stopped",
            Self::NotBegun => "notBegun",
            Self::Unfinished => "unfinished",
        }
    }
}

/// What has been played.
#[derive(Debug)]
pub struct Played {
    /// The cluster and the controller, with all that happened to them.
    pub rehearsal: Rehearsal,
    /// How it ended.
    pub end: End,
    /// Virtual time of the commit, in milliseconds.
    pub began: u64,
    /// Changes in the cluster before the commit.
    pub position: usize,
    /// Steps that the controller took since the commit.
    pub steps: u64,
    /// What of the Packages could not be played.
    pub not_played: Vec<NotPlayed>,
}

/// Plays a scene.
pub fn play(scene: &Scene) -> Played {
    match prepare(scene) {
        Ok(prepared) => prepared.play(scene),
        Err(played) => *played,
    }
}

/// A scene in which what was before runs, and the commit is about to be made.
pub struct Prepared {
    rehearsal: Rehearsal,
    stage: Stage,
    before: Vec<Compiled>,
    after: Vec<Compiled>,
}

/// Lets what was before run.
///
/// # Errors
/// Where that cannot be: what was played of it.
pub fn prepare(scene: &Scene) -> Result<Prepared, Box<Played>> {
    let mut engines = scene.engines();
    if engines.is_empty() {
        engines.insert(Engine::Flux);
    }
    let engine = engines.first().copied().unwrap_or(Engine::Flux);
    let kubernetes = scene.kubernetes();
    let settings = Settings { engines, kubernetes, manifests_apart: true, ..Settings::new(engine) };
    let mut rehearsal = Rehearsal::new(Script::default(), settings);
    if scene.has_canary() {
        put_up_nodes(&mut rehearsal, scene);
    }
    let mut stage = Stage::default();
    let mut before = scene.before.clone();
    if !before.is_empty() {
        stage.set(&mut rehearsal.world.script, &mut before, Adjacent::After(&scene.after));
        commit(&mut rehearsal.world, &[], &before);
        let end = Standing::default().play_to_rest(&mut rehearsal, scene, 0, &mut |_| ());
        if end != End::Ready {
            let (end, began, position, steps) = (End::NotBegun, 0, 0, rehearsal.steps());
            let not_played = stage.not_played;
            return Err(Box::new(Played { rehearsal, end, began, position, steps, not_played }));
        }
        rehearsal.world.remember();
    }
    let mut after = scene.after.clone();
    stage.set(&mut rehearsal.world.script, &mut after, Adjacent::Before(&before));
    rehearsal.notes.clear();
    Ok(Prepared { rehearsal, stage, before, after })
}

impl Prepared {
    /// Makes the commit and plays the scene to its end. What is to go wrong, and
    /// that alone, may be another than in the scene that was prepared.
    pub fn play(&self, scene: &Scene) -> Played {
        let mut rehearsal = self.rehearsal.clone();
        let steps = rehearsal.steps();
        rehearsal.faults.kill_after = scene.restart_at.map(|step| steps + step);
        self.commit(&mut rehearsal, scene);
        let end = Standing::default().play_to_rest(&mut rehearsal, scene, self.rehearsal.now(), &mut |_| ());
        self.played(rehearsal, end)
    }

    /// The same with a controller that is killed after a step, for every so
    /// many-th step; each time what came before it is played only once.
    pub fn play_with_restarts(&self, scene: &Scene, every: u64, mut each: impl FnMut(u64, &Played)) {
        let mut rehearsal = self.rehearsal.clone();
        let (before, began) = (rehearsal.steps(), rehearsal.now());
        self.commit(&mut rehearsal, scene);
        Standing::default().play_to_rest(&mut rehearsal, scene, began, &mut |rehearsal| {
            let step = rehearsal.steps() + 1 - before;
            if !rehearsal.is_controllers_turn() || !step.is_multiple_of(every) {
                return;
            }
            let mut killed = rehearsal.clone();
            killed.faults.kill_after = Some(before + step);
            let end = Standing::default().play_to_rest(&mut killed, scene, began, &mut |_| ());
            each(step, &self.played(killed, end));
        });
    }

    fn commit(&self, rehearsal: &mut Rehearsal, scene: &Scene) {
        self.stage.befall(&mut rehearsal.world.script, scene);
        commit(&mut rehearsal.world, &self.before, &self.after);
    }

    fn played(&self, rehearsal: Rehearsal, end: End) -> Played {
        let (began, position) = (self.rehearsal.now(), self.rehearsal.world.store.log().len());
        let steps = rehearsal.steps() - self.rehearsal.steps();
        Played { rehearsal, end, began, position, steps, not_played: self.stage.not_played.clone() }
    }
}

/// Nodes, and the canary's guard where such a cluster can have it.
fn put_up_nodes(rehearsal: &mut Rehearsal, scene: &Scene) {
    for number in 1..=scene.nodes {
        rehearsal.world.add_node(&format!("n{number}"));
    }
    let serves = Version::parse(SERVES_POLICIES).ok();
    let kubernetes = rehearsal.settings.kubernetes.as_ref();
    if kubernetes.zip(serves.as_ref()).is_some_and(|(found, serves)| found.cmp_precedence(serves).is_ge()) {
        rehearsal.world.store.policies = [Policy::Strict, Policy::Compat].into();
    }
}

/// Puts what is committed into the cluster: Packages, what they need around
/// them, and the absence of those that are gone.
fn commit(world: &mut World, before: &[Compiled], after: &[Compiled]) {
    for package in after {
        for object in stage::surroundings(&package.definition) {
            // Nothing is expected of it, so nothing can be refused.
            let _ = world.store.apply(GIT, &object, &Expected::default());
        }
        let _ = world.store.apply(GIT, &package.object, &Expected::default());
    }
    let id =
        |package: &Compiled| PackageId::new(package.definition.namespace.as_str(), package.definition.name.as_str());
    for gone in before.iter().map(id).filter(|gone| !after.iter().map(id).any(|kept| kept == *gone)) {
        // It runs, so it is there.
        let _ = world.store.delete(GIT, &gone.key(), &Expected::default());
    }
}

/// Whether anything is still to be expected of a Package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Ready,
    Waits,
    Moves,
}

/// The Packages, as the log tells.
#[derive(Default)]
struct Standing {
    read: usize,
    packages: BTreeMap<PackageId, Stand>,
    changed: u64,
}

impl Standing {
    /// Plays until nothing is to be expected any more, and at least what is due when
    /// it began. Shows what is there before each thing that happens.
    fn play_to_rest(
        mut self,
        rehearsal: &mut Rehearsal,
        scene: &Scene,
        began: u64,
        before_each: &mut dyn FnMut(&Rehearsal),
    ) -> End {
        let (quiet, patience) = patience(scene);
        let components = scene.before.iter().chain(&scene.after).map(|package| package.definition.components.len());
        let components = components.sum::<usize>();
        let most_steps = rehearsal.steps() + MAX_STEPS.0 + MAX_STEPS.1 * components as u64;
        let most_changes = rehearsal.world.store.log().len() + MAX_CHANGES.0 + MAX_CHANGES.1 * components;
        rehearsal.deliver();
        while rehearsal.next_due().is_some_and(|due| due <= began) {
            before_each(rehearsal);
            rehearsal.step();
        }
        loop {
            self.follow(rehearsal);
            let Some(due) = rehearsal.next_due() else { return self.end() };
            let idle = due.saturating_sub(self.changed);
            let moves = self.packages.values().any(|stand| *stand == Stand::Moves);
            let over = match self.end() {
                End::Ready => !rehearsal.is_writing(),
                End::Stopped | End::NotBegun | End::Unfinished => idle > if moves { patience } else { quiet },
            };
            let endless = rehearsal.steps() > most_steps || rehearsal.world.store.log().len() > most_changes;
            if over && moves || endless {
                return End::Unfinished;
            }
            if over {
                return self.end();
            }
            before_each(rehearsal);
            rehearsal.step();
        }
    }

    fn end(&self) -> End {
        if self.packages.values().all(|stand| *stand == Stand::Ready) { End::Ready } else { End::Stopped }
    }

    fn follow(&mut self, rehearsal: &Rehearsal) {
        let log = rehearsal.world.store.log();
        for change in log.get(self.read..).unwrap_or_default() {
            if change.key.kind != "Package" {
                continue;
            }
            self.changed = change.at;
            let id = PackageId::new(&change.key.namespace, &change.key.name);
            match change.verb {
                Verb::Deleted => self.packages.remove(&id),
                Verb::Created | Verb::Updated => self.packages.insert(id, stand(&change.object)),
            };
        }
        self.read = log.len();
    }
}

/// How long to wait where nothing changes.
fn patience(scene: &Scene) -> (u64, u64) {
    let timeouts = scene.before.iter().chain(&scene.after).map(|package| package.definition.upgrade.timeout.get());
    let delays = scene.delays.iter().map(|(_, delay)| *delay).max().unwrap_or_default();
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 4);
    let nodes = i64::try_from(scene.nodes).unwrap_or(i64::MAX);
    let rollouts =
        scene.canaries().map(|canary| allowance(&canary, nodes, std::time::Duration::ZERO)).max().unwrap_or_default();
    let quiet = QUIET + millis(delays);
    (quiet, quiet + millis(rollouts) + PATIENCE + millis(timeouts.max().unwrap_or_default()))
}

fn stand(package: &Map<String, Value>) -> Stand {
    let Some(status) = status(package) else { return Stand::Moves };
    let is = |type_: &str| status.conditions.iter().any(|c| c.type_ == type_ && c.status == "True");
    let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
    let reason = ready.and_then(|ready| Reason::parse(&ready.reason));
    if crate::sim::store::is_deleting(package) {
        return if status.blocked_by.is_empty() { Stand::Moves } else { Stand::Waits };
    }
    if status.observed_generation != Some(generation(package)) {
        return Stand::Moves;
    }
    if is("Ready") && !is("Reconciling") {
        return Stand::Ready;
    }
    match reason {
        Some(
            Reason::Ready
            | Reason::Progressing
            | Reason::Preparing
            | Reason::RollingBack
            | Reason::RolledBack
            | Reason::Deleting,
        )
        | None => Stand::Moves,
        Some(
            Reason::RequirementsNotMet
            | Reason::Conflict
            | Reason::InvalidSpec
            | Reason::UpgradePathNotAllowed
            | Reason::DowngradeRefused
            | Reason::RollbackRefused
            | Reason::SourceNotFound
            | Reason::HookFailed
            | Reason::InstallFailed
            | Reason::UpgradeFailed
            | Reason::UpgradeRolledBack
            | Reason::RollbackFailed
            | Reason::Suspended
            | Reason::EngineMissing
            | Reason::EngineAmbiguous
            | Reason::AccessDenied
            | Reason::GuardMismatch,
        ) => Stand::Waits,
    }
}

/// The status of a Package, if it has one.
pub(super) fn status(package: &Map<String, Value>) -> Option<PackageStatus> {
    package.get("status").and_then(|status| serde_json::from_value(status.clone()).ok())
}
