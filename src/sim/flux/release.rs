//! helm-controller: a queue, workers, and the steps a worker takes with one
//! HelmRelease. Every step is one write, in the order that was recorded.

use serde_json::{Map, Value};

use super::{HELM_CONTROLLER, REQUESTED_AT, is_source_ready, plan};
use crate::sim::conditions::{self, Condition};
use crate::sim::helm::Plan;
use crate::sim::json;
use crate::sim::store::{Expected, Key, Object, finalizers, generation, is_deleting};
use crate::sim::world::{Task, World};

const FINALIZER: &str = "finalizers.fluxcd.io";
/// Milliseconds between two writes of a worker.
pub(super) const STEP: u64 = 8;
/// Milliseconds after which a source that is not ready is looked at again.
const REQUEUE_DEPENDENCY: u64 = 30_000;

/// What a worker is at.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Run {
    pub stage: Stage,
    /// The HelmRelease as it was when the worker began: the spec it works with.
    pub object: Object,
    pub plan: Option<Plan>,
    pub action: &'static str,
    pub attempt: Option<super::action::Attempt>,
}

/// The next step of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim) enum Stage {
    Begin,
    Chart,
    Source,
    Decide,
    Attempt,
    Wait,
    Ended,
    Recorded,
    Settled,
    Observed,
    Uninstalled,
}

/// What follows a step.
pub(super) enum Next {
    /// The next step, after some milliseconds.
    Step(Stage, u64),
    /// The worker is free; the HelmRelease is looked at again after that time.
    Done(Option<u64>),
}

impl World {
    /// There is one entry for each object: what was to come later comes now.
    pub(in crate::sim) fn helm_enqueue(&mut self, key: &Key) {
        self.cancel(&Task::HelmQueue(key.clone()));
        if self.flux.runs.contains_key(key) {
            self.flux.dirty.insert(key.clone());
        } else if !self.flux.queue.contains(key) {
            self.flux.queue.push_back(key.clone());
        }
        self.helm_dispatch();
    }

    fn helm_dispatch(&mut self) {
        while self.flux.runs.len() < self.flux.workers {
            let Some(key) = self.flux.queue.pop_front() else { return };
            let run = Run { stage: Stage::Begin, object: Object::default(), plan: None, action: "", attempt: None };
            self.flux.runs.insert(key.clone(), run);
            self.schedule(STEP, Task::HelmStep(key));
        }
    }

    pub(in crate::sim) fn helm_step(&mut self, key: &Key) {
        let Some(mut run) = self.flux.runs.remove(key) else { return };
        let next = match (run.stage, self.store.get(key).cloned()) {
            (_, None) => Next::Done(None),
            (Stage::Begin, Some(live)) => self.begin(key, &mut run, live),
            (Stage::Chart, Some(_)) => self.own_chart(key, &run),
            (Stage::Source, Some(_)) => self.source(key, &mut run),
            (Stage::Decide, Some(live)) => self.decide_action(key, &mut run, &live),
            (Stage::Attempt, Some(_)) => self.attempt(key, &mut run),
            (Stage::Wait, Some(live)) => self.wait(key, &mut run, &live),
            (Stage::Ended, Some(live)) => self.ended(key, &mut run, &live),
            (Stage::Recorded, Some(_)) => self.recorded(key, &run),
            (Stage::Settled, Some(live)) => self.settled(key, &run, &live),
            (Stage::Observed, Some(_)) => self.observed(key, &run),
            (Stage::Uninstalled, Some(_)) => self.drop_finalizer(key),
        };
        match next {
            Next::Step(stage, delay) => {
                run.stage = stage;
                self.flux.runs.insert(key.clone(), run);
                self.schedule(delay, Task::HelmStep(key.clone()));
            }
            Next::Done(again) => {
                if self.flux.dirty.remove(key) {
                    self.flux.queue.push_back(key.clone());
                } else if let Some(again) = again {
                    self.schedule(again, Task::HelmQueue(key.clone()));
                }
                self.helm_dispatch();
            }
        }
    }

    fn begin(&mut self, key: &Key, run: &mut Run, live: Object) -> Next {
        run.object = live;
        let object = run.object.clone();
        if is_deleting(&object) {
            return self.uninstall(key, run);
        }
        if !finalizers(&object).contains(&FINALIZER) {
            let add = |object: &mut Map<String, Value>| {
                let mut all: Vec<Value> = finalizers(object).into_iter().map(Value::from).collect();
                all.push(FINALIZER.into());
                json::set(object, &["metadata", "finalizers"], all.into());
            };
            let _ = self.store.edit(HELM_CONTROLLER, key, &Expected::default(), add);
            self.flux.dirty.insert(key.clone());
            return Next::Done(None);
        }
        if json::truth(&object, &["spec", "suspend"]) {
            // The trap: what was observed of a suspended object is only that it is suspended.
            let observed = generation(&object);
            self.write_status(HELM_CONTROLLER, key, |status| {
                status.insert("observedGeneration".into(), observed.into());
            });
            return Next::Done(None);
        }
        self.reconciling(key, generation(&object), "Progressing", "Fulfilling prerequisites");
        let has_own_chart = json::at(&object, &["spec", "chart"]).is_some();
        Next::Step(if has_own_chart { Stage::Chart } else { Stage::Source }, STEP)
    }

    fn own_chart(&mut self, key: &Key, run: &Run) -> Next {
        if let Some(chart) = plan::own_chart(key, &run.object) {
            let name = format!("{}/{}", key.namespace, json::text(&chart, &["metadata", "name"]));
            let _ = self.store.apply(HELM_CONTROLLER, &chart, &Expected::default());
            self.write_status(HELM_CONTROLLER, key, |status| {
                status.insert("helmChart".into(), name.into());
            });
        }
        Next::Step(Stage::Source, STEP)
    }

    fn source(&mut self, key: &Key, run: &mut Run) -> Next {
        let chart = plan::chart_key(key, &run.object);
        let source = chart.as_ref().and_then(|chart| self.store.get(chart));
        let ready = source.is_some_and(|source| is_source_ready(source));
        run.plan = plan::plan(&self.store, &self.script, key, &run.object).filter(|_| ready);
        if run.plan.is_some() {
            return Next::Step(Stage::Decide, STEP);
        }
        let observed = generation(&run.object);
        let named =
            chart.map_or_else(String::new, |chart| format!("{} '{}/{}'", chart.kind, chart.namespace, chart.name));
        let message = format!("{named} is not ready: latest generation of object has not been reconciled");
        self.ready(key, "False", "SourceNotReady", &message, observed);
        self.handle_request(key, &run.object);
        Next::Done(Some(REQUEUE_DEPENDENCY))
    }

    pub(super) fn reconciling(&mut self, key: &Key, observed: i64, reason: &str, message: &str) {
        let now = self.now();
        let observed_generation = Some(observed);
        self.write_status(HELM_CONTROLLER, key, |status| {
            let condition = Condition { type_: "Reconciling", status: "True", reason, message, observed_generation };
            conditions::remove(status, "Stalled");
            conditions::set(status, &condition, now);
        });
    }

    pub(super) fn ready(&mut self, key: &Key, value: &str, reason: &str, message: &str, observed: i64) {
        let now = self.now();
        let observed_generation = Some(observed);
        self.write_status(HELM_CONTROLLER, key, |status| {
            let condition = Condition { type_: "Ready", status: value, reason, message, observed_generation };
            conditions::set(status, &condition, now);
        });
    }

    /// A request that was there when the worker began is answered, however it ended.
    pub(super) fn handle_request(&mut self, key: &Key, object: &Object) {
        let requested = json::text(object, &["metadata", "annotations", REQUESTED_AT]).to_owned();
        if !requested.is_empty() {
            self.write_status(HELM_CONTROLLER, key, |status| {
                status.insert("lastHandledReconcileAt".into(), requested.into());
            });
        }
    }

    /// The end of a HelmRelease: suspended, or without its account, it goes and
    /// leaves everything as it is.
    fn uninstall(&mut self, key: &Key, run: &mut Run) -> Next {
        let object = run.object.clone();
        let account = json::text(&object, &["spec", "serviceAccountName"]);
        let has_account =
            account.is_empty() || self.store.get(&Key::new("v1", "ServiceAccount", &key.namespace, account)).is_some();
        if json::truth(&object, &["spec", "suspend"]) || !has_account {
            return self.drop_finalizer(key);
        }
        let observed = generation(&object);
        let identity = self.held_release(&object).unwrap_or_else(|| plan::identity(key, &object));
        if self.script.stuck_uninstalls.contains(&identity.1) {
            self.ready(key, "False", "UninstallFailed", "uninstallation failed", observed);
            return Next::Done(Some(30_000));
        }
        self.helm.uninstall(&mut self.store, &identity, HELM_CONTROLLER);
        let now = self.now();
        self.write_status(HELM_CONTROLLER, key, |status| {
            for type_ in ["Ready", "Released"] {
                let condition = Condition {
                    type_,
                    status: "False",
                    reason: "UninstallSucceeded",
                    message: "Helm uninstall succeeded",
                    observed_generation: Some(observed),
                };
                conditions::set(status, &condition, now);
            }
        });
        Next::Step(Stage::Uninstalled, STEP)
    }

    fn drop_finalizer(&mut self, key: &Key) -> Next {
        let drop = |object: &mut Map<String, Value>| {
            let kept: Vec<Value> =
                finalizers(object).into_iter().filter(|finalizer| *finalizer != FINALIZER).map(Value::from).collect();
            json::set(object, &["metadata", "finalizers"], kept.into());
        };
        let _ = self.store.edit(HELM_CONTROLLER, key, &Expected::default(), drop);
        Next::Done(None)
    }
}
