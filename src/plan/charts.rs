//! Charts at a path: their files at both states.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::Engine;
use crate::package::content::chart_content;
use crate::package::definition::{ChartSource, Component, PathChart};

use super::{Id, Sides, State, gates, id};

/// What was found of a Package's charts.
#[derive(Default)]
pub struct Findings {
    /// What must be mended.
    pub errors: Vec<String>,
    /// What a reviewer should know, by component.
    pub warnings: Vec<(String, String)>,
}

pub fn findings(sides: &Sides<'_>) -> Findings {
    let mut found = Findings::default();
    let faults =
        sides.states.1.faults.iter().filter(|fault| fault.namespace == sides.id.0 && fault.package == sides.id.1);
    found.errors.extend(faults.map(|fault| fault.message.clone()));
    let (Some(from), Some(to)) = (sides.from, sides.to) else { return found };
    for component in &to.definition.components {
        let before = gates::component(&from.definition, component.name.as_str());
        let Some((before, after)) = before.and_then(path).zip(path(component)) else { continue };
        let same_version = version(before) == version(after);
        if before.path != after.path || !same_version || !differ(sides, before, after) {
            continue;
        }
        let name = component.name.to_string();
        let path = after.path.as_str();
        match to.definition.engine {
            Some(Engine::Argo) => {
                found.warnings.push((name, format!("files of `{path}` change, and its version stays")));
            }
            Some(Engine::Flux) | None => found.errors.push(format!(
                "component {name}: files of `{path}` change, and its version stays {}: nobody would know when to move it; raise version in Chart.yaml, and chartVersion",
                version(after)
            )),
        }
    }
    found
}

/// Packages with a chart whose files change, wherever that is.
pub fn touched(from: State<'_>, to: State<'_>) -> BTreeSet<Id> {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut differs = |chart: &PathChart| {
        let path = chart.path.as_str();
        *known.entry(path.to_owned()).or_insert_with(|| content(from, path) != content(to, path))
    };
    let touched =
        to.packages.iter().filter(|package| package.definition.components.iter().filter_map(path).any(&mut differs));
    touched.map(id).collect()
}

fn path(component: &Component) -> Option<&PathChart> {
    match &component.chart {
        ChartSource::Path(chart) => Some(chart),
        ChartSource::Repository(_) => None,
    }
}

fn version(chart: &PathChart) -> &str {
    let stated = chart.source.as_ref().and_then(|source| source.chart_version.as_deref());
    stated.or_else(|| chart.chart_version.as_ref().map(|version| version.as_written())).unwrap_or_default()
}

fn differ(sides: &Sides<'_>, before: &PathChart, after: &PathChart) -> bool {
    content(sides.states.0, before.path.as_str()) != content(sides.states.1, after.path.as_str())
}

/// Digest of a chart's files; `None` if there is no chart.
fn content(state: State<'_>, path: &str) -> Option<String> {
    chart_content(state.charts, path).map(|content| content.digest).ok()
}
