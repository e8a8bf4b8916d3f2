//! `ppt-analysis`: asks captures. `ppt stat …` runs `ppt-analysis stat …`.
//!
//! Only arguments, messages and exit codes live here; the work is done by the libraries. A command is
//! one file in `cmd/`, its arguments one struct in `args.rs`.
#![forbid(unsafe_code)]

mod args;
mod cmd;
mod failure;
mod man;
mod message;
mod numbers;
mod open;
mod run;
mod signals;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::failure::Failure;

fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(args::Args::command)
        .var("PPT_COMPLETE")
        .completer("ppt-analysis")
        .complete();
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            message::usage(&error);
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let signals = signals::take().map_err(|error| Failure::System("set up signals", error));
    let done = signals.and_then(|()| match &args.command {
        args::Command::Stat(args) => cmd::stat::run(args),
        args::Command::Why(args) => cmd::why::run(args),
        args::Command::Graph(args) => cmd::graph::run(args),
        args::Command::WhatIf(args) => cmd::whatif::run(args),
        args::Command::Sql(args) => cmd::sql::run(args),
        args::Command::Export(args) => cmd::export::run(args),
        args::Command::Report(args) => cmd::report::run(args),
        args::Command::Plot(args) => cmd::plot::run(args),
        args::Command::Import(args) => cmd::import::run(args),
        args::Command::Fit(args) => cmd::fit::run(args),
        args::Command::Model(args) => cmd::model::run(args),
        args::Command::Compare(args) => cmd::compare::run(args),
        args::Command::Sync(args) => cmd::sync::run(args),
        args::Command::Lab(args) => cmd::lab::run(args),
        args::Command::Top(args) => cmd::top::run(args),
        args::Command::Man { folder } => man::write(folder),
    });
    done.unwrap_or_else(|failure| failure.tell())
}
