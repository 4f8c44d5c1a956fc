//! Chart directories of `path` components.

use std::io;

use super::{Charts, Findings};
use crate::api::Engine;
use crate::package::content::{ContentError, OWN_VALUES, chart_version, missing};
use crate::package::definition::{ChartSource, PathChart};
use crate::package::diagnostic::Severity;
use crate::package::load::LoadedPackage;
use crate::package::tree::{EntryKind, Tree};
use crate::package::version::Version;
use crate::package::violation::{Code, Violation};

pub fn check(
    package: &LoadedPackage,
    charts: &Charts<'_>,
    engine: Option<Engine>,
    findings: &mut Findings<'_>,
) -> io::Result<()> {
    let Some(definition) = &package.definition else { return Ok(()) };
    for (index, component) in definition.components.iter().enumerate() {
        if let ChartSource::Path(chart) = &component.chart {
            let mut check = Check { package, charts, engine, findings, at: format!("/spec/components/{index}") };
            check.chart(chart)?;
        }
    }
    Ok(())
}

struct Check<'c, 'f> {
    package: &'c LoadedPackage,
    charts: &'c Charts<'c>,
    engine: Option<Engine>,
    findings: &'c mut Findings<'f>,
    at: String,
}

impl Check<'_, '_> {
    fn chart(&mut self, chart: &PathChart) -> io::Result<()> {
        let file = join(chart.path.as_str(), "Chart.yaml");
        let mut found = None;
        for root in self.charts.roots {
            match root.kind(&file)? {
                Some(EntryKind::File) => {
                    found = Some(*root);
                    break;
                }
                Some(EntryKind::Symlink) => return self.link("path", chart.path.as_str()),
                Some(EntryKind::Directory | EntryKind::Submodule | EntryKind::Other) | None => {}
            }
        }
        let Some(root) = found else {
            self.absent(chart);
            return Ok(());
        };
        match chart_version(root, chart.path.as_str()) {
            Ok(found) => self.version(&found, chart, &file),
            Err(ContentError::Read { source, .. }) => return Err(source),
            Err(error) => self.unusable(&error),
        }
        for (index, values) in chart.values_files.iter().enumerate() {
            let field = format!("valuesFiles/{index}");
            match root.kind(&join(chart.path.as_str(), values.as_str()))? {
                Some(EntryKind::File) => {}
                Some(EntryKind::Symlink) => self.link(&field, values.as_str())?,
                Some(EntryKind::Directory | EntryKind::Submodule | EntryKind::Other) | None => {
                    let message = format!("the chart has no file `{}`", values.as_str());
                    let help = "values files are relative to the chart directory";
                    self.report(&field, self.charts.severity, Code::ChartNotFound, message, help);
                }
            }
        }
        self.own_values(root, chart)
    }

    fn absent(&mut self, chart: &PathChart) {
        let path = chart.path.as_str();
        let mut above = self.charts.roots.iter().map(|root| missing(*root, path));
        let told = above.find(|error| matches!(error, ContentError::Submodule(_) | ContentError::Empty { .. }));
        let help = "a chart directory holds a Chart.yaml; the path starts at the root of the source";
        let (message, help) = match told {
            Some(told) => (told.to_string(), ""),
            None if path.is_empty() => ("there is no chart at the root of the source".to_owned(), help),
            None => (format!("there is no chart at `{path}`"), help),
        };
        self.report("path", self.charts.severity, Code::ChartNotFound, message, help);
    }

    /// Flux takes none of the chart's own values where files are stated, unless they are
    /// stated as well; so they are, and have to be there.
    fn own_values(&mut self, root: &dyn Tree, chart: &PathChart) -> io::Result<()> {
        let is_asked = self.engine == Some(Engine::Flux) && !chart.values_files.is_empty();
        if is_asked && root.kind(&join(chart.path.as_str(), OWN_VALUES))?.is_none() {
            let message = format!("the chart has no file `{OWN_VALUES}`, which Flux needs beside valuesFiles");
            let help = "add one to the chart, empty if it has no values of its own";
            self.report("valuesFiles", self.charts.severity, Code::ChartNotFound, message, help);
        }
        Ok(())
    }

    fn link(&mut self, field: &str, path: &str) -> io::Result<()> {
        let message = format!("`{path}` leads through a symbolic link");
        let help = "links are not followed, so that nothing outside of the source is read: use the real path";
        self.report(field, Severity::Error, Code::PathEscapes, message, help);
        Ok(())
    }

    /// A directory with a Chart.yaml that the plugin and `render` would refuse.
    fn unusable(&mut self, error: &ContentError) {
        let (code, help) = match error {
            ContentError::Symlink(_) | ContentError::Other(_) => {
                (Code::PathEscapes, "a chart consists of files, so that nothing outside of the source is read")
            }
            ContentError::TooManyFiles(_) | ContentError::TooLarge(_) => (Code::TooLarge, "move out what is no chart"),
            _ => (Code::ChartNotFound, "mend the Chart.yaml: Helm needs its name and exact version"),
        };
        self.report("path", self.charts.severity, code, error.to_string(), help);
    }

    fn version(&mut self, found: &Version, chart: &PathChart, file: &str) {
        let Some(wanted) = &chart.chart_version else { return };
        if found != wanted {
            let message = format!("chartVersion is {wanted}, but {file} says {found}");
            let help = match self.engine {
                Some(Engine::Argo) => "write the version of the Chart.yaml, and raise both together",
                Some(Engine::Flux) | None => {
                    "write the version of the Chart.yaml: on Flux a release waits until the source shows it"
                }
            };
            self.report("chartVersion", self.charts.severity, Code::ChartVersionMismatch, message, help);
        }
    }

    fn report(&mut self, field: &str, severity: Severity, code: Code, message: String, help: &str) {
        let violation = Violation::new(code, format!("{}/{field}", self.at), message).help(help);
        self.findings.add(self.package, severity, violation);
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
