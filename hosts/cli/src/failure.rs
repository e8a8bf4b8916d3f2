//! Why a command failed.

use ppt_text::exit::ExitStatus;
use std::fmt::Display;
use std::io;

use ppt_hosts::lab::LabError;
use ppt_output::OutputError;
use ppt_text::message;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LabFailure {
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A message with its code, and whether the command line was wrong.
    #[error("{text}")]
    Coded { code: &'static str, text: String, is_usage: bool },
    /// The command line lacks something.
    #[error("{0}")]
    Usage(String),
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl LabFailure {
    fn coded(code: &'static str, is_usage: bool, error: impl Display) -> LabFailure {
        LabFailure::Coded { code, text: error.to_string(), is_usage }
    }

    /// The clocks of other hosts cannot be read.
    pub(crate) fn no_sync(error: impl Display) -> LabFailure {
        LabFailure::coded("no-sync", false, error)
    }

    /// The key is not usable.
    pub(crate) fn sync_key(error: impl Display) -> LabFailure {
        LabFailure::coded("sync-key", true, error)
    }

    /// The experiment did not start.
    pub(crate) fn lab(error: LabError) -> LabFailure {
        match error {
            LabError::Plan { .. }
            | LabError::Exists(_)
            | LabError::Manifest { .. }
            | LabError::File { what: "read", .. } => LabFailure::coded("lab-file", true, error),
            LabError::NoAnalysis => LabFailure::coded("no-analysis", false, error),
            other => LabFailure::no_lab(other),
        }
    }

    /// The experiment names a host that does not exist.
    pub(crate) fn no_lab(error: impl Display) -> LabFailure {
        LabFailure::coded("no-lab", false, error)
    }

    /// An experiment with cells that failed, or without its report.
    pub(crate) fn lab_failed(text: String) -> LabFailure {
        LabFailure::coded("lab-failed", false, text)
    }

    /// Reports the failure and returns the exit status.
    pub(crate) fn report(&self) -> ExitStatus {
        let (code, is_usage) = match self {
            // A reader that closed the pipe has seen enough.
            LabFailure::Write(_, error) if error.kind() == io::ErrorKind::BrokenPipe => {
                return ExitStatus::DONE;
            }
            LabFailure::Usage(text) => {
                message::note(text);
                return ExitStatus::USAGE;
            }
            LabFailure::Output(error) => (error.code(), false),
            LabFailure::Coded { code, is_usage, .. } => (*code, *is_usage),
            LabFailure::Write(..) => ("cannot-write", false),
            LabFailure::System(..) => ("system", false),
        };
        message::error(code, self);
        ExitStatus::of_failure(is_usage)
    }
}
