//! `ppt WORD` for a word that is not built in. `ppt-analysis` and `ppt-lab` run their own words; for any
//! other word, ppt runs `ppt-WORD`, as git and cargo do.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::CommandFactory;
use nix::unistd::{Gid, Uid, User, geteuid, initgroups, setgid, setgroups, setuid};

use crate::args::{self, PartnerProgram};
use crate::code::Code;
use crate::exit::ExitStatus;
use crate::failure::{CommandResult, Failure};
use crate::privileges;

pub(crate) fn run(words: &[OsString]) -> CommandResult {
    let Some(word) = words.first() else { return Ok(ExitStatus::USAGE) };
    become_program(words, args::program(word))
}

/// Replaces this process by `ppt-analysis` with the arguments `words`.
pub(crate) fn ask(words: &[OsString]) -> CommandResult {
    become_program(words, Some(PartnerProgram::Analysis))
}

/// Replaces this process by the program for `words`. Returns only if that fails.
fn become_program(words: &[OsString], ours: Option<PartnerProgram>) -> CommandResult {
    let Some((word, args)) = words.split_first() else { return Ok(ExitStatus::USAGE) };
    let (program, args) = match ours {
        Some(ours) => (OsString::from(ours.name()), words),
        None => {
            let mut program = OsString::from("ppt-");
            program.push(word);
            (program, args)
        }
    };
    let error = execute(&program, args, ours.is_some());
    let (word, name) = (word.to_string_lossy(), program.to_string_lossy());
    Err(match (error.kind(), ours) {
        (io::ErrorKind::NotFound, Some(ours)) => {
            let message = format!(
                "`ppt {word}` needs {name}, which is not installed: install it next to ppt"
            );
            let code = match ours {
                PartnerProgram::Analysis => Code::NoAnalysis,
                PartnerProgram::Lab => Code::NoLabProgram,
            };
            Failure::failed(code, message)
        }
        (io::ErrorKind::NotFound, None) => {
            let meant = nearest(&word);
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
            let message =
                format!("there is no command `{word}`{meant}\n  `ppt --help` lists all commands");
            Failure::usage(Code::NoSuchCommand, message)
        }
        _ => Failure::failed(Code::CannotRun, format!("cannot run {name}: {error}")),
    })
}

/// The command whose name is spelt most like `word`.
fn nearest(word: &str) -> Option<String> {
    let own = args::Args::command();
    let own = own.get_subcommands().filter(|command| !command.is_hide_set());
    let own = own.map(|command| command.get_name().to_owned());
    let names: Vec<String> = own.chain(args::others().map(|(word, ..)| word.to_owned())).collect();
    ppt_text::nearest(word, names)
}

/// Lets a program complete the words that follow one of its own; returns if it is not installed.
pub(crate) fn complete(program: PartnerProgram, args: &[OsString]) {
    let _ = execute(OsStr::new(program.name()), args, true);
}

/// Whether `ppt-analysis` is installed.
pub(crate) fn can_ask() -> bool {
    is_installed(PartnerProgram::Analysis)
}

/// Whether a program is installed where ppt starts it.
pub(crate) fn is_installed(program: PartnerProgram) -> bool {
    installed(program).is_some()
}

/// The file that ppt starts as this program.
pub(crate) fn installed(program: PartnerProgram) -> Option<PathBuf> {
    let program = program.name();
    let own_folder = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(program)));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&paths).map(|folder| folder.join(program));
    let in_path = in_path.filter(|_| !distrusts_path());
    own_folder.into_iter().chain(in_path).find(|path| path.is_file())
}

/// Whether ppt starts only the `ppt-analysis` and the `ppt-lab` of its own folder: the caller chooses
/// the PATH.
pub(crate) fn distrusts_path() -> bool {
    privileges::borrowed() || geteuid().is_root()
}

/// Replaces this process by `program`; returns the error if that fails.
fn execute(program: &OsStr, args: &[OsString], is_ours: bool) -> io::Error {
    let in_own_folder = || Some(std::env::current_exe().ok()?.parent()?.join(program));
    let is_root = geteuid().is_root();
    // The caller chooses the PATH. So a set-user-ID ppt starts only programs of its own folder, and
    // root starts `ppt-analysis` and `ppt-lab` only from there.
    let distrusts_path = privileges::borrowed() || (is_root && is_ours);
    let path = match in_own_folder().filter(|path| path.is_file()) {
        Some(path) => path,
        None if distrusts_path => return io::ErrorKind::NotFound.into(),
        None => PathBuf::from(program),
    };
    if is_ours
        && is_root
        && args.first().is_none_or(|arg| arg != "lab")
        && let Err(error) = step_down()
    {
        return error.into();
    }
    Command::new(path).args(args).exec()
}

/// Gives up privileges, because reading captures needs none. Under sudo, the program runs as the user
/// who called sudo; otherwise it keeps only the capabilities to open files.
fn step_down() -> nix::Result<()> {
    let Some(invoker) = privileges::invoker().filter(|invoker| invoker.uid != 0) else {
        privileges::only_read(false);
        return Ok(());
    };
    let user = User::from_uid(Uid::from_raw(invoker.uid))?;
    let gid = invoker.gid.map(Gid::from_raw).or(user.as_ref().map(|user| user.gid));
    let gid = gid.unwrap_or(Gid::from_raw(invoker.uid));
    match user.and_then(|user| CString::new(user.name).ok()) {
        Some(name) => initgroups(&name, gid)?,
        None => setgroups(&[gid])?,
    }
    setgid(gid)?;
    setuid(Uid::from_raw(invoker.uid))
}
