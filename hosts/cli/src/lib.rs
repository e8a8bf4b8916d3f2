//! `ppt lab` and `ppt sync`: arguments, messages and exit codes. `ppt-hosts` does the work.
//!
//! Nothing here has a query engine, so that a program with these commands is small enough for every host.
//! The host where an experiment is started runs `ppt sql` and its kin for checks and reports.

#![forbid(unsafe_code)]

mod args;
mod error;
mod lab;
mod sync;

use ppt_text::exit::ExitStatus;

pub use crate::args::HostsCommand;
pub use crate::error::HostsError;

/// Runs a command, and returns the exit status. `answers`: this program answers questions about captures, too.
///
/// # Errors
/// It failed. What is known besides is on stderr.
pub fn run(command: &HostsCommand, answers: bool) -> Result<ExitStatus, HostsError> {
    ppt_signals::take().map_err(|error| HostsError::System("set up signals", error))?;
    let done = match command {
        HostsCommand::Sync(args) => sync::run(args),
        HostsCommand::Lab(args) => lab::run(args, answers),
    };
    match done {
        Err(error) if error.is_closed_pipe() => Ok(ExitStatus::DONE),
        done => done,
    }
}
