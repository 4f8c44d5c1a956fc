//! Charts at a path: their files at both states.

use std::collections::BTreeSet;

use super::{Sides, State, gates};
use crate::api::Engine;
use crate::package::content::{ChartContent, ContentError};
use crate::package::definition::{ChartSource, Component, PathChart, RelativePath};
use crate::translate::Compiled;

/// What was found of a Package's charts.
#[derive(Default)]
pub struct Findings {
    /// What must be mended.
    pub errors: Vec<String>,
    /// What a reviewer should know of what does not move.
    pub remarks: Vec<String>,
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
        if let Some(message) = other_chart(sides, component, before, after) {
            match to.definition.engine {
                Some(Engine::Argo) => found.warnings.push((component.name.to_string(), message)),
                Some(Engine::Flux) | None => found.errors.push(format!(
                    "component {}: {message}: helm-controller uninstalls the release and installs it anew; keep the name of the chart",
                    component.name
                )),
            }
        }
        let name = component.name.to_string();
        let path = after.path.as_str();
        let (old, new) = ((sides.states.0.charts)(&before.path), (sides.states.1.charts)(&after.path));
        if let (Err(ContentError::Missing(_)), Ok(_)) = (&old, &new) {
            found.remarks.push(format!("component {name}: its chart was not at `{}` before", before.path.as_str()));
        }
        // What cannot be read at one of the two is said above.
        let (Ok(old), Ok(new)) = (old, new) else { continue };
        let is_edited = before.path == after.path && old.digest != new.digest;
        if !is_edited || version(before) != version(after) || states_another(after, &new) {
            continue;
        }
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

/// Whether a chart has another version than its component states, which is said by itself.
fn states_another(stated: &PathChart, chart: &ChartContent) -> bool {
    stated.chart_version.as_ref().is_some_and(|version| *version != chart.version)
}

/// What is said where the directory of a chart holds a chart of another name.
fn other_chart(sides: &Sides<'_>, component: &Component, before: &PathChart, after: &PathChart) -> Option<String> {
    let name = |state: State<'_>, path: &RelativePath| (state.charts)(path).ok().map(|content| content.name);
    let (from, to) = (name(sides.states.0, &before.path)?, name(sides.states.1, &after.path)?);
    let meant = component.replace;
    (from != to && !meant).then(|| format!("the chart at `{}` is named `{to}`, and was `{from}`", after.path.as_str()))
}

/// Paths of charts of the second state whose files are others in the first.
pub fn edited(from: State<'_>, to: State<'_>) -> BTreeSet<RelativePath> {
    let digest = |state: State<'_>, path: &RelativePath| (state.charts)(path).map(|content| content.digest).ok();
    let named: BTreeSet<&RelativePath> = to.packages.iter().flat_map(paths).collect();
    named.into_iter().filter(|path| digest(from, path) != digest(to, path)).cloned().collect()
}

/// Whether files of one of its charts change.
pub fn is_edited(package: &Compiled, edited: &BTreeSet<RelativePath>) -> bool {
    paths(package).any(|path| edited.contains(path))
}

fn paths(package: &Compiled) -> impl Iterator<Item = &RelativePath> {
    package.definition.components.iter().filter_map(path).map(|chart| &chart.path)
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
