//! `ppt WORD` for a word that is not built in runs `ppt-WORD`, as git and cargo do.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Outcome};

pub(crate) fn run(words: &[OsString]) -> Outcome {
    let Some((word, args)) = words.split_first() else { return Ok(ExitStatus::USAGE) };
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
    Err(match error.kind() {
        std::io::ErrorKind::NotFound => {
            let message = format!("there is no command `{word}`; `ppt --help` lists them");
            Failure::usage(Code::NoSuchCommand, message)
        }
        _ => Failure::failed(Code::CannotRun, format!("cannot run ppt-{word}: {error}")),
    })
}
