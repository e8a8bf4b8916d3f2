//! `ppt WORD` for a word that is not built in: ppt runs `ppt-WORD`, as git and cargo do.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::CommandFactory;
use ppt_text::exit::ExitStatus;

use crate::args;
use crate::code::Code;
use crate::failure::{CommandResult, Failure};
use crate::help;

/// Replaces this process by the program for `words`. Returns only if that fails.
pub(crate) fn run(words: &[OsString]) -> CommandResult {
    let Some((word, args)) = words.split_first() else { return Ok(ExitStatus::USAGE) };
    if let Some(code) = word.to_str().and_then(help::left_out) {
        let text = format!(
            "this ppt was built without `ppt {}`; the package ppt has it, and so has what \
             `cargo install --locked --path .` builds",
            word.to_string_lossy()
        );
        return Err(Failure::failed(code, text));
    }
    let mut program = OsString::from("ppt-");
    program.push(word);
    let own_folder = std::env::current_exe().ok();
    let beside = own_folder.and_then(|exe| Some(exe.parent()?.join(&program)));
    let path = beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(&program));
    let error = Command::new(path).args(args).exec();
    let (word, name) = (word.to_string_lossy(), program.to_string_lossy());
    Err(if error.kind() == io::ErrorKind::NotFound {
        let meant =
            nearest(&word).map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message =
            format!("there is no command `{word}`{meant}\n  `ppt --help` lists all commands");
        Failure::usage(Code::NoSuchCommand, message)
    } else {
        Failure::failed(Code::CannotRun, format!("cannot run {name}: {error}"))
    })
}

/// The command whose name is spelt most like `word`.
fn nearest(word: &str) -> Option<String> {
    let own = args::Args::command();
    let own = own.get_subcommands().filter(|command| !command.is_hide_set());
    ppt_text::nearest(word, own.map(|command| command.get_name().to_owned()))
}
