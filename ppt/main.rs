//! `ppt` attaches to running programs, captures their frames, and turns captures into tables.
//!
//! This binary has only arguments, messages and exit codes. The libraries do the work.

mod args;
mod choice;
mod cmd;
mod code;
mod complete;
mod descriptors;
mod exit;
mod failure;
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
mod rounds;
mod session;
mod signals;
mod stdout;
mod usage;
mod viewer;
mod weights;
mod wording;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use exit::ExitStatus;

fn main() -> ExitCode {
    if !privileges::borrowed() {
        complete::answer();
    }
    let parsed = help::command().try_get_matches();
    let args = match parsed.and_then(|matches| args::Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(error) => match help_asked(&error) {
            Some(words) => args::Args { command: args::Command::Other(words) },
            None => return wrong(&error).into(),
        },
    };
    if privileges::borrowed() {
        report::error(
            code::Code::SetUserId,
            "this ppt is set-user-ID or set-group-ID, so anybody could use its owner's rights; \
             clear that bit (chmod ug-s), and use sudo, or give CAP_SYS_PTRACE to a copy that only \
             a group may run",
        );
        return ExitStatus::FAILED.into();
    }
    if let args::Command::ServeMetrics(args) = args.command {
        return cmd::serve_metrics::run(&args).into();
    }
    if let args::Command::RestoreWeights(args) = args.command {
        return cmd::restore_weights::run(&args).into();
    }
    signals::ignore_file_size();
    // The next command, whichever it is, removes what a killed ppt left behind.
    ppt_agent::sweep(&ppt_agent::System::default());
    let outcome = match args.command {
        args::Command::Attach(args) => cmd::attach::run(&args),
        args::Command::Run(args) => cmd::run::run(&args),
        args::Command::With(args) => cmd::with::run(&args),
        args::Command::Detach(args) => cmd::detach::run(&args),
        args::Command::List(args) => cmd::list::run(&args),
        args::Command::Enable(args) => cmd::choose::run(&args, true),
        args::Command::Disable(args) => cmd::choose::run(&args, false),
        args::Command::Trigger(args) => cmd::trigger::run(&args),
        args::Command::Top(args) => cmd::top::run(&args),
        args::Command::Dump(args) => cmd::dump::run(&args),
        args::Command::Info(args) => cmd::info::run(&args),
        args::Command::Doctor(args) => cmd::doctor::run(&args),
        args::Command::Explain(args) => cmd::explain::run(&args),
        args::Command::Completion(args) => cmd::completion::run(&args),
        args::Command::Man(args) => cmd::man::run(&args),
        args::Command::Demo(args) => cmd::demo::run(&args),
        args::Command::Other(words) if words.first().is_some_and(|word| word == "view") => {
            cmd::view::run(&words)
        }
        args::Command::Other(words) if words.first().is_some_and(|word| word == "whatif") => {
            cmd::whatif::run(&words)
        }
        args::Command::Other(words) => cmd::other::run(&words),
        args::Command::ServeMetrics(_) | args::Command::RestoreWeights(_) => {
            unreachable!("it has been done")
        }
    };
    let status = outcome.unwrap_or_else(|failure| {
        failure.report();
        failure.status()
    });
    status.into()
}

/// `ppt help WORD` for a word of another program, in that program's notation.
fn help_asked(error: &clap::Error) -> Option<Vec<OsString>> {
    let mut words = std::env::args_os().skip(1);
    let (help, word) = (words.next()?, words.next()?);
    let unknown = error.kind() == clap::error::ErrorKind::InvalidSubcommand;
    (unknown && help == "help" && args::program(&word).is_some())
        .then(|| vec![word, "--help".into()])
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
