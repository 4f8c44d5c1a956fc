//! The decisions played on a simulated cluster: the same [`crate::rollout`] as
//! in the controller, with virtual time, and with whatever can go wrong.
//!
//! A [`Rehearsal`] is a cluster and one controller process. It knows every write
//! and who did it, so that an order is proved from what happened and never from
//! what was said.

mod cache;
mod execute;
mod explore;
mod look;
mod packages;
pub mod play;
mod process;
mod renames;
pub mod report;
pub mod scene;
mod stage;
pub mod timeline;
pub mod trials;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Engine, PackageRevisionSpec};
use crate::package::version::Version;
use crate::rollout::{Decision, Event, Snapshot};
use crate::sim::chart::Script;
use crate::sim::{Refusal, Shared, World};

pub use explore::{Choice, Fault, Moment};
pub use process::PackageId;
pub use stage::NotPlayed;

use process::Process;

/// How the controller is started.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Engines that are installed.
    pub engines: BTreeSet<Engine>,
    /// Version of Kubernetes.
    pub kubernetes: Option<Version>,
    /// `--requirements-settle`.
    pub requirements_settle: Duration,
    /// `--deletion-settle`.
    pub deletion_settle: Duration,
    /// Whether the kind Package is being deleted.
    pub crd_terminating: bool,
    /// `--require-service-account`.
    pub require_service_account: bool,
    /// Whether what revisions store is kept beside their objects. Every record of a
    /// revision is a copy of its object, and all are kept.
    pub manifests_apart: bool,
}

impl Settings {
    /// One engine, the usual flags.
    pub fn new(engine: Engine) -> Self {
        Self {
            engines: BTreeSet::from([engine]),
            kubernetes: None,
            requirements_settle: Duration::from_secs(2),
            deletion_settle: Duration::from_secs(30),
            crd_terminating: false,
            require_service_account: false,
            manifests_apart: false,
        }
    }
}

/// What goes wrong with the controller.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Milliseconds by which what is seen of a kind lags behind.
    pub lag: std::collections::BTreeMap<String, u64>,
    /// Every so many-th notification is lost, though not what it is about.
    pub lose_every: Option<u64>,
    /// Every notification comes twice.
    pub duplicate: bool,
    /// The controller is killed once it has done so many steps.
    pub kill_after: Option<u64>,
    /// The same, at each of these counts.
    pub kills: VecDeque<u64>,
    /// Milliseconds by which the clock of the next process is ahead.
    pub next_skew: i64,
    /// The controller stops for good after so many steps: one that does the same
    /// for ever comes to an end.
    pub stop_after: Option<u64>,
    /// Why writes to DaemonSets and their pods are refused, as somebody's admission says.
    pub rollouts_refused: Option<String>,
    /// Changes what a decision is made from: it makes a core that overlooks
    /// something, without a second copy of the core.
    pub distortion: Option<fn(&mut Snapshot)>,
    /// Decides in the place of the core, which it may ask.
    pub core: Option<fn(&Snapshot, jiff::Timestamp) -> Decision>,
}

/// Something that happened to the controller, beside the writes in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Virtual time, in milliseconds.
    pub at: u64,
    /// How many changes the cluster had seen by then.
    pub position: usize,
    /// Package it is about; `None`: the process as a whole.
    pub package: Option<PackageId>,
    /// What happened.
    pub what: Happening,
}

/// What can happen to the controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// It reports a transition.
    Event(Event),
    /// A write of it was refused.
    Refused(String, Refusal),
    /// It was killed and started again.
    Restarted,
}

/// A cluster and the controller in it.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// The cluster.
    pub world: World,
    /// What goes wrong.
    pub faults: Faults,
    /// How the controller is started.
    pub settings: Settings,
    /// What happened to the controller.
    pub notes: Vec<Note>,
    process: Process,
    /// Whole specs of revisions, by uid.
    specs: Shared<BTreeMap<String, Arc<PackageRevisionSpec>>>,
    steps: u64,
    notifications: u64,
}

impl Rehearsal {
    /// A cluster that follows `script`, and a controller that has just started.
    pub fn new(script: Script, settings: Settings) -> Self {
        Self {
            world: World::new(script),
            faults: Faults::default(),
            settings,
            notes: Vec::new(),
            process: Process::default(),
            specs: Shared::default(),
            steps: 0,
            notifications: 0,
        }
    }

    /// Virtual time, in milliseconds.
    pub fn now(&self) -> u64 {
        self.world.now()
    }

    /// Steps the controller has taken: one for each decision and each write.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// When something happens next.
    pub fn next_due(&self) -> Option<u64> {
        let working = self.faults.stop_after.is_none_or(|steps| self.steps < steps);
        let own = [self.process.next_due(), self.next_delivery()].into_iter().flatten().min().filter(|_| working);
        own.map(|own| own.max(self.now())).into_iter().chain(self.world.next_due()).min()
    }

    /// Whether the controller does the next thing that happens.
    fn is_controllers_turn(&self) -> bool {
        self.next_due().is_some_and(|due| self.world.next_due() != Some(due))
    }

    /// Lets the next thing happen; of those at the same time, the cluster's first.
    pub fn step(&mut self) -> bool {
        let Some(due) = self.next_due() else { return false };
        if self.world.next_due() == Some(due) {
            self.world.step();
        } else {
            self.world.wait_until(due);
            self.controller_step();
        }
        self.deliver();
        true
    }

    /// Plays for some milliseconds.
    pub fn run_for(&mut self, millis: u64) {
        let end = self.now() + millis;
        self.deliver();
        while self.next_due().is_some_and(|due| due <= end) {
            self.step();
        }
        self.world.wait_until(end);
        self.deliver();
    }

    /// Plays until something holds; `false` if it does not within some milliseconds.
    pub fn run_until(&mut self, millis: u64, holds: impl Fn(&Self) -> bool) -> bool {
        let end = self.now() + millis;
        self.deliver();
        while !holds(self) {
            if self.next_due().is_none_or(|due| due > end) {
                self.world.wait_until(end);
                self.deliver();
                return holds(self);
            }
            self.step();
        }
        true
    }

    /// Kills the controller and starts another, whose clock is `skew`
    /// milliseconds ahead.
    pub fn restart(&mut self, skew: i64) {
        let at = self.now();
        self.process = Process::started(at, skew);
        let position = self.world.store.log().len();
        self.notes.push(Note { at, position, package: None, what: Happening::Restarted });
        self.deliver();
    }
}
