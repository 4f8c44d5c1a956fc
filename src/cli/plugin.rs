//! `windlass plugin`.

use super::{Exit, Streams};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print the manifests of the application directory (Argo CD runs this).
    Generate,
    /// Print the parameters that `generate` understands (Argo CD runs this).
    Parameters,
}

pub fn run(_command: &Command, _streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
