//! `ppt WORD` for a word that is not built in runs `ppt-WORD`, as git and cargo do.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::code::Code;
use crate::{exit, report};

pub(crate) fn run(words: &[OsString]) -> ExitCode {
    let Some((word, args)) = words.split_first() else { return exit::usage() };
    let mut program = OsString::from("ppt-");
    program.push(word);
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(&program)));
    // With more rights than the caller has, nothing of the caller's choice is run.
    let privileged = nix::unistd::getuid() != nix::unistd::geteuid();
    let found = beside.filter(|path| path.is_file());
    let error = match (found, privileged) {
        (Some(path), _) => Command::new(path).args(args).exec(),
        (None, false) => Command::new(&program).args(args).exec(),
        (None, true) => std::io::ErrorKind::NotFound.into(),
    };
    let word = word.to_string_lossy();
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            report::error(
                Code::NoSuchCommand,
                format_args!("there is no command `{word}`; `ppt --help` lists them"),
            );
            exit::usage()
        }
        _ => {
            report::error(Code::CannotRun, format_args!("cannot run ppt-{word}: {error}"));
            exit::FAILED
        }
    }
}
