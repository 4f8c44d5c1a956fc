//! Packages for the controller, with everything in them that only who reads the
//! files can know.

use serde_json::{Map, Value, json};

use super::{Refusal, Subject, engine_of};
use crate::api::wellknown::{ANNOTATION_COMPILED_BY, COMPILED_BY};
use crate::api::{ComponentSource, Engine};
use crate::engine::possible;
use crate::package::content::{ChartContent, ContentError, OWN_VALUES};
use crate::package::definition::{ChartSource, Component, Definition, PathChart, RelativePath};
use crate::package::digest::digest;
use crate::package::load::LoadedPackage;
use crate::package::version::Version;

/// Reads the chart directory at a path of the repository.
pub type Charts<'a> = dyn Fn(&RelativePath) -> Result<ChartContent, ContentError> + 'a;

/// What is known of the files that a Package came with.
#[derive(Clone, Copy)]
pub struct Compilation<'a> {
    /// Engine of the Packages that name none.
    pub engine: Option<Engine>,
    /// URL of the repository and the commit.
    pub origin: Option<(&'a str, &'a str)>,
    /// Where those two are stated, for messages.
    pub origin_stated_in: &'static str,
    /// Reads the chart directories; `None` if they are not there.
    pub charts: Option<&'a Charts<'a>>,
}

/// A Package with everything in it that only who reads the files can know.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The object for the controller: namespace and engine set, `source` on
    /// every component with a `path`, no status, marked as compiled. Nothing
    /// else is added, and keys and components keep their order.
    pub object: Map<String, Value>,
    /// What the object says.
    pub definition: Definition,
}

/// Compiles a Package as it was written.
///
/// # Errors
/// Everything that stands in the way: errors found when it was loaded, no engine
/// or another one, something that the engine cannot do, a chart directory that
/// cannot be read or has another version than stated.
pub fn compile(package: LoadedPackage, options: &Compilation<'_>) -> Result<Compiled, Vec<Refusal>> {
    let (Some(mut definition), Value::Object(mut object)) = (package.definition, package.root.into_value()) else {
        let about = Subject { package: package.name, component: None };
        return Err(vec![Refusal::new(about, "it has errors: `windlass validate` shows them")]);
    };
    let engine = engine_of(&definition, options.engine).map_err(|refusal| vec![refusal])?;
    definition.engine = Some(engine);
    object.shift_remove("status");
    edit(&mut object, "metadata", |metadata| {
        metadata.insert("namespace".to_owned(), definition.namespace.as_str().into());
        edit(metadata, "annotations", |annotations| {
            annotations.insert(ANNOTATION_COMPILED_BY.to_owned(), COMPILED_BY.into());
        });
    });
    let mut refusals = edit(&mut object, "spec", |spec| {
        spec.insert("engine".to_owned(), engine.as_str().into());
        fill_sources(spec, &mut definition, engine, options)
    });
    if refusals.is_empty() {
        refusals.extend(definition.components.iter().filter_map(|component| refusal(component, &definition, engine)));
    }
    if refusals.is_empty() { Ok(Compiled { object, definition }) } else { Err(refusals) }
}

/// Why a component cannot be translated for an engine, if it cannot.
fn refusal(component: &Component, definition: &Definition, engine: Engine) -> Option<Refusal> {
    let possible = possible(component, definition, engine).map_err(|error| error.to_string());
    // Of all others the digest is taken when they are rendered.
    let digest = || match component.hook {
        true => digest(component, engine).map(|_| ()).map_err(|error| error.to_string()),
        false => Ok(()),
    };
    let message = possible.and_then(|()| digest()).err()?;
    Some(Refusal::new(Subject::component(definition, component), message))
}

fn fill_sources(
    spec: &mut Map<String, Value>,
    definition: &mut Definition,
    engine: Engine,
    options: &Compilation<'_>,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let package = definition.name.to_string();
    let written = spec.get_mut("components").and_then(Value::as_array_mut).into_iter().flatten();
    for (written, component) in written.zip(&mut definition.components) {
        let (Value::Object(written), ChartSource::Path(chart)) = (written, &mut component.chart) else { continue };
        match source(chart, engine, options) {
            Ok(source) => {
                written.extend(source.as_ref().map(|source| ("source".to_owned(), json!(source))));
                chart.source = source;
            }
            Err(message) => {
                let about = Subject { package: package.clone(), component: Some(component.name.to_string()) };
                refusals.push(Refusal::new(about, message));
            }
        }
    }
    refusals
}

/// Where a chart comes from: what is known now, else what was written.
fn source(chart: &PathChart, engine: Engine, options: &Compilation<'_>) -> Result<Option<ComponentSource>, String> {
    let content = options.charts.map(|read| read(&chart.path)).transpose().map_err(|error| describe(&error))?;
    if let Some(content) = &content {
        check_version(chart, &content.version)?;
        check_values_files(chart, &content.files, engine)?;
    }
    match (options.origin, engine) {
        (Some((repo_url, revision)), _) => Ok(Some(ComponentSource {
            repo_url: repo_url.to_owned(),
            revision: revision.to_owned(),
            content_digest: content.as_ref().map(|content| content.digest.clone()),
            chart_version: content.map(|content| content.version.as_written().to_owned()),
        })),
        (None, Engine::Flux) => Ok(chart.source.clone()),
        (None, Engine::Argo) => {
            Err(format!("a path needs its repository and commit on Argo CD: {}", options.origin_stated_in))
        }
    }
}

/// A stated chartVersion is how a controller knows the right commit: one that
/// is never there would be waited for until the timeout.
fn check_version(chart: &PathChart, found: &Version) -> Result<(), String> {
    let Some(stated) = chart.chart_version.as_ref().filter(|stated| *stated != found) else { return Ok(()) };
    let (path, stated, found) = (chart.path.as_str(), stated.as_written(), found.as_written());
    Err(format!("chartVersion is {stated}, but {path}/Chart.yaml says {found}: make them equal"))
}

/// A values file that is not there holds the release up on both engines.
fn check_values_files(chart: &PathChart, files: &[String], engine: Engine) -> Result<(), String> {
    let is_there = |wanted: &str| files.iter().any(|file| file == wanted);
    if let Some(absent) = chart.values_files.iter().find(|file| !is_there(file.as_str())) {
        return Err(format!(
            "there is no `{}` in {}: values files are relative to the chart",
            absent.as_str(),
            chart.path.as_str()
        ));
    }
    if engine == Engine::Flux && !chart.values_files.is_empty() && !is_there(OWN_VALUES) {
        let path = chart.path.as_str();
        return Err(format!(
            "there is no `{OWN_VALUES}` in {path}, which Flux needs beside valuesFiles: add one, empty if need be"
        ));
    }
    Ok(())
}

fn describe(error: &ContentError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}

/// Changes the map under a key, an empty one where there is none. A key that
/// was there keeps its place.
fn edit<R>(map: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Map<String, Value>) -> R) -> R {
    let mut child = match map.get_mut(key).map(Value::take) {
        Some(Value::Object(child)) => child,
        Some(_) | None => Map::new(),
    };
    let result = change(&mut child);
    map.insert(key.to_owned(), child.into());
    result
}
