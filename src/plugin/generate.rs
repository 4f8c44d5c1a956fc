//! From the files of an Application to the manifests that Argo CD applies.

use serde_json::Value;
use thiserror::Error;

use super::environment::{Environment, Output};
use super::nulls::keep_nulls;
use crate::api::wellknown;
use crate::engine::Manifest;
use crate::package::definition::{Definition, Requirement};
use crate::package::load::{KUSTOMIZE_GROUP, Loaded, OtherManifest};
use crate::translate::{Charts, Compilation, Compiled, Note, Options, Refusal, Subject, compile, managed, native};

/// Kinds of Argo CD's own group that decide who may deploy what where: whoever
/// may write a Package must not get them applied on the side.
const REFUSED: [&str; 3] = ["Application", "ApplicationSet", "AppProject"];
const ARGO_GROUP: &str = "argoproj.io";

/// What Argo CD is given.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The manifests.
    pub objects: Vec<Value>,
    /// What else is to be said; on standard error.
    pub notes: Vec<String>,
}

/// Why there is no answer. Shown as the Application's ComparisonError.
#[derive(Debug, Error)]
pub enum Failure {
    /// No Package at all. An empty answer would make Argo CD delete everything.
    #[error(
        "no Package in `{directory}`: nothing is generated, so that nothing is deleted. Check the Application's \
         source.path and the plugin's parameters path and recurse"
    )]
    NoPackage {
        /// Where it was looked for, from the root of the repository.
        directory: String,
    },
    /// Something stands in the way, one line each.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
}

/// The manifests of everything that was loaded, in the order of the files.
///
/// Packages are compiled or, with output `native`, become objects that come
/// after all others. Manifests of other kinds pass through as they stand.
///
/// # Errors
/// See [`Failure`].
pub fn generate(
    mut loaded: Loaded,
    environment: &Environment,
    directory: &str,
    charts: &Charts<'_>,
) -> Result<Answer, Failure> {
    if loaded.packages.is_empty() {
        let directory = if directory.is_empty() { "." } else { directory };
        return Err(Failure::NoPackage { directory: directory.to_owned() });
    }
    let mut refused: Vec<String> = loaded.others.iter().filter_map(|other| refusal(&loaded, other)).collect();
    let compilation = Compilation {
        engine: Some(environment.parameters.engine),
        origin: environment.origin.as_ref().map(|(url, revision)| (url.as_str(), revision.as_str())),
        origin_stated_in: "ARGOCD_APP_SOURCE_REPO_URL and ARGOCD_APP_REVISION",
        charts: Some(charts),
    };
    let mut compiled = Vec::new();
    for package in std::mem::take(&mut loaded.packages) {
        let source = package.source;
        match compile(package, &compilation) {
            Ok(package) => compiled.push((source, package)),
            Err(refusals) => refused.extend(refusals.iter().map(ToString::to_string)),
        }
    }
    if !refused.is_empty() {
        return Err(Failure::Refused(refused));
    }
    let not_run: Vec<String> = loaded.kustomizations().map(not_run).collect();
    let others = loaded.others.into_iter().filter(|other| other.group() != KUSTOMIZE_GROUP).collect();
    let answer = match environment.parameters.output {
        Output::Package => packages(others, compiled, environment),
        Output::Native => natives(others, compiled, environment),
    };
    let answer = answer.map_err(|refusals| Failure::Refused(refusals.iter().map(ToString::to_string).collect()))?;
    Ok(Answer { notes: not_run.into_iter().chain(answer.notes).collect(), ..answer })
}

/// What is said of a file of kustomize beside Packages.
fn not_run(path: &str) -> String {
    format!(
        "{path}: kustomize is not run, so that what it asks for is not applied: commit what `kustomize build` makes of it"
    )
}

/// A compiled Package and the index of its file.
type Placed = (usize, Compiled);

/// Compiled Packages and everything else, in the order of the files.
fn packages(
    others: Vec<OtherManifest>,
    compiled: Vec<Placed>,
    environment: &Environment,
) -> Result<Answer, Vec<Refusal>> {
    let (mut all, definitions): (Vec<_>, Vec<_>) = compiled
        .into_iter()
        .map(|(source, package)| ((source, keep_nulls(package.object.into())), package.definition))
        .unzip();
    // What cannot become children is refused here, where its author sees it.
    managed(&definitions, &options(environment))?;
    let notes = unmet(&definitions, environment);
    let notes = notes.iter().map(|note| format!("{note}; the controller waits for it")).collect();
    all.extend(others.into_iter().map(|other| (other.source, other.value)));
    all.sort_by_key(|(source, _)| *source);
    Ok(Answer { objects: all.into_iter().map(|(_, object)| object).collect(), notes })
}

fn natives(
    others: Vec<OtherManifest>,
    compiled: Vec<Placed>,
    environment: &Environment,
) -> Result<Answer, Vec<Refusal>> {
    let definitions: Vec<Definition> = compiled.into_iter().map(|(_, package)| package.definition).collect();
    let unmet = unmet(&definitions, environment);
    if !unmet.is_empty() {
        return Err(unmet.into_iter().map(|note| Refusal { about: note.about, message: note.message }).collect());
    }
    let translation = native(&definitions, &options(environment))?;
    let others = others.into_iter().map(|other| other.value);
    Ok(Answer {
        objects: others.chain(translation.objects.into_iter().map(Manifest::into).map(keep_nulls)).collect(),
        notes: translation.notes.iter().map(ToString::to_string).collect(),
    })
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

fn options(environment: &Environment) -> Options {
    Options {
        project: environment.project.clone(),
        waves: environment.parameters.waves,
        ..Options::for_engine(Some(environment.parameters.engine))
    }
}

/// Requirements on the cluster that it does not meet, or not for all we know.
fn unmet(definitions: &[Definition], environment: &Environment) -> Vec<Note> {
    let mut unmet = Vec::new();
    for package in definitions {
        for requirement in &package.requires {
            let Requirement::Kubernetes { range } = requirement else { continue };
            let found = match &environment.kubernetes {
                Ok(version) if range.admits(version) => continue,
                Ok(version) => format!("the cluster has {version}"),
                Err(unknown) => unknown.clone(),
            };
            let message = format!("requires Kubernetes {}, {found}", range.as_written());
            unmet.push(Note { about: Subject::package(package), message });
        }
    }
    unmet
}

/// Why a manifest must not be passed on, if it must not.
fn refusal(loaded: &Loaded, other: &OtherManifest) -> Option<String> {
    let kind = refused_kind(&other.value)?;
    let source = loaded.sources.get(other.source)?;
    let line = source.position(other.span.start).line;
    let path = source.path();
    Some(format!("{path}:{line}: {kind} must not be among the files of Packages: apply it by other means"))
}

/// The refused kind that an object is or holds, at any depth of lists.
fn refused_kind(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = group(text("apiVersion"));
    let kind = text("kind");
    let of_argo = group == ARGO_GROUP && REFUSED.contains(&kind.strip_suffix("List").unwrap_or(kind));
    if of_argo || group == wellknown::GROUP {
        return Some(kind.to_owned());
    }
    let items = value.get("items").and_then(Value::as_array);
    items.into_iter().flatten().find_map(refused_kind)
}
