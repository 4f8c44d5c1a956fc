//! Mending files in place.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::package::diagnostic::{Fix, Report};
use crate::package::source::Source;

/// Writes the fixes of a report into its files and says how many there were.
/// Each file is replaced as a whole or not at all.
pub fn apply(report: &Report) -> anyhow::Result<usize> {
    let mut count = 0;
    for (index, source) in report.sources.iter().enumerate() {
        let found = report.diagnostics.iter().filter(|diagnostic| diagnostic.source == index);
        // One place has one fix, also if several findings ask for it.
        let fixes: BTreeSet<&Fix> = found.filter_map(|diagnostic| diagnostic.fix.as_ref()).collect();
        let mut apart: Vec<&Fix> = Vec::new();
        for fix in fixes {
            if apart.last().is_none_or(|before| before.span.end <= fix.span.start && before.span != fix.span) {
                apart.push(fix);
            }
        }
        if !apart.is_empty() {
            replace(Path::new(source.path()), &mended(source, &apart))?;
            count += apart.len();
        }
    }
    Ok(count)
}

fn mended(source: &Source, fixes: &[&Fix]) -> String {
    let mut text = source.text().to_owned();
    for fix in fixes.iter().rev() {
        text.replace_range(fix.span.start..fix.span.end, &fix.text);
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
