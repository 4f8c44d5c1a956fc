//! `windlass completion`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Exit, Streams};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  source <(windlass completion bash)")]
pub struct Arguments {
    /// The shell.
    shell: Shell,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "windlass", &mut script);
    streams.stdout.write_all(&script)?;
    Ok(Exit::Ok)
}
