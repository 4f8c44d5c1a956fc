//! `windlass diff`.

use std::path::PathBuf;

use serde_json::Value;

use super::{ClusterArguments, block_on};
use crate::cli::{Exit, Streams, findings, paths};
use crate::package::check::{Options, check};
use crate::package::load::NamespaceRule;
use crate::package::names::Namespace;
use crate::report::diff;

const EXAMPLES: &str = "\
Examples:
  windlass diff packages/ -n packages   what these files would change in the cluster";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Files, directories (searched for *.yaml and *.yml) or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Ends with findings if there are differences, as `diff` and `kubectl diff` do.
pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    block_on(async {
        let cluster = arguments.cluster.connect().await?;
        let rule = NamespaceRule::Default(Namespace::parse(&cluster.namespace)?);
        let mut loaded = paths::read(&arguments.paths, &rule, streams)?;
        let found = check(&loaded, &Options::default())?;
        loaded.diagnostics.extend(found);
        findings::add_no_package(&arguments.paths, &mut loaded);
        if loaded.has_errors() {
            findings::write_errors(loaded, streams)?;
            return Ok(Exit::Findings);
        }
        let mut differs = false;
        for package in &loaded.packages {
            let live = cluster.package_as_written(&package.namespace, &package.name).await?;
            let spec = |package: &Value| package.get("spec").and_then(Value::as_object).cloned();
            let wanted = spec(&package.root.to_value()).unwrap_or_default();
            let name = format!("{}/{}", package.namespace, package.name);
            let text = diff::write(&name, live.as_ref().and_then(spec).as_ref(), &wanted);
            differs |= !text.is_empty();
            streams.stdout.write_all(text.as_bytes())?;
        }
        Ok(if differs { Exit::Findings } else { Exit::Ok })
    })
}
