//! `windlass plugin doctor`.

use std::fs;
use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::{Exit, Streams, findings, paths};
use crate::package::diagnostic::Severity;
use crate::package::load::NamespaceRule;
use crate::package::names::Namespace;
use crate::package::yaml::MAX_FILE;
use crate::plugin::doctor::{
    Entry, EntryKind, Examination, Machine, examine_manifests, examine_sidecar, write_json, write_text,
};

const EXAMPLES: &str = "\
Examples:
  kubectl exec -n argocd deploy/argocd-repo-server -c windlass -- \\
      /usr/local/bin/windlass plugin doctor               the sidecar, from within
  kubectl kustomize argocd | windlass plugin doctor -     what is going to be installed
  kubectl get -n argocd deployments,configmaps,applications -o yaml | windlass plugin doctor -
                                                          what is installed; also if the sidecar
                                                          does not start

It reads files and changes nothing. Inside the sidecar it knows whether files and sockets are there
and who it runs as, over manifests what the containers of the pod share: use both.

Exit status: 0 nothing keeps the plugin from working, 1 something does, 2 usage, 3 something cannot
be read.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Manifests of the installation: files, directories or - for standard input. Without them the
    /// container that this runs in is looked at.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where the container's files are.
    #[arg(long, value_name = "DIR", default_value = "/", conflicts_with = "paths")]
    root: PathBuf,
    /// How it is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let examination = if arguments.paths.is_empty() {
        examine_sidecar(&Container { root: arguments.root.clone() })
    } else {
        match manifests(&arguments.paths, streams)? {
            Some(examination) => examination,
            None => return Ok(Exit::Findings),
        }
    };
    let text = match arguments.format {
        Format::Text => write_text(&examination),
        Format::Json => format!("{:#}\n", write_json(&examination)),
    };
    streams.stdout.write_all(text.as_bytes())?;
    Ok(if examination.count(Severity::Error) == 0 { Exit::Ok } else { Exit::Findings })
}

/// `None` if the files have errors, which are shown.
fn manifests(paths: &[PathBuf], streams: &mut Streams<'_>) -> anyhow::Result<Option<Examination>> {
    let rule = NamespaceRule::Default(Namespace::parse("default")?);
    let loaded = paths::read(paths, &rule, streams)?;
    // A broken Package beside them is for others to tell.
    if loaded.others.is_empty() && loaded.has_errors() {
        findings::write_errors(loaded, streams)?;
        return Ok(None);
    }
    let manifests: Vec<_> = loaded.others.iter().map(|manifest| &manifest.value).collect();
    Ok(Some(examine_manifests(&manifests)))
}

/// The container that this runs in, or one whose files are below a directory.
struct Container {
    root: PathBuf,
}

impl Container {
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

impl Machine for Container {
    fn read(&self, path: &str) -> Option<String> {
        let file = fs::File::open(self.place(path)).ok()?;
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(file, MAX_FILE as u64), &mut text).ok()?;
        Some(text)
    }

    fn look(&self, path: &str) -> Option<Entry> {
        let metadata = fs::metadata(self.place(path)).ok()?;
        let (mode, user, group) = rights(&metadata);
        Some(Entry { kind: kind(&metadata), mode, user, group })
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }
}

#[cfg(unix)]
fn rights(metadata: &fs::Metadata) -> (u32, u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.mode(), metadata.uid().into(), metadata.gid().into())
}

#[cfg(not(unix))]
fn rights(_metadata: &fs::Metadata) -> (u32, u64, u64) {
    (0o777, 0, 0)
}

#[cfg(unix)]
fn is_socket(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    metadata.file_type().is_socket()
}

#[cfg(not(unix))]
fn is_socket(_metadata: &fs::Metadata) -> bool {
    false
}

fn kind(metadata: &fs::Metadata) -> EntryKind {
    match (metadata.is_dir(), metadata.is_file(), is_socket(metadata)) {
        (true, ..) => EntryKind::Directory,
        (_, true, _) => EntryKind::File,
        (_, _, true) => EntryKind::Socket,
        _ => EntryKind::Other,
    }
}
