//! Whose a DaemonSet is. A release object says what its release has, but whoever may
//! write it can make it say anything; what the engine has marked the DaemonSet with
//! only who may write there can.

use serde_json::Value;

use crate::api::Engine;
use crate::api::wellknown::{ARGO_TRACKING_ID, ARGO_TRACKING_LABEL, FLUX_RELEASE_NAME, FLUX_RELEASE_NAMESPACE};
use crate::canary::objects::DaemonSet;
use crate::engine::ObjectKey;
use crate::rollout::live::Live;
use crate::rollout::release;

/// Whether a DaemonSet was applied by the engine for this release object.
pub fn is_applied_by(child: &Live, daemon_set: &DaemonSet) -> bool {
    let own = child.key();
    match release::engine_of(&own.kind) {
        Some(Engine::Flux) => {
            let label = |key: &str| daemon_set.labels.get(key).map(String::as_str);
            (label(FLUX_RELEASE_NAMESPACE), label(FLUX_RELEASE_NAME))
                == (Some(own.namespace.as_str()), Some(own.name.as_str()))
        }
        Some(Engine::Argo) => is_tracked(own, controller_namespace(child), daemon_set),
        None => false,
    }
}

/// An Application outside of Argo CD's own namespace has its namespace in front of its
/// name. An id that names another object was copied from there.
fn is_tracked(own: &ObjectKey, controllers: Option<&str>, daemon_set: &DaemonSet) -> bool {
    let long = format!("{}_{}", own.namespace, own.name);
    let may_be_short = controllers.is_none_or(|namespace| namespace == own.namespace);
    let is_own = |name: &str| name == long || (may_be_short && name == own.name);
    match daemon_set.annotations.get(ARGO_TRACKING_ID) {
        Some(id) => id.split_once(':').is_some_and(|(application, object)| {
            is_own(application) && object == format!("apps/DaemonSet:{}", daemon_set.id())
        }),
        None => daemon_set.labels.get(ARGO_TRACKING_LABEL).is_some_and(|instance| is_own(instance)),
    }
}

fn controller_namespace(child: &Live) -> Option<&str> {
    child.object.get("status")?.get("controllerNamespace").and_then(Value::as_str)
}

/// What is told of a DaemonSet of somebody else.
pub fn foreign(child: &Live, daemon_set: &DaemonSet) -> String {
    let (own, id) = (child.key(), daemon_set.id());
    format!("DaemonSet {id} was not applied for {}/{}/{}, so it is left alone", own.kind, own.namespace, own.name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn child(kind: &str, status: Value) -> Live {
        let object = json!({
            "apiVersion": "any/v1", "kind": kind, "metadata": {"namespace": "ours", "name": "app-agent"},
            "status": status,
        });
        Live::new(object.as_object().cloned().unwrap())
    }

    fn daemon_set(metadata: Value) -> DaemonSet {
        let mut object = json!({"metadata": metadata});
        object["metadata"]["namespace"] = json!("agents");
        object["metadata"]["name"] = json!("agent");
        DaemonSet::read(object.as_object().unwrap())
    }

    #[rstest]
    #[case::ours("ours", "app-agent", true)]
    #[case::of_another_namespace("theirs", "app-agent", false)]
    #[case::of_another_release("ours", "app-other", false)]
    fn helm_controller_labels_what_it_applies(#[case] namespace: &str, #[case] name: &str, #[case] expected: bool) {
        let labels = json!({FLUX_RELEASE_NAMESPACE: namespace, FLUX_RELEASE_NAME: name});
        let found = is_applied_by(&child("HelmRelease", json!({})), &daemon_set(json!({"labels": labels})));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_nobody_has_marked_is_nobodys() {
        for kind in ["HelmRelease", "Application"] {
            assert!(!is_applied_by(&child(kind, json!({})), &daemon_set(json!({}))));
        }
    }

    #[rstest]
    #[case::ours("app-agent:apps/DaemonSet:agents/agent", None, true)]
    #[case::in_its_own_namespace("app-agent:apps/DaemonSet:agents/agent", Some("ours"), true)]
    #[case::of_the_same_name_elsewhere("app-agent:apps/DaemonSet:agents/agent", Some("argocd"), false)]
    #[case::with_its_namespace("ours_app-agent:apps/DaemonSet:agents/agent", Some("argocd"), true)]
    #[case::of_another_namespace("theirs_app-agent:apps/DaemonSet:agents/agent", None, false)]
    #[case::of_another("app-other:apps/DaemonSet:agents/agent", None, false)]
    #[case::copied("app-agent:apps/DaemonSet:agents/other", None, false)]
    fn argo_tracks_by_an_annotation(#[case] id: &str, #[case] controllers: Option<&str>, #[case] expected: bool) {
        let child = child("Application", json!({"controllerNamespace": controllers}));
        // The chart's own value of the label counts for nothing beside it.
        let labels = json!({ARGO_TRACKING_LABEL: "app-agent"});
        let metadata = json!({"annotations": {ARGO_TRACKING_ID: id}, "labels": labels});
        assert_eq!(is_applied_by(&child, &daemon_set(metadata)), expected);
    }

    #[rstest]
    #[case::ours("app-agent", true)]
    #[case::with_its_namespace("ours_app-agent", true)]
    #[case::of_another("agent", false)]
    fn or_by_a_label(#[case] instance: &str, #[case] expected: bool) {
        let metadata = json!({"labels": {ARGO_TRACKING_LABEL: instance}});
        assert_eq!(is_applied_by(&child("Application", json!({})), &daemon_set(metadata)), expected);
    }
}
