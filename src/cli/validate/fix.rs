//! Mending files in place.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::package::diagnostic::{Diagnostic, Report};
use crate::package::source::Source;

/// Writes the fixes of a report into its files and says how many there were.
/// Each file is replaced as a whole or not at all.
pub fn apply(report: &Report) -> anyhow::Result<usize> {
    let mut count = 0;
    for (index, source) in report.sources.iter().enumerate() {
        let found = report.diagnostics.iter().filter(|diagnostic| diagnostic.source == index);
        let mut fixes: Vec<&Diagnostic> = found.filter(|diagnostic| diagnostic.fix.is_some()).collect();
        // One place has one fix, also if two rules found it.
        fixes.sort_by_key(|diagnostic| diagnostic.span);
        fixes.dedup_by_key(|diagnostic| diagnostic.span);
        if !fixes.is_empty() {
            replace(Path::new(source.path()), &mended(source, &fixes))?;
            count += fixes.len();
        }
    }
    Ok(count)
}

fn mended(source: &Source, fixes: &[&Diagnostic]) -> String {
    let mut text = source.text().to_owned();
    for diagnostic in fixes.iter().rev() {
        if let Some(fix) = &diagnostic.fix {
            text.replace_range(diagnostic.span.start..diagnostic.span.end, fix);
        }
    }
    text
}

fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    // A link stays a link: what it stands for is replaced.
    let path = path.canonicalize().with_context(failed)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.windlass", std::process::id()));
    let temporary: PathBuf = path.with_file_name(name);
    let written = write_new(&temporary, &path, text);
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.with_context(failed)
}

fn write_new(temporary: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::File::create_new(temporary)?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, path)
}
