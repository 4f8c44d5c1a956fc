//! `windlass rollback`.

use super::{ClusterArguments, block_on, token};
use crate::api::wellknown::ANNOTATION_ROLLBACK_TO;
use crate::cli::{Exit, Streams};
use crate::report::rollback::{self, Asked};
use crate::rollout::RevisionView;
use crate::rollout::request::FORCE;

const EXAMPLES: &str = "\
Examples:
  windlass rollback kubevirt -n packages              to what ran before
  windlass rollback kubevirt -n packages --to 3       to revision 3 (see `windlass history`)
  windlass rollback kubevirt -n packages --dry-run    whether it would be refused, and what would go back

It is refused unless every revision since then says rollback.safe.
What runs then is held until the spec changes.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Package.
    name: String,
    /// Number of the revision to return to [default: the newest that succeeded before what runs, or is being or was last attempted].
    #[arg(long, value_name = "N", value_parser = number)]
    to: Option<u64>,
    /// Even if a revision since then is not safe to roll back: data may be lost.
    #[arg(long)]
    force: bool,
    /// Only say what would go back, or why it would be refused.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "it takes the number of a revision, as `windlass history` lists them".to_owned())
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let package = cluster.package(&arguments.name).await?;
        let revisions = cluster.revisions(&arguments.name).await?;
        let revisions: Vec<RevisionView> = revisions.into_iter().map(RevisionView::from).collect();
        let name = format!("{}/{}", cluster.namespace, arguments.name);
        let target = match rollback::judge(&package, &revisions, Asked { to: arguments.to, force: arguments.force }) {
            Ok(target) => target,
            Err(refused) => {
                writeln!(streams.stderr, "error: Package {name}: {}\nTo do: {}", refused.message, refused.remedy)?;
                return Ok(Exit::Findings);
            }
        };
        if package.spec.suspend == Some(true) {
            writeln!(
                streams.stderr,
                "note: the Package is suspended: nothing goes back before spec.suspend is lifted"
            )?;
        }
        if arguments.dry_run {
            streams.stdout.write_all(rollback::preview(&package, &revisions, target).as_bytes())?;
            return Ok(Exit::Ok);
        }
        let prefix = if arguments.force { format!("{FORCE}-") } else { String::new() };
        let request = format!("{}@{prefix}{}", target.number(), token());
        cluster.annotate(&arguments.name, ANNOTATION_ROLLBACK_TO, &request).await?;
        writeln!(
            streams.stdout,
            "Package {name}: revision {} ({}) was asked for",
            target.number(),
            target.spec.version
        )?;
        Ok(Exit::Ok)
    })
}
