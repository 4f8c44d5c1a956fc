//! `windlass history`.

use kube::api::DynamicObject;

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
        if let Some(format) = arguments.output.and_then(Output::machine) {
            let mut stored = cluster.stored(Kind::PackageRevision, Some(&cluster.namespace), None).await?;
            let spec = |object: &DynamicObject, field: &str| object.data.pointer(&format!("/spec/{field}")).cloned();
            stored.retain(|object| spec(object, "package").is_some_and(|package| package == *arguments.name));
            stored.sort_by_key(|object| spec(object, "number").and_then(|number| number.as_u64()));
            if stored.is_empty() {
                return none_yet(&arguments.name, streams);
            }
            output::print(&stored, "packagerevision.windlass.dev", format, false, streams)?;
            return Ok(Exit::Ok);
        }
        let revisions = cluster.revisions(&arguments.name).await?;
        if revisions.is_empty() {
            return none_yet(&arguments.name, streams);
        }
        let text = history::write(&package, &revisions, arguments.output == Some(Output::Wide), jiff::Timestamp::now());
        streams.stdout.write_all(text.as_bytes())?;
        Ok(Exit::Ok)
    })
}

fn none_yet(name: &str, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    writeln!(streams.stderr, "Package {name} has no revision yet")?;
    Ok(Exit::Ok)
}
