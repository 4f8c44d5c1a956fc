//! Parses arguments, runs a command, turns errors into exit codes.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use windlass::cli::{Arguments, EXIT_IO, Named, Streams, run};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (mut stdin, mut stderr) = (io::stdin(), io::stderr());
    let is_terminal = io::stdout().is_terminal();
    let mut stdout = Named::new(io::stdout(), "standard output");
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut streams = Streams {
        color_stdout: !plain && is_terminal,
        color_stderr: !plain && stderr.is_terminal(),
        stdin: &mut stdin,
        stdout: &mut stdout,
        stderr: &mut stderr,
    };
    let outcome = run(arguments, &mut streams);
    let flushed = streams.stdout.flush().map_err(anyhow::Error::from);
    match (outcome, flushed) {
        (Ok(exit), Ok(())) => exit.into(),
        (Ok(exit), Err(error)) if is_broken_pipe(&error) => exit.into(),
        (Err(error), _) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        (Err(error), _) | (Ok(_), Err(error)) => {
            let _ = writeln!(stderr, "error: {error:#}");
            ExitCode::from(EXIT_IO)
        }
    }
}

/// Whoever read our output has read enough: `windlass render … | head` is no error. What
/// was found stays found.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
