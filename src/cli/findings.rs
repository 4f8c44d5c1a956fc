//! What is wrong with the files of a command, said by all commands alike.

use std::path::PathBuf;

use super::Streams;
use crate::package::diagnostic::{Diagnostic, Report, Severity, Style, write_text};
use crate::package::load::Loaded;
use crate::package::source::{Source, Span};
use crate::package::violation::Code;

/// What to look for where no Package was found.
pub const WHAT_A_PACKAGE_IS: &str = "a Package begins with `apiVersion: windlass.dev/v1alpha1` and `kind: Package`";

/// Adds an error where there is no Package at all: a run that looked at nothing
/// must not look like one that found nothing.
pub fn add_no_package(paths: &[PathBuf], loaded: &mut Loaded) {
    if !loaded.packages.is_empty() || loaded.has_errors() {
        return;
    }
    if loaded.sources.is_empty() {
        let path = paths.first().map_or_else(String::new, |path| path.display().to_string());
        loaded.sources.push(Source::new(path, ""));
    }
    loaded.diagnostics.push(Diagnostic {
        code: Code::NoPackage,
        severity: Severity::Error,
        source: 0,
        span: Span::default(),
        package: None,
        component: None,
        message: "there is no Package here".into(),
        help: WHAT_A_PACKAGE_IS.into(),
        fix: None,
    });
}

/// Writes the errors to standard error. What only warns is for `validate` to say.
///
/// # Errors
/// When they cannot be written.
pub fn write_errors(mut loaded: Loaded, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    loaded.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    let report = Report::new(loaded.sources, loaded.diagnostics);
    let style = if streams.color_stderr { Style::Colored } else { Style::Plain };
    streams.stderr.write_all(write_text(&report, style).as_bytes())?;
    Ok(())
}
