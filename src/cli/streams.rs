//! Standard streams and exit codes.

use std::io::{self, Read, Write};
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

/// A stream whose errors say which one it is.
pub struct Named<W> {
    /// The stream.
    pub stream: W,
    /// What it is called.
    pub name: &'static str,
}

impl<W> Named<W> {
    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| io::Error::new(error.kind(), format!("cannot write to {}: {error}", self.name)))
    }
}

impl<W: Write> Write for Named<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.named(flushed)
    }
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
    /// There are changes, which is neither good nor bad.
    Changes,
}

/// Exit code when something could not be read or written.
pub const EXIT_IO: u8 = 3;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::Changes => 4,
        })
    }
}
