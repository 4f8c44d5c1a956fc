//! Packages for the controller, with everything in them that only who reads the
//! files can know.

use serde_json::{Map, Value, json};

use super::{NO_ENGINE, Refusal, Subject};
use crate::api::wellknown::{ANNOTATION_COMPILED_BY, COMPILED_BY};
use crate::api::{Engine, PackageSpec};
use crate::engine::possible;
use crate::package::content::{ChartContent, ContentError};
use crate::package::definition::{self, Definition, RelativePath};
use crate::package::digest::digest;
use crate::package::version::Version;

/// Reads the chart directory at a path of the repository.
pub type Charts<'a> = dyn Fn(&RelativePath) -> Result<ChartContent, ContentError> + 'a;

/// What is known of the files that a Package came with.
#[derive(Clone, Copy)]
pub struct Compilation<'a> {
    /// Namespace that every Package gets; `None`: as written, else `default`.
    pub namespace: Option<&'a str>,
    /// Engine of the Packages that name none.
    pub engine: Option<Engine>,
    /// URL of the repository and the commit.
    pub origin: Option<(&'a str, &'a str)>,
    /// Reads the chart directories; `None` if they are not there.
    pub charts: Option<&'a Charts<'a>>,
}

/// A Package with everything in it that only who reads the files can know.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The object for the controller: namespace forced, engine set, `source` on
    /// every component with a `path`, no status, marked as compiled. Nothing
    /// else is added, and keys and components keep their order.
    pub object: Map<String, Value>,
    /// What the object says.
    pub definition: Definition,
}

/// Compiles a Package as it was written.
///
/// # Errors
/// Everything that stands in the way: no engine or another one, something that
/// the engine cannot do, a chart directory that cannot be read or has another
/// version than stated.
pub fn compile(package: &Map<String, Value>, options: &Compilation<'_>) -> Result<Compiled, Vec<Refusal>> {
    let object = object(package, options)?;
    let about = Subject { package: text(&object, "metadata", "name").to_owned(), component: None };
    let refuse = |message: String| Refusal::new(about.clone(), message);
    let spec = object.get("spec").cloned().unwrap_or_default();
    let spec: PackageSpec = serde_json::from_value(spec).map_err(|error| vec![refuse(error.to_string())])?;
    let (name, namespace) = (text(&object, "metadata", "name"), text(&object, "metadata", "namespace"));
    let parsed = definition::parse(name, namespace, &spec);
    let definition = parsed.map_err(|violations| {
        violations.into_iter().map(|violation| refuse(violation.to_string())).collect::<Vec<_>>()
    })?;
    let engine = definition.engine.ok_or_else(|| vec![refuse(NO_ENGINE.to_owned())])?;
    let refusals: Vec<Refusal> = definition
        .components
        .iter()
        .filter_map(|component| {
            let possible = possible(component, &definition, engine).map_err(|error| error.to_string());
            // Of all others the digest is taken when they are rendered.
            let digest = || match component.hook {
                true => digest(component, engine).map(|_| ()).map_err(|error| error.to_string()),
                false => Ok(()),
            };
            let message = possible.and_then(|()| digest()).err()?;
            Some(Refusal::new(Subject::component(&definition, component), message))
        })
        .collect();
    if refusals.is_empty() { Ok(Compiled { object, definition }) } else { Err(refusals) }
}

fn object(package: &Map<String, Value>, options: &Compilation<'_>) -> Result<Map<String, Value>, Vec<Refusal>> {
    let mut compiled = package.clone();
    compiled.shift_remove("status");
    let name = text(package, "metadata", "name").to_owned();
    let about = Subject { package: name.clone(), component: None };
    let written = text(package, "metadata", "namespace");
    let namespace = options.namespace.unwrap_or(if written.is_empty() { "default" } else { written });
    let engine = engine(text(package, "spec", "engine"), options.engine)
        .map_err(|message| vec![Refusal::new(about, message)])?;
    edit(&mut compiled, "metadata", |metadata| {
        metadata.insert("namespace".to_owned(), namespace.into());
        edit(metadata, "annotations", |annotations| {
            annotations.insert(ANNOTATION_COMPILED_BY.to_owned(), COMPILED_BY.into());
        });
    });
    let refusals = edit(&mut compiled, "spec", |spec| {
        spec.insert("engine".to_owned(), engine.as_str().into());
        fill_sources(spec, &name, engine, options)
    });
    if refusals.is_empty() { Ok(compiled) } else { Err(refusals) }
}

fn fill_sources(
    spec: &mut Map<String, Value>,
    package: &str,
    engine: Engine,
    options: &Compilation<'_>,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let components = spec.get_mut("components").and_then(Value::as_array_mut).into_iter().flatten();
    for component in components.filter_map(Value::as_object_mut) {
        if let Err(message) = fill_source(component, engine, options) {
            let component = component.get("name").and_then(Value::as_str).map(str::to_owned);
            refusals.push(Refusal::new(Subject { package: package.to_owned(), component }, message));
        }
    }
    refusals
}

fn engine(written: &str, default: Option<Engine>) -> Result<Engine, String> {
    let own = [Engine::Flux, Engine::Argo].into_iter().find(|engine| engine.as_str() == written);
    match (own, default) {
        (Some(own), Some(other)) if own != other => {
            Err(format!("it is for engine {}, not {}", own.as_str(), other.as_str()))
        }
        (Some(engine), _) | (None, Some(engine)) => Ok(engine),
        (None, None) => Err(NO_ENGINE.to_owned()),
    }
}

fn fill_source(component: &mut Map<String, Value>, engine: Engine, options: &Compilation<'_>) -> Result<(), String> {
    let Some(path) = component.get("path").and_then(Value::as_str) else { return Ok(()) };
    let path = RelativePath::parse(path).ok_or_else(|| format!("`{path}` leads out of the source"))?;
    let content = options.charts.map(|read| read(&path)).transpose().map_err(|error| describe(&error))?;
    if let Some(content) = &content {
        check_version(component, &path, &content.version)?;
    }
    let Some((repo_url, revision)) = options.origin else {
        return match engine {
            Engine::Flux => Ok(()),
            Engine::Argo => Err("a path needs its repository and commit on Argo CD: --repo-url and --revision".into()),
        };
    };
    let mut source = Map::new();
    source.insert("repoURL".to_owned(), repo_url.into());
    source.insert("revision".to_owned(), revision.into());
    if let Some(content) = content {
        source.insert("contentDigest".to_owned(), content.digest.into());
        source.insert("chartVersion".to_owned(), json!(content.version.as_written()));
    }
    component.insert("source".to_owned(), source.into());
    Ok(())
}

/// A stated chartVersion is how a controller knows the right commit: one that
/// is never there would be waited for until the timeout.
fn check_version(component: &Map<String, Value>, path: &RelativePath, found: &Version) -> Result<(), String> {
    let Some(stated) = component.get("chartVersion").and_then(Value::as_str) else { return Ok(()) };
    if Version::parse(stated).is_ok_and(|stated| stated == *found) {
        return Ok(());
    }
    let (path, found) = (path.as_str(), found.as_written());
    Err(format!("chartVersion is {stated}, but {path}/Chart.yaml says {found}: make them equal"))
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

fn text<'a>(object: &'a Map<String, Value>, parent: &str, key: &str) -> &'a str {
    object.get(parent).and_then(|parent| parent.get(key)).and_then(Value::as_str).unwrap_or_default()
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
