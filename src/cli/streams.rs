//! Standard streams and exit codes.

use std::ffi::OsString;
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
    /// Whether somebody looks on at standard error, on a terminal whose lines can be written
    /// over.
    pub live_stderr: bool,
}

/// Whether a person looks on at a stream, with a terminal that does more than print.
pub fn is_live(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    is_terminal && variable("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Whether colours are wanted on a stream: where somebody looks on who has not refused them.
pub fn is_colored(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && is_live(is_terminal, variable)
}

/// A stream whose errors say which one it is. Whoever reads it may stop: what is written
/// from then on goes nowhere, so that the run still comes to its verdict; only a flush
/// tells of it, for what would go on for ever.
pub struct Named<W> {
    stream: W,
    name: &'static str,
    is_closed: bool,
}

impl<W> Named<W> {
    /// Names a stream.
    pub fn new(stream: W, name: &'static str) -> Self {
        Self { stream, name, is_closed: false }
    }

    fn named<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.is_closed |= result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        result.map_err(|error| io::Error::new(error.kind(), format!("cannot write to {}: {error}", self.name)))
    }
}

impl<W: Write> Write for Named<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.stream.write(bytes);
        match self.named(written) {
            Err(_) if self.is_closed => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = if self.is_closed { Err(io::ErrorKind::BrokenPipe.into()) } else { self.stream.flush() };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that has had enough after so many bytes.
    struct Head(usize);

    impl Write for Head {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn colours_are_for_terminals_that_have_them() {
        let with = |name: &'static str, value: &'static str| {
            is_colored(true, move |asked| (asked == name).then(|| OsString::from(value)))
        };
        assert!(with("TERM", "xterm") && with("NO_COLOR", "") && with("OTHER", ""));
        assert!(!with("TERM", "dumb") && !with("NO_COLOR", "1"));
        assert!(!is_colored(false, |_| None));
    }

    #[test]
    fn what_nobody_reads_any_more_is_written_to_nowhere() {
        let mut stream = Named::new(Head(3), "standard output");
        stream.write_all(b"more than that").unwrap();
        stream.write_all(b"and more").unwrap();
        assert_eq!(stream.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
