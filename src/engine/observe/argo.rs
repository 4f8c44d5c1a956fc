//! An Application (`argoproj.io/v1alpha1`).
//!
//! Argo CD's controllers write `operationState`, `sync` and `health` one by one,
//! with timestamps of one second, and the object has no generation that tells
//! a spec from a status. What proves that *this* spec has been acted on is an
//! operation of our own, known by its token, and a comparison that began after
//! it: a refresh asked for after the operation was seen finished, and seen done.

mod operation;
mod spec;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::{name, quote, release, written};
use crate::api::ComponentRecord;
use crate::api::wellknown::ARGO_REFRESH;
use crate::ready::release::{Failure, Release, ReleaseState, Trouble, Wanted, text};
use operation::{Operations, Phase};

/// Name of the entry of an operation's `info` that carries our token.
pub const OPERATION_TOKEN: &str = "windlass.dev/token";
/// So many objects that are OutOfSync are named.
const MOST_NAMED: usize = 3;
/// How a ComparisonError begins where the chart was rendered, and the API server refused
/// what would be applied.
const NOT_COMPARED: &str = "Failed to compare desired state to live state";
/// Argo CD leaves an Application with this annotation alone (alpha).
const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// What was seen of the operation that was asked for with a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Token of the operation last asked for.
    pub token: Option<String>,
    /// It was seen Succeeded, whole and for the wanted source.
    pub succeeded: bool,
    /// It was seen failed, and is counted in `attempts`.
    pub failed: bool,
    /// uid of the Application on which it was seen.
    pub uid: Option<String>,
    /// After its success a refresh was seen asked for.
    pub refresh_seen: bool,
    /// Operations of ours at the wanted spec that failed.
    pub attempts: u32,
    /// The release was taken over as it runs: nothing was written that an
    /// operation would have to bring, and the comparison alone is asked for.
    pub taken_over: bool,
    /// The release is the run of a hook: Argo CD makes its objects again with every
    /// operation, so there is to be only one.
    pub once: bool,
    /// Health is not asked for: that everything is applied is enough.
    pub whatever_health: bool,
}

impl Proof {
    /// What a record says.
    pub fn of(record: &ComponentRecord) -> Self {
        Self {
            token: record.token.clone(),
            succeeded: record.token_succeeded,
            failed: record.token_failed,
            uid: record.token_uid.clone(),
            refresh_seen: record.refresh_seen,
            attempts: record.attempts,
            taken_over: false,
            once: false,
            whatever_health: false,
        }
    }

    /// Of an operation that is about to be asked for; counting goes on.
    #[must_use]
    pub fn asked(self, token: String) -> Self {
        Self { token: Some(token), attempts: self.attempts, ..Self::default() }
    }

    /// Puts it into a record.
    pub fn record(self, record: &mut ComponentRecord) {
        record.token = self.token;
        record.token_succeeded = self.succeeded;
        record.token_failed = self.failed;
        record.token_uid = self.uid;
        record.refresh_seen = self.refresh_seen;
        record.attempts = self.attempts;
    }
}

/// What Argo CD has to be asked for, beyond the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// An operation with a new token.
    Operation,
    /// The end of the running operation: it works on another spec and would
    /// hold the wanted one up for as long as it likes.
    Termination,
    /// A refresh: the comparison that is shown may be older than the operation.
    Refresh,
}

/// What one look at an Application says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgoRelease {
    /// Where the release stands.
    pub release: Release,
    /// The proof so far, to be recorded.
    pub proof: Proof,
    /// What is to be asked for now. After a failure it is up to the caller when.
    pub need: Option<Need>,
}

/// What an Application says about a release.
pub fn argo(live: Option<&Map<String, Value>>, wanted: &Wanted<'_>, proof: &Proof) -> ArgoRelease {
    let application = match written(live, wanted) {
        Ok(live) => Application::of(live),
        Err(release) => return ArgoRelease { release, proof: proof.clone(), need: None },
    };
    if !has_exact_source(wanted.manifest, application.object) {
        let message = format!("{}: spec.source has more than was written", name(application.object));
        let release = release(ReleaseState::Outdated, message);
        return ArgoRelease { release, proof: proof.clone(), need: None };
    }
    if application.annotation(SKIP_RECONCILE).is_some_and(is_true) {
        let message = format!("{} has annotation {SKIP_RECONCILE}", name(application.object));
        let release = release(ReleaseState::Suspended, message);
        return ArgoRelease { release, proof: proof.clone(), need: None };
    }
    let proof = application.follow(proof);
    let answer = application.state(&proof);
    let (state, need, message) = if proof.once { application.at_most_once(&proof, answer) } else { answer };
    // Whatever Argo CD tries meanwhile, that is what has to be mended.
    let message = application.comparison_error().unwrap_or(message);
    let message = format!("{}: {message}", name(application.object));
    let release = Release {
        is_looked_at_again: application.is_looked_at_again(&state, &proof),
        state,
        attempts: proof.attempts,
        trouble: application.trouble(&proof),
        verdict_is_due: false,
        message,
    };
    ArgoRelease { release, proof, need }
}

/// What Argo CD reads as true: `strconv.ParseBool`.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Whether a live Application has the source of the wanted one and nothing beside:
/// a value that somebody added is installed as well.
///
/// What is done with CRDs does not count: a rollback leaves them alone, and says so.
pub(super) fn has_exact_source(wanted: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let source = |object: &Map<String, Value>| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(helm) = spec.pointer_mut("/source/helm").and_then(Value::as_object_mut) {
            helm.remove("skipCrds");
        }
        spec
    };
    spec::same_sources(&source(wanted), &source(live))
}

/// Whether an operation is under way that goes on until it ends by itself.
/// Argo CD looks at a deletion only after that (seen on 3.5.7).
pub fn has_running_operation(application: &Map<String, Value>) -> bool {
    let operations = Operations::of(application);
    operations.has_pending() && operations.is_in_progress() && !operations.is_terminating()
}

/// See [`super::trouble_now`].
pub(super) fn trouble_now(live: &Map<String, Value>) -> Option<String> {
    let application = Application::of(live);
    let health = text(live, &["status", "health", "status"]).filter(|health| matches!(*health, "Degraded" | "Missing"));
    let health = health.map(|health| format!("health is {health}"));
    let differs = || {
        let is_busy = application.operations.has_pending() || application.operations.is_in_progress();
        out_of_sync(live).filter(|_| !is_busy)
    };
    let trouble = application.comparison_error().or(health).or_else(differs)?;
    Some(format!("{}: {trouble}", name(live)))
}

/// What an Application says of what is OutOfSync, and which objects that are; `None` if
/// it is not.
pub fn out_of_sync(application: &Map<String, Value>) -> Option<String> {
    let is_out = text(application, &["status", "sync", "status"]) == Some("OutOfSync");
    let resources = application.get("status").and_then(|status| status.get("resources")).and_then(Value::as_array);
    let differ = resources.into_iter().flatten().filter_map(Value::as_object);
    let names: Vec<String> =
        differ.filter(|resource| text(resource, &["status"]) == Some("OutOfSync")).map(resource_name).collect();
    let named = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let told = match names.len().saturating_sub(MOST_NAMED) {
        _ if named.is_empty() => "is OutOfSync".to_owned(),
        0 => format!("is OutOfSync: {named}"),
        more => format!("is OutOfSync: {named} and {more} more"),
    };
    is_out.then_some(told)
}

/// `kind/namespace/name` of an entry of `status.resources`.
fn resource_name(resource: &Map<String, Value>) -> String {
    let field = |key: &str| text(resource, &[key]).unwrap_or_default();
    let place = [field("kind"), field("namespace"), field("name")].into_iter().filter(|part| !part.is_empty());
    let place = quote(&place.collect::<Vec<_>>().join("/"));
    let is_left_over = resource.get("requiresPruning").and_then(Value::as_bool) == Some(true);
    if is_left_over { format!("{place} (to be pruned)") } else { place }
}

/// State, need, and what was found.
type Answer = (ReleaseState, Option<Need>, String);

struct Application<'a> {
    object: &'a Map<String, Value>,
    operations: Operations<'a>,
}

impl<'a> Application<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        Self { object, operations: Operations::of(object) }
    }

    fn annotation(&self, key: &str) -> Option<&'a str> {
        text(self.object, &["metadata", "annotations", key])
    }

    fn refreshing(&self) -> bool {
        self.annotation(ARGO_REFRESH).is_some()
    }

    /// The proof with what this look adds.
    fn follow(&self, proof: &Proof) -> Proof {
        let uid = text(self.object, &["metadata", "uid"]).map(str::to_owned);
        let mut proof = proof.clone();
        if proof.uid.is_some() && proof.uid != uid {
            // Deleted and made again: nothing of it was seen on this object.
            let Proof { token, attempts, taken_over, once, whatever_health, .. } = proof;
            proof = Proof { token, attempts, taken_over, once, whatever_health, ..Proof::default() };
        }
        let shown = proof.token.as_deref().is_some_and(|token| self.operations.shows(token));
        if proof.taken_over {
            proof.uid.clone_from(&uid);
        }
        if shown {
            proof.uid = uid;
            match self.operations.phase() {
                Phase::Succeeded if self.operations.is_whole() => proof.succeeded = true,
                Phase::Failed if !proof.failed => {
                    proof.failed = true;
                    proof.attempts += 1;
                }
                Phase::None | Phase::Running | Phase::Retrying | Phase::Succeeded | Phase::Failed => {}
            }
        }
        proof.refresh_seen |= (proof.succeeded || proof.taken_over) && self.refreshing();
        proof
    }

    fn state(&self, proof: &Proof) -> Answer {
        if text(self.object, &["status", "reconciledAt"]).is_none() {
            let namespace = text(self.object, &["metadata", "namespace"]).unwrap_or_default();
            let message = format!(
                "Argo CD has not looked at it yet; if it never does, namespace {namespace} is not among its \
                 application.namespaces"
            );
            return (ReleaseState::Queued, None, message);
        }
        if let Some(answer) = self.busy_elsewhere() {
            return answer;
        }
        let shown = proof.token.as_deref().is_some_and(|token| self.operations.shows(token));
        if proof.succeeded {
            self.after_success(proof)
        } else if proof.taken_over && proof.token.is_none() {
            self.as_it_is_compared(proof)
        } else if shown {
            self.during_our_operation()
        } else {
            self.before_our_operation(proof)
        }
    }

    /// A hook is not run again, however its operation ended, unless that ended
    /// before anything was applied.
    fn at_most_once(&self, proof: &Proof, (state, need, message): Answer) -> Answer {
        let has_run = proof.uid.is_some() || self.operations.phase() != Phase::None;
        match need {
            Some(Need::Operation) if self.operations.has_applied_nothing() => {
                (ReleaseState::Progressing, need, message)
            }
            Some(Need::Operation) if has_run && !matches!(state, ReleaseState::Failed(_)) => {
                let message = format!("{message}; a hook is not run a second time");
                (ReleaseState::Failed(Failure::GivenUp), None, message)
            }
            Some(Need::Operation) if has_run => (state, None, message),
            Some(_) | None => (state, need, message),
        }
    }

    /// An operation of another spec is running, or about to.
    fn busy_elsewhere(&self) -> Option<Answer> {
        let foreign = self.operations.has_pending() && self.operations.is_for_another(self.object);
        foreign.then(|| {
            let (need, message) = if self.operations.is_left_over() || self.operations.is_terminating() {
                (None, "an operation of the spec before is being ended")
            } else if self.operations.is_in_progress() {
                (Some(Need::Termination), "an operation of the spec before is running")
            } else {
                (Some(Need::Operation), "an operation of the spec before is asked for")
            };
            (ReleaseState::Queued, need, message.to_owned())
        })
    }

    /// Our token is neither recorded nor shown.
    fn before_our_operation(&self, proof: &Proof) -> Answer {
        if proof.token.as_deref().is_some_and(|token| self.operations.asks_for(token)) {
            return (ReleaseState::Queued, None, "our operation is asked for".to_owned());
        }
        if self.operations.has_pending() {
            return (ReleaseState::Queued, None, format!("waits for {}", self.operations.describe()));
        }
        (ReleaseState::Queued, Some(Need::Operation), "our operation is not there yet".to_owned())
    }

    /// Our token is shown; success has not been seen.
    fn during_our_operation(&self) -> Answer {
        let described = self.operations.describe();
        if self.operations.is_held_by_window() {
            return (ReleaseState::Suspended, None, described);
        }
        match self.operations.phase() {
            Phase::Failed if !self.operations.has_pending() => {
                (ReleaseState::Failed(Failure::Attempt), Some(Need::Operation), described)
            }
            // Whatever it did, it was not what we asked for: fields of an older
            // operation leaked into it, or it ended without a result.
            Phase::Succeeded if !self.operations.has_pending() => {
                let message = format!("{described}, but not for the whole of the wanted source");
                (ReleaseState::Progressing, Some(Need::Operation), message)
            }
            // Nobody works on it any more: Argo CD was stopped in between.
            Phase::Running | Phase::Retrying if !self.operations.has_pending() => {
                let message = format!("{described}, but it is no longer asked for");
                (ReleaseState::Progressing, Some(Need::Operation), message)
            }
            Phase::None | Phase::Running | Phase::Retrying | Phase::Succeeded | Phase::Failed => {
                (ReleaseState::Progressing, None, described)
            }
        }
    }

    /// Our operation has succeeded: does what is shown since say so too?
    fn after_success(&self, proof: &Proof) -> Answer {
        let progressing = |need, message| (ReleaseState::Progressing, need, message);
        if self.operations.has_pending() {
            return progressing(None, self.operations.describe());
        }
        if !proof.once && (self.operations.phase() != Phase::Succeeded || !self.operations.ran_for(self.object)) {
            // Another's operation came after ours, or Argo CD lost the record of it.
            let need = Some(Need::Operation);
            return progressing(need, format!("{}; ours succeeded before", self.operations.describe()));
        }
        self.as_it_is_compared(proof)
    }

    /// What a comparison says that began after it was asked for.
    fn as_it_is_compared(&self, proof: &Proof) -> Answer {
        let progressing = |need, message| (ReleaseState::Progressing, need, message);
        if self.operations.has_pending() {
            return progressing(None, self.operations.describe());
        }
        if self.refreshing() {
            return progressing(None, "is being compared with the cluster".to_owned());
        }
        if !proof.refresh_seen {
            return progressing(Some(Need::Refresh), "is to be compared with the cluster".to_owned());
        }
        let unhealthy = || if proof.whatever_health { None } else { self.unhealthy() };
        match self.unproven().or_else(unhealthy) {
            Some(message) => progressing(None, message),
            None => (ReleaseState::Ready, None, "is Synced and Healthy".to_owned()),
        }
    }

    /// Somebody asked for another comparison of what was Synced and Healthy.
    fn is_looked_at_again(&self, state: &ReleaseState, proof: &Proof) -> bool {
        *state == ReleaseState::Progressing
            && self.refreshing()
            && proof.refresh_seen
            && !self.operations.has_pending()
            && self.unproven().is_none()
            && self.unhealthy().is_none()
    }

    fn unhealthy(&self) -> Option<String> {
        let health = text(self.object, &["status", "health", "status"]).unwrap_or("Unknown");
        (health != "Healthy").then(|| {
            let message = text(self.object, &["status", "health", "message"]).unwrap_or("");
            let separator = if message.is_empty() { "" } else { ": " };
            format!("health is {}{separator}{}", quote(health), quote(message))
        })
    }

    /// What the comparison after our operation lacks, health aside.
    fn unproven(&self) -> Option<String> {
        if !spec::is_compared(self.object) {
            return Some("the comparison shown is not with this spec".to_owned());
        }
        if let Some(error) = self.comparison_error().or_else(|| self.error()) {
            return Some(error);
        }
        let sync = text(self.object, &["status", "sync", "status"]).unwrap_or("Unknown");
        if sync != "Synced" {
            return Some(out_of_sync(self.object).unwrap_or_else(|| format!("is {}", quote(sync))));
        }
        let compared = text(self.object, &["status", "sync", "revision"]);
        if let (Some(synced), Some(compared)) = (self.operations.synced_revision(), compared)
            && synced != compared
        {
            return Some(format!("is compared with revision {}, {} was synchronised", quote(compared), quote(synced)));
        }
        None
    }

    fn trouble(&self, proof: &Proof) -> Option<Trouble> {
        if self.comparison_error().is_some() && !self.says("ComparisonError", NOT_COMPARED) {
            Some(Trouble::NoSource)
        } else if self.is_degraded(proof) {
            Some(Trouble::Degraded)
        } else {
            None
        }
    }

    /// Degraded by what our operation applied, not by what was there before.
    fn is_degraded(&self, proof: &Proof) -> bool {
        let health = text(self.object, &["status", "health", "status"]);
        let compared_since = proof.refresh_seen && !self.refreshing() && spec::is_compared(self.object);
        compared_since && health == Some("Degraded")
    }

    /// Argo CD cannot get or render the chart of this spec.
    fn comparison_error(&self) -> Option<String> {
        let error = self.condition("ComparisonError")?;
        spec::is_compared(self.object).then_some(error)
    }

    fn error(&self) -> Option<String> {
        ["InvalidSpecError", "SyncError", "UnknownError"].into_iter().find_map(|kind| self.condition(kind))
    }

    fn condition(&self, kind: &str) -> Option<String> {
        Some(format!("{kind}: {}", quote(cause(self.message_of(kind)?))))
    }

    /// Whether the condition of a type begins with these words.
    fn says(&self, kind: &str, words: &str) -> bool {
        self.message_of(kind).is_some_and(|message| message.starts_with(words))
    }

    fn message_of(&self, kind: &str) -> Option<&'a str> {
        let conditions = self.object.get("status")?.get("conditions")?.as_array()?;
        let of = |condition: &'a Value, key: &str| condition.get(key).and_then(Value::as_str);
        let found = conditions.iter().find(|condition| of(condition, "type") == Some(kind))?;
        Some(of(found, "message").unwrap_or_default())
    }
}

/// What a command printed, if that is what failed; else the whole chain of errors.
fn cause(message: &str) -> &str {
    let failed = message.rsplit_once("` failed exit status ").and_then(|(_, end)| end.split_once(": "));
    failed.map_or(message, |(_, printed)| printed)
}
