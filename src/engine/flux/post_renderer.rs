//! Patches that helm-controller applies to what a chart renders.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::names;
use crate::api::Canary;
use crate::engine::{CanaryGuard, Manifest, pinned_names};
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
            patches.extend(component.canary.iter().flat_map(one_at_a_time));
        }
    }
    if patches.is_empty() { Vec::new() } else { vec![PostRenderer { kustomize: Kustomize { patches } }] }
}

fn one_at_a_time(canary: &Canary) -> impl Iterator<Item = Patch> {
    names(canary).into_iter().map(|name| Patch {
        target: Target { group: Some("apps"), version: "v1", kind: "DaemonSet", name },
        patch: ONE_AT_A_TIME,
    })
}

/// A release that was rendered for the guard's policies, or before its component had
/// a canary, as it is rendered without them: with a budget of 1. Nothing else of it
/// is another one. Any other object is returned as it is.
pub fn pinned(release: &Manifest, canary: &Canary) -> Manifest {
    let mut result = release.clone();
    let there = pinned_names(release.as_map());
    let mut more = one_at_a_time(canary)
        .filter(|patch| !there.contains(&None) && !there.contains(&patch.target.name))
        .map(|patch| json!(patch))
        .peekable();
    if release.kind() != "HelmRelease" || more.peek().is_none() {
        return result;
    }
    let spec = result.map_mut().entry("spec").or_insert_with(|| Map::new().into());
    let Some(renderers) = spec.as_object_mut().map(|spec| spec.entry("postRenderers").or_insert_with(|| json!([])))
    else {
        return result;
    };
    let Some(renderers) = renderers.as_array_mut() else { return result };
    match renderers.last_mut().and_then(|last| last.pointer_mut("/kustomize/patches")).and_then(Value::as_array_mut) {
        Some(patches) => patches.extend(more),
        None => renderers.push(json!({"kustomize": {"patches": more.collect::<Vec<_>>()}})),
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::keeps_the_first_step_small;

    fn release(renderers: Value) -> Manifest {
        let object = json!({"kind": "HelmRelease", "spec": {"releaseName": "a", "postRenderers": renderers}});
        Manifest::from_record(object.as_object().cloned().unwrap())
    }

    #[test]
    fn a_pin_is_added_behind_what_is_rendered_already() {
        let canary = Canary { daemon_sets: vec!["a.b".into()], ..Canary::default() };
        let theirs = json!({"kustomize": {"images": [{"name": "x", "newTag": "1"}]}});
        let result = pinned(&release(json!([theirs])), &canary);
        let renderers = result.get(&["spec", "postRenderers"]).unwrap();
        assert_eq!((renderers.as_array().unwrap().len(), &renderers[0]), (2, &theirs));
        assert_eq!(renderers[1]["kustomize"]["patches"][0]["target"]["name"], "a\\.b");
        assert!(keeps_the_first_step_small(result.as_map(), Some("a.b")));
        assert_eq!(pinned(&result, &canary), result, "once is enough");
    }

    /// A version that comes back was rendered for the DaemonSets that were named then.
    #[test]
    fn a_pin_of_another_daemon_set_is_none() {
        let named = |names: &[&str]| Canary {
            daemon_sets: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Canary::default()
        };
        let of_one = pinned(&release(json!([])), &named(&["a"]));
        assert!(!keeps_the_first_step_small(of_one.as_map(), Some("b")));
        let of_both = pinned(&of_one, &named(&["a", "b"]));
        for name in ["a", "b"] {
            assert!(keeps_the_first_step_small(of_both.as_map(), Some(name)), "{of_both:?}");
        }
        let of_all = pinned(&of_one, &named(&[]));
        assert!(keeps_the_first_step_small(of_all.as_map(), Some("c")));
        assert_eq!(pinned(&of_all, &named(&["d"])), of_all);
    }

    #[test]
    fn a_share_that_begins_like_the_pin_is_none() {
        let patch = ONE_AT_A_TIME.replace("maxUnavailable: 1", "maxUnavailable: 15%");
        let theirs = json!({"kustomize": {"patches": [{"target": {"kind": "DaemonSet"}, "patch": patch}]}});
        assert!(!keeps_the_first_step_small(release(json!([theirs])).as_map(), Some("a")));
    }
}
