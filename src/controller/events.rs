//! Kubernetes events: transitions only.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::client::Client;
use kube::runtime::events::{Event, EventType, Recorder as KubeRecorder, Reporter};

use super::cluster::bounded;
use crate::api::wellknown::{API_VERSION, FIELD_MANAGER};
use crate::rollout::{self, Snapshot};

/// Writes events about Packages.
#[derive(Clone)]
pub struct Recorder {
    inner: KubeRecorder,
}

impl Recorder {
    /// Of this process.
    pub fn new(client: Client, identity: String) -> Self {
        let reporter = Reporter { controller: FIELD_MANAGER.to_owned(), instance: Some(identity) };
        Self { inner: KubeRecorder::new(client, reporter) }
    }

    /// Tells one transition. An event that cannot be written is only logged:
    /// status says the same.
    pub async fn publish(&self, snapshot: &Snapshot, event: &rollout::Event) {
        let reference = package_reference(snapshot);
        let event_type = if event.warning { EventType::Warning } else { EventType::Normal };
        tracing::info!(reason = event.reason.as_str(), message = %event.message, "transition");
        let event = Event {
            type_: event_type,
            reason: event.reason.to_string(),
            note: Some(short(&event.message)),
            action: action(&event.message),
            secondary: None,
        };
        if let Err(error) = bounded(self.inner.publish(&event, &reference)).await {
            tracing::warn!(%error, "an event could not be written");
        }
    }
    /// Tells one transition of a DaemonSet, as KubeVirt does: of the DaemonSet,
    /// with the Package beside it.
    pub async fn publish_rollout(&self, snapshot: &Snapshot, event: &rollout::RolloutEvent) {
        let reference = ObjectReference {
            api_version: Some(event.daemon_set.api_version.clone()),
            kind: Some(event.daemon_set.kind.clone()),
            name: Some(event.daemon_set.name.clone()),
            namespace: Some(event.daemon_set.namespace.clone()),
            uid: Some(event.uid.clone()),
            ..ObjectReference::default()
        };
        let reason = event.reason.as_str();
        tracing::info!(reason, message = %event.message, "transition of a rollout");
        let told = Event {
            type_: if event.reason.is_warning() { EventType::Warning } else { EventType::Normal },
            reason: reason.to_owned(),
            note: Some(short(&event.message)),
            action: action(&event.message),
            secondary: Some(package_reference(snapshot)),
        };
        if let Err(error) = bounded(self.inner.publish(&told, &reference)).await {
            tracing::warn!(%error, "an event could not be written");
        }
    }
}

fn package_reference(snapshot: &Snapshot) -> ObjectReference {
    let package = &snapshot.package;
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some("Package".to_owned()),
        name: Some(package.name.to_string()),
        namespace: Some(package.namespace.clone()),
        uid: Some(package.uid.clone()),
        resource_version: Some(package.resource_version.clone()),
        ..ObjectReference::default()
    }
}

/// events.k8s.io takes notes of at most 1024 bytes.
fn short(message: &str) -> String {
    cut(message, 1000)
}

/// Events of one object that are alike in reason and action are counted as one, whatever
/// their notes say: what another message tells is another action. At most 128 bytes.
fn action(message: &str) -> String {
    cut(message, 120)
}

fn cut(message: &str, limit: usize) -> String {
    match message.char_indices().find(|(at, c)| at + c.len_utf8() > limit) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_message_tells_is_another_action() {
        assert_ne!(action("component a moves (chart 1.0.0)"), action("component b moves (chart 1.0.0)"));
        let long = "é".repeat(200);
        assert!(action(&long).len() <= 128 && short(&"é".repeat(2000)).len() <= 1024);
    }
}
