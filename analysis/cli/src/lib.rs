//! The commands of `ppt` that answer questions about captures: arguments, messages and exit codes. The
//! libraries do the work.
//!
//! A command is one file in `cmd/`, its arguments one file in `args/`. Questions are answered in a process
//! of their own (`supervisor.rs`, `question.rs`), which can be ended, and has a limit of memory
//! ([`Heap`]). Both processes are `ppt`, which gives up its privileges before it calls this library.

mod answer;
mod args;
mod cmd;
mod failure;
mod heap;
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

use std::path::Path;
use std::process::Stdio;

pub use crate::args::{Question, TopOptions, ViewArgs, local};
use crate::failure::Failure;
pub use crate::heap::Heap;
use crate::memory::Memory;
use crate::question_settings::QuestionSettings;
use crate::signals::SignalPipe;
use crate::supervisor::ChildProcess;
use ppt_text::exit::ExitStatus;

/// Answers a question, and returns the exit status. Messages go to stderr.
pub fn ask(question: &Question) -> ExitStatus {
    if let (None, Question::Sql(sql)) = (question_settings::settings(), question)
        && cmd::sql::is_prompt(sql)
    {
        let memory = Memory::new(question.memory());
        return ended(take_signals().and_then(|wakes| cmd::sql::prompt::run(memory, &wakes)));
    }
    let command = SupervisedCommand {
        memory: question.memory(),
        follows: question.follows(),
        ..SupervisedCommand::default()
    };
    command.run(|| perform(question))
}

/// Shows what happens in a capture while it is written; `-` is standard input.
pub fn top(capture: &Path, options: &TopOptions) -> ExitStatus {
    let command = SupervisedCommand { draws: true, ..SupervisedCommand::default() };
    command.run(|| cmd::top::run(capture, options))
}

/// Shows captures in a browser, until a signal.
pub fn view(args: &ViewArgs) -> ExitStatus {
    ended(cmd::view::run(args))
}

/// Whether this process answers for another one, which waits for it.
pub fn is_question() -> bool {
    question_settings::settings().is_some()
}

/// A command that a process of its own does.
#[derive(Debug, Default)]
struct SupervisedCommand {
    /// The value of `--memory`.
    memory: Option<usize>,
    /// Whether it finishes its work after a signal.
    follows: bool,
    /// Whether it draws on the terminal.
    draws: bool,
}

impl SupervisedCommand {
    /// Starts this program again with the same arguments, and waits. In that process, does the work.
    fn run(&self, work: impl FnOnce() -> Result<ExitStatus, Failure> + Send) -> ExitStatus {
        ended(match question_settings::settings() {
            Some(settings) => question::answer(settings, work),
            None => self.supervise(),
        })
    }

    fn supervise(&self) -> Result<ExitStatus, Failure> {
        let wakes = take_signals()?;
        let memory = Memory::new(self.memory);
        let settings = QuestionSettings::new(memory, false);
        let mut process = ChildProcess::start(settings, Stdio::inherit())?;
        if self.follows {
            process.be_patient();
        }
        let end = process.wait(&wakes);
        if end.is_violent() {
            process.terminal.restore(self.draws);
        }
        // Removes the temporary files first, because the command may end by a signal.
        drop(process);
        Ok(end.report(memory))
    }
}

fn take_signals() -> Result<SignalPipe, Failure> {
    SignalPipe::take().map_err(|error| Failure::System("set up signals", error))
}

fn ended(done: Result<ExitStatus, Failure>) -> ExitStatus {
    done.unwrap_or_else(|failure| failure.report())
}

fn perform(question: &Question) -> Result<ExitStatus, Failure> {
    match question {
        Question::Stat(args) => cmd::stat::run(args),
        Question::Why(args) => cmd::why::run(args),
        Question::Graph(args) => cmd::graph::run(args),
        Question::WhatIf(args) => cmd::whatif::run(args),
        Question::Sql(args) => cmd::sql::run(args),
        Question::Export(args) => cmd::export::run(args),
        Question::Report(args) => cmd::report::run(args),
        Question::Plot(args) => cmd::plot::run(args),
        Question::Import(args) => cmd::import::run(args),
        Question::Fit(args) => cmd::fit::run(args),
        Question::Model(args) => cmd::model::run(args),
        Question::Compare(args) => cmd::compare::run(args),
    }
}
