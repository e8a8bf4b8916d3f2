//! Completion at a shell's TAB. The installed scripts run `ppt` itself with `PPT_COMPLETE` set, so
//! that it offers the pids and buffers of this moment.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use ppt_agent::{System, Target};

use crate::args::{Args, Shell};

/// The variable that a shell sets to its own name to request completions.
const VARIABLE: &str = "PPT_COMPLETE";

/// If a shell requests completions, writes them and ends the program.
pub(crate) fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).completer("ppt").complete();
}

/// Writes the script of a shell, which runs `ppt` at each TAB.
pub(crate) fn script(shell: Shell, out: &mut dyn Write) -> io::Result<()> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let shells = Shells::builtins();
    let completer = shells.completer(name).ok_or(io::ErrorKind::Unsupported)?;
    completer.write_registration(VARIABLE, "ppt", "ppt", "ppt", out)
}

fn command() -> Command {
    Args::command().mut_subcommands(|command| {
        let has_pid =
            command.get_arguments().any(|arg| arg.get_id() == "pid" || arg.get_id() == "targets");
        command.mut_args(|arg| match arg.get_id().as_str() {
            "pid" | "pid_option" | "targets" => arg.add(ArgValueCompleter::new(processes)),
            "code" => add(arg, codes),
            "names" | "only" | "except" => add(arg, names_of_processes),
            "buffers" if has_pid => add(arg, buffers_of_processes),
            "buffers" => add(arg, buffers_of_captures),
            _ => arg,
        })
    })
}

fn add(arg: Arg, candidates: fn() -> Vec<CompletionCandidate>) -> Arg {
    arg.add(ArgValueCandidates::new(candidates))
}

/// A process and the names of its buffers; None if it has none, or ppt may not read it.
fn buffers(pid: i32) -> Option<(Target, Vec<String>)> {
    let target = Target::open(&System::default(), pid).ok()?;
    let names: Vec<_> =
        target.buffers().ok()?.buffers.into_iter().map(|buffer| buffer.name).collect();
    (!names.is_empty()).then_some((target, names))
}

/// Processes with buffers whose pids begin with the typed digits. ppt searches no others.
fn processes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let pids = ppt_agent::processes(&System::default()).into_iter();
    let found = pids.filter(|pid| pid.to_string().starts_with(&*typed)).filter_map(buffers);
    let candidate = |(target, names): (Target, Vec<String>)| {
        let help = format!("{}: {}", target.comm(), names.join(", "));
        CompletionCandidate::new(target.pid().to_string()).help(Some(help.into()))
    };
    found.map(candidate).collect()
}

/// The codes that `ppt explain` knows.
fn codes() -> Vec<CompletionCandidate> {
    crate::cmd::explain::sections()
        .map(|section| {
            CompletionCandidate::new(section.code).help(Some(section.summary().to_owned().into()))
        })
        .collect()
}

/// The buffers of the processes in the typed line.
fn buffers_of_processes() -> Vec<CompletionCandidate> {
    let pids = std::env::args().filter_map(|word| word.parse().ok());
    pids.filter_map(buffers).flat_map(|entry| entry.1).map(CompletionCandidate::new).collect()
}

/// The frames, counters and histograms of the processes in the typed line.
fn names_of_processes() -> Vec<CompletionCandidate> {
    let pids = std::env::args().filter_map(|word| word.parse().ok());
    let found = pids.filter_map(|pid| Target::open(&System::default(), pid).ok()?.buffers().ok());
    let buffers = found.flat_map(|buffers| buffers.buffers);
    let names = buffers.flat_map(|buffer| crate::choice::names(&buffer.schema));
    names.map(|name| CompletionCandidate::new(name.name).help(Some(name.buffer.into()))).collect()
}

/// The buffers of the captures in the typed line.
fn buffers_of_captures() -> Vec<CompletionCandidate> {
    let words = std::env::args().skip(1).filter(|word| Path::new(word).is_file());
    let captures = words.filter_map(|word| ppt_dump::Info::read(Path::new(&word)).ok());
    let names = captures.flat_map(|info| info.buffers).map(|buffer| buffer.name);
    names.map(CompletionCandidate::new).collect()
}
