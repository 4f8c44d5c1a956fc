//! `windlass history`.

use super::output::{self, Output};
use super::{ClusterArguments, block_on};
use crate::cli::{Exit, Streams};
use crate::controller::kinds::Kind;
use crate::report::history;

const EXAMPLES: &str = "\
Examples:
  windlass history kubevirt -n packages   its revisions, the newest last; * runs";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Package.
    name: String,
    /// Another format than the table.
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Output>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let package = cluster.package(&arguments.name).await?;
        let revisions = cluster.revisions(&arguments.name).await?;
        if revisions.is_empty() {
            writeln!(streams.stderr, "Package {} has no revision yet", arguments.name)?;
            return Ok(Exit::Ok);
        }
        if arguments.output.is_some_and(|output| output != Output::Wide) {
            let mut stored = cluster.stored(Kind::PackageRevision, Some(&cluster.namespace), None).await?;
            let names: Vec<_> = revisions.iter().map(|revision| &revision.metadata.name).collect();
            stored.retain(|object| names.contains(&&object.metadata.name));
            stored.sort_by_key(|object| names.iter().position(|name| **name == object.metadata.name));
            output::print(&stored, "packagerevision.windlass.dev", arguments.output, false, streams)?;
            return Ok(Exit::Ok);
        }
        let text = history::write(&package, &revisions, arguments.output == Some(Output::Wide), jiff::Timestamp::now());
        streams.stdout.write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    })
}
