//! The commands of `ppt` that answer questions about captures: arguments, messages and exit codes. The
//! libraries do the work.
//!
//! A command is one file in `cmd/`, its arguments one file in `args/`. Questions are answered in a process
//! of their own (`supervisor.rs`, `question.rs`), which can be ended, and has a limit of memory
//! ([`Heap`]). Both processes are `ppt`, which gives up its privileges before it calls this library.

mod answer;
mod args;
mod cmd;
mod error;
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
mod supervisor;

use std::path::Path;
use std::process::Stdio;

pub use crate::args::{Question, TopOptions, ViewArgs, local};
pub use crate::error::AnswerError;
pub use crate::heap::Heap;
use crate::memory::Memory;
use crate::question_settings::QuestionSettings;
use crate::supervisor::ChildProcess;
use ppt_signals::SignalPipe;
use ppt_text::exit::ExitStatus;

/// Answers a question, and returns the exit status.
///
/// # Errors
/// There is no answer. What is known besides is on stderr.
pub fn ask(question: &Question) -> Result<ExitStatus, AnswerError> {
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
///
/// # Errors
/// It cannot be shown.
pub fn top(capture: &Path, options: &TopOptions) -> Result<ExitStatus, AnswerError> {
    let command = SupervisedCommand { draws: true, ..SupervisedCommand::default() };
    command.run(|| cmd::top::run(capture, options))
}

/// Shows captures in a browser, until a signal.
///
/// # Errors
/// They cannot be shown.
pub fn view(args: &ViewArgs) -> Result<ExitStatus, AnswerError> {
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
    fn run(
        &self,
        work: impl FnOnce() -> Result<ExitStatus, AnswerError> + Send,
    ) -> Result<ExitStatus, AnswerError> {
        ended(match question_settings::settings() {
            Some(settings) => question::answer(settings, work),
            None => self.supervise(),
        })
    }

    fn supervise(&self) -> Result<ExitStatus, AnswerError> {
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

fn take_signals() -> Result<SignalPipe, AnswerError> {
    SignalPipe::take().map_err(|error| AnswerError::System("set up signals", error))
}

/// What is left of a result for the caller: some errors are none to its user.
fn ended(done: Result<ExitStatus, AnswerError>) -> Result<ExitStatus, AnswerError> {
    match done {
        Err(error) if error.is_closed_pipe() => Ok(ExitStatus::DONE),
        Err(error) if error.is_cancelled() => Ok(ppt_signals::interrupted()),
        done => done,
    }
}

fn perform(question: &Question) -> Result<ExitStatus, AnswerError> {
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
