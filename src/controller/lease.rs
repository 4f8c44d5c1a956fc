//! Who leads: one Lease, client-go's algorithm.
//!
//! A holder that cannot renew in time stops writing before anybody else may
//! take over. Times written by others are never compared with our clock: a
//! Lease is expired when it has not *changed* for its duration, as seen here
//! (kubernetes/client-go#448).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::time::Instant;

use super::cluster::{RequestError, bounded};

/// How long a Lease is good for without renewal.
pub const DURATION: Duration = Duration::from_secs(15);
/// How long a holder tries to renew before it gives up.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How long one attempt may take: two that fail leave time for a third.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Pause between tries.
pub const RETRY: Duration = Duration::from_secs(2);
/// Name of the Lease, unless another one is given.
pub const NAME: &str = "windlass";

/// What this process knows of a Lease: the transitions are pure.
#[derive(Clone, Debug)]
pub struct LeaseState {
    identity: String,
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    holder: Option<String>,
    renewed: Option<MicroTime>,
    transitions: i32,
    version: Option<String>,
    at: Instant,
}

/// What is to be done about a Lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write this.
    Write(Box<LeaseSpec>, Option<String>),
    /// Somebody else holds it.
    Wait,
}

impl LeaseState {
    /// Knows nothing yet.
    pub fn new(identity: String) -> Self {
        Self { identity, seen: None }
    }

    /// Takes a look at the Lease, or at there being none.
    pub fn observe(&mut self, lease: Option<&Lease>, at: Instant) {
        let spec = lease.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let unchanged =
            self.seen.as_ref().filter(|seen| seen.holder == spec.holder_identity && seen.renewed == spec.renew_time);
        self.seen = Some(Seen {
            at: unchanged.map_or(at, |seen| seen.at),
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            renewed: spec.renew_time,
            transitions: spec.lease_transitions.unwrap_or(0),
            version: lease.and_then(|lease| lease.metadata.resource_version.clone()),
        });
    }

    /// What to do now.
    pub fn step(&self, now: Instant, clock: Timestamp) -> Step {
        let Some(seen) = &self.seen else { return Step::Wait };
        let ours = seen.holder.as_deref() == Some(self.identity.as_str());
        let expired = now.duration_since(seen.at) > DURATION;
        if !ours && seen.holder.is_some() && !expired {
            return Step::Wait;
        }
        let transitions = if ours { seen.transitions } else { seen.transitions + 1 };
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(DURATION.as_secs() as i32),
            renew_time: Some(MicroTime(clock)),
            acquire_time: (!ours).then_some(MicroTime(clock)),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        Step::Write(Box::new(spec), seen.version.clone())
    }

    /// What gives the Lease up, if it is ours.
    pub fn release(&self) -> Option<(LeaseSpec, Option<String>)> {
        let seen = self.seen.as_ref()?;
        let ours = seen.holder.as_deref() == Some(self.identity.as_str());
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            lease_transitions: Some(seen.transitions),
            ..LeaseSpec::default()
        };
        ours.then(|| (spec, seen.version.clone()))
    }
}

/// Whether this process leads, to be asked before every write.
#[derive(Clone, Debug)]
pub struct Leadership {
    until: Arc<Mutex<Option<Instant>>>,
    alone: bool,
}

impl Leadership {
    /// Of a process that is the only one.
    pub fn alone() -> Self {
        Self { until: Arc::default(), alone: true }
    }

    /// Of a process that does not lead yet.
    pub fn none() -> Self {
        Self { until: Arc::default(), alone: false }
    }

    /// Whether writes are allowed at this moment.
    pub fn holds(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        self.alone || until.is_some_and(|until| Instant::now() < until)
    }

    /// How long writes are allowed from here on; `None`: as long as they take.
    pub fn left(&self) -> Option<Duration> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        (!self.alone).then_some(left)
    }

    fn renewed(&self, at: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(at + RENEW_DEADLINE);
    }
}

/// The election of one process.
pub struct Election {
    leases: Api<Lease>,
    name: String,
    state: LeaseState,
    leadership: Leadership,
}

impl Election {
    /// Takes part in the election of a Lease's name, under an identity.
    pub fn new(leases: Api<Lease>, name: String, identity: String) -> Self {
        Self { leases, name, state: LeaseState::new(identity), leadership: Leadership::none() }
    }

    /// What others ask before they write.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Waits until this process leads.
    pub async fn acquire(&mut self) {
        while !self.attempt().await {
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Renews for as long as that works; returns when leadership is lost.
    pub async fn keep(&mut self) {
        while self.leadership.holds() {
            tokio::time::sleep(RETRY).await;
            self.attempt().await;
        }
    }

    /// Gives the Lease up, so that the next need not wait for it to expire.
    pub async fn release(&mut self) {
        if let Some((spec, version)) = self.state.release()
            && let Err(error) = self.write(spec, version).await
        {
            tracing::warn!(%error, "the lease could not be given up; it expires");
        }
    }

    /// One look and, where allowed, one write. The time that counts is taken
    /// before the write is sent.
    async fn attempt(&mut self) -> bool {
        let attempt = tokio::time::timeout(ATTEMPT, self.look_and_write()).await;
        attempt.unwrap_or_else(|_| {
            tracing::warn!("the lease could not be renewed within {}s", ATTEMPT.as_secs());
            false
        })
    }

    async fn look_and_write(&mut self) -> bool {
        let at = Instant::now();
        let lease = match bounded(self.leases.get_opt(&self.name)).await {
            Ok(lease) => lease,
            Err(error) => {
                tracing::warn!(%error, "the lease cannot be read");
                return false;
            }
        };
        self.state.observe(lease.as_ref(), at);
        match self.state.step(at, Timestamp::now()) {
            Step::Wait => false,
            Step::Write(mut spec, version) => {
                if spec.acquire_time.is_none() {
                    spec.acquire_time = lease.and_then(|lease| lease.spec?.acquire_time);
                }
                match self.write(*spec, version).await {
                    Ok(lease) => {
                        self.state.observe(Some(&lease), at);
                        self.leadership.renewed(at);
                        true
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the lease cannot be written");
                        false
                    }
                }
            }
        }
    }

    async fn write(&self, spec: LeaseSpec, version: Option<String>) -> Result<Lease, RequestError> {
        let metadata =
            ObjectMeta { name: Some(self.name.clone()), resource_version: version.clone(), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec) };
        let parameters = PostParams::default();
        match version {
            Some(_) => bounded(self.leases.replace(&self.name, &parameters, &lease)).await,
            None => bounded(self.leases.create(&parameters, &lease)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed: i64) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            lease_transitions: Some(3),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    fn state(lease: Option<&Lease>, at: Instant) -> LeaseState {
        let mut state = LeaseState::new("me".to_owned());
        state.observe(lease, at);
        state
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_nobody_holds_is_taken() {
        let now = Instant::now();
        assert!(matches!(state(None, now).step(now, Timestamp::UNIX_EPOCH), Step::Write(..)));
        assert!(matches!(state(Some(&lease("", 0)), now).step(now, Timestamp::UNIX_EPOCH), Step::Write(..)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_of_another_is_taken_only_when_it_has_not_changed_for_its_duration() {
        let start = Instant::now();
        let mut state = state(Some(&lease("other", 1)), start);
        let later = start + DURATION - Duration::from_millis(1);
        assert_eq!(state.step(later, Timestamp::UNIX_EPOCH), Step::Wait);
        state.observe(Some(&lease("other", 2)), later);
        assert_eq!(state.step(start + DURATION + RETRY, Timestamp::UNIX_EPOCH), Step::Wait);
        let Step::Write(spec, _) = state.step(later + DURATION + RETRY, Timestamp::UNIX_EPOCH) else {
            panic!("an expired lease is free");
        };
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(4)));
    }

    #[tokio::test(start_paused = true)]
    async fn only_our_own_lease_is_given_up() {
        let now = Instant::now();
        assert!(state(Some(&lease("other", 1)), now).release().is_none());
        assert!(state(Some(&lease("me", 1)), now).release().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn writes_stop_before_anybody_else_may_take_over() {
        let leadership = Leadership::none();
        assert!(!leadership.holds());
        leadership.renewed(Instant::now());
        tokio::time::advance(RENEW_DEADLINE - Duration::from_millis(1)).await;
        assert!(leadership.holds());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!leadership.holds());
        assert!(RENEW_DEADLINE < DURATION);
    }
}
