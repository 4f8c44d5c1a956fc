//! Parses arguments, runs a command, turns errors into exit codes.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use windlass::cli::{Arguments, EXIT_IO, Named, Streams, is_colored, is_live, run};

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return told(&error),
    };
    let (mut stdin, mut stderr) = (io::stdin(), io::stderr());
    let is_terminal = io::stdout().is_terminal();
    let mut stdout = Named::new(io::stdout(), "standard output");
    let mut streams = Streams {
        color_stdout: is_colored(is_terminal, |name| std::env::var_os(name)),
        color_stderr: is_colored(stderr.is_terminal(), |name| std::env::var_os(name)),
        live_stderr: is_live(stderr.is_terminal(), |name| std::env::var_os(name)),
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

/// What the arguments ask for instead of a command, such as help, or what is wrong with them.
fn told(error: &clap::Error) -> ExitCode {
    let said = error.print().and_then(|()| io::stdout().flush());
    match said {
        Err(cause) if !error.use_stderr() && cause.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "error: cannot write to standard output: {cause}");
            ExitCode::from(EXIT_IO)
        }
        Ok(()) | Err(_) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_IO)),
    }
}

/// Whoever read our output has read enough: `windlass render … | head` is no error. What
/// was found stays found.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
