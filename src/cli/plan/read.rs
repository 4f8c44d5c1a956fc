//! The two sides of a plan: their Packages, and what is wrong with them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::Side;
use crate::api::Engine;
use crate::chart::Library;
use crate::cli::{Streams, findings, paths};
use crate::package::check::{Options, check};
use crate::package::content::{ChartContent, ContentError, chart_content};
use crate::package::definition::RelativePath;
use crate::package::diagnostic::{Diagnostic, Severity};
use crate::package::load::{Input, Loaded, LoadedPackage, NamespaceRule, Search};
use crate::package::names::Namespace;
use crate::package::source::Source;
use crate::package::tree::EntryKind;
use crate::package::tree::Tree;
use crate::plan::{Fault, State};
use crate::translate::{Charts, Compilation, Compiled, Refusal, compile};

/// The charts of a side, each read once.
pub struct ChartReader<'t> {
    tree: &'t dyn Tree,
    known: RefCell<BTreeMap<RelativePath, ChartContent>>,
}

impl<'t> ChartReader<'t> {
    pub fn new(tree: &'t dyn Tree) -> Self {
        Self { tree, known: RefCell::default() }
    }

    pub fn read(&self, path: &RelativePath) -> Result<ChartContent, ContentError> {
        if let Some(known) = self.known.borrow().get(path) {
            return Ok(known.clone());
        }
        let content = chart_content(self.tree, path.as_str())?;
        self.known.borrow_mut().insert(path.clone(), content.clone());
        Ok(content)
    }
}

/// The Packages of a side, and what is wrong with their charts.
#[derive(Default)]
pub struct Packages {
    pub compiled: Vec<Compiled>,
    /// Those that leave it open who applies them.
    pub name_no_engine: BTreeSet<Id>,
    faults: Vec<Fault>,
}

impl Packages {
    pub fn state<'a>(&'a self, charts: &'a Charts<'a>, library: &'a Library<'a>) -> State<'a> {
        State { packages: &self.compiled, charts, library, faults: &self.faults }
    }

    /// Compiles a Package; where charts are in the way, without them.
    fn add(&mut self, package: LoadedPackage, options: &Compilation<'_>) -> Result<(), Vec<Refusal>> {
        let (namespace, name) = (package.namespace.clone(), package.name.clone());
        let compiled = match compile(package.clone(), options) {
            Ok(compiled) => compiled,
            Err(refusals) => {
                let compiled = compile(package, &Compilation { charts: None, ..*options })?;
                self.faults.extend(refusals.iter().map(|refusal| Fault {
                    namespace: namespace.clone(),
                    package: name.clone(),
                    message: match &refusal.about.component {
                        Some(component) => format!("component {component}: {}", refusal.message),
                        None => refusal.message.clone(),
                    },
                }));
                compiled
            }
        };
        self.compiled.push(compiled);
        Ok(())
    }
}

/// Namespace and name of a Package.
type Id = (String, String);

/// What was read of a side.
pub struct Read {
    /// Its Packages, without those that have errors.
    pub packages: Packages,
    /// What is wrong.
    findings: Loaded,
    refusals: Vec<Refusal>,
    /// The Packages that have errors.
    broken: BTreeSet<Id>,
    /// Files, by their paths below what is compared, in which something is wrong that is
    /// about no Package.
    broken_files: BTreeSet<String>,
    /// The file of each Package.
    files: BTreeMap<Id, String>,
}

impl Read {
    /// What is said of what was passed over although Packages could be in it.
    pub fn passed_over(&self) -> impl Iterator<Item = &str> {
        self.findings.passed_over()
    }

    /// Whether anything is wrong that must be mended.
    pub fn has_errors(&self) -> bool {
        self.findings.has_errors() || !self.refusals.is_empty()
    }

    /// Compiles the Packages that have no errors.
    fn compile(&mut self, packages: Vec<LoadedPackage>, side: &Side<'_>, charts: &Charts<'_>, engine: Engine) {
        let commit = match side {
            Side::Directory(_) => "0000000000000000000000000000000000000000",
            Side::Revision(revision) => revision.commit(),
        };
        for package in packages {
            let id = id(&package);
            if self.broken.contains(&id) {
                continue;
            }
            let named = package.definition.as_ref().and_then(|definition| definition.engine);
            if named.is_none() {
                self.packages.name_no_engine.insert(id.clone());
            }
            let engine = named.unwrap_or(engine);
            let origin = match engine {
                Engine::Flux => None,
                Engine::Argo => Some((crate::rehearse::scene::REPOSITORY, commit)),
            };
            let compilation = Compilation { engine: Some(engine), origin, origin_stated_in: "", charts: Some(charts) };
            if let Err(refusals) = self.packages.add(package, &compilation) {
                self.refusals.extend(refusals);
                self.broken.insert(id);
            }
        }
    }

    /// Says what is wrong.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_errors(&self, streams: &mut Streams<'_>) -> anyhow::Result<()> {
        findings::write_errors(self.findings.clone(), streams)?;
        for refusal in &self.refusals {
            writeln!(streams.stderr, "error: {refusal}")?;
        }
        Ok(())
    }

    /// Its Packages, with those that have errors as they are on the other side, and the
    /// names of these; files stand for the Packages that could not even be found in them.
    pub fn without_errors(mut self, other: &Self) -> (Packages, Vec<String>) {
        let mut unknown = Vec::new();
        for stand_in in &other.packages.compiled {
            let id = (stand_in.definition.namespace.to_string(), stand_in.definition.name.to_string());
            let is_read = self.files.contains_key(&id) && !self.broken.contains(&id);
            let file = other.files.get(&id);
            if !is_read && (self.broken.contains(&id) || file.is_some_and(|file| self.broken_files.contains(file))) {
                self.packages.compiled.push(stand_in.clone());
                unknown.push(format!("{}/{}", id.0, id.1));
            }
        }
        let gone = self.broken.iter().filter(|id| !other.files.contains_key(*id));
        unknown.extend(gone.map(|(namespace, name)| format!("{namespace}/{name}")));
        let known: BTreeSet<&String> = self.files.values().chain(other.files.values()).collect();
        unknown.extend(self.broken_files.iter().filter(|file| !known.contains(file)).cloned());
        (self.packages, unknown)
    }
}

/// Reads a side.
///
/// # Errors
/// When something cannot be read.
pub fn read(
    side: &Side<'_>,
    shown: &str,
    path: &RelativePath,
    charts: &Charts<'_>,
    engine: Engine,
) -> anyhow::Result<Read> {
    let shown = shown_as(side, shown, path);
    let input = input(side, &shown, path)?;
    let rule = NamespaceRule::Default(Namespace::parse("default")?);
    let mut loaded = paths::read_inputs(input.as_slice(), &rule)?;
    let found = check(&loaded, &Options { engine: Some(engine), ..Options::default() })?;
    loaded.diagnostics.extend(found);
    let relative = |source: usize| {
        let path = loaded.sources.get(source).map_or("", Source::path);
        path.strip_prefix(&shown).unwrap_or(path).trim_start_matches('/').to_owned()
    };
    let errors: Vec<&Diagnostic> =
        loaded.diagnostics.iter().filter(|finding| finding.severity == Severity::Error).collect();
    let files = loaded.packages.iter().map(|package| (id(package), relative(package.source))).collect();
    let broken_files =
        errors.iter().filter(|error| error.package.is_none()).map(|error| relative(error.source)).collect();
    let is_broken = |package: &LoadedPackage| {
        let name = Some(package.name.as_str());
        errors.iter().any(|error| error.source == package.source && error.package.as_deref() == name)
    };
    let broken = loaded.packages.iter().filter(|package| is_broken(package)).map(id).collect();
    let packages = std::mem::take(&mut loaded.packages);
    let mut read =
        Read { packages: Packages::default(), findings: loaded, refusals: Vec::new(), broken, broken_files, files };
    read.compile(packages, side, charts, engine);
    Ok(read)
}

fn shown_as(side: &Side<'_>, shown: &str, path: &RelativePath) -> String {
    match side {
        Side::Directory(_) if path.as_str().is_empty() => shown.to_owned(),
        Side::Directory(_) => format!("{}/{}", shown.trim_end_matches('/'), path.as_str()),
        Side::Revision(_) => format!("{shown}:{}", path.as_str()),
    }
}

/// What is at a path of a side; `None`: nothing.
fn input<'t>(side: &'t Side<'_>, shown: &str, path: &RelativePath) -> anyhow::Result<Option<Input<'t>>> {
    let (tree, path, shown) = (side.tree(), path.as_str().to_owned(), shown.to_owned());
    Ok(match side.kind(&path)? {
        None => None,
        Some(EntryKind::Directory) => Some(Input::Directory { tree, path, shown, search: Search::Repository }),
        Some(EntryKind::File) => Some(Input::File { tree, path, shown }),
        Some(EntryKind::Symlink) => match tree.link_target(&path)? {
            Some(target) => anyhow::bail!("{shown} is a symbolic link: give `{target}` as PATH, for which it stands"),
            None => anyhow::bail!("{shown} is a symbolic link that leads out of what is compared, or nowhere"),
        },
        Some(EntryKind::Submodule | EntryKind::Other) => anyhow::bail!("{shown} is neither a file nor a directory"),
    })
}

fn id(package: &LoadedPackage) -> Id {
    (package.namespace.clone(), package.name.clone())
}
