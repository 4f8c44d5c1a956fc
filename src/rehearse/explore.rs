//! What could happen next, instead of what does, and what could go wrong.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Rehearsal;
use super::process::Write;
use crate::sim::fingerprint;
use crate::sim::world::{Part, TaskId};

/// Milliseconds for which a part of the cluster is away: longer than the turns of
/// what is explored may take.
const AWAY: u64 = 400_000;
/// Milliseconds after which everything is looked at, whatever was missed.
const RESYNC: u64 = 600_000;

/// One thing that could happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A part of the cluster takes a step.
    World(TaskId),
    /// The controller takes a step.
    Controller,
    /// The controller sees what it has not been shown.
    Shown,
    /// Time passes until something is due.
    Later,
}

/// One thing that could go wrong at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The next write is refused: somebody else was faster.
    Refused,
    /// The next write arrives, and its answer is lost.
    AnswerLost,
    /// The controller is not told of what it has not looked at yet.
    NotTold,
    /// It is told of nothing, and looks.
    ToldTwice,
    /// What changes from now on of releases is shown late.
    ReleasesShownLate,
    /// The same of revisions.
    RevisionsShownLate,
    /// A part of the cluster is started anew.
    Restarts(Part),
    /// A part of the cluster does nothing until every turn is over.
    Away(Part),
}

/// What tells one moment of a rehearsal from another, whatever the time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The cluster, and what the controller is at.
    pub substance: u64,
    /// What is due soon, sorted.
    pub soon: Vec<u64>,
    /// What is due later.
    pub late: u64,
}

impl Moment {
    /// Whether nothing has come of a step but that it is done: the moment after it is
    /// this one without something that was due.
    pub fn is_left_alone_by(&self, step: &Self) -> bool {
        self.substance == step.substance && step.soon.len() < self.soon.len() && is_part(&step.soon, &self.soon)
    }
}

/// Whether each of some sorted items is among others, as often.
fn is_part(some: &[u64], all: &[u64]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

impl Rehearsal {
    /// What could happen next: everything that is due within `soon`
    /// milliseconds, in whatever order; else the next thing that is due at all.
    ///
    /// Records and the status of a Package are written by the controller alone, and
    /// read by nobody else. So it makes no difference what else happens before they
    /// are written or after it, and one of both is enough.
    pub fn choices(&self, soon: u64) -> Vec<Choice> {
        if self.is_at_own_affairs() {
            return vec![Choice::Controller];
        }
        let limit = self.now() + soon;
        let world = self.world.due().take_while(|(id, _)| id.0 <= limit).map(|(id, _)| Choice::World(id));
        let mut choices: Vec<Choice> = world.collect();
        if self.process.next_due().is_some_and(|due| due <= limit) {
            choices.push(Choice::Controller);
        }
        if self.process.cache.is_holding_back() {
            choices.push(Choice::Shown);
        }
        if choices.is_empty() && self.next_due().is_some() {
            choices.push(Choice::Later);
        }
        choices
    }

    /// What could go wrong now.
    pub fn possible_faults(&self, soon: u64) -> Vec<Fault> {
        let due = self.process.queue.values().any(|due| *due <= self.now() + soon);
        let mut faults = match (self.is_writing(), due) {
            (true, _) => vec![Fault::Refused, Fault::AnswerLost],
            (false, true) => vec![Fault::NotTold],
            (false, false) => vec![Fault::ToldTwice],
        };
        if !self.is_writing() {
            faults.extend([Fault::ReleasesShownLate, Fault::RevisionsShownLate]);
        }
        let engine = self.settings.engines.iter().next();
        let parts: &[Part] = match engine {
            Some(crate::api::Engine::Flux) => &[Part::HelmController, Part::SourceController],
            Some(crate::api::Engine::Argo) => &[Part::ArgoCd],
            None => &[],
        };
        faults.extend(parts.iter().map(|part| Fault::Restarts(*part)));
        faults.extend(parts.iter().map(|part| Fault::Away(*part)));
        faults
    }

    fn is_at_own_affairs(&self) -> bool {
        let next = self.process.execution.as_ref().and_then(|execution| execution.writes.front());
        next.is_some_and(|planned| planned.is_own_affair())
    }

    /// Whether a decision is being carried out.
    pub fn is_writing(&self) -> bool {
        self.process.execution.is_some()
    }

    /// Lets it happen.
    pub fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::World(id) => {
                self.world.run(id);
            }
            Choice::Controller => {
                let due = self.process.next_due().unwrap_or(0);
                self.world.wait_until(due);
                self.controller_step();
            }
            Choice::Shown => self.process.cache.hold_back(&[]),
            Choice::Later => {
                self.step();
            }
        }
        self.deliver();
    }

    /// Lets it go wrong.
    pub fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Refused => self.refuse_next_write(false),
            Fault::AnswerLost => self.refuse_next_write(true),
            Fault::NotTold => {
                let at = self.now() + RESYNC;
                self.process.queue.values_mut().for_each(|due| *due = at);
            }
            Fault::ToldTwice => {
                let at = self.now();
                self.process.queue.values_mut().for_each(|due| *due = at);
            }
            Fault::ReleasesShownLate => self.process.cache.hold_back(&["HelmRelease", "Application"]),
            Fault::RevisionsShownLate => self.process.cache.hold_back(&["PackageRevision"]),
            Fault::Restarts(part) => self.world.restart(part),
            Fault::Away(part) => {
                self.world.stopped.insert(part);
                self.run_for(AWAY);
                self.world.stopped.remove(&part);
            }
        }
        self.deliver();
    }

    /// What tells this moment from others; see [`crate::sim::World::fingerprint`].
    pub fn moment(&self, soon: u64) -> Moment {
        let fingerprint::Fingerprint { substance, soon: mut tasks, late } = self.world.fingerprint(soon);
        let (mut hasher, mut queued) = (DefaultHasher::new(), DefaultHasher::new());
        substance.hash(&mut hasher);
        self.process.watched.hash(&mut hasher);
        self.process.cache.hash_held_back(&mut hasher);
        for planned in self.process.execution.iter().flat_map(|execution| &execution.writes) {
            planned.print.get_or_init(|| print_of(&planned.write)).hash(&mut hasher);
        }
        late.hash(&mut queued);
        for (id, due) in &self.process.queue {
            let is_soon = *due <= self.now() + soon;
            (id, is_soon).hash(&mut queued);
            if is_soon {
                // Tasks of the cluster are hashes of themselves.
                tasks.push(0);
            }
        }
        tasks.sort_unstable();
        Moment { substance: hasher.finish(), soon: tasks, late: queued.finish() }
    }
}

fn print_of(write: &Write) -> u64 {
    let contents = match write {
        Write::Record(record) => serde_json::to_value(&record.status).unwrap_or_default(),
        Write::Status(status) => serde_json::to_value(status).unwrap_or_default(),
        Write::Action(_) => serde_json::Value::Null,
    };
    let mut hasher = DefaultHasher::new();
    (super::execute::name_of(write), fingerprint::of_value(&contents)).hash(&mut hasher);
    hasher.finish()
}
