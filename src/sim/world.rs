//! Time, and everything that happens by itself in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::argo::Argo;
use super::chart::{Rendering, Script};
use super::flux::Flux;
use super::helm::Helm;
use super::json;
use super::shared::Shared;
use super::store::{Key, Store};

/// One thing that a part of the cluster is about to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Task {
    /// source-controller looks at a source.
    Source(Key),
    /// helm-controller puts a HelmRelease into its queue.
    HelmQueue(Key),
    /// A worker of helm-controller takes the next step with a HelmRelease.
    HelmStep(Key),
    /// Argo CD compares an Application with the cluster.
    ArgoCompare(Key),
    /// Argo CD goes on with an Application's operation.
    ArgoOperate(Key),
    /// Argo CD goes on with an Application's deletion.
    ArgoDelete(Key),
    /// Kubernetes looks at a Deployment or Job.
    Workload(Key),
    /// The DaemonSet controller looks at a DaemonSet.
    DaemonSet(Key),
    /// A kubelet looks at a pod.
    Pod(Key),
    /// An operator looks at a resource, or has seen to it.
    Care(Key, bool),
}

impl Task {
    /// The part of the cluster that does it.
    pub fn part(&self) -> Part {
        match self {
            Self::Source(_) => Part::SourceController,
            Self::HelmQueue(_) | Self::HelmStep(_) => Part::HelmController,
            Self::ArgoCompare(_) | Self::ArgoOperate(_) | Self::ArgoDelete(_) => Part::ArgoCd,
            Self::Workload(_) | Self::DaemonSet(_) | Self::Pod(_) => Part::Kubernetes,
            Self::Care(..) => Part::Operators,
        }
    }
}

/// A part of the cluster that can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// source-controller.
    SourceController,
    /// helm-controller.
    HelmController,
    /// Argo CD.
    ArgoCd,
    /// What makes Deployments, Jobs and DaemonSets run.
    Kubernetes,
    /// Operators.
    Operators,
}

/// Milliseconds until a part that was started anew looks at the first thing.
pub(super) const START: u64 = 50;

/// Names a task that is due: its time, and its place among those of that time.
pub type TaskId = (u64, u64);

/// The whole cluster.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The API server.
    pub store: Store,
    /// What is scripted.
    pub script: Shared<Script>,
    /// Parts that are stopped: their tasks wait.
    pub stopped: BTreeSet<Part>,
    pub(super) helm: Shared<Helm>,
    pub(super) flux: Shared<Flux>,
    pub(super) argo: Shared<Argo>,
    pub(super) pods_made: u64,
    now: u64,
    tasks: BTreeMap<TaskId, Task>,
    scheduled: BTreeMap<Task, BTreeSet<TaskId>>,
    sequence: u64,
    reacted: usize,
}

impl World {
    /// An empty cluster.
    pub fn new(script: Script) -> Self {
        Self { script: Shared::new(script), ..Self::default() }
    }

    /// Virtual time, in milliseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Virtual time as a timestamp.
    pub fn timestamp(&self) -> jiff::Timestamp {
        json::timestamp(self.now)
    }

    /// A moment of virtual time, in milliseconds, as a timestamp.
    pub fn time_of(millis: u64) -> jiff::Timestamp {
        json::timestamp(millis)
    }

    /// From now on what runs is told from what does not: mishaps, what operators
    /// say, and what releases consist of go by it.
    pub fn remember(&mut self) {
        self.script.ran = self.store.all().map(|(_, object)| Rendering::of(object)).collect();
        self.script.former = self.script.releases.clone();
    }

    /// Lets time pass without anything happening.
    pub fn wait_until(&mut self, time: u64) {
        self.now = self.now.max(time);
        self.store.set_now(self.now);
    }

    /// Takes note of writes from outside: what follows from them is scheduled.
    pub fn settle_writes(&mut self) {
        while let Some(change) = self.store.log().get(self.reacted).cloned() {
            self.reacted += 1;
            self.flux_react(&change);
            self.argo_react(&change);
            self.workloads_react(&change);
            self.daemon_sets_react(&change);
            self.kubelets_react(&change);
        }
    }

    /// When something happens next by itself.
    pub fn next_due(&self) -> Option<u64> {
        self.due().next().map(|(id, _)| id.0.max(self.now))
    }

    /// What will happen by itself, soonest first.
    pub fn due(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks.iter().filter(|(_, task)| !self.stopped.contains(&task.part())).map(|(id, task)| (*id, task))
    }

    /// Lets the next thing happen.
    pub fn step(&mut self) -> bool {
        let next = self.due().next().map(|(id, _)| id);
        next.is_some_and(|id| self.run(id))
    }

    /// Lets one of the things that are due happen, even before its time.
    pub fn run(&mut self, id: TaskId) -> bool {
        let Some(task) = self.tasks.remove(&id) else { return false };
        if let Some(scheduled) = self.scheduled.get_mut(&task) {
            scheduled.remove(&id);
            if scheduled.is_empty() {
                self.scheduled.remove(&task);
            }
        }
        self.wait_until(id.0);
        match &task {
            Task::Source(key) => self.source_step(key),
            Task::HelmQueue(key) => self.helm_enqueue(key),
            Task::HelmStep(key) => self.helm_step(key),
            Task::ArgoCompare(key) => self.argo_compare(key),
            Task::ArgoOperate(key) => self.argo_operate(key),
            Task::ArgoDelete(key) => self.argo_delete(key),
            Task::Workload(key) => self.workload_step(key),
            Task::DaemonSet(key) => self.daemon_set_step(key),
            Task::Pod(key) => self.pod_step(key),
            Task::Care(key, done) => self.care_step(key, *done),
        }
        self.settle_writes();
        true
    }

    /// Schedules a task; one that is the same and due earlier stands for it.
    pub(super) fn schedule(&mut self, delay: u64, task: Task) {
        let due = self.now + delay;
        let scheduled = self.scheduled.entry(task.clone()).or_default();
        if scheduled.first().is_some_and(|first| first.0 <= due) {
            return;
        }
        self.sequence += 1;
        scheduled.insert((due, self.sequence));
        self.tasks.insert((due, self.sequence), task);
    }

    /// Takes a task back.
    pub(super) fn cancel(&mut self, task: &Task) {
        for id in self.scheduled.remove(task).unwrap_or_default() {
            self.tasks.remove(&id);
        }
    }

    /// What is due within some milliseconds, and everything else that is scheduled.
    pub(super) fn soon_and_late(&self, soon: u64) -> (Vec<&Task>, Vec<&Task>) {
        let limit = self.now + soon;
        let (mut soon, mut late) = (Vec::new(), Vec::new());
        for (id, task) in &self.tasks {
            if id.0 <= limit { soon.push(task) } else { late.push(task) }
        }
        (soon, late)
    }

    /// A part of the cluster is started anew: what it had in mind is gone, and it
    /// looks at everything that it looks after.
    pub fn restart(&mut self, part: Part) {
        let own: Vec<Task> = self.tasks.values().filter(|task| task.part() == part).cloned().collect();
        own.iter().for_each(|task| self.cancel(task));
        match part {
            Part::HelmController => self.helm_controller_starts(),
            Part::SourceController => self.source_controller_starts(),
            Part::ArgoCd => self.argo_starts(),
            Part::Kubernetes | Part::Operators => own.into_iter().for_each(|task| self.schedule(START, task)),
        }
    }

    /// Whether the cluster knows a kind: built in, an engine's, or defined by a
    /// CustomResourceDefinition named `<plural>.<group>` with the kind in its spec.
    pub fn knows(&self, api_version: &str, kind: &str) -> bool {
        let Some((group, _)) = api_version.split_once('/') else { return true };
        if self.script.knows_every_kind {
            return true;
        }
        if matches!(group, "apps" | "batch" | "windlass.dev" | "argoproj.io") || group.ends_with(".fluxcd.io") {
            return true;
        }
        let mut defined = self.store.list("CustomResourceDefinition").map(|(_, definition)| definition).peekable();
        if defined.peek().is_none() {
            // A world without definitions knows every kind.
            return true;
        }
        let names = |definition: &Map<String, Value>| {
            json::text(definition, &["spec", "group"]) == group && json::text(definition, &["spec", "kind"]) == kind
        };
        defined.any(|definition| names(definition))
    }
}
