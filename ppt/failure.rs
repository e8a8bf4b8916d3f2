//! Why a command came to nothing.

use std::process::ExitCode;

use ppt_agent::AgentError;

use crate::{exit, report};

pub(crate) enum Failure {
    /// What was asked for is not there.
    Usage(String),
    Failed(String),
}

impl Failure {
    /// Says why, and gives the exit code that fits.
    pub(crate) fn tell(self) -> ExitCode {
        let (message, code) = match self {
            Self::Usage(message) => (message, exit::usage()),
            Self::Failed(message) => (message, exit::FAILED),
        };
        report::error(message);
        code
    }

    /// The message alone.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Usage(message) | Self::Failed(message) => message,
        }
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::NoSuchBuffer { .. } => Self::Usage(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A system call that failed at `what`.
pub(crate) fn failed(what: &'static str) -> impl Fn(nix::Error) -> Failure {
    move |error| Failure::Failed(format!("cannot {what}: {error}"))
}
