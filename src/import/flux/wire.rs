//! What is read of Flux's objects (Flux 2.9, `helm.toolkit.fluxcd.io/v2`, `source.toolkit.fluxcd.io/v1`).

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::{HealthCheckExpr, UpgradeCrds, ValuesFrom};
use crate::import::wire::nullable;

/// Any object: fields common to all of them and a spec.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Object<S> {
    #[serde(rename = "apiVersion")]
    pub _api_version: String,
    #[serde(rename = "kind")]
    pub _kind: String,
    pub metadata: Metadata,
    pub spec: S,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Metadata {
    pub name: String,
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReleaseSpec {
    pub chart: Option<ChartTemplate>,
    pub chart_ref: Option<Reference>,
    pub release_name: Option<String>,
    pub target_namespace: Option<String>,
    pub storage_namespace: Option<String>,
    pub service_account_name: Option<String>,
    pub suspend: Option<bool>,
    pub timeout: Option<String>,
    pub values: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "nullable")]
    pub values_from: Vec<ValuesFrom>,
    #[serde(default, deserialize_with = "nullable")]
    pub depends_on: Vec<Dependency>,
    pub upgrade: Option<UpgradeSpec>,
    #[serde(default, deserialize_with = "nullable")]
    pub health_check_exprs: Vec<HealthCheckExpr>,
    pub drift_detection: Option<DriftDetection>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ChartTemplate {
    pub spec: ChartSpec,
}

/// `chart.spec` of a HelmRelease and the spec of a HelmChart.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChartSpec {
    pub chart: String,
    pub version: Option<String>,
    pub source_ref: Reference,
    #[serde(default, deserialize_with = "nullable")]
    pub values_files: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Reference {
    pub kind: String,
    pub name: String,
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Dependency {
    pub name: String,
    pub namespace: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct UpgradeSpec {
    pub crds: Option<UpgradeCrds>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct DriftDetection {
    #[serde(default, deserialize_with = "nullable")]
    pub ignore: Vec<DriftRule>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct DriftRule {
    #[serde(default, deserialize_with = "nullable")]
    pub paths: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub target: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HelmRepositorySpec {
    pub url: String,
    #[serde(rename = "type")]
    pub _type: Option<String>,
    pub secret_ref: Option<Named>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OciRepositorySpec {
    pub url: String,
    #[serde(rename = "ref")]
    pub reference: Option<OciReference>,
    pub secret_ref: Option<Named>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct OciReference {
    pub tag: Option<String>,
    pub semver: Option<String>,
    pub digest: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Named {
    pub name: String,
}
