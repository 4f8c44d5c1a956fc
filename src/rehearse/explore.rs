//! What could happen next, instead of what does.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Rehearsal;
use super::process::Write;
use crate::sim::world::TaskId;

/// One thing that could happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A part of the cluster takes a step.
    World(TaskId),
    /// The controller takes a step.
    Controller,
    /// Time passes until something is due.
    Later,
}

impl Rehearsal {
    /// What could happen next: everything that is due within `soon`
    /// milliseconds, in whatever order; else the next thing that is due at all.
    pub fn choices(&self, soon: u64) -> Vec<Choice> {
        let limit = self.now() + soon;
        let world = self.world.due().take_while(|(id, _)| id.0 <= limit).map(|(id, _)| Choice::World(id));
        let mut choices: Vec<Choice> = world.collect();
        if self.process.next_due().is_some_and(|due| due <= limit) {
            choices.push(Choice::Controller);
        }
        if choices.is_empty() && self.next_due().is_some() {
            choices.push(Choice::Later);
        }
        choices
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
            Choice::Later => {
                self.step();
            }
        }
        self.deliver();
    }

    /// Equal where the same can happen next, whatever the time; see
    /// [`crate::sim::World::fingerprint`].
    pub fn fingerprint(&self, soon: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.world.fingerprint(soon).hash(&mut hasher);
        for (id, due) in &self.process.queue {
            (id, *due <= self.now() + soon).hash(&mut hasher);
        }
        for write in self.process.execution.iter().flat_map(|execution| &execution.writes) {
            match write {
                Write::Record(record) => (0, &record.revision).hash(&mut hasher),
                Write::Action(_) => (1, super::execute::name_of(write)).hash(&mut hasher),
                Write::Status(_) => 2.hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}
