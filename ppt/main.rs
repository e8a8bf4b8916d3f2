//! `ppt`: attach to running programs, capture their frames, turn captures into tables.
//!
//! Only arguments, messages and exit codes live here; the work is done by the libraries.

mod args;
mod cmd;
mod exit;
mod measure;
mod output;
mod parts;
mod privileges;
mod report;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    if privileges::borrowed() {
        report::error(
            "this ppt is set-user-ID or set-group-ID, and would do for anybody what only its owner \
             may: clear that bit (chmod ug-s), and use sudo, or give CAP_SYS_PTRACE to a copy that \
             only a group may run",
        );
        return exit::FAILED;
    }
    // What a killed ppt may have left behind goes with the next command, whichever it is.
    ppt_agent::sweep(&ppt_agent::System::default());
    match args.command {
        args::Command::Attach(args) => cmd::attach::run(&args),
        args::Command::Detach(args) => cmd::detach::run(&args),
        args::Command::List(args) => cmd::list::run(&args),
        args::Command::Dump(args) => cmd::dump::run(&args),
        args::Command::Info(args) => cmd::info::run(&args),
        args::Command::Doctor(args) => cmd::doctor::run(&args),
        args::Command::Demo(args) => cmd::demo::run(&args),
        args::Command::Other(words) => cmd::other::run(&words),
    }
}
