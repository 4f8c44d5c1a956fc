//! Helmfiles.
//!
//! Releases that `needs` connects, directly or through others, become one Package,
//! as HelmReleases do by `dependsOn`. Go templates are not evaluated: their values
//! come from environments, files and commands that only helmfile knows.

mod chart;
mod ignored;
mod needs;
mod package;
mod values;
mod wire;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::needs::Id;
use self::wire::{Hook, Repository, State};
use super::values::merge;
use super::wire::{Ignored, read};
use super::{Document, Imported, Options, Severity, Written};
use crate::package::source::Source;
use crate::package::yaml::{self, Ambiguity, Content, Node, ambiguity, plainly};

/// What to import instead of a file that is not whole by itself.
const BUILD: &str = "import what `helmfile build --embed-values` prints";

/// A helmfile that was read.
struct Helmfile {
    /// The file, for messages.
    origin: String,
    /// Directory that its paths are relative to.
    directory: String,
    is_built: bool,
    repositories: Vec<Repository>,
    /// `helmDefaults.timeout`, in seconds.
    timeout: Option<u64>,
}

/// A release that was read.
struct Release {
    /// Position of its helmfile.
    helmfile: usize,
    id: Id,
    is_installed: bool,
    spec: wire::Release,
    ignored: Vec<Ignored>,
}

/// Turns helmfiles into Packages of the version in `options`. If one of them
/// cannot be read, nothing is made of the others either.
pub fn import(files: &[Source], options: &Options<'_>) -> Imported {
    let mut imported = Imported::default();
    let mut states = Vec::new();
    let mut is_whole = true;
    for file in files {
        match documents(&mut imported, file) {
            Some(documents) => states.extend(documents),
            None => is_whole = false,
        }
    }
    if !is_whole {
        return imported;
    }
    let (mut helmfiles, mut releases) = (Vec::new(), Vec::new());
    for mut document in states {
        document.value = without_nothings(document.value);
        match read::<State>(&document.value) {
            Ok((state, unread)) => {
                let (file, mut found) = helmfile(&mut imported, &document, state, &unread, helmfiles.len());
                helmfiles.push(file);
                releases.append(&mut found);
            }
            Err(error) => {
                let message = format!("left out, since it cannot be read as a helmfile: {error}");
                imported.error(document.place(&error), message);
            }
        }
    }
    if releases.is_empty() {
        imported.error("helmfile", "there is no release in the input");
    }
    let Some(version) = options.version.as_ref().map(|version| version.as_written()) else {
        imported.error("helmfile", "helmfiles do not say the version of the whole: give --version");
        return imported;
    };
    package::Context { options, helmfiles: &helmfiles, releases: &releases, version }.packages(&mut imported);
    imported
}

/// The helmfiles in a file: one, whose documents are laid over each other, or each
/// document of what `helmfile build` has printed. `None` if it is not readable.
fn documents(imported: &mut Imported, file: &Source) -> Option<Vec<Document>> {
    let parsed = yaml::parse(file.text());
    let values: Vec<Value> = parsed.documents.iter().map(Node::to_value).filter(|value| !value.is_null()).collect();
    let is_built = values.iter().any(|value| value.get("filepath").is_some());
    let place = |offset: usize| {
        let position = file.position(offset);
        format!("{}:{}:{}", file.path(), position.line, position.column)
    };
    let templates = if is_built { Vec::new() } else { templates(file.text()) };
    if let Some(first) = templates.first() {
        let more = templates.len() - 1;
        let more = if more > 0 { format!(" ({more} more in this file)") } else { String::new() };
        imported.error(place(*first), format!("`{{{{` begins a Go template, which is not evaluated{more}: {BUILD}"));
        return None;
    }
    for problem in &parsed.problems {
        imported.error(place(problem.span.start), format!("not readable as YAML: {}", problem.message));
    }
    if !parsed.problems.is_empty() {
        return None;
    }
    for document in &parsed.documents {
        tell_of_words(imported, file, document, &place);
    }
    if let Some(other) = values.iter().find(|value| !value.is_object()) {
        imported.error(file.path(), format!("a document is no map, and so no helmfile: {other}"));
        return None;
    }
    if is_built || values.len() < 2 {
        let text: Arc<str> = file.text().into();
        let written =
            |root: &Node| Written { text: Arc::clone(&text), start: root.locate("").start, pointer: String::new() };
        let read = parsed.documents.iter().map(|root| (root, root.to_value())).filter(|(_, value)| !value.is_null());
        let document = |(root, value): (&Node, Value)| Document {
            origin: file.path().to_owned(),
            value,
            written: Some(written(root)),
        };
        return Some(read.map(document).collect());
    }
    let message = format!("its {} YAML documents are laid over each other, lists one behind the other", values.len());
    imported.warn(file.path(), message);
    let mut whole = Map::new();
    for value in values {
        lay_over(&mut whole, value);
    }
    Some(vec![Document { origin: file.path().to_owned(), value: Value::Object(whole), written: None }])
}

/// Says which words helmfile, a reader of YAML 1.2, may take for something else
/// than Kubernetes and Helm do.
fn tell_of_words(imported: &mut Imported, file: &Source, node: &Node, place: &dyn Fn(usize) -> String) {
    match &node.content {
        Content::Sequence(items) => items.iter().for_each(|item| tell_of_words(imported, file, item, place)),
        Content::Mapping(entries) => {
            entries.iter().for_each(|entry| tell_of_words(imported, file, &entry.value, place))
        }
        Content::Bool(_) | Content::Number(_) if node.plain => {
            let word = file.slice(node.span);
            if matches!(ambiguity(word), Some(Ambiguity::Boolean | Ambiguity::Number)) {
                let taken = plainly(&node.content).unwrap_or_default();
                let message =
                    format!("`{word}` is taken as {taken}, and may be text for helmfile: write {taken}, or \"{word}\"");
                imported.warn(place(node.span.start), message);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::Text(_) => {}
    }
}

/// Where templates begin, but for comments: helmfile evaluates these too, and
/// nothing comes of it.
fn templates(text: &str) -> Vec<usize> {
    let is_comment = |at: usize| {
        let line = text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        line.trim_start().starts_with('#')
    };
    text.match_indices("{{").map(|(at, _)| at).filter(|at| !is_comment(*at)).collect()
}

/// Lists grow, all else is merged.
fn lay_over(whole: &mut Map<String, Value>, part: Value) {
    let Value::Object(fields) = part else { return };
    let mut rest = Map::new();
    for (key, value) in fields {
        match (whole.get_mut(&key), value) {
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (_, value) => drop(rest.insert(key, value)),
        }
    }
    merge(whole, rest);
}

/// Without defaults that mean nothing, which `helmfile build` prints all the same.
fn without_nothings(mut state: Value) -> Value {
    let means_something = |value: &Value| match value {
        Value::Bool(on) => *on,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => true,
    };
    if let Some(defaults) = state.get_mut("helmDefaults").and_then(Value::as_object_mut) {
        defaults.retain(|field, value| field == "createNamespace" || means_something(value));
    }
    state
}

fn helmfile(
    imported: &mut Imported,
    document: &Document,
    state: State,
    unread: &[Ignored],
    position: usize,
) -> (Helmfile, Vec<Release>) {
    let origin = document.origin.as_str();
    let is_built = state.filepath.is_some();
    let directory = |path: &str| path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    let stated = state.filepath.as_deref().and_then(directory);
    let file = Helmfile {
        origin: origin.to_owned(),
        directory: stated.or_else(|| directory(origin)).unwrap_or_default(),
        is_built,
        repositories: state.repositories.clone(),
        timeout: state.helm_defaults.timeout.filter(|seconds| *seconds > 0),
    };
    ignored::report(imported, origin, unread);
    tell_of_parts(imported, origin, &state, is_built);
    hooks(imported, origin, &state.hooks);
    let mut releases = Vec::new();
    for (at, value) in state.releases.iter().enumerate() {
        match read::<wire::Release>(value) {
            Ok((spec, ignored)) => releases.push(release(&state, spec, ignored, position)),
            Err(error) => {
                let name = value.get("name").and_then(Value::as_str).unwrap_or("without a name");
                let message = format!("release {name} is left out, since it cannot be read: {error}");
                imported.error(document.place_below(&format!("/releases/{at}"), &error), message);
            }
        }
    }
    (file, releases)
}

fn release(state: &State, spec: wire::Release, ignored: Vec<Ignored>, helmfile: usize) -> Release {
    let first = |texts: [&String; 3]| texts.into_iter().find(|text| !text.is_empty()).cloned().unwrap_or_default();
    let nothing = String::new();
    let id = Id {
        context: first([&state.kube_context, &spec.kube_context, &state.helm_defaults.kube_context]),
        namespace: first([&state.namespace, &spec.namespace, &nothing]),
        name: spec.name.clone(),
    };
    let is_installed = spec.installed != Some(false) && !spec.condition.eq_ignore_ascii_case("false");
    Release { helmfile, id, is_installed, spec, ignored }
}

/// Says what of a helmfile is not in the file itself. `helmfile build` has put all
/// of that together.
fn tell_of_parts(imported: &mut Imported, origin: &str, state: &State, is_built: bool) {
    if is_built {
        return;
    }
    let environments: Vec<&str> = state
        .environments
        .iter()
        .filter(|(_, environment)| !environment.is_null() && **environment != Value::Object(Map::new()))
        .map(|(name, _)| name.as_str())
        .collect();
    let parts = [
        (Severity::Warning, "environments", environments.join(", ")),
        (Severity::Error, "helmfiles", paths(&state.helmfiles)),
        (Severity::Error, "bases", paths(&state.bases)),
    ];
    for (severity, field, what) in parts.into_iter().filter(|(_, _, what)| !what.is_empty()) {
        imported.note(severity, origin, format!("{field} ({what}) are not evaluated: {BUILD}"));
    }
    if !state.values.is_empty() {
        imported.warn(origin, "values are not carried over: only templates and conditions look at them");
    }
    if !state.templates.is_empty() {
        imported.warn(origin, "templates are not carried over, but where a release repeats one by an alias");
    }
}

/// Other files as they are named, by text or with options.
fn paths(files: &[Value]) -> String {
    let named = files.iter().map(|file| file.as_str().or_else(|| file.get("path")?.as_str()).unwrap_or("?"));
    named.collect::<Vec<_>>().join(", ")
}

fn hooks(imported: &mut Imported, subject: &str, hooks: &[Hook]) {
    for hook in hooks {
        let message = format!(
            "hook {} of {} is not carried over: a hook of a Package is a component with `phase: PreUpgrade`, a chart \
             that runs once before an upgrade",
            hook.command,
            hook.events.join(", ")
        );
        imported.error(subject, message);
    }
}
