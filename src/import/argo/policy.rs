//! What an Application says besides its chart: how it is synchronised, and what
//! it leaves to others.

use serde_json::Value;

use super::application::Member;
use super::wire::{IgnoreDifference, NamespaceMetadata};
use crate::api::DriftIgnore;
use crate::api::wellknown::{ARGO_FINALIZER, ARGO_REFRESH, ARGO_SYNC_WAVE, ARGO_TRACKING_ID, POD_SECURITY_ENFORCE};
use crate::import::Imported;

/// Annotations of which something is said elsewhere, or that nobody wrote.
const KNOWN_ANNOTATIONS: [&str; 5] = [
    ARGO_SYNC_WAVE,
    ARGO_TRACKING_ID,
    ARGO_REFRESH,
    "argocd.argoproj.io/hook",
    "kubectl.kubernetes.io/last-applied-configuration",
];
/// Options that every Application of a Package has, switched on.
const GIVEN_OPTIONS: [&str; 3] = ["CreateNamespace", "ServerSideApply", "RespectIgnoreDifferences"];

/// Says what is otherwise for the Application that the Package makes.
pub(super) fn tell(imported: &mut Imported, member: &Member<'_>, namespace: &str) {
    let Member { application, subject, .. } = member;
    for name in application.annotations.keys().filter(|name| !KNOWN_ANNOTATIONS.contains(&name.as_str())) {
        let message = format!("metadata.annotations.{name} is not carried over: it belongs to the object");
        imported.warn(subject, message);
    }
    let cascades = application.finalizers.iter().any(|finalizer| finalizer.starts_with(ARGO_FINALIZER));
    if !cascades {
        let message = "deleting its Application leaves what it has installed; deleting the Package uninstalls it, \
                       unless deletionPolicy is Orphan";
        imported.warn(subject, message);
    }
    let project = application.spec.project.as_str();
    if !["", "default"].contains(&project) {
        let message = format!(
            "spec.project is not carried over: the Package's Applications are in the project of the controller's \
             --argo-project, or of the annotation windlass.dev/argo-project on namespace {namespace}; it was {project}"
        );
        imported.warn(subject, message);
    }
    synchronisation(imported, member);
    taking_over(imported, member, namespace);
}

fn synchronisation(imported: &mut Imported, member: &Member<'_>) {
    let Member { application, subject, .. } = member;
    let policy = &application.spec.sync_policy;
    match policy.automated.as_ref().filter(|automated| automated.enabled != Some(false)) {
        None => {
            let message = "it is synchronised by hand; a Package's component is synchronised when its turn has come, \
                           then healed and pruned";
            imported.warn(subject, message);
        }
        Some(automated) if !automated.prune || !automated.self_heal => {
            imported.warn(subject, "prune and selfHeal are always on");
        }
        Some(_) => {}
    }
    let is_on = |name: &str| policy.sync_options.iter().any(|option| option.strip_prefix(name) == Some("=true"));
    if !is_on("ServerSideApply") {
        imported.warn(subject, "its objects are applied on the server from now on (ServerSideApply=true)");
    }
    if !is_on("CreateNamespace") {
        imported.warn(subject, "its namespace is made if it is not there (CreateNamespace=true)");
    }
    if !application.spec.ignore_differences.is_empty() && !is_on("RespectIgnoreDifferences") {
        let message = "fields that it ignores are left alone by a synchronisation too (RespectIgnoreDifferences=true)";
        imported.warn(subject, message);
    }
    for option in &policy.sync_options {
        let name = option.split('=').next().unwrap_or_default();
        if !GIVEN_OPTIONS.contains(&name) {
            let message =
                format!("sync option {option} is not carried over: it is the same for all children of Packages");
            imported.warn(subject, message);
        }
    }
}

/// An Application is taken over as it is, or not at all.
fn taking_over(imported: &mut Imported, member: &Member<'_>, namespace: &str) {
    let Member { application, source, subject, .. } = member;
    let at = application.key.namespace.as_str();
    if ![namespace, ""].contains(&at) {
        let message =
            format!("its Application is in namespace {at}, and so not taken over by a Package of {namespace}");
        imported.warn(subject, message);
        return;
    }
    let helm = &source.helm;
    let obstacles = [
        ("sources", !application.spec.sources.is_empty()),
        ("helm.values", !helm.values.is_empty()),
        ("helm.parameters", !helm.parameters.is_empty()),
        ("helm.fileParameters", !helm.file_parameters.is_empty()),
    ];
    let obstacles: Vec<&str> = obstacles.into_iter().filter(|(_, there)| *there).map(|(field, _)| field).collect();
    if obstacles.is_empty() {
        let adopt = "annotate it with windlass.dev/adopt: <namespace>/<package>/<component>";
        imported.warn(subject, format!("to have the Package take over the Application that runs, {adopt}"));
    } else {
        let message = format!(
            "its Application cannot be taken over while it has {}: write one source with helm.valuesObject first",
            obstacles.join(", ")
        );
        imported.warn(subject, message);
    }
}

/// Whether the namespace is labelled for privileged pods.
pub(super) fn privileged(imported: &mut Imported, member: &Member<'_>) -> Option<bool> {
    let NamespaceMetadata { labels, annotations } = &member.application.spec.sync_policy.managed_namespace_metadata;
    let is_privileged = |(name, value): &(&String, &Value)| *name == POD_SECURITY_ENFORCE && *value == "privileged";
    let others = labels.iter().filter(|label| !is_privileged(label)).chain(annotations);
    for (name, value) in others {
        let message = format!(
            "managedNamespaceMetadata {name}: {value} is not carried over: put it on the namespace, in an object of \
             its own"
        );
        imported.error(&member.subject, message);
    }
    labels.iter().any(|label| is_privileged(&label)).then_some(true)
}

/// Fields that others own. Rules that are more than pointers have no counterpart.
pub(super) fn ignores(imported: &mut Imported, member: &Member<'_>) -> Vec<DriftIgnore> {
    let mut ignores = Vec::new();
    for rule in &member.application.spec.ignore_differences {
        let IgnoreDifference { group, kind, json_pointers, .. } = rule;
        let of = group
            .as_ref()
            .filter(|group| !group.is_empty())
            .map_or_else(|| kind.clone(), |group| format!("{group}/{kind}"));
        let lost = [
            ("jqPathExpressions", &rule.jq_path_expressions),
            ("managedFieldsManagers", &rule.managed_fields_managers),
        ];
        for (field, values) in lost.into_iter().filter(|(_, values)| !values.is_empty()) {
            let message = format!(
                "ignoreDifferences of {of}: {field} {} is not carried over: `ignore` takes jsonPointers",
                values.join(", ")
            );
            imported.error(&member.subject, message);
        }
        if kind.contains('*') || group.as_ref().is_some_and(|group| group.contains('*')) {
            let message =
                format!("ignoreDifferences of {of} is not carried over: `ignore` names one kind, without `*`");
            imported.error(&member.subject, message);
        } else if !json_pointers.is_empty() {
            let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
            ignores.push(DriftIgnore {
                group: set(group),
                kind: kind.clone(),
                name: set(&rule.name),
                namespace: set(&rule.namespace),
                json_pointers: json_pointers.clone(),
            });
        }
    }
    ignores
}
