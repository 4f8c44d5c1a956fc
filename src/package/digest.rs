//! The fingerprint that decides whether a component moves.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::canonical::{IntegerTooLarge, canonical_json};
use super::definition::{ChartSource, Component, PathChart, RepositoryChart, ValuesFrom};
use super::names::encode_hex;
use crate::api::{Engine, UpgradeCrds, ValuesFromKind};

/// Fingerprint of what a component installs: `v1:` and the hex SHA-256 of the
/// canonical JSON of engine, chart, values, their references and the release's
/// place. A changed digest is a move; nothing else is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentDigest(String);

/// Why a component has no digest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DigestError {
    /// A value that an API server would change.
    #[error("values of component `{component}`: {source}")]
    Values {
        /// The component.
        component: String,
        /// The number and its place.
        source: IntegerTooLarge,
    },
    /// A `path` component whose content nobody has stated.
    #[error("component `{component}` has a path, but neither its content nor its chartVersion is known")]
    UnknownContent {
        /// The component.
        component: String,
    },
}

impl ComponentDigest {
    /// Takes a digest from a record or an annotation as it stands.
    pub fn from_record(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, `v1:` and 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ComponentDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The digest of a component for an engine.
///
/// # Errors
/// See [`DigestError`].
pub fn digest(component: &Component, engine: Engine) -> Result<ComponentDigest, DigestError> {
    let mut content = Map::new();
    content.insert("engine".into(), engine.as_str().into());
    match &component.chart {
        ChartSource::Repository(chart) => {
            content.insert("chart".into(), repository_chart(chart));
        }
        ChartSource::Path(chart) => path_chart(component, chart, engine, &mut content)?,
    }
    content.insert("values".into(), Value::Object(component.values.clone()));
    content.insert("valuesFrom".into(), component.values_from.iter().map(values_from).collect());
    content.insert("namespace".into(), component.namespace.as_str().into());
    content.insert("releaseName".into(), component.release_name.as_str().into());
    content.insert("upgradeCRDs".into(), upgrade_crds(component.upgrade_crds).into());
    content.insert("deleteData".into(), component.delete_data.into());
    let text = canonical_json(&Value::Object(content))
        .map_err(|source| DigestError::Values { component: component.name.to_string(), source })?;
    Ok(ComponentDigest(format!("v1:{}", encode_hex(&Sha256::digest(text.as_bytes())))))
}

fn repository_chart(chart: &RepositoryChart) -> Value {
    json!({
        "repository": chart.repository,
        "name": chart.name,
        "version": chart.version.as_written(),
        "digest": chart.digest,
    })
}

/// On Argo CD the content decides, since `targetRevision` is a commit; on Flux
/// the chart's version, since that is what the source must show.
fn path_chart(
    component: &Component,
    chart: &PathChart,
    engine: Engine,
    content: &mut Map<String, Value>,
) -> Result<(), DigestError> {
    let content_digest = match engine {
        Engine::Argo => chart.source.as_ref().and_then(|source| source.content_digest.as_deref()),
        Engine::Flux => None,
    };
    let (key, value) = match (content_digest, &chart.chart_version) {
        (Some(digest), _) => ("contentDigest", digest),
        (None, Some(version)) => ("chartVersion", version.as_written()),
        (None, None) => return Err(DigestError::UnknownContent { component: component.name.to_string() }),
    };
    content.insert("path".into(), chart.path.as_str().into());
    content.insert(key.into(), value.into());
    let files = chart.values_files.iter().map(|file| file.as_str().to_owned());
    content.insert("valuesFiles".into(), files.collect());
    Ok(())
}

fn values_from(reference: &ValuesFrom) -> Value {
    json!({
        "kind": match reference.kind {
            ValuesFromKind::ConfigMap => "ConfigMap",
            ValuesFromKind::Secret => "Secret",
        },
        "name": reference.name.as_str(),
        "valuesKey": reference.values_key,
        "targetPath": reference.target_path,
        "optional": reference.optional,
    })
}

fn upgrade_crds(policy: UpgradeCrds) -> &'static str {
    match policy {
        UpgradeCrds::Skip => "Skip",
        UpgradeCrds::Create => "Create",
        UpgradeCrds::CreateReplace => "CreateReplace",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::package::definition::testing::component;
    use crate::package::names::{Namespace, ReleaseName};
    use crate::package::version::Version;

    fn with(change: impl FnOnce(&mut Component)) -> ComponentDigest {
        let mut component = component("db", &[]);
        change(&mut component);
        digest(&component, Engine::Flux).unwrap()
    }

    fn set_version(component: &mut Component, version: &str) {
        if let ChartSource::Repository(chart) = &mut component.chart {
            chart.version = Version::parse(version).unwrap();
        }
    }

    #[test]
    fn a_digest_names_its_scheme() {
        let text = with(|_| ()).to_string();
        assert_eq!((text.len(), &text[..3]), (67, "v1:"));
    }

    #[rstest]
    #[case::version(|c: &mut Component| set_version(c, "9.9.9"))]
    #[case::values(|c: &mut Component| { c.values.insert("a".into(), Value::Null); })]
    #[case::namespace(|c: &mut Component| c.namespace = Namespace::parse("other").unwrap())]
    #[case::release(|c: &mut Component| c.release_name = ReleaseName::parse("other").unwrap())]
    #[case::crds(|c: &mut Component| c.upgrade_crds = UpgradeCrds::Skip)]
    #[case::delete_data(|c: &mut Component| c.delete_data = true)]
    fn what_is_installed_moves_the_component(#[case] change: fn(&mut Component)) {
        assert_ne!(with(change), with(|_| ()));
    }

    #[rstest]
    #[case::privileged(|c: &mut Component| c.privileged = true)]
    #[case::replace(|c: &mut Component| c.replace = true)]
    #[case::dependencies(|c: &mut Component| c.depends_on = vec![])]
    #[case::hook(|c: &mut Component| c.hook = true)]
    fn what_is_not_installed_moves_nothing(#[case] change: fn(&mut Component)) {
        assert_eq!(with(change), with(|_| ()));
    }

    #[test]
    fn a_whole_float_is_the_same_as_an_integer() {
        let value = |v: Value| {
            with(|c| {
                c.values.insert("n".into(), v);
            })
        };
        assert_eq!(value(json!(1.0)), value(json!(1)));
        assert_ne!(value(json!("1")), value(json!(1)));
    }

    #[test]
    fn the_engine_is_part_of_it() {
        let component = component("db", &[]);
        assert_ne!(digest(&component, Engine::Flux), digest(&component, Engine::Argo));
    }
}
