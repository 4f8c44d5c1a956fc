//! A HelmRelease (`helm.toolkit.fluxcd.io/v2`).
//!
//! helm-controller writes its status in several steps: Ready=True comes 10 to
//! 20 ms before `history`, that before Reconciling goes, that before
//! `observedGeneration` moves, and a condition's own `observedGeneration` may be
//! ahead of the action it describes. Only all of it together is a proof (seen on
//! helm-controller 1.6.3).

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::conditions::{Condition, find};
use super::{bare_version, integer, name, quote, release, written};
use crate::fields::field;
use crate::package::duration::GoDuration;
use crate::ready::owned;
use crate::ready::release::{Failure, Release, ReleaseState, Trouble, Wanted, text};

/// Why a HelmRelease is not ready while its chart is not there.
const NO_SOURCE: &str = "SourceNotReady";

/// What a HelmRelease says about a release.
pub fn flux(live: Option<&Map<String, Value>>, wanted: &Wanted<'_>) -> Release {
    match written(live, wanted) {
        Ok(live) => match inexact(wanted.manifest, live) {
            None => HelmRelease::of(live).state(wanted),
            Some(field) => {
                let message = format!("{}: spec.{field} is not exactly as it was written", name(live));
                release(ReleaseState::Outdated, message)
            }
        },
        Err(release) => release,
    }
}

/// Fields that say what is installed. An apply leaves in them what somebody added.
const RENDERED_FROM: [&str; 3] = ["values", "valuesFrom", "postRenderers"];

/// The first of these fields in which the live object has more than the wanted one,
/// or lacks a null of it: a null takes a chart's default away.
pub(super) fn inexact(wanted: &Map<String, Value>, live: &Map<String, Value>) -> Option<&'static str> {
    let [wanted, live] = [wanted, live].map(|object| field(object, "spec").and_then(Value::as_object));
    let same = |name: &&str| {
        let [wanted, live] = [wanted, live].map(|spec| spec.and_then(|spec| field(spec, name)));
        owned::is_exactly(wanted, live)
    };
    RENDERED_FROM.into_iter().find(|name| !same(name))
}

/// What somebody added to these fields, as a merge patch that takes it away.
pub fn more_values(wanted: &Map<String, Value>, live: &Map<String, Value>) -> Option<Value> {
    let spec = |object: &Map<String, Value>| -> Map<String, Value> {
        let spec = object.get("spec").and_then(Value::as_object).into_iter().flatten();
        let fields = spec.filter(|(name, _)| RENDERED_FROM.contains(&name.as_str()));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let more = surplus(&spec(wanted), &spec(live));
    (!more.is_empty()).then(|| serde_json::json!({"spec": more}))
}

fn surplus(wanted: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let more = live.iter().filter_map(|(key, live)| match (wanted.get(key), live) {
        (None, _) => Some((key.clone(), Value::Null)),
        (Some(Value::Object(wanted)), Value::Object(live)) => {
            let more = surplus(wanted, live);
            (!more.is_empty()).then(|| (key.clone(), more.into()))
        }
        (Some(_), _) => None,
    });
    more.collect()
}

/// See [`super::trouble_now`].
pub(super) fn trouble_now(live: &Map<String, Value>) -> Option<String> {
    let release = HelmRelease::of(live);
    if release.suspended {
        return Some(format!("{} is suspended", name(live)));
    }
    let failed = release.ready.is_some_and(|ready| ready.is_false() && release.is_current(&ready));
    (failed || release.has_given_up()).then(|| release.describe())
}

/// The fields that are looked at.
struct HelmRelease<'a> {
    object: &'a Map<String, Value>,
    generation: i64,
    observed_generation: Option<i64>,
    attempted_generation: Option<i64>,
    suspended: bool,
    ready: Option<Condition<'a>>,
    reconciling: Option<Condition<'a>>,
    stalled: Option<Condition<'a>>,
    failures: u32,
}

impl<'a> HelmRelease<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        let suspended = object.get("spec").and_then(|spec| spec.get("suspend")).and_then(Value::as_bool);
        Self {
            object,
            generation: integer(object, &["metadata", "generation"]).unwrap_or(0),
            observed_generation: integer(object, &["status", "observedGeneration"]),
            attempted_generation: integer(object, &["status", "lastAttemptedGeneration"]),
            suspended: suspended.unwrap_or(false),
            ready: find(object, "Ready"),
            reconciling: find(object, "Reconciling"),
            stalled: find(object, "Stalled"),
            failures: integer(object, &["status", "failures"]).and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
        }
    }

    fn state(&self, wanted: &Wanted<'_>) -> Release {
        if self.suspended {
            return release(ReleaseState::Suspended, format!("{} is suspended", name(self.object)));
        }
        if !self.has_begun() {
            return release(ReleaseState::Queued, self.queued());
        }
        let attempts = self.attempts();
        let (state, message) = if self.has_given_up() {
            (ReleaseState::Failed(Failure::GivenUp), self.describe())
        } else if self.has_failed(attempts) {
            (ReleaseState::Failed(Failure::Attempt), self.describe())
        } else {
            match self.unproven(wanted) {
                Some(message) => (ReleaseState::Progressing, message),
                None => (ReleaseState::Ready, format!("{} is ready", name(self.object))),
            }
        };
        let is_looked_at_again = state == ReleaseState::Progressing && self.is_looked_at_again(wanted);
        let verdict_is_due = state == ReleaseState::Progressing && self.is_acting();
        Release { state, attempts, trouble: self.trouble(), is_looked_at_again, verdict_is_due, message }
    }

    /// Whether an action runs that ends by its own timeout at the latest.
    fn is_acting(&self) -> bool {
        self.ready.is_some_and(|ready| !ready.is_true() && !ready.is_false())
            && self.reconciling.filter(Condition::is_true).is_some_and(|busy| end_of_action(&busy).is_some())
    }

    /// Whether helm-controller has taken the present spec up. A suspended
    /// object's `observedGeneration` moves as well, but that was asked before.
    fn has_begun(&self) -> bool {
        let conditions = [self.reconciling, self.ready].into_iter().flatten();
        self.is_observed()
            || conditions.filter_map(|found| found.observed_generation).any(|seen| seen == self.generation)
    }

    fn is_observed(&self) -> bool {
        self.observed_generation == Some(self.generation)
    }

    /// Failed attempts at the present spec. The counters are those of an earlier
    /// spec until the first attempt at this one.
    fn attempts(&self) -> u32 {
        if self.is_observed() && self.attempted_generation == Some(self.generation) { self.failures } else { 0 }
    }

    fn has_given_up(&self) -> bool {
        self.is_observed() && self.stalled.is_some_and(|stalled| stalled.is_true() && self.is_current(&stalled))
    }

    /// An attempt has failed and the next one has not begun.
    fn has_failed(&self, attempts: u32) -> bool {
        let failed = self.ready.is_some_and(|ready| {
            ready.is_false() && matches!(ready.reason, "InstallFailed" | "UpgradeFailed") && self.is_current(&ready)
        });
        let retrying = self.reconciling.is_some_and(|found| found.is_true() && found.reason == "ProgressingWithRetry");
        attempts >= 1 && failed && retrying
    }

    fn is_current(&self, condition: &Condition<'_>) -> bool {
        condition.observed_generation.is_none_or(|seen| seen == self.generation)
    }

    /// What is still missing from the proof that the release runs the present
    /// spec and is ready.
    fn unproven(&self, wanted: &Wanted<'_>) -> Option<String> {
        let ready = self.ready.is_some_and(|ready| ready.is_true());
        let busy = self.reconciling.is_some_and(|found| found.is_true());
        let stalled = self.stalled.is_some_and(|found| found.is_true());
        if !ready || busy || stalled {
            return Some(self.describe());
        }
        if !self.is_observed() {
            return Some(format!("{}: observedGeneration is not {} yet", name(self.object), self.generation));
        }
        self.unproven_history(wanted).map(|missing| format!("{}: {missing}", name(self.object)))
    }

    /// helm-controller says at the start of every look that it is reconciling; Ready
    /// stays as it was until it really does something.
    fn is_looked_at_again(&self, wanted: &Wanted<'_>) -> bool {
        self.ready.is_some_and(|ready| ready.is_true() && self.is_current(&ready))
            && self.is_observed()
            && self.reconciling.is_some_and(|found| found.is_true())
            && self.unproven_history(wanted).is_none()
    }

    /// The newest entry of `history` is what actually runs.
    fn unproven_history(&self, wanted: &Wanted<'_>) -> Option<String> {
        let newest = self.object.get("status").and_then(|status| status.get("history")).and_then(|list| list.get(0));
        let Some(newest) = newest.and_then(Value::as_object) else {
            return Some("no release is recorded yet".to_owned());
        };
        let field = |key| text(newest, &[key]).unwrap_or("");
        let differs = |what: &str, found: &str, wanted: &str| {
            (found != wanted).then(|| format!("the release that runs has {what} {}, not {wanted}", quote(found)))
        };
        let status = field("status");
        if status != "deployed" {
            return Some(format!("the release that runs is {}", quote(status)));
        }
        if !matches!(field("action"), "" | "install" | "upgrade") {
            return Some(format!("the last action was {}", quote(field("action"))));
        }
        let attempted = text(self.object, &["status", "lastAttemptedConfigDigest"]).unwrap_or("");
        differs("name", field("name"), &wanted.claim.name)
            .or_else(|| differs("namespace", field("namespace"), &wanted.claim.namespace))
            .or_else(|| {
                stated(wanted.chart_version).and_then(|version| chart_version_differs(field("chartVersion"), version))
            })
            .or_else(|| wanted.chart_digest.and_then(|digest| differs("chart digest", field("ociDigest"), digest)))
            .or_else(|| {
                stated(attempted)
                    .filter(|attempted| field("configDigest") != *attempted)
                    .map(|_| "the release that runs has other values".to_owned())
            })
    }

    fn trouble(&self) -> Option<Trouble> {
        let lacking = |ready: &Condition<'_>| ready.is_false() && ready.reason == NO_SOURCE && self.is_current(ready);
        self.ready.filter(lacking).map(|_| Trouble::NoSource)
    }

    fn queued(&self) -> String {
        let busy = self.reconciling.filter(|found| found.is_true() && !found.message.is_empty());
        match busy {
            Some(busy) => {
                let until = end_of_action(&busy).map(|end| format!(", which ends at {end}")).unwrap_or_default();
                format!("{}: Flux finishes what it began before: {}{until}", name(self.object), quote(busy.message))
            }
            None => format!("{}: Flux has not begun yet", name(self.object)),
        }
    }

    /// The condition that says most.
    fn describe(&self) -> String {
        let failed = self.ready.filter(|ready| ready.is_false() && self.is_current(ready));
        let busy = self.reconciling.filter(|found| found.is_true());
        let stalled = self.stalled.filter(|found| found.is_true());
        let told = match (stalled, failed, busy, self.ready) {
            (Some(stalled), None, _, _) => stalled.describe("Stalled"),
            (_, Some(failed), _, _) if failed.reason == NO_SOURCE => {
                format!("waits for its chart: {}", quote(failed.message))
            }
            (_, Some(failed), _, _) => failed.describe("Ready"),
            (None, None, Some(busy), _) => quote(busy.message),
            (None, None, None, Some(ready)) => ready.describe("Ready"),
            (None, None, None, None) => "has no conditions".to_owned(),
        };
        format!("{}: {told}", name(self.object))
    }
}

/// When the timeout of the action that is under way has passed: helm-controller
/// says how long it is and, since the condition changes with the action, from when.
fn end_of_action(busy: &Condition<'_>) -> Option<Timestamp> {
    let (_, timeout) = busy.message.rsplit_once("with timeout of ")?;
    let began: Timestamp = busy.last_transition_time.parse().ok()?;
    began.checked_add(GoDuration::parse(timeout.trim()).ok()?.get()).ok()
}

fn stated(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// helm-controller appends the digest of an OCI artifact as build metadata, and
/// a leading `v` does not distinguish versions.
fn chart_version_differs(found: &str, wanted: &str) -> Option<String> {
    (bare_version(found) != bare_version(wanted))
        .then(|| format!("the release that runs has chart version {}, not {wanted}", quote(found)))
}
