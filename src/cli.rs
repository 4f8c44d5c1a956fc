//! The command line: arguments, streams, exit codes. One module per command.

mod charts;
mod cluster;
mod completion;
mod controller;
mod crds;
mod directory;
mod engine;
mod findings;
mod graph;
mod import;
mod man;
mod output;
mod paths;
mod plan;
mod plugin;
mod rehearse;
mod render;
mod streams;
mod validate;

use clap::{Parser, Subcommand};

pub use streams::{EXIT_IO, Exit, Named, Streams, is_colored, is_live};

/// Ordered upgrades of software made of several Helm releases, on Flux and Argo CD.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, propagate_version = true, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check Package files and say what to mend.
    Validate(validate::Arguments),
    /// Translate Packages into HelmReleases or Applications.
    Render(render::Arguments),
    /// Show what depends on what.
    Graph(graph::Arguments),
    /// Show what a commit does, step by step, before it is merged.
    Plan(plan::Arguments),
    /// Play an installation or upgrade on a simulated cluster.
    Rehearse(rehearse::Arguments),
    /// Turn other formats into Packages.
    Import(import::Arguments),
    /// Show where the Packages of a cluster stand.
    Status(cluster::status::Arguments),
    /// Say what holds a Package up, down to the root, and what to do.
    Why(cluster::why::Arguments),
    /// List the revisions of a Package.
    History(cluster::history::Arguments),
    /// Show what files would change in a cluster.
    Diff(cluster::diff::Arguments),
    /// Ask for another attempt at what failed.
    Retry(cluster::retry::Arguments),
    /// Ask for an earlier revision.
    Rollback(cluster::rollback::Arguments),
    /// Serve as Argo CD's config management plugin.
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// Print the CustomResourceDefinitions, or a JSON Schema for editors.
    Crds(crds::Arguments),
    /// Run the controller in a cluster.
    Controller(controller::Arguments),
    /// Print a completion script for a shell.
    Completion(completion::Arguments),
    /// Print the man page, or write those of all commands.
    Man(man::Arguments),
}

/// Runs one command.
///
/// # Errors
/// When something could not be read or written; findings are not errors but
/// [`Exit::Findings`].
pub fn run(arguments: Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    match arguments.command {
        Command::Validate(arguments) => validate::run(&arguments, streams),
        Command::Render(arguments) => render::run(&arguments, streams),
        Command::Graph(arguments) => graph::run(&arguments, streams),
        Command::Plan(arguments) => plan::run(&arguments, streams),
        Command::Rehearse(arguments) => rehearse::run(&arguments, streams),
        Command::Import(arguments) => import::run(&arguments, streams),
        Command::Status(arguments) => cluster::status::run(&arguments, streams),
        Command::Why(arguments) => cluster::why::run(&arguments, streams),
        Command::History(arguments) => cluster::history::run(&arguments, streams),
        Command::Diff(arguments) => cluster::diff::run(&arguments, streams),
        Command::Retry(arguments) => cluster::retry::run(&arguments, streams),
        Command::Rollback(arguments) => cluster::rollback::run(&arguments, streams),
        Command::Plugin(command) => plugin::run(&command, streams),
        Command::Crds(arguments) => crds::run(&arguments, streams),
        Command::Controller(arguments) => controller::run(&arguments, streams),
        Command::Completion(arguments) => completion::run(&arguments, streams),
        Command::Man(arguments) => man::run(&arguments, streams),
    }
}
