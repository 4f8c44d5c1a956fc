//! Definitions for tests.

use serde_json::Map;

use super::{ChartSource, Component, RepositoryChart};
use crate::api::UpgradeCrds;
use crate::package::names::{ComponentName, Namespace, ReleaseName};
use crate::package::version::Version;

/// A component of a repository chart named like it, version 1.0.0.
pub(crate) fn component(name: &str, depends_on: &[&str]) -> Component {
    Component {
        name: ComponentName::parse(name).unwrap(),
        chart: ChartSource::Repository(RepositoryChart {
            repository: "https://charts.example.org".into(),
            name: name.into(),
            version: Version::parse("1.0.0").unwrap(),
            digest: None,
            secret: None,
        }),
        values: Map::new(),
        values_from: vec![],
        namespace: Namespace::parse("apps").unwrap(),
        release_name: ReleaseName::parse(name).unwrap(),
        privileged: false,
        depends_on: depends_on.iter().map(|name| ComponentName::parse(name).unwrap()).collect(),
        hook: false,
        replace: false,
        delete_data: false,
        upgrade_crds: UpgradeCrds::CreateReplace,
        ready_when: vec![],
        health_check_exprs: vec![],
        ignore: vec![],
        canary: None,
    }
}
