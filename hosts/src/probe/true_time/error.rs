//! Why a source of true time gives no reading.

use std::io;
use std::path::PathBuf;

use ppt_text::escaped;
use rustix::io::Errno;

/// Longest part of a foreign line that is shown.
const SHOWN: usize = 80;

/// Why a source of true time is unusable, or why a reading was dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeSourceError {
    /// The program is missing.
    #[error("there is no program {}", program.display())]
    NoProgram {
        /// The program.
        program: PathBuf,
    },
    /// The program cannot be run.
    #[error("cannot run {}: {cause}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// The reason.
        cause: Errno,
    },
    /// The program took too long and was ended.
    #[error("{} did not end within {seconds} s", program.display())]
    Slow {
        /// The program.
        program: PathBuf,
        /// The limit.
        seconds: u64,
    },
    /// The program reported an error, for example because chronyd does not run.
    #[error("{} cannot ask chronyd: it says \"{}\"", program.display(), escaped(output))]
    Unanswered {
        /// The program.
        program: PathBuf,
        /// The message of the program.
        output: String,
    },
    /// chronyd has no source, or its last one is gone.
    #[error("chronyd is not synchronised to any source")]
    Unsynchronised,
    /// The file is missing.
    #[error("there is no file {}", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: Errno,
    },
    /// The file has the wrong type.
    #[error("{} is neither a file nor a FIFO", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// A line cannot be parsed.
    #[error("a line of {} is not understood: \"{}\"", of.display(), escaped(line))]
    Line {
        /// The file or the program.
        of: PathBuf,
        /// The beginning of the line.
        line: String,
    },
    /// An edge that cannot be assigned to a second.
    #[error("an edge of {} is {off_ms} ms from a second of CLOCK_REALTIME, which may be wrong by 400 ms at most", path.display())]
    UnclearSecond {
        /// The file of edges.
        path: PathBuf,
        /// The distance to the nearest second.
        off_ms: i64,
    },
    /// An edge during a step of CLOCK_REALTIME.
    #[error("CLOCK_REALTIME was stepped around an edge of {}", path.display())]
    Stepped {
        /// The file of edges.
        path: PathBuf,
    },
}

impl TimeSourceError {
    /// A file that cannot be read.
    pub fn file(path: impl Into<PathBuf>, cause: &io::Error) -> Self {
        let path = path.into();
        match cause.kind() {
            io::ErrorKind::NotFound => Self::NoFile { path },
            _ => Self::File { path, cause: errno(cause) },
        }
    }

    /// A program that cannot be run.
    pub fn program(program: impl Into<PathBuf>, cause: &io::Error) -> Self {
        let program = program.into();
        match cause.kind() {
            io::ErrorKind::NotFound => Self::NoProgram { program },
            _ => Self::Program { program, cause: errno(cause) },
        }
    }

    /// A line that cannot be parsed.
    pub fn line(of: impl Into<PathBuf>, line: &[u8]) -> Self {
        Self::Line { of: of.into(), line: shown(line) }
    }
}

/// The beginning of foreign text.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned()
}

fn errno(cause: &io::Error) -> Errno {
    Errno::from_io_error(cause).unwrap_or(Errno::IO)
}
