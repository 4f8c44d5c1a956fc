//! Chart directories of `path` components.

use std::io;

use super::{Charts, Findings};
use crate::package::definition::{ChartSource, PathChart};
use crate::package::diagnostic::Severity;
use crate::package::load::LoadedPackage;
use crate::package::tree::{EntryKind, Tree};
use crate::package::version::Version;
use crate::package::violation::{Code, Violation};
use crate::package::yaml::{self, Node};

/// Largest Chart.yaml that is read.
const MAX_CHART_FILE: u64 = 1 << 20;

pub fn check(package: &LoadedPackage, charts: &Charts<'_>, findings: &mut Findings<'_>) -> io::Result<()> {
    let Some(definition) = &package.definition else { return Ok(()) };
    for (index, component) in definition.components.iter().enumerate() {
        if let ChartSource::Path(chart) = &component.chart {
            let mut check = Check { package, charts, findings, at: format!("/spec/components/{index}") };
            check.chart(chart)?;
        }
    }
    Ok(())
}

struct Check<'c, 'f> {
    package: &'c LoadedPackage,
    charts: &'c Charts<'c>,
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
                Some(EntryKind::Directory | EntryKind::Other) | None => {}
            }
        }
        let Some(root) = found else {
            let message = format!("there is no chart at `{}`", chart.path.as_str());
            let help = "a chart directory holds a Chart.yaml; the path starts at the root of the source";
            self.report("path", self.charts.severity, Code::ChartNotFound, message, help);
            return Ok(());
        };
        self.version(root, chart, &file)?;
        for (index, values) in chart.values_files.iter().enumerate() {
            let field = format!("valuesFiles/{index}");
            match root.kind(&join(chart.path.as_str(), values.as_str()))? {
                Some(EntryKind::File) => {}
                Some(EntryKind::Symlink) => self.link(&field, values.as_str())?,
                Some(EntryKind::Directory | EntryKind::Other) | None => {
                    let message = format!("the chart has no file `{}`", values.as_str());
                    let help = "values files are relative to the chart directory";
                    self.report(&field, self.charts.severity, Code::ChartNotFound, message, help);
                }
            }
        }
        Ok(())
    }

    fn link(&mut self, field: &str, path: &str) -> io::Result<()> {
        let message = format!("`{path}` leads through a symbolic link");
        let help = "links are not followed, so that nothing outside of the source is read: use the real path";
        self.report(field, Severity::Error, Code::PathEscapes, message, help);
        Ok(())
    }

    fn version(&mut self, root: &dyn Tree, chart: &PathChart, file: &str) -> io::Result<()> {
        let bytes = match root.read(file, MAX_CHART_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Vec::new(),
            Err(error) => return Err(error),
        };
        let documents = yaml::parse(&String::from_utf8_lossy(&bytes)).documents;
        let written = documents.first().and_then(|root| root.get("version")).and_then(Node::as_text);
        let found = written.and_then(|version| Version::parse(version).ok());
        let (Some(found), Some(wanted)) = (found, &chart.chart_version) else { return Ok(()) };
        if found != *wanted {
            let message = format!("chartVersion is {wanted}, but {file} says {found}");
            let help = "write the version of the Chart.yaml: on Flux a release waits until the source shows it";
            self.report("chartVersion", self.charts.severity, Code::ChartVersionMismatch, message, help);
        }
        Ok(())
    }

    fn report(&mut self, field: &str, severity: Severity, code: Code, message: String, help: &str) {
        let violation = Violation::new(code, format!("{}/{field}", self.at), message).help(help);
        self.findings.add(self.package, severity, violation);
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
