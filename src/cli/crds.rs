//! `windlass crds`.

use super::{Exit, Streams};
use crate::api::reference::markdown;
use crate::api::schema::{crds, package_json_schema};
use crate::package::yaml::write::write;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  windlass crds | kubectl apply --server-side -f -
  windlass crds --json-schema > package.schema.json

Many editors take the schema from a comment at the top of a Package:
  # yaml-language-server: $schema=package.schema.json")]
pub struct Arguments {
    /// Print the JSON Schema of a Package document instead.
    #[arg(long)]
    json_schema: bool,
    /// Print the reference of every field in Markdown instead.
    #[arg(long, conflicts_with = "json_schema")]
    markdown: bool,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let text = if arguments.json_schema {
        let mut text = serde_json::to_string_pretty(&package_json_schema())?;
        text.push('\n');
        text
    } else if arguments.markdown {
        markdown()
    } else {
        write(&crds())?
    };
    streams.stdout.write_all(text.as_bytes())?;
    Ok(Exit::Ok)
}
