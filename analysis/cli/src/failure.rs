//! Why a command failed.

use std::io;
use std::process::ExitCode;

use ppt_import::ImportError;
use ppt_live::CaptureError;
use ppt_output::OutputError;
use ppt_query::QueryError;
use ppt_report::ReportError;

use crate::{message, signals};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Report(#[from] ReportError),
    /// An input that cannot be a capture.
    #[error("{0}: {1}")]
    Import(String, #[source] ImportError),
    /// A frame file with errors: its name, and what is wrong.
    #[error("{1}{0}: the frame file has errors")]
    FrameFile(String, String),
    #[error("{0}: {1}")]
    Capture(String, #[source] CaptureError),
    /// A capture that was read while it was written.
    #[error("{0}: {1}")]
    Watch(String, String),
    /// The command line asks for what there is not.
    #[error("{0}")]
    Usage(String),
    #[error("cannot read {0}: {1}")]
    Read(String, #[source] io::Error),
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
    #[error("could not {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl Failure {
    /// An output that could not be written: `name` says which.
    pub(crate) fn writing(name: &str) -> impl Fn(io::Error) -> Failure + '_ {
        |error| Failure::Write(name.to_owned(), error)
    }

    /// The name under which `ppt explain` knows it.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Failure::Query(error) => error.code(),
            Failure::Output(error) => error.code(),
            Failure::Report(error) => error.code(),
            Failure::Import(_, error) => error.code(),
            Failure::FrameFile(..) => "import-frames",
            Failure::Capture(_, error) => error.code(),
            Failure::Watch(..) => "cannot-read",
            Failure::Usage(_) => "usage",
            Failure::Read(..) => "cannot-read",
            Failure::Write(..) => "cannot-write",
            Failure::System(..) => "system",
        }
    }

    fn is_usage(&self) -> bool {
        match self {
            Failure::Usage(_) => true,
            Failure::Query(error) => error.is_usage(),
            Failure::Report(error) => error.is_usage(),
            _ => false,
        }
    }

    /// Says it, and what the command ends with.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            // Whoever read it has enough.
            Failure::Write(_, error) | Failure::Query(QueryError::Output(error))
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                return ExitCode::SUCCESS;
            }
            Failure::Query(QueryError::Cancelled)
            | Failure::Report(ReportError::Query(QueryError::Cancelled)) => {
                return signals::interrupted();
            }
            Failure::Usage(text) => message::note(text),
            other => message::error(other.code(), other),
        }
        ExitCode::from(if self.is_usage() { 2 } else { 1 })
    }
}
