//! Patches that helm-controller applies to what a chart renders.

use serde::Serialize;

use super::canary_names;
use crate::engine::CanaryGuard;
use crate::package::definition::Component;

/// With a `target`, the name in a patch is not looked at.
const KEEP_CLAIMS: &str = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: any
  annotations:
    helm.sh/resource-policy: keep
";
const KEEP_DEFINITIONS: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: any
  annotations:
    helm.sh/resource-policy: keep
";
/// Both numbers: a DaemonSet that states maxSurge would be refused with only the first.
const ONE_AT_A_TIME: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: any
spec:
  updateStrategy:
    rollingUpdate:
      maxUnavailable: 1
      maxSurge: 0
";

#[derive(Serialize)]
pub(super) struct PostRenderer {
    kustomize: Kustomize,
}

#[derive(Serialize)]
struct Kustomize {
    patches: Vec<Patch>,
}

#[derive(Serialize)]
struct Patch {
    target: Target,
    patch: &'static str,
}

#[derive(Serialize)]
struct Target {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'static str>,
    version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

pub(super) fn post_renderers(component: &Component, guard: CanaryGuard) -> Vec<PostRenderer> {
    let mut patches = Vec::new();
    if !component.delete_data {
        let claims = Target { group: None, version: "v1", kind: "PersistentVolumeClaim", name: None };
        patches.push(Patch { target: claims, patch: KEEP_CLAIMS });
        let group = Some("apiextensions.k8s.io");
        let definitions = Target { group, version: "v1", kind: "CustomResourceDefinition", name: None };
        patches.push(Patch { target: definitions, patch: KEEP_DEFINITIONS });
    }
    match guard {
        CanaryGuard::Admission => {}
        CanaryGuard::Rendered => {
            patches.extend(canary_names(component).into_iter().map(|name| Patch {
                target: Target { group: Some("apps"), version: "v1", kind: "DaemonSet", name },
                patch: ONE_AT_A_TIME,
            }));
        }
    }
    if patches.is_empty() { Vec::new() } else { vec![PostRenderer { kustomize: Kustomize { patches } }] }
}
