//! `windlass rollback`.

use super::{ClusterArguments, block_on, token};
use crate::api::wellknown::ANNOTATION_ROLLBACK_TO;
use crate::api::{Package, PackageRevision};
use crate::cli::{Exit, Streams};

const EXAMPLES: &str = "\
Examples:
  windlass rollback kubevirt -n packages          to what ran before
  windlass rollback kubevirt -n packages --to 3   to revision 3 (see `windlass history`)

The controller refuses it unless every revision since then says rollback.safe.
What runs then is held until the spec changes.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Package.
    name: String,
    /// Number of the revision to return to [default: the newest that succeeded before what is being, or was last, attempted].
    #[arg(long, value_name = "N")]
    to: Option<u64>,
    /// Even if a revision since then is not safe to roll back: data may be lost.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let package = cluster.package(&arguments.name).await?;
        let revisions = cluster.revisions(&arguments.name).await?;
        let target = match target(&package, &revisions, arguments.to) {
            Ok(target) => target,
            Err(message) => {
                writeln!(streams.stderr, "error: {message}")?;
                return Ok(Exit::Findings);
            }
        };
        let prefix = if arguments.force { "force-" } else { "" };
        let request = format!("{}@{prefix}{}", target.spec.number, token());
        cluster.annotate(&arguments.name, ANNOTATION_ROLLBACK_TO, &request).await?;
        let (number, version) = (target.spec.number, &target.spec.version);
        let name = format!("{}/{}", cluster.namespace, arguments.name);
        writeln!(streams.stdout, "Package {name}: revision {number} ({version}) was asked for")?;
        Ok(Exit::Ok)
    })
}

/// The revision of a number, or the one that succeeded before what runs.
fn target<'a>(
    package: &Package,
    revisions: &'a [PackageRevision],
    to: Option<u64>,
) -> Result<&'a PackageRevision, String> {
    let succeeded = |revision: &&PackageRevision| revision.status.as_ref().is_some_and(|status| status.succeeded);
    let Some(number) = to else {
        let status = package.status.as_ref();
        let verified = status.and_then(|status| status.revision);
        let attempted = status.and_then(|status| status.attempted.as_ref()).map(|attempted| attempted.revision);
        // An upgrade that has failed, or is under way, is taken back to what succeeded last.
        let before = verified.max(attempted);
        let earlier = |revision: &&PackageRevision| before.is_some_and(|before| revision.spec.number < before);
        let found = revisions.iter().rev().filter(earlier).find(succeeded);
        return found.ok_or_else(|| "there is no earlier revision that succeeded".to_owned());
    };
    let known = || revisions.iter().map(|found| found.spec.number.to_string()).collect::<Vec<_>>().join(", ");
    match revisions.iter().find(|revision| revision.spec.number == number) {
        None => Err(format!("there is no revision {number}; there are: {}", known())),
        Some(found) if !succeeded(&found) => {
            Err(format!("revision {number} has never succeeded, so there is nothing to return to"))
        }
        Some(found) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(runs: u64, attempted: u64) -> Package {
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "Package", "metadata": {"name": "app"},
            "spec": {"version": "1.0.0", "components": []}, "status": {"revision": runs, "attempted": {"version": "1.0.0", "revision": attempted}},
        }))
        .unwrap()
    }

    fn revision(number: u64, succeeded: bool) -> PackageRevision {
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "PackageRevision", "metadata": {"name": "app"},
            "spec": {
                "package": "app", "number": number, "version": "1.0.0", "timeout": "1m", "retries": 0, "engine": "flux",
            },
            "status": {"succeeded": succeeded},
        }))
        .unwrap()
    }

    #[test]
    fn without_a_number_it_is_the_one_that_succeeded_before_what_runs() {
        let revisions =
            [revision(1, true), revision(2, true), revision(3, false), revision(4, true), revision(5, false)];
        assert_eq!(target(&package(4, 4), &revisions, None).unwrap().spec.number, 2);
        assert_eq!(target(&package(4, 5), &revisions, None).unwrap().spec.number, 4, "a failed upgrade is taken back");
        assert_eq!(
            target(&package(1, 1), &revisions, None),
            Err("there is no earlier revision that succeeded".to_owned())
        );
    }

    #[test]
    fn what_never_succeeded_cannot_be_returned_to() {
        let revisions = [revision(1, true), revision(2, false)];
        assert!(target(&package(1, 1), &revisions, Some(2)).unwrap_err().contains("never succeeded"));
        assert_eq!(target(&package(1, 1), &revisions, Some(7)).unwrap_err(), "there is no revision 7; there are: 1, 2");
    }
}
