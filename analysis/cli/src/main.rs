//! `ppt-analysis`: asks captures. `ppt stat …` runs `ppt-analysis stat …`.
//!
//! Only arguments, messages and exit codes live here; the work is done by the libraries. A command is
//! one file in `cmd/`, its arguments one file in `args/`. Questions are answered in a process of
//! their own (`supervisor.rs`, `question.rs`), which can be ended, and has a limit of memory (`heap.rs`).

mod answer;
mod args;
mod cmd;
mod failure;
mod heap;
mod man;
mod memory;
mod message;
mod numbers;
mod open;
mod panicked;
mod question;
mod question_settings;
mod run;
mod scratch;
mod signals;
mod supervisor;

use std::process::{ExitCode, Stdio};

use clap::{CommandFactory, Parser};

use crate::failure::Failure;
use crate::memory::Memory;
use crate::question_settings::QuestionSettings;
use crate::signals::SignalPipe;
use crate::supervisor::ChildProcess;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;

fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(args::Args::command)
        .var("PPT_COMPLETE")
        .completer("ppt-analysis")
        .complete();
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            message::usage(&error.to_string(), || drop(error.print()));
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let done = match question_settings::settings() {
        Some(settings) => question::answer(settings, || perform(&args.command)),
        None if args.command.is_question() => supervise(&args),
        None => perform(&args.command),
    };
    done.unwrap_or_else(|failure| failure.report())
}

/// Runs the command in a process of its own.
fn supervise(args: &args::Args) -> Result<ExitCode, Failure> {
    let wakes = SignalPipe::take().map_err(|error| Failure::System("set up signals", error))?;
    let memory = Memory::new(args.command.memory());
    if let args::Command::Sql(sql) = &args.command
        && cmd::sql::is_prompt(sql)
    {
        return cmd::sql::prompt::run(memory, &wakes);
    }
    let mut question = ChildProcess::start(QuestionSettings::new(memory, false), Stdio::inherit())?;
    if args.command.follows() {
        question.be_patient();
    }
    let end = question.wait(&wakes);
    if end.is_violent() {
        question.terminal.restore(matches!(args.command, args::Command::Top(_)));
    }
    // Removes the temporary files first, because the command may end by a signal.
    drop(question);
    Ok(end.report(memory))
}

fn perform(command: &args::Command) -> Result<ExitCode, Failure> {
    match command {
        args::Command::Stat(args) => cmd::stat::run(args),
        args::Command::Why(args) => cmd::why::run(args),
        args::Command::Graph(args) => cmd::graph::run(args),
        args::Command::WhatIf(args) => cmd::whatif::run(args),
        args::Command::Sql(args) => cmd::sql::run(args),
        args::Command::Export(args) => cmd::export::run(args),
        args::Command::Report(args) => cmd::report::run(args),
        args::Command::View(args) => cmd::view::run(args),
        args::Command::Plot(args) => cmd::plot::run(args),
        args::Command::Import(args) => cmd::import::run(args),
        args::Command::Fit(args) => cmd::fit::run(args),
        args::Command::Model(args) => cmd::model::run(args),
        args::Command::Compare(args) => cmd::compare::run(args),
        args::Command::Top(args) => cmd::top::run(args),
        args::Command::Man { folder } => man::write(folder),
    }
}
