//! What the files of a chart say of the objects it installs, without Helm.
//!
//! Templates are read as far as they can be evaluated from the chart and its
//! values alone: conditions, values, names. What cannot be known that way (the
//! cluster's capabilities, functions that are not here) leaves a gap, and nothing
//! is ever concluded from a gap. Pure.

pub mod compare;
mod crd;
mod files;
mod library;
mod object;
mod template;
#[cfg(test)]
mod tests;
mod values;

use serde_json::{Map, Value};

use crate::package::content::ContentError;
use crate::package::definition::{ChartSource, Component, RelativePath};
use crate::package::tree::Tree;
use crate::package::yaml;

use files::{Files, Subchart};
use template::{Document, Facts, Templates};

pub use crd::{Crd, CrdVersion};
pub use library::Library;
pub use object::{Object, group};

/// A subchart of a subchart of … is read so deep.
const MAX_DEPTH: u32 = 4;

/// What a chart is installed as.
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    /// Name of the release.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its values; `None` where some of them are elsewhere, so that none is known.
    pub values: Option<&'a Map<String, Value>>,
    /// Values files of the chart that are used.
    pub values_files: &'a [RelativePath],
}

impl<'a> Release<'a> {
    /// The release of a component.
    pub fn of(component: &'a Component) -> Self {
        let values_files = match &component.chart {
            ChartSource::Path(chart) => chart.values_files.as_slice(),
            ChartSource::Repository(_) => &[],
        };
        Self {
            name: component.release_name.as_str(),
            namespace: component.namespace.as_str(),
            values: Some(&component.values).filter(|_| component.values_from.is_empty()),
            values_files,
        }
    }
}

/// What was found in a chart.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// CustomResourceDefinitions, from `crds` and from templates.
    pub crds: Vec<Crd>,
    /// Objects of templates, definitions left out.
    pub objects: Vec<Object>,
    /// Whether there may be definitions among what could not be read.
    pub may_hide_crds: bool,
}

/// Looks into a chart directory of a tree.
///
/// # Errors
/// When its files cannot be listed; what a file says may be unknown instead.
pub fn look(tree: &dyn Tree, directory: &str, release: &Release<'_>) -> Result<Look, ContentError> {
    let mut look = Look::default();
    let files = Files::of(tree, directory)?;
    let defaults = values::read(tree, &files.path("values.yaml"));
    let own = values::of_release(tree, &files, release);
    let known = defaults.zip(own).map(|(defaults, own)| values::coalesce(&own, defaults));
    let chart = Chart { tree, files, release, depth: 0 };
    chart.look(known, &mut look);
    Ok(look)
}

/// One chart, or a subchart, that is read.
struct Chart<'a> {
    tree: &'a dyn Tree,
    files: Files,
    release: &'a Release<'a>,
    depth: u32,
}

impl Chart<'_> {
    fn look(&self, known: Option<Map<String, Value>>, look: &mut Look) {
        look.may_hide_crds |= self.files.is_packed || self.files.ignores_some;
        for file in &self.files.crds {
            let Some(text) = files::text(self.tree, &self.files.path(file)) else {
                look.may_hide_crds = true;
                continue;
            };
            let documents = template::documents(&text);
            look.may_hide_crds |= documents.iter().any(|document| document.root.is_none());
            look.crds.extend(documents.iter().flat_map(Document::objects).filter_map(|document| {
                let crd = Crd::read(&document, file)?;
                Some(Crd { is_templated: false, ..crd })
            }));
        }
        let metadata = self.metadata();
        if !matches!(metadata.get("type"), Some(Value::String(kind)) if kind == "library") {
            self.templates(known.as_ref(), &metadata, look);
        }
        let (subcharts, are_all) = self.files.subcharts(self.tree, &metadata);
        look.may_hide_crds |= !are_all;
        for subchart in subcharts {
            self.subchart(&subchart, known.as_ref(), look);
        }
    }

    /// Chart.yaml.
    fn metadata(&self) -> Map<String, Value> {
        values::read(self.tree, &self.files.path("Chart.yaml")).unwrap_or_default()
    }

    fn templates(&self, known: Option<&Map<String, Value>>, metadata: &Map<String, Value>, look: &mut Look) {
        let texts: Vec<(&str, Option<String>)> =
            self.files.templates.iter().map(|file| (file.as_str(), self.text_of(file))).collect();
        let facts = Facts { release: self.release, chart: metadata, values: known };
        let readable = texts.iter().filter_map(|(file, text)| Some((*file, text.as_deref()?)));
        let templates = Templates::of(readable);
        for (file, text) in &texts {
            let Some(reading) = text.as_ref().and_then(|_| templates.read(file, &facts)) else {
                look.may_hide_crds |= text.as_deref().is_none_or(crd::is_named_in);
                continue;
            };
            look.may_hide_crds |= !reading.is_whole && text.as_deref().is_some_and(crd::is_named_in);
            for document in reading.documents.iter().flat_map(Document::objects) {
                match Crd::read(&document, file) {
                    Some(crd) => look.crds.push(crd),
                    None => look.objects.extend(Object::read(&document, file, self.release.namespace)),
                }
            }
        }
    }

    fn text_of(&self, file: &str) -> Option<String> {
        files::text(self.tree, &self.files.path(file))
    }

    fn subchart(&self, subchart: &Subchart, known: Option<&Map<String, Value>>, look: &mut Look) {
        let is_enabled = subchart.is_enabled(known);
        if is_enabled == Some(false) {
            return;
        }
        let directory = self.files.path(&subchart.directory);
        let files = match Files::of(self.tree, &directory) {
            Ok(files) if self.depth < MAX_DEPTH && is_enabled == Some(true) => files,
            Ok(_) | Err(_) => {
                look.may_hide_crds = true;
                return;
            }
        };
        let defaults = values::read(self.tree, &files.path("values.yaml"));
        let known = defaults.zip(known).map(|(defaults, known)| values::of_subchart(known, &subchart.name, defaults));
        Chart { tree: self.tree, files, release: self.release, depth: self.depth + 1 }.look(known, look);
    }
}

/// A map of a text that holds one document; `None` if it holds anything else.
fn map(text: &str) -> Option<Map<String, Value>> {
    let parsed = yaml::parse(text);
    if !parsed.problems.is_empty() || parsed.documents.len() > 1 {
        return None;
    }
    match parsed.documents.into_iter().next().map(yaml::Node::into_value) {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(map)) => Some(map),
        Some(_) => None,
    }
}
