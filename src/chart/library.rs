//! The charts of a set of components, wherever they are.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Look, Release, files, look};
use crate::package::content::{chart_files, chart_version};
use crate::package::definition::{ChartSource, Component, RepositoryChart};
use crate::package::tree::{EntryKind, Tree};

/// Where charts are, and what was found in them.
#[derive(Default)]
pub struct Library<'t> {
    sources: Vec<&'t dyn Tree>,
    unpacked: Vec<&'t dyn Tree>,
    looks: RefCell<BTreeMap<[String; 3], Option<Rc<Look>>>>,
    absent: RefCell<BTreeSet<String>>,
}

impl<'t> Library<'t> {
    /// Charts at a path are below the first of `sources` that has them; charts of
    /// a repository are directories of `unpacked`: `NAME-VERSION`,
    /// `NAME-VERSION/NAME` or `NAME`, with that version in their Chart.yaml.
    pub fn new(sources: &[&'t dyn Tree], unpacked: &[&'t dyn Tree]) -> Self {
        Self { sources: sources.to_vec(), unpacked: unpacked.to_vec(), ..Self::default() }
    }

    /// What is in the chart of a component; `None` if it is not here, or cannot
    /// be read.
    pub fn look(&self, component: &Component) -> Option<Rc<Look>> {
        let release = Release::of(component);
        let key = [told(component), release.namespace.to_owned(), release.name.to_owned()];
        if let Some(known) = self.looks.borrow().get(&key) {
            return known.clone();
        }
        let found = self.find(component).and_then(|(tree, directory)| look(tree, &directory, &release).ok());
        let found = found.map(Rc::new);
        self.looks.borrow_mut().insert(key, found.clone());
        found
    }

    /// Whether a text is in any file of the chart of a component, or may be.
    pub fn mentions(&self, component: &Component, text: &str) -> bool {
        let Some((tree, directory)) = self.find(component) else { return true };
        let Ok(all) = chart_files(tree, &directory) else { return true };
        let path = |file: &str| if directory.is_empty() { file.to_owned() } else { format!("{directory}/{file}") };
        all.iter().any(|file| files::may_contain(tree, &path(file), text))
    }

    /// Charts of a repository that were asked for and are not here: name and version.
    pub fn absent(&self) -> Vec<String> {
        self.absent.borrow().iter().cloned().collect()
    }

    fn find(&self, component: &Component) -> Option<(&'t dyn Tree, String)> {
        match &component.chart {
            ChartSource::Path(chart) => {
                let path = chart.path.as_str();
                let file = if path.is_empty() { "Chart.yaml".to_owned() } else { format!("{path}/Chart.yaml") };
                let has_chart = |tree: &&&dyn Tree| matches!(tree.kind(&file), Ok(Some(EntryKind::File)));
                self.sources.iter().find(has_chart).map(|tree| (*tree, path.to_owned()))
            }
            ChartSource::Repository(chart) => self.unpacked(chart),
        }
    }

    fn unpacked(&self, chart: &RepositoryChart) -> Option<(&'t dyn Tree, String)> {
        let name = chart.name.rsplit('/').next().unwrap_or(&chart.name);
        let version = chart.version.as_written();
        let directories = [format!("{name}-{version}"), format!("{name}-{version}/{name}"), name.to_owned()];
        let places = self.unpacked.iter().flat_map(|tree| directories.iter().map(move |directory| (*tree, directory)));
        for (tree, directory) in places {
            if chart_version(tree, directory).is_ok_and(|found| found == chart.version) {
                return Some((tree, directory.clone()));
            }
        }
        if !self.unpacked.is_empty() {
            self.absent.borrow_mut().insert(format!("{name} {version}"));
        }
        None
    }
}

/// The chart of a component in words, to tell one from another.
fn told(component: &Component) -> String {
    match &component.chart {
        ChartSource::Path(chart) => format!("path {}", chart.path.as_str()),
        ChartSource::Repository(chart) => {
            format!("{} {} {}", chart.repository, chart.name, chart.version.as_written())
        }
    }
}
