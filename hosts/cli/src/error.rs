//! Why a command failed.

use ppt_text::exit::ExitStatus;
use std::fmt::Display;
use std::io;

use ppt_hosts::lab::LabError;
use ppt_output::OutputError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The output cannot be made.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A message with its code.
    #[error("{text}")]
    Coded {
        /// The code for `ppt explain`.
        code: &'static str,
        /// What is wrong.
        text: String,
        /// Whether the command line is.
        is_usage: bool,
    },
    /// The command line lacks something.
    #[error("{0}")]
    Usage(String),
    /// A file could not be written.
    #[error("cannot write {0}: {1}")]
    Write(String, #[source] io::Error),
    /// A system call failed.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl HostsError {
    fn coded(code: &'static str, is_usage: bool, error: impl Display) -> HostsError {
        HostsError::Coded { code, text: error.to_string(), is_usage }
    }

    /// The clocks of other hosts cannot be read.
    pub(crate) fn no_sync(error: impl Display) -> HostsError {
        HostsError::coded("no-sync", false, error)
    }

    /// The key is not usable.
    pub(crate) fn sync_key(error: impl Display) -> HostsError {
        HostsError::coded("sync-key", true, error)
    }

    /// The experiment did not start.
    pub(crate) fn lab(error: LabError) -> HostsError {
        match error {
            LabError::Plan { .. }
            | LabError::Exists(_)
            | LabError::Manifest { .. }
            | LabError::File { what: "read", .. } => HostsError::coded("lab-file", true, error),
            LabError::NoAnalysis => HostsError::coded("no-analysis", false, error),
            other => HostsError::no_lab(other),
        }
    }

    /// The experiment names a host that does not exist.
    pub(crate) fn no_lab(error: impl Display) -> HostsError {
        HostsError::coded("no-lab", false, error)
    }

    /// An experiment with cells that failed, or without its report.
    pub(crate) fn lab_failed(text: String) -> HostsError {
        HostsError::coded("lab-failed", false, text)
    }

    /// The code for `ppt explain`.
    pub fn code(&self) -> &'static str {
        match self {
            HostsError::Output(error) => error.code(),
            HostsError::Coded { code, .. } => code,
            HostsError::Usage(_) => "usage",
            HostsError::Write(..) => "cannot-write",
            HostsError::System(..) => "system",
        }
    }

    /// The exit status.
    pub fn status(&self) -> ExitStatus {
        let is_usage =
            matches!(self, HostsError::Usage(_) | HostsError::Coded { is_usage: true, .. });
        ExitStatus::of_failure(is_usage)
    }

    /// Whether the reader of a pipe has closed it, which is no error.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, HostsError::Write(_, error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
