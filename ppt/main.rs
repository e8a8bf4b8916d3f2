//! `ppt` attaches to running programs, captures their frames, turns captures into tables, and answers
//! questions about them.
//!
//! This binary has only arguments, messages and exit codes. The libraries do the work. Without its features
//! it only records: `answers` are the questions, `hosts` are `ppt lab` and `ppt sync`.

#[cfg(feature = "answers")]
mod answers;
mod args;
mod choice;
mod cmd;
mod code;
mod complete;
mod descriptors;
mod failure;
mod foreign;
mod help;
mod json;
mod live;
mod measure;
mod metrics;
mod preload;
// The man page of pptc is generated from these arguments.
#[allow(dead_code)]
mod pptc_args;
mod privileges;
mod probes;
mod report;
#[cfg(feature = "answers")]
mod rounds;
mod session;
mod signals;
mod stdout;
mod usage;
#[cfg_attr(
    not(feature = "answers"),
    allow(dead_code, reason = "without answers, nothing is shown")
)]
mod viewer;
mod weights;
mod wording;

use std::process::ExitCode;

use clap::FromArgMatches;
use ppt_text::exit::ExitStatus;

use crate::args::{Args, Command};
use crate::failure::CommandResult;

#[cfg(feature = "answers")]
#[global_allocator]
static HEAP: ppt_analysis::Heap = ppt_analysis::Heap;

fn main() -> ExitCode {
    if !privileges::borrowed() {
        complete::answer();
    }
    let done = match parsed() {
        Err(error) => Ok(wrong(&error)),
        Ok(_) if privileges::borrowed() => {
            report::error(
                code::Code::SetUserId,
                "this ppt is set-user-ID or set-group-ID, so anybody could use its owner's rights; \
                 clear that bit (chmod ug-s), and use sudo, or give CAP_SYS_PTRACE to a copy that only \
                 a group may run",
            );
            Ok(ExitStatus::FAILED)
        }
        Ok(command) => run(command),
    };
    foreign::report_unanswered(|| {});
    let status = done.unwrap_or_else(|failure| {
        failure.report();
        failure.status()
    });
    status.into()
}

fn parsed() -> Result<Command, clap::Error> {
    #[cfg(feature = "answers")]
    if let Some(args) = cmd::whatif::asked(&std::env::args_os().skip(1).collect::<Vec<_>>())? {
        return Ok(Command::LiveWhatIf(args));
    }
    let matches = help::command().try_get_matches()?;
    Ok(Args::from_arg_matches(&matches)?.command)
}

fn run(command: Command) -> CommandResult {
    match &command {
        Command::ServeMetrics(args) => return Ok(cmd::serve_metrics::run(args)),
        Command::RestoreWeights(args) => return Ok(cmd::restore_weights::run(args)),
        Command::ReadForeign => return Ok(foreign::run()),
        _ => {}
    }
    ppt_foreign::enable(foreign::command);
    signals::ignore_file_size();
    if !is_question() {
        // The next command, whichever it is, removes what a killed ppt left behind.
        ppt_agent::sweep(&ppt_agent::System::default());
    }
    match command {
        Command::Attach(args) => cmd::attach::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::With(args) => cmd::with::run(&args),
        Command::Detach(args) => cmd::detach::run(&args),
        Command::List(args) => cmd::list::run(&args),
        Command::Enable(args) => cmd::choose::run(&args, true),
        Command::Disable(args) => cmd::choose::run(&args, false),
        Command::Trigger(args) => cmd::trigger::run(&args),
        Command::Dump(args) => cmd::dump::run(&args),
        Command::Info(args) => cmd::info::run(&args),
        Command::Doctor(args) => cmd::doctor::run(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::Completion(args) => cmd::completion::run(&args),
        Command::Man(args) => cmd::man::run(&args),
        #[cfg(feature = "answers")]
        Command::Top(args) => cmd::top::run(&args),
        #[cfg(feature = "answers")]
        Command::View(args) => cmd::view::run(args),
        #[cfg(feature = "answers")]
        Command::Question(question) => answers::ask(&question),
        #[cfg(feature = "answers")]
        Command::LiveWhatIf(args) => cmd::whatif::run(&args),
        #[cfg(feature = "answers")]
        Command::Demo(args) => cmd::demo::run(&args),
        #[cfg(feature = "hosts")]
        Command::Hosts(command) => cmd::hosts::run(&command),
        Command::Other(words) => cmd::other::run(&words),
        Command::ServeMetrics(_) | Command::RestoreWeights(_) | Command::ReadForeign => {
            unreachable!("it has been done")
        }
    }
}

/// Whether this process answers for another ppt, which waits for it.
fn is_question() -> bool {
    #[cfg(feature = "answers")]
    return ppt_analysis::is_question();
    #[cfg(not(feature = "answers"))]
    return false;
}

/// Prints clap's message, and returns its exit code. `ppt run` uses another code than 2, which may
/// be its command's, as env(1) does.
fn wrong(error: &clap::Error) -> ExitStatus {
    usage::print(error);
    let of_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    match error.use_stderr() {
        true if of_run => ExitStatus::RUN_FAILED,
        true => ExitStatus::USAGE,
        false => ExitStatus::DONE,
    }
}
