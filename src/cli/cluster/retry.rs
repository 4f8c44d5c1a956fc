//! `windlass retry`.

use super::{ClusterArguments, block_on, token};
use crate::api::wellknown::ANNOTATION_RETRY;
use crate::api::{Package, Reason};
use crate::cli::{Exit, Streams};

const EXAMPLES: &str = "\
Examples:
  windlass retry kubevirt -n packages   another attempt at what failed";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Name of the Package.
    name: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// What another attempt is possible after.
const RETRIED: [Reason; 6] = [
    Reason::HookFailed,
    Reason::InstallFailed,
    Reason::UpgradeFailed,
    Reason::UpgradeRolledBack,
    Reason::RollbackFailed,
    // What runs may have failed before the refusal.
    Reason::RollbackRefused,
];

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let package = cluster.package(&arguments.name).await?;
        let name = format!("{}/{}", cluster.namespace, arguments.name);
        let reason = reason(&package);
        if !RETRIED.iter().any(|retried| reason == Some(retried.as_str())) {
            let found = reason.unwrap_or("without a status");
            writeln!(streams.stderr, "error: nothing has failed: Package {name} is {found}")?;
            return Ok(Exit::Findings);
        }
        cluster.annotate(&arguments.name, ANNOTATION_RETRY, &token()).await?;
        writeln!(streams.stdout, "Package {name}: another attempt was asked for")?;
        Ok(Exit::Ok)
    })
}

fn reason(package: &Package) -> Option<&str> {
    let conditions = package.status.as_ref()?.conditions.iter();
    conditions.filter(|condition| condition.type_ == "Ready").map(|condition| condition.reason.as_str()).next()
}
