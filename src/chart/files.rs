//! Which files of a chart are what.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::map;
use crate::package::content::{ContentError, chart_files};
use crate::package::tree::Tree;

/// Larger files are not read.
const MAX_BYTES: u64 = 4 << 20;

/// The files of a chart, by what Helm does with them. Paths are relative to it.
#[derive(Debug)]
pub struct Files {
    directory: String,
    /// Definitions that are installed as they are.
    pub crds: Vec<String>,
    /// Templates, those that only define something included.
    pub templates: Vec<String>,
    /// All of them.
    pub all: Vec<String>,
    /// Whether a subchart is an archive.
    pub is_packed: bool,
    /// Whether a `.helmignore` may leave some of them out.
    pub ignores_some: bool,
}

/// A chart in a chart.
#[derive(Debug)]
pub struct Subchart {
    /// Name that its parent gives it.
    pub name: String,
    /// Where it is.
    pub directory: String,
    /// Values that switch it on or off, the first that is there.
    conditions: Vec<Vec<String>>,
    /// Whether tags do.
    has_tags: bool,
}

impl Files {
    /// Sorts the files of a chart directory.
    pub fn of(tree: &dyn Tree, directory: &str) -> Result<Self, ContentError> {
        let all = chart_files(tree, directory)?;
        let below = |prefix: &str, wanted: fn(&str) -> bool| -> Vec<String> {
            let inside = |file: &&String| file.strip_prefix(prefix).is_some_and(wanted);
            all.iter().filter(inside).cloned().collect()
        };
        let crds = below("crds/", is_manifest);
        let templates = below("templates/", |file| file != "NOTES.txt" && !file.ends_with("/NOTES.txt"));
        let is_packed = all.iter().any(|file| file.starts_with("charts/") && file.ends_with(".tgz"));
        let mut files = Self { directory: directory.to_owned(), crds, templates, all, is_packed, ignores_some: false };
        files.ignores_some = files.all.iter().any(|file| file == ".helmignore") && {
            let ignored = text(tree, &files.path(".helmignore"));
            ignored.is_none_or(|text| ["crds", "templates", "charts"].iter().any(|part| text.contains(part)))
        };
        Ok(files)
    }

    /// Path of a file in its tree.
    pub fn path(&self, file: &str) -> String {
        if self.directory.is_empty() { file.to_owned() } else { format!("{}/{file}", self.directory) }
    }

    /// Its subcharts that are directories, and whether that is all of them. One
    /// may be there under several names.
    pub fn subcharts(&self, tree: &dyn Tree, metadata: &Map<String, Value>) -> (Vec<Subchart>, bool) {
        let dependencies = metadata.get("dependencies").and_then(Value::as_array).into_iter().flatten();
        let dependencies: Vec<&Map<String, Value>> = dependencies.filter_map(Value::as_object).collect();
        let is_chart = |file: &&String| file.starts_with("charts/") && file.ends_with("/Chart.yaml");
        let directories = self.all.iter().filter(is_chart).filter_map(|file| file.strip_suffix("/Chart.yaml"));
        let mut found = BTreeSet::new();
        let mut subcharts = Vec::new();
        for directory in directories.filter(|directory| directory.matches('/').count() == 1) {
            let own = text(tree, &self.path(&format!("{directory}/Chart.yaml"))).and_then(|text| map(&text));
            let Some(name) = own.as_ref().and_then(|own| field(own, "name")) else { return (subcharts, false) };
            let named = dependencies.iter().filter(|dependency| field(dependency, "name") == Some(name));
            let before = subcharts.len();
            subcharts.extend(named.map(|dependency| Subchart::new(name, directory, dependency)));
            if subcharts.len() == before {
                subcharts.push(Subchart::always(name, directory));
            }
            found.insert(name.to_owned());
        }
        let is_there =
            |dependency: &&Map<String, Value>| field(dependency, "name").is_some_and(|name| found.contains(name));
        (subcharts, dependencies.iter().all(is_there))
    }
}

/// A text that is not empty.
fn field<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

impl Subchart {
    fn always(name: &str, directory: &str) -> Self {
        Self { name: name.to_owned(), directory: directory.to_owned(), conditions: Vec::new(), has_tags: false }
    }

    fn new(name: &str, directory: &str, dependency: &Map<String, Value>) -> Self {
        let conditions = field(dependency, "condition")
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|path| !path.is_empty());
        let tags = dependency.get("tags").and_then(Value::as_array);
        Self {
            name: field(dependency, "alias").unwrap_or(name).to_owned(),
            directory: directory.to_owned(),
            conditions: conditions.map(|path| path.split('.').map(str::to_owned).collect()).collect(),
            has_tags: tags.is_some_and(|tags| !tags.is_empty()),
        }
    }

    /// Whether it is installed, where that can be told.
    pub fn is_enabled(&self, values: Option<&Map<String, Value>>) -> Option<bool> {
        if self.conditions.is_empty() {
            return Some(true).filter(|_| !self.has_tags);
        }
        let values = values?;
        let found = self.conditions.iter().find_map(|path| {
            let (first, rest) = path.split_first()?;
            rest.iter().try_fold(values.get(first)?, |value, key| value.get(key))?.as_bool()
        });
        found.or_else(|| Some(true).filter(|_| !self.has_tags))
    }
}

fn is_manifest(file: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|end| file.ends_with(end))
}

/// Text of a file that is read, if it is one.
pub fn text(tree: &dyn Tree, path: &str) -> Option<String> {
    String::from_utf8(tree.read(path, MAX_BYTES).ok()?).ok()
}

/// Whether a text is in a file; so it may be where the file is not read.
pub fn may_contain(tree: &dyn Tree, path: &str, text: &str) -> bool {
    tree.read(path, MAX_BYTES).map_or(true, |bytes| String::from_utf8_lossy(&bytes).contains(text))
}
