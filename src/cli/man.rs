//! `windlass man`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_mangen::Man;

use super::{Exit, Streams, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  windlass man | man -l -
  windlass man ~/.local/share/man/man1 && man windlass-plan")]
pub struct Arguments {
    /// Write the pages of all commands into this directory, instead of printing the main one.
    directory: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let mut command = super::Arguments::command().disable_help_subcommand(true);
    command = command.mut_subcommands(|command| command.disable_help_subcommand(true));
    command.build();
    let mut pages = BTreeMap::new();
    match &arguments.directory {
        Some(directory) => {
            collect(&command, &mut pages)?;
            output::write_files(&pages, directory)?;
            writeln!(streams.stderr, "{} pages in {}", pages.len(), directory.display())?;
        }
        None => streams.stdout.write_all(page(&command)?.as_bytes())?,
    }
    Ok(Exit::Ok)
}

/// A page for a command and for each below it, by name of file.
fn collect(command: &clap::Command, pages: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    for subcommand in command.get_subcommands() {
        collect(subcommand, pages)?;
    }
    pages.insert(Man::new(command.clone()).get_filename(), page(command)?);
    Ok(())
}

fn page(command: &clap::Command) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let source = format!("windlass {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).manual("Windlass").render(&mut text)?;
    Ok(String::from_utf8(text)?)
}
