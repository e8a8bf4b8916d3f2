//! The role that the arguments select.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ppt_text::exit::ExitStatus;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::error::{HostError, cannot};
use super::self_start::SelfStart;
use super::{clock, keeper, reader, worker};

/// Runs `ppt lab host ARGUMENTS`, which talks to the controller on stdin and stdout.
///
/// # Errors
/// A system call fails, or the arguments are not those of `ppt lab run`.
pub fn host(own: &SelfStart, arguments: &[OsString]) -> Result<ExitStatus, HostError> {
    let words: Vec<&str> =
        arguments.iter().map(|argument| argument.to_str().unwrap_or("")).collect();
    match words[..] {
        ["keep", how, name] => keeper::keep(own, how, name),
        ["work", how, life, folder] => worker::work(own, how, life, Path::new(folder)),
        ["reader", parent, user, "--", ..] if arguments.len() > 4 => {
            // Before the guard, because a change of credentials clears the parent-death signal.
            reader::step_down(user)?;
            guard(parent, &arguments[4..])
        }
        ["guard", parent, "--", ..] if arguments.len() > 3 => guard(parent, &arguments[3..]),
        ["answer", name, key, address] => clock::answer(name, key, address),
        ["ask", name, key, file, until, give_up, ref others @ ..] => {
            clock::ask(name, key, file, nanoseconds(until)?, nanoseconds(give_up)?, others)
        }
        _ => Err(HostError::Arguments),
    }
}

fn nanoseconds(text: &str) -> Result<Duration, HostError> {
    text.parse().map(Duration::from_nanos).map_err(|_| HostError::Arguments)
}

/// Becomes a program that ends with its parent.
fn guard(parent: &str, words: &[OsString]) -> Result<ExitStatus, HostError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(cannot("ask for a signal"))?;
    let parent = parent.parse().ok().and_then(Pid::from_raw).ok_or(HostError::Arguments)?;
    // The parent may have ended before the signal was set.
    if getppid() != Some(parent) {
        return Ok(ExitStatus::FAILED);
    }
    let program = PathBuf::from(&words[0]);
    let cause = Command::new(&program).args(&words[1..]).exec();
    Err(HostError::Exec { program, cause })
}
