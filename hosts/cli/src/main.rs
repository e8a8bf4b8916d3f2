//! `ppt-lab`: experiments over several hosts. `ppt lab …` runs `ppt-lab lab …`.
//!
//! Only arguments, messages and exit codes live here; `ppt-hosts` does the work. This program has no
//! query engine, so it is small enough to be on every host. `ppt-analysis` answers the checks of an
//! experiment, on the host where the experiment is started.

#![forbid(unsafe_code)]

mod args;
mod failure;
mod lab;
mod man;
mod signals;
mod sync;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use ppt_text::message;

use crate::args::{Args, Command};
use crate::failure::LabFailure;

fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(Args::command)
        .var("PPT_COMPLETE")
        .completer("ppt-lab")
        .complete();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            message::usage(&error.to_string(), || drop(error.print()));
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let done = signals::take()
        .map_err(|error| LabFailure::System("set up signals", error))
        .and_then(|()| perform(&args.command));
    done.unwrap_or_else(|failure| failure.report())
}

fn perform(command: &Command) -> Result<ExitCode, LabFailure> {
    match command {
        Command::Sync(args) => sync::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Man { folder } => man::write(folder),
    }
}
