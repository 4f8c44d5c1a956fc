//! What a HelmRelease asks for.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::sim::chart::Script;
use crate::sim::helm::{Identity, Plan};
use crate::sim::json;
use crate::sim::store::{Key, Store};
use crate::sim::strategy;

type Object = Map<String, Value>;

/// Labels of every object of a release.
const RELEASE_NAME: &str = "helm.toolkit.fluxcd.io/name";
const RELEASE_NAMESPACE: &str = "helm.toolkit.fluxcd.io/namespace";
const SOURCES: &str = "source.toolkit.fluxcd.io/v1";

/// The source of the chart: what `chartRef` names, or the HelmChart that is made
/// for `chart`.
pub(super) fn chart_key(release: &Key, object: &Object) -> Option<Key> {
    let kind = json::text(object, &["spec", "chartRef", "kind"]);
    if !kind.is_empty() {
        let name = json::text(object, &["spec", "chartRef", "name"]);
        return Some(Key::new(SOURCES, kind, &release.namespace, name));
    }
    json::at(object, &["spec", "chart"])?;
    Some(Key::new(SOURCES, "HelmChart", &release.namespace, &format!("{}-{}", release.namespace, release.name)))
}

/// The HelmChart that is made for `spec.chart`.
pub(super) fn own_chart(release: &Key, object: &Object) -> Option<Object> {
    let spec = json::at(object, &["spec", "chart", "spec"])?.clone();
    let key = chart_key(release, object)?;
    let chart = json!({
        "apiVersion": key.api_version, "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": spec,
    });
    chart.as_object().cloned()
}

/// Identity of the release: namespace of Helm's records, and name.
pub(super) fn identity(release: &Key, object: &Object) -> Identity {
    let spec = |field| Some(json::text(object, &["spec", field])).filter(|text| !text.is_empty());
    let storage = spec("storageNamespace").unwrap_or(&release.namespace).to_owned();
    let name = match (spec("releaseName"), spec("targetNamespace")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(target)) => format!("{target}-{}", release.name),
        (None, None) => release.name.clone(),
    };
    (storage, name)
}

/// The plan of a HelmRelease, from the artifact that its source shows.
pub(super) fn plan(store: &Store, script: &Script, release: &Key, object: &Object) -> Option<Plan> {
    let chart_key = chart_key(release, object)?;
    let source = store.get(&chart_key)?;
    let revision = json::text(source, &["status", "artifact", "revision"]);
    let is_oci = chart_key.kind == "OCIRepository";
    let name = json::text(source, &["spec", if is_oci { "url" } else { "chart" }]);
    let chart = name.rsplit('/').next().unwrap_or(name);
    let Artifact { version, shown, manifest } =
        if is_oci { Artifact::of_oci(script, chart, revision) } else { Artifact::of_version(revision) };
    let spec = |field| Some(json::text(object, &["spec", field])).filter(|text| !text.is_empty());
    Some(Plan {
        identity: identity(release, object),
        namespace: spec("targetNamespace").unwrap_or(&release.namespace).to_owned(),
        chart: chart.to_owned(),
        version,
        shown,
        manifest,
        rendered_with: post_renderers(object),
        config: config(store, release, object),
        kept: kept(object),
        pinned: strategy::is_pinned(object),
        labels: vec![(RELEASE_NAME, release.name.clone()), (RELEASE_NAMESPACE, release.namespace.clone())],
    })
}

/// What the revision of an artifact says of the chart in it.
struct Artifact {
    version: String,
    shown: String,
    manifest: Option<String>,
}

impl Artifact {
    fn of_version(version: &str) -> Self {
        Self { version: version.to_owned(), shown: version.to_owned(), manifest: None }
    }

    /// `<tag>@<digest>`, or the digest alone where only that was asked for. The
    /// version is shown with the digest in the place of its build metadata.
    fn of_oci(script: &Script, chart: &str, revision: &str) -> Self {
        let (version, digest) = match revision.split_once('@') {
            Some((tag, digest)) => (tag.replace('_', "+"), digest),
            None => (script.pinned_version(chart, revision).unwrap_or_default().to_owned(), revision),
        };
        let short: String = digest.strip_prefix("sha256:").unwrap_or(digest).chars().take(12).collect();
        let shown = format!("{}+{short}", version.split('+').next().unwrap_or(&version));
        Self { version, shown, manifest: Some(digest.to_owned()) }
    }
}

/// Digest of the values, those of ConfigMaps and Secrets included.
fn config(store: &Store, release: &Key, object: &Object) -> String {
    let values = json::at(object, &["spec", "values"]).cloned().unwrap_or_else(|| json!({}));
    let references = json::at(object, &["spec", "valuesFrom"]).and_then(Value::as_array);
    let found: Vec<Value> = references
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .map(|reference| {
            let key =
                Key::new("v1", json::text(reference, &["kind"]), &release.namespace, json::text(reference, &["name"]));
            store.get(&key).and_then(|object| object.get("data")).cloned().unwrap_or(Value::Null)
        })
        .collect();
    if found.is_empty() { json::digest(&values) } else { json::digest(&json!([values, found])) }
}

/// What a release is rendered with, beyond chart and values.
fn post_renderers(object: &Object) -> String {
    let part = |field| json::at(object, &["spec", field]).cloned().unwrap_or(Value::Null);
    json::digest(&json!([part("postRenderers"), part("commonMetadata")]))
}

/// Kinds that a post-renderer annotates with Helm's resource policy `keep`.
fn kept(object: &Object) -> BTreeSet<String> {
    let renderers = json::at(object, &["spec", "postRenderers"]).and_then(Value::as_array);
    let patches = renderers
        .into_iter()
        .flatten()
        .filter_map(|renderer| renderer.pointer("/kustomize/patches").and_then(Value::as_array))
        .flatten();
    patches
        .filter(|patch| patch.get("patch").and_then(Value::as_str).is_some_and(|p| p.contains("resource-policy: keep")))
        .filter_map(|patch| patch.pointer("/target/kind").and_then(Value::as_str).map(str::to_owned))
        .collect()
}
