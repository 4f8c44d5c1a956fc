//! helm-controller: installs and upgrades, and what is told of them.

use serde_json::{Map, Value, json};

use super::release::{Next, Run, STEP, Stage};
use super::{HELM_CONTROLLER, REQUESTED_AT};
use crate::sim::conditions::{self, Condition};
use crate::sim::helm::{self, Identity, Plan, Readiness, Revision};
use crate::sim::json;
use crate::sim::store::{Key, Object, generation};
use crate::sim::strategy;
use crate::sim::world::World;

const FORCE_AT: &str = "reconcile.fluxcd.io/forceAt";
const RESET_AT: &str = "reconcile.fluxcd.io/resetAt";
/// Milliseconds until the first look at what was applied, and between looks.
const FIRST_LOOK: u64 = 200;
const LOOK: u64 = 5000;
/// Milliseconds until a cancelled action is tried again.
const CANCELLED: u64 = 10_000;

/// An action under way, or ended.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Attempt {
    until: u64,
    objects: Vec<Key>,
    outcome: Option<Ended>,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ended {
    Succeeded,
    /// It was refused before anything was applied.
    Refused,
    /// What was applied did not become ready.
    NotReady,
    /// A newer spec cut the wait short.
    Cancelled,
}

impl World {
    /// The release that a HelmRelease last told of.
    pub(super) fn held_release(&self, object: &Object) -> Option<Identity> {
        let storage = json::text(object, &["status", "storageNamespace"]);
        let name = newest(object).map(|newest| json::text(newest, &["name"]))?;
        Some((storage.to_owned(), name.to_owned()))
    }

    pub(super) fn decide_action(&mut self, key: &Key, run: &mut Run, live: &Object) -> Next {
        let Some(wanted) = run.plan.clone() else { return Next::Done(None) };
        self.uninstall_former(key, &wanted, live);
        let asks = |at: &str, handled: &str| {
            let requested = json::text(live, &["metadata", "annotations", REQUESTED_AT]);
            let asked = json::text(live, &["metadata", "annotations", at]);
            !asked.is_empty() && asked == requested && asked != json::text(live, &["status", handled])
        };
        let (forced, reset) = (asks(FORCE_AT, "lastHandledForceAt"), asks(RESET_AT, "lastHandledResetAt"));
        let handled = json::text(live, &["metadata", "annotations", REQUESTED_AT]).to_owned();
        if forced || reset {
            self.write_status(HELM_CONTROLLER, key, |status| {
                if forced {
                    status.insert("lastHandledForceAt".into(), handled.clone().into());
                }
                if reset {
                    status.insert("lastHandledResetAt".into(), handled.into());
                    forget_failures(status);
                }
            });
        }
        let latest = self.helm.latest(&wanted.identity);
        let in_sync = latest.is_some_and(|latest| is_in_sync(latest, &wanted, live));
        if in_sync && !forced {
            self.correct_drift(&wanted, &run.object);
            return self.in_sync(key, run, live);
        }
        if is_given_up(live, &wanted) && !reset && !forced {
            return Next::Step(Stage::Settled, STEP);
        }
        run.action = if latest.is_some() { "upgrade" } else { "install" };
        let timeout =
            Some(json::text(&run.object, &["spec", "timeout"])).filter(|text| !text.is_empty()).unwrap_or("5m0s");
        let message = format!("Running '{}' action with timeout of {timeout}", run.action);
        let (now, observed_generation) = (self.now(), Some(generation(&run.object)));
        self.write_status(HELM_CONTROLLER, key, |status| {
            for (type_, value) in [("Reconciling", "True"), ("Ready", "Unknown")] {
                let condition =
                    Condition { type_, status: value, reason: "Progressing", message: &message, observed_generation };
                conditions::set(status, &condition, now);
            }
        });
        Next::Step(Stage::Attempt, STEP)
    }

    /// Another identity or chart name: the former release is uninstalled first.
    fn uninstall_former(&mut self, key: &Key, wanted: &Plan, live: &Object) {
        let Some(held) = self.held_release(live) else { return };
        let chart = newest(live).map(|newest| json::text(newest, &["chartName"]).to_owned());
        let target = newest(live).map(|newest| json::text(newest, &["namespace"]).to_owned());
        let same_chart = chart.as_ref() == Some(&wanted.chart);
        if held == wanted.identity && same_chart && target.as_ref() == Some(&wanted.namespace) {
            return;
        }
        self.helm.uninstall(&mut self.store, &held, HELM_CONTROLLER);
        self.write_status(HELM_CONTROLLER, key, |status| {
            status.shift_remove("history");
            status.shift_remove("storageNamespace");
        });
    }

    /// What somebody removed comes back, without a new revision.
    fn correct_drift(&mut self, wanted: &Plan, object: &Object) {
        if json::text(object, &["spec", "driftDetection", "mode"]) == "enabled" {
            if strategy::is_ignored(object) {
                self.helm.correct(&mut self.store, &self.script, wanted, HELM_CONTROLLER);
            } else {
                self.helm.apply(&mut self.store, &self.script, wanted, HELM_CONTROLLER);
            }
        }
    }

    /// Nothing to do: what was last told holds for this generation too, and a
    /// failure is over.
    fn in_sync(&mut self, key: &Key, run: &Run, live: &Object) -> Next {
        let Some(wanted) = run.plan.as_ref() else { return Next::Done(None) };
        let (now, observed_generation) = (self.now(), Some(generation(&run.object)));
        let told = conditions::find(live, "Released").cloned().unwrap_or_default();
        let text = |field: &str| json::text(&told, &[field]).to_owned();
        let over = match text("reason").as_str() {
            "InstallFailed" => Some(("InstallSucceeded", "install")),
            "UpgradeFailed" => Some(("UpgradeSucceeded", "upgrade")),
            _ => None,
        };
        let number = self.helm.latest(&wanted.identity).map(|latest| latest.number);
        let (reason, message) = match over {
            Some((reason, action)) => (reason.to_owned(), told_of(action, wanted, number)),
            None => (text("reason"), text("message")),
        };
        self.write_status(HELM_CONTROLLER, key, |status| {
            conditions::remove(status, "Reconciling");
            for type_ in ["Ready", "Released"].into_iter().take(if over.is_some() { 2 } else { 1 }) {
                let condition =
                    Condition { type_, status: "True", reason: &reason, message: &message, observed_generation };
                conditions::set(status, &condition, now);
            }
        });
        self.tell_attempted(key, wanted, &run.object, true);
        self.observed(key, run)
    }

    /// What was last attempted is told even where there is nothing to do. Failures
    /// at anything else are forgotten.
    fn tell_attempted(&mut self, key: &Key, wanted: &Plan, object: &Object, is_done: bool) {
        let fields =
            ["lastAttemptedGeneration", "lastAttemptedRevision", "lastAttemptedConfigDigest", "storageNamespace"];
        let now: [Value; 4] = [
            generation(object).into(),
            wanted.shown.clone().into(),
            wanted.config.clone().into(),
            wanted.identity.0.clone().into(),
        ];
        let (manifest, observed) = (wanted.manifest.clone(), generation(object));
        self.write_status(HELM_CONTROLLER, key, |status| {
            let before = fields.map(|field| status.get(field).cloned().unwrap_or(Value::Null));
            if before[..3] != now[..3] {
                forget_failures(status);
            }
            for (field, value) in fields.into_iter().zip(now) {
                status.insert(field.into(), value);
            }
            if let Some(manifest) = manifest {
                status.insert("lastAttemptedRevisionDigest".into(), manifest.into());
            }
            if is_done {
                status.insert("observedGeneration".into(), observed.into());
            }
        });
    }

    pub(super) fn attempt(&mut self, key: &Key, run: &mut Run) -> Next {
        let Some(wanted) = run.plan.clone() else { return Next::Done(None) };
        self.tell_attempted(key, &wanted, &run.object, false);
        let timeout = json::duration(json::text(&run.object, &["spec", "timeout"])).unwrap_or(300_000);
        let mut attempt = Attempt { until: self.now() + timeout, objects: Vec::new(), outcome: None };
        if self.helm.is_refused(&self.script, &wanted) {
            attempt.outcome = Some(Ended::Refused);
            run.attempt = Some(attempt);
            return Next::Step(Stage::Ended, FIRST_LOOK / 2);
        }
        attempt.objects = self.helm.apply(&mut self.store, &self.script, &wanted, HELM_CONTROLLER);
        if json::truth(&run.object, &["spec", run.action, "disableWait"]) {
            attempt.outcome = Some(Ended::Succeeded);
        }
        let next = if attempt.outcome.is_some() { Stage::Ended } else { Stage::Wait };
        run.attempt = Some(attempt);
        Next::Step(next, FIRST_LOOK)
    }

    pub(super) fn wait(&mut self, key: &Key, run: &mut Run, live: &Object) -> Next {
        let now = self.now();
        let Some(attempt) = &mut run.attempt else { return Next::Done(None) };
        let newer = generation(live) != generation(&run.object);
        let outcome = match helm::readiness(&self.store, &attempt.objects) {
            Readiness::Ready => Some(Ended::Succeeded),
            Readiness::Failed => Some(Ended::NotReady),
            Readiness::Waiting if newer && self.flux.cancel_gate => Some(Ended::Cancelled),
            Readiness::Waiting if now >= attempt.until => Some(Ended::NotReady),
            Readiness::Waiting => None,
        };
        attempt.outcome = outcome;
        match outcome {
            Some(_) => self.ended(key, run, live),
            None if self.flux.cancel_gate => Next::Step(Stage::Wait, 20.min(attempt.until - now).max(1)),
            None => Next::Step(Stage::Wait, LOOK.min(attempt.until - now).max(1)),
        }
    }

    /// Ready and Released are told first. Their observedGeneration is that of
    /// the object as it is now, whatever was worked on.
    pub(super) fn ended(&mut self, key: &Key, run: &mut Run, live: &Object) -> Next {
        let (Some(attempt), Some(wanted)) = (run.attempt.clone(), run.plan.clone()) else { return Next::Done(None) };
        let now = self.now();
        let succeeded = attempt.outcome == Some(Ended::Succeeded);
        let refused = attempt.outcome == Some(Ended::Refused);
        let verb = if run.action == "install" { "Install" } else { "Upgrade" };
        let (value, reason) = if succeeded { ("True", "Succeeded") } else { ("False", "Failed") };
        let reason = format!("{verb}{reason}");
        let number = self.helm.latest(&wanted.identity).map_or(1, |latest| latest.number + 1);
        let message = told_of(run.action, &wanted, succeeded.then_some(number));
        let observed_generation = Some(generation(live));
        let retries = retries(&run.object);
        self.write_status(HELM_CONTROLLER, key, |status| {
            for type_ in ["Ready", "Released"] {
                // Only what is told anew carries the generation of now.
                let told = conditions::find(live, type_).map(|told| json::text(told, &["message"]));
                let condition =
                    Condition { type_, status: value, reason: &reason, message: &message, observed_generation };
                if type_ == "Ready" || told != Some(message.as_str()) {
                    conditions::set(status, &condition, now);
                }
            }
            if refused && retries {
                retrying(status, generation(live), now);
            }
        });
        if !refused {
            let status = if succeeded { "deployed" } else { "failed" };
            self.helm.record(&wanted, action_name(run.action), status, attempt.objects, now);
        }
        Next::Step(Stage::Recorded, STEP)
    }

    /// Then the history, the inventory and the failures.
    pub(super) fn recorded(&mut self, key: &Key, run: &Run) -> Next {
        let (Some(attempt), Some(wanted)) = (&run.attempt, &run.plan) else { return Next::Done(None) };
        let revisions = self.helm.releases.get(&wanted.identity).cloned().unwrap_or_default();
        let refused = attempt.outcome == Some(Ended::Refused);
        let failed = attempt.outcome != Some(Ended::Succeeded);
        let (action, observed) = (run.action, generation(&run.object));
        let at_once = refused && retries(&run.object);
        self.write_status(HELM_CONTROLLER, key, |status| {
            if failed {
                count(status, "failures");
                if !refused {
                    count(status, if action == "install" { "installFailures" } else { "upgradeFailures" });
                }
            } else {
                forget_failures(status);
            }
            if !refused {
                status.insert("history".into(), history(&revisions));
                if let Some(latest) = revisions.last() {
                    status.insert("inventory".into(), inventory(latest));
                }
            }
            status.insert("lastAttemptedReleaseAction".into(), action.into());
            if at_once {
                status.insert("observedGeneration".into(), observed.into());
            }
        });
        if at_once {
            return self.observed(key, run);
        }
        Next::Step(Stage::Settled, STEP)
    }

    /// Then Reconciling goes, or says that it is tried again, or Stalled comes.
    pub(super) fn settled(&mut self, key: &Key, run: &Run, live: &Object) -> Next {
        let now = self.now();
        let outcome = run.attempt.as_ref().and_then(|attempt| attempt.outcome);
        let observed = generation(live);
        let retries = retries(&run.object);
        self.write_status(HELM_CONTROLLER, key, |status| match outcome {
            Some(Ended::Succeeded) => conditions::remove(status, "Reconciling"),
            Some(_) if retries => {
                retrying(status, observed, now);
                if outcome == Some(Ended::Cancelled) {
                    let ready = Condition {
                        type_: "Ready",
                        status: "False",
                        reason: "HealthCheckCanceled",
                        message: "the health check was cancelled by a new revision",
                        observed_generation: Some(observed),
                    };
                    conditions::set(status, &ready, now);
                }
            }
            Some(_) | None => {
                conditions::remove(status, "Reconciling");
                let stalled = Condition {
                    type_: "Stalled",
                    status: "True",
                    reason: "RetriesExceeded",
                    message: "failed, and no retries are left",
                    observed_generation: Some(observed),
                };
                conditions::set(status, &stalled, now);
            }
        });
        if outcome == Some(Ended::Cancelled) {
            self.handle_request(key, &run.object);
            return Next::Done(Some(CANCELLED));
        }
        Next::Step(Stage::Observed, STEP)
    }

    /// Last the generation that was worked on.
    pub(super) fn observed(&mut self, key: &Key, run: &Run) -> Next {
        let observed = generation(&run.object);
        self.write_status(HELM_CONTROLLER, key, |status| {
            status.insert("observedGeneration".into(), observed.into());
        });
        self.handle_request(key, &run.object);
        let is_stalled = self.store.get(key).is_some_and(|live| conditions::is_true(live, "Stalled"));
        let failed = run.attempt.as_ref().is_some_and(|attempt| attempt.outcome != Some(Ended::Succeeded));
        let strategy = if run.action.is_empty() { "upgrade" } else { run.action };
        let spec = |path: &[&str]| json::duration(json::text(&run.object, path)).filter(|time| *time > 0);
        if is_stalled {
            // What has given up is not looked at again until it changes.
            return Next::Done(None);
        }
        if failed && retries(&run.object) {
            return Next::Done(Some(spec(&["spec", strategy, "strategy", "retryInterval"]).unwrap_or(300_000)));
        }
        Next::Done(Some(spec(&["spec", "interval"]).unwrap_or(600_000)))
    }
}

fn newest(object: &Object) -> Option<&Map<String, Value>> {
    json::at(object, &["status", "history"])?.get(0)?.as_object()
}

/// The newest revision runs, from this chart and these values.
fn is_in_sync(latest: &Revision, wanted: &Plan, live: &Object) -> bool {
    // A release that another HelmRelease installed is taken over by an upgrade.
    let own = newest(live).is_some_and(|newest| json::integer(newest, &["version"]) == Some(latest.number.into()));
    own && latest.status == "deployed"
        && latest.chart == wanted.chart
        && latest.version == wanted.shown
        && latest.config == wanted.config
        && latest.rendered_with == wanted.rendered_with
}

/// No retries are left for what was last attempted.
fn is_given_up(live: &Object, wanted: &Plan) -> bool {
    let status = |field| json::at(live, &["status", field]);
    !retries(live)
        && status("failures").and_then(Value::as_i64).unwrap_or(0) > 0
        && status("lastAttemptedGeneration").and_then(Value::as_i64) == Some(generation(live))
        && status("lastAttemptedConfigDigest").and_then(Value::as_str) == Some(wanted.config.as_str())
}

/// Whether failed actions are tried again without end.
fn retries(object: &Object) -> bool {
    json::text(object, &["spec", "upgrade", "strategy", "name"]) == "RetryOnFailure"
}

/// Messages of success name the revision, those of failure do not.
fn told_of(action: &str, wanted: &Plan, number: Option<u32>) -> String {
    let Plan { namespace, chart, shown, identity: (_, release), .. } = wanted;
    match number {
        Some(number) => {
            format!("Helm {action} succeeded for release {namespace}/{release}.v{number} with chart {chart}@{shown}")
        }
        None => format!("Helm {action} failed for release {namespace}/{release} with chart {chart}@{shown}"),
    }
}

fn action_name(action: &str) -> &'static str {
    if action == "install" { "install" } else { "upgrade" }
}

fn retrying(status: &mut Map<String, Value>, observed: i64, now: u64) {
    let condition = Condition {
        type_: "Reconciling",
        status: "True",
        reason: "ProgressingWithRetry",
        message: "retrying",
        observed_generation: Some(observed),
    };
    conditions::set(status, &condition, now);
}

fn forget_failures(status: &mut Map<String, Value>) {
    for field in ["failures", "installFailures", "upgradeFailures"] {
        status.shift_remove(field);
    }
}

fn count(status: &mut Map<String, Value>, field: &str) {
    let before = status.get(field).and_then(Value::as_i64).unwrap_or(0);
    status.insert(field.to_owned(), (before + 1).into());
}

/// Newest first; only the newest keeps its action.
fn history(revisions: &[Revision]) -> Value {
    let newest = revisions.last().map_or(0, |latest| latest.number);
    let entries = revisions.iter().rev().take(5).map(|revision| {
        let mut entry = json!({
            "chartName": revision.chart, "chartVersion": revision.version, "configDigest": revision.config,
            "name": revision.release, "namespace": revision.namespace, "status": revision.status,
            "version": revision.number, "lastDeployed": json::time(revision.deployed_at),
        });
        if let (Value::Object(entry), true) = (&mut entry, revision.number == newest || revision.status == "failed") {
            entry.insert("action".into(), revision.action.into());
        }
        if let (Value::Object(entry), Some(manifest)) = (&mut entry, &revision.manifest) {
            entry.insert("ociDigest".into(), manifest.clone().into());
        }
        entry
    });
    entries.collect()
}

fn inventory(latest: &Revision) -> Value {
    let entries: Vec<Value> = latest
        .objects
        .iter()
        .map(|key| {
            let (group, version) = key.api_version.split_once('/').unwrap_or(("", &key.api_version));
            json!({"id": format!("{}_{}_{group}_{}", key.namespace, key.name, key.kind), "v": version})
        })
        .collect();
    json!({"entries": entries})
}
