//! Checks that need more than one Package, an engine, chart directories, or
//! that only warn.

mod charts;
mod conditions;
mod edges;
mod engine;
mod expressions;
mod fields;
mod metadata;
mod names;
mod requirements;
mod scalars;
mod size;
#[cfg(test)]
mod tests;

use std::io;

use super::diagnostic::{Diagnostic, MOST_FINDINGS, Severity};
use super::load::{Loaded, LoadedPackage};
use super::tree::Tree;
use super::violation::{Code, Violation};
use crate::api::Engine;
use crate::chart::Library;

/// What a set of Packages is checked against.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Engine of the Packages that name none.
    pub engine: Option<Engine>,
    /// Where the charts of `path` components are.
    pub charts: Option<Charts<'a>>,
    /// Looks into charts for what one component needs of another.
    pub library: Option<&'a Library<'a>>,
}

/// The root of the source, below which chart directories are.
#[derive(Clone, Copy)]
pub struct Charts<'a> {
    /// What may be the root; a chart is taken from the first that has it.
    pub roots: &'a [&'a dyn Tree],
    /// How bad an absent chart is: an error if the root was named, a warning if
    /// it was guessed.
    pub severity: Severity,
}

/// Checks everything that was loaded; what loading itself found is not repeated.
///
/// # Errors
/// When chart directories cannot be read.
pub fn check(loaded: &Loaded, options: &Options<'_>) -> io::Result<Vec<Diagnostic>> {
    let mut findings = Findings { loaded, found: Vec::new() };
    for package in &loaded.packages {
        let before = findings.found.len();
        let engine = package.package.as_ref().and_then(|typed| typed.spec.engine).or(options.engine);
        scalars::check(package, &mut findings);
        metadata::check(package, &mut findings);
        fields::check(package, &mut findings);
        engine::check(package, engine, &mut findings);
        expressions::check(package, &mut findings);
        size::check(package, &mut findings);
        if let Some(charts) = &options.charts {
            charts::check(package, charts, engine, &mut findings)?;
        }
        findings.cut_short(package, before);
    }
    names::check(&mut findings);
    requirements::check(&mut findings);
    if let Some(library) = options.library {
        edges::check(library, &mut findings);
    }
    Ok(findings.found)
}

/// What was found so far.
struct Findings<'a> {
    loaded: &'a Loaded,
    found: Vec<Diagnostic>,
}

impl Findings<'_> {
    fn error(&mut self, package: &LoadedPackage, violation: Violation) {
        self.add(package, Severity::Error, violation);
    }

    fn warning(&mut self, package: &LoadedPackage, violation: Violation) {
        self.add(package, Severity::Warning, violation);
    }

    fn add(&mut self, package: &LoadedPackage, severity: Severity, violation: Violation) {
        self.found.push(package.diagnostic(severity, violation));
    }

    /// Leaves the worst of what was found of a Package since there were `before`
    /// findings.
    fn cut_short(&mut self, package: &LoadedPackage, before: usize) {
        let Some(found) = self.found.get_mut(before..).filter(|found| found.len() > MOST_FINDINGS) else { return };
        found.sort_by_key(|finding| finding.severity);
        self.found.truncate(before + MOST_FINDINGS);
        let message = format!("more than {MOST_FINDINGS} findings in this Package");
        self.warning(package, Violation::new(Code::TooLarge, "", message).help("mend those that are shown first"));
    }

    /// `file:line` of a place in a Package, to point at from elsewhere.
    fn place(&self, package: &LoadedPackage, pointer: &str) -> String {
        self.loaded.sources.get(package.source).map_or_else(String::new, |source| {
            format!("{}:{}", source.path(), source.position(package.root.locate(pointer).start).line)
        })
    }
}
