//! Why a command failed.

use std::io;

use ppt_agent::AgentError;
use ppt_listener::ListenerError;
use ppt_output::OutputError;
use ppt_text::exit::ExitStatus;

use crate::code::Code;
use crate::{report, wording};

#[derive(Debug)]
pub(crate) struct Failure {
    code: &'static str,
    message: String,
    status: ExitStatus,
}

/// The result of every command.
pub(crate) type CommandResult = Result<ExitStatus, Failure>;

impl Failure {
    /// The command line asks for something that does not exist or makes no sense.
    pub(crate) fn usage(code: impl Into<&'static str>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), status: ExitStatus::USAGE }
    }

    pub(crate) fn failed(code: impl Into<&'static str>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), status: ExitStatus::FAILED }
    }

    /// Several failures with different causes. The code is that of the first one.
    pub(crate) fn all(errors: &[AgentError]) -> Self {
        let lines: Vec<String> = errors.iter().map(wording::message).collect();
        let code = errors.first().map_or(Code::NothingToAttach.into(), AgentError::code);
        Self::failed(code, lines.join("\n"))
    }

    /// The capture `name` could not begin.
    pub(crate) fn listener(name: &str, error: ListenerError) -> Self {
        match error {
            ListenerError::Output(error) => match error.downcast::<OutputError>() {
                Ok(error) => error.into(),
                Err(error) => Self::listening(name, &ListenerError::Output(error)),
            },
            error => Self::listening(name, &error),
        }
    }

    fn listening(name: &str, error: &ListenerError) -> Self {
        let remedy = match error {
            ListenerError::Thread(_) => {
                "\n  ppt reached a limit of processes or of memory (ulimit -u, ulimit -v, or those of \
                 its container or service): raise it"
            }
            _ => "",
        };
        Self::failed(error.code(), format!("{name}: {error}{remedy}"))
    }

    /// Prints the message.
    pub(crate) fn report(&self) {
        match self.code {
            // The message says all that there is to say.
            "usage" => report::note(&self.message),
            code => report::error(code, &self.message),
        }
    }

    /// The failure as one of `ppt run`, whose other exit codes are the command's.
    pub(crate) fn of_run(self) -> Self {
        Self { status: ExitStatus::RUN_FAILED, ..self }
    }

    /// Writing to stdout failed.
    pub(crate) fn stdout(error: io::Error) -> Self {
        Self::failed(Code::CannotWrite, format!("cannot write to stdout: {error}"))
    }

    /// The exit code.
    pub(crate) fn status(&self) -> ExitStatus {
        self.status
    }

    /// The code of the message.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// The message without its code.
    pub(crate) fn message(self) -> String {
        self.message
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let status = match error {
            AgentError::NoSuchBuffer { .. } => ExitStatus::USAGE,
            _ => ExitStatus::FAILED,
        };
        Self { code: error.code(), message: wording::message(&error), status }
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::failed(error.code(), error.to_string())
    }
}

#[cfg(feature = "answers")]
impl From<ppt_analysis::AnswerError> for Failure {
    fn from(error: ppt_analysis::AnswerError) -> Self {
        Self { code: error.code(), message: error.message(), status: error.status() }
    }
}

#[cfg(feature = "hosts")]
impl From<ppt_lab::HostsError> for Failure {
    fn from(error: ppt_lab::HostsError) -> Self {
        Self { code: error.code(), message: error.to_string(), status: error.status() }
    }
}

impl From<ListenerError> for Failure {
    fn from(error: ListenerError) -> Self {
        Self::failed(error.code(), error.to_string())
    }
}

/// The error of a system call that failed in the operation `what`.
pub(crate) fn failed(what: &'static str) -> impl Fn(nix::Error) -> Failure {
    move |error| Failure::failed(Code::System, format!("cannot {what}: {error}"))
}
