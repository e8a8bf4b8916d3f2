//! `pptc example.frame` turns frame files into source code.
//!
//! ```text
//! $ pptc example.frame
//! $ ls
//! example.c  example.frame  example.h
//! ```

#![forbid(unsafe_code)]

mod fmt;
mod functions;
mod pptc_args;
mod stdout;
mod translate;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use pptc_args::{Args, Command, Print};

fn main() -> ExitCode {
    CompleteEnv::with_factory(Args::command).var("PPT_COMPLETE").completer("pptc").complete();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            usage::print(&error);
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let status = match &args.command {
        Some(Command::Fmt(args)) => fmt::run(args),
        Some(Command::Functions(args)) => functions::run(args),
        None => translate::run(&args),
    };
    status.into()
}
