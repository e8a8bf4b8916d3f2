//! `ppt lab` and `ppt sync`: arguments, messages and exit codes. `ppt-hosts` does the work.
//!
//! Nothing here has a query engine, so that a program with these commands is small enough for every host.
//! The host where an experiment is started runs `ppt sql` and its kin for checks and reports.

#![forbid(unsafe_code)]

mod args;
mod failure;
mod lab;
mod signals;
mod sync;

pub use crate::args::HostsCommand;
use crate::failure::LabFailure;
use ppt_text::exit::ExitStatus;

/// Runs a command, and returns the exit status. Messages go to stderr. `answers`: this program answers
/// questions about captures, too.
pub fn run(command: &HostsCommand, answers: bool) -> ExitStatus {
    let taken = signals::take().map_err(|error| LabFailure::System("set up signals", error));
    let done = taken.and_then(|()| match command {
        HostsCommand::Sync(args) => sync::run(args),
        HostsCommand::Lab(args) => lab::run(args, answers),
    });
    done.unwrap_or_else(|failure| failure.report())
}
