//! `windlass history`.

use super::{ClusterArguments, block_on};
use crate::cli::{Exit, Streams};
use crate::report::history;

const EXAMPLES: &str = "\
Examples:
  windlass history kubevirt -n packages   its revisions, the newest last; * runs";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Package.
    name: String,
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
        let text = history::write(&package, &revisions, jiff::Timestamp::now());
        streams.stdout.write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    })
}
