//! Standard streams and exit codes.

use std::io::{Read, Write};
use std::process::ExitCode;

/// The streams of one run. All output goes through them: manifests and results
/// to `stdout`, everything said about them to `stderr`.
pub struct Streams<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
    /// Whether colours are wanted on standard output.
    pub color_stdout: bool,
    /// Whether colours are wanted on standard error.
    pub color_stderr: bool,
}

/// How a run ends when everything could be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing to complain of.
    Ok,
    /// There are findings, or something was refused.
    Findings,
    /// The arguments make no sense.
    Usage,
}

/// Exit code when something could not be read or written.
pub const EXIT_IO: u8 = 3;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
        })
    }
}
