//! Values of an Application: files, then an object or a text, then parameters.

use serde_json::{Map, Value};

use super::application::Member;
use crate::api::Component;
use crate::import::set::{Assigned, assign};
use crate::import::values::{merge, parse};
use crate::import::{Imported, Lookup, Options, resolved};

/// Where a values file is.
#[derive(Debug, PartialEq, Eq)]
enum File {
    /// In the chart's directory, from there.
    OfChart(String),
    /// Elsewhere, from the root of a repository.
    OfSource(String),
    /// Where it cannot be taken from; says why.
    Lost(&'static str),
}

/// Fills `valuesFiles` and `values` of a component.
pub(super) fn fill(imported: &mut Imported, options: &Options<'_>, member: &Member<'_>, component: &mut Component) {
    let helm = &member.source.helm;
    let mut values = files(imported, options, member, component);
    if !helm.values.is_empty() && !helm.values_object.is_empty() {
        let message = "helm.values is not carried over: Argo CD looks at helm.valuesObject alone";
        imported.warn(&member.subject, message);
    } else {
        match parse(&helm.values) {
            Ok(written) => merge(&mut values, written),
            Err(error) => imported.error(&member.subject, format!("helm.values is not carried over: {error}")),
        }
    }
    merge(&mut values, helm.values_object.clone());
    parameters(imported, member, component, &mut values);
    for parameter in &helm.file_parameters {
        let message = format!(
            "helm.fileParameters {} is not carried over: copy the content of {} to values",
            parameter.name, parameter.path
        );
        imported.error(&member.subject, message);
    }
    component.values = Some(values).filter(|values| !values.is_empty());
}

/// Files in the chart's directory stay files. From the first one elsewhere on they
/// are copied, as values win over files: a file behind it must win as well.
fn files(
    imported: &mut Imported,
    options: &Options<'_>,
    member: &Member<'_>,
    component: &mut Component,
) -> Map<String, Value> {
    let mut copied = Map::new();
    let mut copies = false;
    for written in &member.source.helm.value_files {
        let place = match place(written, member) {
            File::OfChart(path) if !copies => {
                component.values_files.push(path);
                continue;
            }
            File::OfChart(path) => {
                let chart = component.path.as_deref().unwrap_or_default();
                resolved(chart, &path).unwrap_or(path)
            }
            File::OfSource(path) => path,
            File::Lost(why) => {
                imported.error(&member.subject, format!("helm.valueFiles {written} is not carried over: {why}"));
                continue;
            }
        };
        copies = true;
        match copy(options, &place) {
            Ok(values) => {
                merge(&mut copied, values);
                let message =
                    format!("values of {place} are copied, so that what is changed there later does not count");
                imported.warn(&member.subject, message);
            }
            Err(why) => {
                imported.error(&member.subject, format!("helm.valueFiles {written} is not carried over: {why}"));
            }
        }
    }
    copied
}

fn copy(options: &Options<'_>, path: &str) -> Result<Map<String, Value>, String> {
    match (options.file)(path) {
        Lookup::Found(text) => parse(&text),
        Lookup::NotLooked => {
            Err("it is not in the chart's directory: give --chart-root, the root of its repository, to have it copied"
                .into())
        }
        Lookup::Problem(problem) => Err(problem),
    }
}

fn place(written: &str, member: &Member<'_>) -> File {
    let source = member.source;
    if let Some(named) = written.strip_prefix('$') {
        let (reference, path) = named.split_once('/').unwrap_or((named, ""));
        let sources = member.application.spec.all_sources();
        return match resolved("", path) {
            Some(path) if sources.iter().any(|source| source.reference() == Some(reference)) => File::OfSource(path),
            _ => File::Lost(REPLACED),
        };
    }
    if written.contains('$') {
        return File::Lost(REPLACED);
    }
    if written.contains("://") {
        return File::Lost("it comes over the network: copy it to values");
    }
    match source.path().filter(|_| source.chart().is_none()) {
        None => File::Lost("only charts at a path have values files: copy it to values"),
        Some(chart) => of_repository(written, chart),
    }
}

const REPLACED: &str = "what begins with `$` is replaced by Argo CD: copy the file to values";

fn of_repository(written: &str, chart: &str) -> File {
    let from = if written.starts_with('/') { "" } else { chart };
    let (Some(file), Some(chart)) = (resolved(from, written), resolved("", chart)) else {
        return File::Lost("it leads out of the repository: copy it to values");
    };
    let inside = if chart.is_empty() { Some(file.as_str()) } else { file.strip_prefix(&format!("{chart}/")) };
    inside.map_or_else(|| File::OfSource(file.clone()), |inside| File::OfChart(inside.to_owned()))
}

/// Parameters of guessed types come first, as Argo CD has Helm set them.
fn parameters(imported: &mut Imported, member: &Member<'_>, component: &Component, values: &mut Map<String, Value>) {
    let parameters = &member.source.helm.parameters;
    let ordered = parameters.iter().filter(|p| !p.force_string).chain(parameters.iter().filter(|p| p.force_string));
    for parameter in ordered {
        let assigned = match parameter.force_string {
            true => Assigned::Text(parameter.value.clone()),
            false => Assigned::Guessed(parameter.value.clone()),
        };
        let outcome = if parameter.value.contains('$') {
            Err("what begins with `$` in its value is replaced by Argo CD".to_owned())
        } else if parameter.name.contains('[') && !component.values_files.is_empty() {
            Err("the list that it changes may be in a values file".to_owned())
        } else {
            assign(values, &parameter.name, &assigned)
        };
        if let Err(why) = outcome {
            let message =
                format!("helm.parameters {} is not carried over: {why}: write it into values", parameter.name);
            imported.error(&member.subject, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::beside_the_chart("values-prod.yaml", "charts/db", File::OfChart("values-prod.yaml".into()))]
    #[case::below_it("./envs/prod.yaml", "./charts/db/", File::OfChart("envs/prod.yaml".into()))]
    #[case::above_it("../../envs/prod.yaml", "charts/db", File::OfSource("envs/prod.yaml".into()))]
    #[case::beside_its_directory("../db-prod.yaml", "charts/db", File::OfSource("charts/db-prod.yaml".into()))]
    #[case::from_the_root("/charts/db/prod.yaml", "charts/db", File::OfChart("prod.yaml".into()))]
    #[case::from_the_root_elsewhere("/envs/prod.yaml", "charts/db", File::OfSource("envs/prod.yaml".into()))]
    #[case::chart_at_the_root("prod.yaml", ".", File::OfChart("prod.yaml".into()))]
    #[case::out_of_the_repository(
        "../../x.yaml",
        "charts",
        File::Lost("it leads out of the repository: copy it to values")
    )]
    fn a_values_file_is_in_the_chart_or_elsewhere(#[case] written: &str, #[case] chart: &str, #[case] wanted: File) {
        assert_eq!(of_repository(written, chart), wanted);
    }
}
