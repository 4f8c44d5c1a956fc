//! `windlass graph`.

use super::{Exit, Streams};

#[derive(Debug, clap::Args)]
pub struct Arguments {}

pub fn run(_arguments: &Arguments, _streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
