//! Objects that are no definitions.

use super::template::Document;

/// An object, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Group; empty for the core of Kubernetes.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name, if it is known.
    pub name: Option<String>,
    /// Namespace, that of the release where it says none; `None` if it is not known.
    pub namespace: Option<String>,
    /// Account of its pods, if it makes pods and says one.
    pub account: Option<String>,
    /// File of the chart.
    pub file: String,
}

impl Object {
    /// Reads a document, if its kind is known and Helm installs it.
    pub fn read(document: &Document, file: &str, namespace: &str) -> Option<Self> {
        let (api_version, kind) = (document.text(&["apiVersion"])?, document.text(&["kind"])?);
        let annotations = document.at(&["metadata", "annotations", "helm.sh/hook"]);
        if annotations.is_some_and(|hook| hook.as_str().is_none_or(is_for_tests)) {
            return None;
        }
        let stated = document.at(&["metadata", "namespace"]);
        Some(Self {
            group: group(api_version).to_owned(),
            kind: kind.to_owned(),
            name: document.text(&["metadata", "name"]).map(str::to_owned),
            namespace: match stated {
                // In a gap there may be one.
                None if document.has_gap_in("metadata") => None,
                None => Some(namespace.to_owned()),
                Some(_) => document.text(&["metadata", "namespace"]).map(str::to_owned),
            },
            account: account(document, kind),
            file: file.to_owned(),
        })
    }
}

/// Hooks that only `helm test` runs.
fn is_for_tests(hook: &str) -> bool {
    hook.split(',').all(|event| event.trim().starts_with("test"))
}

/// The group of an `apiVersion`.
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn account(document: &Document, kind: &str) -> Option<String> {
    let pod: &[&str] = match kind {
        "Pod" => &["spec"],
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            &["spec", "template", "spec"]
        }
        "CronJob" => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    };
    let field = |name: &'static str| document.text(&[pod, &[name]].concat());
    field("serviceAccountName").or_else(|| field("serviceAccount")).filter(|name| *name != "default").map(str::to_owned)
}
