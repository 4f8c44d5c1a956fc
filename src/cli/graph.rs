//! `windlass graph`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Exit, Streams, findings, paths};
use crate::package::check::{Options, check};
use crate::package::graph::{self, Graph};
use crate::package::load::NamespaceRule;
use crate::package::names::Namespace;

const EXAMPLES: &str = "\
Examples:
  windlass graph packages/                                in the order things move
  windlass graph --format dot packages/ | dot -Tsvg > graph.svg
  windlass graph --format mermaid packages/               for Markdown";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files, directories (searched for *.yaml and *.yml) or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How the graph is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Lines for people.
    Text,
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let rule = NamespaceRule::Default(Namespace::parse("default")?);
    let mut loaded = paths::read(&arguments.paths, &rule, streams)?;
    let found = check(&loaded, &Options::default())?;
    loaded.diagnostics.extend(found);
    findings::add_no_package(&arguments.paths, &mut loaded);
    if loaded.has_errors() {
        findings::write_errors(loaded, streams)?;
        return Ok(Exit::Findings);
    }
    let graph = Graph::new(loaded.packages.iter().filter_map(|package| package.definition.as_ref()));
    let text = match arguments.format {
        Format::Text => graph::write_text(&graph),
        Format::Dot => graph::write_dot(&graph),
        Format::Mermaid => graph::write_mermaid(&graph),
    };
    streams.stdout.write_all(text.as_bytes())?;
    Ok(Exit::Ok)
}
