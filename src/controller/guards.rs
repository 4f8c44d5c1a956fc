//! The policies of the canary's guard: which there are, and whether they know us.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::Api;
use kube::api::{ApiResource, PostParams};
use kube::client::Client;
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::cached::Cached;
use super::cluster::{RequestError, bounded, typed_api};
use super::interruption::Interruption;
use super::lookups::refusal;
use super::watch::Watches;
use crate::api::wellknown::LABEL_GUARD;
use crate::canary::guard::Policies;

const GROUP: &str = "admissionregistration.k8s.io";
const VERSION: &str = "v1";
/// Pause before an API server that does not serve policies is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(300);
/// The same where they may not be read.
const ASK_AGAIN_DENIED: Duration = Duration::from_secs(30);

/// Each API server compiles policies anew once a second (its source says): what was
/// read a moment ago may not act yet, or still.
const SETTLE: Duration = Duration::from_secs(5);

/// The kinds that make up the guard.
const KINDS: [&str; 2] = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];
/// Their plurals.
const PLURALS: [&str; 2] = ["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"];

type Objects = BTreeMap<String, Map<String, Value>>;

/// Policies and bindings; `None`: not read yet.
#[derive(Debug, Default)]
pub struct Guards {
    objects: [Option<Objects>; 2],
    /// When something was last another than it had been before.
    changed: Option<Instant>,
}

impl Guards {
    /// Whether all of it has been read.
    pub fn is_read(&self) -> bool {
        self.objects.iter().all(Option::is_some)
    }

    /// For how long it is not known whether the API server acts on what is here. What
    /// was here when this process began counts as known.
    pub fn settles_in(&self, now: Instant) -> Option<Duration> {
        let left = SETTLE.checked_sub(now.saturating_duration_since(self.changed?))?;
        (!left.is_zero()).then_some(left)
    }

    /// What acts in a namespace with these labels.
    pub fn policies(&self, labels: &BTreeMap<String, String>, identity: Option<&str>) -> Policies {
        let all = |objects: &Option<Objects>| objects.iter().flatten().map(|(_, object)| object.clone()).collect();
        let [policies, bindings] = &self.objects;
        let (policies, bindings): (Vec<_>, Vec<_>) = (all(policies), all(bindings));
        Policies::of(&policies, &bindings, labels, identity)
    }

    /// There are none.
    #[cfg(test)]
    pub(super) fn know_of_none(&mut self) {
        self.objects = [Some(Objects::new()), Some(Objects::new())];
    }

    fn set(&mut self, position: usize, objects: Objects) -> bool {
        let Some(known) = self.objects.get_mut(position) else { return false };
        let first = known.is_none();
        let changed = known.as_ref() != Some(&objects);
        *known = Some(objects);
        if changed && !first {
            self.changed = Some(Instant::now());
        }
        changed
    }

    fn edit(&mut self, position: usize, change: impl FnOnce(&mut Objects)) {
        if let Some(known) = self.objects.get_mut(position) {
            let before = known.as_ref().map(essence);
            change(known.get_or_insert_default());
            if known.as_ref().map(essence) != before {
                self.changed = Some(Instant::now());
            }
        }
    }
}

/// What of policies and bindings has an effect: whoever applies the same over and over
/// changes nothing.
fn essence(objects: &Objects) -> BTreeMap<String, (Option<Value>, Option<Value>)> {
    let of = |object: &Map<String, Value>| {
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        (labels.cloned(), object.get("spec").cloned())
    };
    objects.iter().map(|(name, object)| (name.clone(), of(object))).collect()
}

/// As whom the API server takes us; `None`: it does not say (before 1.28).
///
/// # Errors
/// When it cannot be asked.
pub async fn identity(client: Client) -> Result<Option<String>, RequestError> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    match bounded(reviews.create(&PostParams::default(), &SelfSubjectReview::default())).await {
        Ok(review) => Ok(review.status.and_then(|status| status.user_info).and_then(|user| user.username)),
        Err(error) if error.is_not_found() || error.is_forbidden() => {
            tracing::warn!(%error, "the API server does not say as whom it takes us");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl Watches {
    /// Follows the guard's policies and bindings until the process ends.
    pub async fn follow_guards(self) {
        tokio::join!(self.follow_guard(0), self.follow_guard(1));
    }

    async fn follow_guard(&self, position: usize) {
        let Some(kind) = KINDS.get(position).copied() else { return };
        let plural = PLURALS.get(position).copied().unwrap_or_default();
        let mut interruption = Interruption::of(
            format!("{plural}.{GROUP}"),
            "it is only needed for Packages with a canary, for which the guard counts as absent",
        );
        loop {
            let of_kind = GroupVersionKind::gvk(GROUP, VERSION, kind);
            let pause = match bounded(pinned_kind(&self.client, &of_kind)).await {
                Ok((resource, _)) => self.follow_served(position, &resource, &mut interruption).await,
                Err(error) if error.is_not_found() => {
                    self.know(position, Objects::new());
                    ASK_AGAIN
                }
                Err(error) => {
                    tracing::warn!(kind, %error, "cannot look a kind up");
                    Duration::from_secs(5)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Gives the pause before the next attempt.
    async fn follow_served(
        &self,
        position: usize,
        resource: &ApiResource,
        interruption: &mut Interruption,
    ) -> Duration {
        let kind = resource.kind.as_str();
        let objects = typed_api::<Cached>(self.client.clone(), "", resource);
        let mut events = std::pin::pin!(watcher(objects, Config::default().labels(LABEL_GUARD)).default_backoff());
        let mut incoming = Objects::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => incoming = Objects::new(),
                Ok(Event::InitApply(object)) => {
                    incoming.insert(object.key().name.clone(), object.object());
                }
                Ok(Event::InitDone) => {
                    interruption.over();
                    self.know(position, std::mem::take(&mut incoming));
                }
                Ok(Event::Apply(object)) => self.change(position, |known| {
                    known.insert(object.key().name.clone(), object.object());
                }),
                Ok(Event::Delete(object)) => self.change(position, |known| {
                    known.remove(&object.key().name);
                }),
                Err(error) if matches!(refusal(&error), Some(401 | 403)) => {
                    interruption.tell(&error);
                    self.know(position, Objects::new());
                    return ASK_AGAIN_DENIED;
                }
                // An API server that serves them no more: one that was taken back to an earlier
                // version, or has the API switched off.
                Err(error) if matches!(refusal(&error), Some(404 | 405)) => {
                    tracing::warn!(kind, %error, "the canary's guard is not served any more: it counts as absent");
                    self.know(position, Objects::new());
                    return ASK_AGAIN;
                }
                Err(error) => interruption.tell(&error),
            }
        }
        ASK_AGAIN_DENIED
    }

    fn know(&self, position: usize, objects: Objects) {
        let mut changed = false;
        self.view.change_guards(|guards| changed = guards.set(position, objects));
        if changed {
            self.wake_all();
        }
    }

    fn change(&self, position: usize, change: impl FnOnce(&mut Objects)) {
        self.view.change_guards(|guards| guards.edit(position, change));
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_a_moment_ago_is_not_known_to_act() {
        let mut guards = Guards::default();
        let one = Objects::from([("windlass-canary-strict".to_owned(), Map::new())]);
        guards.set(0, one.clone());
        guards.set(1, Objects::new());
        let now = Instant::now();
        assert_eq!(guards.settles_in(now), None, "it was there before");
        guards.set(0, one);
        assert_eq!(guards.settles_in(now), None, "listed again, and the same");
        guards.edit(0, Objects::clear);
        let left = guards.settles_in(Instant::now()).unwrap();
        assert!(left <= SETTLE && left > SETTLE / 2, "{left:?}");
        assert_eq!(guards.settles_in(Instant::now() + SETTLE), None);
    }
}
