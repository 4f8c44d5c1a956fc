//! `windlass import`.

mod helmfiles;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::Value;

use super::directory::Directory;
use super::{Exit, Streams, output, paths};
use crate::api::Package;
use crate::import::{
    DEFAULT_NAMESPACE, Document, Imported, Lookup, Options, Severity, Written, argo, cozystack, flux, grouped,
    helmfile, kubepkg,
};
use crate::package::definition::RelativePath;
use crate::package::diagnostic::{Report, Style, write_text};
use crate::package::load::NamespaceRule;
use crate::package::names::Namespace;
use crate::package::source::Source;
use crate::package::tree::{EntryKind, Tree};
use crate::package::version::Version;
use crate::package::yaml;

/// Width that lists of names are wrapped at.
const WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
Examples:
  windlass import cozystack packages/core/platform/sources --version 1.6.2 \\
      --chart-root packages -o out
  kubectl get helmreleases,helmrepositories -A -o yaml | \\
      windlass import flux - --version 1.0.0 -n packages
  windlass import argo apps --version 1.0.0 --chart-root . -o out
  helmfile -e prod build --embed-values | windlass import helmfile - --version 1.0.0 -n packages

Packages go to standard output or to -o; whatever could not be carried over is said on standard
error. Exit code 1: something must be mended before the Packages are used."
)]
pub struct Arguments {
    /// What the input is.
    format: Format,
    /// Files, directories (searched for *.yaml and *.yml) or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Version of Packages whose input has none, and of charts that --chart-root does not tell.
    #[arg(long, value_parser = Version::parse)]
    version: Option<Version>,
    /// Directory that chart paths are relative to; chartVersion is read from the Chart.yaml there, values files that
    /// are not in the chart's directory too.
    #[arg(long, value_name = "DIR")]
    chart_root: Option<PathBuf>,
    /// Variant of a package, instead of the one named default or the first.
    #[arg(long, value_name = "PKG=NAME", value_parser = variant)]
    variant: Vec<(String, String)>,
    /// Namespace of the Packages. Default: that of the sources, HelmReleases or Applications;
    /// of helmfiles `default`.
    #[arg(short, long, value_name = "NS", value_parser = Namespace::parse)]
    namespace: Option<Namespace>,
    /// Write one file per Package, all or none, instead of a stream.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Cozystack PackageSources (cozystack.io).
    Cozystack,
    /// kubepkg PackageSources (kubepkg.dev).
    Kubepkg,
    /// Flux HelmReleases with their sources.
    Flux,
    /// Argo CD Applications; sync waves become the order.
    Argo,
    /// Helmfiles without Go templates, or what `helmfile build` prints.
    Helmfile,
}

fn variant(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(package, name)| !package.is_empty() && !name.is_empty());
    parts.map(|(package, name)| (package.to_owned(), name.to_owned())).ok_or_else(|| "write PKG=NAME".to_owned())
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let unversioned = match arguments.format {
        Format::Cozystack => Some("PackageSources of Cozystack"),
        Format::Flux => Some("HelmReleases"),
        Format::Argo => Some("Applications"),
        Format::Helmfile => Some("helmfiles"),
        Format::Kubepkg => None,
    };
    if let (Some(what), None) = (unversioned, &arguments.version) {
        writeln!(streams.stderr, "error: {what} do not say the version of the whole: give --version")?;
        return Ok(Exit::Usage);
    }
    let Some(mut imported) = import(arguments, streams)? else { return Ok(Exit::Findings) };
    imported.check();
    match &arguments.output {
        Some(_) if imported.packages.is_empty() => {}
        Some(directory) => output::write_files(&files(&imported.packages)?, directory)?,
        None => output::to_stdout(&values(&imported.packages)?, streams)?,
    }
    report(&imported, streams.stderr)?;
    let failed = imported.notes.iter().any(|note| note.severity == Severity::Error);
    Ok(if failed { Exit::Findings } else { Exit::Ok })
}

/// `None` if what is read is no YAML; what is wrong is said.
fn import(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Option<Imported>> {
    let charts = arguments.chart_root.as_ref().map(Directory::new);
    let below_root = |path: &str| charts.as_ref().map_or(Lookup::NotLooked, |root| file(root, path));
    let mut options = Options {
        version: arguments.version.clone(),
        namespace: arguments.namespace.clone(),
        variants: arguments.variant.iter().cloned().collect(),
        chart_version: &|path| charts.as_ref().map_or(Lookup::NotLooked, |root| chart_version(root, path)),
        file: &below_root,
    };
    let importer: fn(&[Document], &Options<'_>) -> Imported = match arguments.format {
        Format::Cozystack => cozystack::import,
        Format::Kubepkg => kubepkg::import,
        Format::Flux => flux::import,
        Format::Argo => argo::import,
        Format::Helmfile => {
            options.file = &helmfiles::values_file;
            return Ok(Some(helmfile::import(&helmfiles::read(&arguments.paths, streams)?, &options)));
        }
    };
    Ok(read(&arguments.paths, streams)?.map(|documents| importer(&documents, &options)))
}

/// Reads all paths. `None` if something in them is no YAML; what is wrong is said.
fn read(from: &[PathBuf], streams: &mut Streams<'_>) -> anyhow::Result<Option<Vec<Document>>> {
    let loaded = paths::read(from, &NamespaceRule::Default(Namespace::parse(DEFAULT_NAMESPACE)?), streams)?;
    let failed = loaded.has_errors();
    let texts: Vec<Arc<str>> = loaded.sources.iter().map(|source| source.text().into()).collect();
    let document = |source: usize, value: Value, start: usize, pointer: String| Document {
        origin: loaded.sources.get(source).map_or("", Source::path).to_owned(),
        value,
        written: texts.get(source).map(|text| Written { text: Arc::clone(text), start, pointer }),
    };
    let mut documents = Vec::new();
    for other in &loaded.others {
        let (source, start) = (other.source, other.span.start);
        match other.value["items"].as_array().filter(|_| other.kind == "List") {
            Some(items) => documents.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| document(source, item.clone(), start, format!("/items/{at}"))),
            ),
            None => documents.push(document(source, other.value.clone(), start, String::new())),
        }
    }
    documents.extend(loaded.packages.iter().map(|package| {
        document(package.source, package.root.to_value(), package.root.locate("").start, String::new())
    }));
    let report = Report::new(loaded.sources, loaded.diagnostics);
    if !report.diagnostics.is_empty() {
        let style = if streams.color_stderr { Style::Colored } else { Style::Plain };
        streams.stderr.write_all(write_text(&report, style).as_bytes())?;
    }
    Ok((!failed).then_some(documents))
}

fn chart_version(root: &Directory, path: &str) -> Lookup {
    let Some(path) = RelativePath::parse(path) else {
        return Lookup::Problem("the chart's path leads out of the source".to_owned());
    };
    let text = match text(root, &format!("{}/Chart.yaml", path.as_str())) {
        Ok(Some(text)) => text,
        Ok(None) => return Lookup::Problem("there is no Chart.yaml at its path below --chart-root".to_owned()),
        Err(error) => return Lookup::Problem(format!("its Chart.yaml cannot be read: {error}")),
    };
    let chart = yaml::parse(&text);
    let version = chart.documents.first().and_then(|chart| chart.get("version")?.as_text().map(str::to_owned));
    version.map_or_else(|| Lookup::Problem("its Chart.yaml has no version".to_owned()), Lookup::Found)
}

fn file(root: &Directory, path: &str) -> Lookup {
    match text(root, path) {
        Ok(Some(text)) => Lookup::Found(text),
        Ok(None) => Lookup::Problem(format!("there is no {path} below --chart-root")),
        Err(error) => Lookup::Problem(format!("{path} cannot be read: {error}")),
    }
}

/// Text of a file, if there is one.
fn text(root: &Directory, path: &str) -> io::Result<Option<String>> {
    match root.kind(path)? {
        Some(EntryKind::File) => {
            let bytes = root.read(path, yaml::MAX_FILE as u64)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => Ok(None),
    }
}

fn values(packages: &[Package]) -> serde_json::Result<Vec<Value>> {
    packages.iter().map(serde_json::to_value).collect()
}

/// One file per Package, `<name>.yaml`, with the namespace where two of different
/// namespaces have one name.
fn files(packages: &[Package]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for package in packages {
        *uses.entry(name(package)).or_default() += 1;
    }
    let mut files = BTreeMap::new();
    for (package, value) in packages.iter().zip(values(packages)?) {
        let namespace = package.metadata.namespace.as_deref().unwrap_or_default();
        let shared = uses.get(name(package)).is_some_and(|uses| *uses > 1);
        let stem = if shared { format!("{namespace}_{}", name(package)) } else { name(package).to_owned() };
        files.insert(format!("{stem}.yaml"), yaml::write::write(&[value])?);
    }
    Ok(files)
}

fn name(package: &Package) -> &str {
    package.metadata.name.as_deref().unwrap_or_default()
}

fn report(imported: &Imported, stderr: &mut dyn Write) -> io::Result<()> {
    let packages: Vec<String> = imported.packages.iter().map(|package| name(package).to_owned()).collect();
    let components = imported.packages.iter().flat_map(|package| {
        package.spec.components.iter().map(move |component| format!("{}/{}", name(package), component.name))
    });
    let components: Vec<String> = components.collect();
    let groups = grouped(&imported.notes);
    for group in &groups {
        writeln!(stderr, "{}: {}", group.severity.as_str(), group.message)?;
        let subjects = summary("packages", &packages, &group.subjects)
            .or_else(|| summary("components", &components, &group.subjects))
            .unwrap_or_else(|| wrapped(&group.subjects));
        writeln!(stderr, "  {subjects}")?;
    }
    let errors = groups.iter().filter(|group| group.severity == Severity::Error).count();
    writeln!(
        stderr,
        "{} with {}; {}, {}",
        count(packages.len(), "package"),
        count(components.len(), "component"),
        count(errors, "error"),
        count(groups.len() - errors, "warning")
    )
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `all 98 packages but a, b` where a long list of names says no more than that.
fn summary(noun: &str, all: &[String], subjects: &[&str]) -> Option<String> {
    if subjects.len() < 10 || subjects.iter().any(|subject| !all.iter().any(|known| known == subject)) {
        return None;
    }
    let missing: Vec<&str> = all.iter().map(String::as_str).filter(|known| !subjects.contains(known)).collect();
    let but = if missing.is_empty() { String::new() } else { format!(" but {}", missing.join(", ")) };
    (missing.len() <= 3).then(|| format!("all {} {noun}{but}", all.len()))
}

fn wrapped(subjects: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for (index, subject) in subjects.iter().enumerate() {
        let separator = if index + 1 < subjects.len() { "," } else { "" };
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&format!("{subject}{separator}")),
            Some(line) if line.len() + subject.len() + 4 <= WIDTH => line.push_str(&format!(" {subject}{separator}")),
            Some(_) | None => lines.push(format!("{subject}{separator}")),
        }
    }
    lines.join("\n  ")
}
